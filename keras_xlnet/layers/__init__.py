"""The layers of XLNet and Transformer-XL, written in `keras.ops` for every Keras backend."""

from keras_xlnet.layers.answer_end import AnswerEnd
from keras_xlnet.layers.answer_start import AnswerStart
from keras_xlnet.layers.answerability import Answerability
from keras_xlnet.layers.attention_biases import AttentionBiases
from keras_xlnet.layers.attention_mask import AttentionMask
from keras_xlnet.layers.feed_forward import FeedForward
from keras_xlnet.layers.gelu_tanh import gelu_tanh
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.logit_bias import LogitBias
from keras_xlnet.layers.mask_embedding import MaskEmbedding
from keras_xlnet.layers.permutation_mask_generator import PermutationMaskGenerator
from keras_xlnet.layers.recurrent_memory import RecurrentMemory
from keras_xlnet.layers.relative_multi_head_attention import RelativeMultiHeadAttention
from keras_xlnet.layers.relative_position_encoding import RelativePositionEncoding
from keras_xlnet.layers.replica_seed_generator import ReplicaSeedGenerator
from keras_xlnet.layers.segment_matrix import SegmentMatrix
from keras_xlnet.layers.sequence_pooling import SequencePooling
from keras_xlnet.layers.sequence_summary import SequenceSummary
from keras_xlnet.layers.span_mask_sampler import SpanMaskSampler
from keras_xlnet.layers.two_stream_block import TwoStreamBlock

__all__ = [
    "AnswerEnd",
    "AnswerStart",
    "Answerability",
    "AttentionBiases",
    "AttentionMask",
    "FeedForward",
    "HashDropout",
    "LogitBias",
    "MaskEmbedding",
    "PermutationMaskGenerator",
    "RecurrentMemory",
    "RelativeMultiHeadAttention",
    "RelativePositionEncoding",
    "ReplicaSeedGenerator",
    "SegmentMatrix",
    "SequencePooling",
    "SequenceSummary",
    "SpanMaskSampler",
    "TwoStreamBlock",
    "gelu_tanh",
]
