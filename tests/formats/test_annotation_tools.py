"""What the formats of annotation tools and libraries have in common: whatever is written is read again, whatever is broken is
an error of the file."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanwise import Entity, Link, Relation, Sentence, Span
from spanwise.core.errors import SpanwiseError
from spanwise.formats import Ledger, docbin, doccano, hf_dataset, jsonl, label_studio, prodigy
from spanwise.formats.shared.documents import to_documents
from spanwise.formats.shared.sample import Sample

JSON = {"doccano": doccano, "label_studio": label_studio, "prodigy": prodigy}
WITH_CHARACTERS = {**JSON, "docbin": docbin}
ALL = {**WITH_CHARACTERS, "hf_dataset": hf_dataset}


@pytest.fixture(params=ALL)
def module(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "docbin":
        pytest.importorskip("spacy", reason="spaCy is not installed")
    if request.param == "hf_dataset":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return ALL[request.param]


def contents(sentences: Sequence[Sentence], *, relations: bool = True) -> list[tuple[Any, ...]]:
    """Each document's text, entities (as characters) and relations, however it is cut into sentences and words."""
    found = []
    for document in to_documents(sentences, Ledger()):
        mentions = {m.id: (m.type, m.fragments) for m in document.mentions if len(m.fragments) == 1}
        arrows = [
            (a.type, mentions[a.head], mentions[a.tail]) for a in document.relations if {a.head, a.tail} <= mentions.keys()
        ]
        found.append((document.id, document.text, Counter(mentions.values()), Counter(arrows if relations else ())))
    return found


def expected_losses(sentences: Sequence[Sentence], module: ModuleType) -> dict[str, int]:
    """What a format that holds no discontinuous entities, and perhaps no relations, has to say of these sentences."""
    losses = Counter[str]()
    by_place = {(s.document, s.position): s for s in sentences}
    for s in sentences:
        losses["entities"] += sum(entity.is_discontinuous for entity in s.entities)
        pairs = [(s.entities[r.head], s.entities[r.tail]) for r in s.relations]
        pairs += [(s.entities[k.head], by_place[s.document, k.position].entities[k.tail]) for k in s.links]
        are_lost = [head.is_discontinuous or tail.is_discontinuous for head, tail in pairs]
        losses["relations"] += sum(are_lost) if "relations" in module.FORMAT.supports else len(pairs)
    return +losses


def kinds(ledger: Ledger) -> dict[str, int]:
    found = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        found[kind] += count
    return found


def back(module: ModuleType, sentences: Sequence[Sentence], folder: Path) -> tuple[list[Sentence], Ledger, Ledger]:
    path = folder / f"data{module.FORMAT.extensions[0]}"
    written, read = Ledger(), Ledger()
    module.write(iter(sentences), path, written)
    return list(module.read(path, read)), written, read


WORDS = st.sampled_from(["Oslo", "a", "🌊", "北", "e\u0301t\u0301", ".", "IL-2", "Dr.", "No", "!", "\\n", '"', "ß"])
GAPS = st.sampled_from([" ", "", "\n", "  ", " \n ", "\t", "\r\n", "\u00a0"])
TYPES = st.sampled_from(["Place", "Sea", "a type", "类型"])


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of one document or of none, with entities of all kinds."""
    is_document = draw(st.booleans())
    sentences: list[Sentence] = []
    start = 0
    for position in range(draw(st.integers(1, 3))):
        words = draw(st.lists(WORDS, min_size=1, max_size=6))
        gaps = draw(st.lists(GAPS, min_size=len(words), max_size=len(words)))
        text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
        starts = [sum(len(w) + len(g) for w, g in zip(words[:n], gaps[:n], strict=True)) for n in range(len(words))]
        edges = st.lists(st.integers(0, len(words)), min_size=2, max_size=4, unique=True).map(sorted)
        entities = tuple(
            Entity(draw(TYPES), tuple(Span(*pair) for pair in zip(marks[::2], marks[1::2], strict=False)))
            for marks in draw(st.lists(edges, max_size=4))
        )
        numbers = st.integers(0, max(0, len(entities) - 1))
        pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=3)) if entities else []
        before = [(s.position, n) for s in sentences for n in range(len(s.entities))]
        links = ()
        if is_document and entities and before:
            links = tuple(
                Link("to", draw(numbers), place or 0, tail)
                for place, tail in draw(st.lists(st.sampled_from(before), max_size=2))
            )
        sentences.append(
            Sentence(
                f"s{position}", tuple(words), entities, tuple(Relation("in", *pair) for pair in pairs), links, text,
                tuple(starts), document="d" if is_document else None, position=position if is_document else None,
                start=start if is_document else None,
            )
        )  # fmt: skip
        start += len(text)
    return sentences


@pytest.mark.parametrize("name", WITH_CHARACTERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=documents())
def test_what_is_written_is_read_again(name: str, sentences: list[Sentence], tmp_path: Path) -> None:
    if name == "docbin":
        pytest.importorskip("spacy", reason="spaCy is not installed")
    module = WITH_CHARACTERS[name]
    again, written, read = back(module, sentences, tmp_path)
    has_relations = "relations" in module.FORMAT.supports
    assert contents(again, relations=has_relations) == contents(sentences, relations=has_relations)
    assert not read.lost
    assert kinds(written) == expected_losses(sentences, module)


@pytest.mark.parametrize("corpus", ["nerel", "conll04", "ade", "germeval14", "litbank", "weibo"])
def test_real_corpora_come_back(module: ModuleType, corpus: str, shared_data: Path, tmp_path: Path) -> None:
    path = next(p for p in (shared_data / corpus / "dev.jsonl", shared_data / corpus / "test.jsonl") if p.is_file())
    sentences = [s for s in islice(jsonl.read(path, Ledger()), 150) if module is not hf_dataset or is_flat(s)]
    assert sum(len(s.entities) for s in sentences) > 20
    again, written, read = back(module, sentences, tmp_path)
    assert not read.lost
    if module is hf_dataset:
        assert [(s.id, s.words, sorted(s.entities, key=Entity.range.__get__)) for s in again] == [
            (s.id, s.words, sorted(set(s.entities), key=Entity.range.__get__)) for s in sentences
        ]
        assert kinds(written) == +Counter(relations=sum(len(s.relations) + len(s.links) for s in sentences))
        return
    has_relations = "relations" in module.FORMAT.supports
    assert contents(again, relations=has_relations) == contents(sentences, relations=has_relations)
    assert kinds(written) == expected_losses(sentences, module)
    if module in (prodigy, docbin):  # these hold the words
        assert [w for s in again for w in s.words] == [w for s in sentences for w in s.words]


def is_flat(sentence: Sentence) -> bool:
    spans = [entity.range for entity in set(sentence.entities)]
    return not any(a.overlaps(b) for n, a in enumerate(spans) for b in spans[:n])


EXAMPLE = (
    Sentence("1", ("Port", "of", "Oslo"), (Entity("Org", ((0, 3),)), Entity("Place", ((2, 3),))), (Relation("in", 0, 1),),
             document="1", position=0, start=0, text="Port of Oslo. ", extra={"meta": {"page": 4}}),
    Sentence("2", ("Zinc",), (Entity("Metal", ((0, 1),)),), links=(Link("from", 0, 0, 1),), document="1", position=1, start=14,
             text="Zinc 🌊"),
)  # fmt: skip


def test_only_the_own_format_is_recognised(module: ModuleType, tmp_path: Path) -> None:
    back(module, EXAMPLE, tmp_path)
    sample = Sample(tmp_path / f"data{module.FORMAT.extensions[0]}")
    assert [name for name, other in ALL.items() if other.sniff(sample)] == [module.FORMAT.name]
    assert not jsonl.sniff(sample)


@pytest.mark.parametrize(
    "text", ["", "O\n", "{}\n", "[]", '{"tokens": ["a"], "entities": []}\n', "Oslo B-LOC\n", '{"text": "a"}\n']
)
def test_files_of_others_are_not_claimed(module: ModuleType, text: str, tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_text(text)
    assert not module.sniff(Sample(path))


def test_an_empty_data_set(module: ModuleType, tmp_path: Path) -> None:
    again, written, read = back(module, [], tmp_path)
    assert again == []
    assert not written.lost
    assert not read.lost


def mutations(raw: bytes, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    yield b""
    yield b"\0" * 20
    yield b"\xff\xfe\x80"
    yield raw + b"}"
    for _ in range(60):
        yield raw[: chance.randrange(len(raw))]
        place = chance.randrange(len(raw))
        yield raw[:place] + bytes([chance.randrange(256)]) + raw[place + 1 :]
        yield raw[:place] + chance.randbytes(3) + raw[place:]


def read_or_refused(module: ModuleType, path: Path) -> None:
    """Reading ends in sentences or in an error that names the file; anything else is raised here."""
    try:
        for sentence in module.read(path, Ledger()):
            assert isinstance(sentence, Sentence)
    except SpanwiseError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


def test_broken_bytes(module: ModuleType, tmp_path: Path) -> None:
    back(module, EXAMPLE, tmp_path)
    raw = (tmp_path / f"data{module.FORMAT.extensions[0]}").read_bytes()
    path = tmp_path / "broken"
    count = 0
    for broken in mutations(raw, seed=1):
        path.write_bytes(broken)
        read_or_refused(module, path)
        count += 1
    assert count == 184


JUNK = [None, True, -1, 0, 3, 10**30, 1.5, float("nan"), "", "x", "1", [], ["a"], [[1, 2]], {}, {"start": -5, "end": 99}]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as a container and a key."""
    for key in range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("name", JSON)
def test_wrong_values_everywhere(name: str, tmp_path: Path) -> None:
    module = JSON[name]
    back(module, EXAMPLE, tmp_path)
    text = (tmp_path / f"data{module.FORMAT.extensions[0]}").read_text()
    records = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    count = len(list(places(records)))
    assert count > 30
    path = tmp_path / "broken.json"
    for number in range(count):
        for junk in JUNK:
            changed = json.loads(json.dumps(records))
            container, key = list(places(changed))[number]
            container[key] = junk
            path.write_text(json.dumps(changed))
            read_or_refused(module, path)
