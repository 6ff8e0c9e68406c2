"""bench/defaults.py: samples and the table."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from spanwise import Corpus, Entity, Sentence

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "defaults.py"


@pytest.fixture(scope="module")
def defaults() -> Any:
    spec = importlib.util.spec_from_file_location("defaults", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_samples_are_drawn_with_the_seed_and_have_entities(defaults: Any) -> None:
    oslo = Sentence("oslo", ("Oslo",), (Entity("Place", ((0, 1),)),))
    train = (oslo, *(Sentence(f"s{number}", ("x",)) for number in range(30)))
    corpus = Corpus({"train": train, "dev": (oslo,), "test": (oslo,)})
    samples = [defaults.draw_sample(corpus, 3, seed) for seed in (1, 1, 2, 3)]
    assert all(len(sample["train"]) == 3 and oslo in sample["train"] for sample in samples)
    assert all(list(sample) == ["train", "test"] for sample in samples)
    assert samples[0]["train"] == samples[1]["train"]
    assert len({sample["train"] for sample in samples}) == 3
    assert defaults.draw_sample(corpus, 0, 1) is corpus


def test_the_table_compares_the_default_with_the_best_other_recipe(defaults: Any) -> None:
    scores = {("default", 20): 0.6, ("grid", 20): 0.62, ("spanner", 20): 0.5, ("default", 0): 0.8, ("grid", 0): 0.802}
    rows = [{"corpus": "c", "size": size, "recipe": recipe, "f1": f1} for (recipe, size), f1 in scores.items()]
    assert defaults.table(rows) == [
        "| corpus | sentences | default | spanner | grid | default minus best |",
        "|---|---|---|---|---|---|",
        "| c | all | 80.0 |  | 80.2 | -0.2 |",
        "| c | 20 | 60.0 | 50.0 | 62.0 | **-2.0** |",
    ]
