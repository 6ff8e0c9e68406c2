"""The optimiser, its rates and their schedule."""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from spanwise.config.settings import TrainingSettings
from spanwise.models.model import Model

SMALL = 30_000_000  # parameters below which an encoder bears (and, in short runs, needs) a higher rate


def encoder_rate(settings: TrainingSettings, parameters: int) -> float:
    """The rate of the pretrained weights: as said, else by their number."""
    if settings.encoder_rate is not None:
        return settings.encoder_rate
    return 1e-4 if parameters < SMALL else 3e-5


def make_optimizer(model: Model, settings: TrainingSettings) -> AdamW:
    """AdamW with its own rate for pretrained weights, and no decay for biases and norms."""
    pretrained = {id(parameter) for part in (model.encoder, model.head) for parameter in part.pretrained_parameters()}
    size = sum(parameter.numel() for parameter in model.encoder.pretrained_parameters())
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            groups.setdefault((id(parameter) in pretrained, parameter.ndim > 1), []).append(parameter)
    rates = {True: encoder_rate(settings, size), False: settings.head_rate}
    return AdamW(
        [
            {"params": members, "lr": rates[old], "weight_decay": settings.weight_decay if decays else 0.0}
            for (old, decays), members in groups.items()
        ],
        fused=True,
    )


def make_schedule(optimizer: AdamW, steps: int, warmup: float, *, falls: bool = True) -> LambdaLR:
    """Rates that rise over the warm-up and then, unless they stay, fall in a straight line to zero at the last step."""
    rise = int(steps * warmup)

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / (rise + 1)
        return max(0.0, (steps - step) / max(1, steps - rise)) if falls else 1.0

    return LambdaLR(optimizer, factor)
