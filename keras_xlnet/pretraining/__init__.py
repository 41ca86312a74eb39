"""Pretraining data: from text files to records, and from records to batches."""

from keras_xlnet.lazy_modules import requires_extra

with requires_extra("tensorflow", f"`{__name__}`"):
    from keras_xlnet.pretraining.beam_record_writer import write_token_records_with_beam
    from keras_xlnet.pretraining.causal_batches import CausalBatches
    from keras_xlnet.pretraining.original_records import read_original_records
    from keras_xlnet.pretraining.permutation_batches import PermutationBatches
    from keras_xlnet.pretraining.resume_batches import ResumeBatches
    from keras_xlnet.pretraining.target_sampler import word_start_table
    from keras_xlnet.pretraining.token_record_writer import write_token_records
    from keras_xlnet.pretraining.token_records import TokenRecords

__all__ = [
    "CausalBatches",
    "PermutationBatches",
    "ResumeBatches",
    "TokenRecords",
    "read_original_records",
    "word_start_table",
    "write_token_records",
    "write_token_records_with_beam",
]
