"""
A decision becomes a signed token (RFC 9068 section 2, D4, D5, D7). In memory, the hot path of the service.
"""

import secrets
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from keys import Signer
from verifier.claims import (
    CONFIRMATION_LIFETIME_S,
    MAX_LIFETIME_S,
    TOKEN_TYPE,
    ActionClaim,
    Confirmation,
    TokenClaims,
)
from verifier.compact import MAX_TOKEN_LENGTH, b64url_encode

from .errors import invalid_authorization_details, invalid_request
from .exchange import Exchange

__all__ = ["Minted", "mint", "token_claims"]

_JTI_OCTETS: Final = 16
_ENCODER: Final = msgspec.json.Encoder()


class Minted(NamedTuple):
    """
    A token, ready to be handed out once.
    """

    token: str
    jti: str
    kid: str
    expires_in_s: int

    def __repr__(self) -> str:
        return f"Minted(jti={self.jti!r}, kid={self.kid!r})"


def token_claims(exchange: Exchange, *, issuer: str, now: float, confirmed_at: int | None) -> TokenClaims:
    """
    Write the claims of a decided exchange: times are whole epoch seconds, `jti` is 16 fresh random octets.

    `exp` is the earliest of `iat` + 60 s, the end of the subject and actor tokens, and the confirmation's instant + 1800 s.

    Raises:
        TokenRefused: when the token would be dead on arrival.
    """
    iat = int(now)
    exp = min(iat + MAX_LIFETIME_S, int(exchange.not_after))
    if exp <= iat:
        raise invalid_request("The subject or actor token ends too soon.", reason="mint:dead_on_arrival")
    action = None
    if exchange.action is not None and confirmed_at is not None:
        exp = min(exp, confirmed_at + CONFIRMATION_LIFETIME_S)
        if exp <= iat:
            raise invalid_authorization_details("The confirmation has expired.", reason="confirmation:expired")
        action = ActionClaim(
            action=exchange.action.action.name,
            digest=exchange.action.digest,
            idempotency_key=exchange.action.idempotency_key,
            confirmation=Confirmation(exchange.action.confirmed_by, confirmed_at),
        )
    return TokenClaims(
        iss=issuer,
        sub=exchange.subject.sub,
        aud=exchange.audience,
        client_id=exchange.client.client_id,
        iat=iat,
        exp=exp,
        jti=b64url_encode(secrets.token_bytes(_JTI_OCTETS)),
        acr=exchange.subject.acr,
        act=exchange.actor,
        auth_time=exchange.subject.auth_time,
        scope=exchange.scope,
        action=action,
    )


async def mint(claims: TokenClaims, signer: Signer) -> Minted:
    """
    Sign a token.

    Raises:
        TokenRefused: when it would be longer than a verifier reads.
    """
    payload = b64url_encode(_ENCODER.encode(claims.to_payload()))
    signing_input = f"{_header(signer.alg, signer.kid)}.{payload}"
    signature = await signer.sign(signing_input.encode("ascii"))
    token = f"{signing_input}.{b64url_encode(signature)}"
    if len(token) > MAX_TOKEN_LENGTH:
        raise invalid_request("The token would be too long.", reason="mint:too_long")
    return Minted(token=token, jti=claims.jti, kid=signer.kid, expires_in_s=int(claims.exp - claims.iat))


@lru_cache(maxsize=64)
def _header(alg: str, kid: str) -> str:
    return b64url_encode(_ENCODER.encode({"alg": alg, "typ": TOKEN_TYPE, "kid": kid}))
