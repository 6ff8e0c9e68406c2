"""Formats whose words are characters: CLUENER, CMeEE, Weibo."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spanwise import Entity, FormatError, Relation, Sentence
from spanwise.formats import cluener, cmeee, weibo

PLACES = {"text": "去 北京大学。", "label": {"organization": {"北京大学": [[2, 5]]}, "address": {"北京": [[2, 3]]}}}
SYMPTOMS = {
    "text": "头痛 3天",
    "entities": [
        {"start_idx": 0, "end_idx": 1, "type": "sym", "entity": "头痛"},
        {"start_idx": 0, "end_idx": 0, "type": "bod", "entity": "头", "score": 0.5, "by": "rule"},
    ],
}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def test_cluener(workbench: Any) -> None:
    record = PLACES | {"id": 3, "source": "map"}
    (sentence,), ledger = workbench.load(cluener, lines(record))
    assert sentence == Sentence(
        "3",
        ("去", " ", "北", "京", "大", "学", "。"),
        (Entity("address", ((2, 4),)), Entity("organization", ((2, 6),))),
        text="去 北京大学。",
    )
    text, written = workbench.write(cluener, [sentence])
    assert json.loads(text) == record
    assert (ledger.lost, written.lost) == (0, 0)


def test_cluener_repeated_mention_and_missing_label(workbench: Any) -> None:
    twice = {"text": "北京北京", "label": {"address": {"北京": [[0, 1], [2, 3]]}}}
    (first, second), ledger = workbench.load(cluener, lines(twice, {"text": "空"}))
    assert [e.range for e in first.entities] == [(0, 2), (2, 4)]
    assert second.entities == ()
    assert ledger.notes == {"records without a label, read without entities": 1}
    assert json.loads(workbench.write(cluener, [first])[0])["label"] == twice["label"]


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ({"address": {"北京": [[1, 2]]}}, "address [1, 2]: expected '北京', found '京大' in the text"),
        ({"address": {"大": [[2, 3]]}}, "characters 2 to 4 are outside the text of 3 characters"),
        ({"address": {"大": [[-1, 2]]}}, "characters -1 to 3 are outside the text of 3 characters"),
        ({"address": {"大": [[10**30, 10**30]]}}, "characters 1"),
        ({"": {"大": [[2, 2]]}}, "an entity's type must be a non-empty string"),
        ({"address": [[2, 2]]}, "label.address: input should be a valid dictionary"),
    ],
)
def test_cluener_invalid_records(workbench: Any, label: Any, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(cluener, lines(PLACES) + "\n" + lines({"text": "北京大", "label": label}))
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


def test_cmeee(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(cmeee, [SYMPTOMS])
    assert sentence.words == ("头", "痛", " ", "3", "天")
    assert sentence.entities == (Entity("sym", ((0, 2),)), Entity("bod", ((0, 1),)))
    assert (sentence.entities[1].score, sentence.entities[1].extra) == (0.5, {"by": "rule"})
    text, written = workbench.write(cmeee, [sentence])
    assert json.loads(text) == [SYMPTOMS | {"id": "data-0"}]
    assert (ledger.lost, written.lost, ledger.notes) == (0, 0, {})


def test_cmeee_with_exclusive_ends(workbench: Any) -> None:
    record = {"text": "头痛", "entities": [{"start_idx": 0, "end_idx": 2, "type": "sym", "entity": "头痛"}]}
    (sentence,), ledger = workbench.load(cmeee, [record])
    assert sentence.entities == (Entity("sym", ((0, 2),)),)
    assert ledger.notes == {"entities with an exclusive end": 1}


def test_cmeee_without_annotations(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(cmeee, [{"text": "头痛"}])
    assert (sentence.words, sentence.entities) == (("头", "痛"), ())
    assert ledger.notes == {"records without annotations": 1}


@pytest.mark.parametrize(
    ("start", "end", "mention", "problem"),
    [
        (0, 1, "头疼", "sym [0, 1]: expected '头疼', found '头痛' in the text"),
        (0, 4, "头痛", "sym [0, 4]: expected '头痛', found '头痛 3天' in the text"),
        (3, 5, "3天?", "characters 3 to 6 are outside the text of 5 characters"),
        (1, 1, "", "characters 1 to 1 are outside the text"),
        (-1, 0, "头", "characters -1 to 0 are outside the text"),
    ],
)
def test_cmeee_invalid_mentions(workbench: Any, start: int, end: int, mention: str, problem: str) -> None:
    item = {"start_idx": start, "end_idx": end, "type": "sym", "entity": mention}
    with pytest.raises(FormatError) as error:
        workbench.load(cmeee, [SYMPTOMS, {"text": "头痛 3天", "entities": [item]}])
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


@pytest.mark.parametrize("module", [cluener, cmeee])
def test_words_become_characters_and_losses_are_counted(workbench: Any, module: ModuleType) -> None:
    entities = (Entity("A", ((0, 2),)), Entity("B", ((1, 3),)), Entity("C", ((0, 1), (2, 3))))
    sentence = Sentence("s", ("New", "York", "!"), entities, (Relation("r", 0, 1),), text="New York!\n")
    (read,), ledger = workbench.round_trip(module, [sentence])
    assert read.text == "New York!\n"
    assert {(e.type, read.text[slice(*e.range)]) for e in read.entities} == {("A", "New York"), ("B", "York!")}
    assert ledger.notes == {"words split into characters": 2}
    assert str(ledger) == "1 entity (discontinuous), 1 relation (not supported by the format)"


WEIBO = "北0\tB-LOC.NAM\n京1\tI-LOC.NAM\n很0\tO\n好12\tO\n\n10\tO\n 0\tO\n\n"


def test_weibo(workbench: Any) -> None:
    (first, second), ledger = workbench.load(weibo, WEIBO)
    assert first == Sentence("data-0", ("北", "京", "很", "好"), (Entity("LOC.NAM", ((0, 2),)),), text="北京很好")
    assert first.extra == {"places_in_word": [0, 1, 0, 12]}
    assert (second.words, second.text) == (("1", " "), "1 ")
    text, written = workbench.write(weibo, [first, second])
    assert (text, ledger.lost, written.lost, ledger.notes) == (WEIBO, 0, 0, {})


def test_weibo_repairs_and_a_missing_last_blank_line(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(weibo, "\n\n北0\tI-LOC\n京1\tI-ORG")
    assert [(e.type, e.range) for e in sentence.entities] == [("LOC", (0, 1)), ("ORG", (1, 2))]
    assert list(ledger.notes.values()) == [2]


def test_weibo_characters_split_in_two(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(weibo, "\ufffd\ufffd0\tO\n\ufffd0\tO\n")
    assert sentence.words == ("\ufffd", "\ufffd")
    assert ledger.notes == {"characters split in two, read as one": 1}


def test_weibo_with_longer_words(workbench: Any) -> None:
    words = Sentence("s", ("北京", "很", "好"), (Entity("LOC", ((0, 1),)),), extra={"places_in_word": "x"})
    single = Sentence("t", ("北", "京"), text="北 京\n")
    text, ledger = workbench.write(weibo, [words, single])
    assert text == "北0\tB-LOC\n京1\tI-LOC\n很0\tO\n好0\tO\n\n北0\tO\n京0\tO\n\n"
    assert (ledger.lost, ledger.notes) == (0, {"words split into characters": 1})


def test_weibo_losses_are_counted(workbench: Any) -> None:
    entities = (Entity("A", ((0, 3),)), Entity("B", ((1, 2),)), Entity("C", ((0, 1), (2, 3))), Entity("line\nend", ((2, 3),)))
    sentences = [Sentence("s", ("a", "\n", "c"), entities, (Relation("r", 0, 1),)), Sentence("t", ())]
    (read,), ledger = workbench.round_trip(weibo, sentences)
    assert (read.words, read.entities) == (("a", "_", "c"), (Entity("A", ((0, 3),)),))
    counts = {kind: sum(n for (k, _), n in ledger.losses.items() if k == kind) for kind, _ in ledger.losses}
    assert counts == {"words": 1, "entities": 3, "relations": 1, "sentences": 1}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("北京0\tO", "found '北京0\\tO', expected a character with its index in the word, a tab and a tag"),
        ("北\tO", "found '北\\tO', expected a character"),
        ("北0 O", "found '北0 O', expected a character"),
        ("北0\tLOC", "'LOC' is not a tag"),
    ],
)
def test_weibo_invalid_rows(workbench: Any, row: str, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(weibo, f"北0\tO\n\n{row}\n")
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


@pytest.mark.parametrize(
    ("module", "raw", "split"),
    [
        (cluener, "cluener/raw_sample/dev.sample.json", "cluener/dev.jsonl"),
        (weibo, "weibo/raw_sample/weiboNER_2nd_conll.dev", "weibo/dev.jsonl"),
    ],
)
def test_real_samples(workbench: Any, corpus: Any, shared_data: Path, module: ModuleType, raw: str, split: str) -> None:
    sentences, ledger = workbench.load(module, shared_data / raw)
    text = (shared_data / raw).read_text(encoding="utf-8")
    mentions = r"\[\d+, \d+\]" if module is cluener else r"\tB-"
    assert len(sentences) == len(text.splitlines() if module is cluener else text.strip().split("\n\n"))
    assert sum(len(s.entities) for s in sentences) == len(re.findall(mentions, text)) > 100
    for sentence, record in zip(sentences, corpus(shared_data / split), strict=False):
        assert (sentence.text, list(sentence.words)) == (record["text"], record["tokens"])
        assert {(e.type, e.range) for e in sentence.entities} == {(e["type"], tuple(e["spans"][0])) for e in record["entities"]}
    reread, written = workbench.round_trip(module, sentences)
    assert [replace(s, id="") for s in reread] == [replace(s, id="") for s in sentences]  # Weibo files have no ids
    assert [s.extra for s in reread] == [s.extra for s in sentences]
    assert (ledger.lost, written.lost) == (0, 0)
    assert ledger.notes.total() == text.count("\ufffd\ufffd")
    if module is weibo:
        out = (workbench.folder / "out.json").read_text(encoding="utf-8")
        assert out == text.replace("\ufffd\ufffd", "\ufffd")


def test_cmeee_round_trip_of_a_real_corpus(workbench: Any, shared_data: Path) -> None:
    sentences, _ = workbench.load(cluener, shared_data / "cluener/raw_sample/dev.sample.json")
    reread, ledger = workbench.round_trip(cmeee, sentences)
    assert (reread, ledger.lost) == (sentences, 0)
