"""The work of readers and writers: near-linear in the size of the data, for all known slow cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from accounting import count_lost
from cases import count_calls, in_case, limit_cpu
from samples import NEEDS, put

from spanwise import Entity, Relation, Sentence, SpanwiseError, read, write
from spanwise.formats import formats

WRITABLE = [name for name, format in formats().items() if format.write and (name not in NEEDS or find_spec(NEEDS[name]))]


def repeat(text: str, count: int) -> str:
    return "".join(text.format(n=n) for n in range(count))


def label_studio_task(text: str, *regions: dict[str, Any]) -> str:
    results = [{"type": "labels", "value": {"labels": ["X"], **region}} for region in regions]
    return json.dumps([{"data": {"text": text}, "annotations": [{"result": results}]}])


# Files for which a reader with quadratic work would need minutes or far more.
SLOW_FILES = {
    "a large record, then small records": ("spert", lambda: json.dumps(
        [{"tokens": ["abc"] * 300_000, "entities": []}, *[{"tokens": ["a"], "entities": []}] * 20_000])),
    "a table of 20,000 columns": ("csv", lambda: "document,start,end,type" + repeat(",c{n}", 20_000) + "\n" + "d,0,1,X\n" * 20_000),
    "a cell of 50,000 fragments": ("csv", lambda: "document,start,end,type,document_text\nd,"
        + ";".join(map(str, range(0, 100_000, 2))) + "," + ";".join(map(str, range(1, 100_000, 2))) + ",X," + "a " * 50_000 + "\n"),
    "a quote that is not closed": ("csv", lambda: 'document,start,end,type,document_text\nd,0,1,X,"' + "a,\n" * 500_000),
    "a truncated record": ("spert", lambda: '[{"tokens": ["' + "a" * 2_000_000),
    "a word of 2 MB": ("conll", lambda: "a\tO\n" + "x" * 2_000_000 + "\tB-X\n"),
    "2 MB of spaces": ("conll", lambda: "a O\nx" + " " * 2_000_000 + "B-X\n"),
    "20,000 columns": ("conll", lambda: ("a" + "\tO" * 20_000 + "\n") * 20),
    "50,000 rows": ("conll", lambda: "a\tB-X\n" * 50_000),
    "10,000 entities on one word": ("brat", lambda: repeat("T{n}\tX 0 5\tAcute\n", 10_000) + repeat("R{n}\tr Arg1:T{n} Arg2:T0\n", 10_000)),
    "long texts at the wrong offsets": ("label_studio", lambda: label_studio_task("a " * 20_000, *[{"start": 0, "end": 3, "text": "a " * 10_000 + "b"}] * 20)),
    "wrong UTF-16 offsets": ("label_studio", lambda: label_studio_task("🌊" + "a " * 20_000, *({"start": n, "end": n + 3, "text": "z"} for n in range(2000)))),
    "wrong texts of long entities": ("pubtator", lambda: "1|t|" + "a b. " * 4000 + "\n" + "1\t0\t20000\ta\tX\n" * 4000),
    "a word of one letter, 10,000 times": ("ade_rel", lambda: ("1|" + "a " * 500 + "|a|100|101|a|200|201\n") * 1000),
    "missing mentions": ("ade_rel", lambda: "".join(f"1|{'a ' * 500}|{'b' * 300}{n}|0|9|a|0|1\n" for n in range(1000))),
    "long triples of one word": ("casrel", lambda: json.dumps([{"text": "a " * 100_000, "triple_list": [["a " * 20_000, "r", "a b"]] * 10}])),
    "10,000 triples": ("casrel", lambda: json.dumps([{"text": "a " * 50_000, "triple_list": [["a", "r", f"z{n}"] for n in range(10_000)]}])),
    "10,000 relations of tokens": ("prodigy", lambda: json.dumps({
        "text": "a " * 10_000, "tokens": [{"start": 2 * n, "end": 2 * n + 1} for n in range(10_000)],
        "spans": [{"start": 2 * n, "end": 2 * n + 1, "label": "X"} for n in range(10_000)],
        "relations": [{"head": n, "child": 0, "label": "r"} for n in range(10_000)]})),
    "nested terms": ("genia_xml", lambda: "<set><article><sentence>" + '<cons sem="G#DNA_x">a ' * 10_000 + "</cons>" * 10_000
                       + "</sentence></article></set>"),
    "an unclosed list of names": ("multihead", lambda: "#doc 1\n0\ta\tB-X\t['r'" + " " * 500_000 + "x]\t[0]\n"),
    "full stops": ("doccano", lambda: json.dumps({"text": ".) " * 50_000, "entities": []})),
    "accents": ("doccano", lambda: json.dumps({"text": "a" + "\u0301" * 250_000, "entities": []})),
    "entities inside a word": ("doccano", lambda: json.dumps(
        {"text": "a" * 100_000, "entities": [{"label": "X", "start_offset": n, "end_offset": n + 1} for n in range(20_000)]})),
    "entities across sentences": ("doccano", lambda: json.dumps(
        {"text": "a. " * 30_000, "entities": [{"label": "X", "start_offset": 0, "end_offset": 90_000 - n} for n in range(5000)]})),
    "entities around a megabyte of spaces": ("brat", lambda: repeat("T{n}\tX 0 1;1000001 1000002\ta b\n", 5000)),
    "entities that end in a megabyte of spaces": ("doccano", lambda: json.dumps(
        {"text": "a" + " " * 1_000_000 + "b", "entities": [{"label": "X", "start_offset": 0, "end_offset": 500_000 + n} for n in range(5000)]})),
    "10,000 mentions of a long text": ("casrel", lambda: json.dumps(
        [{"text": " ".join(f"w{n}" for n in range(200_000)), "triple_list": [[f"w{199_999 - n}", "r", f"w{n} w{n + 1}"] for n in range(10_000)]}])),
}  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_slow_files(part: int, tmp_path: Path) -> None:
    for description, (name, content) in list(SLOW_FILES.items())[part::4]:
        path = put(name, tmp_path, content().encode())
        if "megabyte of spaces" in description and name == "brat":
            path.with_suffix(".txt").write_text("a" + " " * 1_000_000 + "b")
        with limit_cpu(8, description):
            try:
                assert all(isinstance(sentence, Sentence) for sentence in read(path, name))
            except SpanwiseError as error:
                assert str(path) in str(error)  # noqa: PT017


def flat_sentence(count: int) -> Sentence:
    """Return a sentence of twice as many words as entities."""
    entities = tuple(Entity("Drug", ((start, start + 1),)) for start in range(0, 2 * count, 2))
    words = tuple(f"w{n % 90}" for n in range(2 * count))
    return Sentence("s", words, entities, (Relation("r", 0, count - 1),))


def nested_sentence(count: int) -> Sentence:
    """Return a sentence in which each entity contains the next one."""
    entities = tuple(Entity("Drug", ((n, 2 * count - n),)) for n in range(count))
    return Sentence("s", ("a",) * 2 * count, entities, (Relation("r", 0, count - 1),))


# Formats that repeat the words of each entity: a file of nested entities grows with the square of their number.
REPEATING_WORDS = ("w2ner", "casrel", "cmeee", "cluener", "label_studio", "pubtator", "bioc_json", "bioc_xml", "brat", "csv")


def assert_round_trip(sentence: Sentence, path: Path, name: str) -> None:
    """Write and read a sentence: all entities return, except those that the ledger counts as lost."""
    ledger = write([sentence], path, name, lossy=True)
    entities = sum(len(s.entities) for s in read(path, name))
    assert entities == len(sentence.entities) - count_lost(ledger)["entities"]


def test_long_flat_sentences(tmp_path: Path) -> None:
    for name in WRITABLE:
        with limit_cpu(4, name):
            assert_round_trip(flat_sentence(1000), tmp_path / name, name)


def test_long_nested_sentences(tmp_path: Path) -> None:
    for name in WRITABLE:
        with limit_cpu(4, name):
            assert_round_trip(nested_sentence(300 if name in REPEATING_WORDS else 1000), tmp_path / name, name)


@pytest.mark.parametrize("make_sentence", [flat_sentence, nested_sentence])
def test_work_grows_linearly(make_sentence: Callable[[int], Sentence], tmp_path: Path) -> None:
    """Twice the entities need about twice the function calls."""
    names = [name for name in WRITABLE if make_sentence is flat_sentence or name not in REPEATING_WORDS]
    for name in names:
        with in_case(name):
            assert_round_trip(make_sentence(10), tmp_path / f"{name}-warm-up", name)
            small, large = (
                count_calls(lambda: assert_round_trip(make_sentence(count), tmp_path / f"{name}-{count}", name))  # noqa: B023
                for count in (200, 400)
            )
            assert large < 2.4 * small


def test_writers_of_nested_entities(tmp_path: Path) -> None:
    """Formats that repeat words write them with a fixed number of operations per entity."""
    for name in ("w2ner", "casrel"):
        with in_case(name):
            small, large = (
                count_calls(lambda: write([nested_sentence(count)], tmp_path / f"{name}-{count}", name, lossy=True))  # noqa: B023
                for count in (400, 800)
            )
            assert large < 2.4 * small


def test_mentions_of_few_common_words(tmp_path: Path) -> None:
    """Searching the text for each mention would exceed the limit."""
    choose = Random(1)
    text, *mentions = (" ".join(choose.choices("ab", k=count)) for count in (160_000, *[20] * 8000))
    triples = [[a, "r", b] for a, b in zip(mentions[::2], mentions[1::2], strict=True)]
    path = put("casrel", tmp_path, json.dumps([{"text": text, "triple_list": triples}]).encode())
    with limit_cpu(3, "mentions of two words"):
        (sentence,) = read(path, "casrel")
    assert len(sentence.entities) > 100
