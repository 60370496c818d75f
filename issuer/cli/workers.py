"""
The processes of one service: started together, replaced when they die, told to read again, and ended together.

They are forked from a process that has opened everything before and does no work itself, so that one which takes the place of
another needs nothing that could be missing or changed by then.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from ..logs import get_logger
from .forking import fork

__all__ = ["STOP_S", "Work", "WorkerFailed", "Workers"]

STOP_S: Final = 8.0
"""Seconds that a worker has to end when it is told to; after them it is killed."""

_LOG: Final = get_logger("issuer")
_END: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_HEARD: Final = _END | {signal.SIGHUP, signal.SIGCHLD}
# One that dies sooner than this would likely die again at once.
_SHORT_S: Final = 10.0
_PAUSE_S: Final = 1.0
_GLANCE_S: Final = 0.05

Work = Callable[[int, Callable[[], object]], None]
"""What a worker does until it is told to end: its number, and what it calls when it has started."""


class WorkerFailed(Exception):
    """
    Raised when a worker does not start.
    """


@dataclass(frozen=True, slots=True)
class _Worker:
    number: int
    since: float


class Workers:
    """
    The workers of this process, which must have one thread and no event loop, and do nothing but this.
    """

    def __init__(self, count: int, work: Work, *, reread: Callable[[], bool]) -> None:
        """
        Take what they do, and what reads the configuration again and tells whether they shall do so too.
        """
        self._count = count
        self._work = work
        self._reread = reread
        self._alive: dict[int, _Worker] = {}
        self.own = 0
        """The number of the worker that this process is, 0 where it is none."""

    def run(self, started: Callable[[], None]) -> None:
        """
        Keep them running until SIGTERM or SIGINT; *started* is called when all of them have started.

        Raises:
            WorkerFailed: when one does not start; then all have ended.
        """
        for each in _HEARD:
            # They are waited for below. A signal that is ignored, as some were when this process was started, never comes.
            signal.signal(each, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        try:
            if self._start_all():
                started()
                self._watch()
        finally:
            self._stop_all()

    def _start_all(self) -> bool:
        """
        Start all, and tell whether they shall go on.
        """
        receiving, sending = os.pipe()
        try:
            for number in range(1, self._count + 1):
                self._start(number, lambda: os.write(sending, b"."))
            missing = self._count
            while missing:
                pending = signal.sigpending()
                if pending & _END:
                    return False
                if signal.SIGCHLD in pending:
                    raise WorkerFailed("a worker did not start; what it logged before says why")
                if select.select([receiving], [], [], _GLANCE_S)[0]:
                    missing -= len(os.read(receiving, missing))
        except OSError as error:
            raise WorkerFailed(f"a worker could not be started: {error.strerror}") from None
        finally:
            os.close(receiving)
            os.close(sending)
        return True

    def _watch(self) -> None:
        """
        See to it that all go on, until it is time to end.
        """
        while (heard := signal.sigwait(_HEARD)) not in _END:
            if heard == signal.SIGCHLD:
                self._replace_dead()
            elif self._reread():
                self._tell(signal.SIGHUP)

    def _replace_dead(self) -> None:
        dead = self._reap()
        pause_s = _PAUSE_S if any(time.monotonic() - each.since < _SHORT_S for each in dead) else 0.0
        while dead and not signal.sigpending() & _END:
            time.sleep(pause_s)
            try:
                self._start(dead[-1].number, lambda: None)
            except OSError as error:
                _LOG.error("worker_failed", worker=dead[-1].number, problem=error.strerror)
                pause_s = _PAUSE_S
            else:
                dead.pop()
                pause_s = 0.0

    def _stop_all(self) -> None:
        self._tell(signal.SIGTERM)
        limit = time.monotonic() + STOP_S
        while self._alive and time.monotonic() < limit:
            self._reap(is_end=True)
            time.sleep(_GLANCE_S)
        for pid, worker in self._alive.items():
            _LOG.error("worker_killed", worker=worker.number)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _tell(self, number: signal.Signals) -> None:
        for pid in self._alive:
            os.kill(pid, number)

    def _reap(self, *, is_end: bool = False) -> list[_Worker]:
        """
        Return those that have ended, which is worth a word unless they were told to.
        """
        dead = []
        for pid in tuple(self._alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                dead.append(self._alive.pop(pid))
                if not is_end:
                    _LOG.error("worker_died", worker=dead[-1].number, status=os.waitstatus_to_exitcode(status))
        return dead

    def _start(self, number: int, started: Callable[[], object]) -> None:
        pid = fork()
        if pid == 0:
            self._be(number, started)
        self._alive[pid] = _Worker(number, time.monotonic())

    def _be(self, number: int, started: Callable[[], object]) -> NoReturn:
        """
        Be a worker, and nothing else: what this process was forked from must neither go on nor be ended here.

        SIGHUP stays blocked until the work can hear it.
        """
        status = 1
        try:
            for each in _END:
                signal.signal(each, signal.default_int_handler)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD - {signal.SIGHUP})
            self.own, self._alive = number, {}
            self._work(number, started)
            status = 0
        except KeyboardInterrupt:
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except BaseException as error:  # noqa: BLE001 - whatever it is, it ends here
            _LOG.error("worker_failed", error=type(error).__name__, exc_info=error)
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
