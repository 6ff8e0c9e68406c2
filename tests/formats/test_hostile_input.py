"""Whatever a file holds, reading it ends in sentences or in one clear error: never in a traceback, never not at all."""

from __future__ import annotations

import json
import random
import re
import signal
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import TEXTS, put
from strategies import json_values

from spanwise import Sentence, SpanwiseError, read
from spanwise.cli import main
from spanwise.formats import formats

NAMES = tuple(formats())
EVERY_FORMAT = pytest.mark.parametrize("name", NAMES)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Far more time than the block needs; what still takes longer would not have ended."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not at its end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def is_read_or_refused(path: Path, format: str | None = None) -> str:
    """Says which; any other exception is the test's failure."""
    try:
        for sentence in read(path, format):
            assert isinstance(sentence, Sentence)
    except SpanwiseError as error:
        assert str(path.with_suffix("")) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return "refused"
    return "read"


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@settings(max_examples=60, deadline=None)
def test_random_bytes_and_text(content: bytes) -> None:
    with TemporaryDirectory() as folder, within(60):
        for name in NAMES:
            is_read_or_refused(put(name, Path(folder), content), name)
        is_read_or_refused(put("jsonl", Path(folder), content))


@given(values=st.lists(json_values, max_size=4), as_array=st.booleans())
@settings(max_examples=60, deadline=None)
def test_random_json(values: list[Any], as_array: bool) -> None:
    text = json.dumps(values) if as_array else "".join(json.dumps(value) + "\n" for value in values)
    with TemporaryDirectory() as folder, within(60):
        for name in NAMES:
            is_read_or_refused(put(name, Path(folder), text.encode()), name)
        is_read_or_refused(put("jsonl", Path(folder), text.encode()))


Mutation = Callable[[bytes, random.Random], bytes]
NUMBERS = (b"-1", b"0", b"99999999999999999999", b"1e999", b"-0.5", b"9" * 5000, b"NaN", b"2147483648")
INSERTS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b"\t", b" ", b'"', b"\\", b"\\ud800", b"[", b"]", b"{", b"}", b"," b":", b"|",
    b"<", b">", b"&lol;", b"#", b";", b"null", b"[" * 3000, b'{"a":' * 3000, b"<cons>" * 500, "👩\u200d🔬".encode(), "\u2028".encode(), b"T1", b"-DOCSTART-",
)  # fmt: skip


def flipped(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << chance.randrange(8))]) + raw[at + 1 :]


def cut(raw: bytes, chance: random.Random) -> bytes:
    return raw[: chance.randrange(len(raw))]


def without_a_piece(raw: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.choices(range(len(raw)), k=2))
    return raw[:start] + raw[end:]


def with_a_piece_again(raw: bytes, chance: random.Random) -> bytes:
    start, end, at = sorted(chance.choices(range(len(raw)), k=3))
    return raw[:at] + raw[start:end] + raw[at:]


def with_something_inside(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + chance.choice(INSERTS) + raw[at:]


def with_lines_in_another_order(raw: bytes, chance: random.Random) -> bytes:
    lines = raw.splitlines(keepends=True)
    return b"".join(chance.choices(lines, k=len(lines)))


def with_another_number(raw: bytes, chance: random.Random) -> bytes:
    places = list(re.finditer(rb"\d+", raw))
    if not places:
        return raw
    place = chance.choice(places)
    return raw[: place.start()] + chance.choice(NUMBERS) + raw[place.end() :]


def with_windows_line_ends(raw: bytes, chance: random.Random) -> bytes:
    return raw.replace(b"\n", b"\r\n")


def in_another_encoding(raw: bytes, chance: random.Random) -> bytes:
    return raw.decode(errors="replace").encode(chance.choice(("utf-16", "utf-32", "utf-8-sig", "gb18030")))


MUTATIONS: tuple[Mutation, ...] = (
    flipped, cut, without_a_piece, with_a_piece_again, with_something_inside, with_something_inside, with_lines_in_another_order,
    with_another_number, with_another_number, with_windows_line_ends, in_another_encoding,
)  # fmt: skip


def mutants(name: str, folder: Path, count: int, seed: int) -> Iterator[bytes]:
    """The sample of a format, damaged once to three times; of what is compressed, the inside as well."""
    chance = random.Random(f"{name} {seed}")
    good = put(name, folder).read_bytes()
    for number in range(count):
        inside = name == "docbin" and number % 2
        raw = zlib.decompress(good) if inside else good
        for _ in range(chance.randint(1, 3)):
            raw = chance.choice(MUTATIONS)(raw, chance) if raw else raw
        yield zlib.compress(raw) if inside else raw


@EVERY_FORMAT
def test_damaged_files(name: str, tmp_path: Path) -> None:
    outcomes = set()
    with within(120):
        for raw in mutants(name, tmp_path, 150, seed=1):
            path = put(name, tmp_path, raw)
            outcomes.add(is_read_or_refused(path, name))
            is_read_or_refused(path)
    assert outcomes == {"read", "refused"}


JUNK = [None, True, -1, 0, 3, 10**30, 1.5, float("nan"), "", "x", "1", [], ["a"], [[1, 2]], {}, {"start": -5, "end": 99}]
IN_JSON = tuple(name for name, text in TEXTS.items() if text[0] in "[{")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as a container and a key."""
    for key in range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("name", IN_JSON)
def test_wrong_values_everywhere(name: str, tmp_path: Path) -> None:
    text = TEXTS[name]
    records = json.loads(text) if text[0] == "[" else [json.loads(line) for line in text.splitlines()]
    chance = random.Random(name)
    outcomes = set()
    for number in range(len(list(places(records)))):
        for junk in chance.sample(JUNK, 5):
            changed = json.loads(json.dumps(records))
            container, key = list(places(changed))[number]
            container[key] = junk
            path = put(name, tmp_path, "".join(json.dumps(record) + "\n" for record in changed).encode())
            outcomes.add(is_read_or_refused(path, name))
            is_read_or_refused(path)
    assert outcomes == {"read", "refused"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """The exit code of a command and what it says on standard error; an exception is the test's failure."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    code, said = ended.value.code, capsys.readouterr().err
    assert code in (0, 2)
    assert isinstance(code, int)
    if code:
        assert len(said.splitlines()) == 1
    return code, said


@EVERY_FORMAT
def test_the_command_line_reads_or_refuses_in_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    codes = []
    with within(120):
        for raw in (None, *mutants(name, tmp_path, 25, seed=2)):
            path = put(name, tmp_path, raw)
            code, _ = run(capsys, "convert", path, out, "--from", name, "--lossy")
            assert out.exists() == (code == 0)
            out.unlink(missing_ok=True)
            codes.append(code)
    assert codes[0] == 0
    assert 2 in codes
