"""The methods by the ``kind`` that a recipe names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder
from spanwise.heads.base import Head, HeadSettings, Labels

_KINDS = {
    "biaffine": ("biaffine", "Biaffine"),
    "bundle": ("bundle", "Bundle"),
    "deep-span": ("deep_span", "DeepSpan"),
    "deep-span-pruned": ("pruned_span", "PrunedSpan"),
    "efficient-global-pointer": ("pointer", "EfficientGlobalPointer"),
    "global-pointer": ("pointer", "GlobalPointer"),
    "gp-relations": ("gp_relations", "PointerRelations"),
    "locate-label": ("locate_label", "LocateLabel"),
    "seqner": ("seqner", "SeqNer"),
    "shallow-span": ("deep_span", "ShallowSpan"),
    "span-relations": ("span_relations", "SpanRelations"),
    "sng": ("sng", "Sng"),
    "spanner": ("spanner", "SpanNer"),
}


def known_heads() -> tuple[str, ...]:
    """The kinds of heads that a configuration may name."""
    return tuple(_KINDS)


def head_class(kind: str, place: str = "head") -> type[Head]:
    """The class of a head; ``place`` is where in the configuration the kind stands, for the error where there is none."""
    if kind not in _KINDS:
        raise unknown_name(place, kind, _KINDS)
    module, name = _KINDS[kind]
    found: type[Head] = getattr(import_module(f"spanwise.heads.{module}"), name)
    return found


def head_settings(values: Mapping[str, Any], place: str = "head") -> HeadSettings:
    """The settings that a configuration's ``head`` section names, checked."""
    if "kind" not in values:
        raise SpanwiseError(f"{place}: kind is missing; known: {', '.join(_KINDS)}")
    kind = str(values["kind"])
    rest = {key: value for key, value in values.items() if key != "kind"}
    return validate_settings(head_class(kind, place).settings_class, rest, f"{place} {kind}")


def inner_settings(values: Mapping[str, Any], place: str) -> HeadSettings:
    """The same for a head within a head, which must read words and find entities by itself."""
    settings = head_settings(values, place)
    if getattr(settings, "unit", "words") == "subwords":
        raise SpanwiseError(f"{place}: the heads that learn together read words, so spans of subwords are not for them")
    if getattr(settings, "task", "entities") == "typing":
        raise SpanwiseError(f"{place}: expected a head that finds entities, not one that types given ones")
    return settings


def fitted_values(values: Mapping[str, Any], place: str, sentences: Sequence[Sentence]) -> dict[str, Any]:
    """The section of a head within a head with its settings whole: their defaults, and what the sentences decide."""
    return {"kind": values["kind"], **head_settings(values, place).fitted(sentences).model_dump()}


def make_head(encoder: Encoder, labels: Labels, values: Mapping[str, Any], sentences: Iterable[Sentence] = ()) -> Head:
    """The head that ``values`` describe; what they leave open is decided by the training sentences."""
    settings = head_settings(values).fitted(tuple(sentences))
    head = head_class(str(values["kind"])).build(encoder, labels, settings)
    types = settings.fragmented
    if not types:
        return head
    from spanwise.heads.discontinuous import Discontinuous

    return Discontinuous(head, encoder, types)


def head_values(head: Head) -> dict[str, Any]:
    """What a configuration must say to get this head again, everything that was left open filled in."""
    head = head.inner
    own = (type(head).__module__.rpartition(".")[2], type(head).__name__)
    kind = next(kind for kind, found in _KINDS.items() if found == own)
    return {"kind": kind, **head.settings.model_dump(mode="json")}
