"""Half-precision inference on a GPU."""

from __future__ import annotations

import torch

from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import RECORDABLE, TransformerEncoder
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.predictor import Predictor


def use_half_precision(predictor: BasePredictor) -> None:
    """Run transformers in half precision; the head reads their states in float32. ONNX models stay unchanged.

    Float16 is more precise than bfloat16 but has a smaller range, in which the states of BERT and
    similar architectures are known to be.
    """
    if not isinstance(predictor, Predictor):
        return
    for module in predictor.model.encoder.modules():
        # A head that reads lower layers may also use their weights, on states in float32.
        if isinstance(module, TransformerEncoder) and not module.lower_layers:
            module.model.to(torch.float16 if module.model.config.model_type in RECORDABLE else torch.bfloat16)
            module.register_forward_hook(lambda module, inputs, states: _to_float32(states))


def _to_float32(states: TokenStates) -> TokenStates:
    return TokenStates(states.words.float(), states.cls.float(), states.mask, tuple(layer.float() for layer in states.layers))
