"""The vectors of spellings in prediction: each spelling is read once and not once per batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spanwise.encoders.spellings import Array, Spellings

ROWS = 1024  # spellings that are read together; they are sorted by length, so that padding is short


@dataclass(frozen=True, slots=True, eq=False)
class ReadSpellings:
    """The vectors of all spellings of a table."""

    spellings: Spellings
    vectors: Tensor
    places: Array  # where the vector of each spelling is

    @classmethod
    def read(cls, spellings: Spellings, reader: Callable[[Tensor], Tensor], device: torch.device) -> ReadSpellings:
        order = spellings.lengths.argsort(kind="stable")
        tables = (spellings.table(order[first : first + ROWS]) for first in range(0, len(order), ROWS))
        vectors = torch.cat([reader(torch.from_numpy(table).to(device)) for table in tables])
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return cls(spellings, vectors, places)
