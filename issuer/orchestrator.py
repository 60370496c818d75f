"""
The other side of the token endpoint: what an orchestrator signs and sends to get a token (RFC 7523, RFC 8693, D21).

The `token` command, the demonstration and the tests ask for tokens with it; an orchestrator in another language does the same.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keys import LocalSigner, SigningKey, import_private_jwk
from verifier.compact import b64url_encode
from verifier.levels import Level
from verifier.strict_json import loads_object

from .action_request import DETAILS_TYPE
from .clients import ASSERTION_TYPE
from .exchange import GRANT_TYPE
from .subject import JWT_TOKEN_TYPE
from .subjects import SIGN_IN_TYPE

__all__ = ["Ask", "Orchestrator", "RequestedWrite", "load_orchestrator", "new_idempotency_key", "sign_jwt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedWrite:
    """
    The action a write token is asked for; `confirmed_at` is when the customer confirmed it (epoch seconds), None for `none`.
    """

    action: str
    arguments: Mapping[str, Any]
    idempotency_key: str
    confirmed_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """
    What one token is asked for: the customer as they signed in, the API, and a scope, an action or both.

    With `sign_in_id` the customer is the one of that recorded sign-in, and nothing that is said of them here is sent.
    """

    sub: str = field(repr=False)
    acr: Level
    auth_time: int
    audience: str
    scope: str | None = None
    write: RequestedWrite | None = None
    sign_in_id: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestrator:
    """
    An orchestrator as its issuer knows it, with its private keys: one for what it says of itself, one for subject tokens.

    What it signs lives for `lifetime_s`, at most 300 s; no token outlives the subject token it was minted from.
    """

    issuer: str
    client_id: str
    namespace: str
    audience: str
    agent: str
    client_key: SigningKey = field(repr=False)
    subject_key: SigningKey = field(repr=False)
    lifetime_s: int = 60

    @property
    def token_endpoint(self) -> str:
        """
        Where to send the form.
        """
        return f"{self.issuer}/oauth/token"

    async def form(self, ask: Ask, now: float) -> dict[str, str]:
        """
        Sign and write the form of one token request; it is good for one attempt within 60 seconds.
        """
        form = {
            "grant_type": GRANT_TYPE,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": await self.client_assertion(now),
            "resource": ask.audience,
        }
        if ask.sign_in_id is None:
            form |= {"subject_token": await self.subject_token(ask, now), "subject_token_type": JWT_TOKEN_TYPE}
        else:
            form |= {"subject_token": ask.sign_in_id, "subject_token_type": SIGN_IN_TYPE}
        if ask.scope is not None:
            form["scope"] = ask.scope
        if ask.write is not None:
            form["authorization_details"] = json.dumps([_details(ask.write)])
        return form

    async def client_assertion(self, now: float) -> str:
        """
        Sign a client assertion: its only audience is the issuer (RFC 10070).
        """
        claims = self._claims(now) | {"sub": self.client_id}
        return await sign_jwt("client-authentication+jwt", claims, self.client_key)

    async def subject_token(self, ask: Ask, now: float) -> str:
        """
        Sign a subject token: the customer and the event of their sign-in.
        """
        claims = self._claims(now) | {
            "sub": ask.sub,
            "namespace": self.namespace,
            "acr": ask.acr,
            "auth_time": ask.auth_time,
            "act": {"sub": self.agent},
        }
        return await sign_jwt("caplo-subject+jwt", claims, self.subject_key)

    def _claims(self, now: float) -> dict[str, Any]:
        iat = int(now)
        times = {"iat": iat, "exp": iat + self.lifetime_s}
        return {"iss": self.client_id, "aud": self.issuer, "jti": secrets.token_urlsafe(16), **times}


async def sign_jwt(typ: str, claims: Mapping[str, Any], key: SigningKey) -> str:
    """
    Sign a JWT with ES256.
    """
    header = {"alg": key.alg, "typ": typ, "kid": key.kid}
    signing_input = f"{_encoded(header)}.{_encoded(claims)}"
    signature = await LocalSigner(key).sign(signing_input.encode("ascii"))
    return f"{signing_input}.{b64url_encode(signature)}"


def new_idempotency_key() -> str:
    """
    Make an idempotency key for one confirmed action; every attempt at it uses the same one.
    """
    return f"idk_{secrets.token_urlsafe(16)}"


def load_orchestrator(folder: Path) -> Orchestrator:
    """
    Read an orchestrator from the folder that `customer-context init` writes.

    Raises:
        OSError: when a file cannot be read.
        ValueError, keys.InvalidKey: when one of them is not what it should be.
    """
    facts = loads_object((folder / "orchestrator.json").read_bytes())
    names = ("issuer", "client_id", "namespace", "audience", "agent")
    if facts.keys() != set(names) or not all(isinstance(facts[name], str) for name in names):
        raise ValueError(f"orchestrator.json has exactly {', '.join(names)}")
    return Orchestrator(
        **facts,
        client_key=import_private_jwk(loads_object((folder / "client.jwk.json").read_bytes())),
        subject_key=import_private_jwk(loads_object((folder / "subject.jwk.json").read_bytes())),
    )


def _details(write: RequestedWrite) -> dict[str, Any]:
    confirmation = {"by": "none"} if write.confirmed_at is None else {"by": "client", "at": write.confirmed_at}
    return {
        "type": DETAILS_TYPE,
        "action": write.action,
        "arguments": dict(write.arguments),
        "idempotencyKey": write.idempotency_key,
        "confirmation": confirmation,
    }


def _encoded(members: Mapping[str, Any]) -> str:
    return b64url_encode(json.dumps(members, separators=(",", ":")).encode())
