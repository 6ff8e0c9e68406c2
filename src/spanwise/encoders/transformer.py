"""Any Hugging Face encoder: subwords to words, context, and windows over what is too long for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.graphs import ABLE, GRAIN, Graphs
from spanwise.encoders.pretrained import resolve, unreachable
from spanwise.encoders.windows import windows
from spanwise.errors import SpanwiseError
from spanwise.types import Sentence

Ints = npt.NDArray[np.int64]


class TransformerSettings(BaseModel):
    """``pooling`` makes a word of its subwords; ``layers`` are averaged from the top; ``context`` is what fills the window."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["transformer"] = "transformer"
    name: str
    pooling: Literal["first", "max", "mean"] = "max"
    layers: int = Field(default=1, ge=1)
    context: Literal["sentence", "document"] = "sentence"
    window: int | None = Field(default=None, ge=16, description="subwords read at once; the encoder's own limit when not given")
    frozen_layers: int = Field(0, ge=0, description="embeddings and so many lowest layers do not learn")


@dataclass(slots=True)
class Subwords:
    """A sentence as the encoder reads it: one or more rows of subword ids, and where each of its own subwords stands."""

    rows: list[Ints]
    row: Ints  # of each subword of the sentence
    place: Ints  # in that row, special tokens counted
    counts: Ints  # subwords per word


class TransformerEncoder(Encoder):
    """Words from a pretrained transformer.

    No text is cut off: a sentence longer than the window is read in windows that overlap by a quarter, and each subword is
    taken from the window in which it stands farther from the rim.
    """

    def __init__(self, settings: TransformerSettings, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model: Any = model
        self.settings, self.tokenizer = settings, tokenizer
        self.width = model.config.hidden_size
        marked = tokenizer("a", return_special_tokens_mask=True)
        ids, inner = marked["input_ids"], [i for i, special in enumerate(marked["special_tokens_mask"]) if not special]
        self._before, self._after = ids[: inner[0]], ids[inner[-1] + 1 :]
        self.window = min(_limit(model.config, tokenizer), settings.window or 1 << 30)
        self._freeze(settings.frozen_layers)
        self.graphs: Graphs | None = None

    @classmethod
    def build(cls, settings: TransformerSettings, folder: Path | None = None) -> TransformerEncoder:
        """Load from a folder, a weight package or the hub. A run's ``folder`` gives the architecture, to be filled later."""
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        source = str(folder) if folder else resolve(settings.name)
        try:
            _quiet()
            config = AutoConfig.from_pretrained(source)
            tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True, add_prefix_space=True)
            options = {"add_pooling_layer": False} if _has_pooler(config) else {}
            model = AutoModel.from_pretrained(source, **options) if folder is None else AutoModel.from_config(config, **options)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            if source != settings.name or Path(source).is_dir():
                raise SpanwiseError(f"encoder {settings.name}: {str(error).strip().splitlines()[0]}") from None
            raise unreachable(settings.name, error) from None
        if config.is_encoder_decoder:
            raise SpanwiseError(f"encoder {settings.name}: {config.model_type} is no encoder-only model")
        return cls(settings, model.float(), tokenizer)

    def save(self, folder: Path) -> None:
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def record_steps(self) -> None:
        if self.model.config.model_type in ABLE:
            self.graphs = Graphs(self.model)

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        parameters: Iterator[nn.Parameter] = self.model.parameters()
        return parameters

    def _freeze(self, layers: int) -> None:
        if not layers:
            return
        blocks = _blocks(self.model)
        if layers > len(blocks):
            raise SpanwiseError(f"frozen_layers={layers}, but the encoder has {len(blocks)} layers")
        for module in (self.model.embeddings, *blocks[:layers]):
            module.requires_grad_(False)

    # --- the host's part -------------------------------------------------------------------------------------------

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Subwords]:
        """Subword ids of every sentence. ``context`` holds more sentences (of other splits, say) for document context."""
        if self.settings.context == "sentence":
            return [self._rows(*piece, _NONE, _NONE) for piece in self._tokenize([s.words for s in sentences])]
        own = {id(sentence) for sentence in sentences}
        everything = [*sentences, *(sentence for sentence in context if id(sentence) not in own)]
        pieces = self._tokenize([sentence.words for sentence in everything])
        neighbours = _neighbours(everything)
        return [self._rows(*pieces[n], *self._context(pieces, *neighbours[n])) for n in range(len(sentences))]

    def _tokenize(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Ints, Ints]]:
        """Ids and subwords per word. A word that the tokenizer does not see (a lone joiner, say) becomes the unknown token."""
        flat = [words for words in sentences if words]
        encoded = self.tokenizer([list(w) for w in flat], is_split_into_words=True, add_special_tokens=False) if flat else None
        results: list[tuple[Ints, Ints]] = []
        at = 0
        for words in sentences:
            if not words:
                results.append((_NONE, _NONE))
                continue
            ids = np.asarray(encoded["input_ids"][at], dtype=np.int64)  # type: ignore[index]
            owners = np.asarray(encoded.word_ids(at), dtype=np.int64)  # type: ignore[union-attr]
            at += 1
            counts = np.bincount(owners, minlength=len(words)) if len(ids) else np.zeros(len(words), np.int64)
            missing = np.flatnonzero(counts == 0)
            if len(missing):
                ids = np.insert(ids, np.searchsorted(owners, missing), self.tokenizer.unk_token_id)
                counts[missing] = 1
            results.append((ids, counts.astype(np.int64)))
        return results

    def _context(self, pieces: list[tuple[Ints, Ints]], document: list[int], at: int) -> tuple[Ints, Ints]:
        """Subwords before and behind sentence ``document[at]``, as many as the window still holds, evenly where it can be."""
        room = max(self._capacity - len(pieces[document[at]][0]), 0)
        before, behind = _NONE, _NONE
        for number in reversed(document[:at]):
            if len(before) >= room:
                break
            before = np.concatenate([pieces[number][0], before])
        for number in document[at + 1 :]:
            if len(behind) >= room:
                break
            behind = np.concatenate([behind, pieces[number][0]])
        left = min(len(before), max(room // 2, room - len(behind)))
        return before[len(before) - left :], behind[: room - left]

    @property
    def _capacity(self) -> int:
        return self.window - len(self._before) - len(self._after)

    def _rows(self, ids: Ints, counts: Ints, before: Ints, behind: Ints) -> Subwords:
        size = self._capacity
        if len(ids) <= size:
            row = np.concatenate([self._before, before, ids, behind, self._after]).astype(np.int64)
            place = np.arange(len(ids), dtype=np.int64) + len(self._before) + len(before)
            return Subwords([row], np.zeros(len(ids), np.int64), place, counts)
        starts, owner, place = windows(len(ids), size, size // 4)
        rows = [np.concatenate([self._before, ids[s : s + size], self._after]).astype(np.int64) for s in starts]
        return Subwords(rows, owner, place + len(self._before), counts)

    def cost(self, prepared: Subwords) -> int:
        return sum(map(len, prepared.rows))

    def collate(self, prepared: Sequence[Subwords]) -> dict[str, Tensor]:
        rows = [row for item in prepared for row in item.rows]
        length = max(map(len, rows))
        if self.graphs is not None:
            length = min(-(-length // GRAIN) * GRAIN, self.window)
        ids = np.full((len(rows), length), self.tokenizer.pad_token_id or 0, np.int64)
        seen = np.zeros((len(rows), length), bool)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            seen[number, : len(row)] = True
        first_row = np.cumsum([0, *(len(item.rows) for item in prepared[:-1])])
        words = max(max(len(item.counts) for item in prepared), 1)
        depth = (
            1 if self.settings.pooling == "first" else max((int(item.counts.max(initial=1)) for item in prepared), default=1)
        )
        index = np.zeros((len(prepared), words, depth), np.int64)
        counts = np.ones((len(prepared), words), np.int64)
        mask = np.zeros((len(prepared), words), bool)
        for number, item in enumerate(prepared):
            total = len(item.counts)
            if not total:
                continue
            flat = (first_row[number] + item.row) * length + item.place
            firsts = np.cumsum(item.counts) - item.counts
            # A word with fewer subwords than the deepest repeats its last one: no maximum changes, the mean knows the count.
            steps = np.minimum(np.arange(depth), item.counts[:, None] - 1)
            index[number, :total] = flat[firsts[:, None] + steps]
            counts[number, :total] = item.counts
            mask[number, :total] = True
        tensors = {"ids": ids, "seen": seen, "index": index, "mask": mask, "cls": first_row * length}
        if self.settings.pooling == "mean":
            tensors["counts"] = counts
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in tensors.items()}

    # --- the device's part -----------------------------------------------------------------------------------------

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        flat = self._states(inputs["ids"], inputs["seen"]).flatten(0, 1)
        return TokenStates(self._pool(flat, inputs), flat[inputs["cls"]], inputs["mask"])

    def _states(self, ids: Tensor, seen: Tensor) -> Tensor:
        if self.graphs is not None and self.training and self.settings.layers == 1:
            recorded = self.graphs(ids, seen)
            if recorded is not None:
                return recorded
        mixing = self.settings.layers > 1
        output = self.model(input_ids=ids, attention_mask=seen, output_hidden_states=mixing)
        states: Tensor = output.last_hidden_state
        return torch.stack(output.hidden_states[-self.settings.layers :]).mean(0) if mixing else states

    def _pool(self, flat: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        index = inputs["index"]
        if index.shape[-1] == 1:
            return flat[index.squeeze(-1)]
        pieces = flat[index]
        if self.settings.pooling == "max":
            return pieces.amax(2)
        counts = inputs["counts"].unsqueeze(-1)
        weight = (torch.arange(index.shape[-1], device=flat.device) < counts).to(flat.dtype) / counts
        return (pieces * weight.unsqueeze(-1)).sum(2)


_NONE: Ints = np.zeros(0, np.int64)


def _quiet() -> None:
    """No progress bars and reports of unused weights between our own lines."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _neighbours(sentences: Sequence[Sentence]) -> list[tuple[list[int], int]]:
    """For each sentence the numbers of its document's sentences in order, and its own place among them."""
    documents: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        key = f"\0{number}" if sentence.document is None or sentence.position is None else sentence.document
        documents.setdefault(key, []).append(number)
    result: list[tuple[list[int], int]] = [([], 0)] * len(sentences)
    for members in documents.values():
        members.sort(key=lambda number: (sentences[number].position or 0, number))
        for at, number in enumerate(members):
            result[number] = (members, at)
    return result


def _limit(config: Any, tokenizer: Any) -> int:
    """How many subwords the model reads at once. RoBERTa counts its positions from behind the padding index."""
    positions = getattr(config, "max_position_embeddings", None) or 1 << 30
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl", "longformer"):
        positions -= (config.pad_token_id if config.pad_token_id is not None else 1) + 1
    return int(min(positions, tokenizer.model_max_length))


def _has_pooler(config: Any) -> bool:
    return config.model_type in (
        "bert",
        "roberta",
        "xlm-roberta",
        "mpnet",
        "camembert",
        "albert",
        "longformer",
        "data2vec-text",
    )


def _blocks(model: nn.Module) -> nn.ModuleList:
    """The stack of layers of a transformer, wherever its architecture keeps it."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks or not hasattr(model, "embeddings"):
        raise SpanwiseError(f"layers of {type(model).__name__} cannot be frozen: its stack of layers was not found")
    return max(stacks, key=len)
