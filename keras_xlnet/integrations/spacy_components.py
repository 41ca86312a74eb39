"""Components of spaCy's pipelines: `keras_xlnet_ner` finds entities, `keras_xlnet_textcat` classes.

spaCy finds them through the entry points `spacy_factories` in pyproject.toml.
"""

import functools
import io
import os
import pathlib
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc
from spacy.util import filter_spans, minibatch

from keras_xlnet.models import Task, XLNetTextClassifier, XLNetTokenClassifier
from keras_xlnet.preprocessing.tags import entity_types
from keras_xlnet.preset_files import adapters
from keras_xlnet.types import PathLike

if TYPE_CHECKING:
    from typing_extensions import Self


class _TaskPipe(Pipe):
    """A component with a task model, which a pipeline saves as a preset.

    Args:
        nlp: The pipeline.
        name: String, the name of the component in the pipeline.
        model: String, an adapter that comes with the package or a location as in
            `Task.from_preset`; or `None`, if the attribute `model` is set.
    """

    task_cls: Any

    # spaCy passes these by name and checks their types.
    def __init__(self, nlp: Language, name: str, model: str | None = None) -> None:
        self.name = name
        self._location = model
        self._model: Any = None

    @property
    def model(self) -> Any:
        """The model, `None` before the component first needs it.

        Reading it does not load it: before Python 3.12, spaCy reads it in some processes while it
        builds a pipeline, when the location in the config of a saved pipeline may not exist.
        """
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        if not isinstance(model, self.task_cls) or model.preprocessor is None:
            raise ValueError(
                f"`model` of the component {self.name!r} must be an {self.task_cls.__name__} with "
                f"a preprocessor. Received: {model!r}"
            )
        self._model, self._process = model, os.getpid()

    def _loaded(self):
        if self._model is None:
            self.model = self._load(self._location)
        if self._process != os.getpid():
            # Backends have threads, which a forked process does not have.
            raise ValueError(
                f"`n_process` of `nlp.pipe` must be 1: the model of the component {self.name!r} "
                "was loaded in another process. It uses all cores of the machine"
            )
        return self._model

    def _load(self, location):
        if location is None:
            raise ValueError(
                f"The component {self.name!r} has no model: pass config={{'model': ...}} to "
                "`add_pipe`, or set the attribute `model`"
            )
        is_preset = "://" in location or os.path.isdir(location)
        kind = "location" if is_preset and location not in adapters() else "adapter"
        try:
            return Task.from_preset(**{kind: location})
        except (OSError, ValueError) as error:
            raise ValueError(
                f"config={{'model': {location!r}}} of the component {self.name!r}: {error}"
            ) from error

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, none before the model is loaded: spaCy reads them before `from_disk`."""
        return () if self._model is None else tuple(self._labels())

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Yields documents after annotating them, `batch_size` at a time."""
        for docs in minibatch(stream, batch_size):
            try:
                self._annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_disk(self, path: PathLike, *, exclude: Iterable[str] = ()) -> None:
        """Saves the model to a directory, as a preset."""
        self._loaded().save_to_preset(path)

    def from_disk(self, path: PathLike, *, exclude: Iterable[str] = ()) -> "Self":
        """Loads the model that `to_disk` saved."""
        self.model = Task.from_preset(pathlib.Path(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Returns the files of `to_disk` as a zip file."""
        content = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(content, "w") as archive:
            self.to_disk(folder)
            for file in pathlib.Path(folder).rglob("*"):
                archive.write(file, file.relative_to(folder))
        return content.getvalue()

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> "Self":
        """Loads the model that `to_bytes` returned."""
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(io.BytesIO(content)).extractall(folder)
            return self.from_disk(folder)


class SpacyEntities(_TaskPipe):
    """Sets `doc.ents` to the entities that an `XLNetTokenClassifier` finds in the text.

    An entity has all tokens that it is in, also in part. Entities of earlier components stay, and
    those that overlap with them are left out, as in spaCy's `ner`.

    Example:

    >>> import spacy
    >>> import keras_xlnet.integrations.spacy_components  # Only if it is not installed.
    >>> nlp = spacy.blank("en")
    >>> component = nlp.add_pipe("keras_xlnet_ner", config={"model": "names"})
    >>> doc = nlp("Ann Smith lives in London.")
    >>> [(ent.text, ent.label_) for ent in doc.ents]
    [('Ann Smith', 'person'), ('London', 'place')]
    """

    task_cls = XLNetTokenClassifier
    scorer = staticmethod(get_ner_prf)

    def _labels(self):
        return sorted(entity_types(self._loaded().label_names) or ())

    def _annotate(self, docs):
        # `find_entities` refuses texts without words.
        docs = [doc for doc in docs if doc.text.strip()]
        found = self._loaded().find_entities([doc.text for doc in docs], verbose=0) if docs else []
        for doc, entities in zip(docs, found, strict=True):
            spans = [
                doc.char_span(one.start, one.end, label=one.type, alignment_mode="expand")
                for one in entities
            ]
            spans = [span for span in spans if not any(token.ent_type for token in span)]
            doc.ents = filter_spans([*doc.ents, *spans])


class SpacyCategories(_TaskPipe):
    """Sets `doc.cats` to the probability of each class of an `XLNetTextClassifier`.

    Example:

    >>> import spacy
    >>> import keras_xlnet.integrations.spacy_components  # Only if it is not installed.
    >>> nlp = spacy.blank("en")
    >>> component = nlp.add_pipe("keras_xlnet_textcat", config={"model": "spam"})
    >>> cats = nlp("You have won a prize! Call now to claim.").cats
    >>> max(cats, key=cats.get)
    'spam'
    """

    task_cls = XLNetTextClassifier
    scorer = staticmethod(functools.partial(Scorer.score_cats, attr="cats"))

    @property
    def cfg(self) -> dict[str, Any]:
        """The arguments that `score` passes to spaCy's scorer."""
        model = self._loaded()
        return {"multi_label": model.activation == "sigmoid", "threshold": model.threshold}

    def _labels(self):
        return self._loaded().label_names

    def _annotate(self, docs):
        found = self._loaded().classify([doc.text for doc in docs], verbose=0)
        for doc, one in zip(docs, found, strict=True):
            doc.cats.update(one.scores)


# After the classes: spaCy looks for a name in the entry points before it registers the name.
Language.factory(
    "keras_xlnet_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0},
    func=SpacyEntities,
)
Language.factory(
    "keras_xlnet_textcat",
    assigns=["doc.cats"],
    default_score_weights={"cats_score": 1.0},
    func=SpacyCategories,
)
