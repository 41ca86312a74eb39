"""Functional models made of the layers: the backbone, and one model for each task."""

from keras_xlnet.models.filling import Filling, Fillings
from keras_xlnet.models.generation import Continuations
from keras_xlnet.models.inspection import Attention, Inspection
from keras_xlnet.models.multi_task import MultiTask
from keras_xlnet.models.scoring import Scores
from keras_xlnet.models.task import Task
from keras_xlnet.models.transformer_xl_language_model import TransformerXLLanguageModel
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.models.xlnet_multiple_choice import XLNetMultipleChoice
from keras_xlnet.models.xlnet_permutation_lm import XLNetPermutationLM
from keras_xlnet.models.xlnet_question_answering import XLNetQuestionAnswering
from keras_xlnet.models.xlnet_ranker import ListSoftmaxLoss, PairwiseHingeLoss, XLNetRanker
from keras_xlnet.models.xlnet_text_classifier import XLNetTextClassifier
from keras_xlnet.models.xlnet_text_embedder import CosineSimilarityLoss, XLNetTextEmbedder
from keras_xlnet.models.xlnet_text_regressor import XLNetTextRegressor
from keras_xlnet.models.xlnet_token_classifier import XLNetTokenClassifier

__all__ = [
    "Attention",
    "Continuations",
    "CosineSimilarityLoss",
    "Filling",
    "Fillings",
    "Inspection",
    "MultiTask",
    "ListSoftmaxLoss",
    "PairwiseHingeLoss",
    "Scores",
    "Task",
    "TransformerXLLanguageModel",
    "XLNetBackbone",
    "XLNetMultipleChoice",
    "XLNetPermutationLM",
    "XLNetQuestionAnswering",
    "XLNetRanker",
    "XLNetTextClassifier",
    "XLNetTextEmbedder",
    "XLNetTextRegressor",
    "XLNetTokenClassifier",
]
