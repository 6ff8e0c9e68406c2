"""What a format is, and the ledger in which readers and writers say what they did to the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spanwise.errors import SpanwiseError, unknown
from spanwise.types import Sentence

if TYPE_CHECKING:
    from spanwise.formats.sample import Sample


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

    def lose(self, kind: str, why: str, count: int = 1) -> None:
        """``count`` things of a kind ("entities", "relations", …) that are not in the result, and why."""
        if count:
            self.losses[kind, why] += count

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
Options = Mapping[str, Callable[[str], Any]]


@dataclass(frozen=True)
class Format:
    """One on-disk format: how to recognise, read and write it.

    ``holds`` names what it can express besides flat entities: "nested", "crossing", "discontinuous", "several types"
    (two types on one span), "relations", "links" (relations across sentences). ``options`` are what may follow the name in
    ``--from name:key=value``, with the function that reads the value.
    """

    name: str
    summary: str
    read: Reader
    sniff: Callable[[Sample], bool]
    write: Writer | None = None
    extensions: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset()
    read_options: Options = field(default_factory=dict)
    write_options: Options = field(default_factory=dict)
    is_folder: bool = False
    is_file_too: bool = False  # a folder of files, of which a single one can be read as well
    is_folder_too: bool = False  # a file, read from a folder of its pieces as well
    extra: str | None = None  # the optional dependency group it needs
    has_words: bool = True  # False where the file holds text only, and words and sentences are split around the annotations

    def reads(self, folder: bool) -> bool:
        """True when it is read from a folder, or from a file."""
        return self.is_folder or self.is_folder_too if folder else not self.is_folder or self.is_file_too


def parse_options(text: str, known: Options, name: str) -> dict[str, Any]:
    """``labels=1+2,separator=tab`` as keyword arguments.

    >>> parse_options("width=3", {"width": int}, "some format")
    {'width': 3}
    """
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if key not in known:
            if not known:
                raise SpanwiseError(f"{name} takes no options here, found {part!r}")
            raise unknown(f"option of {name}", key, known)
        if not equals:
            raise SpanwiseError(f"option {key!r} of {name} needs a value, as in {key}=…")
        try:
            options[key] = known[key](value)
        except ValueError as error:
            problem = str(error)
            if problem.startswith("invalid literal for int"):
                problem = f"expected a whole number, found {value!r}"
            raise SpanwiseError(f"option {key!r} of {name}: {problem}") from None
    return options


def yes_or_no(value: str) -> bool:
    """Reads a yes/no option.

    >>> yes_or_no("yes"), yes_or_no("no")
    (True, False)
    """
    if value.lower() in ("yes", "true", "1", "on"):
        return True
    if value.lower() in ("no", "false", "0", "off"):
        return False
    raise ValueError(f"expected yes or no, found {value!r}")


def one_of(*choices: str) -> Callable[[str], str]:
    """Reads an option that has a fixed set of values.

    >>> one_of("bio", "bioes")("BIO")
    'bio'
    """

    def read(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, found {value!r}")
        return value.lower()

    read.__doc__ = "|".join(choices)
    return read


def shown_values(reads: Callable[[str], Any]) -> str:
    """The values of an option as help texts show them.

    >>> shown_values(one_of("bio", "bioes")), shown_values(yes_or_no), shown_values(int), shown_values(str)
    ('bio|bioes', 'yes|no', 'N', '…')
    """
    if reads is yes_or_no:
        return "yes|no"
    if reads is int:
        return "N"
    text = reads.__doc__ or ""
    return text if "|" in text and " " not in text else "…"
