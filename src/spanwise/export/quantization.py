"""Quantisation of the graphs of transformers to 8 bits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.export.product_inputs import product_inputs
from spanwise.export.rounding import (
    BLOCK,
    Floats,
    channel_divisors,
    outlier_channels,
    relative_error,
    round_blocks,
    round_columns,
    round_rows,
)

MIN_TABLE = 1000  # minimum rows of a table of vectors to round; smaller ones, such as those of positions, need little space
SEARCH_STEP = 4  # divisors are chosen on every fourth row of the inputs


@dataclass(frozen=True)
class Quantization:
    """How the graph of a transformer is quantised.

    By default, each column of a weight has its own scale, and each input of a product is rounded to 8
    bits with one scale. The most sensitive products are more exact: the share ``float_share`` of all
    products stays in float32, and the next ones, up to the share ``block_share``, are computed in blocks,
    which is slower: every 32 weights and every 32 inputs have their own scale.
    """

    name: str
    block_share: float = 0.0  # with the products in float32
    float_share: float = 0.0


# From the fastest to the most exact. One scale per weight instead of one per column is not faster, but
# far less exact.
CANDIDATES = (
    Quantization("a scale per column"),
    Quantization("a quarter in blocks", 0.25),
    Quantization("half in blocks", 0.5),
    Quantization("all in blocks", 1.0),
    Quantization("blocks, a quarter in float32", 1.0, 0.25),
)
SAFEST = CANDIDATES[3]  # needs no dev data, on which sensitivity is measured


class RoundedInput(NamedTuple):
    """How an input of products is rounded."""

    factors: Floats  # [K], by which its channels are multiplied before rounding; 0 for outliers
    outliers: npt.NDArray[np.int64]  # the channels that are multiplied in float32


class RoundedProduct(NamedTuple):
    """A product whose weight is rounded with a scale per column."""

    input: RoundedInput | None  # None: rounded without factors and outliers
    values: npt.NDArray[np.int8]  # [K, N], of the weight divided by the factors
    scales: Floats  # [N], of the columns
    outliers: Floats  # [outliers, N], the rows of the weight for the channels in float32
    error: float  # squared error of its results relative to their square


class Product(NamedTuple):
    """A matrix product with a weight in a graph."""

    name: str
    input: str
    weight: str


def load_graph(path: Path) -> Any:
    """Load a graph whose nodes read weights directly: a weight that layers share is exported once, with other names."""
    import onnx

    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    aliases = [node for node in model.graph.node if node.op_type == "Identity" and node.input[0] in weights]
    names = {node.output[0]: node.input[0] for node in aliases}
    for node in aliases:
        model.graph.node.remove(node)
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return model


def weight_products(model: Any) -> list[Product]:
    """The matrix products of states with weights in a graph, in order.

    Products of constants, such as the relative positions of DeBERTa, are not among them: onnxruntime computes
    them once.
    """
    weights = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 2}
    states = {tensor.name for tensor in model.graph.input}
    products = []
    for node in model.graph.node:
        if states.isdisjoint(node.input):
            continue
        states.update(node.output)
        if node.op_type == "MatMul" and node.input[1] in weights:
            products.append(Product(node.name, *node.input))
    return products


def product_names(path: Path) -> list[str]:
    """The names of the products with weights in a graph, in order."""
    return [product.name for product in weight_products(load_graph(path))]


def round_products(path: Path, batch: Mapping[str, npt.NDArray[Any]]) -> dict[str, RoundedProduct]:
    """Round the weights of all products of a graph for its inputs on a batch, by the name of the product.

    Products with the same input share its divisors and outliers. A weight that several products share, as
    in ALBERT, is rounded for the inputs of all of them, without either.
    """
    from onnx import numpy_helper

    model = load_graph(path)
    products = weight_products(model)
    inputs = product_inputs(path, list(dict.fromkeys(product.input for product in products)), batch)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    users = {product.weight: [other for other in products if other.weight == product.weight] for product in products}
    rounded_inputs: dict[str, RoundedInput | None] = {}
    for name, rows in inputs.items():
        used = [product.weight for product in products if product.input == name]
        is_shared = any(len(users[weight]) > 1 for weight in used)
        rounded_inputs[name] = None if is_shared else _round_input(rows, [weights[weight] for weight in used])
    rounded: dict[str, RoundedProduct] = {}
    for weight, sharing in users.items():
        rows, given = np.concatenate([inputs[product.input] for product in sharing]), rounded_inputs[sharing[0].input]
        result = _round_product(rows, weights[weight], given)
        rounded |= {product.name: result for product in sharing}
    return rounded


def _round_input(rows: Floats, weights: list[Floats]) -> RoundedInput:
    outliers = outlier_channels(rows)
    rest = np.delete(rows[::SEARCH_STEP], outliers, 1)
    factors = 1 / channel_divisors(rest, [np.delete(weight, outliers, 0) for weight in weights])
    return RoundedInput(np.insert(factors, outliers - np.arange(len(outliers)), 0), outliers)


def _round_product(rows: Floats, weight: Floats, given: RoundedInput | None) -> RoundedProduct:
    factors, outliers = given or (np.ones(len(weight), np.float32), np.empty(0, np.int64))
    rest = np.divide(weight, factors[:, None], out=np.zeros_like(weight), where=factors[:, None] > 0)
    values, scales = round_columns(rest, rows * factors)
    error = relative_error(rows * factors, rest, values, scales)
    return RoundedProduct(given, values, scales, weight[outliers], error)


def quantize(
    source: Path, target: Path, rounded: Mapping[str, RoundedProduct], *, blocks: Collection[str] = ()
) -> None:  # fmt: skip
    """Write the quantised graph of a transformer.

    The products in ``rounded`` have a scale per column, those in ``blocks`` are computed in blocks, and
    the others stay in float32, like norms, attention products and sums. The vectors of subwords have a
    scale per row.
    """
    import onnx

    model = load_graph(source)
    editor = _Editor(model)
    for product in weight_products(model):
        if product.name in blocks:
            editor.use_blocks(product)
        elif product.name in rounded:
            editor.use_columns(product, rounded[product.name])
    editor.round_tables()
    editor.finish()
    onnx.save(model, target)


class _Editor:
    """Replaces nodes of a graph by quantised ones, and collects their tensors, which nodes may share."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self.nodes = {node.name: node for node in model.graph.node}
        self.replacements: dict[str, list[Any]] = {}  # by the output of the replaced node
        self.tensors: dict[str, npt.NDArray[Any]] = {}
        self.rounded_inputs: set[str] = set()

    def use_columns(self, product: Product, rounded: RoundedProduct) -> None:
        """Round the input with one scale and multiply integers; add the products of outliers."""
        name, given, weight = product
        integers, scale, zero, outliers = (f"{given}_{part}" for part in ("integers", "scale", "zero", "outliers"))
        output = self.nodes[name].output[0]
        result = f"{output}_rounded" if len(rounded.outliers) else output
        nodes = [
            *self._round_input(given, rounded.input),
            _node("MatMulInteger", [integers, self._tensor(f"{weight}_integers", rounded.values), zero], f"{output}_sums"),
            _node("Cast", [f"{output}_sums"], f"{output}_floats", to=1),
            _node("Mul", [scale, self._tensor(f"{weight}_scales", rounded.scales)], f"{output}_factors"),
            _node("Mul", [f"{output}_floats", f"{output}_factors"], result),
        ]
        if len(rounded.outliers):
            rows = self._tensor(f"{weight}_outliers", rounded.outliers)
            nodes += [_node("MatMul", [outliers, rows], f"{output}_exact"), _node("Add", [result, f"{output}_exact"], output)]
        self.replacements[output] = nodes

    def _round_input(self, name: str, rounded: RoundedInput | None) -> list[Any]:
        """The nodes that round an input, for the first of its products."""
        if name in self.rounded_inputs:
            return []
        self.rounded_inputs.add(name)
        nodes, source = [], name
        if rounded is not None:
            source = f"{name}_multiplied"
            nodes.append(_node("Mul", [name, self._tensor(f"{name}_factors", rounded.factors)], source))
            if len(rounded.outliers):
                channels = self._tensor(f"{name}_channels", rounded.outliers)
                nodes.append(_node("Gather", [name, channels], f"{name}_outliers", axis=-1))
        return [*nodes, _node("DynamicQuantizeLinear", [source], *(f"{name}_{part}" for part in ("integers", "scale", "zero")))]

    def use_blocks(self, product: Product) -> None:
        """Use ``MatMulNBits`` of onnxruntime with 8 bits."""
        weight = self._array(product.weight)
        values, scales = round_blocks(weight)
        names = self._tensor(f"{product.weight}_blocks", values), self._tensor(f"{product.weight}_block_scales", scales)
        # Level 4: the inputs are also rounded to 8 bits.
        sizes = {"K": weight.shape[0], "N": weight.shape[1], "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        output = self.nodes[product.name].output[0]
        self.replacements[output] = [
            _node("MatMulNBits", [product.input, *names], output, name=product.name, domain="com.microsoft", **sizes)
        ]

    def round_tables(self) -> None:
        """Store tables of vectors in 8 bits, with a scale per row."""
        for node in self.model.graph.node:
            table = self.weights.get(node.input[0]) if node.op_type == "Gather" else None
            if table is None or len(table.dims) != 2 or table.dims[0] < MIN_TABLE:
                continue
            values, scales = round_rows(self._array(table.name))
            output, index = node.output[0], node.input[1]
            self.replacements[output] = [
                _node("Gather", [self._tensor(f"{table.name}_integers", values), index], f"{output}_integers"),
                _node("Gather", [self._tensor(f"{table.name}_scales", scales), index], f"{output}_scales"),
                _node("Cast", [f"{output}_integers"], f"{output}_floats", to=1),
                _node("Mul", [f"{output}_floats", f"{output}_scales"], output),
            ]

    def finish(self) -> None:
        """Put the new nodes and tensors into the graph, and remove what is not used any more."""
        from onnx import helper, numpy_helper

        graph, opsets = self.model.graph, self.model.opset_import
        nodes = [new for node in graph.node for new in self.replacements.get(next(iter(node.output), ""), [node])]
        used = {name for node in nodes for name in node.input}
        kept = [tensor for name, tensor in self.weights.items() if name in used]
        added = [numpy_helper.from_array(array, name) for name, array in self.tensors.items()]
        for field, values in ((graph.node, nodes), (graph.initializer, [*kept, *added])):
            del field[:]
            field.extend(values)
        if all(opset.domain != "com.microsoft" for opset in opsets):
            opsets.append(helper.make_opsetid("com.microsoft", 1))

    def _array(self, weight: str) -> Floats:
        from onnx import numpy_helper

        array: Floats = numpy_helper.to_array(self.weights[weight])
        return array

    def _tensor(self, name: str, array: npt.NDArray[Any]) -> str:
        self.tensors[name] = array
        return name


def _node(kind: str, inputs: list[str], *outputs: str, name: str = "", domain: str = "", **attributes: int) -> Any:
    from onnx import helper

    return helper.make_node(kind, inputs, outputs, name or f"{outputs[0]}_{kind}", domain=domain, **attributes)
