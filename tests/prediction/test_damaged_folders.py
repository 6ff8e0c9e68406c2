"""Damaged and hostile run folders: they are loaded or refused in one line, without tracebacks and absurd allocations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
import yaml
from cases import in_case, limit_cpu
from safetensors.torch import load_file, save_file

from spanwise import SpanwiseError
from spanwise.prediction.load import load

TEXT = "Ana Costa flew from Oslo to New York with aspirin."
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def bert_run(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "bert"
    tiny.model(tiny_bert, "bl-spanner").save(folder)
    return folder


@pytest.fixture(scope="module")
def static_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "static"
    tiny.model("static", "seqner").save(folder)
    return folder


@pytest.fixture(scope="module")
def onnx_runs(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from spanwise.export.onnx import write

    root = tmp_path_factory.mktemp("damaged-onnx")
    models = {"tags": tiny.model(tiny_bert, "seqner-crf"), "spans": tiny.model("static", "spanner")}
    for name, model in models.items():
        (root / name).mkdir()
        write(model, root / name)
    return {name: root / name for name in models}


def change_json(name: str, *keys: Any, value: Any) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        inner = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        (folder / name).write_text(json.dumps(content))

    return damage


def change_config(*keys: str, value: Any) -> Damage:
    def damage(folder: Path) -> None:
        content = yaml.safe_load((folder / "config.yaml").read_text())
        inner = content
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        (folder / "config.yaml").write_text(yaml.safe_dump(content))

    return damage


def replace_by_folder(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def nested_bundles(depth: int) -> dict[str, Any]:
    head: dict[str, Any] = {"kind": "bundle"}
    for _ in range(depth):
        head = {"kind": "bundle", "span": head, "sequence": {"kind": "seqner"}}
    return head


def change_weights(value: float) -> Damage:
    def damage(folder: Path) -> None:
        tensors = {name: torch.full_like(tensor, value) for name, tensor in load_file(folder / "model.safetensors").items()}
        save_file(tensors, folder / "model.safetensors")

    return damage


def expect_refused(model: Path, folder: Path, cases: dict[str, Damage]) -> None:
    for number, (description, damage) in enumerate(cases.items()):
        copy = folder / str(number)
        shutil.copytree(model, copy)
        damage(copy)
        with limit_cpu(10, description), in_case(description), pytest.raises(SpanwiseError) as caught:
            load(copy, "cpu").predict(TEXT)
        assert "\n" not in str(caught.value), description


def test_absurd_sizes_are_refused_before_tensors_are_allocated(bert_run: Path, static_run: Path, tmp_path: Path) -> None:
    expect_refused(bert_run, tmp_path / "bert", {
        "hidden size": change_json("config.json", "hidden_size", value=2**31),
        "vocabulary": change_json("config.json", "vocab_size", value=10**9),
        "positions": change_json("config.json", "max_position_embeddings", value=10**9),
        "layers": change_json("config.json", "num_hidden_layers", value=10**9),
        "negative attention heads": change_json("config.json", "num_attention_heads", value=-2),
        "negative size": change_json("config.json", "intermediate_size", value=-5),
        "hidden layer of the head": change_config("head", "span", "hidden", value=10**9),
        "spans": change_config("head", "span", "max_width", value=10**9),
        "a million types": change_json("labels.json", "entities", value=[f"T{n}" for n in range(1_000_000)]),
    })  # fmt: skip
    expect_refused(static_run, tmp_path / "static", {
        "word size": change_json("static_encoder.json", "word_size", value=10**9),
        "negative word size": change_json("static_encoder.json", "word_size", value=-3),
        "hidden size": change_json("static_encoder.json", "settings", "hidden", value=10**9),
        "layers": change_json("static_encoder.json", "settings", "layers", value=10**9),
    })  # fmt: skip


def test_deep_nesting_and_recursive_bundles_are_refused(bert_run: Path, tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(150):
        deep = {"a": deep}
    expect_refused(bert_run, tmp_path, {
        "a deep setting": change_config("head", "span", value=deep),
        "two bundles": change_config("head", value=nested_bundles(1)),
        "a hundred bundles": change_config("head", value=nested_bundles(100)),
        "deep JSON": lambda folder: (folder / "labels.json").write_text("[" * 100_000),
        "deep JSON of the encoder": lambda folder: (folder / "config.json").write_text('{"a":' * 100_000),
        "deep JSON of the tokenizer": lambda folder: (folder / "tokenizer.json").write_text('{"a":' * 100_000),
    })  # fmt: skip


def test_labels_with_wrong_values_are_refused(bert_run: Path, static_run: Path, tmp_path: Path) -> None:
    for name, model in (("bert", bert_run), ("static", static_run)):
        expect_refused(model, tmp_path / name, {
            f"{key}: {value!r:.20}": change_json("labels.json", key, value=value)
            for key, value in [
                ("entities", [["x"]]), ("entities", [{"a": 1}, "b"]), ("entities", [1, "x"]), ("entities", "x"), ("entities", {"Drug": 1, "Place": 2}),
                ("entities", ["Drug", "Drug"]), ("entities", [""]), ("entities", None), ("entities", []), ("relations", [None]), ("relations", 3),
            ]
        })  # fmt: skip


def test_folders_in_place_of_files_are_refused(bert_run: Path, static_run: Path, tmp_path: Path) -> None:
    for name, model in (("bert", bert_run), ("static", static_run)):
        names = [path.name for path in model.iterdir() if path.name != "tokenizer_config.json"]
        expect_refused(model, tmp_path / name, {name: replace_by_folder(name) for name in names})


def test_tokenizers_of_another_model_are_refused(bert_run: Path, tmp_path: Path) -> None:
    def add_token(folder: Path) -> None:
        content = json.loads((folder / "tokenizer.json").read_text())
        content["model"]["vocab"]["flew"] = 10**6
        (folder / "tokenizer.json").write_text(json.dumps(content))

    expect_refused(bert_run, tmp_path, {
        "an id outside the embeddings": add_token,
        "an absurd id": change_json("tokenizer.json", "model", "vocab", "flew", value=2**31),
        "an absurd id of a special token": change_json("tokenizer.json", "added_tokens", 0, "id", value=2**31),
        "a template of an unknown special token": change_json(
            "tokenizer.json", "post_processor", "single", 0, "SpecialToken", "id", value="[X]"
        ),
        "an unknown token that is no subword": change_json("tokenizer.json", "model", "unk_token", value="[X]"),
        "a window of no subwords": change_json("tokenizer_config.json", "model_max_length", value=2),
        "a window that is no number": change_json("tokenizer_config.json", "model_max_length", value="x"),
        "a negative window": change_json("tokenizer_config.json", "model_max_length", value=-1),
    })  # fmt: skip


def test_weights_that_overflow_are_refused(static_run: Path, tmp_path: Path) -> None:
    expect_refused(static_run, tmp_path, {"infinite": change_weights(float("inf"))})
    shutil.copytree(static_run, tmp_path / "huge")
    change_weights(3e38)(tmp_path / "huge")
    load(tmp_path / "huge", "cpu").predict(TEXT)


def test_inconsistent_onnx_records_are_refused(onnx_runs: dict[str, Path], tmp_path: Path) -> None:
    def change(*keys: Any, value: Any) -> Damage:
        return change_json("onnx.json", *keys, value=value)

    expect_refused(onnx_runs["tags"], tmp_path / "tags", {
        "other types": change("entities", value=["A"]),
        "no types": change("entities", value=[]),
        "a short row of transitions": change("tags", "transitions", 0, value=[0.5]),
        "no transitions": change("tags", "transitions", value=[]),
        "a short start": change("tags", "start", value=[0.0]),
        "transitions of NaN": change("tags", "start", 0, value=float("nan")),
        "no tags": change("tags", value=None),
        "spans": change("returns", value="spans"),
        "fragments": change("returns", value="fragments"),
        "no subwords": change("subwords", value=None),
        "a window of no subwords": change("subwords", "window", value=0),
        "an unknown setting of subwords": change("subwords", "extra", value=1),
        "an unknown setting of tags": change("tags", "extra", value=1),
        "a negative id": change("subwords", "before", value=[-5]),
        "a huge id": change("subwords", "padding", value=2**70),
    })  # fmt: skip
    expect_refused(onnx_runs["spans"], tmp_path / "spans", {
        "one type less": change("entities", value=["A"]),
        "an unknown policy": change("policy", value="x"),
        "a threshold of NaN": change("threshold", value=float("nan")),
        "tags": change("returns", value="tags"),
        "negative widths": change("span_widths", value=[-1]),
        "huge widths": change("span_widths", value=[10**12]),
        "no vocabulary": change_json("static_encoder.json", "vocabulary", value=3),
        "characters as numbers": change_json("static_encoder.json", "vocabulary", "learned", value=[[1]]),
    })  # fmt: skip


def test_graphs_of_another_model_are_refused(onnx_runs: dict[str, Path], tmp_path: Path) -> None:
    for name, other in (("tags", "spans"), ("spans", "tags")):
        expect_refused(onnx_runs[name], tmp_path / name, {
            file: lambda folder, file=file, other=other: shutil.copy(onnx_runs[other] / file, folder / file)
            for file in ("encoder.onnx", "head.onnx")
        })  # fmt: skip
