"""Intersection over union of spans (Locate and Label, section 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

if TYPE_CHECKING:  # decoding uses this function without torch
    from torch import Tensor

    Array = TypeVar("Array", Tensor, npt.NDArray[Any])


def iou(start: Array, end: Array, other_start: Array, other_end: Array) -> Array:
    """Compute shared words / words in either span, elementwise, for half-open spans.

    Works on NumPy arrays and torch tensors of any numeric type, and broadcasts.

    Let D be the distance of the starts plus that of the ends, and W the sum of both widths. The
    overlap is (W - D) / 2, or 0 if that is negative. The range from the first start to the last end
    is (W + D) / 2, which is the union where the spans overlap. A span without words has an IoU of 0
    with every other span.

    >>> import numpy as np
    >>> iou(np.array([2, 2, 2]), np.array([5, 5, 5]), np.array([2, 3, 5]), np.array([5, 7, 6]))
    array([1. , 0.4, 0. ])
    """
    distance = abs(start - other_start) + abs(end - other_end)
    widths = end - start + (other_end - other_start)
    result: Array = (widths - distance).clip(0) / (widths + distance)
    return result
