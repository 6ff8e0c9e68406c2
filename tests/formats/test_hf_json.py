"""Hugging Face datasets in JSON. They need no pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanwise
from spanwise import Entity, FormatError, Span, SpanwiseError
from spanwise.formats import detect

WORDS = ["New", "Oslo", "is", "Oslo"]
TAGS = ["B-Place", "I-Place", "O", "B-Place"]
NUMBERS = [1, 2, 0, 1]
ENTITIES = (Entity("Place", (Span(0, 2),)), Entity("Place", (Span(3, 4),)))
FEATURES = {"ner_tags": {"feature": {"names": ["O", "B-Place", "I-Place"], "_type": "ClassLabel"}, "_type": "Sequence"}}


def lines(folder: Path, *rows: Any, name: str = "data.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / name


@pytest.mark.parametrize(("tokens", "tags"), [("tokens", "ner_tags"), ("words", "labels"), ("tokens", "tags")])
@pytest.mark.parametrize("values", [TAGS, ["Place", "Place", "O", "Place"]])
def test_rows_with_words_and_tags(tmp_path: Path, tokens: str, tags: str, values: list[str]) -> None:
    row = {"id": "7", tokens: WORDS, tags: values, "source": "map"}
    path = lines(tmp_path, row)
    assert detect(path).name == "hf_dataset"
    (sentence,) = spanwise.read(path)
    assert (sentence.id, list(sentence.words), sentence.entities, sentence.extra) == ("7", WORDS, ENTITIES, {"source": "map"})
    (tmp_path / "data.json").write_text("\ufeff" + json.dumps([row, row], indent=2))
    assert [s.entities for s in spanwise.read(tmp_path / "data.json")] == [ENTITIES] * 2


def test_numbers_need_names(tmp_path: Path) -> None:
    path = lines(tmp_path, {"tokens": WORDS, "ner_tags": NUMBERS})
    with pytest.raises(FormatError, match=r"data.jsonl:1: ner_tags has numbers without names; .* hf_dataset:names=O\+B-PER"):
        list(spanwise.read(path))
    (sentence,) = spanwise.read(path, "hf_dataset:names=O+B-Place+I-Place")
    assert sentence.entities == ENTITIES
    (bare,) = spanwise.read(path, with_annotations=False)
    assert (list(bare.words), bare.entities) == (WORDS, ())


def test_names_of_numbers_in_dataset_info(tmp_path: Path) -> None:
    for name in ("train.json", "validation.json"):
        lines(tmp_path, {"tokens": WORDS, "ner_tags": NUMBERS}, name=name)
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    corpus = spanwise.read_corpus(tmp_path)
    assert [corpus[split][0].entities for split in ("train", "dev")] == [ENTITIES] * 2


def test_errors_name_the_line(tmp_path: Path) -> None:
    path = lines(tmp_path, {"tokens": WORDS, "tags": TAGS}, {"tokens": WORDS, "tags": ["O"]})
    with pytest.raises(FormatError, match=r"data.jsonl:2: tags: expected a list of 4 tags, found 1$"):
        list(spanwise.read(path))
    path = lines(tmp_path, {"tokens": WORDS, "tags": TAGS}, 7)
    with pytest.raises(FormatError, match=r"data.jsonl:2: expected an object with tokens and tags, found 7$"):
        list(spanwise.read(path))


def test_keys_of_other_names_are_suggested(tmp_path: Path) -> None:
    path = lines(tmp_path, {"sentence": WORDS, "bio": TAGS})
    with pytest.raises(SpanwiseError, match=r"'bio' looks like tags; use (hf_dataset:tokens=sentence,tags=bio)$") as caught:
        detect(path)
    (sentence,) = spanwise.read(path, str(caught.value).rpartition("use ")[2])
    assert sentence.entities == ENTITIES
