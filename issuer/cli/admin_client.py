"""
The verbs of administration against a running service, over its admin routes; `administer` has them on the stores themselves.

An admin shows a secret, or signs an assertion for each call with a key of their own.
"""

import asyncio
import base64
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlsplit

import httpx2

from keys import SigningKey
from verifier.strict_json import StrictJSONError, loads_object
from verifier.url import is_loopback

from ..orchestrator import new_idempotency_key, sign_jwt
from ..suspensions import Target
from .options import fail

__all__ = ["AdminClient", "AdminCredential", "Send"]

_TIMEOUT_S: Final = 30
_LIFETIME_S: Final = 30

Send = Callable[..., httpx2.Response]
"""Sends a request; `httpx2.request` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminCredential:
    """
    Who an admin is, and the secret or the key that proves it.
    """

    name: str
    secret: str | None = field(default=None, repr=False)
    key: SigningKey | None = field(default=None, repr=False)

    def authorization(self, *, issuer: str, method: str, url: str, now: float) -> str:
        """
        Return the value of `Authorization` for one call.
        """
        if self.key is None:
            joined = f"{quote_plus(self.name)}:{quote_plus(self.secret or '')}"
            return f"Basic {base64.b64encode(joined.encode()).decode()}"
        iat = int(now)
        claims = {
            "iss": self.name,
            "sub": self.name,
            "aud": issuer,
            "iat": iat,
            "exp": iat + _LIFETIME_S,
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": url,
        }
        return f"Bearer {asyncio.run(sign_jwt('caplo-admin+jwt', claims, self.key))}"


class AdminClient:
    """
    Administer the workspace of an issuer URL. A call that is refused ends the command with what the service said.
    """

    def __init__(
        self,
        issuer: str,
        credential: AdminCredential,
        *,
        send: Send = httpx2.request,
        now: Callable[[], float] = time.time,
    ) -> None:
        """
        Take the issuer URL and who calls; nothing is sent yet.
        """
        parts = urlsplit(issuer)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            fail("--service is the https URL of an issuer, such as https://id.example.com/w/acme")
        self._issuer = issuer.removesuffix("/")
        self._credential = credential
        self._send = send
        self._now = now

    def keys(self) -> Mapping[str, Any]:
        """
        List the keys.
        """
        return self._call("GET", "keys")

    def rotate(self, *, expected_active: str | None, force: bool, reason: str | None) -> Mapping[str, Any]:
        """
        Rotate; without *expected_active* the key that is active now is expected.
        """
        expected = expected_active or self.keys()["active"]
        body = {"expected_active": expected, "force": force, "reason": reason}
        return self._call("POST", "keys/rotate", body)

    def revoke(self, kid: str, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke one key.
        """
        return self._call("POST", f"keys/{quote(kid, safe='')}/revoke", {"reason": reason})

    def revoke_all(self, *, reason: str) -> Mapping[str, Any]:
        """
        Revoke every published key.
        """
        return self._call("POST", "keys/revoke-all", {"reason": reason})

    def suspensions(self) -> Mapping[str, Any]:
        """
        List the suspensions.
        """
        return self._call("GET", "suspensions")

    def suspend(self, target: Target, *, reason: str, until: int | None) -> Mapping[str, Any]:
        """
        Suspend a target.
        """
        named = {"value": target.value}
        if target.namespace is not None:
            named = {"namespace": target.namespace, "sub": target.value}
        return self._call("POST", "suspensions", {"kind": target.kind, **named, "reason": reason, "until": until})

    def lift(self, suspension_id: str) -> Mapping[str, Any]:
        """
        End a suspension.
        """
        return self._call("DELETE", f"suspensions/{quote(suspension_id, safe='')}")

    def audit(self, *, before: int | None, after: int | None, limit: int) -> Mapping[str, Any]:
        """
        Read records of the trail.
        """
        numbers = {"before": before, "after": after, "limit": limit}
        query = "&".join(f"{name}={number}" for name, number in numbers.items() if number is not None)
        return self._call("GET", f"audit?{query}")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        url = f"{self._issuer}/admin/{path}"
        target = url.partition("?")[0]
        headers = {
            "Authorization": self._credential.authorization(
                issuer=self._issuer, method=method, url=target, now=self._now()
            )
        }
        if method != "GET":
            headers["Idempotency-Key"] = new_idempotency_key()
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            response = self._send(
                method,
                url,
                headers=headers,
                content=content,
                timeout=_TIMEOUT_S,
                follow_redirects=False,
                trust_env=False,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            done = "" if method == "GET" else "; whether it was done is not known, so list before you try again"
            fail(f"{target} cannot be reached: {type(error).__name__}; is the service running?{done}")
        return _members(response, target)


def _members(response: httpx2.Response, url: str) -> Mapping[str, Any]:
    try:
        members = loads_object(response.content)
    except StrictJSONError:
        fail(f"{url} answered {response.status_code} without JSON; is it the issuer?")
    if not response.is_success:
        known = {"type", "title", "status", "detail"}
        more = ", ".join(f"{name} {value}" for name, value in members.items() if name not in known)
        said = f"{response.status_code} {members.get('title')}: {members.get('detail')}"
        fail(f"{url} answered {said}{f' ({more})' if more else ''}")
    return members
