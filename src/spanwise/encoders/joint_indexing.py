"""The host part of several encoders together: the arrays of every part, named after it. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from spanwise.core.types import Sentence


class Indexer(Protocol):
    """Interface of the part of an encoder that turns sentences into its inputs."""

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]: ...

    def cost(self, prepared: Any) -> int: ...

    def collate(self, prepared: Sequence[Any]) -> Mapping[str, Any]: ...


Part = TypeVar("Part", bound=Indexer)
Value = TypeVar("Value")


class JointIndexer(Generic[Part]):
    """Indexer that prepares sentences and collates batches for several encoders at once."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[tuple[Any, ...]]:
        return list(zip(*(part.prepare(sentences, context) for part in self.parts), strict=True))

    def cost(self, prepared: tuple[Any, ...]) -> int:
        return max([part.cost(item) for part, item in zip(self.parts, prepared, strict=True)])

    def collate(self, prepared: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The arrays of all parts, as ``name_arrays`` names them, and their common ``mask``."""
        columns = zip(*prepared, strict=True)
        parts = [part.collate(items) for part, items in zip(self.parts, columns, strict=True)]
        mask = common_mask([collated["mask"] for collated in parts])
        arrays: dict[str, Any] = {}
        for index, collated in enumerate(parts):
            # Masks of the same shape are equal; one array for all of them is copied to a device once.
            shared = {"mask": mask} if collated["mask"].shape == mask.shape else {}
            arrays |= name_arrays({**collated, **shared}, index)
        return arrays | {"mask": mask}


def common_mask(masks: Sequence[Any]) -> Any:
    """The shortest of the parts' masks: parts may pad to different lengths, but never to less than the longest sentence."""
    return min(masks, key=lambda mask: mask.shape[1])


def name_arrays(arrays: Mapping[str, Value], index: int) -> dict[str, Value]:
    """Prefix the names of arrays with the index of their part; ``select_arrays`` is the inverse.

    >>> name_arrays({"ids": 5}, 1)
    {'1.ids': 5}
    """
    return {f"{index}.{name}": array for name, array in arrays.items()}


def select_arrays(arrays: Mapping[str, Value], index: int) -> dict[str, Value]:
    """The arrays of one part, without the prefix of their names.

    >>> select_arrays({"0.ids": 4, "1.ids": 5, "mask": 6}, 1)
    {'ids': 5}
    """
    prefix = f"{index}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def part_folder(index: int) -> str:
    """The name of the folder with the files of a part."""
    return f"part-{index}"
