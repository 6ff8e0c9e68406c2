"""A streaming XML parser that refuses declarations and oversized tags, for readers of XML formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO
from xml.parsers import expat

from spanwise.core.errors import FormatError
from spanwise.files.json_arrays import CHUNK
from spanwise.files.limits import XML_TOKEN_BYTES, megabytes


class SafeXmlParser:
    """Calls handlers for elements and text while a file is fed to it in chunks.

    The DTD is not loaded. Declarations inside the file (entities, attribute defaults) are refused,
    because they can expand to any size.
    """

    def __init__(
        self,
        path: Path,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], object],
    ) -> None:
        self._path, self._fed = path, 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = end
        self._parser.CharacterDataHandler = text
        self._parser.EntityDeclHandler = self._refuse_entity
        self._parser.AttlistDeclHandler = self._refuse_attribute
        self._parser.SkippedEntityHandler = self._refuse_reference

    @property
    def line(self) -> int:
        return self._parser.CurrentLineNumber

    def error(self, problem: str) -> FormatError:
        return FormatError(self._path, self.line, problem)

    def feed(self, file: IO[bytes]) -> bool:
        """Parse the next chunk of a file; return False at its end."""
        chunk = file.read(CHUNK)
        self._fed += len(chunk)
        try:
            self._parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            raise FormatError(self._path, error.lineno, f"not XML: {expat.ErrorString(error.code)}") from None
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise self.error(f"not XML: {error}") from None
        if self._fed - max(0, self._parser.CurrentByteIndex) > XML_TOKEN_BYTES + CHUNK:
            raise self.error(f"a tag or comment is larger than the limit of {megabytes(XML_TOKEN_BYTES)}")
        return bool(chunk)

    def _refuse_entity(self, name: str, *declaration: object) -> None:
        raise self.error(f"declares the XML entity {name!r:.60}; files with entity declarations are not supported")

    def _refuse_attribute(self, element: str, *declaration: object) -> None:
        raise self.error(f"declares attributes of <{element[:60]}>; files with such declarations are not supported")

    def _refuse_reference(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            raise self.error(f"the XML entity &{name[:60]}; is not defined")
