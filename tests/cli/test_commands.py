"""Commands: help, errors and results."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import Runner

import spanwise
from spanwise.data import FOLDER

DEV = str(FOLDER / "dev.jsonl")


def test_help_and_version(run: Runner) -> None:
    assert "convert" in run("--help").out
    assert "convert" in run().out
    assert run("--version").out.startswith("spanwise 0.")
    for command in ("convert", "describe", "formats", "evaluate"):
        result = run(command, "--help")
        assert result.code == 0
        assert "Usage" in result.out


@pytest.mark.parametrize(
    "arguments",
    [
        "describe g.jsonl --json g.jsonl",
        "describe corpus --json corpus/train.jsonl",
        "describe run --json run/labels.json",
        "evaluate --pred p.jsonl --gold g.jsonl --json g.jsonl",
        "evaluate --pred p.jsonl --gold g.jsonl --json p.jsonl",
        "evaluate --pred p.jsonl --gold g.jsonl --train corpus --json corpus/train.jsonl",
        "evaluate run corpus --json corpus/train.jsonl",
        "evaluate run corpus --json run/config.yaml",
        "evaluate run corpus --json run/static_encoder.json",
        "evaluate run corpus --json run/head.onnx",
        "describe texts --json texts/a.ann",
        "compare g.jsonl p.jsonl --gold g.jsonl --json link.jsonl",
        "compare a=g.jsonl b=g.jsonl,p.jsonl --gold g.jsonl --json p.jsonl",
        "compare g.jsonl p.jsonl --data corpus --split train --json corpus/train.jsonl",
        "compare g.jsonl p.jsonl --gold g.jsonl --train corpus --json corpus/train.jsonl",
    ],
)
def test_json_never_overwrites_an_input(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, names in {
        ".": ("g.jsonl", "p.jsonl"),
        "corpus": ("train.jsonl",),
        "run": ("config.yaml", "labels.json", "static_encoder.json", "head.onnx"),
        "texts": ("a.txt", "a.ann"),
    }.items():
        Path(folder).mkdir(exist_ok=True)
        for name in names:
            Path(folder, name).write_text('{"id": "s", "tokens": ["Oslo"], "entities": []}\n')
    Path("link.jsonl").symlink_to("g.jsonl")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = run(*arguments.split())
    target = arguments.split()[-1]
    overwritten = f"a file of the run folder {tmp_path / 'run'}" if target.startswith("run/") else "an input"
    message = f"{target}: the output would overwrite {overwritten}; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", message)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_json_next_to_the_data_can_be_overwritten(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"id": "s", "tokens": ["Oslo"], "entities": []}\n')
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "a.txt").write_text("Oslo grew.")
    (tmp_path / "brat" / "a.ann").write_text("T1\tPlace 0 4\tOslo\n")
    for folder in (tmp_path, tmp_path / "brat"):
        for _ in range(2):
            assert run("describe", folder, "--json", folder / "counts.json").code == 0
        assert json.loads((folder / "counts.json").read_text())


COMMANDS = [
    *(
        "train",
        "evaluate",
        "compare",
        "analyze",
        "predict",
        "serve",
        "export",
        "convert",
        "describe",
        "formats",
        "recipes",
        "demo",
    ),
    *("vectors", "vectors train", "vectors similar", "vectors analogies", "vectors convert"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_lines(run: Runner, command: str) -> None:
    shown = run(*command.split(), "--help").out
    assert shown.startswith(f"Usage: spanwise {command} ")
    assert not [mark for mark in ("[[", "]]", "...}", "...]...") if mark in shown], "brackets and dots appear once"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["convert", "letter", "out.jsonl"], "--from"),
        (["describe", "letter"], "--from"),
        (["train", "letter", "--out", "run"], "--from"),
        (["vectors", "train", "letter", "--out", "v"], "--from"),
        (["evaluate", "--pred", "letter", "--gold", DEV], "--pred-format"),
        (["evaluate", "--pred", DEV, "--gold", "letter"], "--gold-format"),
        (["evaluate", "--pred", DEV, "--gold", DEV, "--train", "letter"], "--gold-format"),
        (["compare", f"a={DEV}", "b=letter", "--gold", DEV], "--pred-format"),
        (["compare", f"a={DEV}", f"b={DEV}", "--gold", "letter"], "--gold-format"),
        (["compare", f"a={DEV}", f"b={DEV}", "--data", "corpus"], "--gold-format"),
        (["analyze", "--pred", "letter", "--gold", DEV, "--out", "out"], "--pred-format"),
        (["analyze", "--pred", DEV, "--gold", DEV, "--against", "b=letter", "--out", "out"], "--pred-format"),
        (["analyze", "--pred", DEV, "--gold", "letter", "--out", "out"], "--gold-format"),
    ],
)
def test_undetected_format_names_the_option(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    for name in ("letter", "corpus/test.md"):
        (tmp_path / name).write_text("Dear all, Oslo is cold. Rain came.\n")
    result = run(*arguments)
    file = "corpus/test.md" if "corpus" in arguments else "letter"
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith(f"{file}: cannot detect the format; set the format with {option} (")
    assert f" {option} " in run(*arguments[: 1 + (arguments[0] == "vectors")], "--help").out


def test_start_without_heavy_imports() -> None:
    code = (
        "import sys, spanwise, spanwise.cli; "
        "print([m for m in ('torch', 'transformers', 'numpy', 'numba', 'spacy', 'pyarrow', 'accelerate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["convert"], "spanwise convert: missing argument 'IN' (see spanwise convert --help)"),
        (["convrt"], "spanwise: no such command 'convrt'"),
        (["describe", "x", "--jso", "y"], "spanwise describe: no such option"),
        (
            ["evaluate", "RUN", "DATA", "--from", "jsonl"],
            "spanwise evaluate: no such option: --from (Possible options: --gold-format, --pred-format)",
        ),
        (["train", "DATA", "-o", "RUN"], "spanwise train: no such option: -o (Possible options: --out)"),
        (["compare", "A", "--form", "conll"], "spanwise compare: no such option: --form"),
        (
            ["annotate", "RUN", "IN", "--out", "OUT"],
            "spanwise annotate: no such option: --out; the output is the argument OUTPUT (see",
        ),
        (["convert", "IN", "-o", "OUT"], "spanwise convert: no such option: -o; the output is the argument OUT (see"),
        (["describe", "missing.jsonl"], "missing.jsonl: no such file or folder"),
        (["describe", str(FOLDER), "--from", "jsonnl"], "unknown format 'jsonnl' (did you mean 'jsonl'?)"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(run: Runner, arguments: list[str], line: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.err.startswith(line)
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_describe_as_text_and_json(run: Runner, tmp_path: Path) -> None:
    result = run("describe", FOLDER, "--json", tmp_path / "d.json")
    assert result.code == 0
    assert "sentences" in result.out
    train = json.loads((tmp_path / "d.json").read_text())["splits"]["train"]
    records = [json.loads(line) for line in (FOLDER / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert train["sentences"] == len(records)
    assert train["words"] == sum(len(r["tokens"]) for r in records)
    assert train["entities"] == sum(len(r["entities"]) for r in records)
    assert train["relations"] == sum(len(r.get("relations", ())) for r in records)
    assert sum(train["types"].values()) == train["entities"]
    assert json.loads(run("describe", FOLDER, "--json", "-").out)["splits"]["train"] == train


def test_convert_prints_counts(run: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out.conll"
    rejected = run("convert", FOLDER / "dev.jsonl", out)
    assert rejected.code == 2
    assert "entities (overlapping another)" in rejected.err
    assert not out.exists()
    done = run("convert", FOLDER / "dev.jsonl", out, "--lossy")
    assert done.code == 0
    read, _, written = done.out.splitlines()[0].partition("; written: ")
    assert read.startswith("dev: 126 sentences, ")
    entities = sum(len(sentence.entities) for sentence in spanwise.read(out))
    assert written == f"126 sentences, {entities} entities, 0 relations"
    assert "lost: " in done.err
    assert out.exists()


def test_write_errors_have_no_traceback(run: Runner, tmp_path: Path) -> None:
    result = run("convert", FOLDER / "dev.jsonl", tmp_path / "no" / "such" / "out.jsonl")
    assert result.code == 2
    assert result.err == f"{tmp_path / 'no' / 'such'}: no such folder; create it first\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "describe missing.jsonl --json no/out.json",
        "evaluate missing data.jsonl --json no/out.json",
        "compare a=data.jsonl b=data.jsonl --gold missing.jsonl --json no/out.json",
        "annotate missing data.jsonl out --json no/out.json",
        "suggest missing data.jsonl --output no/out.jsonl",
    ],
)
def test_an_impossible_output_is_reported_before_any_work(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    """Nothing is read or loaded yet: other arguments are wrong too."""
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text('{"tokens": ["a"]}\n')
    result = run(*arguments.split())
    assert (result.code, result.err) == (2, f"{tmp_path / 'no'}: no such folder; create it first\n")
    Path("no/out.json").mkdir(parents=True)
    Path("no/out.jsonl").mkdir()
    assert run(*arguments.split()).err.endswith(": expected a file, found a folder\n")


def test_formats_command(run: Runner) -> None:
    output = run("formats").out
    for name in ("jsonl", "conll", "brat", "spert", "label_studio", "docbin"):
        assert f"{name} (read" in output
    one = run("formats", "label-studio").out
    assert one.startswith("label_studio (read, write)\n")
    assert one in output
    assert "brat" not in one
    assert run("formats", "brta").err.startswith("unknown format 'brta' (did you mean 'brat'?); known: ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_conversion_leaves_no_files(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "in.jsonl").write_text('{"tokens": ["a"]}\n' * 300_000)
    (tmp_path / "out").mkdir()
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may ignore it
    code += "from spanwise.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "convert", str(tmp_path / "in.jsonl"), str(tmp_path / "out/x.conll")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not list((tmp_path / "out").iterdir()):  # until it starts to write
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert b"Traceback" not in errors
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="this system has no /dev/fd")
@pytest.mark.parametrize("options", [[], ["--from", "jsonl"]])
def test_convert_reads_a_pipe(tmp_path: Path, options: list[str]) -> None:
    code = "import sys; from spanwise.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "convert", "/dev/stdin", str(tmp_path / "x.jsonl"), *options]
    done = subprocess.run(command, input=b'{"tokens": ["a"]}\n' * 20_000, capture_output=True, check=True)
    assert done.stdout.startswith(b"all: 20,000 sentences, 0 entities")


@pytest.mark.parametrize("command", ["train DATA", "vectors train CORPUS"])
def test_an_option_without_its_value_names_the_command(run: Runner, command: str) -> None:
    result = run(*command.split(), "--out")
    name = f"spanwise {command.rpartition(' ')[0]}"
    assert (result.code, result.err) == (2, f"{name}: option '--out' requires an argument (see {name} --help)\n")


def test_training_data_without_sentences_is_named(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = run("train", tmp_path / "empty.jsonl", "--out", tmp_path / "out", "--encoder", "static")
    message = f"{tmp_path / 'empty.jsonl'}: the training data has no sentences\n"
    assert (result.code, result.out, result.err) == (2, "", message)


def test_gold_without_sentences_is_named(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = run("evaluate", model, tmp_path / "empty.jsonl")
    assert (result.code, result.err) == (2, f"{tmp_path / 'empty.jsonl'}: no sentences; expected gold annotations\n")
