"""All formats: written data is read back and detected, and losses are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from accounting import CASES, Case, assert_losses_are_counted, count_lost
from cases import in_case
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NEEDS, put
from strategies import corpora

from spanwise import Sentence, convert, read, write
from spanwise.formats import Ledger, LossError, detect, formats

# Each example is tried with all of them; the failure names the format.
AVAILABLE = [case for case in CASES if case.name not in NEEDS or find_spec(NEEDS[case.name])]


def test_every_writable_format_is_tested() -> None:
    assert {case.name for case in CASES} == {name for name, format in formats().items() if format.write}


@contextmanager
def output(case: Case, has_extension: bool = True) -> Iterator[Path]:
    """Yield a path to write to, in a temporary folder; name the case of a failure."""
    extension = (*formats()[case.name].extensions, "")[0] if has_extension else ""
    with TemporaryDirectory() as folder, in_case(str(case)):
        yield Path(folder) / f"out{extension}"


@given(sentences=corpora())
@settings(max_examples=25, deadline=None)
def test_everything_but_counted_losses_is_read_back(sentences: list[Sentence]) -> None:
    for case in AVAILABLE:
        with output(case) as path:
            prepared = case.prepare(sentences)
            writing, reading = Ledger(), Ledger()
            write(iter(prepared), path, case.spec, ledger=writing, lossy=True)
            reread = list(read(path, case.reading or case.name, reading))
            assert str(reading) == ""
            assert_losses_are_counted(case, prepared, reread, writing)


@given(sentences=corpora())
@settings(max_examples=60, deadline=None)
def test_the_interchange_format_supports_everything(sentences: list[Sentence]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        ledger = write(sentences, path, lossy=True)
        reread = list(read(path))
    assert reread == sentences
    assert ledger.lost == 0
    if not ledger.notes:  # extra keys that the format itself defines are dropped with a note
        assert list(map(dataclasses.asdict, reread)) == list(map(dataclasses.asdict, sentences))


@given(sentences=corpora(with_extra=False), has_extension=st.booleans())
@settings(max_examples=25, deadline=None)
def test_written_files_are_detected(sentences: list[Sentence], has_extension: bool) -> None:
    for case in AVAILABLE:
        with output(case, has_extension) as path:
            write(case.prepare(sentences), path, case.spec, lossy=True)
            if any(sentence.entities for sentence in read(path, case.reading or case.name)):
                assert detect(path).name == case.name


@given(sentences=corpora())
@settings(max_examples=10, deadline=None)
def test_conversion_refuses_exactly_the_lossy_cases(sentences: list[Sentence]) -> None:
    for case in AVAILABLE:
        with output(case) as path:
            expect_refusal_of_losses(case, sentences, path)


def expect_refusal_of_losses(case: Case, sentences: list[Sentence], path: Path) -> None:
    source, direct = path.with_name("source.jsonl"), path.with_name("direct")
    write(sentences, source, lossy=True)
    expected = write(read(source), direct, case.spec, lossy=True).losses
    if expected:
        with pytest.raises(LossError) as caught:
            convert(source, path, "jsonl", case.spec)
        assert caught.value.ledger.losses == expected
        assert {file.name for file in path.parent.iterdir()} == {"source.jsonl", "direct"}
    result = convert(source, path, "jsonl", case.spec, lossy=bool(expected))
    assert result.ledger.losses == expected
    assert result.read["all"]["entities"] == sum(len(sentence.entities) for sentence in sentences)
    reading = case.reading or case.name
    assert [s.entities for s in read(path, reading)] == [s.entities for s in read(direct, reading)]


def test_conversion_of_every_format_to_every_other(tmp_path: Path) -> None:
    """Files with metadata: keys of the source format must not change the detected target format."""
    for name in formats():
        if name in NEEDS and not find_spec(NEEDS[name]):
            continue
        source = put(name, tmp_path / name)
        assert detect(source).name == name
        before = list(read(source, name))
        assert any(sentence.entities for sentence in before), name
        for number, case in enumerate(case for case in AVAILABLE if ":" not in case.spec):
            path = tmp_path / name / f"{number}{(*formats()[case.name].extensions, '')[0]}"
            with in_case(f"{name} to {case}"):
                missing = count_lost(convert(source, path, name, case.spec, lossy=True).ledger)
                after = list(read(path, case.name))
                assert detect(path).name == case.name or not any(sentence.entities for sentence in after)
                assert sum(len(s.entities) for s in after) == sum(len(s.entities) for s in before) - missing["entities"]
                relations = [sum(len(s.relations) + len(s.links) for s in sentences) for sentences in (before, after)]
                assert relations[1] == relations[0] - missing["relations"]
