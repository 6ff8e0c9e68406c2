"""The Hugging Face hub: whether it answers, and the files of a model there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError


def hub_answers() -> bool:
    """Whether the model hub can be reached. Asked once, for the libraries go on trying for half a minute."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:  # of whatever library the session is
        return False
    return True


def fetched(name: str, **options: Any) -> Path:
    """The folder where the hub's files of a model ("owner/model") are kept here, fetched unless they are there."""
    from huggingface_hub import snapshot_download

    options = {**options, "local_files_only": options.get("local_files_only") or not hub_answers()}
    try:
        return Path(snapshot_download(name, **options))
    except Exception as error:  # of whatever library the session is
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SpanwiseError(f"{name}: no such folder, and the model hub did not give a model of this name ({reason})") from None
