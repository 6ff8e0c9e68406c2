"""Small files that would expand to gigabytes, or take minutes, are refused; the error names the limit."""

from __future__ import annotations

import json
import multiprocessing
import resource
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import limit_cpu
from samples import put

from spanwise import SpanwiseError, read
from spanwise.runs.folder import RunFolder

MEMORY = 1 << 30
SECONDS = 10


def refusal(function: Callable[[], object]) -> str:
    """Return the message of the ``SpanwiseError`` that a function raises, in a fork with 1 GB more memory."""
    pytest.importorskip("resource")
    with multiprocessing.get_context("fork").Pool(1, limit_memory) as pool:
        return pool.apply(_message_of, (function,))


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def _message_of(function: Callable[[], object]) -> str:
    with limit_cpu(SECONDS, "hostile file"):
        try:
            function()
        except SpanwiseError as error:
            return str(error)
    return "not refused"


class Reading:
    """Reads a file; picklable, unlike a lambda."""

    def __init__(self, path: Path, format: str) -> None:
        self.path, self.format = path, format

    def __call__(self) -> None:
        for _ in read(self.path, self.format):
            pass


def write_parquet(path: Path, tokens: object, tags: object) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(arrow.table({"tokens": tokens, "ner_tags": tags}), path)


def repeated(value: object, count: int) -> object:
    """Return an array of one row, which has a value many times."""
    arrow = pytest.importorskip("pyarrow")
    values = arrow.nulls(count) if value is None else arrow.repeat(value, count)
    return arrow.ListArray.from_arrays(arrow.array([0, count], arrow.int32()), values)


@pytest.mark.parametrize(("value", "count"), [("a", 10_000_000), (None, 30_000_000), ("a" * 100_000, 20_000)])
def test_a_parquet_that_expands_is_refused(value: object, count: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    if count * len(str(value)) > MEMORY:  # a dictionary of one long word
        write_bomb_of_long_words(path, str(value), count)
    else:
        write_parquet(path, repeated(value, count), repeated("O", count))
    assert path.stat().st_size < 200_000
    assert "limit" in refusal(Reading(path, "hf_dataset"))


def write_bomb_of_long_words(path: Path, word: str, count: int) -> None:
    arrow = pytest.importorskip("pyarrow")
    indices = arrow.repeat(arrow.scalar(0, arrow.int32()), count)
    words = arrow.DictionaryArray.from_arrays(indices, arrow.array([word]))
    write_parquet(path, arrow.ListArray.from_arrays(arrow.array([0, count], arrow.int32()), words), repeated("O", count))


def test_an_arrow_file_that_expands_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"tokens": repeated(None, 30_000_000), "ner_tags": repeated(None, 30_000_000)})
    path = tmp_path / "bomb.arrow"
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 10_000
    assert "limit" in refusal(Reading(path, "hf_dataset"))


def test_a_compressed_arrow_file_that_expands_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"tokens": repeated(0, 30_000_000)})
    path = tmp_path / "bomb.arrow"
    options = arrow.ipc.IpcWriteOptions(compression="zstd")
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 1 << 20
    assert "limit" in refusal(Reading(path, "hf_dataset"))


def test_repeated_rows_are_read(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    rows = 20_000
    write_parquet(tmp_path / "rows.parquet", arrow.array([["Oslo", "rains"]] * rows), arrow.array([["B-Loc", "O"]] * rows))
    assert sum(len(sentence.entities) for sentence in read(tmp_path / "rows.parquet")) == rows


def test_a_docbin_that_expands_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    compressor = zlib.compressobj(9)
    raw = b"".join([*(compressor.compress(bytes(1 << 24)) for _ in range(12)), compressor.flush()])
    assert len(raw) < 2 << 20
    assert "limit" in refusal(Reading(put("docbin", tmp_path, raw), "docbin"))


def test_a_docbin_with_one_huge_document_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    import srsly

    tokens = 4_000_000
    message = {
        "version": "0.1", "attrs": [65], "tokens": bytes(8 * tokens), "spaces": bytes(tokens), "lengths": tokens.to_bytes(4, "little"),
        "strings": [], "cats": [{}], "flags": [{"has_unknown_spaces": False}], "span_groups": [],
    }  # fmt: skip
    path = put("docbin", tmp_path, zlib.compress(srsly.msgpack_dumps(message)))
    assert path.stat().st_size < 100_000
    assert "limit" in refusal(Reading(path, "docbin"))


GENIA = "<set><article><sentence>{}</sentence></article></set>"


def test_attribute_defaults_in_genia_xml_are_refused(tmp_path: Path) -> None:
    text = f'<!DOCTYPE set [<!ATTLIST cons lex CDATA "{"a" * 40_000}" sem CDATA "G#virus">]>' + GENIA.format(
        "<cons>b</cons>" * 100_000
    )
    assert "attributes" in refusal(Reading(put("genia_xml", tmp_path, text.encode()), "genia_xml"))


@pytest.mark.parametrize("token", ["<!--{}-->", '<cons sem="{}">a</cons>', "<?x {}?>"])
def test_a_large_xml_comment_is_refused(token: str, tmp_path: Path) -> None:
    path = put("genia_xml", tmp_path, GENIA.format(token.format("a" * 60_000_000)).encode())
    assert "limit" in refusal(Reading(path, "genia_xml"))


def test_xml_comments_below_the_limit_are_skipped(tmp_path: Path) -> None:
    path = put("genia_xml", tmp_path, GENIA.format("Oslo" + "<!--" + "a" * 500_000 + "-->" + " rains").encode())
    assert [sentence.words for sentence in read(path, "genia_xml")] == [("Oslo", "rains")]


class ReadingConfig:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> None:
        RunFolder(self.folder).read_config()


ALIASES = "recipe: x\nencoder: {kind: static}\nhead:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [(ALIASES, "aliases"), ("recipe: x\nhead: " + "[" * 3000, "nested"), ("recipe: " + "[], " * 1_000_000, "limit")],
    ids=["aliases", "nesting", "size"],
)
def test_a_yaml_bomb_in_config_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    message = refusal(ReadingConfig(tmp_path))
    assert problem in message
    assert "config.yaml" in message


@pytest.mark.parametrize("name", ["../secret.arrow", "/etc/passwd", "a/../../secret.arrow", ".."])
def test_a_state_json_that_points_outside_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "data"
    folder.mkdir()
    put("hf_dataset", tmp_path).rename(tmp_path / "secret.arrow")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with pytest.raises(SpanwiseError, match="outside"):
        list(read(folder, "hf_dataset"))
