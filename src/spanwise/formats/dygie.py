"""JSON lines of DyGIE++ (SciERC): one document per line, with word offsets in the document.

``{"doc_key": "d1", "sentences": [[…], …], "ner": [[[2, 4, "X"]], …], "relations": [[[2, 4, 7, 7,
"R"]], …]}`` with inclusive ends. Scores may follow a type. Other keys of a document (clusters, events,
weight, predictions …) are stored on its first sentence. Relations refer to spans; each end is assigned
to the first entity on its span, in any sentence of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Extra, Link, Relation, Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records, validate_record
from spanwise.formats.base import Format, Ledger, fill_empty_words
from spanwise.formats.shared.documents import group_by_document, merge_extra
from spanwise.formats.shared.records import Id, add_extra, id_or_default, unknown_keys, write_json_lines
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    doc_key: NotRequired[Id | None]
    sentences: list[list[str]]
    ner: NotRequired[list[list[list[Any]]] | None]
    relations: NotRequired[list[list[list[Any]]] | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SCORES = "scores"  # the extra key of the numbers after a type


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    for number, (line, raw) in enumerate(read_json_records(path)):
        record = validate_record(_SHAPE, raw, path, line)
        try:
            sentences = _to_sentences(record, default_id(path, number), ledger)
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None
        yield from sentences


def _to_sentences(record: dict[str, Any], default_id: str, ledger: Ledger) -> list[Sentence]:
    document, words = id_or_default(record.get("doc_key"), default_id), record["sentences"]
    ledger.lose("documents", "without sentences", int(not words))
    for layer in ("ner", "relations"):
        if record.get(layer) is not None and len(record[layer]) != len(words):
            raise ValueError(f"{layer} has {counted(len(record[layer]), 'list')} for {counted(len(words), 'sentence')}")
    ledger.note("documents without ner annotations", int(record.get("ner") is None))
    ranges = [Span(*ends) for ends in pairwise(accumulate(map(len, words), initial=0))]
    entities = [
        [_to_entity(item, position, ranges[position]) for item in items]
        for position, items in enumerate(record.get("ner") or ())
    ]
    relations, links = _relations(record, entities, ranges, ledger)
    return [
        Sentence(
            id=document if len(words) == 1 else f"{document}-{position}",
            words=fill_empty_words(words[position], ledger),
            entities=tuple(entities[position]) if entities else (),
            relations=tuple(relations[position]),
            links=tuple(links[position]),
            document=document,
            position=position,
            extra=unknown_keys(record, _KEYS) if position == 0 else None,
        )
        for position in range(len(words))
    ]


def _to_entity(item: list[Any], position: int, sentence: Span) -> Entity:
    (span,), kind, scores = _parse(item, 1)
    if not sentence.contains(span):
        covers = f"covers words {sentence.start} to {sentence.end - 1} of the document" if sentence.width else "is empty"
        raise ValueError(f"ner: [{span.start}, {span.end - 1}] is outside sentence {position}, which {covers}")
    return Entity(kind, (Span(span.start - sentence.start, span.end - sentence.start),), *_parse_scores(scores))


def _parse(item: list[Any], count: int) -> tuple[list[Span], str, list[Any]]:
    """Return the ``count`` spans of an item (half-open), its type and the values after the type."""
    numbers, kind = item[: 2 * count], item[2 * count : 2 * count + 1]
    if not kind or not isinstance(kind[0], str) or any(type(number) is not int for number in numbers):
        expected = "a start and an end, then a type" if count == 1 else "the start and end of two spans, then a type"
        raise ValueError(f"found {repr(item)[:60]}, expected {expected}")
    spans = [Span(start, end + 1) for start, end in zip(numbers[::2], numbers[1::2], strict=True)]
    if any(span.start < 0 or span.width < 1 for span in spans):
        raise ValueError(f"found {repr(item)[:60]}: the start of a span must not exceed its inclusive end")
    return spans, kind[0], item[2 * count + 1 :]


def _parse_scores(scores: list[Any]) -> tuple[float | None, Extra | None]:
    """Return the score (DyGIE++ writes a logit, then a probability), and all scores as extra data."""
    last: Any = scores[-1] if scores else None
    is_score = type(last) in (int, float) and 0 <= last <= 1
    return float(last) if is_score else None, {_SCORES: scores} if scores else None


def _relations(
    record: dict[str, Any], entities: list[list[Entity]], ranges: list[Span], ledger: Ledger
) -> tuple[list[list[Relation]], list[list[Link]]]:
    locations: dict[Span, list[tuple[int, int]]] = {}  # sentence and entity indices of each span
    for position, sentence_entities in enumerate(entities):
        base = ranges[position].start
        for index, entity in enumerate(sentence_entities):
            span = Span(base + entity.range.start, base + entity.range.end)
            locations.setdefault(span, []).append((position, index))
    relations: list[list[Relation]] = [[] for _ in ranges]
    links: list[list[Link]] = [[] for _ in ranges]
    for item in (item for items in record.get("relations") or () for item in items):
        spans, kind, scores = _parse(item, 2)
        ends = [locations.get(span, []) for span in spans]
        if not all(ends):
            ledger.lose("relations", "with an argument that is not in the ner layer")
            continue
        ledger.note("relations of a span with several entities, assigned to the first", int(max(map(len, ends)) > 1))
        (position, head), (tail_position, tail) = (candidates[0] for candidates in ends)
        score, extra = _parse_scores(scores)
        if position == tail_position:
            relations[position].append(Relation(kind, head, tail, score, extra))
        else:
            links[position].append(Link(kind, head, tail_position, tail, score, extra))
    return relations, links


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_lines((_to_record(group, ledger) for group in group_by_document(sentences)), path)


def _to_record(group: list[Sentence], ledger: Ledger) -> dict[str, Any]:
    bases = list(accumulate((len(sentence.words) for sentence in group), initial=0))
    indices = {sentence.position: index for index, sentence in enumerate(group)}
    # The first entity on each span, which relations refer to, by sentence.
    first: list[dict[Span, Entity]] = [{} for _ in group]
    ner: list[list[list[Any]]] = [[] for _ in group]
    relations: list[list[list[Any]]] = [[] for _ in group]
    for index, sentence in enumerate(group):
        for entity in sentence.entities:
            if entity.is_discontinuous:
                ledger.lose("entities", "discontinuous")
                continue
            first[index].setdefault(entity.range, entity)
            ner[index].append([*_document_span(entity, bases[index]), entity.type, *_all_scores(entity.score, entity.extra)])

    def add(kind: str, ends: list[tuple[int, int]], score: float | None, extra: Extra | None) -> None:
        spans: list[int] = []
        for index, number in ends:
            if not (0 <= index < len(group) and 0 <= number < len(group[index].entities)):
                return ledger.lose("relations", "with an entity that is not in the data")
            entity = group[index].entities[number]
            if entity.is_discontinuous:
                return ledger.lose("relations", "with a discontinuous entity")
            if first[index][entity.range] != entity:
                return ledger.lose("relations", "with the second entity on a span")
            spans += _document_span(entity, bases[index])
        return relations[ends[0][0]].append([*spans, kind, *_all_scores(score, extra)])

    for index, sentence in enumerate(group):
        for relation in sentence.relations:
            add(relation.type, [(index, relation.head), (index, relation.tail)], relation.score, relation.extra)
        for link in sentence.links:
            add(link.type, [(index, link.head), (indices.get(link.position, -1), link.tail)], link.score, link.extra)
    record = {
        "doc_key": group[0].id if group[0].document is None else group[0].document,
        "sentences": [list(sentence.words) for sentence in group],
        "ner": ner,
        "relations": relations,
    }
    return add_extra(record, merge_extra(group, ledger), _KEYS, ledger)


def _document_span(entity: Entity, base: int) -> list[int]:
    return [base + entity.range.start, base + entity.range.end - 1]


def _all_scores(score: float | None, extra: Extra | None) -> list[Any]:
    scores = (extra or {}).get(_SCORES)
    return scores if isinstance(scores, list) else [] if score is None else [score]


def sniff(sample: Sample) -> bool:
    if not sample.is_complete and not sample.records:  # the first document may be larger than the sample
        return sample.text.startswith("{") and '"doc_key":' in sample.text and '"sentences":' in sample.text
    return (
        sample.all_have("sentences")
        and any("doc_key" in record or "ner" in record for record in sample.dicts)
        and all(isinstance(sentence, list) for sentence in sample.list_items("sentences"))
    )


FORMAT = Format(
    name="dygie",
    summary="JSON lines of DyGIE++ (SciERC): documents, spans with inclusive ends, relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=frozenset(("nested", "crossing", "several types", "relations", "links")),
    metadata=frozenset(("documents", "scores", "relation scores", "keys")),
    extra_keys=frozenset(("scores",)),
)
