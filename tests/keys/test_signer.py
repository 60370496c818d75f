"""
The local signer, and that others verify what it signs.
"""

import asyncio
import json
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from keys import InvalidKey, LocalSigner, PrivateJWK, Signer, SigningKey, generate_key, import_private_jwk

EXAMPLE = Path(__file__).parents[2] / ".." / "shared" / "evidence" / "example.json"
FIXTURE = Path(__file__).parents[2] / ".." / "shared" / "cases" / "data" / "fixture.json"


def b64u(data):
    return urlsafe_b64encode(data).rstrip(b"=")


def test_joserfc_verifies_what_the_signer_signs():
    """
    An independent implementation accepts a compact JWS made with the signer.
    """
    signer: Signer = LocalSigner(generate_key())
    header = json.dumps({"alg": signer.alg, "typ": "at+jwt", "kid": signer.kid}).encode()
    signing_input = b64u(header) + b"." + b64u(b'{"sub":"cus_1"}')

    signature = asyncio.run(signer.sign(signing_input))

    token = signing_input + b"." + b64u(signature)
    key = ECKey.import_key(dict(signer.public_jwk))
    assert jws.deserialize_compact(token, key, algorithms=["ES256"]).payload == b'{"sub":"cus_1"}'


def test_a_signer_shows_its_public_side_only():
    """
    kid, alg and published form are there; repr holds no private part, and there is no attribute that does.
    """
    key = generate_key()

    signer = LocalSigner(key)

    assert (signer.kid, signer.alg, signer.public_jwk) == (key.kid, "ES256", key.public_jwk)
    assert repr(signer) == f"LocalSigner(kid={key.kid!r}, alg='ES256')"
    assert not any(isinstance(getattr(signer, name), PrivateJWK) for name in LocalSigner.__slots__)


def test_a_signer_of_an_unusable_key_cannot_be_made():
    """
    A broken private part is found when the signer is made, not at the first mint.
    """
    key = generate_key()
    broken = SigningKey(
        kid=key.kid,
        alg=key.alg,
        public_jwk=key.public_jwk,
        private_jwk=PrivateJWK({**key.private_jwk.reveal(), "d": "AA"}),
    )

    with pytest.raises(InvalidKey):
        LocalSigner(broken)


def test_a_signer_is_shared_between_threads():
    """
    Eight threads that sign the same input at once get the same octets.
    """
    signer = LocalSigner(generate_key())

    with ThreadPoolExecutor(8) as threads:
        signatures = set(threads.map(lambda _: asyncio.run(signer.sign(b"input")), range(64)))

    assert len(signatures) == 1


@pytest.mark.skipif(not FIXTURE.exists(), reason="the shared folder is not there")
def test_imported_fixture_keys_sign():
    """
    The private keys of the shared cases import and sign for their published halves.
    """
    private = json.loads(FIXTURE.read_text())["private"]

    signers = [LocalSigner(import_private_jwk(jwk)) for jwk in private.values()]

    assert [signer.public_jwk["x"] for signer in signers] == [jwk["x"] for jwk in private.values()]


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the shared folder is not there")
def test_the_documented_tokens_come_out(demo_key):
    """
    The signatures of the worked example, read and write token, are reproduced to the octet.
    """
    example = json.loads(EXAMPLE.read_text())
    signer = LocalSigner(demo_key)

    for token in (example["token_read"], example["token_write"]):
        signing_input, _, signature = token.rpartition(".")

        assert b64u(asyncio.run(signer.sign(signing_input.encode()))).decode() == signature
