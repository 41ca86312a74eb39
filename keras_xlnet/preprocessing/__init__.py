"""The inputs and results of models: a preprocessor for each form of input."""

from keras_xlnet.preprocessing.answer_decoding import Answer, AnswerPrediction
from keras_xlnet.preprocessing.choices import Choice
from keras_xlnet.preprocessing.documents import RankedDocument
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.multi_task_preprocessor import MultiTaskPreprocessor
from keras_xlnet.preprocessing.multiple_choice_preprocessor import (
    XLNetMultipleChoicePreprocessor,
)
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.preprocessing.question_answering_preprocessor import (
    XLNetQuestionAnsweringPreprocessor,
)
from keras_xlnet.preprocessing.ranker_preprocessor import XLNetRankerPreprocessor
from keras_xlnet.preprocessing.sentences import TaggedSentence
from keras_xlnet.preprocessing.tags import Entity
from keras_xlnet.preprocessing.text_batches import TextBatches, batch_by_length, batch_packed
from keras_xlnet.preprocessing.text_classifier_preprocessor import (
    Classification,
    XLNetTextClassifierPreprocessor,
)
from keras_xlnet.preprocessing.text_embedder_preprocessor import XLNetTextEmbedderPreprocessor
from keras_xlnet.preprocessing.text_regressor_preprocessor import XLNetTextRegressorPreprocessor
from keras_xlnet.preprocessing.token_classifier_preprocessor import (
    XLNetTokenClassifierPreprocessor,
)

__all__ = [
    "Answer",
    "AnswerPrediction",
    "Choice",
    "Classification",
    "Encoded",
    "Entity",
    "MultiTaskPreprocessor",
    "Preprocessor",
    "RankedDocument",
    "TaggedSentence",
    "TextBatches",
    "XLNetMultipleChoicePreprocessor",
    "XLNetQuestionAnsweringPreprocessor",
    "XLNetRankerPreprocessor",
    "XLNetTextClassifierPreprocessor",
    "XLNetTextEmbedderPreprocessor",
    "XLNetTextRegressorPreprocessor",
    "XLNetTokenClassifierPreprocessor",
    "batch_by_length",
    "batch_packed",
]
