"""Predict and score a split of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import ensure_dev_split, fingerprint, open_splits, read_corpus, select_split
from spanwise.decoding.thresholds import Threshold
from spanwise.evaluation import Evaluation, evaluate
from spanwise.evaluation.calibration import calibration_errors
from spanwise.evaluation.typing import TypingScores, score_typing
from spanwise.files.writing import is_stream
from spanwise.formats import Ledger
from spanwise.prediction.base import BasePredictor
from spanwise.runs.provenance import Provenance

TRAINED_ON = (
    "the model was trained on this data, so the scores are too high; pass --split dev for the {} sentences that training "
    "held out, or other data"
)

KEPT_TYPES = "predictions of {} do not count: the model kept these types, but this data does not annotate them"


@dataclass(frozen=True)
class PredictedSplit:
    """A split of a corpus with gold and predicted sentences.

    ``held_out`` is the number of sentences that training held out, if the model was trained on this split.
    ``unannotated_types`` are types that the model kept (``--keep-types``), but gold does not annotate.
    """

    corpus: Corpus
    split: str
    predicted: list[Sentence]
    held_out: int | None = None
    unannotated_types: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons why scores may not be what a reader expects."""
        trained_on = () if self.held_out is None else (TRAINED_ON.format(self.held_out),)
        kept = (KEPT_TYPES.format(", ".join(self.unannotated_types)),) if self.unannotated_types else ()
        return trained_on + kept

    @property
    def gold(self) -> tuple[Sentence, ...]:
        return self.corpus[self.split]

    @property
    def context(self) -> list[Sentence]:
        """Gold sentences of all splits, for encoders that read document context."""
        return [sentence for sentences in self.corpus.splits.values() for sentence in sentences]

    @property
    def train(self) -> tuple[Sentence, ...] | None:
        """Training sentences of the corpus; None if the train split was predicted."""
        return self.corpus["train"] if self.split != "train" and "train" in self.corpus else None


def check_split(data: str | Path, split: str = "test", format: str | None = None) -> str:
    """Return the split that ``predict_split`` will read; raise an error if it cannot be read.

    Without a dev split, dev is a part of train if the model was trained on this data. Call this before
    a model is loaded: a missing file or split and an unknown format are then reported at once.
    """
    if is_stream(Path(data)):
        raise SpanwiseError(f"{data}: gold is read twice and cannot come from a pipe; pass a file")
    splits = open_splits(data, format)
    split = "train" if split == "dev" and "dev" not in splits and "train" in splits else select_split(splits, split, data)
    next(splits[split], None)  # detects the format
    return split


def predict_split(
    predictor: BasePredictor,
    data: str | Path,
    *,
    split: str = "test",
    format: str | None = None,
    ledger: Ledger | None = None,
    threshold: Threshold = 0.0,
    batch_size: int = 64,
) -> PredictedSplit:
    """Predict one split of a corpus; a file is one split.

    If the model was trained on this data and it has no dev split, ``dev`` is the part that training
    held out, and the rest is noted as training data. The model reads the data without annotations. A
    model that types given spans gets them without their types. Document context may come from any split.
    If the model kept types that this data does not annotate, gold is marked, so that they do not count.
    """
    source = check_split(data, split, format)
    corpus = read_corpus(data, format, ledger)
    held_out = None
    if (with_dev := _as_trained(corpus, predictor)) and split == "dev":
        corpus = with_dev
    else:
        split = select_split(corpus, split, data)
        if with_dev and (split == "train" or split not in with_dev):
            held_out = len(with_dev["dev"])
    if not corpus[split]:
        part = "" if split == "all" else f"{split} has "
        raise SpanwiseError(f"{data}: {part}no sentences; expected gold annotations")
    unannotated = {name: list(stream) for name, stream in open_splits(data, format, with_annotations=False).items()}
    context = [sentence for sentences in unannotated.values() for sentence in sentences]
    documents = {sentence.document for sentence in corpus[split]}  # a brat folder may hold texts without annotations
    if predictor.needs_spans:
        inputs = list(corpus[split])
    elif split in unannotated:
        inputs = [sentence for sentence in unannotated[split] if sentence.document in documents]
    else:
        inputs = _select_held_out(unannotated[source], corpus, split)
    predicted = predictor.stream(inputs, threshold=threshold, batch_size=batch_size, context=context)
    if kept := _unannotated_types(corpus[split], predictor):
        corpus = _limit_to(corpus, split, [type for type in predictor.types if type not in kept])
    return PredictedSplit(corpus, split, list(predicted), held_out, kept)


def _select_held_out(unannotated: Iterable[Sentence], corpus: Corpus, split: str) -> list[Sentence]:
    """Select the sentences of a part of a split, read without annotations.

    Of whole documents all sentences are selected, because some formats split the text differently
    without annotations; others are selected by id.
    """
    ids = {(sentence.document, sentence.id) for sentence in corpus[split]}
    shared = {sentence.document for name in corpus if name != split for sentence in corpus[name]}
    whole = {document for document, _ in ids} - shared
    return [s for s in unannotated if s.document in whole or (s.document, s.id) in ids]


def _as_trained(corpus: Corpus, predictor: BasePredictor) -> Corpus | None:
    """Return the splits that the model was trained on, if the data is its training data without a dev split; else None."""
    known = Provenance.read(predictor.folder).fingerprints.get("train") if predictor.folder else None
    if known is None or "dev" in corpus or ("train" not in corpus and len(corpus) != 1):
        return None
    with_dev, _ = ensure_dev_split(corpus)
    return with_dev if fingerprint(with_dev["train"]) == known else None


def _unannotated_types(sentences: Sequence[Sentence], predictor: BasePredictor) -> tuple[str, ...]:
    """The types that the model kept (``--keep-types``), if these sentences are of the data that does not annotate them."""
    provenance = Provenance.read(predictor.folder) if predictor.folder else Provenance()
    kept = provenance.kept_types
    return kept if kept and fingerprint(sentences) in provenance.fingerprints.values() else ()


def _limit_to(corpus: Corpus, split: str, types: Sequence[str]) -> Corpus:
    """Mark the complete sentences of a split as annotated for these types only."""
    marked = tuple(replace(s, annotated=tuple(types)) if s.annotated is None else s for s in corpus[split])
    return Corpus({**corpus.splits, split: marked}, corpus.name)


def score_model(
    predictor: BasePredictor,
    data: str | Path,
    *,
    split: str = "test",
    format: str | None = None,
    ledger: Ledger | None = None,
    train: Iterable[Sentence] | None = None,
    threshold: Threshold = 0.0,
    batch_size: int = 64,
    last_words: bool = False,
) -> Evaluation | TypingScores:
    """Score a model on one split of a corpus; ``train`` defaults to the corpus's train split."""
    result = predict_split(
        predictor, data, split=split, format=format, ledger=ledger, threshold=threshold, batch_size=batch_size
    )  # fmt: skip
    known = result.train if train is None else train
    if predictor.needs_spans:
        typing = score_typing(result.gold, result.predicted, known)
        return replace(typing, notes=(*typing.notes, *result.notes))
    evaluation = evaluate(
        result.gold, result.predicted, known, finds_relations=predictor.finds_relations, last_words=last_words
    )  # fmt: skip
    evaluation = replace(evaluation, notes=(*evaluation.notes, *result.notes))
    if predictor.scale.is_identity:
        return evaluation
    before = [predictor.scale.undo(sentence) for sentence in result.predicted]
    return replace(evaluation, calibration=calibration_errors(result.gold, before, result.predicted))
