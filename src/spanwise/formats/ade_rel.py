"""The ADE corpus: ``PMID|sentence|effect|start|end|drug|start|end``, a line for each relation.

``DRUG-AE.rel`` relates adverse effects to drugs: the types are Adverse-Effect and Drug, the relation Adverse-Effect goes from
the effect to the drug. ``DRUG-DOSE.rel`` has the same columns with a dose in place of the effect (so says the corpus's README):
types Dose and Drug, relation Dose. As nothing in a line tells the two apart, ``kind=dose`` says it, or the file's name does.

The offsets count from the beginning of the document, of which only the sentence is here. So the sentence's own place is the
one that most mentions of its lines agree on, each occurrence of a mention's text in the sentence being one proposal; that
place then tells which occurrence is meant. Lines of one PMID and sentence that follow each other are one sentence.

Written are the same columns with offsets in the sentence, which the reader finds again (a sentence's place is then 0).
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
from spanwise.files.reading import lines
from spanwise.files.writing import writing
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import Arrow, Document, Mention
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.sample import Sample

# The sentence may hold a bar, so the columns behind it are counted from the end.
_ROW = re.compile(r"([^|]+)\|(.+)" + r"\|([^|]+)\|([0-9]{1,9})\|([0-9]{1,9})" * 2)
_HEADS = {"effect": "Adverse-Effect", "dose": "Dose"}
_DRUG = "Drug"


@dataclass(frozen=True, slots=True)
class _Said:
    """A mention as a line says it: its offset counts from the beginning of the document."""

    type: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    document: str
    sentence: str
    head: _Said
    drug: _Said


def read(path: Path, ledger: Ledger, /, *, kind: str | None = None, annotated: bool = True) -> Iterator[Sentence]:
    """``kind`` is "effect" or "dose"; unless said, "dose" for a file called DRUG-DOSE… and "effect" for others."""
    head = _HEADS[kind or ("dose" if path.name.upper().startswith("DRUG-DOSE") else "effect")]
    numbers: Counter[str] = Counter()
    said = ledger if annotated else Ledger()  # of the mentions
    for (document, text), group in groupby(_rows(path, head, said), key=lambda row: (row.document, row.sentence)):
        rows = list(group)
        number = numbers[document]
        numbers[document] += 1
        whole = _document(rows, text, ledger) if annotated else Document(document, text)
        for sentence in to_sentences(whole, path, ledger, line=rows[0].line, split=False):
            # The file does not keep the order of the text: positions count the sentences that it has.
            yield replace(sentence, id=f"{document}-{number}", document=document, position=number, start=None)


def _rows(path: Path, head: str, ledger: Ledger) -> Iterator[_Row]:
    for number, line in lines(path):
        if not line.strip():
            continue
        match = _ROW.fullmatch(line)
        if not match or not match[2].strip():
            raise FormatError(
                path, number, "expected PMID|sentence|effect|start|end|drug|start|end, start and end being numbers"
            )
        name, sentence, effect, start, end, drug, drug_start, drug_end = match.groups()
        wrong = (int(end) - int(start) != len(effect)) + (int(drug_end) - int(drug_start) != len(drug))
        ledger.note("mentions whose offsets do not fit their length", wrong)
        yield _Row(number, name, sentence, _Said(head, effect, int(start)), _Said(_DRUG, drug, int(drug_start)))


def _document(rows: list[_Row], text: str, ledger: Ledger) -> Document:
    found = _aligned({said: None for row in rows for said in (row.head, row.drug)}, text, ledger)
    result = Document(rows[0].document, text)
    ids: dict[tuple[str, Span], str] = {}
    arrows: dict[tuple[str, str], Arrow] = {}
    for row in rows:
        spans = [found.get(said) for said in (row.head, row.drug)]
        if None in spans:
            ledger.lose("relations", "with a mention that is not in the sentence")
        names = []
        for said, span in zip((row.head, row.drug), spans, strict=True):
            if span is not None:
                name = ids.setdefault((said.type, span), f"T{len(ids) + 1}")
                if len(ids) > len(result.mentions):
                    result.mentions.append(Mention(name, said.type, (span,), line=row.line))
                names.append(name)
        if len(names) == 2:
            ledger.note("relations given twice, merged", int((names[0], names[1]) in arrows))
            arrows[names[0], names[1]] = Arrow(row.head.type, names[0], names[1], line=row.line)
    result.arrows = list(arrows.values())
    return result


def _aligned(mentions: Iterable[_Said], text: str, ledger: Ledger) -> dict[_Said, Span]:
    """Where in the sentence each mention stands, of those that stand in it."""
    occurrences = {said: _occurrences(said.text, text, ledger) for said in mentions}
    votes = Counter(said.offset - start for said, starts in occurrences.items() for start in starts if said.offset >= start)
    # Of places with as many votes, 0 comes first (offsets in the sentence), then the one that takes the leftmost occurrences.
    place = max(votes, key=lambda place: (votes[place], place == 0, place), default=0)
    if place and sum(count == votes[place] for count in votes.values()) > 1:
        ledger.note("sentences whose mentions fit in several ways, the leftmost taken")
    found: dict[_Said, Span] = {}
    for said, starts in occurrences.items():
        if not starts:
            ledger.lose("entities", "not in its sentence")
            continue
        start = min(starts, key=lambda start: abs(said.offset - place - start))
        ledger.note("mentions whose offset leads elsewhere, taken at the nearest place", int(start != said.offset - place))
        found[said] = Span(start, start + len(said.text))
    return found


def _occurrences(mention: str, text: str, ledger: Ledger) -> list[int]:
    """The places of a mention in a text, large and small letters told apart unless it stands nowhere so."""
    starts: list[int] = []
    start = text.find(mention)
    while start >= 0:
        starts.append(start)
        start = text.find(mention, start + 1)
    if not starts:
        starts = [match.start() for match in re.finditer(f"(?={re.escape(mention)})", text, re.IGNORECASE)]
        ledger.note("mentions written with other letters, large or small, than in their sentence", int(bool(starts)))
    return starts


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, kind: str = "effect") -> None:
    """``kind`` as in reading: which two types and which relation are written."""
    head = _HEADS[kind]
    before = None
    with writing(path) as file:
        for whole in sentences:
            sentence = fitted(whole, {"nested", "relations"}, ledger, partial(_refused, sentence=whole, head=head))
            name = re.sub(r"[|\r\n\ufeff]", "_", sentence.document or sentence.id).strip() or "_"
            ledger.note("documents whose id cannot be a column, renamed", int(name != (sentence.document or sentence.id)))
            text = re.sub(r"[\r\n]", " ", sentence.text)
            pairs = _pairs(sentence, head, ledger)
            if pairs and (name, text) == before:
                ledger.lose("sentences", "that repeat the one before")
                ledger.lose("entities", "in such a sentence", len(set(chain.from_iterable(pairs))))
                ledger.lose("relations", "in such a sentence", len(pairs))
            elif pairs:
                before = (name, text)
                file.writelines(f"{name}|{text}|{_columns(pair, sentence, text)}\n" for pair in pairs)
            else:
                ledger.lose("sentences", "without such a relation")


def _refused(entity: Entity, sentence: Sentence, head: str) -> str | None:
    if entity.type not in (head, _DRUG):
        return f"of another type than {head} and {_DRUG}"
    text = sentence.text_of(entity)
    if not text.strip():
        return "of white space only"
    return "with | in their text" if "|" in text else None


def _pairs(sentence: Sentence, head: str, ledger: Ledger) -> list[tuple[Entity, Entity]]:
    """The entities of each relation; those that are in none are counted."""
    pairs: dict[tuple[Entity, Entity], None] = {}
    for relation in sentence.relations:
        pair = sentence.entities[relation.head], sentence.entities[relation.tail]
        if relation.type != head or (pair[0].type, pair[1].type) != (head, _DRUG):
            ledger.lose("relations", f"of another kind than {head} from {head} to {_DRUG}")
            continue
        ledger.note("relations given twice, merged", int(pair in pairs))
        pairs[pair] = None
    distinct = set(sentence.entities)
    ledger.note("entities given twice, merged", len(sentence.entities) - len(distinct))
    ledger.lose("entities", "in no relation", len(distinct.difference(*pairs)))
    return list(pairs)


def _columns(pair: tuple[Entity, Entity], sentence: Sentence, text: str) -> str:
    spans = [sentence.characters(entity.fragments[0]) for entity in pair]
    return "|".join(f"{text[start:end]}|{start}|{end}" for start, end in spans)


def sniff(sample: Sample) -> bool:
    filled = [line for line in sample.lines if line.strip()][:20]
    return bool(filled) and all(map(_ROW.fullmatch, filled))


FORMAT = Format(
    name="ade_rel",
    by_characters=True,
    summary="the ADE corpus: a line for each relation of an adverse effect (or a dose) to a drug",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".rel",),
    holds=frozenset(("nested", "crossing", "several types", "relations")),
    keeps=frozenset(("documents",)),
    read_options={"kind": one_of(*_HEADS)},
    write_options={"kind": one_of(*_HEADS)},
)
