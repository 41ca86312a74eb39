"""Corpus to records to batches for permutation language modelling."""

from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.pretraining.word_start_table import word_start_table
from keras_xlnet.pretraining.write_token_records import write_token_records

__all__ = ["TokenRecords", "word_start_table", "write_token_records"]
