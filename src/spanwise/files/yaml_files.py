"""Small YAML files from untrusted sources, such as the configuration of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from spanwise.core.errors import SpanwiseError
from spanwise.files.limits import CONFIG_BYTES, check_size


class _PlainLoader(yaml.SafeLoader):
    """Builds plain values and refuses aliases, with which a few lines become millions of values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not supported")
        return super().compose_node(parent, index)


def read_yaml(path: Path) -> Any:
    """Read the value of a small YAML file."""
    try:
        check_size(path, CONFIG_BYTES)
        return yaml.load(path.read_text(encoding="utf-8"), _PlainLoader)
    except OSError as error:
        raise SpanwiseError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise SpanwiseError(f"{path}: cannot be read: the values are nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:  # a wrong date is a ValueError
        raise SpanwiseError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
