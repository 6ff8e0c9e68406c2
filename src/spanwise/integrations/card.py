"""The card of a model: what it finds, how well, what it was trained on, how to use it. From what its run folder says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from spanwise.config import LABELS, REPORT
from spanwise.formats.files import read_json

NOT_SAID = "not said by who published it; the licences of the encoder and of the training data may restrict its use"


def model_card(folder: Path, name: str | None = None, data: str | None = None, licence: str | None = None) -> ModelCard:
    """The card of the model in a folder, called ``name`` ("owner/model") where it is going to have one."""
    run, labels = _read(folder / REPORT), _read(folder / LABELS)
    called = name or folder.absolute().name
    corpus = data or run.get("corpus") or "the training data"
    header = ModelCardData(
        library_name="spanwise", pipeline_tag="token-classification", license=licence, model_name=called,
        tags=["named-entity-recognition", "spanwise", *([run["recipe"]] if "recipe" in run else [])],
        eval_results=list(_results(run, corpus)) or None,
    )  # fmt: skip
    text = "\n\n".join(_sections(run, labels, corpus, called, licence))
    return ModelCard(f"---\n{header.to_yaml()}\n---\n\n{text}\n")


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _results(run: Mapping[str, Any], corpus: str) -> Iterator[EvalResult]:
    for split, scores in run.get("scores", {}).items():
        for metric, value in _metrics(scores).items():
            yield EvalResult(
                task_type="token-classification", task_name="named entity recognition", dataset_type=corpus,
                dataset_name=corpus, dataset_split=split, metric_type=metric, metric_name=metric, metric_value=value,
            )  # fmt: skip


def _metrics(scores: Mapping[str, Any]) -> dict[str, float]:
    """The few numbers that stand for a split: micro scores of entities, or the accuracy of typing."""
    micro = scores.get("micro", scores)
    return {name: round(micro[name], 4) for name in ("f1", "precision", "recall", "accuracy") if name in micro}


def _sections(run: Mapping[str, Any], labels: Mapping[str, Any], corpus: str, name: str, licence: str | None) -> Iterator[str]:
    recipe = f"the recipe `{run['recipe']}`" if "recipe" in run else "Spanwise"
    yield f"# {name}\n\nA model for named entity recognition, trained with {recipe} of Spanwise."
    finds_relations = any(scores.get("relations") for scores in run.get("scores", {}).values())
    for what, names in (("Entities", labels.get("entities")), ("Relations", finds_relations and labels.get("relations"))):
        if names:
            yield f"{what}: {', '.join(f'`{one}`' for one in names)}."
    yield (
        "## How to use it\n\n```\npip install spanwise\n```\n\n```python\nimport spanwise\n\n"
        f'model = spanwise.load("{name}")\nfor sentence in model.predict("Any text, of any length."):\n'
        "    for entity in sentence.entities:\n        print(entity.type, sentence.text_of(entity), entity.score)\n```"
    )
    rows = [(split, _metrics(scores)) for split, scores in run.get("scores", {}).items()]
    if rows and rows[0][1]:
        columns = list(rows[0][1])
        lines = [f"| {' | '.join(['split', *columns])} |", f"|{'---|' * (len(columns) + 1)}"]
        lines += [f"| {split} | {' | '.join(f'{values.get(column, 0):.4f}' for column in columns)} |" for split, values in rows]
        yield "## Scores\n\nAn entity is right when its type and all its words are.\n\n" + "\n".join(lines)
    if run:
        sizes = [f"{split} {about['sentences']:,} sentences" for split, about in run.get("data", {}).items()]
        encoder = run.get("encoder", {})
        facts = {
            "Data": ", ".join([corpus, *sizes]), "Encoder": encoder.get("name") or encoder.get("kind"),
            "Seed": run.get("seed"), "Epochs": run.get("epochs"), "Spanwise": run.get("versions", {}).get("spanwise"),
        }  # fmt: skip
        lines = [f"- {key}: {value}" for key, value in facts.items() if value is not None]
        yield "## Training\n\n" + "\n".join([*lines, *(f"- Note: {note}" for note in run.get("notes", ()))])
    yield f"## Licence\n\n{licence or NOT_SAID}"
