"""Models on the Hugging Face hub: their names, which have the prefix ``hf:``, and downloads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError, first_line

PREFIX = "hf:"


def hub_name(source: object) -> str | None:
    """Return the hub name of a source with the prefix ``hf:``; None for other sources, which are paths.

    >>> hub_name("hf:owner/model"), hub_name("runs/ner")
    ('owner/model', None)
    """
    if not isinstance(source, str) or not source.startswith(PREFIX):
        return None
    name = source.removeprefix(PREFIX)
    if not re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", name, re.ASCII):
        raise SpanwiseError(f"{source}: expected hf:NAME or hf:OWNER/NAME")
    return name


def is_hub_reachable() -> bool:
    """Whether the hub can be reached. The libraries would retry for half a minute."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:  # the session may come from requests or httpx
        return False
    return True


def download_model(name: str, **options: Any) -> Path:
    """Return the cached folder of a hub model ("owner/model"); download it if it is not cached."""
    from huggingface_hub import snapshot_download

    options = {**options, "local_files_only": options.get("local_files_only") or not is_hub_reachable()}
    try:
        return Path(snapshot_download(name, **options))
    except Exception as error:  # the session may come from requests or httpx
        raise SpanwiseError(f"{PREFIX}{name}: no such model on the Hugging Face hub ({first_line(error)})") from None
