"""The ``Format`` class and the ``Ledger`` of changes made by readers and writers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spanwise.core.counting import counted_phrase
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Sentence

if TYPE_CHECKING:
    from spanwise.formats.shared.sample import Sample


class Ledger:
    """Counts of what readers and writers changed (``notes``) or dropped (``losses``).

    A writer that cannot store something records it here and continues. The caller decides whether
    the result is acceptable.

    >>> ledger = Ledger()
    >>> ledger.lose("entities", "overlapping another", 3)
    >>> ledger.lose("relations", "not supported by the format")
    >>> ledger.lost, str(ledger)
    (4, '3 entities (overlapping another), 1 relation (not supported by the format)')
    """

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        self.losses: Counter[tuple[str, str]] = Counter()

    def note(self, message: str, count: int = 1) -> None:
        """Count changes that lose no annotation, such as repaired tags."""
        if count:
            self.notes[message] += count

    def note_files(self, description: str, names: Sequence[str]) -> None:
        """Count files that were not read, and name the first three."""
        listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        self.note(f"{description}, not read ({listed})", len(names))

    def lose(self, kind: str, reason: str, count: int = 1) -> None:
        """Count annotations of a kind ("entities", "relations", …) that are not in the result."""
        if count:
            self.losses[kind, reason] += count

    def add(self, other: Ledger) -> None:
        """Add the counts of another ledger."""
        self.notes.update(other.notes)
        self.losses.update(other.losses)

    @property
    def lost(self) -> int:
        return self.losses.total()

    @property
    def note_lines(self) -> list[str]:
        """The notes with their counts, as text."""
        return [counted_phrase(count, message) for message, count in self.notes.items()]

    def __str__(self) -> str:
        return ", ".join(f"{counted_phrase(count, kind)} ({reason})" for (kind, reason), count in self.losses.items())


# read(path, ledger, **options) streams sentences; write(sentences, path, ledger, **options) creates a new path.
Reader = Callable[..., Iterator[Sentence]]
Writer = Callable[..., None]


@dataclass(frozen=True)
class Option:
    """The parser of an option's value and the placeholder in help texts.

    ``parse`` raises ValueError for an invalid value.
    """

    parse: Callable[[str], Any]
    placeholder: str = "…"

    def __call__(self, value: str) -> Any:
        return self.parse(value)


Options = Mapping[str, Option]

# Everything that sentences carry in addition to their annotations.
ALL_METADATA = frozenset(("ids", "documents", "pos", "scores", "relation scores", "keys", "entity keys", "relation keys"))


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise, read and write it.

    ``supports`` lists what it can express in addition to flat entities: "nested", "crossing",
    "discontinuous", "several types" (two types on one span), "relations", "links" (relations across
    sentences) and "partial" (``Sentence.annotated``). Everything else is counted as lost.

    ``metadata`` lists what it stores of ``ALL_METADATA``; ``metadata_for`` computes it where it depends
    on the write options. ``extra_keys`` are single keys that it stores even if it does not store
    arbitrary keys. Other metadata is dropped with a note.

    ``read_options`` and ``write_options`` may follow the name, as in ``--from name:key=value``.
    ``corpus_options`` computes write options from the sentences of all splits and the given options,
    so that all splits are written alike.
    """

    name: str
    summary: str
    read: Reader
    sniff: Callable[[Sample], bool]
    write: Writer | None = None
    extensions: tuple[str, ...] = ()
    supports: frozenset[str] = frozenset()
    metadata: frozenset[str] = frozenset()
    extra_keys: frozenset[str] = frozenset()
    metadata_for: Callable[..., frozenset[str]] | None = None
    read_options: Options = field(default_factory=dict)
    write_options: Options = field(default_factory=dict)
    corpus_options: Callable[[Iterable[Sentence], dict[str, Any]], dict[str, Any]] | None = None
    input_kinds: frozenset[str] = frozenset(("file",))  # "file", "folder" or both
    companions: tuple[str, ...] = ()  # names of further files that it reads in the folder of a file
    writes_folder: bool = False
    pip_extra: str | None = None  # the optional dependency group that it requires
    # Annotations are character offsets. Words and sentences are split around them, unless the file
    # is read with with_annotations=False.
    has_character_offsets: bool = False
    # ``read`` takes with_annotations=False, which also reads data that has no annotations.
    can_lack_annotations: bool = False

    def can_read(self, is_folder: bool) -> bool:
        return ("folder" if is_folder else "file") in self.input_kinds

    def stored_metadata(self, options: Mapping[str, Any]) -> frozenset[str]:
        """Return the metadata that is stored with these write options."""
        return self.metadata_for(**options) if self.metadata_for else self.metadata


def fill_empty_words(words: Sequence[str], ledger: Ledger) -> tuple[str, ...]:
    """Replace empty words by U+FFFD, so that the indices of entities stay right, and note them.

    >>> fill_empty_words(["in", "", "Oslo"], Ledger())
    ('in', '\ufffd', 'Oslo')
    """
    ledger.note("empty words, replaced by U+FFFD", sum(word == "" for word in words))
    return tuple("\ufffd" if word == "" else word for word in words)


def parse_options(text: str, known: Options, name: str) -> dict[str, Any]:
    """Parse ``labels=1+2,separator=tab`` into keyword arguments.

    >>> parse_options("width=3", {"width": INTEGER}, "some format")
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


def parse_integer(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"expected an integer, found {value!r}") from None


def _parse_yes_or_no(value: str) -> bool:
    if value.lower() in ("yes", "true", "1", "on"):
        return True
    if value.lower() in ("no", "false", "0", "off"):
        return False
    raise ValueError(f"expected yes or no, found {value!r}")


INTEGER = Option(parse_integer, "N")
NAME = Option(str, "NAME")
PATH = Option(str, "PATH")  # of a file or folder that is read in the same encoding
YES_OR_NO = Option(_parse_yes_or_no, "yes|no")


def one_of(*choices: str) -> Option:
    """Return an option with a fixed set of values.

    >>> one_of("bio", "bioes")("BIO"), one_of("bio", "bioes").placeholder
    ('bio', 'bio|bioes')
    """

    def parse(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, found {value!r}")
        return value.lower()

    return Option(parse, "|".join(choices))
