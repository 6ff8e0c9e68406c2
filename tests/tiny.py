"""Tiny encoders and a tiny corpus for tests of training and prediction, without downloads.

Torch uses one thread: small tensors do not benefit from more, and results are then equal on all machines.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import torch
from torch import Tensor, nn

from spanwise.core.types import Corpus, Entity, Relation, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.transformer import TransformerEncoder, TransformerSettings
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.run import Run, train

torch.set_num_threads(1)

WINDOW = 64
FILLERS = "the a was seen near later then it rained and many others came from there".split()
PLACES = "oslo paris lima quito cairo new york".split()
DRUGS = "aspirin codeine insulin heparin".split()
STATIC = ("encoder.word_size=16", "encoder.char_hidden=4", "encoder.hidden=16", "encoder.dropout=0.2")


def bert(folder: Path, *, window: int = WINDOW, layers: int = 3) -> Path:
    """Save a random BERT whose tokenizer splits unknown words into letters."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    letters = [*ascii_lowercase, *"0123456789.,-"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLERS, *PLACES, *DRUGS, *letters, *(f"##{x}" for x in letters)]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(dict.fromkeys(words)) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), model_max_length=window)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=window,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():  # larger weights than a new model's, so that the context of a word matters
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)
    model.save_pretrained(folder)
    return folder


def roberta(folder: Path, *, add_prefix_space: bool = False) -> Path:
    """Save a random RoBERTa with a byte-level BPE tokenizer, without a space before the first word."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    bpe = ByteLevelBPETokenizer(add_prefix_space=add_prefix_space)
    text = [" ".join(sentence.words) for sentence in sentences(200, seed=9)]
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


def sentence(number: int, choose: random.Random, *, max_length: int = 14) -> Sentence:
    """Make a sentence of fillers, places of one word and drugs of two words."""
    words: list[str] = []
    entities: list[Entity] = []
    while len(words) < choose.randint(2, max_length):
        kind = choose.random()
        start = len(words)
        if kind < 0.2:
            words.append(choose.choice(PLACES))
            entities.append(Entity("Place", ((start, start + 1),)))
        elif kind < 0.35:
            words += [choose.choice(DRUGS), choose.choice(("acid", "mite"))]
            entities.append(Entity("Drug", ((start, start + 2),)))
        else:
            words.append(choose.choice(FILLERS))
    return Sentence(f"s{number}", tuple(words), tuple(entities), document=f"d{number // 5}", position=number % 5)


def sentences(count: int, seed: int = 0, first: int = 0) -> tuple[Sentence, ...]:
    choose = random.Random(seed)
    return tuple(sentence(number, choose) for number in range(first, first + count))


def corpus(train: int = 24, dev: int = 8, test: int = 8) -> Corpus:
    pool = sentences(train + dev + test)
    splits = {"train": pool[:train], "dev": pool[train : train + dev], "test": pool[train + dev :]}
    return Corpus({split: part for split, part in splits.items() if part}, "tiny")


def with_relations(data: Corpus) -> Corpus:
    """Add relations between every drug and every place of a sentence: sold, known, and has in reverse."""

    def add_relations(sentence: Sentence) -> Sentence:
        kinds = [entity.type for entity in sentence.entities]
        pairs = [(x, y) for x, y in product(range(len(kinds)), repeat=2) if (kinds[x], kinds[y]) == ("Drug", "Place")]
        rows = [row for x, y in pairs for row in (("sold", x, y), ("known", x, y), ("has", y, x))]
        return replace(sentence, relations=tuple(Relation(*row) for row in rows))

    return Corpus({split: tuple(map(add_relations, part)) for split, part in data.splits.items()}, data.name)


def model(encoder: str | Path, recipe: str = "spanner", overrides: Iterable[str] = (), *, seed: int = 0) -> Model:
    """Build a random model with large classifier weights, so that its predictions are confident."""
    options: Sequence[str] = (*(STATIC if str(encoder) == "static" else ()), *overrides)
    torch.manual_seed(seed)
    built = Model.build(configure(recipe, encoder=str(encoder), overrides=options), corpus())
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
    fixed = STATIC if options["encoder"] == "static" else ()
    return train(
        corpus(60) if data is None else data, out, overrides=(*fixed, *overrides), batch_size=8, device="cpu", **options
    )


def digest(run: Path) -> tuple[bytes, list[Any], Any]:
    """Return weights, metrics without times, and scores: they must not depend on interruptions."""
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in metrics:
        del row["seconds"], row["dev_seconds"]
    return (run / "model.safetensors").read_bytes(), metrics, json.loads((run / "run.json").read_text())["scores"]


LONG = Sentence("long", tuple(random.Random(1).choices([*FILLERS, "zebra", "gnu"], k=200)))
DEEP_WORD = Sentence("deep", ("the", "x" * 30, "a", "y" * 25))


def mixed_sentences() -> tuple[Sentence, ...]:
    """Return short and empty sentences, one longer than the window, and words of many subwords."""
    return (*sentences(9), Sentence("empty", ()), LONG, DEEP_WORD, Sentence("one", ("quito",)))


def transformer(folder: Path, **values: Any) -> TransformerEncoder:
    return TransformerEncoder.build(TransformerSettings(name=str(folder), **values)).eval()


@torch.no_grad()
def encoded(encoder: Encoder, prepared: Sequence[Any]) -> TokenStates:
    states: TokenStates = encoder(encoder.collate(prepared))
    return states


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
