"""
The two verifiers an API uses: thin shells that fetch keys and ask the replay store around one pure procedure.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from .claims import ConfirmedBy
from .context import CustomerContext
from .demand import NOT_GIVEN, NotGiven, demand_of
from .es256 import PublicKey
from .fetch import AsyncFetch, Fetch
from .fixed_key_source import FixedKeySource
from .jwk import parse_key_set
from .key_source import AsyncKeySource, KeySource
from .levels import Level
from .procedure import Candidate
from .replay import AsyncReplayStore, ReplayStore, ScopedReplayStore, SupportsScope
from .shell import Shell, denied, store_failed

__all__ = ["AsyncCustomerContextVerifier", "CustomerContextVerifier"]


class CustomerContextVerifier(Shell):
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
        resource_metadata: str | None = None,
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
            resource_metadata: the URL of the API's metadata, if it publishes any (`protected_resource`); refusals name it.
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
            resource_metadata=resource_metadata,
            now=now,
        )
        never = denied(denied_kids)
        self._keys: KeySource | FixedKeySource = (
            KeySource(self._jwks_url, fetch=fetch, now=now, monotonic=monotonic, denied_kids=never)
            if jwks is None
            else FixedKeySource(jwks, denied_kids=never)
        )
        self._store = self._scope_store(replay_store)
        if any(inspect.iscoroutinefunction(getattr(store, "use", None)) for store in (replay_store, self._store)):
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
        demand = demand_of(
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
        with self._pointing:
            candidate = self._procedure.admit(token, self._now())
            key = self._keys.key(candidate.kid)
            context = self._procedure.establish(candidate, key, demand, self._now(), sign_in_rule=self._sign_in_rule)
            self._keys.used(candidate.kid)
            if self._store is not None:
                self._use(self._store, candidate)
        return context

    def _use(self, store: ScopedReplayStore, candidate: Candidate) -> None:
        claims = candidate.claims
        try:
            answer = store.use(claims.jti, self._procedure.remember_until(claims), claims.iat)
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them accepts
            raise store_failed(error) from None
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


class AsyncCustomerContextVerifier(Shell):
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
        resource_metadata: str | None = None,
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
            resource_metadata=resource_metadata,
            now=now,
        )
        never = denied(denied_kids)
        self._keys: AsyncKeySource[PublicKey] | FixedKeySource = (
            AsyncKeySource(
                self._jwks_url, parse=parse_key_set, fetch=fetch, now=now, monotonic=monotonic, denied_kids=never
            )
            if jwks is None
            else FixedKeySource(jwks, denied_kids=never)
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
        demand = demand_of(
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
        with self._pointing:
            candidate = self._procedure.admit(token, self._now())
            keys = self._keys
            key = keys.key(candidate.kid) if isinstance(keys, FixedKeySource) else await keys.key(candidate.kid)
            context = self._procedure.establish(candidate, key, demand, self._now(), sign_in_rule=self._sign_in_rule)
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
            raise store_failed(error) from None
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; none of them accepts
            raise store_failed(error) from None
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
