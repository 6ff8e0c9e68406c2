"""A model as a component of spaCy's pipelines: ``nlp.add_pipe("spanwise", config={"model": PATH})``.

The words are spaCy's tokens (without those of white space), and so are the sentences where the document has any. All entities
are put into ``doc.spans["spanwise"]`` and the flat ones of them into ``doc.ents``. An entity of several fragments becomes a
span from its first word to its last; the group's ``attrs`` have the ``scores`` of its spans, the tokens of their
``fragments``, and ``relations`` between them (type, head, tail, score).
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
from spanwise.decoding.overlaps import chosen
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
    """``model`` is a run folder or a name on the hub, ``threshold`` one score or one for each type by name.

    ``ents`` says what becomes of entities that the document has: they stay, and what overlaps them is left out ("keep"); they
    give way to what overlaps them ("replace"); or ``doc.ents`` is not touched at all ("none").
    """
    return SpanwiseComponent(model, threshold, spans_key, ents, batch_size, device)


Language.factory("spanwise", default_config=DEFAULTS, assigns=["doc.spans", "doc.ents"], func=make_spanwise)


class SpanwiseComponent:
    """Finds entities in documents. ``pipe`` takes many and reads their sentences in common batches."""

    def __init__(
        self, model: str, threshold: float | dict[str, float], spans_key: str, ents: str, batch_size: int, device: str
    ) -> None:  # fmt: skip
        # Imported here, for spaCy imports this file whenever it makes a pipeline, whatever its components.
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
            words = (_sentence(doc, own, f"{n}") for n, doc in enumerate(docs) for own in tokens[n])
            found = self.predictor.stream(words, threshold=self.threshold, batch_size=self.batch_size)
            for doc, sentences in zip(docs, tokens, strict=True):
                self._set(doc, [(next(found), own) for own in sentences])
                yield doc

    def _set(self, doc: Doc, found: Sequence[tuple[Sentence, Sequence[int]]]) -> None:
        """What was found in the sentences of a document, whose words are these tokens."""
        spans: list[SpacySpan] = []
        scores: list[float | None] = []
        fragments: list[list[list[int]]] = []
        relations: list[list[Any]] = []
        for sentence, tokens in found:
            before = len(spans)
            relations += [[r.type, before + r.head, before + r.tail, r.score] for r in sentence.relations]
            for entity in sentence.entities:
                places = [_tokens(fragment, tokens) for fragment in entity.fragments]
                spans.append(SpacySpan(doc, places[0].start, places[-1].end, label=entity.type))
                scores.append(entity.score)
                fragments.append([list(place) for place in places])
        attrs = {"scores": scores, "fragments": fragments, "relations": relations}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=spans, attrs=attrs)
        if self.ents != "none":
            flat = [_span(doc, entity, tokens) for sentence, tokens in found for entity in _flat(sentence).entities]
            old = list(doc.ents)
            first, second = (old, flat) if self.ents == "keep" else (flat, old)
            taken = {token.i for span in first for token in span}
            doc.ents = filter_spans([*first, *(span for span in second if not taken.intersection(range(span.start, span.end)))])


def _flat(sentence: Sentence) -> Sentence:
    """With contiguous entities alone, none of which overlaps another: what ``doc.ents`` can hold."""
    whole = tuple(entity for entity in sentence.entities if not entity.is_discontinuous)
    return chosen("flat")(Sentence(sentence.id, sentence.words, whole))


def _span(doc: Doc, entity: Entity, tokens: Sequence[int]) -> SpacySpan:
    return SpacySpan(doc, *_tokens(entity.range, tokens), label=entity.type)


def _tokens(words: Span, tokens: Sequence[int]) -> Span:
    return Span(tokens[words.start], tokens[words.end - 1] + 1)


def _sentences(doc: Doc) -> Iterator[list[int]]:
    """The tokens of each sentence that are no white space; sentences are split by rule where the document has none."""
    if doc.has_annotation("SENT_START"):
        ranges = [(sentence.start, sentence.end) for sentence in doc.sents]
    else:
        starts = [token.idx for token in doc]
        wide = [Span(token.idx, token.idx + len(token)) for token in doc if len(token) > 1]
        ranges = list(pairwise([*(bisect_left(starts, start) for start, _ in split_sentences(doc.text, wide)), len(doc)]))
    for first, last in ranges:
        if tokens := [number for number in range(first, last) if not doc[number].is_space]:
            yield tokens


def _sentence(doc: Doc, tokens: Sequence[int], document: str) -> Sentence:
    words = tuple(doc[number].text for number in tokens)
    return Sentence(f"{document}-{tokens[0]}", words, document=document, position=tokens[0])
