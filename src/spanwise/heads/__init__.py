"""The heads by the ``kind`` that a recipe names, and how they are built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.core.registry import Registry
from spanwise.core.types import Sentence

if TYPE_CHECKING:  # listing the heads needs no torch
    from spanwise.encoders.base import Encoder
    from spanwise.heads.base import Head, HeadSettings, Labels

HEADS = Registry(
    "head",
    "spanwise.heads",
    {
        "biaffine": "spanwise.heads.biaffine:Biaffine",
        "bundle": "spanwise.heads.bundle:Bundle",
        "deep-span": "spanwise.heads.deep_span:DeepSpan",
        "deep-span-pruned": "spanwise.heads.pruned_span:PrunedSpan",
        "efficient-global-pointer": "spanwise.heads.pointer:EfficientGlobalPointer",
        "global-pointer": "spanwise.heads.pointer:GlobalPointer",
        "gp-relations": "spanwise.heads.gp_relations:PointerRelations",
        "grid": "spanwise.heads.grid:Grid",
        "locate-label": "spanwise.heads.locate_label:LocateLabel",
        "seqner": "spanwise.heads.seqner:SeqNer",
        "shallow-span": "spanwise.heads.deep_span:ShallowSpan",
        "span-relations": "spanwise.heads.span_relations:SpanRelations",
        "sng": "spanwise.heads.sng:Sng",
        "spanner": "spanwise.heads.spanner:SpanNer",
    },
)


def head_class(kind: str, place: str = "head") -> type[Head]:
    """The class of a head; ``place`` is the section of the configuration that names it, for errors."""
    head: type[Head] = HEADS.load(kind, place)
    return head


def head_settings(values: Mapping[str, Any], place: str = "head") -> HeadSettings:
    """Validate the ``head`` section of a configuration."""
    if "kind" not in values:
        raise SpanwiseError(f"{place}: kind is missing; known: {', '.join(HEADS)}")
    kind = str(values["kind"])
    rest = {key: value for key, value in values.items() if key != "kind"}
    return validate_settings(head_class(kind, place).settings_class, rest, f"{place} {kind}")


def wrapped_head_settings(values: Mapping[str, Any], place: str) -> HeadSettings:
    """Validate the settings of a head inside another head, which must read words and predict entities."""
    settings = head_settings(values, place)
    if getattr(settings, "unit", "words") == "subwords":
        raise SpanwiseError(f"{place}: heads that are trained together read words; spans of subwords are not supported")
    if getattr(settings, "task", "entities") == "typing":
        raise SpanwiseError(f"{place}: expected a head that predicts entities, found one that types given spans")
    if getattr(settings, "relations", False) is not False:
        raise SpanwiseError(f"{place}: relations must be false: a head inside another head predicts entities only")
    return settings


def resolve_head_values(values: Mapping[str, Any], place: str, sentences: Sequence[Sentence]) -> dict[str, Any]:
    """The section of an inner head with its defaults and the settings that follow from the sentences."""
    return {"kind": values["kind"], **head_settings(values, place).resolve(sentences).model_dump()}


def make_head(encoder: Encoder, labels: Labels, values: Mapping[str, Any], sentences: Iterable[Sentence] = ()) -> Head:
    """Build the head that ``values`` describe; automatic settings follow from the training sentences."""
    settings = head_settings(values).resolve(tuple(sentences))
    if settings.relation_head is not None:
        entities = {"kind": values["kind"], **settings.model_dump(), "relations": False}
        return make_head(encoder, labels, {**settings.relation_head, "entities": entities})
    head = head_class(str(values["kind"])).build(encoder, labels, settings)
    types = settings.discontinuous_types
    if not types:
        return head
    from spanwise.heads.discontinuous import Discontinuous

    return Discontinuous(head, encoder, types)


def head_values(head: Head) -> dict[str, Any]:
    """The ``head`` section that builds this head again, with every setting."""
    head = head.configured_head
    return {"kind": HEADS.name_of(type(head)), **head.settings.model_dump(mode="json")}
