"""
Authlib's client gets a token, with no more than its assertion class subclassed: the issuer is the only audience (D3).
"""

import asyncio
import os
import time

import httpx2
import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign
from authlib.oauth2.rfc8414 import get_well_known_url
from joserfc.jwk import ECKey

from issuer.exchange import GRANT_TYPE
from issuer.orchestrator import Ask, Orchestrator
from issuer.subject import JWT_TOKEN_TYPE
from verifier import CustomerContextVerifier, MemoryReplayStore


class IssuerPrivateKeyJWT(PrivateKeyJWT):
    """
    Signs for the issuer instead of the token endpoint, for a minute instead of an hour, with new claims each time.
    """

    def __init__(self, issuer: str) -> None:
        super().__init__(issuer, alg="ES256")

    def sign(self, auth, token_endpoint):
        now = int(time.time())
        header = {"typ": "client-authentication+jwt", "kid": auth.client_secret.kid}
        return private_key_jwt_sign(
            auth.client_secret,
            auth.client_id,
            token_endpoint,
            alg=self.alg,
            header=header,
            issued_at=now,
            expires_at=now + 60,
        )


async def exchanged(orchestrator: Orchestrator, method: PrivateKeyJWT, scope: str) -> dict:
    """
    Exchange a subject token with Authlib's client.
    """
    now = time.time()
    ask = Ask(sub="cus_48213", acr="standard", auth_time=int(now) - 60, audience=orchestrator.audience)
    key = ECKey.import_key(dict(orchestrator.client_key.private_jwk.reveal()))
    async with AsyncOAuth2Client(
        orchestrator.client_id, key, token_endpoint_auth_method="private_key_jwt", trust_env=False
    ) as client:
        client.register_client_auth_method(method)
        return await client.fetch_token(
            orchestrator.token_endpoint,
            grant_type=GRANT_TYPE,
            subject_token=await orchestrator.subject_token(ask, now),
            subject_token_type=JWT_TOKEN_TYPE,
            resource=orchestrator.audience,
            scope=scope,
        )


def test_authlib_obtains_a_token(orchestrator: Orchestrator):
    """
    The token that `AsyncOAuth2Client` gets is one that the verifier accepts, and no switch for insecure transport is needed.
    """
    method = IssuerPrivateKeyJWT(orchestrator.issuer)
    verifier = CustomerContextVerifier(
        issuer=orchestrator.issuer, audience=orchestrator.audience, replay_store=MemoryReplayStore()
    )

    answer = asyncio.run(exchanged(orchestrator, method, "orders:read"))

    context = verifier.verify(answer["access_token"], scope="orders:read")
    assert (context.sub, context.client_id) == ("cus_48213", orchestrator.client_id)
    assert "AUTHLIB_INSECURE_TRANSPORT" not in os.environ


def test_authlib_reads_a_refusal(orchestrator: Orchestrator):
    """
    What the issuer refuses arrives as Authlib's error with the registered code.
    """
    method = IssuerPrivateKeyJWT(orchestrator.issuer)

    with pytest.raises(OAuthError) as refusal:
        asyncio.run(exchanged(orchestrator, method, "orders:write"))

    assert refusal.value.error == "invalid_scope"


def test_the_token_endpoint_as_audience_is_refused(orchestrator: Orchestrator):
    """
    The same class with the audience that Authlib would use by itself authenticates nobody.
    """
    method = IssuerPrivateKeyJWT(orchestrator.token_endpoint)

    with pytest.raises(OAuthError) as refusal:
        asyncio.run(exchanged(orchestrator, method, "orders:read"))

    assert refusal.value.error == "invalid_client"


def test_authlib_finds_the_metadata(orchestrator: Orchestrator):
    """
    The metadata lies where Authlib looks for it (RFC 8414 section 3.1), and names the issuer and the token endpoint.
    """
    url = get_well_known_url(orchestrator.issuer, external=True)

    metadata = httpx2.get(url, trust_env=False, timeout=5).json()

    assert (metadata["issuer"], metadata["token_endpoint"]) == (orchestrator.issuer, orchestrator.token_endpoint)
