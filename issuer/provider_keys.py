"""
The keys of identity providers: found by OpenID Connect Discovery 1.0 section 4, and held in the cache that verifiers use (D19).

With every fetch of keys the discovery document is read anew: there are few, and a provider that moves its keys is followed. Both
documents come from places that the operator named, or that the provider did over TLS; a token names none.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, TypeGuard

from verifier.errors import CustomerContextError
from verifier.fetch import AsyncFetch, FetchError, FetchResponse, fetch_document
from verifier.key_source import AsyncKeySource
from verifier.strict_json import StrictJSONError, loads_object
from verifier.url import check_url

from .id_token_signature import IDTokenAlgorithm, ProviderKey
from .provider import Provider
from .provider_key_set import key_name, parse_provider_keys
from .provider_token import IDTokenRefused

__all__ = ["ProviderKeys", "ProviderUnavailable", "discovery_url"]

_PATH: Final = "/.well-known/openid-configuration"
_QUERY: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*")
_MAX_URL: Final = 2048

# So that a provider that says nothing keeps few of the requests that may run at once.
_MAX_WAITING: Final = 64

_Kind = tuple[str, frozenset[IDTokenAlgorithm]]


class ProviderUnavailable(Exception):
    """
    Raised when it cannot be told whether a token is good, because the keys of its provider are not to be had.

    Attributes:
        reason: a closed word for the log; the log of `verifier.keys` says what was wrong.
    """

    reason: Final = "keys_unavailable"

    def __init__(self) -> None:
        """
        Build the one there is.
        """
        super().__init__(self.reason)


def discovery_url(issuer: str) -> str:
    """
    Return where the discovery document of a provider lies: below its identifier, less one trailing slash.
    """
    return issuer.removesuffix("/") + _PATH


class ProviderKeys:
    """
    The keys of every identity provider that is asked about, whichever workspace or connection names it.

    It outlives a change of the configuration, and belongs to no event loop.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        fetch: AsyncFetch | None = None,
    ) -> None:
        """
        Fetch nothing yet. *now* is the wall clock and *monotonic* the clock of the caches; *fetch* None is the network.
        """
        self._now = now
        self._monotonic = monotonic
        self._fetch = fetch_document if fetch is None else fetch
        self._sources: dict[_Kind, AsyncKeySource[ProviderKey]] = {}

    async def key(self, provider: Provider, algorithm: IDTokenAlgorithm, kid: str | None) -> ProviderKey:
        """
        Return the key of *provider* for a token with this `alg` and `kid`, from the cache whenever it is there and may be used.

        Raises:
            IDTokenRefused: (`key`) when the provider publishes none, or several that might be meant.
            ProviderUnavailable: when that cannot be told.
        """
        name = key_name(algorithm, kid)
        if provider.keys is not None:
            if name not in provider.keys:
                raise IDTokenRefused("key")
            return provider.keys[name]
        try:
            return await self._source(provider).key(name)
        except CustomerContextError as error:
            if error.reason == "key":
                raise IDTokenRefused("key") from None
            raise ProviderUnavailable from None

    def used(self, provider: Provider, algorithm: IDTokenAlgorithm, kid: str | None) -> None:
        """
        Take note that a token proved valid; another key than the last one makes the keys be fetched aside.
        """
        if provider.keys is None:
            self._source(provider).used(key_name(algorithm, kid))

    async def keep(self, providers: Iterable[Provider]) -> None:
        """
        Forget the keys of all others: those of a former configuration.
        """
        kept = {(each.issuer, each.algorithms) for each in providers if each.keys is None}
        for kind in self._sources.keys() - kept:
            await self._sources.pop(kind).aclose()

    async def aclose(self) -> None:
        """
        Forget all keys, and end what is being fetched.
        """
        await self.keep(())

    def _source(self, provider: Provider) -> AsyncKeySource[ProviderKey]:
        kind = (provider.issuer, provider.algorithms)
        source = self._sources.get(kind)
        if source is None:
            source = self._sources[kind] = AsyncKeySource(
                discovery_url(provider.issuer),
                parse=partial(parse_provider_keys, algorithms=provider.algorithms),
                fetch=partial(_discovered, provider.issuer, self._fetch),
                now=self._now,
                monotonic=self._monotonic,
                max_waiting=_MAX_WAITING,
            )
        return source


async def _discovered(issuer: str, fetch: AsyncFetch, url: str, headers: Mapping[str, str], /) -> FetchResponse:
    """
    Get the keys that the discovery document at *url* names.

    They are always asked for as a whole: an ETag means nothing where they have moved to another place.

    Raises:
        FetchError: when the document is none of this provider's, and as *fetch* does.
    """
    passed_on = {name: value for name, value in headers.items() if name != "If-None-Match"}
    answer = await fetch(url, {**passed_on, "Accept": "application/json"})
    return await fetch(_jwks_uri(answer, issuer), passed_on)


def _jwks_uri(answer: FetchResponse, issuer: str) -> str:
    if answer.status != HTTPStatus.OK:
        raise FetchError(f"discovery: status {answer.status:d}")
    try:
        document = loads_object(answer.body)
    except StrictJSONError:
        raise FetchError("discovery: not one strict JSON object") from None
    if document.get("issuer") != issuer:
        raise FetchError("discovery: the document of another issuer")
    jwks_uri = document.get("jwks_uri")
    if not _is_jwks_uri(jwks_uri, issuer):
        raise FetchError("discovery: no jwks_uri that keys are fetched from")
    return jwks_uri


def _is_jwks_uri(value: object, issuer: str) -> TypeGuard[str]:
    """
    Tell whether keys are fetched from there; unlike an issuer it may have a query, and a slash at the end.
    """
    if not isinstance(value, str) or len(value) > _MAX_URL:
        return False
    base, _, query = value.partition("?")
    try:
        check_url(base.removesuffix("/"))
    except ValueError:
        return False
    # A provider out on the network has no business with what listens on this machine.
    return _QUERY.fullmatch(query) is not None and (value.startswith("https:") or issuer.startswith("http:"))
