"""
The two verifiers an API uses: thin shells that fetch keys and ask the replay store around one pure procedure.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Self

from .claims import ConfirmedBy
from .context import CustomerContext
from .demand import NO_DEMAND, NOT_GIVEN, Demand, NotGiven, check_seconds, scope_words
from .errors import CustomerContextError
from .fetch import AsyncFetch, Fetch, jwks_url
from .fixed_key_source import FixedKeySource
from .key_source import AsyncKeySource, KeySource
from .levels import Level
from .procedure import Candidate, Procedure
from .replay import AsyncReplayStore, ReplayStore, ScopedReplayStore, SupportsScope

__all__ = ["AsyncCustomerContextVerifier", "CustomerContextVerifier"]

_LOG: Final = logging.getLogger("verifier")
_MAX_TOLERANCE_S: Final = 60


class _Verifier:
    """
    What both verifiers are made of.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        required_scope: str | None,
        clock_tolerance_seconds: int,
        now: Callable[[], float],
    ) -> None:
        if not isinstance(audience, str) or not audience or audience != audience.strip():
            raise ValueError("audience is this API's own identifier, a non-empty str")
        if clock_tolerance_seconds is None:
            raise TypeError("clock_tolerance_seconds is an int, in seconds")
        check_seconds("clock_tolerance_seconds", clock_tolerance_seconds, _MAX_TOLERANCE_S)
        self._jwks_url = jwks_url(issuer)
        self._now = now
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


def _kids(kids: Collection[str]) -> frozenset[str]:
    # One str is a collection of its characters; taken for that it would deny nothing of what was meant.
    if isinstance(kids, str | bytes):
        raise TypeError("denied_kids is a collection of kids, not one kid")
    return frozenset(kids)


def _unavailable(error: BaseException) -> CustomerContextError:
    _LOG.warning("the replay store failed: %s", type(error).__name__)
    return CustomerContextError("replay_unavailable", hint=f"the replay store failed: {type(error).__name__}")


class CustomerContextVerifier(_Verifier):
    """
    Verify customer context tokens of one issuer for one audience, blocking.

    Safe to share between threads, and usable in the children of a fork. Keep one for the life of the process: it caches the
    issuer's keys.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        replay_store: ReplayStore | SupportsScope | None,
        required_scope: str | None = None,
        clock_tolerance_seconds: int = 0,
        jwks: Mapping[str, Any] | bytes | str | None = None,
        fetch: Fetch | None = None,
        denied_kids: Collection[str] = (),
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Build a verifier; nothing is fetched yet.

        Args:
            issuer: the workspace's issuer URL, exactly; its keys are fetched from `{issuer}/.well-known/jwks.json`.
            audience: this API's identifier, exactly as the issuer lists it.
            replay_store: where used tokens are remembered; None says aloud that replays are accepted.
            required_scope: scope words that every token needs.
            clock_tolerance_seconds: how far the two clocks may disagree, 0 to 60; 5 is good advice.
            jwks: a fixed key set; then nothing is ever fetched.
            fetch: the caller's own HTTP, see `fetch.Fetch`.
            denied_kids: keys that are never trusted, whatever is published.
            now: the wall clock, in epoch seconds, for tokens.
            monotonic: the clock of the key cache, in seconds.

        Raises:
            ValueError, TypeError: for a value that makes no sense.
        """
        super().__init__(
            issuer=issuer,
            audience=audience,
            required_scope=required_scope,
            clock_tolerance_seconds=clock_tolerance_seconds,
            now=now,
        )
        denied = _kids(denied_kids)
        self._keys: KeySource | FixedKeySource = (
            KeySource(self._jwks_url, fetch=fetch, now=now, monotonic=monotonic, denied_kids=denied)
            if jwks is None
            else FixedKeySource(jwks, denied_kids=denied)
        )
        self._store = self._scope_store(replay_store)
        if inspect.iscoroutinefunction(getattr(replay_store, "use", None)):
            raise TypeError("an asynchronous replay store needs AsyncCustomerContextVerifier")
        if self._store is not None and inspect.iscoroutinefunction(self._store.use):
            raise TypeError("an asynchronous replay store needs AsyncCustomerContextVerifier")

    def verify(
        self,
        token: str,
        *,
        action: str | None = None,
        arguments: Mapping[str, Any] | bytes | str | NotGiven | None = NOT_GIVEN,
        idempotency_key: str | None = None,
        scope: str | None = None,
        level: Level | None = None,
        max_auth_age_seconds: int | None = None,
        confirmation: ConfirmedBy | None = None,
        max_confirmation_age_seconds: int | None = None,
        ignore_action: bool = False,
    ) -> CustomerContext:
        """
        Verify a token for one call; accepted, it is used up.

        Args:
            token: the bare token, as `bearer_token` returns it.
            action: a write: the action the API is about to do. Needs *arguments*.
            arguments: the action's argument object, as a mapping or as the raw JSON of the request; a request's `null`, which
                frameworks hand over as None, is refused like any other value that is no object.
            idempotency_key: the `Idempotency-Key` header where the API gets one; it must equal the signed key.
            scope: scope words the token needs.
            level: the least verification level.
            max_auth_age_seconds: how old the sign-in may be, 0 to 86400 seconds; 0 asks for one made for this call.
            confirmation: the least that stands behind the action: none, client or customer.
            max_confirmation_age_seconds: how old the confirmation may be, 0 to 86400 seconds.
            ignore_action: accept a token bound to an action although this call names none.

        Raises:
            CustomerContextError: the request is refused; the reason, the status and the header to answer with are on it.
            ValueError, TypeError: the demand makes no sense; found before the token is looked at.
        """
        demand = _demand(
            action=action,
            arguments=arguments,
            idempotency_key=idempotency_key,
            scope=scope,
            level=level,
            max_auth_age_seconds=max_auth_age_seconds,
            confirmation=confirmation,
            max_confirmation_age_seconds=max_confirmation_age_seconds,
            ignore_action=ignore_action,
        )
        candidate = self._procedure.admit(token, self._now())
        key = self._keys.key(candidate.kid)
        context = self._procedure.establish(candidate, key, demand, self._now())
        self._keys.used(candidate.kid)
        if self._store is not None:
            self._use(self._store, candidate)
        return context

    def _use(self, store: ScopedReplayStore, candidate: Candidate) -> None:
        claims = candidate.claims
        try:
            answer = store.use(claims.jti, self._procedure.remember_until(claims), claims.iat)
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them accepts
            raise _unavailable(error) from None
        self._accept(answer, candidate)

    def refresh(self) -> None:
        """
        Fetch the issuer's keys now, so that the first call does not wait for them.

        Raises:
            CustomerContextError: (`keys_unavailable`) when there is no usable answer and nothing to fall back on.
        """
        self._keys.refresh()

    def state(self) -> Mapping[str, Any]:
        """
        Show the key cache as JSON-able values.
        """
        return self._keys.state()

    def close(self) -> None:
        """
        End the verifier's background work.
        """
        self._keys.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncCustomerContextVerifier(_Verifier):
    """
    Verify customer context tokens of one issuer for one audience in an asyncio program.

    The arguments are those of `CustomerContextVerifier`; the replay store may answer at once or be awaited.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        replay_store: ReplayStore | AsyncReplayStore | SupportsScope | None,
        required_scope: str | None = None,
        clock_tolerance_seconds: int = 0,
        jwks: Mapping[str, Any] | bytes | str | None = None,
        fetch: AsyncFetch | None = None,
        denied_kids: Collection[str] = (),
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Build a verifier; nothing is fetched yet. See `CustomerContextVerifier` for the arguments.
        """
        super().__init__(
            issuer=issuer,
            audience=audience,
            required_scope=required_scope,
            clock_tolerance_seconds=clock_tolerance_seconds,
            now=now,
        )
        denied = _kids(denied_kids)
        self._keys: AsyncKeySource | FixedKeySource = (
            AsyncKeySource(self._jwks_url, fetch=fetch, now=now, monotonic=monotonic, denied_kids=denied)
            if jwks is None
            else FixedKeySource(jwks, denied_kids=denied)
        )
        self._store = self._scope_store(replay_store)

    async def verify(
        self,
        token: str,
        *,
        action: str | None = None,
        arguments: Mapping[str, Any] | bytes | str | NotGiven | None = NOT_GIVEN,
        idempotency_key: str | None = None,
        scope: str | None = None,
        level: Level | None = None,
        max_auth_age_seconds: int | None = None,
        confirmation: ConfirmedBy | None = None,
        max_confirmation_age_seconds: int | None = None,
        ignore_action: bool = False,
    ) -> CustomerContext:
        """
        Verify a token for one call; accepted, it is used up. See `CustomerContextVerifier.verify`.
        """
        demand = _demand(
            action=action,
            arguments=arguments,
            idempotency_key=idempotency_key,
            scope=scope,
            level=level,
            max_auth_age_seconds=max_auth_age_seconds,
            confirmation=confirmation,
            max_confirmation_age_seconds=max_confirmation_age_seconds,
            ignore_action=ignore_action,
        )
        candidate = self._procedure.admit(token, self._now())
        keys = self._keys
        key = keys.key(candidate.kid) if isinstance(keys, FixedKeySource) else await keys.key(candidate.kid)
        context = self._procedure.establish(candidate, key, demand, self._now())
        keys.used(candidate.kid)
        if self._store is not None:
            await self._use(self._store, candidate)
        return context

    async def _use(self, store: ScopedReplayStore, candidate: Candidate) -> None:
        claims = candidate.claims
        try:
            answer = store.use(claims.jti, self._procedure.remember_until(claims), claims.iat)
            if inspect.isawaitable(answer):
                answer = await answer
        except asyncio.CancelledError as error:
            # Whoever cancels this call gets it back; a cancellation of the store's own making is a failure of that.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise _unavailable(error) from None
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them accepts
            raise _unavailable(error) from None
        self._accept(answer, candidate)

    async def refresh(self) -> None:
        """
        Fetch the issuer's keys now; see `CustomerContextVerifier.refresh`.
        """
        if isinstance(self._keys, AsyncKeySource):
            await self._keys.refresh()

    def state(self) -> Mapping[str, Any]:
        """
        Show the key cache as JSON-able values.
        """
        return self._keys.state()

    async def aclose(self) -> None:
        """
        End the verifier's background work.
        """
        if isinstance(self._keys, AsyncKeySource):
            await self._keys.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_IDLE: Final[Mapping[str, Any]] = dict.fromkeys(
    (
        "action",
        "idempotency_key",
        "scope",
        "level",
        "max_auth_age_seconds",
        "confirmation",
        "max_confirmation_age_seconds",
    )
) | {"arguments": NOT_GIVEN, "ignore_action": False}


def _demand(**demands: Any) -> Demand:
    # Most reads demand nothing; building the same empty demand for each would cost more than some of the checks.
    return NO_DEMAND if demands == _IDLE else Demand(**demands)
