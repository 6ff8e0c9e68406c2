"""Sets of types that spans have together, as further classes of a softmax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from spanwise.core.errors import unknown_name
from spanwise.heads.sentence_cache import Ints
from spanwise.losses.smoothing import SoftSpans


class TypeSets(nn.Module):
    """The classes of spans with several types, between the classes of single types and NONE.

    A softmax over types gives a span one of them. With a class for each set of types, it stays a distribution:
    a span has the set with the highest probability, and the probability of a type is the sum over its sets.
    """

    table: Tensor

    def __init__(self, sets: Sequence[Sequence[str]], types: Sequence[str], size: int) -> None:
        super().__init__()
        unknown = next((type for group in sets for type in group if type not in types), None)
        if unknown is not None:
            raise unknown_name("type of head.type_sets", unknown, types)
        index = {type: position for position, type in enumerate(types)}
        members = [frozenset(index[type] for type in group) for group in sets]
        self.classes: Mapping[frozenset[int], int] = {group: len(types) + row for row, group in enumerate(members)}
        self.classifier = nn.Linear(size, len(sets))
        # Which types each class has [C + S, C].
        table = torch.eye(len(types) + len(sets), len(types), dtype=torch.bool)
        for group, row in self.classes.items():
            table[row, list(group)] = True
        self.register_buffer("table", table, persistent=False)

    def add_logits(self, logits: Tensor, cells: Tensor) -> Tensor:
        """Insert the logits of the sets: [..., C + 1] to [..., C + S + 1]."""
        return torch.cat((logits[..., :-1], self.classifier(cells), logits[..., -1:]), -1)

    def probabilities(self, classes: Tensor) -> Tensor:
        """The probabilities of types [..., C] from those of types and sets [..., C + S]."""
        return (classes @ self.table.to(classes.dtype)).clamp(max=1.0)  # sums are rounded

    def join(self, rows: Ints) -> Ints:
        """Replace the rows (start, end, label) of a span with several types by one with the class of its set.

        Spans whose set is not a class keep their rows. ``rows`` are sorted.
        """
        joined = []
        for span, group in groupby(rows.tolist(), key=lambda row: (row[0], row[1])):
            labels = [label for _, _, label in group]
            set_class = self.classes.get(frozenset(labels))
            joined += [(*span, label) for label in (labels if set_class is None else [set_class])]
        return np.array(joined, np.int64).reshape(-1, 3)

    def join_probabilities(self, spans: SoftSpans) -> SoftSpans:
        """Give a set of types the probability that its types need together, and take it from them.

        Teachers give probabilities of types. Those of k types leave at least their sum minus k - 1 to all
        of them together; if types exclude each other, this is 0. The largest sets come first, and the others
        share the rest. The probabilities of types stay the same.
        """
        largest_first = sorted(self.classes.items(), key=lambda item: -len(item[0]))
        masses: dict[tuple[int, int], dict[int, float]] = {}
        for start, end, label, mass in zip(*(column.tolist() for column in spans), strict=True):
            masses.setdefault((start, end), {})[label] = mass
        joined = []
        for span, by_label in masses.items():
            rest = 1.0
            for group, set_class in largest_first:
                together = sum(min(by_label.get(label, 0.0), rest) for label in group) - (len(group) - 1) * rest
                if together > 0:
                    by_label |= {label: by_label[label] - together for label in group} | {set_class: together}
                    rest -= together
            joined += [(*span, label, mass) for label, mass in by_label.items() if mass > 0]
        columns = np.array(sorted(joined), np.float64).reshape(-1, 4).T
        start, end, label = columns[:3].astype(np.int64)
        return SoftSpans(start, end, label, columns[3].astype(np.float32))

    def count_together(self, labels: Iterable[int]) -> int:
        """How many of the types of a span can be predicted together: those of its largest class."""
        labels = frozenset(labels)
        return max((len(group) for group in self.classes if group <= labels), default=1)

    def known_classes(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether classes are known in each sentence [B, C + S], from the types that are known [B, C]."""
        return np.stack([*known.T, *(known[:, list(group)].all(1) for group in self.classes)], 1)

    def open_classes(self, is_open: Tensor) -> Tensor:
        """Whether spans are open for classes [B, C + S, K], from types [B, C, K]. A set is open only if all its types are."""
        return self.table.float() @ (~is_open).float() == 0

    def possible_classes(self, is_open: Tensor, label: Tensor) -> Tensor:
        """Which classes spans with a class ``label`` [n] may have, because more of their types are open [n, C]: [n, C + S]."""
        gold = self.table.index_select(0, label)
        missing = (gold.unsqueeze(1) & ~self.table).any(2)
        excluded = ((~is_open & ~gold).unsqueeze(1) & self.table).any(2)
        return ~(missing | excluded)
