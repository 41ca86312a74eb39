"""What users pass to models and get from them: texts, words, questions, choices and labels."""

from keras_xlnet.preprocessing.multiple_choice_preprocessor import XLNetMultipleChoicePreprocessor
from keras_xlnet.preprocessing.question_answering_preprocessor import (
    XLNetQuestionAnsweringPreprocessor,
)
from keras_xlnet.preprocessing.text_preprocessor import XLNetTextPreprocessor
from keras_xlnet.preprocessing.token_classifier_preprocessor import (
    XLNetTokenClassifierPreprocessor,
)

__all__ = [
    "XLNetMultipleChoicePreprocessor",
    "XLNetQuestionAnsweringPreprocessor",
    "XLNetTextPreprocessor",
    "XLNetTokenClassifierPreprocessor",
]
