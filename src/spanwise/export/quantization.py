"""Quantisation of the graphs of transformers to 8 bits."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 32  # weights with one scale


@dataclass(frozen=True)
class Quantization:
    """How the graph of a transformer is quantised.

    By default, each column of a weight has its own scale, and each input of a product is rounded to 8
    bits with one scale. The most sensitive products are more exact: ``float_share`` of them stay in
    float32, and up to ``block_share`` are computed in blocks, which is slower: every 32 weights and
    every 32 inputs have their own scale. The vectors of subwords are rounded with one scale, or stay
    in float32.
    """

    name: str
    block_share: float = 0.0  # with the products in float32
    float_share: float = 0.0
    rounds_embeddings: bool = True


# From the fastest to the most exact. One scale per weight instead of one per column is not faster, but
# far less exact.
CANDIDATES = (
    Quantization("a scale per column"),
    Quantization("a quarter in blocks", 0.25),
    Quantization("half in blocks", 0.5),
    Quantization("all in blocks", 1.0),
    Quantization("all in blocks, embeddings in float32", 1.0, rounds_embeddings=False),
    Quantization("blocks, a quarter and embeddings in float32", 1.0, 0.25, rounds_embeddings=False),
)
SAFEST = CANDIDATES[4]  # without a measurement of what is sensitive


def weight_products(model: Any) -> Iterator[tuple[Any, Any]]:
    """The matrix products with weights of a graph (nodes), and their weights (initializers)."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights and len(weights[node.input[1]].dims) == 2:
            yield node, weights[node.input[1]]


def product_names(path: Path) -> list[str]:
    """The names of the products with weights of a graph."""
    import onnx

    return [node.name for node, _ in weight_products(onnx.load(path))]


def quantize(
    source: Path,
    target: Path,
    blocks: Collection[str] = (),
    floats: Collection[str] = (),
    *,
    rounds_embeddings: bool = True,
) -> None:
    """Write the quantised graph of a transformer.

    ``blocks`` and ``floats`` are the names of the products to compute in blocks and in float32.
    Norms, attention products and sums stay in float32. Columns use 7 of the 8 bits: without this,
    sums overflow on processors without VNNI, and scores are no better.
    """
    import onnx

    model = onnx.load(source)
    types = {"Gather"} if rounds_embeddings else set()
    exact = {*blocks, *floats}
    if any(node.name not in exact for node, _ in weight_products(model)):
        types.add("MatMul")
    if types:
        _quantize_columns(source, target, sorted(types), sorted(exact))
        model = onnx.load(target)
    _use_blocks(model, blocks)
    onnx.save(model, target)


def _quantize_columns(source: Path, target: Path, types: list[str], excluded: list[str]) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().addFilter(_is_error)
    try:
        quantize_dynamic(
            source, target, op_types_to_quantize=types, nodes_to_exclude=excluded,
            weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
        )  # fmt: skip
    finally:
        logging.getLogger().removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING


def _use_blocks(model: Any, names: Collection[str]) -> None:
    """Replace products by ``MatMulNBits`` of onnxruntime, with 8 bits."""
    from onnx import helper, numpy_helper

    products = [(node, weight) for node, weight in weight_products(model) if node.name in names]
    if not products:
        return
    tensors: dict[str, Any] = {}
    for node, weight in products:
        matrix = numpy_helper.to_array(weight)
        quantized, scales = quantize_blocks(matrix)
        pair = f"{weight.name}_blocks", f"{weight.name}_scales"
        tensors |= dict(zip(pair, (quantized, scales), strict=True))  # nodes may share a weight
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        node.input[:] = [node.input[0], *pair]
        # Level 4: the inputs are also rounded to 8 bits.
        attributes = {"K": matrix.shape[0], "N": matrix.shape[1], "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    used = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in tensors.items())
    if all(opset.domain != "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def quantize_blocks(weight: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Round a weight [K, N] to 8 bits around 128, in blocks of its rows: values [N, K / 32, 32], and their scales.

    >>> values, scales = quantize_blocks(np.array([[1.0], [-0.5]], np.float32))
    >>> values[0, 0, :3].tolist(), (scales * 127).tolist()
    ([255, 64, 128], [1.0])
    """
    rows, columns = weight.shape
    padded = np.pad(weight.T, ((0, 0), (0, -rows % BLOCK))).reshape(columns, -1, BLOCK)
    scales = np.abs(padded).max(2) / 127
    scales[scales == 0] = 1.0
    values = np.rint(padded / scales[:, :, None]) + 128
    return values.astype(np.uint8), scales.astype(np.float32).reshape(-1)
