"""Tiny encoders and a tiny corpus for tests of training and prediction, without downloads.

Torch uses one thread: small tensors do not benefit from more, and results are then equal on all machines.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spanwise.core.types import Corpus, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure, recipes
from spanwise.testing.corpus import DRUGS, FILLERS, PLACES, random_sentences, tiny_corpus, with_relations
from spanwise.testing.encoders import STATIC as WITH_CHARACTERS
from spanwise.testing.encoders import WINDOW, tiny_bert
from spanwise.training.run import Run, train

torch.set_num_threads(1)


def roberta(folder: Path, *, add_prefix_space: bool = False) -> Path:
    """Save a random RoBERTa with a byte-level BPE tokenizer, without a space before the first word."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    bpe = ByteLevelBPETokenizer(add_prefix_space=add_prefix_space)
    text = [" ".join(sentence.words) for sentence in random_sentences(200, seed=9)]
    bpe.train_from_iterator(text, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    bpe.save_model(str(folder))
    tokenizer = RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"), add_prefix_space=add_prefix_space,
        model_max_length=WINDOW,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=WINDOW + 2, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


__all__ = ["DRUGS", "FILLERS", "PLACES", "WINDOW", "with_relations"]  # names of the package that tests use
sentences, corpus, bert = random_sentences, tiny_corpus, tiny_bert


# For trainings: an LSTM over characters would take most of their time.
STATIC = (*(setting for setting in WITH_CHARACTERS if "char_hidden" not in setting), "encoder.char_hidden=0")

# Recipes for tests of every method; tests/recipes/test_paper_recipes.py tests the others, which have the same heads.
METHODS = sorted(name for name in recipes() if "-paper" not in name or name in ("sng-paper", "locate-label-paper-genia"))


def model(
    encoder: str | Path, recipe: str = "spanner", overrides: Iterable[str] = (), *, data: Corpus | None = None, seed: int = 0
) -> Model:
    """A model with random weights whose head, or both heads of a bundle, predicts entities in most sentences."""
    options: Sequence[str] = (*(WITH_CHARACTERS if str(encoder) == "static" else ()), *overrides)
    torch.manual_seed(seed)
    built = Model.build(configure(recipe, encoder=str(encoder), overrides=options), corpus() if data is None else data)
    with torch.no_grad():
        for module in built.head.modules():
            classifier = getattr(module, "classifier", None)
            for layer in classifier.modules() if isinstance(classifier, nn.Module) else ():
                if isinstance(layer, nn.Linear):
                    layer.weight.mul_(8)
    return built.eval()


def quiet(line: str) -> None:
    """Ignore a line of the log."""


def fit(out: Path, data: Corpus | None = None, overrides: Iterable[str] = (), **options: Any) -> Run:
    """Train on the tiny corpus for about a second, unless options say otherwise."""
    options = {"recipe": "seqner", "encoder": "static", "epochs": 4, "head_rate": 0.03, "log": quiet, **options}
    small = STATIC if options["encoder"] == "static" else ()
    return train(
        corpus(60) if data is None else data, out, overrides=(*small, *overrides), batch_size=8, device="cpu", **options
    )


def digest(run: Path) -> tuple[bytes, list[Any], Any]:
    """Return weights, metrics without times, and scores: they must not depend on interruptions."""
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in metrics:
        del row["seconds"], row["dev_seconds"]
    return (run / "model.safetensors").read_bytes(), metrics, json.loads((run / "run.json").read_text())["scores"]


LONG = Sentence("long", tuple(random.Random(1).choices([*FILLERS, "zebra", "gnu"], k=120)))
DEEP_WORD = Sentence("deep", ("the", "x" * 30, "a", "y" * 25))


def mixed_sentences() -> tuple[Sentence, ...]:
    """Return short and empty sentences, one longer than the window, and words of many subwords."""
    return (*random_sentences(9), Sentence("empty", ()), LONG, DEEP_WORD, Sentence("one", ("quito",)))


def transformer(folder: Path, **values: Any) -> TransformerEncoder:
    return TransformerEncoder.build(TransformerSettings(name=str(folder), **values)).eval()


@torch.no_grad()
def encoded(encoder: Encoder, prepared: Sequence[Any]) -> TokenStates:
    states: TokenStates = encoder(encoder.collate(prepared))
    return states


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
