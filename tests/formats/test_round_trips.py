"""What must hold for every format: what is written is read again, what is lost is counted, what is written is recognised."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from accounting import CASES, Case, assert_losses_are_counted, count_lost
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NEEDS, put
from strategies import corpora

from spanwise import Sentence, convert, read, write
from spanwise.formats import Ledger, LossError, detect, formats

EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=str)


def test_every_format_that_can_be_written_is_here() -> None:
    assert {case.name for case in CASES} == {name for name, format in formats().items() if format.write}


def is_missing(case: Case) -> bool:
    """True when the library that a format needs is not installed."""
    return case.name in NEEDS and find_spec(NEEDS[case.name]) is None


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    case = request.node.callspec.params.get("case") if hasattr(request.node, "callspec") else None
    if case and is_missing(case):
        pytest.skip(f"{NEEDS[case.name]} is not installed")


@contextmanager
def target(case: Case, plain: bool = False) -> Iterator[Path]:
    """A path to write to; a plain one has a name that tells nothing."""
    extension = "" if plain else (*formats()[case.name].extensions, "")[0]
    with TemporaryDirectory() as folder:
        yield Path(folder) / f"out{extension}"


@EVERY_CASE
@given(sentences=corpora())
@settings(max_examples=40, deadline=None)
def test_what_is_not_counted_as_lost_is_read_again(case: Case, sentences: list[Sentence]) -> None:
    sentences = case.prepare(sentences)
    writing, reading = Ledger(), Ledger()
    with target(case) as path:
        write(iter(sentences), path, case.spec, ledger=writing, lossy=True)
        again = list(read(path, case.reading or case.name, reading))
    assert str(reading) == ""
    assert_losses_are_counted(case, sentences, again, writing)


@given(sentences=corpora())
@settings(max_examples=100, deadline=None)
def test_the_interchange_format_holds_everything(sentences: list[Sentence]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        ledger = write(sentences, path, lossy=True)
        again = list(read(path))
    assert again == sentences
    assert ledger.lost == 0
    if not ledger.notes:  # what is kept besides cannot have a key of the format itself
        assert list(map(dataclasses.asdict, again)) == list(map(dataclasses.asdict, sentences))


@EVERY_CASE
@given(sentences=corpora(with_extra=False), plain=st.booleans())
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_recognised(case: Case, sentences: list[Sentence], plain: bool) -> None:
    with target(case, plain) as path:
        write(case.prepare(sentences), path, case.spec, lossy=True)
        if any(sentence.entities for sentence in read(path, case.reading or case.name)):
            assert detect(path).name == case.name


@EVERY_CASE
@given(sentences=corpora())
@settings(max_examples=10, deadline=None)
def test_conversion_refuses_exactly_what_would_lose_something(case: Case, sentences: list[Sentence]) -> None:
    with target(case) as path:
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


@pytest.mark.parametrize("name", formats())
def test_every_format_into_every_other(name: str, tmp_path: Path) -> None:
    """With what such files have besides: a key of the one format must not make the other look like a third."""
    source = put(name, tmp_path / "source")
    assert detect(source).name == name
    before = list(read(source, name))
    assert any(sentence.entities for sentence in before)
    for number, case in enumerate(case for case in CASES if ":" not in case.spec and not is_missing(case)):
        path = tmp_path / f"{number}{(*formats()[case.name].extensions, '')[0]}"
        missing = count_lost(convert(source, path, name, case.spec, lossy=True).ledger)
        after = list(read(path, case.name))
        assert detect(path).name == case.name or not any(sentence.entities for sentence in after)
        assert sum(len(s.entities) for s in after) == sum(len(s.entities) for s in before) - missing["entities"]
        relations = [sum(len(s.relations) + len(s.links) for s in sentences) for sentences in (before, after)]
        assert relations[1] == relations[0] - missing["relations"]
