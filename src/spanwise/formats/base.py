"""What a format is, and the ledger in which readers and writers say what they did to the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Sentence

if TYPE_CHECKING:
    from spanwise.formats.shared.sample import Sample


class Ledger:
    """What reading and writing did besides copying: ``note`` what lost nothing, ``lose`` what did.

    Nothing is dropped silently: a writer that cannot hold something says so here and goes on; who called it decides
    whether the result may stand.

    >>> ledger = Ledger()
    >>> ledger.lose("entities", "overlap another", 3)
    >>> ledger.lose("relations", "no place for them")
    >>> ledger.lost, str(ledger)
    (4, '3 entities (overlap another), 1 relation (no place for them)')
    """

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        self.losses: Counter[tuple[str, str]] = Counter()

    def note(self, what: str, count: int = 1) -> None:
        """A change that loses nothing, such as a repaired label."""
        if count:
            self.notes[what] += count

    def note_files(self, what: str, names: Sequence[str]) -> None:
        """Files that somebody may think are read; the first three by name."""
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        self.note(f"{what}, not read ({shown})", len(names))

    def lose(self, kind: str, why: str, count: int = 1) -> None:
        """``count`` things of a kind ("entities", "relations", …) that are not in the result, and why."""
        if count:
            self.losses[kind, why] += count

    def add(self, other: Ledger) -> None:
        """What another ledger says, here too."""
        self.notes.update(other.notes)
        self.losses.update(other.losses)

    @property
    def lost(self) -> int:
        return self.losses.total()

    def __str__(self) -> str:
        return ", ".join(f"{count} {_one(kind) if count == 1 else kind} ({why})" for (kind, why), count in self.losses.items())


def _one(kind: str) -> str:
    return kind[:-3] + "y" if kind.endswith("ies") else kind.removesuffix("s")


# read(path, ledger, **options) yields sentences as it reads; write(sentences, path, ledger, **options) writes to a fresh path.
Reader = Callable[..., Iterator[Sentence]]
Writer = Callable[..., None]


@dataclass(frozen=True)
class Option:
    """How the value of an option is read, and how help texts show it. ``read`` raises ValueError for a wrong one."""

    read: Callable[[str], Any]
    shown: str = "…"

    def __call__(self, value: str) -> Any:
        return self.read(value)


Options = Mapping[str, Option]

# What data has besides its annotation: ids of sentences, names of documents, tags of words, scores, unknown keys.
EVERYTHING = frozenset(("ids", "documents", "pos", "scores", "relation scores", "keys", "entity keys", "relation keys"))


@dataclass(frozen=True)
class Format:
    """One on-disk format: how to recognise, read and write it.

    ``holds`` names what it can express besides flat entities: "nested", "crossing", "discontinuous", "several types"
    (two types on one span), "relations", "links" (relations across sentences); what it does not hold is lost. ``keeps`` names
    what it has a place for besides (of ``EVERYTHING``), with ``own_keys`` those keys that it keeps though it does not keep any
    key there is; ``keeps_with`` says it where the options of writing decide. What is not kept is noted.

    ``options`` are what may follow the name in ``--from name:key=value``. ``for_corpus`` gives, from the sentences of all
    splits and the options said, those with which the splits are written alike.
    """

    name: str
    summary: str
    read: Reader
    sniff: Callable[[Sample], bool]
    write: Writer | None = None
    extensions: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset()
    keeps: frozenset[str] = frozenset()
    own_keys: frozenset[str] = frozenset()
    keeps_with: Callable[..., frozenset[str]] | None = None
    read_options: Options = field(default_factory=dict)
    write_options: Options = field(default_factory=dict)
    for_corpus: Callable[[Iterable[Sentence], dict[str, Any]], dict[str, Any]] | None = None
    read_from: frozenset[str] = frozenset(("file",))  # "file", "folder" or both
    writes_folder: bool = False
    extra: str | None = None  # the optional dependency group it needs
    # True where annotations point at characters: words and sentences are cut around them, unless read with annotated=False.
    by_characters: bool = False

    def reads(self, folder: bool) -> bool:
        """True when it is read from a folder, or from a file."""
        return ("folder" if folder else "file") in self.read_from

    def kept(self, options: Mapping[str, Any]) -> frozenset[str]:
        """What is kept when it is written with these options."""
        return self.keeps_with(**options) if self.keeps_with else self.keeps


def parse_options(text: str, known: Options, name: str) -> dict[str, Any]:
    """``labels=1+2,separator=tab`` as keyword arguments.

    >>> parse_options("width=3", {"width": WHOLE}, "some format")
    {'width': 3}
    """
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if key not in known:
            if not known:
                raise SpanwiseError(f"{name} takes no options here, found {part!r}")
            raise unknown_name(f"option of {name}", key, known)
        if not equals:
            raise SpanwiseError(f"option {key!r} of {name} needs a value, as in {key}=…")
        try:
            options[key] = known[key](value)
        except ValueError as error:
            raise SpanwiseError(f"option {key!r} of {name}: {error}") from None
    return options


def whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"expected a whole number, found {value!r}") from None


def _yes_or_no(value: str) -> bool:
    if value.lower() in ("yes", "true", "1", "on"):
        return True
    if value.lower() in ("no", "false", "0", "off"):
        return False
    raise ValueError(f"expected yes or no, found {value!r}")


WHOLE = Option(whole, "N")
TEXT = Option(str)
NAME = Option(str, "NAME")
YES_OR_NO = Option(_yes_or_no, "yes|no")


def one_of(*choices: str) -> Option:
    """An option that has a fixed set of values.

    >>> one_of("bio", "bioes")("BIO"), one_of("bio", "bioes").shown
    ('bio', 'bio|bioes')
    """

    def read(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, found {value!r}")
        return value.lower()

    return Option(read, "|".join(choices))
