"""``spanwise export --onnx``, and prediction without torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cli_runner import Runner
from encoder_graphs import trace_equal_encoders_once
from tiny import corpus, fit, model, with_relations

import spanwise
from spanwise.export import choice
from spanwise.formats import write
from spanwise.integrations.hub import HubModel
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.spans.rotary import Rotary

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

FILES = ["config.yaml", "encoder.onnx", "head.onnx", "labels.json", "onnx.json", "provenance.json", "tokenizer.json"]
IN_ONNX = "is an ONNX model, which can only predict; pass the run folder it was exported from"
TEXT = "Nothing but oslo, the new york acid. Aspirin acid was seen near lima."


@pytest.fixture(scope="module", autouse=True)
def _graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with trace_equal_encoders_once(tmp_path_factory.mktemp("graphs")):
        yield


@pytest.fixture(scope="module")
def trained(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained bundle whose span branch predicts."""
    folder = tmp_path_factory.mktemp("onnx") / "run"
    fit(folder, recipe="bl-spanner", encoder=str(tiny_bert), epochs=8, head_rate=0.02)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for split, sentences in corpus(60).splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


def test_graphs_predict_the_same(trained: Path, data: Path, tmp_path: Path, run: Runner) -> None:
    done = run("export", trained, "--onnx", "--data", data, "--out", tmp_path / "model")
    assert (done.code, done.err) == (0, "")
    wrote, same, f1 = done.out.splitlines()
    assert re.fullmatch(rf"wrote {tmp_path}/model: spanner in ONNX, float32, \d\.\d MB", wrote)
    count = re.fullmatch(
        rf"identical predictions: (\d+) entities in 8 sentences of {data}, scores differ by at most (\S+)", same
    )
    assert count
    assert int(count[1]) > 5
    assert float(count[2]) < 1e-4
    numbers = re.fullmatch(r"F1: torch (\S+), ONNX (\S+) \(\+0\.00\)", f1)
    assert numbers
    assert numbers[1] == numbers[2]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == FILES
    assert spanwise.load(tmp_path / "model", "cpu").predict(TEXT) == spanwise.load(trained, "cpu").predict(TEXT)
    scores = [run("evaluate", folder, data, "--device", "cpu", "--json", "-").out for folder in (trained, tmp_path / "model")]
    assert json.loads(scores[0]) == json.loads(scores[1])


def test_int8(trained: Path, tmp_path: Path, run: Runner) -> None:
    lines = [
        run("export", trained, "--onnx", *more, "--out", tmp_path / str(len(more))).out.splitlines()
        for more in ([], ["--int8"])
    ]
    assert [len(printed) for printed in lines] == [2, 3]  # no F1 without data
    assert "147 sentences of the bundled corpus" in lines[0][1]
    assert "ONNX, int8, all in blocks, " in lines[1][0]
    assert lines[1][1].startswith(
        "note: no dev data, so all products are computed in blocks and the loss is unknown; pass --dev"
    )
    sizes = [(tmp_path / name / "encoder.onnx").stat().st_size for name in ("0", "1")]
    assert sizes[1] < sizes[0]
    for name, precision in (("0", "float32"), ("1", "int8")):
        described = run("describe", tmp_path / name)
        assert (described.code, described.err) == (0, "")
        size = sum(path.stat().st_size for path in (tmp_path / name).iterdir())
        rows = described.out.splitlines()
        assert rows[0] == "recipe        bl-spanner"
        assert rows[-1] == f"ONNX          {precision}, {size / 1e6:.1f} MB"
        assert ("quantisation  all in blocks" in rows) == (precision == "int8")
        record = json.loads(run("describe", tmp_path / name, "--json", "-").out)
        assert (record["precision"], record["size"], record["head"]["kind"]) == (precision, size, "spanner")


def test_quantisation_is_chosen_on_dev(
    trained: Path, data: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "MAX_SENTENCES", 6)
    done = run("export", trained, "--onnx", "--int8", "--data", data, "--max-loss", "100", "--out", tmp_path / "model")
    assert (done.code, done.err) == (0, "")
    title, columns, exact, chosen, wrote, *_, f1 = done.out.splitlines()
    assert title == f"choosing the quantisation on 6 of 8 sentences of {data} (dev): at most 100 F1 below float32"
    assert columns.split() == ["quantisation", "F1", "loss", "MB", "ms/sentence"]
    assert re.fullmatch(r"float32 +\d+\.\d\d +0\.00 +\d\.\d +\d+\.\d", exact)
    assert re.fullmatch(r"a scale per column +\d+\.\d\d +-?\d+\.\d\d +\d\.\d +\d+\.\d", chosen)
    assert wrote.startswith(f"wrote {tmp_path}/model: spanner in ONNX, int8, a scale per column, ")
    assert f1.startswith("F1: torch ")
    record = json.loads((tmp_path / "model" / "onnx.json").read_text())["quantization"]
    assert (record["chosen"], record["sentences"], record["data"]) == ("a scale per column", 6, f"{data.name} (dev)")
    assert [tried["name"] for tried in record["tried"]] == ["float32", "a scale per column"]
    card = str(HubModel(tmp_path / "model").generate_model_card())
    assert f"Exported to ONNX in 8 bits: a scale per column (F1 {record['tried'][1]['f1']:.2f}, float32 " in card
    # A float32 model if every candidate loses too much.
    monkeypatch.setattr(choice, "CANDIDATES", ())
    done = run("export", trained, "--onnx", "--int8", "--dev", data / "dev.jsonl", "--out", tmp_path / "exact")
    assert "spanner in ONNX, float32, " in done.out
    assert "note: every quantisation loses more than 0.3 F1 on dev, so the model stays in float32" in done.out
    files = {path.name for path in (tmp_path / "exact").iterdir()}
    assert files == {path.name for path in (tmp_path / "model").iterdir()} == set(FILES)


def test_errors_of_quantisation(trained: Path, data: Path, tmp_path: Path, run: Runner) -> None:
    (tmp_path / "bare.jsonl").write_text('{"tokens": ["Oslo"], "entities": []}\n')
    int8 = ["export", trained, "--onnx", "--int8", "--out", tmp_path / "model"]
    for loss in ("-1", "101", "nan"):
        assert run(*int8, "--max-loss", loss).err == f"max loss {loss}: expected points of F1, from 0 to 100\n"
    assert run(*int8, "--max-loss", "much").code == 2
    assert run(*int8, "--dev", tmp_path / "none").err == f"{tmp_path / 'none'}: no such file or folder\n"
    error = run(*int8, "--dev", tmp_path / "bare.jsonl").err
    assert error == f"{tmp_path / 'bare.jsonl'}: all has no entities; expected gold annotations to choose the quantisation on\n"
    for option in (["--dev", data], ["--max-loss", "1"]):
        assert run("export", trained, "--onnx", *option, "--out", tmp_path / "model").err == f"{option[0]} needs --int8\n"
    assert not (tmp_path / "model").exists()


def test_no_torch_is_imported(trained: Path, tmp_path: Path, run: Runner) -> None:
    assert run("export", trained, "--onnx", "--out", tmp_path / "model").code == 0
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    program = f"""
import json, sys, spanwise
predicted = spanwise.load({str(tmp_path / "model")!r}).predict({TEXT!r})
print(json.dumps([[entity.type, entity.score] for sentence in predicted for entity in sentence.entities]))
from spanwise.cli import main
try:
    main(["describe", {str(tmp_path / "model")!r}, "--json", {str(tmp_path / "model.json")!r}])
except SystemExit as exited:
    assert not exited.code, exited.code
try:
    main(["predict", {str(tmp_path / "model")!r}, {str(tmp_path / "text.txt")!r}, "--output", {str(tmp_path / "out.jsonl")!r}])
except SystemExit as exited:
    assert not exited.code, exited.code
print([name for name in ("torch", "transformers") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    expected = [entity for sentence in spanwise.load(trained, "cpu").predict(TEXT) for entity in sentence.entities]
    assert expected
    assert json.loads(lines[0]) == [[entity.type, pytest.approx(entity.score, abs=1e-4)] for entity in expected]
    assert lines[-1] == "[]"
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sum(len(record["entities"]) for record in records) == len(expected)


def test_wrong_graph_is_not_written(tiny_bert: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tiny_bert, "global-pointer").save(tmp_path / "run")
    monkeypatch.setattr(Rotary, "_rotate_traced", lambda self, vectors: vectors * self.scale)
    done = run("export", tmp_path / "run", "--onnx", "--out", tmp_path / "model")
    assert (done.code, done.out) == (2, "")
    assert re.match(r"the ONNX graph and the model disagree: \d+ of \d+ entities in the bundled corpus differ", done.err)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_heads_without_graph(tiny_bert: Path, tmp_path: Path, run: Runner) -> None:
    torch.manual_seed(0)
    relations = Model.build(configure("gp-relations", encoder=str(tiny_bert)), with_relations(corpus()))
    cases = {
        "sng": (model("static", "sng"), "the head sng has no ONNX graph: the order in which its LSTM reads the words of spans is computed on the host"),
        "relations": (relations, "the head gp-relations has no ONNX graph: it decodes entities before it scores relations between them"),
        "subwords": (model(tiny_bert, "shallow-span", ["head.unit=subwords", "head.max_width=6"]), "the head shallow-span has no ONNX graph: its spans consist of subwords; train with head.unit=words"),
    }  # fmt: skip
    for name, (built, line) in cases.items():
        built.save(tmp_path / name)
        done = run("export", tmp_path / name, "--onnx", "--out", tmp_path / "model")
        assert (done.code, done.out) == (2, "")
        assert done.err == f"{line}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(cases)
    model("static", "seqner").save(tmp_path / "static")
    done = run("export", tmp_path / "static", "--onnx", "--int8", "--out", tmp_path / "model")
    assert (done.code, done.err) == (
        2, "int8 is for transformer encoders; the LSTMs of the static encoder stay in float32: omit --int8\n",
    )  # fmt: skip


def test_errors(tiny_bert: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = tmp_path / "run", tmp_path / "model"
    model(tiny_bert, "spanner").save(folder)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    for options in (["--int8"], ["--data", tmp_path]):
        assert run("export", folder, *options, "--out", out).err == f"{options[0]} needs --onnx\n"
    assert run("export", folder, "--onnx", "--data", tmp_path / "none", "--out", out).code == 2
    assert not out.exists()
    assert run("export", folder, "--onnx", "--out", out).code == 0
    again = run("export", out, "--onnx", "--out", tmp_path / "again")
    assert (again.code, again.err) == (2, f"{out}: {IN_ONNX}\n")
    assert run("export", out, "--out", tmp_path / "again").err == f"{out}: {IN_ONNX}\n"
    device = run("predict", out, tmp_path / "text.txt", "--device", "gpu")
    assert (device.code, device.err) == (2, "device 'gpu': expected cpu, cuda or auto\n")
    (out / "head.onnx").write_bytes((out / "head.onnx").read_bytes()[:1000])
    truncated = run("predict", out, tmp_path / "text.txt")
    assert (truncated.code, truncated.err.partition(": ")[0]) == (2, str(out / "head.onnx"))
    (out / "head.onnx").unlink()
    missing = run("predict", out, tmp_path / "text.txt")
    assert (missing.code, missing.err) == (2, f"{out}: the exported model is incomplete; missing head.onnx\n")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    failed = run("export", folder, "--onnx", "--out", tmp_path / "new")
    assert (failed.code, failed.err) == (2, "export to ONNX requires onnxruntime; run pip install 'spanwise[onnx]'\n")
    (out / "head.onnx").write_bytes(b"")
    failed = run("predict", out, tmp_path / "text.txt")
    assert (failed.code, failed.err) == (2, f"{out}: onnxruntime is not installed; run pip install 'spanwise[onnx]'\n")
