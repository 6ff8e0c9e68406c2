# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""Attention of spans to their own words in Triton: one kernel forward, two backward.

A span reads only its words, so no window of words is copied and no score of another word computed.
Each word gathers its gradient from the spans around it, so sums have a fixed order. Sums are in
float32 for any type of the tensors.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import drop, dropout_seed, head_offsets, load_floats, product_precision, random_numbers

SPAN_BLOCK, WORD_BLOCK, ROW_BLOCK = 32, 16, 32  # spans and words per program, rows per step of a program for words


@triton.jit(do_not_specialize=["count"])
def _forward(
    queries, words, first_word, width, result, log_sums, seed, count, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDEST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mix the values of each span's words, with the softmax of its scores computed word by word.

    ``mixed`` and ``total`` are relative to the largest score so far, and shrink when a larger one occurs. The
    logarithm of the sum of all exponentiated scores lets the backward pass compute any weight at once.
    """
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    is_row = rows < count
    here = head_offsets(rows, HEADS * SIZE, SIZE)
    first = tl.load(first_word + rows, mask=is_row, other=0)
    sizes = tl.load(width + rows, mask=is_row, other=1)
    query = load_floats(queries + here, is_row[:, None]) * scale
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    mixed = tl.zeros([BLOCK, SIZE], tl.float32)
    random = tl.load(seed)
    for offset in range(WIDEST):
        is_inside = offset < sizes
        there = head_offsets(first + offset, 2 * HEADS * SIZE, SIZE)
        key = load_floats(words + there, is_inside[:, None])
        score = tl.where(is_inside, tl.sum(query * key, 1), float("-inf"))
        maximum = tl.maximum(largest, score)
        shrink = tl.exp(largest - maximum)
        weight = tl.exp(score - maximum)
        total = total * shrink + weight
        is_kept = random_numbers(random, (rows * HEADS + head) * WIDEST + offset) >= dropout
        weight = drop(weight, is_kept, dropout)
        value = load_floats(words + there + HEADS * SIZE, is_inside[:, None])
        mixed = mixed * shrink[:, None] + weight[:, None] * value
        largest = maximum
    tl.store(result + here, mixed / total[:, None], mask=is_row[:, None])
    tl.store(log_sums + rows * HEADS + head, largest + tl.log(total), mask=is_row)


@triton.jit(do_not_specialize=["count"])
def _backward_spans(
    queries, words, first_word, width, result, log_sums, seed, gradient, query_gradient, products, count, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDEST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of queries, and the product of each span's result and its gradient, which all words need."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    is_row = rows < count
    here = head_offsets(rows, HEADS * SIZE, SIZE)
    first = tl.load(first_word + rows, mask=is_row, other=0)
    sizes = tl.load(width + rows, mask=is_row, other=1)
    query = load_floats(queries + here, is_row[:, None]) * scale
    upper = load_floats(gradient + here, is_row[:, None])
    mixed = load_floats(result + here, is_row[:, None])
    log_sum = tl.load(log_sums + rows * HEADS + head, mask=is_row, other=0.0)
    product = tl.sum(upper * mixed, 1)
    lower = tl.zeros([BLOCK, SIZE], tl.float32)
    random = tl.load(seed)
    for offset in range(WIDEST):
        is_inside = offset < sizes
        there = head_offsets(first + offset, 2 * HEADS * SIZE, SIZE)
        key = load_floats(words + there, is_inside[:, None])
        value = load_floats(words + there + HEADS * SIZE, is_inside[:, None])
        weight = tl.where(is_inside, tl.exp(tl.sum(query * key, 1) - log_sum), 0.0)
        change = tl.sum(upper * value, 1)
        is_kept = random_numbers(random, (rows * HEADS + head) * WIDEST + offset) >= dropout
        change = drop(change, is_kept, dropout)
        lower += (weight * (change - product) * scale)[:, None] * key
    tl.store(query_gradient + here, lower, mask=is_row[:, None])
    tl.store(products + rows * HEADS + head, product, mask=is_row)


@triton.jit(do_not_specialize=["length", "blocks"])
def _backward_words(
    queries, words, first_word, width, first_row, last_row, log_sums, seed, gradient, products,
    word_gradient, length, blocks, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDEST: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients of keys and values, from the rows of all spans that may contain a word of the block."""
    head = tl.program_id(1)
    sentence = tl.program_id(0) // blocks
    first = (tl.program_id(0) % blocks) * BLOCK
    positions = first + tl.arange(0, BLOCK)
    is_word = positions < length
    numbers = sentence * length + positions
    here = head_offsets(numbers, 2 * HEADS * SIZE, SIZE)
    key = load_floats(words + here, is_word[:, None])
    value = load_floats(words + here + HEADS * SIZE, is_word[:, None])
    lower_key = tl.zeros([BLOCK, SIZE], tl.float32)
    lower_value = tl.zeros([BLOCK, SIZE], tl.float32)
    random = tl.load(seed)
    start = tl.load(first_row + sentence * length + first)
    stop = tl.load(last_row + sentence * length + tl.minimum(first + BLOCK, length) - 1)
    for step in range(start, stop, ROWS):
        rows = step + tl.arange(0, ROWS)
        is_row = rows < stop
        there = head_offsets(rows, HEADS * SIZE, SIZE)
        query = load_floats(queries + there, is_row[:, None])
        upper = load_floats(gradient + there, is_row[:, None])
        log_sum = tl.load(log_sums + rows * HEADS + head, mask=is_row, other=0.0)
        product = tl.load(products + rows * HEADS + head, mask=is_row, other=0.0)
        offset = numbers[None, :] - tl.load(first_word + rows, mask=is_row, other=0)[:, None]
        is_inside = (offset >= 0) & (offset < tl.load(width + rows, mask=is_row, other=0)[:, None]) & is_word[None, :]
        score = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
        weight = tl.where(is_inside, tl.exp(tl.where(is_inside, score - log_sum[:, None], 0.0)), 0.0)
        change = tl.dot(upper, tl.trans(value), input_precision=PRECISION)
        is_kept = random_numbers(random, (rows * HEADS + head)[:, None] * WIDEST + offset) >= dropout
        kept_weight = drop(weight, is_kept, dropout)
        change = drop(change, is_kept, dropout)
        lower_value += tl.dot(tl.trans(kept_weight), upper, input_precision=PRECISION)
        lower_key += tl.dot(tl.trans(weight * (change - product[:, None]) * scale), query, input_precision=PRECISION)
    tl.store(word_gradient + here, lower_key, mask=is_word[:, None])
    tl.store(word_gradient + here + HEADS * SIZE, lower_value, mask=is_word[:, None])


class SpanAttention(torch.autograd.Function):
    """Arguments: queries [S, d], keys and values of words [B, T, 2 d], four index tensors, heads, the widest span, dropout.

    ``first_word`` (among all B x T) and ``width`` [S] are the words of a span. The spans that contain
    a word are among the rows ``first_row`` to ``last_row`` [B x T], which do not decrease.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, words: Tensor, first_word: Tensor, width: Tensor, first_row: Tensor, last_row: Tensor,
        heads: int, widest: int, dropout: float,
    ) -> Tensor:  # fmt: skip
        queries, words = queries.contiguous(), words.contiguous()
        count, size = queries.shape[0], queries.shape[1] // heads
        result, log_sums = torch.empty_like(queries), queries.new_empty(count, heads, dtype=torch.float32)
        seed = dropout_seed(dropout, queries.device)
        shape = (size**-0.5, float(dropout), heads, size, widest)
        _forward[(triton.cdiv(count, SPAN_BLOCK), heads)](
            queries, words, first_word, width, result, log_sums, seed, count, *shape, SPAN_BLOCK
        )
        ctx.shape = shape
        ctx.save_for_backward(queries, words, first_word, width, first_row, last_row, result, log_sums, seed)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        queries, words, first_word, width, first_row, last_row, result, log_sums, seed = ctx.saved_tensors
        gradient, heads = gradient.contiguous(), ctx.shape[2]
        count, (batch, length) = len(queries), words.shape[:2]
        blocks = triton.cdiv(length, WORD_BLOCK)
        query_gradient, products = torch.empty_like(queries), torch.empty_like(log_sums)
        word_gradient = torch.empty_like(words)
        _backward_spans[(triton.cdiv(count, SPAN_BLOCK), heads)](
            queries, words, first_word, width, result, log_sums, seed, gradient, query_gradient, products, count,
            *ctx.shape, SPAN_BLOCK,
        )  # fmt: skip
        _backward_words[(batch * blocks, heads)](
            queries, words, first_word, width, first_row, last_row, log_sums, seed, gradient, products,
            word_gradient, length, blocks, *ctx.shape, WORD_BLOCK, ROW_BLOCK, product_precision(),
        )  # fmt: skip
        return query_gradient, word_gradient, *(None,) * 7
