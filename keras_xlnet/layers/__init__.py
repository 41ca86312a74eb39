"""The layers of XLNet and Transformer-XL, for every Keras backend."""

from keras_xlnet.layers.activations import gelu_tanh
from keras_xlnet.layers.adaptive_embedding import AdaptiveEmbedding
from keras_xlnet.layers.adaptive_softmax import AdaptiveSoftmax
from keras_xlnet.layers.add_and_norm import AddAndNorm
from keras_xlnet.layers.answer_heads import Answerability, AnswerEnd, AnswerStart
from keras_xlnet.layers.attention_biases import AttentionBiases
from keras_xlnet.layers.attention_masks import AttentionMask, SegmentMatrix
from keras_xlnet.layers.feed_forward import FeedForward
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.memory import RecurrentMemory, StatefulMemory
from keras_xlnet.layers.pair_comparison import PairComparison
from keras_xlnet.layers.permutation_mask_generator import PermutationMaskGenerator
from keras_xlnet.layers.relative_multi_head_attention import RelativeMultiHeadAttention
from keras_xlnet.layers.relative_position_encoding import RelativePositionEncoding
from keras_xlnet.layers.sequence_pooling import SequencePooling, SequenceSummary
from keras_xlnet.layers.span_mask_sampler import SpanMaskSampler
from keras_xlnet.layers.text_packing import PackTexts, UnpackTexts
from keras_xlnet.layers.token_prediction import LogitBias, MaskEmbedding
from keras_xlnet.layers.transformer_xl_block import TransformerXLBlock
from keras_xlnet.layers.two_stream_block import TwoStreamBlock

__all__ = [
    "AdaptiveEmbedding",
    "AdaptiveSoftmax",
    "AddAndNorm",
    "AnswerEnd",
    "AnswerStart",
    "Answerability",
    "AttentionBiases",
    "AttentionMask",
    "FeedForward",
    "HashDropout",
    "LogitBias",
    "MaskEmbedding",
    "PackTexts",
    "PairComparison",
    "PermutationMaskGenerator",
    "RecurrentMemory",
    "RelativeMultiHeadAttention",
    "RelativePositionEncoding",
    "SegmentMatrix",
    "SequencePooling",
    "SequenceSummary",
    "SpanMaskSampler",
    "StatefulMemory",
    "TransformerXLBlock",
    "TwoStreamBlock",
    "UnpackTexts",
    "gelu_tanh",
]
