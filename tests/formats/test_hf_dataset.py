"""Hugging Face datasets, compared with pyarrow and, if installed, with ``datasets``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanwise
from spanwise import Entity, Relation, Sentence, Span
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.formats import Ledger, hf_dataset
from spanwise.formats.shared.sample import Sample

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402

NAMES = ["O", "B-Place", "I-Place"]
ROW = {"id": "7", "tokens": ["New", "Oslo", "is", "Oslo"], "ner_tags": [1, 2, 0, 2]}
ENTITIES = (Entity("Place", (Span(0, 2),)), Entity("Place", (Span(3, 4),)))


def table(rows: list[dict[str, Any]], **names: list[str]) -> Any:
    made = pa.Table.from_pylist(rows)
    if not names:
        return made
    features = {column: {"feature": {"names": list(values), "_type": "ClassLabel"}} for column, values in names.items()}
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def parquet(folder: Path, rows: list[dict[str, Any]], **names: list[str]) -> Path:
    pq.write_table(table(rows, **names), folder / "data.parquet")
    return folder / "data.parquet"


def loaded(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(hf_dataset.read(path, ledger, **options)), ledger


def test_numbers_with_names(tmp_path: Path) -> None:
    (sentence,), ledger = loaded(parquet(tmp_path, [ROW], ner_tags=NAMES))
    assert (sentence.id, sentence.words, sentence.entities) == ("7", tuple(ROW["tokens"]), ENTITIES)
    assert dict(ledger.notes) == {"entities that start with I or E instead of B (read as B)": 1}


def test_strings(tmp_path: Path) -> None:
    rows = [{"words": ["a"], "labels": ["O"]}, {"words": ROW["tokens"], "labels": ["B-Place", "E-Place", "O", "S-Place"]}]
    sentences, _ = loaded(parquet(tmp_path, rows))
    assert [(s.id, s.entities) for s in sentences] == [("data-0", ()), ("data-1", ENTITIES)]


def test_tags_without_prefixes(tmp_path: Path) -> None:
    rows = [{"tokens": ["a"], "tags": ["O"]}, {"tokens": ROW["tokens"], "tags": ["Place", "Place", "O", "Place"]}]
    assert loaded(parquet(tmp_path, rows))[0][1].entities == ENTITIES
    numbered = [{"tokens": ROW["tokens"], "tags": [1, 1, 0, 1]}]
    assert loaded(parquet(tmp_path, numbered, tags=["O", "Place"]))[0][0].entities == ENTITIES


def test_columns_and_names_can_be_given(tmp_path: Path) -> None:
    path = parquet(tmp_path, [{"pieces": ROW["tokens"], "marks": ROW["ner_tags"]}])
    with pytest.raises(
        FormatError, match=r"no column of tokens \(tokens, words\); found 'pieces', 'marks'; choose one with hf_da"
    ):
        loaded(path)
    with pytest.raises(FormatError, match="no column 'mark'; found 'pieces', 'marks'; choose one with hf_dataset:tags=NAME"):
        loaded(path, tokens="pieces", tags="mark")
    with pytest.raises(
        FormatError, match=r"data.parquet: row 1: marks has numbers without names; .* hf_dataset:names=O\+B-PER\+I-PER"
    ):
        loaded(path, tokens="pieces", tags="marks")
    (sentence,), _ = loaded(path, tokens="pieces", tags="marks", names=tuple(NAMES))
    assert sentence.entities == ENTITIES
    assert hf_dataset.FORMAT.read_options["names"]("O+B-Place+I-Place") == tuple(NAMES)


def test_other_columns_are_kept(tmp_path: Path) -> None:
    row = {**ROW, "pos_tags": [0, 0, 1, 0], "chunk_tags": [0, 1, 1, 0], "source": "map", "raw": b"x"}
    (sentence,), ledger = loaded(parquet(tmp_path, [row], ner_tags=NAMES, pos_tags=["NNP", "VBZ"], chunk_tags=["B-NP", "I-NP"]))
    assert sentence.pos == ("NNP", "NNP", "VBZ", "NNP")
    assert sentence.extra == {"chunk_tags": ["B-NP", "I-NP", "I-NP", "B-NP"], "source": "map"}
    assert ledger.notes["values that JSON cannot hold (such as bytes), dropped"] == 1


def test_rows_without_tags(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "ner_tags": None}, {**ROW, "ner_tags": [-1] * 4}]
    sentences, ledger = loaded(parquet(tmp_path, rows, ner_tags=NAMES))
    assert [len(s.entities) for s in sentences] == [2, 0, 0]
    assert ledger.notes["rows without tags"] == 2


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({**ROW, "ner_tags": [0]}, "ner_tags: expected a list of 4 tags, found 1"),
        ({**ROW, "ner_tags": [0, 0, 0, 3]}, r"ner_tags: expected numbers below 3, found \[0, 0, 0, 3\]"),
        ({**ROW, "ner_tags": [0, 0, 0, None]}, r"ner_tags: expected numbers below 3, found"),
        ({**ROW, "tokens": ["a", None, "b", "c"]}, "tokens: expected a list of strings"),
        ({**ROW, "tokens": None}, "tokens: expected a list of strings, found None"),
    ],
)
def test_invalid_rows(row: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = parquet(tmp_path, [ROW, row], ner_tags=NAMES)
    with pytest.raises(FormatError, match=f"data.parquet: row 2: {problem}"):
        loaded(path)


def test_invalid_tags(tmp_path: Path) -> None:
    path = parquet(tmp_path, [{"tokens": ["a", "b"], "ner_tags": ["B-X", "I"]}])
    with pytest.raises(FormatError, match="row 1: 'I' is not a tag"):
        loaded(path)


@pytest.mark.parametrize("is_stream", [True, False])
def test_arrow_files(is_stream: bool, tmp_path: Path) -> None:
    made = table([{**ROW, "id": str(n)} for n in range(2500)], ner_tags=NAMES)
    path = tmp_path / "data.arrow"
    opened = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with opened(str(path), made.schema) as writer:
        writer.write_table(made)
    sentences, _ = loaded(path)
    assert [s.id for s in sentences] == [str(n) for n in range(2500)]
    assert sentences[-1].entities == ENTITIES
    assert hf_dataset.sniff(Sample(path))


def saved_folder(folder: Path) -> Path:
    folder.mkdir()
    for number, name in enumerate(["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]):
        made = table([{**ROW, "id": str(number)}], ner_tags=NAMES)
        with pa.ipc.new_stream(str(folder / name), made.schema) as writer:
            writer.write_table(made)
    return folder


def test_saved_folders(tmp_path: Path) -> None:
    folder = saved_folder(tmp_path / "set")
    assert hf_dataset.sniff(Sample(folder))
    assert hf_dataset.FORMAT.can_read(is_folder=True)
    assert [s.id for s in loaded(folder)[0]] == ["0", "1"]
    names = ["data-00001-of-00002.arrow", "data-00000-of-00002.arrow"]
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    assert [s.id for s in loaded(folder)[0]] == ["1", "0"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("state.json", '{"_data_files": [1]}', r"state.json: not a state file of datasets"),
        ("state.json", '{"_data_files": [{"filename": "lost.arrow"}]}', r"lost.arrow: not a valid parquet or arrow file"),
        ("state.json", '{"_indices_data_files": [{"filename": "i"}]}', r"state.json: selects rows by an index file"),
        ("dataset_dict.json", "{}", r"set: contains several splits \(train\); choose the folder of one"),
    ],
)
def test_invalid_folders(name: str, content: str, problem: str, tmp_path: Path) -> None:
    folder = saved_folder(tmp_path / "set")
    (folder / "train").mkdir()
    (folder / name).write_text(content)
    with pytest.raises(FormatError, match=problem):
        loaded(folder)


def test_a_folder_without_data(tmp_path: Path) -> None:
    assert not hf_dataset.sniff(Sample(tmp_path))
    with pytest.raises(FormatError, match="no arrow files in this folder"):
        loaded(tmp_path)


EXAMPLE = [
    Sentence("a", ("Port", "of", "Oslo", ",", "Oslo"),
             (Entity("Place", (Span(2, 3),)), Entity("Org", (Span(0, 3),)), Entity("Place", (Span(4, 5),)),
              Entity("Org", (Span(0, 1), Span(4, 5)))), (Relation("in", 1, 0),), extra={"meta": 1}),
    Sentence("b", ("Oslo", "Bergen"), (Entity("Place", (Span(0, 1),)), Entity("Place", (Span(1, 2),)))),
]  # fmt: skip


def test_written(tmp_path: Path) -> None:
    path, ledger = tmp_path / "out.parquet", Ledger()
    hf_dataset.write(iter(EXAMPLE), path, ledger)
    assert dict(ledger.losses) == {
        ("entities", "discontinuous"): 1,
        ("entities", "overlapping another"): 1,
        ("relations", "not supported by the format"): 1,
    }
    assert pq.read_table(path).to_pylist() == [
        {"id": "a", "tokens": ["Port", "of", "Oslo", ",", "Oslo"], "ner_tags": [1, 2, 2, 0, 3]},
        {"id": "b", "tokens": ["Oslo", "Bergen"], "ner_tags": [3, 3]},
    ]
    sentences, _ = loaded(path)
    assert sentences[0].entities == (EXAMPLE[0].entities[1], EXAMPLE[0].entities[2])
    assert sentences[1] == EXAMPLE[1]


def test_written_with_given_names(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    hf_dataset.write(EXAMPLE[1:], path, Ledger(), names=("O", "B-Org", "I-Org", "B-Place", "I-Place"))
    assert pq.read_table(path).column("ner_tags").to_pylist() == [[3, 3]]
    with pytest.raises(SpanwiseError, match="hf_dataset:names is missing B-Place, I-Place"):
        hf_dataset.write(EXAMPLE[1:], path, Ledger(), names=("O", "B-Org", "I-Org"))


def test_many_rows_are_written_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    hf_dataset.write((Sentence(str(n), ("Oslo",), (Entity("Place", (Span(0, 1),)),)) for n in range(2500)), path, Ledger())
    assert pq.ParquetFile(path).num_row_groups == 3
    assert [s.id for s in loaded(path)[0]] == [str(n) for n in range(2500)]


def test_datasets_reads_the_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    path = tmp_path / "out.parquet"
    hf_dataset.write(EXAMPLE, path, Ledger())
    data = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    labels = data.features["ner_tags"].feature
    assert labels.names == ["O", "B-Org", "I-Org", "B-Place", "I-Place"]
    assert [labels.int2str(row) for row in data["ner_tags"]] == [["B-Org", "I-Org", "I-Org", "O", "B-Place"], ["B-Place"] * 2]
    data.save_to_disk(tmp_path / "saved")
    assert loaded(tmp_path / "saved")[0] == loaded(path)[0]
    data.to_parquet(tmp_path / "again.parquet")
    assert loaded(tmp_path / "again.parquet")[0] == loaded(path)[0]


def test_missing_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, [ROW], ner_tags=NAMES)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(SpanwiseError, match=r"hf_dataset requires pyarrow; run pip install 'spanwise\[datasets\]'"):
        loaded(path)
    with pytest.raises(SpanwiseError, match=r"pip install 'spanwise\[datasets\]'"):
        hf_dataset.write([], tmp_path / "out.parquet", Ledger())


def test_tags_without_a_type_get_the_same_type(tmp_path: Path) -> None:
    path = parquet(tmp_path, [{"tokens": ["a", "b", "c"], "ner_tags": ["B", "I", "O"]}])
    sentences, ledger = loaded(path)
    assert sentences[0].entities == (Entity("Entity", ((0, 2),)),)
    assert ledger.notes == {"entities tagged without a type, read as Entity (set it with hf_dataset:type=NAME)": 1}
    assert next(iter(spanwise.read(path, "hf_dataset:type=Disease"))).entities == (Entity("Disease", ((0, 2),)),)


def test_all_splits_of_a_corpus_use_the_same_tag_numbers(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for split, kind in (("train", "B"), ("test", "A")):
        spanwise.write([Sentence("s", ("a",), (Entity(kind, ((0, 1),)),))], tmp_path / "in" / f"{split}.jsonl")
    spanwise.convert(tmp_path / "in", tmp_path / "out", target_format="hf_dataset")
    tags = {split: pq.read_table(tmp_path / f"out/{split}.parquet")["ner_tags"].to_pylist() for split in ("train", "test")}
    assert tags == {"train": [[3]], "test": [[1]]}
    corpus = spanwise.read_corpus(tmp_path / "out")
    assert {split: corpus[split][0].entities[0].type for split in corpus} == {"train": "B", "test": "A"}


def test_no_tags_are_needed_for_predictions(tmp_path: Path) -> None:
    rows = [{"id": "7", "tokens": ["in", "Oslo"], "source": "map"}]
    for row in (rows[0], {**rows[0], "ner_tags": [0, 99]}):
        path = parquet(tmp_path, [row])
        ledger = Ledger()
        (sentence,) = spanwise.read(path, ledger=ledger, with_annotations=False)
        assert (sentence.words, sentence.entities, sentence.extra) == (("in", "Oslo"), (), {"source": "map"})
        assert dict(ledger.notes) == {}
        with pytest.raises(FormatError, match=r"no column of tags|numbers without names"):
            list(spanwise.read(path))
