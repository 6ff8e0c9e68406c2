"""The card of a model: what it finds, how well, what it was trained on, how to use it. From what its run folder says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.runs.files import LABELS, REPORT, is_run_folder, is_unfinished, read_config

NOT_SAID = "not said by who published it; the licences of the encoder and of the training data may restrict its use"


def model_card(folder: Path, name: str | None = None, data: str | None = None, licence: str | None = None) -> ModelCard:
    """The card of the model in a folder, called ``name`` ("owner/model") where it is going to have one."""
    if not is_run_folder(folder):
        raise SpanwiseError(f"{folder}: no trained model here")
    config, labels = read_config(folder), read_json(folder / LABELS)
    run = read_json(folder / REPORT) if (folder / REPORT).is_file() else {}  # exported and unfinished models have no report
    called = name or folder.absolute().name
    corpus = data or run.get("corpus")
    header = ModelCardData(
        library_name="spanwise", pipeline_tag="token-classification", license=licence, model_name=called,
        tags=["named-entity-recognition", "spanwise", config.recipe],
        eval_results=list(_results(run, corpus or "the training data")) or None,
    )  # fmt: skip
    trained = f"trained with the recipe `{config.recipe}` of Spanwise."
    if is_unfinished(folder):
        trained += " Its training is unfinished: this is its best epoch so far."
    text = f"# {called}\n\nA model for named entity recognition, {trained}\n\n"
    text += "\n\n".join(_sections(config, run, labels, corpus, called, licence))
    return ModelCard(f"---\n{header.to_yaml()}\n---\n\n{text}\n")


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


def _sections(
    config: Config, run: Mapping[str, Any], labels: Mapping[str, Any], corpus: str | None, name: str, licence: str | None
) -> Iterator[str]:
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
    sizes = [f"{split} {about['sentences']:,} sentences" for split, about in run.get("data", {}).items()]
    facts = {
        "Data": ", ".join([*([corpus] if corpus else []), *sizes]) or None,
        "Encoder": config.encoder.get("name") or config.encoder.get("kind"), "Seed": config.training.seed,
        "Epochs": run.get("epochs"), "Spanwise": run.get("versions", {}).get("spanwise"),
    }  # fmt: skip
    lines = [f"- {key}: {value}" for key, value in facts.items() if value is not None]
    yield "## Training\n\n" + "\n".join([*lines, *(f"- Note: {note}" for note in run.get("notes", ()))])
    yield f"## Licence\n\n{licence or NOT_SAID}"
