"""
Verification in one call, for programs that have no place to keep a verifier.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from types import MethodType
from typing import Any, Final

from .context import CustomerContext
from .fetch import Fetch
from .process_lock import ProcessLock
from .replay import ReplayStore, SupportsScope
from .verifiers import CustomerContextVerifier

__all__ = ["verify_customer_context"]

_MAX_VERIFIERS: Final = 64
_LOCK: Final = ProcessLock()
_VERIFIERS: Final[OrderedDict[tuple[object, ...], tuple[CustomerContextVerifier, object]]] = OrderedDict()


def verify_customer_context(
    token: str,
    *,
    issuer: str,
    audience: str,
    replay_store: ReplayStore | SupportsScope | None,
    required_scope: str | None = None,
    clock_tolerance_seconds: int = 0,
    resource_metadata: str | None = None,
    jwks: Mapping[str, Any] | bytes | str | None = None,
    fetch: Fetch | None = None,
    denied_kids: Collection[str] = (),
    now: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    **demands: Any,
) -> CustomerContext:
    """
    Verify one token; the arguments are those of `CustomerContextVerifier` and of its `verify`.

    The verifiers behind it are kept, so that keys are cached: at most 64, the least recently used one goes first. Two calls share
    one when they name the same values and the very same *replay_store*, *jwks*, *fetch* and clocks.

    Raises:
        CustomerContextError: the request is refused.
        ValueError, TypeError: a value makes no sense.
    """
    parts = (replay_store, jwks, fetch, now, monotonic)
    key = (
        issuer,
        audience,
        required_scope,
        clock_tolerance_seconds,
        type(clock_tolerance_seconds),
        resource_metadata,
        frozenset(denied_kids),
        *map(_identity, parts),
    )
    with _LOCK():
        verifier = _VERIFIERS[key][0] if key in _VERIFIERS else None
        if verifier is not None:
            _VERIFIERS.move_to_end(key)
    if verifier is None:
        verifier = CustomerContextVerifier(
            issuer=issuer,
            audience=audience,
            replay_store=replay_store,
            required_scope=required_scope,
            clock_tolerance_seconds=clock_tolerance_seconds,
            resource_metadata=resource_metadata,
            jwks=jwks,
            fetch=fetch,
            denied_kids=denied_kids,
            now=now,
            monotonic=monotonic,
        )
        _keep(key, verifier, parts)
    return verifier.verify(token, **demands)


def _identity(part: object) -> object:
    # A bound method is another object each time it is named.
    return (id(part.__self__), part.__func__) if isinstance(part, MethodType) else id(part)


def _keep(key: tuple[object, ...], verifier: CustomerContextVerifier, parts: tuple[object, ...]) -> None:
    # The parts are kept alive with the verifier, so that their ids cannot come to mean something else. One that is dropped is
    # not closed: another thread may be in the middle of using it, and it holds nothing open.
    with _LOCK():
        _VERIFIERS[key] = (verifier, parts)
        if len(_VERIFIERS) > _MAX_VERIFIERS:
            _VERIFIERS.popitem(last=False)
