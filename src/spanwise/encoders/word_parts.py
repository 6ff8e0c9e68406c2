"""The parts of a word's representation in the static encoder: vectors of words, and encoders of their characters."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.encoders.fast_characters import can_use_character_kernels, maxima_with_kernels
from spanwise.encoders.recurrent import BiLSTM
from spanwise.encoders.vocabulary import PADDING, UNKNOWN, Vocabulary
from spanwise.vectors.store import Floats, Vectors


class WordVectors(nn.Module):
    """Trained vectors of padding, the unknown word and the learned words, and fixed vectors of the given words.

    Only words of the training sentences are trained, so the cost of a step does not depend on the
    size of the vector file.
    """

    def __init__(self, learned: int, given: int, size: int) -> None:
        super().__init__()
        self.learned = _random_vectors(learned, size)
        self.given = nn.Parameter(torch.zeros(given, size), requires_grad=False) if given else None

    def fill(self, vocabulary: Vocabulary, vectors: Vectors) -> None:
        """Copy the vectors of a file; other words get random vectors with the same mean and standard deviation."""
        rows = {word: row for row, word in enumerate(vectors.words)}
        with torch.no_grad():
            self.learned.weight.normal_(float(vectors.table.mean()), float(vectors.table.std()))
            self.learned.weight[PADDING].zero_()
            pairs = [(index, rows[word]) for index, word in enumerate(vocabulary.learned, UNKNOWN + 1) if word in rows]
            if pairs:
                indices, file_rows = map(list, zip(*pairs, strict=True))
                self.learned.weight[indices] = _tensor(vectors.table[file_rows])
            if self.given is not None:
                self.given.copy_(_tensor(vectors.table[[rows[word] for word in vocabulary.given]]))

    def forward(self, indices: Tensor) -> Tensor:
        if self.given is None:
            return self.learned(indices)  # type: ignore[no-any-return]
        first = self.learned.num_embeddings
        is_given = indices >= first
        learned = self.learned(indices.masked_fill(is_given, PADDING))
        given = nn.functional.embedding((indices - first).clamp(min=0), self.given)
        return torch.where(is_given[..., None], given, learned)


class CharacterBiLSTM(nn.Module):
    """A word's characters, encoded by the final states of a forward and a backward LSTM."""

    def __init__(self, characters: int, size: int, hidden: int) -> None:
        super().__init__()
        self.vectors = _random_vectors(characters, size)
        self.lstm = BiLSTM(size, hidden)

    def forward(self, *tables: Tensor) -> Tensor:
        """One row per spelling of all tables, concatenated. The rows of a table are padded to its longest."""
        rows = [self.lstm.final(self.vectors(table), (table != PADDING).sum(1)) for table in tables if len(table)]
        return torch.cat(rows)


class CharacterCNN(nn.Module):
    """A word's characters, encoded by the maximum of each filter over all triples of characters."""

    def __init__(self, characters: int, size: int, hidden: int) -> None:
        super().__init__()
        self.vectors = _random_vectors(characters, size)
        with torch.no_grad():
            self.vectors.weight[PADDING].zero_()  # the convolution reads it next to a word's last character
        self.convolution = nn.Conv1d(size, 2 * hidden, 3, padding=1)

    def forward(self, *tables: Tensor) -> Tensor:
        """One row per spelling of all tables, concatenated. The rows of a table are padded to its longest."""
        vectors, weight, bias = self.vectors.weight, self.convolution.weight, self.convolution.bias
        if self.training and bias is not None and can_use_character_kernels(vectors, weight, *tables):
            return maxima_with_kernels(vectors, weight, bias, *tables)
        return torch.cat([self._read(table) for table in tables if len(table)])

    def _read(self, table: Tensor) -> Tensor:
        filtered = self.convolution(self.vectors(table).transpose(1, 2)).relu()  # at least 0, the value of padding
        maximum: Tensor = (filtered * (table != PADDING).unsqueeze(1)).amax(2)
        return maximum


CHARACTER_READERS: dict[str, type[CharacterBiLSTM] | type[CharacterCNN]] = {"lstm": CharacterBiLSTM, "cnn": CharacterCNN}


def _random_vectors(count: int, size: int) -> nn.Embedding:
    """Vectors of padding, the unknown item and ``count`` items, with a variance of ``1 / size`` in each component."""
    vectors = nn.Embedding(count + 2, size, PADDING)
    bound = math.sqrt(3 / size)
    nn.init.uniform_(vectors.weight, -bound, bound)
    return vectors


def _tensor(table: Floats) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(table))
