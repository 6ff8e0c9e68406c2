"""Formats of annotation tools and libraries: round trips, detection and damaged files."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from cases import in_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import with_wrong_values
from samples import NEEDS

from spanwise import Entity, Link, Relation, Sentence, Span, read
from spanwise.core.errors import SpanwiseError
from spanwise.formats import Ledger, docbin, doccano, hf_dataset, jsonl, label_studio, prodigy
from spanwise.formats.shared.documents import to_documents
from spanwise.formats.shared.sample import Sample

JSON_FORMATS = (doccano, label_studio, prodigy)
ALL = tuple(
    module
    for module in (*JSON_FORMATS, docbin, hf_dataset)
    if module.FORMAT.name not in NEEDS or find_spec(NEEDS[module.FORMAT.name])
)
WITH_CHARACTER_OFFSETS = tuple(module for module in ALL if module is not hf_dataset)


def contents(sentences: Sequence[Sentence], *, with_relations: bool = True) -> list[tuple[Any, ...]]:
    """Return the text, entities (as characters) and relations of each document."""
    result = []
    for document in to_documents(sentences, Ledger()):
        mentions = {m.id: (m.type, m.fragments) for m in document.mentions if len(m.fragments) == 1}
        relations = [
            (r.type, mentions[r.head], mentions[r.tail]) for r in document.relations if {r.head, r.tail} <= mentions.keys()
        ]
        result.append((document.id, document.text, Counter(mentions.values()), Counter(relations if with_relations else ())))
    return result


def expected_losses(sentences: Sequence[Sentence], module: ModuleType) -> dict[str, int]:
    """Count discontinuous entities with their relations, or all relations if they are not supported."""
    losses = Counter[str]()
    by_location = {(s.document, s.position): s for s in sentences}
    for s in sentences:
        losses["entities"] += sum(entity.is_discontinuous for entity in s.entities)
        pairs = [(s.entities[r.head], s.entities[r.tail]) for r in s.relations]
        pairs += [(s.entities[k.head], by_location[s.document, k.position].entities[k.tail]) for k in s.links]
        are_lost = [head.is_discontinuous or tail.is_discontinuous for head, tail in pairs]
        losses["relations"] += sum(are_lost) if "relations" in module.FORMAT.supports else len(pairs)
    return +losses


def losses_by_kind(ledger: Ledger) -> dict[str, int]:
    counts = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        counts[kind] += count
    return counts


def output_path(module: ModuleType, folder: Path) -> Path:
    return folder / f"data{module.FORMAT.extensions[0]}"


def round_trip(module: ModuleType, sentences: Sequence[Sentence], folder: Path) -> tuple[list[Sentence], Ledger, Ledger]:
    """Write and read sentences; return them with the ledgers of the writer and the reader."""
    writing, reading = Ledger(), Ledger()
    module.write(iter(sentences), output_path(module, folder), writing)
    return list(module.read(output_path(module, folder), reading)), writing, reading


WORDS = st.sampled_from(["Oslo", "a", "🌊", "北", "e\u0301t\u0301", ".", "IL-2", "Dr.", "No", "!", "\\n", '"', "ß"])
GAPS = st.sampled_from([" ", "", "\n", "  ", " \n ", "\t", "\r\n", "\u00a0"])
TYPES = st.sampled_from(["Place", "Sea", "a type", "类型"])


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Draw sentences of one document or of none, with entities of all kinds."""
    is_document = draw(st.booleans())
    sentences: list[Sentence] = []
    start = 0
    for position in range(draw(st.integers(1, 3))):
        words = draw(st.lists(WORDS, min_size=1, max_size=6))
        gaps = draw(st.lists(GAPS, min_size=len(words), max_size=len(words)))
        text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
        starts = [sum(len(w) + len(g) for w, g in zip(words[:n], gaps[:n], strict=True)) for n in range(len(words))]
        boundaries = st.lists(st.integers(0, len(words)), min_size=2, max_size=4, unique=True).map(sorted)
        entities = tuple(
            Entity(draw(TYPES), tuple(Span(*pair) for pair in zip(drawn[::2], drawn[1::2], strict=False)))
            for drawn in draw(st.lists(boundaries, max_size=4))
        )
        indices = st.integers(0, max(0, len(entities) - 1))
        pairs = draw(st.lists(st.tuples(indices, indices), max_size=3)) if entities else []
        earlier = [(s.position, index) for s in sentences for index in range(len(s.entities))]
        links = ()
        if is_document and entities and earlier:
            links = tuple(
                Link("to", draw(indices), target or 0, tail)
                for target, tail in draw(st.lists(st.sampled_from(earlier), max_size=2))
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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(sentences=documents())
def test_everything_but_counted_losses_is_read_back(sentences: list[Sentence], tmp_path: Path) -> None:
    for module in WITH_CHARACTER_OFFSETS:
        with in_case(module.FORMAT.name):
            reread, writing, reading = round_trip(module, sentences, tmp_path)
            has_relations = "relations" in module.FORMAT.supports
            assert contents(reread, with_relations=has_relations) == contents(sentences, with_relations=has_relations)
            assert not reading.lost
            assert losses_by_kind(writing) == expected_losses(sentences, module)


def test_real_corpora_are_read_back(shared_data: Path, tmp_path: Path) -> None:
    for corpus in ("nerel", "conll04", "ade", "germeval14", "litbank", "weibo"):
        path = next(p for p in (shared_data / corpus / "dev.jsonl", shared_data / corpus / "test.jsonl") if p.is_file())
        sentences = list(islice(jsonl.read(path, Ledger()), 100))
        for module in ALL:
            with in_case(f"{corpus} in {module.FORMAT.name}"):
                if module is hf_dataset:
                    expect_flat_corpus([sentence for sentence in sentences if is_flat(sentence)], tmp_path)
                else:
                    expect_corpus(module, sentences, tmp_path)


def expect_corpus(module: ModuleType, sentences: list[Sentence], folder: Path) -> None:
    assert sum(len(s.entities) for s in sentences) > 20
    reread, writing, reading = round_trip(module, sentences, folder)
    assert not reading.lost
    has_relations = "relations" in module.FORMAT.supports
    assert contents(reread, with_relations=has_relations) == contents(sentences, with_relations=has_relations)
    assert losses_by_kind(writing) == expected_losses(sentences, module)
    if module in (prodigy, docbin):  # formats that store words
        assert [w for s in reread for w in s.words] == [w for s in sentences for w in s.words]


def expect_flat_corpus(sentences: list[Sentence], folder: Path) -> None:
    assert sum(len(s.entities) for s in sentences) > 20
    reread, writing, reading = round_trip(hf_dataset, sentences, folder)
    assert not reading.lost
    assert [(s.id, s.words, sorted(s.entities, key=Entity.range.__get__)) for s in reread] == [
        (s.id, s.words, sorted(set(s.entities), key=Entity.range.__get__)) for s in sentences
    ]
    assert losses_by_kind(writing) == +Counter(relations=sum(len(s.relations) + len(s.links) for s in sentences))


def is_flat(sentence: Sentence) -> bool:
    spans = [entity.range for entity in set(sentence.entities)]
    return not any(a.overlaps(b) for n, a in enumerate(spans) for b in spans[:n])


EXAMPLE = (
    Sentence("1", ("Port", "of", "Oslo"), (Entity("Org", ((0, 3),)), Entity("Place", ((2, 3),))), (Relation("in", 0, 1),),
             document="1", position=0, start=0, text="Port of Oslo. ", extra={"meta": {"page": 4}}),
    Sentence("2", ("Zinc",), (Entity("Metal", ((0, 1),)),), links=(Link("from", 0, 0, 1),), document="1", position=1, start=14,
             text="Zinc 🌊"),
)  # fmt: skip


def test_only_the_written_format_is_detected(tmp_path: Path) -> None:
    for module in ALL:
        round_trip(module, EXAMPLE, tmp_path)
        sample = Sample(output_path(module, tmp_path))
        assert [other.FORMAT.name for other in ALL if other.sniff(sample)] == [module.FORMAT.name]
        assert not jsonl.sniff(sample), module.FORMAT.name


def test_files_of_other_formats_are_not_detected(tmp_path: Path) -> None:
    path = tmp_path / "some"
    for text in ("", "O\n", "{}\n", "[]", '{"tokens": ["a"], "entities": []}\n', "Oslo B-LOC\n", '{"text": "a"}\n'):
        path.write_text(text)
        assert not [module.FORMAT.name for module in ALL if module.sniff(Sample(path))], text


def test_an_empty_dataset(tmp_path: Path) -> None:
    for module in ALL:
        reread, writing, reading = round_trip(module, [], tmp_path)
        assert (reread, writing.lost, reading.lost) == ([], 0, 0), module.FORMAT.name


def damaged(raw: bytes, seed: int) -> Iterator[bytes]:
    generator = random.Random(seed)
    yield b""
    yield b"\0" * 20
    yield b"\xff\xfe\x80"
    yield raw + b"}"
    for _ in range(60):
        yield raw[: generator.randrange(len(raw))]
        index = generator.randrange(len(raw))
        yield raw[:index] + bytes([generator.randrange(256)]) + raw[index + 1 :]
        yield raw[:index] + generator.randbytes(3) + raw[index:]


def expect_sentences_or_error(module: ModuleType, path: Path) -> None:
    """Read a file; allow only sentences or a one-line error that names the file."""
    try:
        for sentence in module.read(path, Ledger()):
            assert isinstance(sentence, Sentence)
    except SpanwiseError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


def test_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    for module in ALL:
        round_trip(module, EXAMPLE, tmp_path)
        variants = list(damaged(output_path(module, tmp_path).read_bytes(), seed=1))
        assert len(variants) == 184
        for raw in variants:
            path.write_bytes(raw)
            with in_case(module.FORMAT.name):
                expect_sentences_or_error(module, path)


def test_wrong_json_values(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    for module in JSON_FORMATS:
        round_trip(module, EXAMPLE, tmp_path)
        text = output_path(module, tmp_path).read_text()
        records = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        variants = list(with_wrong_values(records, list))
        assert len(variants) > 30 * 16
        for changed in variants:
            path.write_text(json.dumps(changed))
            with in_case(module.FORMAT.name):
                expect_sentences_or_error(module, path)


def test_split_no_keeps_a_text_as_one_sentence(tmp_path: Path) -> None:
    for name, record in {
        "doccano": {"text": "Oslo waits. Zinc too.", "label": [[0, 4, "Place"]]},
        "prodigy": {"text": "Oslo waits. Zinc too.", "spans": [{"start": 0, "end": 4, "label": "Place"}]},
        "label_studio": {"data": {"text": "Oslo waits. Zinc too."}, "annotations": [{"result": []}]},
    }.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(record))
        assert len(list(read(path, name))) == 2
        assert [s.text for s in read(path, f"{name}:split=no")] == ["Oslo waits. Zinc too."]
