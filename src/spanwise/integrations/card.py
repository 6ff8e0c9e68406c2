"""Model card for the hub: labels, usage, scores and training data, from the run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from spanwise.config.settings import Config, encoder_name
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.files.reading import read_json
from spanwise.prediction.onnx.record import read_record
from spanwise.runs.folder import RunFolder
from spanwise.runtime.hub import PREFIX

ANY_TEXT = '"Any text, of any length."'
GIVEN_SPANS = 'given = spanwise.Sentence("s1", ("Rain", "in", "Oslo"), (spanwise.Entity("?", ((2, 3),)),))\n'
STRICT = "An entity is correct if its type and all its words are."
NO_LICENCE = "Not specified. The licences of the encoder and of the training data may restrict the use of this model."


def model_card(
    folder: Path,
    name: str | None = None,
    data: str | None = None,
    licence: str | None = None,
    *,
    exported: Path | None = None,
    install: str | None = None,
) -> ModelCard:
    """Build the card of a model; ``name`` ("owner/model") defaults to the folder's name.

    ``exported`` is the folder of the export that users get; the scores are those of ``folder``.
    ``install`` is what they install, Spanwise by default.
    """
    run_folder, exported = RunFolder(folder), exported or folder
    is_onnx = RunFolder(exported).is_onnx
    if not run_folder.has_model:
        raise SpanwiseError(f"{folder}: no trained model here")
    config, labels = run_folder.read_config(), read_json(run_folder.labels_file)
    run = run_folder.read_report() if run_folder.is_finished else {}  # exported and unfinished models have no report
    title = name or folder.absolute().name
    corpus = data or run.get("corpus")
    header = ModelCardData(
        library_name="spanwise", pipeline_tag="token-classification", license=licence, model_name=title,
        tags=["named-entity-recognition", "spanwise", config.recipe],
        eval_results=list(_results(run, corpus or "the training data")) or None,
    )  # fmt: skip
    training = f"trained with the recipe `{config.recipe}` of Spanwise."
    if run_folder.is_unfinished:
        training += " The training is unfinished; these are the weights of the best epoch so far."
    purpose = "that types given entities" if config.head.get("task") == "typing" else "for named entity recognition"
    text = f"# {title}\n\nA model {purpose}, {training}\n\n"
    quantization = read_record(exported).quantization if is_onnx else None
    if quantization is not None:
        text += f"Exported to ONNX in 8 bits: {quantization.summary}.\n\n"
    install = install or f"'spanwise[{'onnx' if is_onnx else 'torch'}]'"
    is_exported = is_onnx and not run_folder.is_onnx
    text += "\n\n".join(_sections(config, run, labels, corpus, title, licence, install, is_exported))
    return ModelCard(f"---\n{header.to_yaml()}\n---\n\n{text}\n")


def hub_source(name: str) -> str:
    """The argument of ``load`` for a hub name; a name without an owner is a folder."""
    return f"{PREFIX}{name}" if "/" in name else name


def _results(run: Mapping[str, Any], corpus: str) -> Iterator[EvalResult]:
    for split, scores in run.get("scores", {}).items():
        for metric, value in _metrics(scores).items():
            yield EvalResult(
                task_type="token-classification", task_name="named entity recognition", dataset_type=corpus,
                dataset_name=corpus, dataset_split=split, metric_type=metric, metric_name=metric, metric_value=value,
            )  # fmt: skip


def _metrics(scores: Mapping[str, Any]) -> dict[str, float]:
    """The main scores of a split: micro scores of entities, or the accuracy of typing."""
    main = scores.get("micro") or scores.get("typing", {})
    return {name: round(main[name], 4) for name in ("f1", "precision", "recall", "accuracy") if name in main}


def _sections(
    config: Config, run: Mapping[str, Any], labels: Mapping[str, Any], corpus: str | None, name: str, licence: str | None,
    install: str, is_exported: bool,
) -> Iterator[str]:  # fmt: skip
    finds_relations = any(scores.get("relations") for scores in run.get("scores", {}).values())
    for kind, types in (("Entities", labels.get("entities")), ("Relations", finds_relations and labels.get("relations"))):
        if types:
            yield f"{kind}: {', '.join(f'`{type}`' for type in types)}."
    is_typing = config.head.get("task") == "typing"
    given = GIVEN_SPANS if is_typing else ""
    yield (
        f"## Usage\n\n```\npip install {install}\n```\n\n```python\nimport spanwise\n\n"
        f'model = spanwise.load("{hub_source(name)}")\n{given}'
        f"for sentence in model.predict({'given' if is_typing else ANY_TEXT}):\n"
        "    for entity in sentence.entities:\n        print(entity.type, sentence.text_of(entity), entity.score)\n```"
    )
    rows = [(split, _metrics(scores)) for split, scores in run.get("scores", {}).items()]
    if rows and rows[0][1]:
        columns = list(rows[0][1])
        lines = [f"| {' | '.join(['split', *columns])} |", f"|{'---|' * (len(columns) + 1)}"]
        lines += [f"| {split} | {' | '.join(percent(values.get(column, 0)) for column in columns)} |" for split, values in rows]
        when = " Measured before the export to ONNX." if is_exported else ""
        rule = "The accuracy of the types of given entities." if is_typing else STRICT
        yield f"## Scores\n\n{rule}{when}\n\n" + "\n".join(lines)
    sizes = [f"{split} {counted(summary['sentences'], 'sentence')}" for split, summary in run.get("data", {}).items()]
    facts = {
        "Data": ", ".join([*([corpus] if corpus else []), *sizes]) or None,
        "Encoder": encoder_name(config.encoder), "Seed": config.training.seed,
        "Epochs": run.get("epochs"), "Spanwise": run.get("versions", {}).get("spanwise"),
    }  # fmt: skip
    lines = [f"- {key}: {value}" for key, value in facts.items() if value is not None]
    yield "## Training\n\n" + "\n".join([*lines, *(f"- Note: {note}" for note in run.get("notes", ()))])
    yield f"## Licence\n\n{licence or NO_LICENCE}"
