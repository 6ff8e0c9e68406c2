"""Hugging Face encoders: pooling subwords to words, document context, and windows over long sentences."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError, first_line
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.document_context import has_documents
from spanwise.encoders.fast_attention import use_fast_attention
from spanwise.encoders.fixed_shapes import SizeTable, pad_subword_inputs
from spanwise.encoders.layers import LayerParts, layer_parts, layer_stack
from spanwise.encoders.mpnet import use_fused_attention
from spanwise.encoders.prediction_bert import CONFIG, PredictionBert, read_bert_config
from spanwise.encoders.prediction_tokenizer import copy_tokenizer_files, read_prediction_tokenizer
from spanwise.encoders.pretrained import load_pretrained
from spanwise.encoders.residual_norm import use_fast_norms
from spanwise.encoders.subword_indexing import SubwordIndexer
from spanwise.encoders.subword_layout import subword_settings
from spanwise.encoders.subwords import DEEP, Ints, Subwords
from spanwise.encoders.token_types import simplify_token_types
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.encoders.word_tokenizer import WordTokenizer
from spanwise.runtime.cuda_graphs import LENGTH_MULTIPLE, CudaGraphs
from spanwise.runtime.device import is_traced
from spanwise.runtime.dropout_seeds import shared_seeds

# Architectures whose forward accepts a full attention mask and never waits for the device, as CUDA graphs require.
RECORDABLE = frozenset(("bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet", "distilbert"))
SUBWORDS = 1 << 17  # per call without gradients, so that a text of many windows needs no more memory than a large batch


class TransformerEncoder(Encoder):
    """Word states from a pretrained transformer.

    A word is pooled from its subwords. Sentences that are longer than the window of the transformer
    are encoded in overlapping windows, so nothing is truncated.

    Use it whenever a transformer covers the language of the data. ``StaticEncoder`` needs no
    pretrained weights; ``ConcatEncoder`` adds characters to an uncased transformer.
    """

    settings_class = TransformerSettings

    def __init__(self, settings: TransformerSettings, model: Any, tokenizer: Any) -> None:
        super().__init__()
        if model.config.model_type == "mpnet":
            use_fused_attention(model)
        self.model: Any = model
        self.settings, self.tokenizer = settings, tokenizer
        self.width = model.config.hidden_size
        depth = getattr(model.config, "num_hidden_layers", settings.layers)
        if settings.layers > depth:
            raise SpanwiseError(f"layers={settings.layers}, but the encoder has {counted(depth, 'layer')}")
        self.indexer = SubwordIndexer(WordTokenizer.of(tokenizer), subword_settings(settings, model, tokenizer))
        self._is_recordable = model.config.model_type in RECORDABLE
        self._mask_type = torch.bool if self._is_recordable else torch.long  # other architectures do arithmetic with the mask
        self._mask_id, self._special_ids = tokenizer.mask_token_id, sorted(set(tokenizer.all_special_ids))
        if settings.masking == "auto":
            raise SpanwiseError("masking is still automatic; call settings.resolve(sentence_count) first")
        self._masking = settings.masking
        if self._masking and self._mask_id is None:
            raise SpanwiseError(f"masking={self._masking:g}, but the tokenizer of {settings.name} has no mask token")
        self._vocabulary_size = len(model.get_input_embeddings().weight)
        self._freeze()
        self.graphs: CudaGraphs | None = None
        self._is_recorded = False  # as a part of whole training steps
        self._avoids_waiting = False
        self.lower_layers = 0  # how many layers below the top are returned too
        self._returns_subwords = False  # instead of words

    @classmethod
    def build(
        cls,
        settings: TransformerSettings,
        sentences: Sequence[Sentence] = (),
        log: Callable[[str], None] = lambda line: None,
    ) -> TransformerEncoder:
        """Load pretrained weights from a folder, an installed package or the hub."""
        if settings.context == "document" and sentences and not has_documents(sentences):
            log("note: encoder.context=document has no effect: no training sentence has a document and a position in it")
        return cls(settings, *load_pretrained(settings.name))

    @classmethod
    def load(cls, settings: TransformerSettings, folder: Path) -> TransformerEncoder:
        return cls._load_checked(settings, *load_pretrained(settings.name, folder), folder)

    @classmethod
    def _load_checked(cls, settings: TransformerSettings, model: Any, tokenizer: Any, folder: Path) -> TransformerEncoder:
        try:
            encoder = cls(settings, model, tokenizer)
            encoder._encode_word()
        except SpanwiseError:
            raise
        except Exception as error:  # of the libraries, of many kinds
            problem = f"cannot encode a word; its files may be damaged: {first_line(error)}"
            raise SpanwiseError(f"encoder {folder}: {problem}") from None
        return encoder

    @classmethod
    def load_for_prediction(cls, settings: TransformerSettings, folder: Path) -> TransformerEncoder:
        """Without the transformers library if the architecture is supported; its import takes seconds."""
        config = read_bert_config(folder)
        tokenizer = read_prediction_tokenizer(folder) if config else None
        if config is None or tokenizer is None:
            return cls.load(settings, folder)
        return cls._load_checked(settings, PredictionBert(config), tokenizer, folder)

    def _encode_word(self) -> None:
        """Encode a word, because some wrong values of a configuration have an effect only then."""
        is_training = self.training
        with torch.no_grad():
            self.eval()(self.collate(self.prepare([Sentence("check", ("a",))])))
        self.train(is_training)

    def save(self, folder: Path) -> None:
        if isinstance(self.model, PredictionBert):
            copy_tokenizer_files(self.tokenizer.folder, folder)
            shutil.copyfile(self.tokenizer.folder / CONFIG, folder / CONFIG)
            return
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def enable_cuda_graphs(self) -> None:
        if self._is_recordable:
            self.graphs = CudaGraphs(self.model, self._read_recordable)

    def avoid_waiting(self) -> None:
        """Never make the host wait for the device in ``forward``, if the architecture allows it."""
        self._avoids_waiting = self._is_recordable

    def request_outputs(self, *, layers: int = 0, subwords: bool = False) -> None:
        depth = self.model.config.num_hidden_layers
        if layers > depth:
            raise SpanwiseError(f"the head needs {counted(layers, 'layer')}, but the encoder has {depth}")
        self.lower_layers = max(layers, self.lower_layers)
        self._returns_subwords = subwords or self._returns_subwords

    def layer_parts(self) -> list[LayerParts]:
        return layer_parts(self.model)

    def subword_counts(self, sentence: Sentence) -> Ints:
        return self.indexer.tokenize([sentence.words])[0][1]

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        parameters: Iterator[nn.Parameter] = self.model.parameters()
        return parameters

    def embeddings(self) -> Iterator[Tensor]:
        """The vectors of subwords, without those of positions and segments."""
        yield self.model.get_input_embeddings().weight

    def _freeze(self) -> None:
        layers = self.settings.frozen_layers
        if not layers and not self.settings.frozen_embeddings:
            return
        blocks = layer_stack(self.model)
        if layers > len(blocks):
            raise SpanwiseError(f"frozen_layers={layers}, but the encoder has {counted(len(blocks), 'layer')}")
        for module in (self.model.embeddings, *blocks[:layers]):
            module.requires_grad_(False)

    # --- on the host -----------------------------------------------------------------------------------------------

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Subwords]:
        return self.indexer.prepare(sentences, context)

    def cost(self, prepared: Subwords) -> int:
        return self.indexer.cost(prepared)

    def collate(self, prepared: Sequence[Subwords]) -> dict[str, Tensor]:
        arrays = self.indexer.collate(
            prepared, multiple=LENGTH_MULTIPLE if self.graphs or self._is_recorded else 1, subwords=self._returns_subwords
        )
        if (largest := int(arrays["ids"].max())) >= self._vocabulary_size:
            size = self._vocabulary_size
            raise SpanwiseError(f"encoder {self.settings.name}: its tokenizer has the subword {largest}, its model only {size}")
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def size_table(self, prepared: Sequence[Subwords]) -> SizeTable | None:
        if not self._is_recordable:
            return None
        is_regular = np.array([len(item.rows) == 1 for item in prepared], bool)
        if self._returns_subwords:
            return SizeTable({}, {"words": np.array([len(item.row) + 1 for item in prepared])}, is_regular)
        several = [item.counts[(item.counts > 1) & (item.counts <= DEEP)] for item in prepared]
        deep = [item.counts[item.counts > DEEP] for item in prepared]
        depths = {"several": several, "deep": deep}
        return SizeTable(
            {name: np.array([len(counts) for counts in rows]) for name, rows in depths.items()},
            {"words": np.array([len(item.counts) + 1 for item in prepared])}
            | {f"{name}_depth": np.array([counts.max(initial=0) for counts in rows]) for name, rows in depths.items()},
            is_regular,
        )

    def pad(self, inputs: Mapping[str, Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor]:
        has_tables = self.settings.pooling != "first" and not self._returns_subwords
        return pad_subword_inputs(inputs, sizes, has_tables=has_tables)

    def enable_step_graphs(self) -> None:
        self._is_recorded = True
        simplify_token_types(self.model)
        use_fast_attention(self.model)
        use_fast_norms(self.model)

    # --- on the device ---------------------------------------------------------------------------------------------

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        return self.words(self.subwords(self._mask_subwords(inputs["ids"]), inputs["seen"]), inputs)

    def _mask_subwords(self, ids: Tensor) -> Tensor:
        """In training, replace a share of the subwords by the mask token, so that the context counts more."""
        if not self.training or not self._masking:
            return ids
        is_masked = torch.rand(ids.shape, device=ids.device) < self._masking
        for special in self._special_ids:
            is_masked &= ids != special
        return ids.masked_fill(is_masked, self._mask_id)

    def words(self, states: Tensor, inputs: Mapping[str, Tensor]) -> TokenStates:
        """The states of words and sentences from the states of all subwords."""
        flat = states.flatten(0, 1)
        *lower, words = torch.split(self._words(flat, inputs), self.width, -1)
        return TokenStates(words, flat[:, -self.width :].index_select(0, inputs["cls"]), inputs["mask"], tuple(lower))

    def subwords(self, ids: Tensor, seen: Tensor) -> Tensor:
        """The states of all subwords; several layers are concatenated, so that they are pooled together."""
        if (is_traced() and self._is_recordable) or (self._is_recorded and self.training):
            return self._read_recordable(ids, seen)
        if self.graphs is not None and self.training:
            recorded = self.graphs(ids, seen)
            if recorded is not None:
                return recorded
        if ids.numel() > SUBWORDS and len(ids) > 1 and not torch.is_grad_enabled():
            rows = max(1, SUBWORDS // ids.shape[1])
            return torch.cat(
                [self.subwords(*part) for part in zip(torch.split(ids, rows), torch.split(seen, rows), strict=True)]
            )
        if self._avoids_waiting:
            return self._read_recordable(ids, seen)
        return self._read(ids, seen.to(self._mask_type))

    def _read_recordable(self, ids: Tensor, seen: Tensor) -> Tensor:
        rows, length = ids.shape
        # A full mask: building one from a padding mask makes the host wait for the device.
        with shared_seeds():
            return self._read(ids, seen[:, None, None, :].expand(rows, 1, length, length))

    def _read(self, ids: Tensor, mask: Tensor) -> Tensor:
        averaged, lower = self.settings.layers, self.lower_layers
        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=averaged > 1 or lower > 0)
        top: Tensor = output.last_hidden_state
        if averaged > 1:
            top = torch.stack(output.hidden_states[-averaged:]).mean(0)
        return torch.cat([*output.hidden_states[-1 - lower : -1], top], -1) if lower else top

    def _words(self, flat: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """The states of words from the states of their subwords."""
        first = inputs["first"]
        words = flat.index_select(0, first.flatten())
        for name in ("several", "deep"):
            if name in inputs:
                pooled = self._pool(flat, inputs[name], inputs[f"{name}_counts"])
                words = words.index_copy(0, inputs[f"{name}_words"], pooled)
        return words.view(*first.shape, -1)

    def _pool(self, flat: Tensor, index: Tensor, counts: Tensor) -> Tensor:
        """The states of words of several subwords, given by ``index`` [n, depth]."""
        subwords = flat.index_select(0, index.flatten()).view(*index.shape, flat.shape[1])  # n may be 0
        if self.settings.pooling == "max":
            return subwords.amax(1)
        weight = (torch.arange(index.shape[1], device=flat.device) < counts.unsqueeze(1)) / counts.unsqueeze(1)
        return (subwords * weight.to(flat.dtype).unsqueeze(-1)).sum(1)
