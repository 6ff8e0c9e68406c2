"""A trained model scored on data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanwise.corpora import open_splits, read_corpus
from spanwise.errors import SpanwiseError
from spanwise.evaluation import Evaluation, evaluate
from spanwise.evaluation.typing import Typing, typing_scores
from spanwise.formats import Ledger
from spanwise.inference.load import Predictor
from spanwise.inference.predictor import predict
from spanwise.types import Sentence


def score_model(
    predictor: Predictor,
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
    """The scores of a model on one split of data (a file is one split).

    The model reads the data as if nobody had annotated it, but for a model of given spans, which reads these without their
    types. Its document context may come from any split. ``train`` defaults to the data's own training split.
    """
    corpus = read_corpus(data, format, ledger)
    if split not in corpus and len(corpus.splits) == 1:
        split = next(iter(corpus))
    if split not in corpus:
        raise SpanwiseError(f"{data}: has no {split} split, only {', '.join(corpus)}")
    bare = {name: list(stream) for name, stream in open_splits(data, format, annotated=False).items()}
    everything = [sentence for sentences in bare.values() for sentence in sentences]
    asked = corpus[split] if predictor.model.needs_spans else bare[split]
    found = predict(predictor.model, asked, threshold=threshold, batch_size=batch_size, context=everything)
    if train is None and split != "train" and "train" in corpus:
        train = corpus["train"]
    if predictor.model.needs_spans:
        return typing_scores(corpus[split], found, train)
    return evaluate(
        corpus[split], found, train, finds_relations=predictor.model.head.reader.finds_relations, last_words=last_words
    )
