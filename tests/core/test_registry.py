"""The registry of built-in components and entry points."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from spanwise import SpanwiseError
from spanwise.core.registry import Registry

GROUP = "spanwise.test-components"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package with a module and entry points in the test group."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(package: str, source: str, **names: str) -> None:
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = (f"{name.replace('_', '-')} = {value}\n" for name, value in names.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(lines)}")

    yield add
    for name in [name for name in sys.modules if name.startswith("registry_test_")]:
        del sys.modules[name]


def registry() -> Registry:
    return Registry("head", GROUP, {"span": "spanwise.core.types:Span", "entity": "spanwise.core.types:Entity"})


def test_builtin_components() -> None:
    from spanwise.core.types import Entity

    components = registry()
    assert list(components) == ["span", "entity"]
    assert components.plugins == ()
    assert components.load("entity") is Entity
    assert components.name_of(Entity) == "entity"
    assert "relation" not in components


def test_components_of_other_packages(install: Install) -> None:
    install(
        "registry_test_good",
        "class Thing: ...\nclass Other: ...",
        my_thing="registry_test_good:Thing",
        a="registry_test_good:Other",
    )
    components = registry()
    assert list(components) == ["span", "entity", "a", "my-thing"]
    assert components.plugins == ("a", "my-thing")
    assert "my-thing" in components
    assert "registry_test_good" not in sys.modules  # listing imports nothing
    thing = components.load("my-thing")
    assert thing.__name__ == "Thing"
    assert components.load("my-thing") is thing
    assert components.name_of(thing) == "my-thing"
    assert registry().name_of(thing) == "my-thing"  # also if it was imported in another way


def test_unknown_names(install: Install) -> None:
    install("registry_test_good", "class Thing: ...", my_thing="registry_test_good:Thing")
    with pytest.raises(
        SpanwiseError, match=r"unknown head 'my-thin' \(did you mean 'my-thing'\?\); known: entity, my-thing, span"
    ):
        registry().load("my-thin")
    with pytest.raises(SpanwiseError, match=r"unknown head\.span 'x'"):
        registry().load("x", "head.span")
    with pytest.raises(SpanwiseError, match=rf"head fractions:Fraction is not registered; add it to the entry points {GROUP}"):
        registry().name_of(Fraction)


@pytest.mark.parametrize(
    ("source", "value", "problem"),
    [
        ("import no_such_module", "registry_test_bad:Thing", "No module named 'no_such_module'"),
        ("raise ValueError('two\\nlines')", "registry_test_bad:Thing", "two lines"),
        ("", "registry_test_bad:Thing", "has no attribute 'Thing'"),
        ("x = 1 +", "registry_test_bad:Thing", "invalid syntax"),
    ],
)
def test_a_package_that_cannot_be_imported(install: Install, source: str, value: str, problem: str) -> None:
    install("registry_test_bad", source, broken=value)
    components = registry()
    assert list(components) == ["span", "entity", "broken"]
    assert components.load("span").__name__ == "Span"  # the other components work
    with pytest.raises(SpanwiseError, match=r"^head 'broken': the package registry_test_bad cannot be imported") as caught:
        components.load("broken")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("; upgrade or uninstall it")


def test_names_that_are_taken(install: Install) -> None:
    install("registry_test_first", "class Thing: ...", span="registry_test_first:Thing", mine="registry_test_first:Thing")
    install("registry_test_second", "class Thing: ...", mine="registry_test_second:Thing")
    components = registry()
    assert list(components) == ["span", "entity", "mine"]
    with pytest.raises(SpanwiseError, match="head 'span': the package registry_test_first registers a name that is built in"):
        components.load("span")
    with pytest.raises(
        SpanwiseError, match=r"head 'mine': registered by several packages \(registry_test_\w+, registry_test_\w+\)"
    ):
        components.load("mine")
    assert components.load("entity").__name__ == "Entity"


def test_importing_spanwise_reads_no_entry_points() -> None:
    code = (
        "import importlib.metadata as m; m.entry_points = None\n"
        "import spanwise, spanwise.cli, spanwise.heads, spanwise.encoders, sys; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
