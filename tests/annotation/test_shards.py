"""Input files, their shards and their rows: every row is in one shard."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from spanwise.annotation.reading import read_rows
from spanwise.annotation.shards import choose_shard_size, plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.core.errors import FormatError, SpanwiseError


def texts(source: Path, shard_size: int) -> list[list[str]]:
    shards = plan_shards(find_sources(str(source)), shard_size)
    return [[text for rows in read_rows(shard, "text") for text in rows.texts] for shard in shards]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_every_line_is_in_one_shard(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "a.txt"
    lines = ["first", "", "ä" * 30, "x\r", "y", " ", "last"]
    path.write_bytes("\n".join(lines).encode() + end)
    expected = [line.removesuffix("\r") for line in lines]
    for size in range(1, path.stat().st_size + 2):
        assert [text for shard in texts(path, size) for text in shard] == expected, size


def test_every_row_of_a_parquet_file_is_in_one_shard(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [f"text {n}" for n in range(100)]
    pq.write_table(pa.table({"n": range(100), "text": rows}), tmp_path / "a.parquet", row_group_size=7)
    for size in (1, 50, 300, 10_000):
        shards = texts(tmp_path / "a.parquet", size)
        assert [text for shard in shards for text in shard] == rows, size
    assert len(texts(tmp_path / "a.parquet", 300)) > 3


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_batches_of_long_texts_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setattr("spanwise.annotation.reading.TEXT_BYTES", 10_000)
    rows = [{"text": f"{n} " * 500} for n in range(1000, 1020)]
    if format == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=8)
    else:
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (shard,) = plan_shards(find_sources(str(tmp_path)), 1_000_000)
    batches = [batch.texts for batch in read_rows(shard, "text")]
    assert [text for batch in batches for text in batch] == [row["text"] for row in rows]
    assert max(map(len, batches)) <= 4


@pytest.mark.parametrize(("name", "line"), [("a.txt", "Oslo"), ("a.jsonl", '{"text": "Oslo"}'), ("a.txt.gz", "Oslo")])
def test_a_byte_order_mark_is_not_part_of_the_first_row(tmp_path: Path, name: str, line: str) -> None:
    content = f"{line}\r\n{line}\r\n".encode("utf-8-sig")
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert texts(tmp_path / name, 1000) == [["Oslo", "Oslo"]]


def test_compressed_lines(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    content = b'{"text": "one"}\n\n{"text": "two"}'
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
    compress = partial(pa.compress, codec="zstd", asbytes=True)
    (tmp_path / "b.jsonl.zst").write_bytes(compress(content) + compress(b'\n{"text": "three"}'))
    assert texts(tmp_path, 4) == [["one", "two"], ["one", "two", "three"]]


def test_files_of_folders_and_globs(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.txt", "sub/c.parquet", "_SUCCESS", ".hidden.txt", "_logs/x.txt", "README.md", "sub/d.txt~"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert [source.name for source in find_sources(str(tmp_path))] == ["a", "b", "sub/c"]
    assert [source.name for source in find_sources(str(tmp_path / "**" / "*.[jt]*"))] == ["_logs/x", "a", "b"]
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(SpanwiseError, match="would have the same output"):
        find_sources(str(tmp_path))
    for pattern, problem in (
        ("README.md", "unknown suffix"), ("none.txt", "no such file or folder"), ("*.csv", "no files to annotate"),
    ):  # fmt: skip
        with pytest.raises(SpanwiseError, match=problem):
            find_sources(str(tmp_path / pattern))


def test_a_small_input_is_one_shard_and_a_large_one_many(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 1000)
    sources = find_sources(str(tmp_path))
    assert len(plan_shards(sources, choose_shard_size(sources))) == 1


def test_damaged_lines_are_problems_of_their_rows(tmp_path: Path) -> None:
    lines = [
        b'{"text": "ok"}',
        b'{"text": ',
        b"[1]",
        b'{"body": "x"}',
        b"\xff",
        b'{"text": "x", "entities": 1}',
        b'{"text": null}',
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (shard,) = plan_shards(find_sources(str(tmp_path)), 1000)
    (rows,) = read_rows(shard, "text")
    problems = [rows.problems.get(index, "") for index in range(len(lines))]
    for problem, expected in zip(
        problems, ["", "not valid JSON", "expected a JSON object, found list", "no column 'text'", "not ", "already has", ""],
        strict=True,
    ):  # fmt: skip
        assert problem.startswith(expected)
    assert rows.records([3]) == [{"body": "x"}]
    assert json.dumps(rows.records([4]))


def archive_record(kind: str, url: str, content: str) -> bytes:
    body = content.encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-1234567890ab>\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: {'application/http; msgtype=response' if kind == 'response' else 'text/plain'}\r\n\r\n"
    )
    return gzip.compress(head.encode() + body + b"\r\n\r\n")


def test_web_archives(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc", reason="FastWARC is not installed (pip install 'spanwise[warc]')")
    pytest.importorskip("resiliparse", reason="Resiliparse is not installed (pip install 'spanwise[warc]')")
    page = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body><p>Né à Oslo</p></body></html>"
    image = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nx"
    records = [
        archive_record("conversion", "http://a", "In Oslo."), archive_record("response", "http://b", page),
        archive_record("response", "http://c", image), archive_record("conversion", "http://d", "In Quito. " * 9),
    ]  # fmt: skip
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(records))
    (shard,) = plan_shards(find_sources(str(tmp_path)), 10)
    (rows,) = read_rows(shard, "text")
    assert rows.texts == ["In Oslo.", "Né à Oslo", "In Quito. " * 9]
    assert rows.records([1]) == [{"url": "http://b", "date": "2024-01-01T00:00:00Z", "text": "Né à Oslo"}]
    path.write_bytes(b"".join(records)[:-12])
    with pytest.raises(FormatError, match=r"a.warc.gz: ends within a record"):
        list(read_rows(shard, "text"))
