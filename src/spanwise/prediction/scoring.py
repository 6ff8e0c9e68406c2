"""A trained model scored on data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import chosen_split, open_splits, read_corpus
from spanwise.evaluation import Evaluation, evaluate
from spanwise.evaluation.typing import Typing, typing_scores
from spanwise.files.writing import is_stream
from spanwise.formats import Ledger
from spanwise.prediction.base import BasePredictor


@dataclass(frozen=True)
class PredictedSplit:
    """A split as gold has it and as a model predicts it, with the corpus it is of."""

    corpus: Corpus
    split: str
    predicted: list[Sentence]

    @property
    def gold(self) -> tuple[Sentence, ...]:
        return self.corpus[self.split]

    @property
    def context(self) -> list[Sentence]:
        """What a model may read beside gold's sentences: those of all splits, cut as gold is."""
        return [sentence for sentences in self.corpus.splits.values() for sentence in sentences]

    @property
    def train(self) -> tuple[Sentence, ...] | None:
        """The corpus's own training sentences, unless they are what was predicted."""
        return self.corpus["train"] if self.split != "train" and "train" in self.corpus else None


def predict_split(
    predictor: BasePredictor,
    data: str | Path,
    *,
    split: str = "test",
    format: str | None = None,
    ledger: Ledger | None = None,
    threshold: float = 0.0,
    batch_size: int = 64,
) -> PredictedSplit:
    """What a model predicts for one split of data (a file is one split).

    The model reads the data as if nobody had annotated it, but for a model of given spans, which reads these without their
    types. Its document context may come from any split.
    """
    if is_stream(Path(data)):
        raise SpanwiseError(f"{data}: gold is read twice, with and without its entities, and a pipe cannot be; give a file")
    corpus = read_corpus(data, format, ledger)
    split = chosen_split(corpus, split, data)
    if not corpus[split]:
        raise SpanwiseError(f"{data}: {split} has no sentences, so nothing can be scored on it")
    bare = {name: list(stream) for name, stream in open_splits(data, format, annotated=False).items()}
    everything = [sentence for sentences in bare.values() for sentence in sentences]
    documents = {sentence.document for sentence in corpus[split]}  # a brat folder may have texts without annotations besides
    asked = corpus[split] if predictor.needs_spans else [one for one in bare[split] if one.document in documents]
    found = predictor.stream(asked, threshold=threshold, batch_size=batch_size, context=everything)
    return PredictedSplit(corpus, split, list(found))


def score_model(
    predictor: BasePredictor,
    data: str | Path,
    *,
    split: str = "test",
    format: str | None = None,
    ledger: Ledger | None = None,
    train: Iterable[Sentence] | None = None,
    threshold: float = 0.0,
    batch_size: int = 64,
    last_words: bool = False,
) -> Evaluation | Typing:
    """The scores of a model on one split of data (see ``predict_split``); ``train`` defaults to the data's own training
    split.
    """
    done = predict_split(
        predictor, data, split=split, format=format, ledger=ledger, threshold=threshold, batch_size=batch_size
    )  # fmt: skip
    known = done.train if train is None else train
    if predictor.needs_spans:
        return typing_scores(done.gold, done.predicted, known)
    return evaluate(done.gold, done.predicted, known, finds_relations=predictor.finds_relations, last_words=last_words)
