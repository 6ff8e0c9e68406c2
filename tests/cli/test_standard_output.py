"""Data on standard output."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from spanwise.cli import main
from spanwise.core.types import Entity, Sentence
from spanwise.formats import write
from spanwise.prediction.outputs import print_predictions

TOKYO = Sentence("a", ("東京",), (Entity("地名", ((0, 1),)),))


def ascii_output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Replace standard output by that of the locale C; Windows has similar ones."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors="replace"))
    return written


@pytest.mark.parametrize("arguments", [("label-studio", "config"), ("describe", "--json", "-")])
def test_data_is_utf_8_in_every_locale(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write([TOKYO], tmp_path / "data.jsonl")
    output = ascii_output(monkeypatch)
    with pytest.raises(SystemExit):
        main([*arguments, str(tmp_path / "data.jsonl")])
    assert "地名" in output.getvalue().decode()


def test_printed_predictions_are_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    output = ascii_output(monkeypatch)
    print_predictions([TOKYO])
    sys.stdout.flush()
    assert "東京" in output.getvalue().decode()
