"""An encoder without pretrained weights: word vectors, characters and part-of-speech tags, followed by a BiLSTM.

This is the token representation of Locate and Label (Shen et al. 2021, section 2.1) without its
language model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from spanwise.config.validation import validate_settings
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable, pad_word_inputs
from spanwise.encoders.pos_tagging import tag_sentences
from spanwise.encoders.read_spellings import ReadSpellings
from spanwise.encoders.recurrent import BiLSTM, VariationalDropout, masked_max
from spanwise.encoders.vocabulary import PADDING, UNKNOWN, Vocabulary
from spanwise.encoders.word_indexing import FILE, IndexedWords, StaticRecord, WordIndexer
from spanwise.encoders.word_parts import CHARACTER_READERS, CharacterBiLSTM, CharacterCNN, WordVectors
from spanwise.runtime.fast_embedding import select_rows
from spanwise.vectors.glove import GloveSettings, learn_vectors
from spanwise.vectors.store import Vectors, read_vectors

_RANDOM_SIZE = 100  # of word vectors, if neither a file nor the settings give one


class StaticSettings(BaseModel):
    """The parts of a word's representation, and the BiLSTM over them."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: Literal["static"] = Field(default="static", description="kind of encoder")
    vectors: Path | None = Field(None, description="file or folder of word vectors; by default random vectors are trained")
    glove: GloveSettings | None = Field(None, description="train GloVe vectors on the training sentences if no file is given")
    word_size: int | None = Field(None, ge=0, description="size of a word vector; default: the file's, or 100; 0: no words")
    freeze_words: bool = Field(False, description="do not train vectors of the file; random vectors are always trained")
    lowercase: bool = Field(True, description="lowercase words that are not in the file")
    min_count: int = Field(1, ge=1, description="rarer words of the training sentences are unknown")
    char_size: int = Field(25, ge=1, description="size of a character vector")
    char_hidden: int = Field(50, ge=0, description="size of the character LSTM, per direction; 0: no characters")
    char_reader: Literal["lstm", "cnn"] = Field("lstm", description="BiLSTM or CNN over the characters, of the same size")
    pos_size: int = Field(0, ge=0, description="size of a part-of-speech vector; 0: no tags")
    tagger: str | None = Field(None, description="spaCy pipeline that tags sentences without part-of-speech tags")
    hidden: int = Field(200, ge=1, description="size of the LSTM over the words, per direction")
    layers: int = Field(1, ge=0, description="layers of that LSTM; 0: no LSTM, for parts of a concat encoder")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout around and between the layers, one mask per sentence")
    word_dropout: float = Field(0.1, ge=0, lt=1, description="share of training words and tags replaced by the unknown one")

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.word_size == 0 and self.vectors is not None:
            raise ValueError("vectors are given, but word_size is 0")
        if self.word_size == 0 and not self.char_hidden and not self.pos_size:
            raise ValueError("word_size, char_hidden and pos_size are all 0; at least one must be larger")
        return self


class StaticEncoder(Encoder):
    """Word vectors, characters and tags, followed by a BiLSTM. The sentence's state is the maximum over its words.

    Use it if there is no pretrained encoder for the language, or for training in minutes on a CPU. A
    ``TransformerEncoder`` usually gives better scores.

    >>> from spanwise import Sentence
    >>> sentences = [Sentence("s1", ("Colon", "cancer", ".")), Sentence("s2", ("A", "gene"))]
    >>> encoder = StaticEncoder.build(StaticSettings(hidden=8), sentences)
    >>> states = encoder(encoder.collate(encoder.prepare(sentences)))
    >>> states.words.shape, states.cls.shape, states.mask.tolist()
    (torch.Size([2, 3, 16]), torch.Size([2, 16]), [[True, True, True], [True, True, False]])
    """

    settings_class = StaticSettings

    def __init__(self, settings: StaticSettings, vocabulary: Vocabulary, word_size: int) -> None:
        super().__init__()
        self.settings, self.vocabulary = settings, vocabulary
        self.indexer = WordIndexer(
            vocabulary,
            words=bool(word_size),
            characters=bool(settings.char_hidden),
            tags=bool(settings.pos_size),
            tagger=settings.tagger,
        )
        self.words = WordVectors(len(vocabulary.learned), len(vocabulary.given), word_size) if word_size else None
        self.characters: CharacterBiLSTM | CharacterCNN | None = (
            CHARACTER_READERS[settings.char_reader](len(vocabulary.characters), settings.char_size, settings.char_hidden)
            if settings.char_hidden
            else None
        )
        self._read_spellings: ReadSpellings | None = None  # of the sentences that are predicted now
        self.tags = nn.Embedding(len(vocabulary.tags) + 2, settings.pos_size, PADDING) if settings.pos_size else None
        self.word_size = word_size
        self.width = word_size + 2 * settings.char_hidden + settings.pos_size
        self.dropout = VariationalDropout(settings.dropout)
        self.context: BiLSTM | None = None
        if settings.layers:
            self.context = BiLSTM(self.width, settings.hidden, settings.layers, settings.dropout)
            self.width = self.context.width
        self.is_context_free = self.context is None and self.tags is None

    @classmethod
    def build(
        cls, settings: StaticSettings, sentences: Sequence[Sentence], log: Callable[[str], None] = lambda line: None
    ) -> Self:
        """Build the vocabulary from the training sentences and the word vectors, which are read, trained or random."""
        if settings.pos_size and settings.tagger is not None:
            sentences = tag_sentences(settings.tagger, sentences)
        if settings.pos_size and not any(sentence.pos for sentence in sentences):
            raise SpanwiseError(
                f"pos_size is {settings.pos_size}, but the training sentences have no part-of-speech tags; use 0, or set "
                "tagger to a spaCy pipeline such as en_core_web_sm"
            )
        vectors = read_vectors(settings.vectors) if settings.vectors else _glove_vectors(settings, sentences, log)
        if vectors and settings.word_size not in (None, vectors.size):
            raise SpanwiseError(
                f"{settings.vectors}: word_size is {settings.word_size}, but the vectors have {counted(vectors.size, 'value')}"
            )
        vocabulary = Vocabulary.build(
            sentences,
            vectors.words if vectors else (),
            freeze=settings.freeze_words,
            lowercase=settings.lowercase,
            min_count=settings.min_count,
        )
        random_size = _RANDOM_SIZE if settings.word_size is None else settings.word_size
        encoder = cls(settings, vocabulary, vectors.size if vectors else random_size)
        if vectors and encoder.words:
            encoder.words.fill(vocabulary, vectors)
        return encoder

    def save(self, folder: Path) -> None:
        """Write settings and vocabulary. Vectors from a file are part of the weights, so the file is not needed again."""
        record = {
            "settings": self.settings.model_dump(mode="json"),
            "word_size": self.word_size,
            "vocabulary": self.vocabulary.to_json(),
        }
        (folder / FILE).write_text(json.dumps(record), encoding="utf-8")

    @classmethod
    def load(cls, settings: StaticSettings | None, folder: Path) -> Self:
        """Rebuild a saved encoder. The settings in its file are used, so ``settings`` may be None."""
        record = StaticRecord.read(folder)
        settings = validate_settings(StaticSettings, record.settings, str(folder / FILE))
        return cls(settings, record.vocabulary.build(), record.word_size)

    def embeddings(self) -> Iterator[Tensor]:
        """The trained vectors of words and characters; the given vectors are fixed."""
        if self.words:
            yield self.words.learned.weight
        if self.characters:
            yield self.characters.vectors.weight

    # --- on the host -----------------------------------------------------------------------------------------------

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[IndexedWords]:
        return self.indexer.prepare(sentences, context)

    def cost(self, prepared: IndexedWords) -> int:
        return self.indexer.cost(prepared)

    def collate(self, prepared: Sequence[IndexedWords]) -> dict[str, Tensor]:
        shared = self._read_spellings
        if shared is not None and any(item.spellings is not shared.spellings for item in prepared):
            shared = None
        arrays = self.indexer.collate(prepared, None if shared is None else shared.places)
        inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return inputs if shared is None else {**inputs, "spelling_vectors": shared.vectors}

    @contextmanager
    def shared_work(self, prepared: Sequence[IndexedWords]) -> Iterator[None]:
        """Read each distinct spelling once, if the sentences were prepared together."""
        tables = {id(item.spellings): item.spellings for item in prepared}
        spellings = next(iter(tables.values())) if len(tables) == 1 else None
        if self.characters and spellings is not None and len(spellings.lengths):
            device = self.characters.vectors.weight.device
            self._read_spellings = ReadSpellings.read(spellings, self.characters, device)
        try:
            yield
        finally:
            self._read_spellings = None

    def size_table(self, prepared: Sequence[IndexedWords]) -> SizeTable | None:
        if self.context or isinstance(self.characters, CharacterBiLSTM):
            return None  # the lengths that an LSTM needs are on the host
        words = np.array([item.length + 1 for item in prepared])
        if not self.characters:
            return SizeTable({}, {"words": words})
        pairs = [(item.spellings, item.rows) for item in prepared if item.spellings is not None and item.rows is not None]
        spellings = np.array([len(set(rows.tolist())) for _, rows in pairs])
        longest = np.array([spellings.lengths[rows].max(initial=1) for spellings, rows in pairs])
        return SizeTable({"spellings": spellings}, {"words": words, "characters": longest})

    def pad(self, inputs: Mapping[str, Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor]:
        return pad_word_inputs(inputs, sizes)

    # --- on the device ---------------------------------------------------------------------------------------------

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        mask = inputs["mask"]
        parts = []
        if self.words:
            parts.append(self.words(self._drop_words(inputs["words"])))
        if self.characters:
            vectors = inputs.get("spelling_vectors")
            if vectors is None:
                vectors = self.characters(inputs["short"], inputs["long"])
            parts.append(select_rows(vectors, inputs["spelling"]))
        if self.tags:
            parts.append(self.tags(self._drop_words(inputs["tags"])))
        states = self.dropout(torch.cat(parts, dim=2))
        if self.context:
            states = self.dropout(self.context(states, mask.sum(1)))
        return TokenStates(states, partial(masked_max, states, mask), mask)

    def _drop_words(self, indices: Tensor) -> Tensor:
        """Replace some words in training by the unknown word, to train its vector."""
        if not self.training or not self.settings.word_dropout:
            return indices
        dropped = torch.rand(indices.shape, device=indices.device) < self.settings.word_dropout
        return indices.masked_fill(dropped, UNKNOWN)


def _glove_vectors(settings: StaticSettings, sentences: Sequence[Sentence], log: Callable[[str], None]) -> Vectors | None:
    """Word vectors trained on the sentences, if the settings request them."""
    if settings.glove is None or settings.word_size == 0:
        return None
    glove = settings.glove if settings.word_size is None else replace(settings.glove, dim=settings.word_size)
    if glove.seed is None:
        glove = replace(glove, seed=torch.initial_seed())  # training sets it from training.seed
    log(f"training word vectors of {counted(glove.dim, 'value')} on the {counted(len(sentences), 'training sentence')}")
    learned = learn_vectors((sentence.words for sentence in sentences), glove, threads=torch.get_num_threads())
    words, tokens = counted(len(learned.vectors.words), "word"), counted(learned.words, "token")
    log(f"trained vectors of {words} on {tokens} in {learned.seconds:.1f} s")
    return learned.vectors
