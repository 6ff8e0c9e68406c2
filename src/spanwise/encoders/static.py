"""The encoder that needs no download: word vectors, characters and part-of-speech tags under a BiLSTM.

The token representation of Locate and Label (Shen et al. 2021, section 2.1) without its language model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.numbers import FILE, NumberedWords, Numbers
from spanwise.encoders.recurrent import BiLSTM, VariationalDropout, strongest
from spanwise.encoders.vocabulary import PADDING, UNKNOWN, Vocabulary
from spanwise.vectors.glove import GloveSettings, learn_vectors
from spanwise.vectors.store import Floats, Vectors, read_vectors

_RANDOM_SIZE = 100


class StaticSettings(BaseModel):
    """What a word is made of, and the BiLSTM over it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["static"] = "static"
    vectors: Path | None = Field(None, description="file or folder of word vectors; random ones are learned when not given")
    glove: GloveSettings | None = Field(None, description="where no file is given, vectors are made of the training sentences")
    word_size: int | None = Field(None, ge=0, description="that of the vectors, or 100 for random ones; 0: no word vectors")
    freeze_words: bool = Field(False, description="keep the file's vectors of training words too; random ones always learn")
    lowercase: bool = Field(True, description="words that the file does not know are learned in lower case")
    min_count: int = Field(1, ge=1, description="rarer words of the training sentences are unknown words")
    char_size: int = Field(25, ge=1, description="size of a character's vector")
    char_hidden: int = Field(50, ge=0, description="character LSTM, per direction; 0: no characters")
    pos_size: int = Field(0, ge=0, description="size of a part-of-speech tag's vector; 0: no tags")
    hidden: int = Field(200, ge=1, description="LSTM over the words, per direction")
    layers: int = Field(1, ge=0, description="of that LSTM; 0: a word's state is its vectors, for a LSTM over several encoders")
    dropout: float = Field(0.5, ge=0, lt=1, description="before, between and behind the layers, one mask per sentence")
    word_dropout: float = Field(0.1, ge=0, lt=1, description="share of training words (and tags) read as unknown ones")

    @model_validator(mode="after")
    def _some_part(self) -> Self:
        if self.word_size == 0 and self.vectors is not None:
            raise ValueError("vectors are given, but word_size is 0")
        if self.word_size == 0 and not self.char_hidden and not self.pos_size:
            raise ValueError("word_size, char_hidden and pos_size are all 0: nothing is left to make a word of")
        return self


class StaticEncoder(Encoder):
    """Word vectors, characters and tags under a BiLSTM; the sentence's state is the maximum over its words' states.

    >>> from spanwise import Sentence
    >>> sentences = [Sentence("s1", ("Colon", "cancer", ".")), Sentence("s2", ("A", "gene"))]
    >>> encoder = StaticEncoder.build(StaticSettings(hidden=8), sentences)
    >>> states = encoder(encoder.collate(encoder.prepare(sentences)))
    >>> states.words.shape, states.cls.shape, states.mask.tolist()
    (torch.Size([2, 3, 16]), torch.Size([2, 16]), [[True, True, True], [True, True, False]])
    """

    def __init__(self, settings: StaticSettings, vocabulary: Vocabulary, word_size: int) -> None:
        super().__init__()
        self.settings, self.vocabulary = settings, vocabulary
        self.numbers = Numbers(vocabulary, characters=bool(settings.char_hidden), tags=bool(settings.pos_size))
        self.words = WordVectors(len(vocabulary.learned), len(vocabulary.given), word_size) if word_size else None
        self.characters = (
            CharacterBiLSTM(len(vocabulary.characters), settings.char_size, settings.char_hidden)
            if settings.char_hidden
            else None
        )
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
        """A fresh encoder, its vocabulary from the training sentences and the vectors, of a file or made of these sentences."""
        if settings.pos_size and not any(sentence.pos for sentence in sentences):
            raise SpanwiseError(f"pos_size is {settings.pos_size}, but no training sentence has part-of-speech tags")
        vectors = read_vectors(settings.vectors) if settings.vectors else _learned(settings, sentences, log)
        if vectors and settings.word_size not in (None, vectors.size):
            raise SpanwiseError(f"{settings.vectors}: vectors of {vectors.size} values, but word_size is {settings.word_size}")
        vocabulary = Vocabulary.build(
            sentences,
            vectors.words if vectors else (),
            freeze=settings.freeze_words,
            lowercase=settings.lowercase,
            min_count=settings.min_count,
        )
        size = vectors.size if vectors else _RANDOM_SIZE if settings.word_size is None else settings.word_size
        encoder = cls(settings, vocabulary, size)
        if vectors and encoder.words:
            encoder.words.fill(vocabulary, vectors)
        return encoder

    def save(self, folder: Path) -> None:
        """All but the weights. A file's vectors are among the weights, so the file is not needed again."""
        record = {
            "settings": self.settings.model_dump(mode="json"),
            "word_size": self.word_size,
            "vocabulary": self.vocabulary.to_json(),
        }
        (folder / FILE).write_text(json.dumps(record), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The encoder that was saved there, its weights still to be filled."""
        try:
            record = json.loads((folder / FILE).read_text(encoding="utf-8"))
            settings, vocabulary = StaticSettings(**record["settings"]), Vocabulary.from_json(record["vocabulary"])
            return cls(settings, vocabulary, record["word_size"])
        except FileNotFoundError:
            raise SpanwiseError(f"{folder}: {FILE} of the static encoder is missing") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SpanwiseError(f"{folder / FILE}: not the record of a static encoder ({error})") from None

    # --- the host's part -------------------------------------------------------------------------------------------

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[NumberedWords]:
        return self.numbers.prepare(sentences, context)

    def cost(self, prepared: NumberedWords) -> int:
        return self.numbers.cost(prepared)

    def collate(self, prepared: Sequence[NumberedWords]) -> dict[str, Tensor]:
        return {name: torch.from_numpy(array) for name, array in self.numbers.collate(prepared).items()}

    # --- the device's part -----------------------------------------------------------------------------------------

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        mask = inputs["mask"]
        parts = []
        if self.words:
            parts.append(self.words(self._some_unknown(inputs["words"])))
        if self.characters:
            parts.append(self.characters(inputs["short"], inputs["long"])[inputs["spelling"]])
        if self.tags:
            parts.append(self.tags(self._some_unknown(inputs["tags"])))
        states = self.dropout(torch.cat(parts, dim=2))
        if self.context:
            states = self.dropout(self.context(states, mask.sum(1)))
        return TokenStates(states, strongest(states, mask), mask)

    def _some_unknown(self, numbers: Tensor) -> Tensor:
        """In training, a few words are read as unknown ones, or the unknown word would never be learned."""
        if not self.training or not self.settings.word_dropout:
            return numbers
        chosen = torch.rand(numbers.shape, device=numbers.device) < self.settings.word_dropout
        return numbers.masked_fill(chosen, UNKNOWN)


class WordVectors(nn.Module):
    """Vectors of padding, the unknown word and the learned words, which training changes, and of given ones, which it does not.

    Only words of the training sentences are ever learned, so a step costs the same however many words a file has.
    """

    def __init__(self, learned: int, given: int, size: int) -> None:
        super().__init__()
        self.learned = nn.Embedding(learned + 2, size, PADDING)
        bound = math.sqrt(3 / size)
        nn.init.uniform_(self.learned.weight, -bound, bound)
        self.given = nn.Parameter(torch.zeros(given, size), requires_grad=False) if given else None

    def fill(self, vocabulary: Vocabulary, vectors: Vectors) -> None:
        """Take over the vectors of a file; words that it does not know begin at random, as large as the others are."""
        rows = {word: row for row, word in enumerate(vectors.words)}
        with torch.no_grad():
            self.learned.weight.normal_(float(vectors.table.mean()), float(vectors.table.std()))
            self.learned.weight[PADDING].zero_()
            known = [(number, rows[word]) for number, word in enumerate(vocabulary.learned, UNKNOWN + 1) if word in rows]
            if known:
                numbers, places = map(list, zip(*known, strict=True))
                self.learned.weight[numbers] = _tensor(vectors.table[places])
            if self.given is not None:
                self.given.copy_(_tensor(vectors.table[[rows[word] for word in vocabulary.given]]))

    def forward(self, numbers: Tensor) -> Tensor:
        if self.given is None:
            return self.learned(numbers)  # type: ignore[no-any-return]
        first = self.learned.num_embeddings
        is_given = numbers >= first
        learned = self.learned(numbers.masked_fill(is_given, PADDING))
        given = nn.functional.embedding((numbers - first).clamp(min=0), self.given)
        return torch.where(is_given[..., None], given, learned)


class CharacterBiLSTM(nn.Module):
    """A word's spelling read from both ends: the final states of two LSTMs."""

    def __init__(self, characters: int, size: int, hidden: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(characters + 2, size, PADDING)
        nn.init.uniform_(self.vectors.weight, -math.sqrt(3 / size), math.sqrt(3 / size))
        self.lstm = BiLSTM(size, hidden)

    def forward(self, *tables: Tensor) -> Tensor:
        """One row per spelling, those of all tables below one another. A table's rows are padded to its longest."""
        rows = [self.lstm.final(self.vectors(table), (table != PADDING).sum(1)) for table in tables if len(table)]
        return torch.cat(rows)


def _learned(settings: StaticSettings, sentences: Sequence[Sentence], log: Callable[[str], None]) -> Vectors | None:
    """Vectors made of the sentences, where the settings ask for them."""
    if settings.glove is None or settings.word_size == 0:
        return None
    glove = settings.glove if settings.word_size is None else replace(settings.glove, dim=settings.word_size)
    log(f"no word vectors given: making some of {glove.dim} values from the {len(sentences):,} training sentences")
    learned = learn_vectors((sentence.words for sentence in sentences), glove, threads=torch.get_num_threads())
    log(f"vectors of {len(learned.vectors.words):,} words made from {learned.words:,} in {learned.seconds:.1f} s")
    return learned.vectors


def _tensor(table: Floats) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(table))
