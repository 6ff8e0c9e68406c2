"""A trained model as a wheel, which ``load`` finds by the name of the package after ``pip install``.

The wheel holds the files of an exported model, its card and metadata, and no code that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from spanwise.core.errors import SpanwiseError
from spanwise.core.version import __version__
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output, check_parent
from spanwise.integrations.wheel import WheelMetadata, write_wheel
from spanwise.prediction.load import load, model_folder
from spanwise.prediction.onnx.record import read_record
from spanwise.runs.folder import RunFolder
from spanwise.runs.installed import GROUP

if TYPE_CHECKING:
    from spanwise.export.onnx import OnnxExport

NAMESPACE = "spanwise_models"  # the Python package that holds the folders of all models
FORMATS = ("int8", "onnx", "torch")
CARD = "README.md"
MAX_SUMMARY = 200


@dataclass(frozen=True)
class Package:
    """A written wheel, and how the export was compared with the model; None if it was exported before, or is a torch model."""

    path: Path
    name: str
    export: OnnxExport | None

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def package(
    source: str | Path,
    out: str | Path = "dist",
    *,
    name: str,
    version: str,
    format: str | None = None,
    data: str | Path | None = None,
    dev: str | Path | None = None,
    max_loss: float | None = None,
    corpus: str | None = None,
    licence: str | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Package:
    """Write a wheel of a trained or exported model to the folder ``out``, without a network.

    Use it to give a model to others: after ``pip install``, ``spanwise.load(name)`` loads it.
    ``package("RUN", name="en-biomed", version="0.1.0", data="DATA")`` writes
    ``dist/en_biomed-0.1.0-py3-none-any.whl``.

    ``format`` is "int8" (ONNX in 8 bits), "onnx" (float32) or "torch". The default is int8, or onnx for
    encoders without a transformer; an exported ONNX model stays as it is. ``data``, ``dev`` and
    ``max_loss`` are those of ``export_onnx``. The card shows ``corpus``, the name of the training data,
    and ``licence``, an SPDX expression.
    """
    name, version, licence = check_name(name), check_version(version), check_licence(licence)
    _check_folder(Path(out))
    folder = model_folder(source)
    format = _choose_format(folder, format)
    with TemporaryDirectory() as temporary:
        exported, export = folder, None
        if not RunFolder(folder).is_onnx:
            exported = Path(temporary) / "model"
            export = _export(folder, exported, format, data=data, dev=dev, max_loss=max_loss, log=log)
        elif data is not None or dev is not None or max_loss is not None:
            raise SpanwiseError(f"{source}: is exported already; pass the run folder to choose a quantisation on data")
        load(exported, "cpu")  # a damaged model must not be packaged
        metadata = _metadata(name, version, licence, folder, exported, corpus)
        target = Path(out) / metadata.file_name
        Path(out).mkdir(exist_ok=True)
        with atomic_output(target) as wheel:
            module = f"{NAMESPACE}.{name.replace('-', '_')}"
            write_wheel(wheel, metadata, _members(module, exported, metadata), {GROUP: {name: module}})
    return Package(target, name, export)


def check_name(name: str) -> str:
    """Return the normalised name of a package.

    >>> check_name("EN_Biomed")
    'en-biomed'
    """
    try:
        normalized = canonicalize_name(name, validate=True)
    except InvalidName:
        raise SpanwiseError(
            f"name {name!r}: expected a package name of letters, digits and single -, _ or . between them, such as en-biomed"
        ) from None
    if normalized == "spanwise":
        raise SpanwiseError(f"name {name!r}: a package of this name would replace the library; choose another")
    return normalized


def check_version(version: str) -> str:
    """Return the normalised version (PEP 440)."""
    try:
        return str(Version(version))
    except InvalidVersion:
        raise SpanwiseError(f"version {version!r}: expected numbers with dots, such as 0.1.0 or 1.0rc1 (PEP 440)") from None


def check_licence(licence: str | None) -> str | None:
    """Return the normalised SPDX expression of a licence."""
    if licence is None:
        return None
    try:
        return canonicalize_license_expression(licence)
    except InvalidLicenseExpression:
        raise SpanwiseError(
            f"licence {licence!r}: expected an SPDX expression, such as CC-BY-4.0, Apache-2.0 or LicenseRef-Private"
        ) from None


def _choose_format(folder: Path, format: str | None) -> str:
    if format is not None and format not in FORMATS:
        raise SpanwiseError(f"format {format!r}: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    run = RunFolder(folder)
    if run.is_onnx:
        precision = read_record(folder).precision
        if format not in (None, "onnx" if precision == "float32" else precision):
            raise SpanwiseError(f"{folder}: is exported to ONNX in {precision}; pass the run folder to choose another format")
        return "onnx"
    if format is None and run.has_model:
        return "int8" if _has_transformer(run.read_config().encoder) else "onnx"
    return format or "int8"


def _has_transformer(encoder: Mapping[str, Any]) -> bool:
    return encoder.get("kind") == "transformer" or any(_has_transformer(part) for part in encoder.get("parts", ()))


def _export(folder: Path, out: Path, format: str, **options: Any) -> OnnxExport | None:
    for name in {"torch": ("data", "dev", "max_loss"), "onnx": ("dev", "max_loss")}.get(format, ()):
        if options[name] is not None:
            needed = "int8 or onnx" if name == "data" else "int8"
            raise SpanwiseError(f"{name.replace('_', ' ')}: needs the format {needed}; {folder} is packed as {format}")
    if format == "torch":
        from spanwise.export.torch_folder import export

        export(folder, out)
        return None
    from spanwise.export.onnx import MAX_LOSS, export_onnx

    options["max_loss"] = MAX_LOSS if options["max_loss"] is None else options["max_loss"]
    return export_onnx(folder, out, int8=format == "int8", **options)


def _members(module: str, folder: Path, metadata: WheelMetadata) -> dict[str, Path | str]:
    """The files of the wheel's one Python package: those of the model, its card, and a module without code."""
    inside = module.replace(".", "/")
    docstring = f'"""The model {metadata.name} {metadata.version}: spanwise.load("{metadata.name}")."""\n'
    files = {file.relative_to(folder).as_posix(): file for file in _model_files(folder)}
    members: dict[str, Path | str] = {**files, CARD: metadata.description, "__init__.py": docstring}
    return {f"{inside}/{name}": content for name, content in members.items()}


def _model_files(folder: Path) -> list[Path]:
    """The files that prediction needs; a folder from the hub also has a report."""
    run = RunFolder(folder)
    excluded = {run.report_file, run.metrics_file, run.record_file, run.lock_file, run.teacher_outputs_file}
    return sorted(set(run.files()) - excluded)


def _metadata(
    name: str, version: str, licence: str | None, folder: Path, exported: Path, corpus: str | None
) -> WheelMetadata:  # fmt: skip
    from spanwise.integrations.card import model_card

    is_onnx = RunFolder(exported).is_onnx
    metadata = WheelMetadata(
        name=name, version=version, summary=_summary(exported), licence=licence, description="",
        requires=(f"spanwise[{'onnx' if is_onnx else 'torch'}]{_compatible_versions()}",), requires_python=">=3.11",
        keywords=("named entity recognition", "spanwise"),
        classifiers=(
            "Programming Language :: Python :: 3", "Topic :: Scientific/Engineering :: Artificial Intelligence",
            "Topic :: Text Processing :: Linguistic",
        ),
    )  # fmt: skip
    card = model_card(folder, name, corpus, licence, exported=exported, install=metadata.file_name)
    return replace(metadata, description=card.text.strip() + "\n")


def _summary(folder: Path) -> str:
    types = read_json(RunFolder(folder).labels_file).get("entities", [])
    text = " ".join(f"Named entity recognition with Spanwise: {', '.join(types)}".split())
    return text if len(text) <= MAX_SUMMARY else f"{text[:MAX_SUMMARY]}…"


def _compatible_versions() -> str:
    """The versions of Spanwise that read the model: up to the next one that may change the interface."""
    major, minor, *_ = (*Version(__version__).release, 0)
    return f">={__version__},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, before the model is exported."""
    if out.exists() and not out.is_dir():
        raise SpanwiseError(f"{out}: expected a folder, found a file")
    check_parent(out)
