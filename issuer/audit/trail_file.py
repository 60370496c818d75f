"""
The audit trail of one workspace in a file of JSON lines, for a service that runs in one process on a data folder.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from keys import StoreBusy, StoreError
from keys.private_file import exclusive_lock, make_private_folder, read_private_file, replace_private_file

from .errors import PlaceTaken, TrailUnavailable
from .line_file import LineFile
from .record import MAX_LINE_OCTETS
from .trail import TrailEnd, confirmed_of

__all__ = ["FileTrail"]

_T = TypeVar("_T")

_POLL_S: Final = 0.01
_MAX_CONFIRMATION_OCTETS: Final = 64


class FileTrail:
    """
    Keeps the lines in `<workspace>.jsonl` of mode 0600, in a folder of mode 0700 that is made when it is missing.

    Beside it: `.lock`, whose lock lasts for a whole change; `.confirmed`, what was noted about the last saved ring; `.torn`, what
    crashes left of lines. Files are read and written in threads, off the event loop. It needs a local file system with `flock`.
    """

    __slots__ = ("_confirmed", "_file", "_lock")

    def __init__(self, path: Path) -> None:
        """
        Name the file; nothing is opened yet.
        """
        self._file = LineFile(path)
        self._lock = path.with_name(path.name + ".lock")
        self._confirmed = path.with_name(path.name + ".confirmed")

    @property
    def where(self) -> str:
        """
        The path.
        """
        return str(self._file.path)

    @contextlib.asynccontextmanager
    async def exclusive(self, *, wait_s: float) -> AsyncIterator[None]:
        """
        Hold the lock; see `Trail.exclusive`. Waiting leaves the event loop free, and a cancelled wait holds nothing.
        """
        deadline = time.monotonic() + wait_s
        with contextlib.ExitStack() as held:
            while not self._locked(held):
                if time.monotonic() >= deadline:
                    raise TrailUnavailable(where=self.where, problem=f"another process kept it locked for {wait_s:g} s")
                await asyncio.sleep(_POLL_S)
            yield

    async def end(self) -> TrailEnd:
        """
        Return how the trail ends; see `Trail.end`.
        """
        return await self._off_loop(self._end)

    async def lines(self, start: int = 1) -> AsyncGenerator[bytes, None]:
        """
        Read the lines; see `Trail.lines`. What is added meanwhile is read too. The file is not kept open.
        """
        offset = await self._off_loop(partial(self._file.offset_of, start))
        rest = b""
        while block := await self._off_loop(partial(self._file.read, offset)):
            offset += len(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield line
            # Of a line that never ends no more is kept than tells it from a record.
            rest = rest[: MAX_LINE_OCTETS + 1]

    async def append(self, seq: int, lines: Sequence[bytes]) -> None:
        """
        Add lines; see `Trail.append`. To be called while the lock is held.
        """
        await self._off_loop(partial(self._append, seq, lines))

    async def confirm(self, seq: int, confirmation: str) -> None:
        """
        Note that a ring was saved; see `Trail.confirm`. To be called while the lock is held.
        """
        await self._off_loop(partial(replace_private_file, self._confirmed, f"{seq}.{confirmation}".encode("ascii")))

    def _locked(self, held: contextlib.ExitStack) -> bool:
        try:
            make_private_folder(self._lock.parent)
            held.enter_context(exclusive_lock(self._lock, timeout_s=0))
        except StoreBusy:
            return False
        except (StoreError, OSError) as error:
            raise TrailUnavailable(where=self.where, problem=str(error)) from error
        return True

    async def _off_loop(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.to_thread(work)
        except StoreError as error:
            raise TrailUnavailable(where=self.where, problem=str(error)) from error

    def _append(self, seq: int, lines: Sequence[bytes]) -> None:
        if self._file.last_seq() >= seq:
            raise PlaceTaken(seq)
        self._file.append(lines)

    def _end(self) -> TrailEnd:
        try:
            confirmed = read_private_file(self._confirmed, limit=_MAX_CONFIRMATION_OCTETS)
        except FileNotFoundError:
            confirmed = None
        return TrailEnd(
            top=self._file.last_seq(), confirmed=confirmed_of(confirmed), torn_octets=self._file.torn_octets()
        )
