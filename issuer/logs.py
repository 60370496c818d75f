"""
The only door to structlog: one line an event, and nothing in it that was not meant for a log.

Fields are an allow-list: what is not on it is dropped and counted in `dropped`, so that no secret, token, argument or customer id
gets into a log by accident. Values are bounded, kept on one line, and cleared of what looks like a token or credentials. Of an
exception only its class and the places it passed are logged: its text and its locals may hold what a caller sent. What other
libraries log through `logging` takes the same way.
"""

import logging
import math
import re
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import PurePath
from traceback import walk_tb
from typing import Final, Literal, TextIO, cast

import structlog
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor

__all__ = ["FIELDS", "LogLevel", "configure_logging", "get_logger"]

LogLevel = Literal["debug", "info", "warning", "error"]

FIELDS: Final = frozenset(
    {
        "acr",
        "action",
        "action_digest",
        "address",  # that the service listens at
        "admin",
        "agent",
        "audience",
        "call",  # of an admin, by its name in a closed list
        "client_id",
        "connection",
        "customer_hash",  # keyed; the id itself never
        "duration_ms",
        "error",
        "handle",  # of a sign-in, for URLs; it opens nothing
        "head",  # of an audit trail
        "jti",
        "keys",  # the place of the key rings, without credentials
        "kid",
        "problem",
        "reason",
        "revision",
        "route",  # the template of a route; a path as sent may hold anything
        "scope",
        "sign_ins",  # how many
        "since",
        "source",  # the address that a request came from, as the network and trusted proxies tell
        "state",  # the place of what is remembered between requests, without credentials
        "status",
        "suspension",
        "where",  # the place of a store, without credentials
        "worker",  # the number of a process among those of one service
        "workers",
        "workspace",
    }
)
"""Names of the fields that an event may have; all others are dropped."""

_OWN: Final = ("issuer", "keys", "verifier")
_MAX_SCANNED: Final = 4096
_MAX_LENGTH: Final = 256
_MAX_ITEMS: Final = 16
_MAX_INTEGER: Final = 2**63
_MAX_CAUSES: Final = 8
_MAX_FRAMES: Final = 6
# A JWS or JWE begins with the base64url of `{"`; cut short, it is still recognised by that.
_TOKEN_BEGINS: Final = "eyJ"
_TOKEN: Final = re.compile(_TOKEN_BEGINS + r"[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,4}")
_CREDENTIALS: Final = re.compile(r"(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=_~.%-]{4,}")


def configure_logging(level: LogLevel, *, json: bool, stream: TextIO | None = None, worker: int | None = None) -> None:
    """
    Send every event of *level* and above to *stream*, standard error by default: as JSON, or as text for a person.

    Where several processes log, *worker* is the number of this one, and stands in every line.

    Other libraries are heard from `info` on, whatever *level* says: authlib's debugging would print requests. There is no access
    log; the metrics count requests. Calling it again replaces what an earlier call set up.
    """
    handler = _Handler(sys.stderr if stream is None else stream)
    handler.setFormatter(
        ProcessorFormatter(processors=_rendering(worker, json=json), foreign_pre_chain=[_foreign, _admitted])
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    number = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(number, logging.INFO))
    logging.getLogger("authlib").setLevel(max(number, logging.INFO))
    logging.getLogger("uvicorn.access").disabled = True
    for name in _OWN:
        logging.getLogger(name).setLevel(number)


def get_logger(name: str) -> BoundLogger:
    """
    Return the logger of a module; it drops what must not be logged also where `configure_logging` was never called.
    """
    processors: list[Processor] = [
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_log_level,
        _admitted,
        ProcessorFormatter.wrap_for_formatter,
    ]
    logger = logging.getLogger(name)
    wrapped = structlog.wrap_logger(
        logger, processors=processors, wrapper_class=BoundLogger, cache_logger_on_first_use=True
    )
    return cast("BoundLogger", wrapped)


class _Handler(logging.StreamHandler[TextIO]):
    """
    A handler whose own failures never print the record, as the standard one does.
    """

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 -- the name is the library's
        """
        Say that a line is missing, if the stream still takes anything.
        """
        try:
            self.stream.write('{"event": "A log record could not be written", "level": "error"}\n')
            self.flush()
        except (OSError, ValueError):
            return


def _rendering(worker: int | None, *, json: bool) -> list[Processor]:
    render = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    named: Processor = _named if worker is None else partial(_named_of_worker, worker)
    return [named, ProcessorFormatter.remove_processors_meta, stamp, cast("Processor", render)]


def _named(_logger: object, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    return {**event, "logger": _safe(record.name)}


def _named_of_worker(worker: int, logger: object, method: str, event: EventDict) -> EventDict:
    return {"worker": worker, **_named(logger, method, event)}


def _foreign(_logger: object, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    return {**event, "level": record.levelname.lower()}


def _admitted(_logger: object, _method: str, event: EventDict) -> EventDict:
    known = {name: _value(value) for name, value in event.items() if name in FIELDS}
    own = {name: value for name, value in event.items() if name in {"_record", "_from_structlog"}}
    admitted: EventDict = {"level": event["level"], "event": _safe(str(event.get("event", "")).strip()), **known, **own}
    exc_info = event.get("exc_info")
    if exc_info:
        admitted["raised"] = _exceptions(exc_info)
    dropped = set(event) - set(admitted) - {"exc_info"}
    if dropped:
        admitted["dropped"] = len(dropped)
    return admitted


def _value(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < _MAX_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _safe(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        words = [_safe(each) if isinstance(each, str) else _kind(each) for each in value]
        return (sorted(words) if isinstance(value, (set, frozenset)) else words)[:_MAX_ITEMS]
    return _kind(value)


def _kind(value: object) -> str:
    return f"<{type(value).__name__}>"


def _safe(text: str) -> str:
    text = text[:_MAX_SCANNED]
    if _TOKEN_BEGINS in text:
        text = _TOKEN.sub("[token]", text)
    if text.isprintable() and " " not in text:
        # One word, as almost every value is: no credentials, which are two, and nothing to write otherwise.
        return _cut(text)
    text = _CREDENTIALS.sub(r"\1 [credentials]", text)
    return _cut("".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."


def _exceptions(exc_info: object) -> list[str]:
    # What loggers accept: an exception, what `sys.exc_info` returns, or anything true for the one being handled.
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    error = exc_info if isinstance(exc_info, BaseException) else sys.exception()
    return [f"{type(each).__name__}{_places(each)}" for each in islice(_causes(error), _MAX_CAUSES)]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    waiting = deque([error])
    seen: set[int] = set()
    while waiting:
        each = waiting.popleft()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        waiting.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))


def _places(error: BaseException) -> str:
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)][-_MAX_FRAMES:]
    places = (f"{'/'.join(PurePath(code.co_filename).parts[-2:])}:{line} {code.co_name}" for code, line in frames)
    return "".join(f" < {place}" for place in reversed(list(places)))
