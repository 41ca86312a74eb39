"""Metrics of language models and of tasks, and how models predict long texts."""

from keras_xlnet.evaluation.answers import AnswerScores, answer_scores, normalize_answer
from keras_xlnet.evaluation.bits_per_character import BitsPerCharacter
from keras_xlnet.evaluation.class_metrics import (
    ClassF1,
    MatthewsCorrelation,
    QuadraticWeightedKappa,
)
from keras_xlnet.evaluation.context_length import effective_context_lengths
from keras_xlnet.evaluation.corpus import corpus_log_probs, sliding_log_probs
from keras_xlnet.evaluation.embeddings import (
    SimilarityScores,
    retrieval_scores,
    similarity_scores,
)
from keras_xlnet.evaluation.entities import EntityScores, EntitySpan, entity_scores, entity_spans
from keras_xlnet.evaluation.explanation import Explanation, explain
from keras_xlnet.evaluation.pearson_correlation import PearsonCorrelation
from keras_xlnet.evaluation.perplexity import Perplexity
from keras_xlnet.evaluation.ranking import RankingScores, ranking_scores
from keras_xlnet.evaluation.rating_thresholds import fit_rating_thresholds
from keras_xlnet.evaluation.segment_places import losses_by_place

__all__ = [
    "AnswerScores",
    "BitsPerCharacter",
    "ClassF1",
    "EntityScores",
    "EntitySpan",
    "Explanation",
    "MatthewsCorrelation",
    "PearsonCorrelation",
    "Perplexity",
    "QuadraticWeightedKappa",
    "RankingScores",
    "SimilarityScores",
    "answer_scores",
    "corpus_log_probs",
    "effective_context_lengths",
    "entity_scores",
    "entity_spans",
    "explain",
    "fit_rating_thresholds",
    "losses_by_place",
    "normalize_answer",
    "ranking_scores",
    "retrieval_scores",
    "similarity_scores",
    "sliding_log_probs",
]
