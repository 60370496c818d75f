"""
What a store holds of a sign-in: sealed under its id, found by keyed hashes.

The customer and the conversation are sealed with a key made of the id and of a key of the service (HKDF, RFC 5869), so that
neither a copy of the store nor an id opens them alone; the rest is sealed with the key of the service. Both open only for the
workspace, the client and the handle that they were sealed for. The first sealing key seals, all open.
"""

import hmac
import json
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from keys import SealingKey, SealingKeys
from verifier.compact import b64url_decode, b64url_encode

from .fingerprints import framed
from .sign_ins import SignIn, SignInEvent, SignInSummary

__all__ = ["Names", "SignInSealing", "handle_of", "is_handle", "without_session"]

_ID_OCTETS: Final = 32
_SHORT_OCTETS: Final = 16
_NONCE_OCTETS: Final = 12
# 32 and 16 octets have exactly one spelling each (RFC 4648 sections 3.5 and 5).
_ID: Final = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
_HANDLE: Final = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
_SEALED: Final = b"customer-context:sign-in:v1"
_HANDLES: Final = b"customer-context:sign-in-handle:v1"
_UNDER_THE_ID: Final = ("sub", "conversation")
_OPEN_TO_THE_SERVICE: Final = (
    "connection",
    "namespace",
    "provider_issuer",
    "provider_client_id",
    "level",
    "auth_time",
    "recorded_at",
    "expires_at",
)

Names = tuple[str, ...]
"""The names of one thing under each sealing key, that of the first key in front."""


@dataclass(frozen=True, slots=True, repr=False)
class _Keys:
    """
    What is derived from one sealing key for one workspace.
    """

    summary: AESGCM
    salt: bytes
    index: bytes


class SignInSealing:
    """
    Seals and opens the sign-ins of one client of one workspace, and names what they are found by.
    """

    __slots__ = ("_bound", "_client_id", "_current", "_keys")

    def __init__(self, sealing: SealingKeys, workspace: str, client_id: str) -> None:
        """
        Derive what is needed from each sealing key.
        """
        self._keys = {key.id.encode(): _derived(key, workspace) for key in sealing}
        self._current = sealing.current.id.encode()
        self._client_id = client_id
        self._bound = framed(_SEALED, workspace.encode(), client_id.encode())

    def seal(self, event: SignInEvent, now: float) -> tuple[str, SignIn, bytes]:
        """
        Draw an id, and return it with the record and with what a store holds of it.
        """
        sign_in_id = b64url_encode(secrets.token_bytes(_ID_OCTETS))
        handle = _handle(sign_in_id)
        sign_in = SignIn(
            handle=handle,
            client_id=self._client_id,
            connection=event.connection,
            namespace=event.namespace,
            provider_issuer=event.provider_issuer,
            provider_client_id=event.provider_client_id,
            sub=event.sub,
            level=event.level,
            auth_time=event.auth_time,
            recorded_at=int(now),
            expires_at=event.expires_at,
            conversation=event.conversation,
            confirmed_after=None,
        )
        keys = self._keys[self._current]
        summary = self._sealed(keys.summary, handle, {name: getattr(sign_in, name) for name in _OPEN_TO_THE_SERVICE})
        record = self._sealed(_key(keys, sign_in_id), handle, {name: getattr(sign_in, name) for name in _UNDER_THE_ID})
        return sign_in_id, sign_in, b" ".join((self._current, summary, record))

    def open(self, sign_in_id: str, sealed: bytes, confirmed_after: int | None) -> SignIn | None:
        """
        Open a sign-in with its id; None when it does not open, or is another one's.
        """
        handle = _handle(sign_in_id)
        keys, summary, record = self._parts(sealed)
        if keys is None:
            return None
        shown = self._opened(keys.summary, handle, summary)
        hidden = self._opened(_key(keys, sign_in_id), handle, record)
        if shown is None or hidden is None:
            return None
        return SignIn(handle=handle, client_id=self._client_id, confirmed_after=confirmed_after, **shown, **hidden)

    def describe(self, handle: str, sealed: bytes, confirmed_after: int | None) -> SignInSummary | None:
        """
        Open what the service may know of a sign-in without its id; None when it does not open, or is another one's.
        """
        keys, summary, _ = self._parts(sealed)
        shown = None if keys is None else self._opened(keys.summary, handle, summary)
        if shown is None:
            return None
        return SignInSummary(handle=handle, client_id=self._client_id, confirmed_after=confirmed_after, **shown)

    def indexes(self, event: SignInEvent) -> tuple[str, str | None, str | None]:
        """
        Name what a sign-in is found by: its customer, its session at the provider and its conversation, where it has them.
        """
        session = None if event.sid is None else self.session(event.provider_issuer, event.sid)[0]
        conversation = None if event.conversation is None else self.conversation(event.conversation)[0]
        return self.customer_of_provider(event.provider_issuer, event.sub)[0], session, conversation

    def customer_of_provider(self, provider_issuer: str, sub: str) -> Names:
        """
        Name all sign-ins of one customer of a provider.
        """
        return self._names("u", provider_issuer, sub)

    def session(self, provider_issuer: str, sid: str) -> Names:
        """
        Name all sign-ins of one session at a provider.
        """
        return self._names("s", provider_issuer, sid)

    def logouts(self, provider_issuer: str, sub: str, sid: str | None) -> tuple[str, str]:
        """
        Name the logouts that end what an ID token tells: of its customer, and of its session or of all that have none.
        """
        customer = self.customer_of_provider(provider_issuer, sub)[0]
        return customer, without_session(customer) if sid is None else self.session(provider_issuer, sid)[0]

    def conversation(self, conversation: str) -> Names:
        """
        Name a conversation.
        """
        return self._names("c", conversation)

    def customer(self, connection: str, sub: str) -> Names:
        """
        Name a customer of a connection.
        """
        return self._names("w", connection, sub)

    def _names(self, kind: Literal["u", "s", "c", "w"], *parts: str) -> Names:
        message = self._bound + framed(kind.encode(), *(part.encode() for part in parts))
        hashes = (hmac.digest(keys.index, message, sha256) for keys in self._keys.values())
        return tuple(f"{kind}:{b64url_encode(each[:_SHORT_OCTETS])}" for each in hashes)

    def _parts(self, sealed: bytes) -> tuple[_Keys | None, bytes, bytes]:
        parts = sealed.split(b" ")
        return (self._keys.get(parts[0]), parts[1], parts[2]) if len(parts) == 3 else (None, b"", b"")

    def _sealed(self, key: AESGCM, handle: str, members: dict[str, Any]) -> bytes:
        nonce = secrets.token_bytes(_NONCE_OCTETS)
        content = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
        return b64url_encode(nonce + key.encrypt(nonce, content, self._bound + handle.encode())).encode()

    def _opened(self, key: AESGCM, handle: str, sealed: bytes) -> dict[str, Any] | None:
        try:
            octets = b64url_decode(sealed)
            content = key.decrypt(octets[:_NONCE_OCTETS], octets[_NONCE_OCTETS:], self._bound + handle.encode())
        except (InvalidTag, ValueError):
            return None
        members: dict[str, Any] = json.loads(content)
        return members


def handle_of(sign_in_id: str) -> str | None:
    """
    Return the handle that belongs to an id, or None when it has not the form of one.

    The handle is a hash of the id: what is stored under it is found without comparing secrets, and whoever asks with a guess
    learns nothing about an id from how long the answer takes, since he cannot choose what his guess hashes to.
    """
    return _handle(sign_in_id) if _ID.fullmatch(sign_in_id) else None


def without_session(customer: str) -> str:
    """
    Return the name of what a customer of that name has without a session.
    """
    return f"{customer}:-"


def is_handle(text: str) -> bool:
    """
    Tell whether *text* has the form of a handle.
    """
    return _HANDLE.fullmatch(text) is not None


def _handle(sign_in_id: str) -> str:
    # An id has 256 bits of randomness, so a plain hash says nothing about it, and no key of the service is needed.
    return b64url_encode(sha256(framed(_HANDLES, sign_in_id.encode())).digest()[:_SHORT_OCTETS])


def _derived(key: SealingKey, workspace: str) -> _Keys:
    return _Keys(
        summary=AESGCM(key.derive("sign-in-summary", workspace)),
        salt=key.derive("sign-ins", workspace),
        index=key.derive("sign-in-index", workspace),
    )


def _key(keys: _Keys, sign_in_id: str) -> AESGCM:
    derive = HKDF(algorithm=SHA256(), length=32, salt=keys.salt, info=_SEALED)
    return AESGCM(derive.derive(sign_in_id.encode()))
