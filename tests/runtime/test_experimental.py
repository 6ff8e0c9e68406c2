"""The switch of experimental kernels."""

from __future__ import annotations

import pytest

from spanwise.runtime.experimental import SWITCH, uses_experimental_kernels


@pytest.mark.parametrize(("value", "is_used"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_kernels_are_used_only_on_request(monkeypatch: pytest.MonkeyPatch, value: str | None, is_used: bool) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(SWITCH, value)
    assert uses_experimental_kernels() is is_used
