"""The errors of a training that needs more memory than there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from spanwise.config.settings import TrainingSettings
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence

_NO_CPU_MEMORY = "can't allocate memory"  # in an error of torch's allocator
_DEAD_PROCESS = "DataLoader worker (pid"  # in an error of torch's loader, but not if its process reports an exception


@contextmanager
def explain_lack_of_memory(step: int, sentences: Iterable[Sentence], settings: TrainingSettings) -> Iterator[None]:
    """Replace the error of torch for a step over a batch by one line that says what to change."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.cuda.OutOfMemoryError) and _NO_CPU_MEMORY not in str(error):
            raise
        lengths = [len(sentence.words) for sentence in sentences]
        size = f"{counted(len(lengths), 'sentence')}, the longest of {counted(max(lengths, default=0), 'word')}"
        raise SpanwiseError(f"not enough memory for step {step}: a batch of {size}; {_advise(settings)}") from None


@contextmanager
def explain_dead_processes() -> Iterator[None]:
    """Replace the error of torch for a process that was killed while it built batches by one line."""
    try:
        yield
    except RuntimeError as error:
        if _DEAD_PROCESS not in str(error):
            raise
        reason = str(error).partition(". ")[0]
        raise SpanwiseError(
            f"a process that builds batches died: {reason}; if memory is short, end other programs; "
            "add --resume to the command to continue"
        ) from None


def _advise(settings: TrainingSettings) -> str:
    if settings.token_budget is not None:
        return f"lower training.token_budget (now {settings.token_budget})"
    if not settings.batch_size or settings.batch_size == 1:
        return "train on shorter sentences, or with another recipe or a smaller encoder"
    smaller = f"--batch-size {settings.batch_size // 2} --set training.accumulate={2 * settings.accumulate}"
    return f"pass {smaller}, which learns from about as many sentences per step, or train on shorter sentences"
