"""Write a wheel with the standard library: a zip archive of files, with metadata and a list of hashes.

The archive is the same for the same files: members are sorted and have no time or owner.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from packaging.metadata import Metadata
from packaging.utils import canonicalize_name

from spanwise.core.version import __version__

FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip archive
BLOCK = 1 << 20


@dataclass(frozen=True)
class WheelMetadata:
    """The fields of METADATA. ``version`` is normalised; ``description`` is Markdown."""

    name: str
    version: str
    summary: str
    requires: tuple[str, ...]
    requires_python: str
    description: str
    licence: str | None = None  # an SPDX expression
    keywords: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """Name and version, as in the names of the wheel and of its metadata folder."""
        return f"{canonicalize_name(self.name).replace('-', '_')}-{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.prefix}-py3-none-any.whl"

    def to_text(self) -> str:
        """METADATA, validated."""
        fields = [("Metadata-Version", "2.4"), ("Name", self.name), ("Version", self.version), ("Summary", self.summary)]
        fields += [("Keywords", ",".join(self.keywords))] if self.keywords else []
        fields += [("License-Expression", self.licence)] if self.licence else []
        fields += [("Classifier", value) for value in self.classifiers]
        fields += [("Requires-Python", self.requires_python)]
        fields += [("Requires-Dist", value) for value in self.requires]
        fields += [("Description-Content-Type", "text/markdown; charset=UTF-8; variant=GFM")]
        text = "".join(f"{key}: {value}\n" for key, value in fields) + f"\n{self.description}"
        Metadata.from_email(text.encode(), validate=True)
        return text


def write_wheel(
    path: Path, metadata: WheelMetadata, files: Mapping[str, Path | str], entry_points: Mapping[str, Mapping[str, str]]
) -> None:
    """Write a wheel with entry points by group; ``files`` maps paths in the wheel to files or texts."""
    info = f"{metadata.prefix}.dist-info"
    lines = [
        line for group, names in entry_points.items() for line in (f"[{group}]", *(f"{key} = {names[key]}" for key in names))
    ]
    texts = {
        f"{info}/METADATA": metadata.to_text(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: spanwise {__version__}\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(lines) + "\n",
    }
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        rows = list(_write_members(archive, {**dict(sorted(files.items())), **texts}))  # metadata last, as recommended
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
        archive.writestr(_member(f"{info}/RECORD"), record.getvalue())


def _write_members(archive: ZipFile, files: Mapping[str, Path | str]) -> Iterator[tuple[str, str, str]]:
    """Write all members; yield their rows of RECORD."""
    for name, content in files.items():
        digest, member = hashlib.sha256(), _member(name)
        source = io.BytesIO(content.encode()) if isinstance(content, str) else content.open("rb")
        member.file_size = len(content.encode()) if isinstance(content, str) else content.stat().st_size  # zip64 above 2 GiB
        size = member.file_size
        with source, archive.open(member, "w") as target:
            while block := source.read(BLOCK):
                digest.update(block)
                target.write(block)
        yield name, "sha256=" + base64.urlsafe_b64encode(digest.digest()).decode().rstrip("="), str(size)


def _member(name: str) -> ZipInfo:
    member = ZipInfo(name, FIRST_DATE)
    member.compress_type, member.external_attr = ZIP_DEFLATED, 0o100644 << 16
    member.create_system = 3  # Unix, also where it is written on Windows
    return member
