"""bench/suggest.py: the number of sentences to the target, and the table."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "suggest.py"


@pytest.fixture(scope="module")
def suggest() -> Any:
    spec = importlib.util.spec_from_file_location("suggest", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(strategy: str, seed: int, *rounds: tuple[int, float], whole: float | None = None) -> dict[str, Any]:
    return {
        "corpus": "genia", "strategy": strategy, "seed": seed,
        "all": None if whole is None else {"f1": {"dev": 0.9, "test": whole}},
        "rounds": [{"sentences": size, "f1": {"dev": 0.1, "test": f1}} for size, f1 in rounds],
    }  # fmt: skip


def test_the_first_size_that_reaches_the_target_counts(suggest: Any) -> None:
    rounds = [{"sentences": size, "f1": {"test": f1}} for size, f1 in ((100, 0.6), (200, 0.8), (300, 0.7), (400, 0.9))]
    assert [suggest.sentences_needed(rounds, "test", target) for target in (0.8, 0.85, 0.95)] == [200, 400, None]


def test_the_table_puts_parts_together_and_compares_equal_seeds(suggest: Any) -> None:
    results = [
        result("both", 1, whole=0.8), result("both", 1, (100, 0.7), (200, 0.77)), result("both", 2, (400, 0.8), whole=0.8),
        result("random", 1, (300, 0.7), (400, 0.79)), result("random", 1, (500, 0.9)), result("random", 2, (800, 0.8)),
        result("random", 3, (100, 0.8), whole=0.8),
    ]  # fmt: skip
    both, random = suggest.table(results)[2:]
    assert both == "| genia | both | 1, 2 | not reached |  | 300 | 50% |"
    assert random == "| genia | random | 1, 2, 3 | not reached |  | 433 | 100% |"
