"""DyGIE++'s JSON lines (SciERC): a document a line, its sentences as word lists, spans counted in words of the document.

``{"doc_key": "d1", "sentences": [[…], …], "ner": [[[2, 4, "X"]], …], "relations": [[[2, 4, 7, 7, "R"]], …]}`` with inclusive
ends. Scores may follow a type. Other keys of a document (clusters, events, weight, predictions …) are kept on its first
sentence. A relation names spans, not entities: it is given to the first entity on each, in whichever sentence that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Extra, Link, Relation, Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import json_records, validate_record
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.documents import by_document, keys_of
from spanwise.formats.shared.records import Id, own_id, rest, with_rest, write_lines
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    doc_key: NotRequired[Id | None]
    sentences: list[list[str]]
    ner: NotRequired[list[list[list[Any]]] | None]
    relations: NotRequired[list[list[list[Any]]] | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SCORES = "scores"  # where the numbers behind a type are kept


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    for number, (line, raw) in enumerate(json_records(path)):
        record = validate_record(_SHAPE, raw, path, line)
        try:
            found = _sentences(record, default_id(path, number), ledger)
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None
        yield from found


def _sentences(record: dict[str, Any], default_id: str, ledger: Ledger) -> list[Sentence]:
    document, words = own_id(record.get("doc_key"), default_id), record["sentences"]
    ledger.lose("documents", "without sentences", int(not words))
    for layer in ("ner", "relations"):
        if record.get(layer) is not None and len(record[layer]) != len(words):
            raise ValueError(f"{layer} has {len(record[layer])} lists for {len(words)} sentences")
    ledger.note("documents without ner, not annotated", int(record.get("ner") is None))
    ranges = [Span(*ends) for ends in pairwise(accumulate(map(len, words), initial=0))]
    entities = [
        [_entity(item, position, ranges[position]) for item in items] for position, items in enumerate(record.get("ner") or ())
    ]
    relations, links = _relations(record, entities, ranges, ledger)
    return [
        Sentence(
            id=document if len(words) == 1 else f"{document}-{position}",
            words=tuple(words[position]),
            entities=tuple(entities[position]) if entities else (),
            relations=tuple(relations[position]),
            links=tuple(links[position]),
            document=document,
            position=position,
            extra=rest(record, _KEYS) if position == 0 else None,
        )
        for position in range(len(words))
    ]


def _entity(item: list[Any], position: int, sentence: Span) -> Entity:
    (span,), kind, scores = _parts(item, 1)
    if not sentence.contains(span):
        place = f"the words {sentence.start} to {sentence.end - 1} of the document" if sentence.width else "empty"
        raise ValueError(f"ner: [{span.start}, {span.end - 1}] does not lie in sentence {position}, which is {place}")
    return Entity(kind, (Span(span.start - sentence.start, span.end - sentence.start),), *_kept(scores))


def _parts(item: list[Any], spans: int) -> tuple[list[Span], str, list[Any]]:
    """The spans (half-open), the type and what follows it."""
    numbers, kind = item[: 2 * spans], item[2 * spans : 2 * spans + 1]
    if not kind or not isinstance(kind[0], str) or any(type(number) is not int for number in numbers):
        expected = "a start and an end, then a type" if spans == 1 else "the start and end of two spans, then a type"
        raise ValueError(f"found {repr(item)[:60]}, expected {expected}")
    found = [Span(start, end + 1) for start, end in zip(numbers[::2], numbers[1::2], strict=True)]
    if any(span.start < 0 or span.width < 1 for span in found):
        raise ValueError(f"found {repr(item)[:60]}: a span's start must not exceed its end, which is inclusive")
    return found, kind[0], item[2 * spans + 1 :]


def _kept(scores: list[Any]) -> tuple[float | None, Extra | None]:
    """The score (DyGIE++ writes a logit, then a probability) and what is needed to write all of them again."""
    last: Any = scores[-1] if scores else None
    is_score = type(last) in (int, float) and 0 <= last <= 1
    return float(last) if is_score else None, {_SCORES: scores} if scores else None


def _relations(
    record: dict[str, Any], entities: list[list[Entity]], ranges: list[Span], ledger: Ledger
) -> tuple[list[list[Relation]], list[list[Link]]]:
    places: dict[Span, list[tuple[int, int]]] = {}
    for position, members in enumerate(entities):
        base = ranges[position].start
        for number, entity in enumerate(members):
            places.setdefault(Span(base + entity.range.start, base + entity.range.end), []).append((position, number))
    relations: list[list[Relation]] = [[] for _ in ranges]
    links: list[list[Link]] = [[] for _ in ranges]
    for item in (item for items in record.get("relations") or () for item in items):
        spans, kind, scores = _parts(item, 2)
        ends = [places.get(span, []) for span in spans]
        if not all(ends):
            ledger.lose("relations", "whose argument is no entity of the ner layer")
            continue
        ledger.note("relations of a span with several entities, given to the first", int(max(map(len, ends)) > 1))
        (home, head), (there, tail) = (found[0] for found in ends)
        score, extra = _kept(scores)
        if home == there:
            relations[home].append(Relation(kind, head, tail, score, extra))
        else:
            links[home].append(Link(kind, head, there, tail, score, extra))
    return relations, links


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_lines((_record(group, ledger) for group in by_document(sentences)), path)


def _record(group: list[Sentence], ledger: Ledger) -> dict[str, Any]:
    bases = list(accumulate((len(sentence.words) for sentence in group), initial=0))
    places = {sentence.position: place for place, sentence in enumerate(group)}
    # What a reader will find on each span, by sentence: the first entity there.
    first: list[dict[Span, Entity]] = [{} for _ in group]
    ner: list[list[list[Any]]] = [[] for _ in group]
    relations: list[list[list[Any]]] = [[] for _ in group]
    for place, sentence in enumerate(group):
        for entity in sentence.entities:
            if entity.is_discontinuous:
                ledger.lose("entities", "discontinuous")
                continue
            first[place].setdefault(entity.range, entity)
            ner[place].append([*_span(entity, bases[place]), entity.type, *_scores(entity.score, entity.extra)])

    def add(kind: str, ends: list[tuple[int, int]], score: float | None, extra: Extra | None) -> None:
        spans: list[int] = []
        for place, number in ends:
            if not (0 <= place < len(group) and 0 <= number < len(group[place].entities)):
                return ledger.lose("relations", "whose other entity is not in the data")
            entity = group[place].entities[number]
            if entity.is_discontinuous:
                return ledger.lose("relations", "of a discontinuous entity")
            if first[place][entity.range] != entity:
                return ledger.lose("relations", "of the second entity on one span")
            spans += _span(entity, bases[place])
        return relations[ends[0][0]].append([*spans, kind, *_scores(score, extra)])

    for place, sentence in enumerate(group):
        for relation in sentence.relations:
            add(relation.type, [(place, relation.head), (place, relation.tail)], relation.score, relation.extra)
        for link in sentence.links:
            add(link.type, [(place, link.head), (places.get(link.position, -1), link.tail)], link.score, link.extra)
    record = {
        "doc_key": group[0].id if group[0].document is None else group[0].document,
        "sentences": [list(sentence.words) for sentence in group],
        "ner": ner,
        "relations": relations,
    }
    return with_rest(record, keys_of(group, ledger), _KEYS, ledger)


def _span(entity: Entity, base: int) -> list[int]:
    return [base + entity.range.start, base + entity.range.end - 1]


def _scores(score: float | None, extra: Extra | None) -> list[Any]:
    kept = (extra or {}).get(_SCORES)
    return kept if isinstance(kept, list) else [] if score is None else [score]


def sniff(sample: Sample) -> bool:
    if not sample.is_whole and not sample.records:  # the first document alone may be larger than the sample
        return sample.text.startswith("{") and '"doc_key":' in sample.text and '"sentences":' in sample.text
    return (
        sample.have("sentences")
        and any("doc_key" in record or "ner" in record for record in sample.dicts)
        and all(isinstance(sentence, list) for sentence in sample.items("sentences"))
    )


FORMAT = Format(
    name="dygie",
    summary="DyGIE++'s JSON lines (SciERC): documents, spans with inclusive ends, relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=frozenset(("nested", "crossing", "several types", "relations", "links")),
    keeps=frozenset(("documents", "scores", "relation scores", "keys")),
    own_keys=frozenset(("scores",)),
)
