"""
Where a revocation leaves its record when the trail cannot take it: a local file of lines, kept as evidence.

A line is what was to be recorded, for one change. The ring is sealed with its hash, and the trail gets that hash with the first
record that can be written again; so a spill file on any machine can be held against the trail, whoever had it in the meantime.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Final

from verifier.strict_json import StrictJSONError, loads_object

from .canonical import canonical
from .chain import link_of
from .line_file import LineFile
from .record import Entry, Malformed, entry_members, parse_entry

__all__ = ["Spill", "spill_line"]

_MAX_READ_OCTETS: Final = 16 * 1024 * 1024


def spill_line(workspace: str, revision: int, entries: Sequence[Entry]) -> bytes:
    """
    Write the line of a change that makes *revision*.
    """
    return canonical(
        {"workspace": workspace, "revision": revision, "entries": [entry_members(entry) for entry in entries]}
    )


class Spill:
    """
    The spill file of one workspace on one machine; it is only ever added to.

    What it is asked for raises the `StoreError` that the file raises.
    """

    __slots__ = ("_file",)

    def __init__(self, file: LineFile) -> None:
        """
        Take the file.
        """
        self._file = file

    async def append(self, line: bytes) -> None:
        """
        Add a line durably.
        """
        await asyncio.to_thread(self._file.append, [line])

    async def find(self, links: Collection[str]) -> dict[str, tuple[Entry, ...]]:
        """
        Return the entries of those lines whose hashes are asked for and that are here.
        """
        return await asyncio.to_thread(self._find, links) if links else {}

    def _find(self, links: Collection[str]) -> dict[str, tuple[Entry, ...]]:
        data = b""
        while len(data) < _MAX_READ_OCTETS and (block := self._file.read(len(data))):
            data += block
        found = {link_of(line): line for line in data.split(b"\n")}
        return {link: _entries(found[link]) for link in links if link in found}


def _entries(line: bytes) -> tuple[Entry, ...]:
    # Its hash is the one that the ring was sealed with, so this service wrote the line, maybe in a later version.
    try:
        members: list[dict[str, Any]] = loads_object(line)["entries"]
        return tuple(parse_entry(entry) for entry in members)
    except (StrictJSONError, Malformed, KeyError, TypeError):
        return ()
