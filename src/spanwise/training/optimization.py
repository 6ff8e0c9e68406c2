"""The optimiser, its learning rates and their schedule."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from spanwise.config.settings import TrainingSettings
from spanwise.heads.abilities import HasParameterGroups, heads_with
from spanwise.heads.base import Head
from spanwise.models.model import Model

# Parameters of a small encoder. It tolerates a higher learning rate and, in short runs, needs it.
SMALL_ENCODER = 30_000_000


def encoder_rate(settings: TrainingSettings, parameters: int) -> float:
    """The learning rate of pretrained weights; by default chosen by their number."""
    if settings.encoder_rate is not None:
        return settings.encoder_rate
    return 1e-4 if parameters < SMALL_ENCODER else 3e-5


def make_optimizer(model: Model, settings: TrainingSettings) -> AdamW:
    """AdamW with a separate rate for pretrained weights, and no decay for biases and norms."""
    pretrained = {id(parameter) for parameter in model.encoder.pretrained_parameters()}
    for head in heads_with(model.head, HasParameterGroups):
        pretrained |= {id(parameter) for parameter in head.pretrained_parameters()}
    size = sum(parameter.numel() for parameter in model.encoder.pretrained_parameters())
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            groups.setdefault((id(parameter) in pretrained, parameter.ndim > 1), []).append(parameter)
    rates = {True: encoder_rate(settings, size), False: settings.head_rate}
    return AdamW(
        [
            {"params": parameters, "lr": rates[is_pretrained], "weight_decay": settings.weight_decay if decays else 0.0}
            for (is_pretrained, decays), parameters in groups.items()
        ],
        fused=True,
    )


def make_schedule(optimizer: AdamW, steps: int, warmup: float, *, is_linear: bool = True) -> LambdaLR:
    """Rates that rise during warm-up and then fall linearly to 0 at the last step, or stay constant."""
    rising = int(steps * warmup)

    def factor(step: int) -> float:
        if step < rising:
            return (step + 1) / (rising + 1)
        return max(0.0, (steps - step) / max(1, steps - rising)) if is_linear else 1.0

    return LambdaLR(optimizer, factor)


def clip_groups(head: Head, trainable: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """The groups of parameters whose gradients are clipped separately; the first has all that are in no other."""
    separate = [list(part.separately_clipped_parameters()) for part in heads_with(head, HasParameterGroups)]
    is_separate = {id(parameter) for group in separate for parameter in group}
    rest = [parameter for parameter in trainable if id(parameter) not in is_separate]
    return [group for group in (rest, *separate) if group]
