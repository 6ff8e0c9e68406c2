"""Annotation in pipelines of other libraries: Ray, Spark, datasets. Each test is skipped without its library."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny
from annotating import KeywordPredictor, errors_of, rows_of

from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.job import JobFolder
from spanwise.annotation.ray_engine import RayEngine, ShardActor, import_ray
from spanwise.annotation.run import annotate
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.core.errors import SpanwiseError
from spanwise.ray import Annotator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model, because processes of other libraries load it."""
    folder = tmp_path_factory.mktemp("model") / "run"
    tiny.model("static", "spanner").save(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        texts: list[Any] = [" ".join(sentence.words) for sentence in tiny.sentences(10)]
        lines = [json.dumps({"id": f"{name}{n}", "text": text}) for n, text in enumerate([*texts, None])]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_an_actor_returns_errors_instead_of_raising_them(
    data: Path, tmp_path: Path, keywords: KeywordPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would end the job at an exception and lose all results."""
    (data / "c.parquet").write_bytes(b"damaged")
    shards = plan_shards(find_sources(str(data)), 1 << 20)
    work = ShardWork(JobFolder(tmp_path / "out", ".jsonl"), "jsonl")
    actor = ShardActor(work, ModelSettings("keywords"), shards)
    result = actor({"index": [1, 2]})
    assert (result["index"], result["outcome"]) == ([1, 2], ["done", "failed"])
    assert json.loads(result["result"][0])["errors"] == 1
    assert "c.parquet: cannot be read" in result["reason"][1]
    monkeypatch.setattr(JobFolder, "finish", lambda *arguments: (_ for _ in ()).throw(SpanwiseError("no space")))
    assert actor({"index": [0]})["outcome"] == ["fatal"]


def test_ray_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SpanwiseError, match=r"--ray needs Ray; run pip install 'spanwise\[ray\]'"):
        import_ray()


@pytest.mark.parametrize(
    ("address", "workers", "on_gpu", "sizes"),
    [
        ("auto", None, False, {"min_size": 7, "max_size": 100}),
        ("auto", None, True, {"min_size": 16, "max_size": 100}),
        ("auto", 3, False, {"size": 3}),
        ("local", None, False, {"size": 7}),
    ],
)
def test_sizes_of_the_pool_of_actors(
    tmp_path: Path, address: str, workers: int | None, on_gpu: bool, sizes: dict[str, int]
) -> None:
    settings = ModelSettings(str(tmp_path))
    work = ShardWork(JobFolder(tmp_path / "out", ".jsonl"), "jsonl")
    engine = RayEngine(work, settings, address=address, workers=workers, on_gpu=on_gpu)
    assert engine.pool_sizes({"CPU": 8.0, "GPU": 2.0}, 100) == sizes
    assert max(engine.pool_sizes({"CPU": 8.0, "GPU": 2.0}, 2).values()) == 2  # no more actors than shards


def test_ray(model: Path, data: Path, tmp_path: Path) -> None:
    """Files and a pipeline in one session of Ray, because starting it takes most of the time."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'spanwise[ray]')")
    pytest.importorskip("ray.data", reason="Ray Data is not installed (pip install 'spanwise[ray]')")
    one = annotate(model, data, tmp_path / "one", device="cpu", workers=1)
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="error")
    try:
        two = annotate(model, data, tmp_path / "two", device="cpu", workers=1, ray="local")
        assert ray.is_initialized()  # a session that was there before stays
        rows = ray.data.from_items([json.loads(line) for line in (data / "a.jsonl").read_text().splitlines()])
        strategy = ray.data.ActorPoolStrategy(size=1)
        annotated = rows.map_batches(
            Annotator, fn_constructor_args=(str(model),), fn_constructor_kwargs={"device": "cpu"}, compute=strategy
        ).take_all()
    finally:
        ray.shutdown()
    assert (one.counts, one.shards) == (two.counts, two.shards)
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")
    assert errors_of(tmp_path / "one") == errors_of(tmp_path / "two")
    expected = {row["id"]: row["entities"] for row in rows_of(tmp_path / "one")}
    assert [len(row["entities"]) for row in annotated[:10]] == [len(expected[f"a{n}"]) for n in range(10)]
    assert (annotated[10]["entities"], annotated[10]["error"][:16]) == (None, "the text is null")


def test_spark(model: Path) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    session = sql.SparkSession.builder.master("local[1]").getOrCreate()
    try:
        frame = session.createDataFrame([(1, "in oslo"), (2, None)], "id int, text string")
        schema = (
            "id int, text string, entities array<struct<type:string,text:string,score:double,start:bigint,end:bigint,"
            "fragments:array<struct<start:bigint,end:bigint>>>>, error string"
        )
        rows = frame.mapInPandas(Annotator(str(model), device="cpu").annotate_batches, schema).collect()
    finally:
        session.stop()
    assert [row.error is None for row in sorted(rows)] == [True, False]


def test_datasets(model: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the datasets library is not installed")
    rows = datasets.Dataset.from_dict({"text": ["in oslo", None]})
    annotated = rows.map(Annotator(str(model), device="cpu"), batched=True)
    assert [row["error"] is None for row in annotated] == [True, False]
