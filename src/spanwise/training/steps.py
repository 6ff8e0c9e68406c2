"""Training steps: gradients, also of perturbed embeddings, clipping and update, for any head."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn import Parameter

from spanwise.batching.batches import Batch, PackedBatch, TrainingBatches
from spanwise.models.model import Model
from spanwise.runtime.fast_dropout import use_fast_dropout
from spanwise.runtime.fast_embedding import use_fast_embeddings
from spanwise.runtime.fast_linear import use_fast_linear
from spanwise.training.acceleration import enable_cuda_graphs, store_by_channel, use_bfloat16_in_heads
from spanwise.training.adversarial import perturb, trainable_embeddings
from spanwise.training.embedding_sums import add_to_gradients, find_embeddings
from spanwise.training.optimization import clip_groups, make_optimizer, make_schedule
from spanwise.training.step_graphs import StepGraphs


class TrainingSteps:
    """The steps of a training. Moves the model to the device, and owns optimiser and schedule.

    ``update_count`` is the number of optimiser steps. On a GPU with one batch per step, whole steps are
    recorded as CUDA graphs. If encoder or head do not support this, parts of a step in float32 are.
    """

    def __init__(
        self, model: Model, batches: TrainingBatches, accelerator: Accelerator, precision: str, update_count: int
    ) -> None:  # fmt: skip
        self.model, self.settings, self.accelerator, self.precision = model, model.config.training, accelerator, precision
        self.device = accelerator.device
        # Several batches make one step: gradients are summed and divided by the number of all instances.
        self.joins_batches = self.settings.accumulate > 1 or accelerator.num_processes > 1
        self._prepare_model(batches)
        self._set_up_optimizer(update_count)
        self.graphs = StepGraphs(self._make_recordable, self.optimizer, self.device) if self.records_steps else None
        self._instances: Tensor | None = None  # of the batches that make the next step
        self._batches: list[Batch] = []  # the batches that make the next step, for adversarial training

    def _prepare_model(self, batches: TrainingBatches) -> None:
        """Choose what is recorded as CUDA graphs, give layers their fast forward passes, and move the model to the device."""
        has_one_batch = self.device.type == "cuda" and not self.joins_batches
        # The scaler of fp16 reads on the host whether a step has overflowed.
        self.records_steps = has_one_batch and self.precision != "fp16" and batches.fix_shapes()
        self.records_encoder = has_one_batch and self.precision == "fp32" and not self.records_steps
        if self.records_steps:
            self.model.encoder.enable_step_graphs()
            use_fast_linear(self.model)
            use_fast_embeddings(self.model)
            if self.settings.precision == "auto":
                use_bfloat16_in_heads(self.model)
        if self.records_encoder:
            enable_cuda_graphs(self.model)
        if self.device.type == "cpu":
            use_fast_dropout(self.model)
        self.model.to(self.device)
        if self.records_steps:
            store_by_channel(self.model)

    def _set_up_optimizer(self, update_count: int) -> None:
        model, settings = self.model, self.settings
        self.trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.embeddings = trainable_embeddings(model.encoder) if settings.adversarial else []
        # Parts of a recorded encoder cannot change between the passes, and several processes exchange whole gradients.
        can_sum = not self.records_encoder and self.accelerator.num_processes == 1
        self.summing_embeddings = find_embeddings(model, self.embeddings) if can_sum else []
        self.clip_groups = clip_groups(model.head, self.trainable)
        self.optimizer = make_optimizer(model, settings)
        is_linear = settings.schedule == "linear"
        self.schedule = make_schedule(self.optimizer, update_count, settings.warmup, is_linear=is_linear)
        self.wrapped_model, self.wrapped_optimizer = self.accelerator.prepare(model, self.optimizer)

    def make(self, packed: PackedBatch, *, is_update: bool = True) -> tuple[dict[str, Tensor], Tensor | None]:
        """Compute the gradients of a batch and, with ``is_update``, make an optimiser step.

        Returns the losses, and the norm of the gradient if it has a meaning.
        """
        if self.graphs is not None:
            losses = self.graphs(packed)
            self.schedule.step()
            return losses, losses.pop("gradient_norm")
        batch = packed.to(self.device)
        losses = self._backward(batch)
        instances = losses.pop("instances")
        if self.joins_batches:
            self._instances = instances if self._instances is None else self._instances + instances
        if self.settings.adversarial:
            self._batches.append(batch)
        if not is_update:
            return losses, None
        self._add_adversarial_gradients()
        return losses, self._update()

    def _make_recordable(self, batch: Batch) -> dict[str, Tensor]:
        """Make an optimiser step with one batch; a CUDA graph can record it. Returns the losses and the gradient norm."""
        losses = self._backward(batch)
        del losses["instances"]
        if self.settings.adversarial:
            self._batches.append(batch)
        self._add_adversarial_gradients()
        norm = self._clip()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {**losses, "gradient_norm": norm}

    def _clip(self) -> Tensor:
        """Clip the gradients; return their norm, the largest of several groups."""
        norms = [torch.nn.utils.clip_grad_norm_(group, self.settings.clip, foreach=True) for group in self.clip_groups]
        return torch.stack(norms).max()

    def _backward(self, batch: Batch) -> dict[str, Tensor]:
        """Forward and backward. Returns detached losses: a reference to the graph would keep its memory."""
        losses: dict[str, Tensor] = self.wrapped_model(batch.inputs, batch.targets)
        # Of several batches, a sum over instances; _update divides it by the number of all instances. The result is
        # the mean of one larger batch, up to losses that add several means over different instances.
        self.accelerator.backward(losses["loss"] * losses["instances"] if self.joins_batches else losses["loss"])
        return {name: value.detach() for name, value in losses.items()}

    def _add_adversarial_gradients(self) -> None:
        """Add the gradients of the step's batches with perturbed embeddings.

        All batches of a step are read under one perturbation, along their joint gradient, as one larger batch would be.
        """
        if not self._batches:
            return
        if self.records_encoder:
            # The gradients may be buffers of a CUDA graph, which its next replay overwrites.
            for parameter in self.trainable:
                if parameter.grad is not None:
                    parameter.grad = parameter.grad.clone()
        with perturb(self.embeddings, self.settings.adversarial, in_place=self.records_encoder):
            first = self._take_gradients() if self.accelerator.num_processes == 1 else {}
            with add_to_gradients(self.summing_embeddings, first):
                for batch in self._batches:
                    self._backward(batch)
        pairs = [(parameter.grad, gradient) for parameter, gradient in first.items() if parameter.grad is not None]
        if pairs:
            torch._foreach_add_(*map(list, zip(*pairs, strict=True)))
        for parameter, gradient in first.items():
            if parameter.grad is None:  # added in place, or unused by the second pass: some encoders skip layers at random
                parameter.grad = gradient
        self._batches.clear()

    def _take_gradients(self) -> dict[Parameter, Tensor]:
        """Remove and return the gradients: adding them later at once is faster than one by one in a backward pass.

        Several processes exchange what a backward pass adds to the gradients, so theirs must stay.
        """
        gradients = {parameter: parameter.grad for parameter in self.trainable if parameter.grad is not None}
        for parameter in gradients:
            parameter.grad = None
        return gradients

    def _update(self) -> Tensor | None:
        """Make an optimiser step; return the norm of the gradient, or None if it has no meaning."""
        # from sums to means
        if self._instances is not None:
            total = self.accelerator.reduce(self._instances, reduction="sum").clamp(min=1)
            for parameter in self.trainable:
                if parameter.grad is not None:
                    parameter.grad.mul_(self.accelerator.num_processes / total)  # gradients are averaged over processes
            self._instances = None
        # clip, step, schedule
        if self.precision == "fp16":
            self.accelerator.unscale_gradients()
        norm = self._clip()
        self.wrapped_optimizer.step()
        self.schedule.step()
        self.wrapped_optimizer.zero_grad(set_to_none=True)
        # The fp16 scaler skips steps that overflow, so their norms are no errors.
        return None if self.precision == "fp16" else norm
