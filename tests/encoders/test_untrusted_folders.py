"""Folders from other people: loading them executes no code, and names are never guessed."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny
from tiny import transformer

from spanwise import SpanwiseError
from spanwise.encoders import build_encoder
from spanwise.encoders.pretrained import resolve
from spanwise.prediction.load import load
from spanwise.runtime import hub

CODE = """
from pathlib import Path
from transformers import BertConfig, BertModel, BertTokenizerFast
Path({marker!r}).touch()
class OtherConfig(BertConfig):
    model_type = "other"
class OtherModel(BertModel):
    config_class = OtherConfig
class OtherTokenizer(BertTokenizerFast):
    pass
"""
CONFIG = {"AutoConfig": "other.OtherConfig", "AutoModel": "other.OtherModel"}
TOKENIZER = {"AutoTokenizer": ["other.OtherTokenizer", "other.OtherTokenizer"]}


@pytest.fixture(scope="module")
def saved(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("untrusted") / "run"
    tiny.model(tiny_bert).save(folder)
    return folder


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def answer_yes(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Replace standard input, which holds the text to predict, by lines that agree to everything."""
    lines = io.StringIO("Yes\n" * 10)
    monkeypatch.setattr("sys.stdin", lines)
    return lines


def test_loading_a_model_never_executes_its_code(
    saved: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, marker = answer_yes(monkeypatch), tmp_path / "executed"
    for source, use in ((saved, lambda folder: load(folder, "cpu")), (tiny_bert, transformer)):
        folder = tmp_path / source.name
        shutil.copytree(source, folder)
        (folder / "other.py").write_text(CODE.format(marker=str(marker)))
        change(folder / "tokenizer_config.json", auto_map=TOKENIZER, tokenizer_class="OtherTokenizer")
        use(folder)  # the library has a tokenizer for this type of model
        change(folder / "config.json", auto_map=CONFIG, model_type="other")
        with pytest.raises(SpanwiseError) as caught:
            use(folder)
        assert str(caught.value) == (
            f"encoder {folder}: needs its own Python code (config.json), and loading a model never executes code; "
            "use a model that the transformers library supports"
        )
        assert not marker.exists()
    assert lines.tell() == 0, "standard input is not read"


def test_attention_kernels_are_not_downloaded(saved: Path, tmp_path: Path) -> None:
    for name in ("somebody/kernel", "flash_attention_2"):
        folder = tmp_path / name.replace("/", "-")
        shutil.copytree(saved, folder)
        change(folder / "config.json", attn_implementation=name)
        with pytest.raises(SpanwiseError, match=r"needs its own Python code \(config.json\)"):
            load(folder, "cpu")


def test_a_path_that_does_not_exist_is_never_taken_for_a_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    downloads: list[str] = []
    monkeypatch.setattr(hub, "is_hub_reachable", lambda: downloads.append("reached") or True)
    monkeypatch.setattr("spanwise.encoders.pretrained.is_hub_reachable", lambda: downloads.append("reached") or True)
    with pytest.raises(SpanwiseError, match=r"^runs/ner2: no such folder; for a model on .* hub, pass hf:runs/ner2$"):
        load("runs/ner2")
    for path in ("./runs/other", "runs/a/b", "/x/y", Path("runs/ner2")):
        with pytest.raises(SpanwiseError, match=r"no such folder$"):
            load(path)
    for name in ("bert-base-cased", "owner/model"):
        with pytest.raises(SpanwiseError, match=f"encoder '{name}' is neither .* pass --encoder hf:{name}$"):
            build_encoder({"kind": "transformer", "name": name}, ())
    assert not downloads
    assert resolve("hf:owner/model") == "owner/model"
    for name in ("hf:", "hf:/etc", "hf:a/b/c", "hf:../x"):
        with pytest.raises(SpanwiseError, match="expected hf:NAME or hf:OWNER/NAME"):
            resolve(name)
