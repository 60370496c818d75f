"""
Who administers: an admin proves who they are with a secret of their own, or with an assertion signed by a key of their own.

Never with a token that this service signed: whoever holds a stolen signing key must not be able to administer keys. Whatever is
wrong, the caller hears the same words, and an unknown admin costs the same work as a wrong secret or a wrong signature.

Limited are secrets that were found to be wrong, and nothing else: what one party tries never keeps out the right credential of
another.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

from verifier import CustomerContextError, bearer_token
from verifier.compact import MalformedToken, parse_compact

from .assertions import Assertion, AssertionKind, AssertionRefused, verify_assertion
from .basic import is_secret, read_basic
from .registry import Admin, Permission, Workspace
from .state import AssertionIds
from .store_answers import CannotTell, is_first_use
from .wrong_secrets import WrongSecrets

__all__ = ["ADMIN_ASSERTION", "MAX_LIFETIME_S", "AdminAuthentication", "AdminRefused", "Refusal", "check_permission"]

ADMIN_ASSERTION: Final = AssertionKind(name="admin_assertion", types=frozenset({"caplo-admin+jwt"}), iat_required=True)
"""What an admin signs for one call (D7): `iss` and `sub` the admin, `aud` the issuer, `htm` and `htu` as in RFC 9449."""

MAX_LIFETIME_S: Final = 60
"""Longest `exp - iat` of an admin's assertion, and the furthest `exp` lies ahead, in seconds."""

Refusal = Literal["malformed", "unauthenticated", "over_limit", "forbidden", "cannot_tell"]
"""
What kind of refusal: more than one credential, none that holds, a secret that does not after too many others, one that does not
reach, or a store that does not answer.
"""

_PORTS: Final = {"https": 443, "http": 80}
_ENCODED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class AdminRefused(Exception):
    """
    Raised when a call is not let in.

    Attributes:
        refusal: its kind.
        reason: a closed word of our own for log and trail, more exact than the caller is told.
        scheme: the scheme of the credential, in lower case, when it is one that is offered.
        admin: the configured admin that the credential named or proved, or None; never a text that was sent.
        permission: what was lacking, when something was.
        retry_after_s: seconds after which another wrong secret would be told so, when it is that, or None.
    """

    def __init__(
        self,
        refusal: Refusal,
        reason: str,
        *,
        scheme: Literal["basic", "bearer"] | None = None,
        admin: str | None = None,
        permission: Permission | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """
        Build one refusal.
        """
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason
        self.scheme = scheme
        self.admin = admin
        self.permission = permission
        self.retry_after_s = retry_after_s


class AdminAuthentication:
    """
    Authenticate the admins of one workspace.
    """

    __slots__ = ("_admins", "_ids", "_issuer", "_most_keys", "_now", "_wrong_secrets")

    def __init__(
        self, workspace: Workspace, ids: AssertionIds, wrong_secrets: WrongSecrets, now: Callable[[], float]
    ) -> None:
        """
        Take the workspace, what remembers used assertions and counts wrong secrets, and the wall clock in epoch seconds.
        """
        self._issuer = workspace.issuer
        self._admins = workspace.admins
        self._most_keys = max((len(admin.keys) for admin in workspace.admins.values()), default=1)
        self._ids = ids
        self._wrong_secrets = wrong_secrets
        self._now = now

    async def authenticate(self, authorization: Sequence[str], *, method: str, url: str, source: str) -> Admin:
        """
        Find out who calls *url* with *method* from *source*, from every `Authorization` value of the request.

        *url* is built from configuration. The `jti` of an assertion is used up once everything else about it is right.

        Raises:
            AdminRefused: unless exactly one value is there and proves an admin of this workspace.
        """
        if len(authorization) > 1:
            raise AdminRefused("malformed", "two_credentials")
        value = authorization[0] if authorization else ""
        scheme = value.strip(" \t").partition(" ")[0].lower()
        if scheme == "basic":
            return await self._by_secret(value, source)
        if scheme == "bearer":
            return await self._by_assertion(value, method=method, url=url)
        raise AdminRefused("unauthenticated", "scheme" if scheme else "missing")

    async def _by_secret(self, authorization: str, source: str) -> Admin:
        try:
            name, secret = read_basic(authorization)
        except ValueError:
            raise AdminRefused("unauthenticated", "credentials", scheme="basic") from None
        admin = self._admins.get(name)
        is_right = is_secret(secret, () if admin is None else admin.secret_sha256)
        if admin is None or not is_right:
            named = None if admin is None else admin.name
            over = await self._wrong_secrets.count("admin", name, source)
            if over is None:
                raise AdminRefused("unauthenticated", "credentials", scheme="basic", admin=named)
            raise AdminRefused(
                "over_limit", f"limit:{over.limit}", scheme="basic", admin=named, retry_after_s=over.retry_after_s
            )
        return admin

    async def _by_assertion(self, authorization: str, *, method: str, url: str) -> Admin:
        now = self._now()
        try:
            unverified = parse_compact(bearer_token(authorization), kid_required=False)
        except (CustomerContextError, MalformedToken):
            raise _refused("malformed") from None
        claimed = unverified.claims.get("sub")
        admin = self._admins.get(claimed) if isinstance(claimed, str) else None
        named = None if admin is None else admin.name
        keys = {} if admin is None else admin.keys
        try:
            assertion = verify_assertion(
                unverified, ADMIN_ASSERTION, keys=keys, audience=self._issuer, now=now, checks=self._most_keys
            )
        except AssertionRefused as refusal:
            raise _refused(str(refusal), named) from None
        if admin is None or not assertion.iss == assertion.sub == admin.name:
            raise _refused("issuer", named)
        _check_call(assertion, admin.name, method=method, url=url, now=now)
        await self._use_up(assertion, admin.name)
        return admin

    async def _use_up(self, assertion: Assertion, admin: str) -> None:
        # No issuer has a fragment: this scope is nobody else's, whatever clients are called.
        scope = f"{self._issuer}#admin"
        try:
            is_first = await is_first_use(
                self._ids, scope, admin, assertion.jti, expires_at=assertion.expires_at, issued_at=assertion.issued_at
            )
        except CannotTell:
            raise AdminRefused("cannot_tell", "assertion:cannot_tell", scheme="bearer", admin=admin) from None
        if not is_first:
            raise _refused("replayed", admin)


def check_permission(admin: Admin, permission: Permission) -> None:
    """
    Let the admin pass whose configuration lists *permission*.

    Raises:
        AdminRefused: when it does not.
    """
    if permission not in admin.permissions:
        raise AdminRefused("forbidden", "permission", admin=admin.name, permission=permission)


def _refused(reason: str, admin: str | None = None) -> AdminRefused:
    return AdminRefused("unauthenticated", f"assertion:{reason}", scheme="bearer", admin=admin)


def _check_call(assertion: Assertion, admin: str, *, method: str, url: str, now: float) -> None:
    claims = assertion.claims
    iat: float = claims["iat"]
    if assertion.exp - now > MAX_LIFETIME_S or not 0 < assertion.exp - iat <= MAX_LIFETIME_S:
        raise _refused("lifetime", admin)
    if claims.get("htm") != method:
        raise _refused("htm", admin)
    if not _is_same_target(claims.get("htu"), url):
        raise _refused("htu", admin)


def _is_same_target(claimed: Any, url: str) -> bool:
    """
    Compare as RFC 9449 section 4.3 has it: without query and fragment, normalised (RFC 3986 sections 6.2.2 and 6.2.3).
    """
    if not isinstance(claimed, str) or not claimed.isascii() or not claimed.isprintable():
        return False
    try:
        return _target(urlsplit(claimed)) == _target(urlsplit(url))
    except ValueError:
        return False


def _target(url: SplitResult) -> tuple[str, str | None, int | None, str]:
    # urlsplit gives scheme and host in lower case. With a user in it, no address is that of an issuer.
    if url.username is not None or url.password is not None:
        raise ValueError("an address with a user")
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme), _ENCODED.sub(_normal, url.path) or "/"


def _normal(encoded: re.Match[str]) -> str:
    character = chr(int(encoded[1], 16))
    return character if character in _UNRESERVED else encoded[0].upper()
