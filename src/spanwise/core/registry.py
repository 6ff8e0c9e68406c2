"""Registries of named components: built-in ones, and those that other packages add through entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spanwise.core.errors import SpanwiseError, unknown_name


@cache
def _installed(path: tuple[str, ...]) -> Any:
    """The entry points of all packages on a path, which are read once for all registries: there may be hundreds of files."""
    return entry_points()


class Registry:
    """Components of one kind by name. Listing the names imports no component; ``load`` imports the requested one.

    ``builtin`` maps names to ``module:attribute``. Packages add components through the entry point
    group ``spanwise.heads``, ``spanwise.encoders`` or ``spanwise.formats``, which is read once, on
    first use.

    >>> registry = Registry("head", "spanwise.example", {"spanner": "spanwise.heads.spanner:SpanNer"})
    >>> list(registry), "spanner" in registry, registry.plugins
    (['spanner'], True, ())
    """

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        self.kind, self.group, self.builtin = kind, group, dict(builtin)
        self._loaded: dict[str, Any] = {}

    @cached_property
    def _entries(self) -> dict[str, list[EntryPoint]]:
        """The entry points of each name, without repetitions."""
        entries: dict[str, list[EntryPoint]] = {}
        for entry in sorted(_installed(tuple(sys.path)).select(group=self.group), key=lambda entry: entry.name):
            same_name = entries.setdefault(entry.name, [])
            if all((entry.value, _package(entry)) != (other.value, _package(other)) for other in same_name):
                same_name.append(entry)
        return entries

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names that other packages add."""
        return tuple(name for name in self._entries if name not in self.builtin)

    def __iter__(self) -> Iterator[str]:
        """All names: the built-in ones in their order, then those of other packages."""
        yield from self.builtin
        yield from self.plugins

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in self._entries

    def load(self, name: str, kind: str = "") -> Any:
        """Import the component of a name; ``kind`` replaces the registry's kind in the error for an unknown name."""
        if name not in self._loaded:
            if name not in self:
                raise unknown_name(kind or self.kind, name, self)
            self._loaded[name] = self._import(name)
        return self._loaded[name]

    def name_of(self, component: object) -> str:
        """The name under which a class is registered.

        >>> from spanwise.core.types import Span
        >>> Registry("head", "spanwise.example", {"span": "spanwise.core.annotations:Span"}).name_of(Span)
        'span'
        """
        for name, loaded in self._loaded.items():
            if loaded is component:
                return name
        target = f"{getattr(component, '__module__', '')}:{getattr(component, '__qualname__', '')}"
        for name in self:
            if target == self.builtin.get(name) or any(target == entry.value for entry in self._entries.get(name, ())):
                return name
        raise SpanwiseError(f"the {self.kind} {target} is not registered; add it to the entry points {self.group}")

    def entry_point(self, name: str) -> EntryPoint:
        """The one entry point of a name that another package adds; an error if several packages add it."""
        entries = self._entries.get(name, [])
        if not entries:
            raise unknown_name(self.kind, name, self)
        packages = ", ".join(map(_package, entries))
        if name in self.builtin:
            raise SpanwiseError(
                f"{self.kind} {name!r}: the package {packages} registers a name that is built in; uninstall the package, "
                f"or rename its entry point in the group {self.group}"
            )
        if len(entries) > 1:
            raise SpanwiseError(f"{self.kind} {name!r}: registered by several packages ({packages}); uninstall all but one")
        return entries[0]

    def _import(self, name: str) -> Any:
        if name in self.builtin and name not in self._entries:
            module, _, attribute = self.builtin[name].partition(":")
            return getattr(import_module(module), attribute)
        entry = self.entry_point(name)
        try:
            return entry.load()
        except Exception as error:  # a plugin's module can fail in any way
            problem = " ".join(str(error).split()) or type(error).__name__
            raise SpanwiseError(
                f"{self.kind} {name!r}: the package {_package(entry)} cannot be imported ({entry.value}: {problem}); "
                "upgrade or uninstall it"
            ) from error


def _package(entry: EntryPoint) -> str:
    """The name of the distribution that an entry point belongs to."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0].partition(".")[0]
