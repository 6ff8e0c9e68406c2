"""Rows in, rows with predictions out, in the containers of several libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from annotating import KeywordPredictor

from spanwise.annotation.annotator import Annotator, annotate_batches
from spanwise.annotation.records import Annotation
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence

TEXT = "It rained. In Oslo, not in Quito, it did.\nOslo again."


def test_offsets_are_characters_of_the_row() -> None:
    (row,) = Annotator(KeywordPredictor()).annotate([TEXT])
    assert [TEXT[entity["start"] : entity["end"]] for entity in row.entities] == ["Oslo", "Quito", "Oslo"]
    assert row.entities[2]["fragments"] == [{"start": 42, "end": 46}]
    assert (row.words, row.error) == (16, None)


def test_relations_refer_to_entities_of_the_row() -> None:
    (row,) = Annotator(KeywordPredictor(finds_relations=True)).annotate(["Oslo. Then Oslo met Quito. Oslo and Quito."])
    assert [(relation["head"], relation["tail"]) for relation in row.relations] == [(1, 2), (3, 4)]


def test_a_discontinuous_entity_has_several_fragments() -> None:
    annotation = Annotation()
    annotation.add(Sentence("s", ("left", "and", "right", "arm"), (Entity("Part", ((0, 1), (3, 4)), 0.9),)))
    (entity,) = annotation.entities
    assert (entity["text"], entity["start"], entity["end"]) == ("left arm", 0, 18)
    assert entity["fragments"] == [{"start": 0, "end": 4}, {"start": 15, "end": 18}]


def test_a_row_that_fails_does_not_affect_the_others() -> None:
    texts = ["In Oslo", None, "boom", 7, "", ["Quito", "falls"], ["", "x"], "Oslo"]
    rows = Annotator(KeywordPredictor()).annotate(texts)
    assert [len(row.entities) for row in rows] == [1, 0, 0, 0, 0, 1, 0, 1]
    reasons = [row.error for row in rows]
    assert reasons == [
        None, "the text is null; expected a text or a list of words", "out of memory",
        "the text is a value of type int; expected a text or a list of words", None, None,
        "the text is a value of type list; expected a text or a list of words", None,
    ]  # fmt: skip


def test_a_model_that_fails_on_every_row_ends_the_job() -> None:
    with pytest.raises(SpanwiseError, match="the model fails on every row: out of memory"):
        Annotator(KeywordPredictor()).annotate(["boom"] * 100)


def arrays(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(values, object) for name, values in batch.items()}


@pytest.mark.parametrize("kind", ["columns", "rows", "numpy", "table", "record batch", "pandas"])
def test_the_result_has_the_container_of_the_batch(kind: str) -> None:
    columns = {"id": [1, 2], "body": ["In Oslo", None]}
    batch: Any
    if kind in ("table", "record batch"):
        pa = pytest.importorskip("pyarrow")
        batch = pa.table(columns) if kind == "table" else pa.RecordBatch.from_pydict(columns)
        to_rows = lambda result: result.to_pylist()  # noqa: E731
    elif kind == "pandas":
        batch = pytest.importorskip("pandas").DataFrame(columns)
        to_rows = lambda result: result.to_dict("records")  # noqa: E731
    elif kind == "rows":
        batch, to_rows = [{"id": 1, "body": "In Oslo"}, {"id": 2}], list
    else:
        batch = columns if kind == "columns" else arrays(columns)
        to_rows = lambda result: [dict(zip(result, row, strict=True)) for row in zip(*result.values(), strict=True)]  # noqa: E731
    (result,) = annotate_batches(KeywordPredictor(), [batch], text_column="body")
    assert type(result) is type(batch)
    first, second = to_rows(result)
    assert (first["id"], first["entities"][0]["text"], first["error"]) == (1, "Oslo", None)
    assert second["entities"] is None
    assert second["error"].startswith("the text is null")


def test_a_missing_column_is_reported() -> None:
    with pytest.raises(SpanwiseError, match="no column 'text'; the columns are body"):
        Annotator(KeywordPredictor())({"body": ["x"]})


@pytest.mark.parametrize("kind", ["columns", "rows", "table"])
def test_a_column_of_the_batch_is_not_overwritten(kind: str) -> None:
    batch: Any = {"text": ["Oslo"], "entities": [1]}
    if kind == "rows":
        batch = [{"text": "Oslo", "error": None}]
    elif kind == "table":
        batch = pytest.importorskip("pyarrow").table(batch)
    with pytest.raises(SpanwiseError, match=r"already have a column '(entities|error)'; rename it"):
        Annotator(KeywordPredictor())(batch)
