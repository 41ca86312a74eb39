"""Embedders in mteb: its scores equal those of `keras_xlnet.evaluation`."""

import sys

import keras
import numpy as np
import pytest

from keras_xlnet.evaluation import ranking_scores, retrieval_scores, similarity_scores
from keras_xlnet.models import XLNetTextClassifier, XLNetTextEmbedder
from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
from tests.examples import RESEARCH
from tests.small_models import small_backbone

mteb = pytest.importorskip("mteb")
sys.path.append(str(RESEARCH / "tasks"))

from mteb.models import EncoderProtocol  # noqa: E402
from mteb_tasks import Retrieval, Similarity  # noqa: E402

from keras_xlnet.integrations import MTEBEncoder  # noqa: E402

DOCUMENTS = [
    "The harbor is full of ships.",
    "A river runs through the old town.",
    "Ships sail from the harbor at dawn, and the town is quiet.",
    "She plays the piano.",
    "The dog sleeps by the fire.",
    "Rain fell on the river all night.",
    "He bought bread, milk and an apple in the town.",
]
QUERIES = ["ships in the harbor", "a wet night", "music", "where is the dog ?"]
RELEVANT = [{0: 2, 2: 1}, {5: 1}, {3: 1}, {4: 3, 1: 1}]


def new_embedder(tokenizer, sequence_length=32, **arguments):
    keras.utils.set_random_seed(3)
    preprocessor = XLNetTextEmbedderPreprocessor(tokenizer, sequence_length)
    return XLNetTextEmbedder(small_backbone(), preprocessor, **arguments)


@pytest.fixture(scope="module")
def embedder(tokenizer):
    return new_embedder(tokenizer)


def evaluate(embedder, *tasks, **options):
    options = {"cache": None, "show_progress_bar": False, "co2_tracker": False, **options}
    results = mteb.evaluate(MTEBEncoder(embedder, "tests/small"), tasks, **options)
    return [result.scores["test"][0] for result in results.task_results]


def retrieval_task(candidates=None):
    def ids(prefix, texts):
        return {f"{prefix}{i}": text for i, text in enumerate(texts)}

    relevance = {
        f"q{i}": {f"d{j}": grade for j, grade in row.items()} for i, row in enumerate(RELEVANT)
    }
    return Retrieval("Small", ids("q", QUERIES), ids("d", DOCUMENTS), relevance, candidates)


def test_mteb_gives_the_correlations_of_similarity_scores(embedder):
    pairs = [*zip(DOCUMENTS, DOCUMENTS[1:] + QUERIES[:1], strict=True)]
    scores = [0.0, 1.5, 3.0, 2.2, 4.0, 5.0, 0.4]
    expected = similarity_scores(embedder, pairs, scores, verbose=0)
    (found,) = evaluate(embedder, Similarity("Pairs", pairs, scores))
    for kind in ("", "cosine_"):
        np.testing.assert_allclose(found[f"{kind}spearman"], expected.spearman, atol=1e-4)
        np.testing.assert_allclose(found[f"{kind}pearson"], expected.pearson, atol=1e-4)
    assert abs(expected.pearson) > 0.01


def test_mteb_finds_what_retrieval_scores_finds(embedder):
    expected = retrieval_scores(embedder, QUERIES, DOCUMENTS, RELEVANT, k=[3], verbose=0)
    # Another batch size changes nothing.
    (found,) = evaluate(embedder, retrieval_task(), encode_kwargs={"batch_size": 2})
    np.testing.assert_allclose(found["ndcg_at_3"], expected.ndcg[3], atol=1e-4)
    np.testing.assert_allclose(found["map_at_10"], expected.map, atol=1e-4)
    np.testing.assert_allclose(found["mrr_at_10"], expected.mrr, atol=1e-4)
    assert 0 < expected.map < 1


def test_mteb_reranks_candidates(embedder):
    candidates = [[0, 1, 3], [5, 2, 6], [3, 4, 0, 1], [1, 6, 4, 2]]
    pairs = [(query, document) for query, row in enumerate(candidates) for document in row]
    cosines = embedder.similarity(QUERIES, DOCUMENTS, verbose=0)
    judged = [(query, grade) for query, row in enumerate(RELEVANT) for grade in row.values()]
    expected = ranking_scores(
        [query for query, _ in pairs],
        [RELEVANT[query].get(document, 0) for query, document in pairs],
        [cosines[pair] for pair in pairs],
        k=[3],
        all_relevance=[*zip(*judged, strict=True)],
    )
    task = retrieval_task({f"q{i}": [f"d{j}" for j in row] for i, row in enumerate(candidates)})
    (found,) = evaluate(embedder, task)
    np.testing.assert_allclose(found["ndcg_at_3"], expected.ndcg[3], atol=1e-4)
    np.testing.assert_allclose(found["map_at_10"], expected.map, atol=1e-4)


def test_the_metadata_are_those_of_the_embedder(embedder):
    encoder = MTEBEncoder(embedder, languages=["eng-Latn"], license="apache-2.0")
    meta = encoder.mteb_model_meta
    assert isinstance(encoder, EncoderProtocol)
    assert meta.name == "keras_xlnet/xlnet_text_embedder"
    assert meta.languages == ["eng-Latn"] and meta.license == "apache-2.0"
    assert (meta.embed_dim, meta.max_tokens) == (16, 32)
    assert meta.n_parameters == embedder.count_params()
    assert meta.n_embedding_parameters == 200 * 16
    np.testing.assert_allclose(meta.memory_usage_mb, embedder.count_params() * 4 / 2**20)
    names = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
    assert meta.framework == [names[keras.backend.backend()]]
    assert meta.similarity_fn_name.value == "cosine"


def test_the_revision_changes_with_the_vectors_only(tokenizer):
    def revision(embedder):
        return MTEBEncoder(embedder).mteb_model_meta.revision

    embedder = new_embedder(tokenizer)
    expected = revision(embedder)
    assert revision(new_embedder(tokenizer)) == expected
    embedder.compile("sgd")
    assert revision(embedder) == expected
    others = [
        new_embedder(tokenizer, sequence_length=31),
        new_embedder(tokenizer, pooling="last"),
        embedder,
    ]
    embedder.backbone.blocks[0].trainable_variables[0].assign_add(
        np.full(embedder.backbone.blocks[0].trainable_variables[0].shape, 0.1)
    )
    assert len({expected, *map(revision, others)}) == 4


def test_mteb_does_not_take_results_of_earlier_weights(tokenizer, tmp_path):
    pairs = [*zip(DOCUMENTS, DOCUMENTS[1:], strict=False)]
    embedder, task = new_embedder(tokenizer), Similarity("Pairs", pairs, [0, 1, 3, 2, 4, 5])
    cache = mteb.ResultCache(tmp_path)

    def pearson(**options):
        (found,) = evaluate(embedder, task, **options)
        return found["cosine_pearson"]

    before = pearson(cache=cache)
    rng = np.random.default_rng(0)
    for variable in embedder.trainable_variables:
        variable.assign_add(rng.normal(scale=0.3, size=variable.shape))
    assert pearson(cache=cache) == pearson() != before


def test_other_models_are_refused():
    message = "`embedder` must be an XLNetTextEmbedder with a preprocessor. Received: <"
    for model in (
        XLNetTextClassifier(small_backbone(), num_classes=2),
        XLNetTextEmbedder(small_backbone()),
    ):
        with pytest.raises(ValueError, match=message):
            MTEBEncoder(model)
