"""The ADE corpus: ``PMID|sentence|effect|start|end|drug|start|end``, one line per relation.

``DRUG-AE.rel`` relates adverse effects to drugs: the types are Adverse-Effect and Drug, and the relation
Adverse-Effect goes from the effect to the drug. ``DRUG-DOSE.rel`` has a dose instead of the effect (see
the README of the corpus): types Dose and Drug, relation Dose. ``kind=dose`` or the file name selects it,
because the lines look the same.

Offsets count from the start of the document, but the file has only its sentences. The start of a
sentence is therefore found by vote: each occurrence of a mention in the sentence proposes one, and the
most frequent proposal wins. It also decides which occurrence of each mention is meant. Consecutive
lines with the same PMID and sentence are one sentence.

The writer counts offsets from the start of the sentence, so the reader finds the start 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path

from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Sentence, Span
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.shared.documents import Document, Mention, MentionRelation
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences

# The sentence may contain a bar, so the columns after it are matched from the end.
_ROW = re.compile(r"([^|]+)\|(.+)" + r"\|([^|]+)\|([0-9]{1,9})\|([0-9]{1,9})" * 2)
_HEADS = {"effect": "Adverse-Effect", "dose": "Dose"}
_DRUG = "Drug"


@dataclass(frozen=True, slots=True)
class _Mention:
    """A mention of a line, with its offset in the document."""

    type: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    document: str
    sentence: str
    head: _Mention
    drug: _Mention


def read(path: Path, ledger: Ledger, /, *, kind: str | None = None, with_annotations: bool = True) -> Iterator[Sentence]:
    """Read sentences. ``kind`` is "effect" or "dose" (default for files named DRUG-DOSE…)."""
    head_type = _HEADS[kind or ("dose" if path.name.upper().startswith("DRUG-DOSE") else "effect")]
    positions: Counter[str] = Counter()
    row_ledger = ledger if with_annotations else Ledger()
    for (document, text), group in groupby(
        _read_rows(path, head_type, row_ledger), key=lambda row: (row.document, row.sentence)
    ):
        rows = list(group)
        position = positions[document]
        positions[document] += 1
        whole = _to_document(rows, text, ledger) if with_annotations else Document(document, text)
        for sentence in to_sentences(whole, path, ledger, line=rows[0].line, split=False):
            # Sentences are in the order of the file, not of the document.
            yield replace(sentence, id=f"{document}-{position}", document=document, position=position, start=None)


def _read_rows(path: Path, head_type: str, ledger: Ledger) -> Iterator[_Row]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        match = _ROW.fullmatch(line)
        if not match or not match[2].strip():
            raise FormatError(path, number, "expected PMID|sentence|effect|start|end|drug|start|end with numeric start and end")
        document, sentence, effect, start, end, drug, drug_start, drug_end = match.groups()
        wrong = (int(end) - int(start) != len(effect)) + (int(drug_end) - int(drug_start) != len(drug))
        ledger.note("mentions whose offsets do not match their length", wrong)
        head_mention = _Mention(head_type, effect, int(start))
        yield _Row(number, document, sentence, head_mention, _Mention(_DRUG, drug, int(drug_start)))


def _to_document(rows: list[_Row], text: str, ledger: Ledger) -> Document:
    spans = _align({mention: None for row in rows for mention in (row.head, row.drug)}, text, ledger)
    document = Document(rows[0].document, text)
    ids: dict[tuple[str, Span], str] = {}
    relations: dict[tuple[str, str], MentionRelation] = {}
    for row in rows:
        ends = []
        for mention in (row.head, row.drug):
            span = spans.get(mention)
            if span is not None:
                id = ids.setdefault((mention.type, span), f"T{len(ids) + 1}")
                if len(ids) > len(document.mentions):
                    document.mentions.append(Mention(id, mention.type, (span,), line=row.line))
                ends.append(id)
        if len(ends) < 2:
            ledger.lose("relations", "with a mention that is not in the sentence")
            continue
        head, tail = ends
        ledger.note("duplicate relations, merged", int((head, tail) in relations))
        relations[head, tail] = MentionRelation(row.head.type, head, tail, line=row.line)
    document.relations = list(relations.values())
    return document


def _align(mentions: Iterable[_Mention], text: str, ledger: Ledger) -> dict[_Mention, Span]:
    """Return the characters of each mention that occurs in the sentence."""
    occurrences = {mention: _find_occurrences(mention.text, text, ledger) for mention in mentions}
    votes = Counter(m.offset - start for m, starts in occurrences.items() for start in starts if m.offset >= start)
    # Ties: first 0 (offsets count from the sentence), then the start that selects the leftmost occurrences.
    sentence_start = max(votes, key=lambda start: (votes[start], start == 0, start), default=0)
    if sentence_start and sum(count == votes[sentence_start] for count in votes.values()) > 1:
        ledger.note("sentences whose mentions fit in several ways, aligned to the leftmost")
    spans: dict[_Mention, Span] = {}
    for mention, starts in occurrences.items():
        if not starts:
            ledger.lose("entities", "not in their sentence")
            continue
        offset = mention.offset - sentence_start
        start = min(starts, key=lambda start: abs(offset - start))
        ledger.note("mentions whose offset does not match, placed at the nearest occurrence", int(start != offset))
        spans[mention] = Span(start, start + len(mention.text))
    return spans


def _find_occurrences(mention: str, text: str, ledger: Ledger) -> list[int]:
    """Return the starts of a mention in a text; case is ignored only if there is no exact match."""
    starts: list[int] = []
    start = text.find(mention)
    while start >= 0:
        starts.append(start)
        start = text.find(mention, start + 1)
    if not starts:
        starts = [match.start() for match in re.finditer(f"(?={re.escape(mention)})", text, re.IGNORECASE)]
        ledger.note("mentions that differ from their sentence in case", int(bool(starts)))
    return starts


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, kind: str = "effect") -> None:
    """Write sentences. ``kind`` selects the two types and the relation, as in ``read``."""
    head_type = _HEADS[kind]
    previous = None
    with open_output(path) as file:
        for original in sentences:
            rejection_reason = partial(_rejection_reason, sentence=original, head_type=head_type)
            sentence = restrict(original, {"nested", "relations"}, ledger, rejection_reason)
            document = sentence.document or sentence.id
            id = re.sub(r"[|\r\n\ufeff]", "_", document).strip() or "_"
            ledger.note("documents renamed because their id cannot be a column", int(id != document))
            text = re.sub(r"[\r\n]", " ", sentence.text)
            pairs = _related_pairs(sentence, head_type, ledger)
            if pairs and (id, text) == previous:
                ledger.lose("sentences", "identical to the previous one")
                ledger.lose("entities", "in a dropped sentence", len(set(chain.from_iterable(pairs))))
                ledger.lose("relations", "in a dropped sentence", len(pairs))
            elif pairs:
                previous = (id, text)
                file.writelines(f"{id}|{text}|{_to_columns(pair, sentence, text)}\n" for pair in pairs)
            else:
                ledger.lose("sentences", "without a relation of this kind")


def _rejection_reason(entity: Entity, sentence: Sentence, head_type: str) -> str | None:
    if entity.type not in (head_type, _DRUG):
        return f"of a type other than {head_type} and {_DRUG}"
    text = sentence.text_of(entity)
    if not text.strip():
        return "that are only whitespace"
    return "with | in their text" if "|" in text else None


def _related_pairs(sentence: Sentence, head_type: str, ledger: Ledger) -> list[tuple[Entity, Entity]]:
    """Return the entities of each relation; entities without a relation count as lost."""
    pairs: dict[tuple[Entity, Entity], None] = {}
    for relation in sentence.relations:
        pair = sentence.entities[relation.head], sentence.entities[relation.tail]
        if relation.type != head_type or (pair[0].type, pair[1].type) != (head_type, _DRUG):
            ledger.lose("relations", f"other than {head_type} from {head_type} to {_DRUG}")
            continue
        ledger.note("duplicate relations, merged", int(pair in pairs))
        pairs[pair] = None
    distinct = set(sentence.entities)
    ledger.note("duplicate entities, merged", len(sentence.entities) - len(distinct))
    ledger.lose("entities", "without a relation", len(distinct.difference(*pairs)))
    return list(pairs)


def _to_columns(pair: tuple[Entity, Entity], sentence: Sentence, text: str) -> str:
    spans = [sentence.characters(entity.fragments[0]) for entity in pair]
    return "|".join(f"{text[start:end]}|{start}|{end}" for start, end in spans)


def sniff(sample: Sample) -> bool:
    filled = [line for line in sample.lines if line.strip()][:20]
    return bool(filled) and all(map(_ROW.fullmatch, filled))


FORMAT = Format(
    name="ade_rel",
    has_character_offsets=True,
    summary="the ADE corpus: one line per relation of an adverse effect (or a dose) to a drug",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".rel",),
    supports=frozenset(("nested", "crossing", "several types", "relations")),
    metadata=frozenset(("documents",)),
    read_options={"kind": one_of(*_HEADS)},
    write_options={"kind": one_of(*_HEADS)},
)
