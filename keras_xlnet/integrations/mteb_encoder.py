"""Embedders in mteb, the Massive Text Embedding Benchmark."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder

from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.preset_files.adapter_weights import sha256_of_weights
from keras_xlnet.preset_files.weights import model_weights

_FRAMEWORKS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


class MTEBEncoder(AbsEncoder):
    """An embedder for the tasks of mteb, the Massive Text Embedding Benchmark.

    `mteb.evaluate(MTEBEncoder(embedder), tasks=[...])` runs tasks on texts, such as similarity,
    retrieval, reranking, classification and clustering. `encode_kwargs` may have a `batch_size`.
    Vectors are compared by their cosine. Queries and documents are embedded in the same way.

    mteb keeps results by the name and the revision of a model, and does not run a task that it has
    results of. The revision is a checksum of the weights and of what else changes the vectors, so
    an embedder that was trained further is evaluated again.

    Args:
        embedder: An `XLNetTextEmbedder` with a preprocessor.
        name: String `"organization/name"`, the name in mteb's results. `None` for
            `"keras_xlnet/"` and the preset that the embedder comes from, or its class.
        **meta: Other fields of `mteb.models.ModelMeta`, such as `languages` and `license`. They are
            `None`, which means "not known", by default.

    Raises:
        ValueError: If `embedder` is something else or has no preprocessor.

    Example:

    >>> from keras_xlnet.integrations import MTEBEncoder
    >>> from keras_xlnet.preprocessing import XLNetTextEmbedderPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> embedder = keras_xlnet.models.XLNetTextEmbedder(
    ...     keras_xlnet.models.XLNetBackbone(24, 1, 2, 16, 32),
    ...     preprocessor=XLNetTextEmbedderPreprocessor(tokenizer, sequence_length=24))
    >>> encoder = MTEBEncoder(embedder, "me/roses", languages=["eng-Latn"])
    >>> batches = [{"text": ["a rose", "is"]}, {"text": ["a rose is"]}]
    >>> encoder.encode(batches, task_metadata=None, hf_split="test", hf_subset="default").shape
    (3, 16)
    >>> encoder.mteb_model_meta.embed_dim, encoder.mteb_model_meta.max_tokens
    (16, 24.0)

    Source: Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark".
    """

    def __init__(
        self,
        embedder: XLNetTextEmbedder,
        name: str | None = None,
        **meta: Any,
    ) -> None:
        if not isinstance(embedder, XLNetTextEmbedder) or embedder.preprocessor is None:
            raise ValueError(
                "`embedder` must be an XLNetTextEmbedder with a preprocessor. Received: "
                f"{embedder!r}"
            )
        self.model = embedder
        fields = {
            "name": name or f"keras_xlnet/{embedder.trained_from or embedder.name}",
            "revision": _revision(embedder),
            "embed_dim": embedder.backbone.hidden_dim,
            "max_tokens": embedder.preprocessor.sequence_length,
            "n_parameters": embedder.count_params(),
            "n_embedding_parameters": embedder.backbone.token_embedding.count_params(),
            "memory_usage_mb": sum(w.numpy().nbytes for w in embedder.weights) / 2**20,
            "framework": [_FRAMEWORKS[keras.backend.backend()]],
            "similarity_fn_name": "cosine",
            "use_instructions": False,
        }
        unknown = ModelMeta.create_empty().model_dump()
        self.mteb_model_meta = ModelMeta(**{**unknown, **fields, **meta})

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence[str]]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **kwargs: Any,
    ) -> np.ndarray:
        """Returns the vectors of texts, as mteb asks for them.

        Args:
            inputs: Batches of texts: dicts whose key `text` has a list of strings.
            task_metadata, hf_split, hf_subset, prompt_type: What mteb knows about the texts. Not
                used.
            **kwargs: The `encode_kwargs` of `mteb.evaluate`: `batch_size` and `show_progress_bar`.
                Others are not used.

        Returns:
            Float32 array `(texts, hidden_dim)`.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        verbose = "auto" if kwargs.get("show_progress_bar", True) else 0
        return self.model.embed(texts, batch_size=kwargs.get("batch_size"), verbose=verbose)


def _revision(embedder):
    """A checksum of all that the vectors depend on."""
    preprocessor, backbone = embedder.preprocessor, embedder.backbone
    settings = {
        **preprocessor.get_config(),
        **preprocessor.tokenizer.get_config(),
        **backbone.get_config(),
        "pooling": embedder.pooling,
        "vocabulary": preprocessor.tokenizer.vocabulary_sha256,
        "weights": sha256_of_weights(model_weights(embedder)),
    }
    # Names are counted in a process, and the tokenizer is above.
    for key in ("name", "tokenizer"):
        del settings[key]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
