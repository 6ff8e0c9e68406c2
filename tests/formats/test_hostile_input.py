"""Hostile files: reading ends in sentences or in a one-line error, never in a traceback."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from accounting import CASES, assert_losses_are_counted
from cases import in_case, limit_cpu
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import mutate, with_wrong_values
from samples import NEEDS, TEXTS, path_of, put
from strategies import json_values

from spanwise import FormatError, Sentence, SpanwiseError, read, write
from spanwise.cli import main
from spanwise.formats import formats

NAMES = tuple(name for name in formats() if name not in NEEDS or find_spec(NEEDS[name]))
# A few tests of several formats each: small enough to run in parallel, named in the failure.
GROUPS = pytest.mark.parametrize("names", [NAMES[start::4] for start in range(4)], ids=["a", "b", "c", "d"])


def outcome(path: Path, format: str | None = None) -> str:
    """Return "read" or "refused"; other exceptions fail the test."""
    try:
        for sentence in read(path, format):
            assert isinstance(sentence, Sentence)
    except SpanwiseError as error:
        assert str(path.with_suffix("")) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
        return "refused"
    return "read"


def expect_outcomes(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        for name in NAMES:
            with limit_cpu(60, name):
                outcome(put(name, Path(folder), content), name)
        outcome(put("jsonl", Path(folder), content))


@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
)
@settings(max_examples=40, deadline=None)
def test_random_bytes_and_text(content: bytes) -> None:
    expect_outcomes(content)


@given(values=st.lists(json_values, max_size=4), is_array=st.booleans())
@settings(max_examples=40, deadline=None)
def test_random_json(values: list[Any], is_array: bool) -> None:
    text = json.dumps(values) if is_array else "".join(json.dumps(value) + "\n" for value in values)
    expect_outcomes(text.encode())


def mutants(name: str, folder: Path, count: int, seed: int) -> Iterator[bytes]:
    """Yield damaged copies of the sample of a format; of a compressed one, also its content damaged."""
    generator = random.Random(f"{name} {seed}")
    sample = put(name, folder).read_bytes()
    for number in range(count):
        is_content = name == "docbin" and number % 2
        raw = mutate(zlib.decompress(sample) if is_content else sample, generator)
        yield zlib.compress(raw) if is_content else raw


def expect_round_trip(name: str, path: Path, folder: Path) -> None:
    """Write a damaged file that can be read, and read it reread."""
    case = next((case for case in CASES if case.spec == name), None)
    if case:
        sentences = case.prepare(list(read(path, name)))
        ledger = write(sentences, folder / "out", name, lossy=True)
        assert_losses_are_counted(case, sentences, list(read(folder / "out", name)), ledger)


@GROUPS
def test_damaged_files(names: tuple[str, ...], tmp_path: Path) -> None:
    for name in names:
        outcomes = set()
        with limit_cpu(120, name):
            for raw in mutants(name, tmp_path, 100, seed=1):
                path = put(name, tmp_path, raw)
                outcome(path)
                result = outcome(path, name)
                outcomes.add(result)
                if result == "read" and b"1e999" not in raw:  # readable, but not a number that can be written
                    with TemporaryDirectory() as folder:
                        expect_round_trip(name, path, Path(folder))
        assert outcomes == {"read", "refused"}, name


def test_wrong_json_values(tmp_path: Path) -> None:
    json_names = [name for name, text in TEXTS.items() if text[0] in "[{"]
    assert len(json_names) == 12
    for name in json_names:
        text, generator = TEXTS[name], random.Random(name)
        records = json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]
        outcomes = set()
        with in_case(name):
            for changed in with_wrong_values(records, lambda values: generator.sample(values, 5)):  # noqa: B023
                path = put(name, tmp_path, "".join(json.dumps(record) + "\n" for record in changed).encode())
                outcomes.add(outcome(path, name))
                outcome(path)
        assert outcomes == {"read", "refused"}, name


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Return the exit code and standard error of a command; exceptions fail the test."""
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    code, stderr = exit.value.code, capsys.readouterr().err
    assert code in (0, 2)
    assert isinstance(code, int)
    if code:
        assert len(stderr.splitlines()) == 1
    return code, stderr


@GROUPS
def test_commands_read_or_refuse_in_one_line(
    names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    for name in names:
        codes = []
        with limit_cpu(120, name):
            for raw in (None, *mutants(name, tmp_path, 16, seed=2)):
                path = put(name, tmp_path, raw)
                code, _ = run(capsys, "convert", path, out, "--from", name, "--lossy")
                assert out.exists() == (code == 0)
                out.unlink(missing_ok=True)
                codes.append(code)
        assert codes[0] == 0, name
        assert 2 in codes, name


UNIFORM = {"empty": b"", "blank": b"\n \n", "byte-order mark": b"\xef\xbb\xbf", "nul": b"\0" * 100, "lines": b"\n" * 50_000,
           "one line": b"a" * 150_000, "brackets": b"[" * 150_000}  # fmt: skip


def test_empty_and_uniform_files(tmp_path: Path) -> None:
    for name in NAMES:
        for description, content in UNIFORM.items():
            with limit_cpu(10, f"{name}, {description}"):
                path = put(name, tmp_path, content)
                assert {outcome(path, name), outcome(path)} <= {"read", "refused"}
                if content.strip(b"\n ") == b"" and name not in ("docbin", "hf_dataset", "genia_xml", "bioc_xml", "brat"):
                    assert list(read(path, name)) == []


def test_folders_instead_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        with in_case(name):
            expect_refused_folders(name, tmp_path / name, capsys)


def expect_refused_folders(name: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = path_of(name, root)
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("Nothing.")
    out = root / "out.jsonl"
    assert "no files named train, dev or test" in run(capsys, "convert", folder, out)[1]
    assert run(capsys, "convert", folder, out, "--from", name)[0] == 2
    assert "no such file" in run(capsys, "convert", root / "nothing", out, "--from", name)[1]
    if formats()[name].write:
        (root / "file").write_text("precious")
        wrong = root / "file" if formats()[name].writes_folder else folder
        assert run(capsys, "convert", put("spert", root / "source"), wrong, "--to", name, "--lossy")[0] == 2
        assert (root / "file").read_text() == "precious"
    assert not out.exists()
    assert [path.name for path in folder.iterdir()] == ["notes.md"]


def test_file_names_that_are_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File names may be any bytes, and default ids contain them."""
    for name, text in TEXTS.items():
        with in_case(name):
            path = tmp_path / f"caf\udce9{path_of(name, tmp_path).suffix}"
            path.write_text(text, encoding="utf-8")
            if name == "brat":
                path.with_suffix(".txt").write_bytes(put("brat", tmp_path).with_suffix(".txt").read_bytes())
            assert run(capsys, "convert", path, tmp_path / "out.jsonl", "--from", name, "--lossy")[0] == 0
            assert "".join(s.id for s in read(tmp_path / "out.jsonl")).isprintable()


ENTITY_BOMB = """<?xml version="1.0"?><!DOCTYPE set [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]>
<set><article><sentence>&d;</sentence></article></set>"""
EXTERNAL_ENTITY = """<?xml version="1.0"?><!DOCTYPE set [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<set><article><sentence>&x;</sentence></article></set>"""


@pytest.mark.parametrize("text", [ENTITY_BOMB, EXTERNAL_ENTITY, "<set><article><sentence>&x;</sentence></article></set>"])
def test_xml_entities_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"entit(y|ies)"):
        list(read(put("genia_xml", tmp_path, text.encode()), "genia_xml"))
