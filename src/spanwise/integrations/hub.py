"""Push models to the Hugging Face hub with a model card, and load them from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin

from spanwise.integrations.card import model_card
from spanwise.prediction.base import BasePredictor
from spanwise.runs.folder import RunFolder
from spanwise.runtime.hub import download_model


class HubModel(ModelHubMixin):
    """A model folder for the hub: ``HubModel("RUN").push_to_hub("owner/model")``.

    The card shows ``data``, the name of the training data, and ``licence``. Only the files needed
    for prediction are pushed, without checkpoints and unused branches.
    """

    def __init__(self, folder: str | Path, *, data: str | None = None, licence: str | None = None) -> None:
        self.folder, self.data, self.licence = Path(folder), data, licence
        self._hub_mixin_config = {"library_name": "spanwise"}  # without the local path

    def load(self, device: str = "auto") -> BasePredictor:
        """Load the model for prediction."""
        from spanwise.prediction.load import load

        return load(self.folder, device)

    def generate_model_card(self, *, name: str | None = None) -> ModelCard:
        return model_card(self.folder, name, self.data, self.licence)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Push to a hub repository, which is created if needed; ``options`` go to ``ModelHubMixin``."""
        return super().push_to_hub(repo_id, **{"model_card_kwargs": {"name": repo_id}, **options})

    def _save_pretrained(self, save_directory: Path) -> None:
        if RunFolder(self.folder).weights_file.is_file():
            from spanwise.models.model import Model

            Model.load(self.folder).for_prediction().save(save_directory)
            files = [RunFolder(self.folder).report_file, RunFolder(self.folder).provenance_file]
        else:  # an ONNX folder needs all its files
            self.load()
            files = [path for path in RunFolder(self.folder).files() if not path.name.startswith(".")]
        for path in files:
            if path.is_file():
                target = save_directory / path.relative_to(self.folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> HubModel:
        card_options = {key: options.pop(key) for key in ("data", "licence") if key in options}
        return cls(model_id if Path(model_id).is_dir() else download_model(model_id, **options), **card_options)
