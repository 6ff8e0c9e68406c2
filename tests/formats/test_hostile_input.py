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
from accounting import CASES, assert_losses_are_counted, count_lost
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import TEXTS, path_of, put
from strategies import json_values

from spanwise import Entity, FormatError, Relation, Sentence, SpanwiseError, read, write
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
        assert len(str(error)) < 1000  # noqa: PT017
        return "refused"
    return "read"


@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
)
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
    """What can still be read is written and read again like anything else."""
    case = next((case for case in CASES if case.spec == name), None)
    outcomes = set()
    with within(120):
        for raw in mutants(name, tmp_path, 150, seed=1):
            path = put(name, tmp_path, raw)
            is_read_or_refused(path)
            outcome = is_read_or_refused(path, name)
            outcomes.add(outcome)
            if outcome == "read" and case and b"1e999" not in raw:  # which is read, but is no number to write
                sentences = case.prepare(list(read(path, name)))
                with TemporaryDirectory() as folder:
                    ledger = write(sentences, Path(folder) / "out", name, lossy=True)
                    assert_losses_are_counted(case, sentences, list(read(Path(folder) / "out", name)), ledger)
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


NOTHING = {"empty": b"", "blank": b"\n \n", "mark": b"\xef\xbb\xbf", "nul": b"\0" * 100, "lines": b"\n" * 100_000,
           "line": b"a" * 1_000_000, "brackets": b"[" * 1_000_000}  # fmt: skip


@EVERY_FORMAT
@pytest.mark.parametrize("content", NOTHING.values(), ids=list(NOTHING))
def test_files_of_nothing_or_of_one_thing(name: str, content: bytes, tmp_path: Path) -> None:
    with within(60):
        path = put(name, tmp_path, content)
        assert {is_read_or_refused(path, name), is_read_or_refused(path)} <= {"read", "refused"}
        if content.strip(b"\n ") == b"" and name not in ("docbin", "hf_dataset", "genia_xml", "brat"):
            assert list(read(path, name)) == []


@EVERY_FORMAT
def test_a_folder_for_a_file_and_a_file_for_a_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = path_of(name, tmp_path)
    folder.mkdir()
    (folder / "notes.md").write_text("Nothing.")
    out = tmp_path / "out.jsonl"
    assert "no files named train, dev or test" in run(capsys, "convert", folder, out)[1]
    assert run(capsys, "convert", folder, out, "--from", name)[0] == 2
    assert "no such file" in run(capsys, "convert", tmp_path / "nothing", out, "--from", name)[1]
    if formats()[name].write:
        (tmp_path / "file").write_text("precious")
        wrong = tmp_path / "file" if formats()[name].writes_folder else folder
        assert run(capsys, "convert", put("spert", tmp_path / "source"), wrong, "--to", name, "--lossy")[0] == 2
        assert (tmp_path / "file").read_text() == "precious"
    assert not out.exists()
    assert [path.name for path in folder.iterdir()] == ["notes.md"]


def test_names_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file's name may be any bytes, and ids are made of it."""
    for name, text in TEXTS.items():
        path = tmp_path / f"caf\udce9{path_of(name, tmp_path).suffix}"
        path.write_text(text, encoding="utf-8")
        if name == "brat":
            path.with_suffix(".txt").write_bytes(put("brat", tmp_path).with_suffix(".txt").read_bytes())
        assert run(capsys, "convert", path, tmp_path / "out.jsonl", "--from", name, "--lossy")[0] == 0
        assert "".join(s.id for s in read(tmp_path / "out.jsonl")).isprintable()


BOMB = """<?xml version="1.0"?><!DOCTYPE set [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]>
<set><article><sentence>&d;</sentence></article></set>"""
THIEF = """<?xml version="1.0"?><!DOCTYPE set [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<set><article><sentence>&x;</sentence></article></set>"""


@pytest.mark.parametrize("text", [BOMB, THIEF, "<set><article><sentence>&x;</sentence></article></set>"])
def test_xml_that_defines_what_it_means_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"entit(y|ies)"):
        list(read(put("genia_xml", tmp_path, text.encode()), "genia_xml"))


def in_lines(text: str, count: int, *, every: int = 1) -> str:
    return "".join(text.format(n=n, m=n + 1) for n in range(0, count * every, every))


def label_studio(text: str, *regions: dict[str, Any]) -> str:
    results = [{"type": "labels", "value": {"labels": ["X"], **region}} for region in regions]
    return json.dumps([{"data": {"text": text}, "annotations": [{"result": results}]}])


# Each would take minutes, or far more, in a way of reading that looks at everything again for every thing.
TRAPS = {
    "a large record, then small ones": ("spert", lambda: json.dumps(
        [{"tokens": ["abc"] * 600_000, "entities": []}, *[{"tokens": ["a"], "entities": []}] * 40_000])),
    "a record cut off": ("spert", lambda: '[{"tokens": ["' + "a" * 2_000_000),
    "a word of 2 MB": ("conll", lambda: "a\tO\n" + "x" * 2_000_000 + "\tB-X\n"),
    "2 MB of blanks": ("conll", lambda: "a O\nx" + " " * 2_000_000 + "B-X\n"),
    "20,000 columns": ("conll", lambda: ("a" + "\tO" * 20_000 + "\n") * 20),
    "100,000 rows": ("conll", lambda: "a\tB-X\n" * 100_000),
    "10,000 entities on one word": ("brat", lambda: in_lines("T{n}\tX 0 5\tAcute\n", 10_000) + in_lines("R{n}\tr Arg1:T{n} Arg2:T0\n", 10_000)),
    "a long text at the wrong place": ("label_studio", lambda: label_studio("a " * 20_000, *[{"start": 0, "end": 3, "text": "a " * 10_000 + "b"}] * 20)),
    "wrong places in UTF-16": ("label_studio", lambda: label_studio("🌊" + "a " * 20_000, *({"start": n, "end": n + 3, "text": "z"} for n in range(2000)))),
    "wrong texts of long entities": ("pubtator", lambda: "1|t|" + "a b. " * 4000 + "\n" + "1\t0\t20000\ta\tX\n" * 4000),
    "a word of one letter, 10,000 times": ("ade_rel", lambda: ("1|" + "a " * 500 + "|a|100|101|a|200|201\n") * 1000),
    "mentions that are not there": ("ade_rel", lambda: "".join(f"1|{'a ' * 500}|{'b' * 300}{n}|0|9|a|0|1\n" for n in range(1000))),
    "long triples of one word": ("casrel", lambda: json.dumps([{"text": "a " * 100_000, "triple_list": [["a " * 20_000, "r", "a b"]] * 10}])),
    "10,000 triples": ("casrel", lambda: json.dumps([{"text": "a " * 50_000, "triple_list": [["a", "r", f"z{n}"] for n in range(10_000)]}])),
    "10,000 relations of tokens": ("prodigy", lambda: json.dumps({
        "text": "a " * 10_000, "tokens": [{"start": 2 * n, "end": 2 * n + 1} for n in range(10_000)],
        "spans": [{"start": 2 * n, "end": 2 * n + 1, "label": "X"} for n in range(10_000)],
        "relations": [{"head": n, "child": 0, "label": "r"} for n in range(10_000)]})),
    "terms in terms": ("genia_xml", lambda: "<set><article><sentence>" + '<cons sem="G#DNA_x">a ' * 10_000 + "</cons>" * 10_000
                       + "</sentence></article></set>"),
    "names without an end": ("multihead", lambda: "#doc 1\n0\ta\tB-X\t['r'" + " " * 500_000 + "x]\t[0]\n"),
    "full stops": ("doccano", lambda: json.dumps({"text": ".) " * 100_000, "entities": []})),
    "accents": ("doccano", lambda: json.dumps({"text": "a" + "\u0301" * 500_000, "entities": []})),
    "entities inside a word": ("doccano", lambda: json.dumps(
        {"text": "a" * 100_000, "entities": [{"label": "X", "start_offset": n, "end_offset": n + 1} for n in range(20_000)]})),
    "entities across sentences": ("doccano", lambda: json.dumps(
        {"text": "a. " * 30_000, "entities": [{"label": "X", "start_offset": 0, "end_offset": 90_000 - n} for n in range(5000)]})),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), TRAPS.values(), ids=list(TRAPS))
def test_traps(name: str, content: Callable[[], str], tmp_path: Path) -> None:
    path = put(name, tmp_path, content().encode())
    with within(30):
        assert is_read_or_refused(path, name) in ("read", "refused")


def flat() -> Sentence:
    """20,000 words, half of them an entity."""
    entities = tuple(Entity("Drug", ((start, start + 1),)) for start in range(0, 20_000, 2))
    return Sentence("s", tuple(f"w{n % 90}" for n in range(20_000)), entities, (Relation("r", 0, 9999),))


def nested(count: int) -> Sentence:
    """Entities, each in the one before."""
    entities = tuple(Entity("Drug", ((n, 2 * count - n),)) for n in range(count))
    return Sentence("s", ("a",) * 2 * count, entities, (Relation("r", 0, count - 1),))


# These say all words of an entity again: the file of nested ones grows with the square of their number.
WORDY = ("w2ner", "casrel", "cmeee", "cluener", "label_studio", "pubtator", "brat")


@pytest.mark.parametrize("shape", ["flat", "nested"])
@pytest.mark.parametrize("name", [name for name in NAMES if formats()[name].write])
def test_long_sentences(name: str, shape: str, tmp_path: Path) -> None:
    put(name, tmp_path)  # skips where a library is missing
    sentence = flat() if shape == "flat" else nested(400 if name in WORDY else 5000)
    with within(60):
        ledger = write([sentence], tmp_path / "out", name, lossy=True)
        again = list(read(tmp_path / "out", name))
    assert sum(len(s.entities) for s in again) == len(sentence.entities) - count_lost(ledger)["entities"]
