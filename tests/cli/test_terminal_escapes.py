"""Names and texts of others are printed without control characters, which could change the terminal."""

from __future__ import annotations

import io
import json
import logging
import warnings
from pathlib import Path

import pytest
from cli_runner import Runner
from rich.console import Console

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.evaluation.typing import Accuracy, TypingScores, print_typing
from spanwise.prediction import load as loading
from spanwise.serve.errors import log as service_log

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202eevil\u2066"
SAFE = r"\x1b]0;title\x07\x1b[2J\x9b31m\x0d\u202eevil\u2066"


def test_terminal_escapes_in_error_texts_are_neutralised(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = run("describe", tmp_path / HOSTILE)
    assert missing.code == 2
    assert SAFE in missing.err
    usage = run("describe", f"--{HOSTILE}")
    assert usage.code == 2
    assert SAFE in usage.err

    def fail(source: object, device: str, **options: object) -> None:
        warnings.warn(f"note {HOSTILE}\nsecond", SpanwiseWarning, stacklevel=1)
        raise SpanwiseError(f"error {HOSTILE}\nline\tß")

    monkeypatch.setattr(loading, "load", fail)
    (tmp_path / "input.txt").write_text("a")
    result = run("predict", tmp_path, tmp_path / "input.txt")
    assert result.err.endswith(f"error {SAFE} line\tß\n")
    assert f"note: note {SAFE} second\n" in result.err
    for text in (missing.err, usage.err, result.err):
        assert not set(text) & set("\x1b\x07\x9b\r\u202e\u2066")


def test_types_systems_and_words_of_others(run: Runner, tmp_path: Path) -> None:
    entities = [{"type": HOSTILE, "spans": [[0, 1]], "score": 0.5}, {"type": "Place", "spans": [[0, 1]], "score": 0.5}]
    gold, predicted, vectors = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl", tmp_path / "vectors.txt"
    gold.write_text(json.dumps({"id": "s", "tokens": ["Oslo"], "entities": entities[1:]}))
    predicted.write_text(json.dumps({"id": "s", "tokens": ["Oslo"], "entities": entities}))
    vectors.write_text(f"Oslo 1 0\n{HOSTILE} 1 1\n", newline="\n")
    outputs = [
        run("evaluate", "--pred", predicted, "--gold", gold).out,
        run("evaluate", "--pred", gold, "--gold", predicted, "--find-threshold").out,
        run("compare", f"{HOSTILE}={predicted}", f"other={gold}", "--gold", gold).out,
        run("vectors", "similar", vectors, "Oslo").out,
    ]
    for output in outputs:
        assert SAFE in output
        assert not set(output) & set("\x1b\x07\x9b\r\u202e\u2066")
    console = Console(file=io.StringIO())
    print_typing(TypingScores({HOSTILE: Accuracy(1, 2)}), console)
    assert "\x1b" not in console.file.getvalue()


def test_the_log_of_the_service_has_no_terminal_escapes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        service_log.error("%s\nsecond line", HOSTILE)
        logging.getLogger("uvicorn.error").error("broken: %s", HOSTILE)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == f"{SAFE}\nsecond line"
    assert second == f"broken: {SAFE}"
