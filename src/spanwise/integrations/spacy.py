"""spaCy component: ``nlp.add_pipe("spanwise", config={"model": PATH})``.

Words are spaCy's tokens except whitespace; sentences are spaCy's if the document has any. All
entities go to ``doc.spans["spanwise"]``, and flat ones also to ``doc.ents``. A discontinuous entity
becomes a span from its first word to its last. The ``attrs`` of the span group hold the ``scores``
of the spans, the token ranges of their ``fragments``, and ``relations`` between them (type, head,
tail, score).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from spacy.language import Language
from spacy.tokens import Span as SpacySpan
from spacy.tokens import SpanGroup
from spacy.util import filter_spans, minibatch

from spanwise.core.types import Entity, Sentence, Span
from spanwise.decoding.overlaps import overlap_filter
from spanwise.text import split_sentences

if TYPE_CHECKING:
    from spacy.tokens import Doc

DEFAULTS = {"threshold": 0.0, "spans_key": "spanwise", "ents": "keep", "batch_size": 64, "device": "auto"}


def make_spanwise(
    nlp: Language,
    name: str,
    model: str,
    threshold: float | dict[str, float],
    spans_key: str,
    ents: Literal["keep", "replace", "none"],
    batch_size: int,
    device: str,
) -> SpanwiseComponent:
    """Create the component; ``model`` is a run folder or ``hf:owner/model``.

    ``threshold`` is a score, or scores by type.

    ``ents`` controls ``doc.ents``: existing entities win over overlapping predictions ("keep"),
    predictions win ("replace"), or ``doc.ents`` is not changed ("none").
    """
    return SpanwiseComponent(model, threshold, spans_key, ents, batch_size, device)


Language.factory("spanwise", default_config=DEFAULTS, assigns=["doc.spans", "doc.ents"], func=make_spanwise)


class SpanwiseComponent:
    """Pipeline component that predicts entities; ``pipe`` batches the sentences of many documents."""

    def __init__(
        self, model: str, threshold: float | dict[str, float], spans_key: str, ents: str, batch_size: int, device: str
    ) -> None:  # fmt: skip
        # spaCy imports this module for every pipeline, so heavy imports are deferred.
        from spanwise.prediction.load import load

        self.predictor = load(model, device)
        self.threshold, self.spans_key, self.ents, self.batch_size = threshold, spans_key, ents, batch_size

    @property
    def labels(self) -> tuple[str, ...]:
        return self.predictor.types

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128, **unused: Any) -> Iterator[Doc]:
        for docs in minibatch(stream, batch_size):
            tokens = [list(_sentences(doc)) for doc in docs]
            words = (_sentence(doc, indices, f"{n}") for n, doc in enumerate(docs) for indices in tokens[n])
            predicted = self.predictor.stream(words, threshold=self.threshold, batch_size=self.batch_size)
            for doc, sentences in zip(docs, tokens, strict=True):
                self._annotate(doc, [(next(predicted), indices) for indices in sentences])
                yield doc

    def _annotate(self, doc: Doc, predicted: Sequence[tuple[Sentence, Sequence[int]]]) -> None:
        """Add the predictions of the sentences, each with the token indices of its words."""
        spans: list[SpacySpan] = []
        scores: list[float | None] = []
        fragments: list[list[list[int]]] = []
        relations: list[list[Any]] = []
        for sentence, tokens in predicted:
            offset = len(spans)
            relations += [[r.type, offset + r.head, offset + r.tail, r.score] for r in sentence.relations]
            for entity in sentence.entities:
                ranges = [_tokens(fragment, tokens) for fragment in entity.fragments]
                spans.append(SpacySpan(doc, ranges[0].start, ranges[-1].end, label=entity.type))
                scores.append(entity.score)
                fragments.append([list(tokens_range) for tokens_range in ranges])
        attrs = {"scores": scores, "fragments": fragments, "relations": relations}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans, attrs=attrs)
        if self.ents != "none":
            flat = [_span(doc, entity, tokens) for sentence, tokens in predicted for entity in _flat(sentence).entities]
            existing = list(doc.ents)
            preferred, others = (existing, flat) if self.ents == "keep" else (flat, existing)
            covered = {token.i for span in preferred for token in span}
            compatible = [span for span in others if not covered.intersection(range(span.start, span.end))]
            doc.ents = filter_spans([*preferred, *compatible])


def _flat(sentence: Sentence) -> Sentence:
    """The contiguous, non-overlapping entities, which ``doc.ents`` can hold."""
    contiguous = tuple(entity for entity in sentence.entities if not entity.is_discontinuous)
    return overlap_filter("flat")(Sentence(sentence.id, sentence.words, contiguous))


def _span(doc: Doc, entity: Entity, tokens: Sequence[int]) -> SpacySpan:
    return SpacySpan(doc, *_tokens(entity.range, tokens), label=entity.type)


def _tokens(words: Span, tokens: Sequence[int]) -> Span:
    return Span(tokens[words.start], tokens[words.end - 1] + 1)


def _sentences(doc: Doc) -> Iterator[list[int]]:
    """Yield the non-whitespace tokens of each sentence, split by rule if the document has none."""
    if doc.has_annotation("SENT_START"):
        ranges = [(sentence.start, sentence.end) for sentence in doc.sents]
    else:
        starts = [token.idx for token in doc]
        long_tokens = [Span(token.idx, token.idx + len(token)) for token in doc if len(token) > 1]
        first_tokens = [bisect_left(starts, start) for start, _ in split_sentences(doc.text, long_tokens)]
        ranges = list(pairwise([*first_tokens, len(doc)]))
    for first, last in ranges:
        if tokens := [index for index in range(first, last) if not doc[index].is_space]:
            yield tokens


def _sentence(doc: Doc, tokens: Sequence[int], document: str) -> Sentence:
    words = tuple(doc[index].text for index in tokens)
    return Sentence(f"{document}-{tokens[0]}", words, document=document, position=tokens[0])
