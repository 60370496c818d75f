"""
npm's `jose` and `oauth4webapi` against a running service: implementations that share no code with this one.
"""

import asyncio
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from issuer.orchestrator import Ask, Orchestrator, RequestedWrite, new_idempotency_key
from verifier import CustomerContextVerifier, MemoryReplayStore

HERE = Path(__file__).parent
PACKAGES = ("jose", "oauth4webapi")
LIMIT_S = 60
ARGUMENTS = {"orderId": "A-1001", "refund": {"amount": 12.5, "currency": "EUR"}}


def missing() -> str | None:
    """
    Return what these tests need and this machine lacks.
    """
    node = shutil.which("node")
    if node is None:
        return "there is no node"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < 20:
        return f"node 20 or newer is needed, this is {version.strip()}"
    if not all((HERE / "node_modules" / package).is_dir() for package in PACKAGES):
        return "`make interop` installs the npm packages"
    return None


LACKING = missing()
pytestmark = [pytest.mark.interop, pytest.mark.skipif(LACKING is not None, reason=str(LACKING))]


def node(script: str, *arguments: str, stdin: str) -> Any:
    """
    Run a script and return the JSON that it prints.
    """
    command = ["node", script, *arguments]
    ran = subprocess.run(command, cwd=HERE, input=stdin, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def asked(orchestrator: Orchestrator, *, scope: str | None = "orders:read", write: RequestedWrite | None = None) -> Ask:
    now = int(time.time())
    audience = orchestrator.audience
    return Ask(sub="cus_48213", acr="high", auth_time=now - 60, audience=audience, scope=scope, write=write)


def confirmed() -> RequestedWrite:
    return RequestedWrite(
        action="cancel_order",
        arguments=ARGUMENTS,
        idempotency_key=new_idempotency_key(),
        confirmed_at=int(time.time()),
    )


def minted(orchestrator: Orchestrator, ask: Ask) -> str:
    form = asyncio.run(orchestrator.form(ask, time.time()))
    answer = httpx2.post(orchestrator.token_endpoint, data=form, trust_env=False, timeout=5)
    return answer.json()["access_token"]


def request_of(orchestrator: Orchestrator, ask: Ask, typ: str | None = None) -> str:
    """
    Write what obtain.mjs reads: the form, less what the client authenticates with, and the key it authenticates with.
    """
    form = asyncio.run(orchestrator.form(ask, time.time()))
    ours = ("grant_type", "client_assertion", "client_assertion_type")
    request = {
        "issuer": orchestrator.issuer,
        "client_id": orchestrator.client_id,
        "client_key": dict(orchestrator.client_key.private_jwk.reveal()),
        "parameters": {name: value for name, value in form.items() if name not in ours},
    }
    return json.dumps(request | ({} if typ is None else {"typ": typ}))


@pytest.fixture
def verifier(orchestrator: Orchestrator) -> CustomerContextVerifier:
    return CustomerContextVerifier(
        issuer=orchestrator.issuer, audience=orchestrator.audience, replay_store=MemoryReplayStore()
    )


def test_jose_verifies_what_the_issuer_mints(orchestrator: Orchestrator):
    """
    A read and a write token, minted over HTTP, verify with keys that jose fetches, and say what was asked for.
    """
    tokens = [minted(orchestrator, asked(orchestrator, write=write)) for write in (None, confirmed())]

    read, write = node("verify.mjs", orchestrator.issuer, orchestrator.audience, stdin="\n".join(tokens))

    assert read["header"]["typ"] == "at+jwt"
    assert (read["claims"]["sub"], read["claims"]["act"]) == ("cus_48213", {"sub": orchestrator.agent})
    assert write["claims"]["caplo"]["action"] == "cancel_order"
    assert write["claims"]["exp"] - write["claims"]["iat"] == 60


def test_jose_refuses_what_was_tampered_with(orchestrator: Orchestrator):
    """
    Another payload, another signature, and the signature of another token are all refused for their signature.
    """
    first, second = (minted(orchestrator, asked(orchestrator)).split(".") for _ in range(2))
    changed = ("B" if first[2][0] == "A" else "A") + first[2][1:]
    tokens = [[first[0], second[1], first[2]], [*first[:2], changed], [*first[:2], second[2]]]

    results = node(
        "verify.mjs", orchestrator.issuer, orchestrator.audience, stdin="\n".join(".".join(each) for each in tokens)
    )

    assert [result.get("refused") for result in results] == ["ERR_JWS_SIGNATURE_VERIFICATION_FAILED"] * 3


def test_jose_refuses_a_token_at_another_api(orchestrator: Orchestrator):
    """
    The audience is one that a second implementation tells apart.
    """
    token = minted(orchestrator, asked(orchestrator))

    (result,) = node("verify.mjs", orchestrator.issuer, "https://billing.shop.example", stdin=token)

    assert result == {"refused": "ERR_JWT_CLAIM_VALIDATION_FAILED", "claim": "aud"}


@pytest.mark.parametrize("typ", [None, "client-authentication+jwt"])
def test_oauth4webapi_obtains_a_token(orchestrator: Orchestrator, verifier: CustomerContextVerifier, typ: str | None):
    """
    From the issuer's URL alone it discovers the token endpoint and exchanges; the verifier accepts what it gets.
    """
    obtained = node("obtain.mjs", stdin=request_of(orchestrator, asked(orchestrator), typ))

    context = verifier.verify(obtained["answer"]["access_token"], scope="orders:read", level="high")
    assert obtained["metadata"]["token_endpoint"] == orchestrator.token_endpoint
    assert (context.sub, context.client_id) == ("cus_48213", orchestrator.client_id)


def test_oauth4webapi_obtains_a_write_token(orchestrator: Orchestrator, verifier: CustomerContextVerifier):
    """
    A confirmed action goes through as `authorization_details`, and the token stands for exactly its arguments.
    """
    write = confirmed()
    ask = asked(orchestrator, scope="orders:write", write=write)

    obtained = node("obtain.mjs", stdin=request_of(orchestrator, ask))

    context = verifier.verify(
        obtained["answer"]["access_token"],
        action="cancel_order",
        arguments=ARGUMENTS,
        idempotency_key=write.idempotency_key,
        confirmation="client",
    )
    assert context.scopes == {"orders:write"}
    assert obtained["answer"]["authorization_details"][0]["type"] == "caplo_action"


def test_oauth4webapi_reads_a_refusal(orchestrator: Orchestrator):
    """
    An error of the token endpoint is one that it understands, by its registered code.
    """
    obtained = node("obtain.mjs", stdin=request_of(orchestrator, asked(orchestrator, scope="orders:write")))

    assert (obtained["error"], obtained["status"]) == ("invalid_scope", 400)
