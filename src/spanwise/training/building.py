"""Build the model of a run, and report what it cannot learn from the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from spanwise.config.settings import Config, encoder_name
from spanwise.core.types import Corpus
from spanwise.encoders.prediction_tokenizer import read_prediction_tokenizer
from spanwise.encoders.pretrained import load_pretrained, resolve
from spanwise.encoders.word_tokenizer import WordTokenizer
from spanwise.heads import head_class
from spanwise.models.model import Model
from spanwise.recipes.catalog import encoder_values
from spanwise.runtime.collection import paused_collection
from spanwise.training.checks import check_corpus, check_coverage, is_covered
from spanwise.training.data import labelled, with_all_words
from spanwise.training.init_weights import initialize_from
from spanwise.training.partial_checks import check_partial
from spanwise.training.supervision import Supervision


def replace_encoder(config: Config, corpus: Corpus, log: Callable[[str], None]) -> Config:
    """Use the static encoder if the pretrained one hardly knows the script or language of the data."""
    if config.encoder["kind"] == "static":
        return config
    name = encoder_name(config.encoder).partition(" + ")[0]
    tokenizer = read_prediction_tokenizer(Path(resolve(name))) or load_pretrained(name)[1]
    if is_covered(corpus["train"], WordTokenizer.of(tokenizer)):
        return config
    log(f"using the static encoder, because {name} hardly knows the script or language of this data")
    return config.model_copy(update={"encoder": encoder_values("static", config.encoder)})


def build_model(
    config: Config, supervision: Supervision, *, saved: Path | None, init: str | Path | None, log: Callable[[str], None]
) -> Model:  # fmt: skip
    """Build a model with initial weights: its own, or those of the run ``init``. All random numbers follow from the seed.

    A resumed run is ``saved`` in a folder; its weights are loaded later.
    """
    torch.manual_seed(config.training.seed)
    corpus, more_types = with_all_words(supervision.corpus), supervision.more_types
    model = Model.build(config, corpus, saved=saved, log=log, more_types=more_types)
    if init is not None and saved is None:
        log(initialize_from(model, Path(init)))
    if model.head.finds_relations and not head_class(str(config.head["kind"])).finds_relations:
        log("the training data has relations, so the model learns them, too; to turn this off, pass --set head.relations=false")
    return model


@paused_collection()
def report_problems(model: Model, supervision: Supervision, log: Callable[[str], None]) -> list[str]:
    """Log what the model cannot learn from the data, and return it for the report."""
    corpus = supervision.corpus
    notes = [*check_corpus(labelled(corpus), model.head), *check_coverage(corpus, model.encoder)]
    notes += check_partial(corpus["train"], model.head, has_teachers=supervision.decides_open_spans(model))
    notes += supervision.check(model)
    for note in notes:
        log(f"note: {note}")
    return notes
