"""Rotary position embeddings: vectors rotated by their position, so that products depend on distances.

Su et al. 2021, "RoFormer", in the interleaved form of GlobalPointer (section 3.2.2): components 2i and
2i + 1 form a plane, in which the vector at position p is rotated by the angle p / 10000^(2i / d).
"""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor, nn

from spanwise.runtime.device import is_traced

BASE = 10_000.0


class Rotary(nn.Module):
    """Rotates vectors of an even ``size`` by their positions, and multiplies them by ``scale``.

    The two components of a plane form a complex number, so a rotation is one product. The table grows
    with the longest sentence.

    >>> rotate, vectors = Rotary(2), torch.tensor([[1.0, 0.0]]).repeat(1, 3, 1)
    >>> rotate(vectors)[0, 1].round(decimals=4)
    tensor([0.5403, 0.8415])
    """

    def __init__(self, size: int, scale: float = 1.0) -> None:
        super().__init__()
        if size % 2:
            raise ValueError(f"rotary positions need an even size, found {size}")
        self.size, self.scale = size, scale
        # Not a buffer, because its length may differ between distributed processes.
        self.table = torch.empty(0, size // 2, dtype=torch.complex64)
        self._outgrown: list[Tensor] = []  # recorded CUDA graphs still read the tables that they were recorded with

    def forward(self, vectors: Tensor) -> Tensor:
        """Rotate ``vectors`` [B, T, …, size]; in float32."""
        if is_traced():
            return self._rotate_traced(vectors)
        length = vectors.shape[1]
        if length > len(self.table) or self.table.device != vectors.device:
            self._grow(max(length, 2 * len(self.table)), vectors.device)
        planes = torch.view_as_complex(vectors.float().reshape(*vectors.shape[:-1], self.size // 2, 2))
        rotations = self.table[:length].view(length, *(1,) * (vectors.ndim - 3), self.size // 2)
        return torch.view_as_real(planes * rotations).flatten(-2)

    def _angles_per_word(self) -> Tensor:
        """The angle between adjacent positions in each plane: [size / 2]."""
        return BASE ** (-torch.arange(0, self.size, 2, dtype=torch.float64) / self.size)

    def _rotate_traced(self, vectors: Tensor) -> Tensor:
        """Rotate without complex numbers and without a table, for exported graphs."""
        turns = torch.arange(vectors.shape[1], dtype=torch.float64).unsqueeze(1) * (self._angles_per_word() / (2 * pi))
        # In double precision until whole turns are removed; few runtimes have a cosine for doubles.
        angles = ((turns - turns.floor()) * (2 * pi)).float().view(-1, *(1,) * (vectors.ndim - 3), self.size // 2)
        cosine, sine = angles.cos() * self.scale, angles.sin() * self.scale
        real, imaginary = vectors.float().reshape(*vectors.shape[:-1], self.size // 2, 2).unbind(-1)
        return torch.stack((real * cosine - imaginary * sine, real * sine + imaginary * cosine), -1).flatten(-2)

    def _grow(self, length: int, device: torch.device) -> None:
        """Replace the table by one of ``length`` positions."""
        # Not an inference tensor, because training uses a table that was built in prediction.
        with torch.inference_mode(False), torch.no_grad():
            angles = torch.arange(length, dtype=torch.float64).unsqueeze(1) * self._angles_per_word()
            if self.table.is_cuda:
                self._outgrown.append(self.table)
            self.table = torch.polar(torch.full_like(angles, self.scale), angles).to(device, torch.complex64)
