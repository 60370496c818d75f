"""
What the two verifiers have in common: their settings, and what is made of a replay store and its answers (D4).
"""

import inspect
import logging
from collections.abc import Callable, Collection
from typing import Any, Final

from .demand import check_seconds, scope_words
from .errors import CustomerContextError, PointingTo
from .fetch import jwks_url
from .procedure import Candidate, Procedure
from .replay import AsyncReplayStore, ReplayStore, ScopedReplayStore, SupportsScope
from .sign_in_rule import SignInRule

__all__ = ["Shell", "denied", "store_failed"]

_LOG: Final = logging.getLogger("verifier")
_MAX_TOLERANCE_S: Final = 60


class Shell:
    """
    What both verifiers are made of; how they wait for keys and stores is left to each of them.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        required_scope: str | None,
        clock_tolerance_seconds: int,
        resource_metadata: str | None,
        now: Callable[[], float],
    ) -> None:
        """
        Check the settings; see `CustomerContextVerifier`.
        """
        if not isinstance(audience, str) or not audience or audience != audience.strip():
            raise ValueError("audience is this API's own identifier, a non-empty str")
        if clock_tolerance_seconds is None:
            raise TypeError("clock_tolerance_seconds is an int, in seconds")
        check_seconds("clock_tolerance_seconds", clock_tolerance_seconds, _MAX_TOLERANCE_S)
        self._jwks_url = jwks_url(issuer)
        self._now = now
        self._pointing = PointingTo(resource_metadata)
        self._sign_in_rule = SignInRule(now=now, clock_tolerance_s=clock_tolerance_seconds, pointing=self._pointing)
        self._procedure = Procedure(
            issuer=issuer,
            audience=audience,
            required_scope=frozenset() if required_scope is None else scope_words(required_scope),
            clock_tolerance_s=clock_tolerance_seconds,
        )

    def _scope_store(self, store: object) -> ScopedReplayStore | None:
        if store is None:
            return None
        if isinstance(store, SupportsScope):
            view = store.scoped(self._procedure.issuer, self._procedure.audience)
            _check_usable(view)
            return view
        _check_usable(store)
        return _Unscoped(store)  # type: ignore[arg-type]

    def _accept(self, answer: object, candidate: Candidate) -> None:
        if answer is True:
            self._procedure.recheck(candidate.claims, self._now())
            return
        if answer is False:
            raise CustomerContextError("replayed")
        if inspect.iscoroutine(answer):
            answer.close()
        raise CustomerContextError("replay_unavailable", hint="the replay store gave no answer of True or False")


class _Unscoped:
    """
    A store of somebody else's that knows only `use(jti, expires_at)`.
    """

    __slots__ = ("_store",)

    def __init__(self, store: ReplayStore | AsyncReplayStore) -> None:
        self._store = store

    def use(self, jti: str, expires_at: int, _issued_at: float) -> Any:
        """
        Leave the question to the store.
        """
        return self._store.use(jti, expires_at)


def _check_usable(store: object) -> None:
    # A scoped view that is None must not come to mean that replays are accepted.
    if not callable(getattr(store, "use", None)):
        raise TypeError("replay_store needs use(jti, expires_at); None says aloud that replays are accepted")


def denied(kids: Collection[str]) -> frozenset[str]:
    """
    Return the kids that are never trusted.

    Raises:
        TypeError: for one text, which is a collection of its characters and would deny nothing of what was meant.
    """
    if isinstance(kids, str | bytes):
        raise TypeError("denied_kids is a collection of kids, not one kid")
    return frozenset(kids)


def store_failed(error: BaseException) -> CustomerContextError:
    """
    Return the refusal for a replay store that failed, and tell the operator; only the class of the error is shown.
    """
    _LOG.warning("the replay store failed: %s", type(error).__name__)
    return CustomerContextError("replay_unavailable", hint=f"the replay store failed: {type(error).__name__}")
