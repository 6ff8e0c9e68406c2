"""The report of a finished run."""

from __future__ import annotations

import platform
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.version import __version__
from spanwise.models.model import count_parameters
from spanwise.training.conditions import Conditions, package_version
from spanwise.training.loop import Trainer

_PACKAGES = ("torch", "transformers", "accelerate", "numpy")


def training_report(
    trainer: Trainer, requested: Config, scores: dict[str, Any], notes: list[str], conditions: Conditions, seconds: float
) -> dict[str, Any]:
    """Return the contents of the report file; ``requested`` is the configuration before automatic settings were resolved."""
    model, corpus = trainer.model, trainer.corpus
    packages = {package: package_version(package) for package in _PACKAGES}
    return {
        "scores": scores,
        "recipe": model.config.recipe,
        "encoder": model.config.encoder,
        "seed": model.config.training.seed,
        "requested": requested.model_dump(mode="json"),
        "best_epoch": trainer.best_epoch,
        "epochs": trainer.epoch,
        "parameters": {"encoder": count_parameters(model.encoder), "head": count_parameters(model.head)},
        "corpus": corpus.name,
        "data": {
            split: {"sentences": len(corpus[split]), "fingerprint": trainer.fingerprints[split]} for split in corpus
        },
        "seconds": {"total": round(seconds, 3), "training": round(trainer.seconds, 3)},
        "device": trainer.device_name,
        "precision": trainer.precision,
        "notes": notes,
        "conditions": dict(conditions),
        "versions": {"spanwise": __version__, "python": platform.python_version(), **packages},
    }  # fmt: skip
