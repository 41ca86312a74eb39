"""Corpus to records to batches for permutation language modelling."""

from keras_xlnet.pretraining.permutation_batches import PermutationBatches
from keras_xlnet.pretraining.read_original_records import read_original_records
from keras_xlnet.pretraining.resume_batches import ResumeBatches
from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.pretraining.word_start_table import word_start_table
from keras_xlnet.pretraining.write_token_records import write_token_records

__all__ = [
    "PermutationBatches",
    "ResumeBatches",
    "TokenRecords",
    "read_original_records",
    "word_start_table",
    "write_token_records",
]
