"""Models on the Hugging Face hub: put there with a card that says what they are, and taken from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin

from spanwise.integrations.card import model_card
from spanwise.prediction.base import BasePredictor
from spanwise.runs.files import WEIGHTS
from spanwise.runtime.hub import fetched

RUN = "run.json"


class HubModel(ModelHubMixin):
    """A model folder that can go to the hub: ``HubModel("RUN").push_to_hub("owner/model")``.

    ``data`` and ``licence`` are for the card: what the model was trained on, and under which licence it may be used.
    What is pushed is what prediction needs, without checkpoints and the branch of a bundle that does not predict.
    """

    def __init__(self, folder: str | Path, *, data: str | None = None, licence: str | None = None) -> None:
        self.folder, self.data, self.licence = Path(folder), data, licence
        self._hub_mixin_config = {"library_name": "spanwise"}  # and not where the folder lies

    def load(self, device: str = "auto") -> BasePredictor:
        """The model, ready to predict."""
        from spanwise.prediction.load import load

        return load(self.folder, device)

    def generate_model_card(self, *, name: str | None = None) -> ModelCard:
        return model_card(self.folder, name, self.data, self.licence)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Push to a repository of the hub, which is made where there is none; ``options`` are those of ``ModelHubMixin``."""
        return super().push_to_hub(repo_id, **{"model_card_kwargs": {"name": repo_id}, **options})

    def _save_pretrained(self, save_directory: Path) -> None:
        if (self.folder / WEIGHTS).is_file():
            from spanwise.models.model import Model

            Model.load(self.folder).exported().save(save_directory)
            copied = [self.folder / RUN]
        else:  # in ONNX, all of it is needed
            self.load()
            copied = [path for path in self.folder.iterdir() if not path.name.startswith(".")]
        for path in copied:
            if path.is_file():
                shutil.copy(path, save_directory / path.name)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> HubModel:
        kept = {key: options.pop(key) for key in ("data", "licence") if key in options}
        return cls(model_id if Path(model_id).is_dir() else fetched(model_id, **options), **kept)
