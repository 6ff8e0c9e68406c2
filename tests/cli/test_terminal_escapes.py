"""Names and texts of others are printed without control characters, which could change the terminal."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest
from cli_runner import Runner

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
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


def test_the_log_of_the_service_has_no_terminal_escapes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        service_log.error("%s\nsecond line", HOSTILE)
        logging.getLogger("uvicorn.error").error("broken: %s", HOSTILE)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == f"{SAFE}\nsecond line"
    assert second == f"broken: {SAFE}"
