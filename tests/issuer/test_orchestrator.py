"""
The other side of the token endpoint: what an orchestrator signs and sends is what the endpoint takes.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from issuer.orchestrator import Ask, Orchestrator, RequestedWrite, load_orchestrator, new_idempotency_key
from keys import InvalidKey, SigningKey, generate_key
from verifier import action_digest
from verifier.action import is_idempotency_key
from verifier.compact import parse_compact
from verifier.jwk import import_public_key

from .world import NOW, SHOP, clients

READ = Ask(sub="cus_48213", acr="standard", auth_time=NOW - 360, audience=SHOP, scope="orders:read")
WRITE = RequestedWrite(
    action="cancel_order", arguments={"orderId": "A-1001"}, idempotency_key="idk-of-one-action", confirmed_at=NOW - 20
)


def public(key: SigningKey) -> dict:
    imported = import_public_key(dict(key.public_jwk))
    assert imported is not None
    return dict([imported])


@pytest.fixture(scope="module")
def orchestrator() -> Orchestrator:
    return Orchestrator(
        issuer="https://issuer.test",
        client_id="orc_main",
        namespace="shop-login",
        audience=SHOP,
        agent="agt_support",
        client_key=generate_key(),
        subject_key=generate_key(),
    )


@pytest.fixture
def known(orchestrator, build_site):
    """
    A service that knows the orchestrator.
    """
    main = clients()[0]
    its_keys = {"keys": public(orchestrator.client_key), "subject_keys": public(orchestrator.subject_key)}
    return build_site(clients=lambda: (replace(main, **its_keys),))


def send(known, orchestrator: Orchestrator, ask: Ask):
    return known.post(urlencode(asyncio.run(orchestrator.form(ask, NOW + 0.5))).encode())


def test_what_it_asks_for_is_minted(known, orchestrator):
    """
    A read, a write and a write that nobody confirmed are granted as asked.
    """
    write = replace(READ, scope="orders:write", write=WRITE)
    note = replace(READ, scope=None, write=replace(WRITE, action="note_order", confirmed_at=None))

    read, written, noted = (send(known, orchestrator, ask) for ask in (READ, write, note))

    assert (read.claims["sub"], read.claims["scope"], read.claims["act"]) == (
        "cus_48213",
        "orders:read",
        {"sub": "agt_support"},
    )
    assert written.claims["caplo"]["confirmation"] == {"by": "client", "at": NOW - 20}
    assert written.granted["actionDigest"] == action_digest(
        action="cancel_order", arguments={"orderId": "A-1001"}, idempotency_key="idk-of-one-action"
    )
    assert noted.claims["caplo"]["confirmation"] == {"by": "none", "at": NOW}


def test_each_request_is_good_for_one_attempt(known, orchestrator):
    """
    A form carries a client assertion of its own, used up with the first attempt; the next form has another.
    """
    form = urlencode(asyncio.run(orchestrator.form(READ, NOW))).encode()

    assert [known.post(form).status, known.post(form).reason] == [200, "client_assertion:replayed"]
    assert send(known, orchestrator, READ).status == 200


def test_what_it_signs_lives_as_long_as_it_says(orchestrator):
    """
    Assertion and subject token live for `lifetime_s`, from a whole second on, for the issuer alone.
    """
    shorter = replace(orchestrator, lifetime_s=7)

    form = asyncio.run(shorter.form(READ, NOW + 0.9))

    assert shorter.token_endpoint == "https://issuer.test/oauth/token"
    for name in ("client_assertion", "subject_token"):
        claims = parse_compact(form[name]).claims
        assert (claims["iat"], claims["exp"], claims["aud"]) == (NOW, NOW + 7, "https://issuer.test")


def test_its_keys_are_not_shown(orchestrator):
    """
    The representation of an orchestrator holds no private key.
    """
    assert orchestrator.client_key.private_jwk.reveal()["d"] not in repr(orchestrator)
    assert "key" not in repr(orchestrator)


def test_a_new_key_is_a_key():
    """
    Keys are within the syntax and never the same.
    """
    keys = {new_idempotency_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(is_idempotency_key(key) for key in keys)


@pytest.fixture
def folder(orchestrator, tmp_path) -> Path:
    facts = ("issuer", "client_id", "namespace", "audience", "agent")
    (tmp_path / "orchestrator.json").write_text(json.dumps({name: getattr(orchestrator, name) for name in facts}))
    for name in ("client", "subject"):
        jwk = getattr(orchestrator, f"{name}_key").private_jwk.reveal()
        (tmp_path / f"{name}.jwk.json").write_text(json.dumps(jwk))
    return tmp_path


def test_it_is_read_from_its_folder(orchestrator, folder):
    """
    What `init` writes is read back whole.
    """
    assert load_orchestrator(folder) == orchestrator


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("orchestrator.json", "[]", ValueError),
        ("orchestrator.json", "{}", ValueError),
        (
            "orchestrator.json",
            '{"issuer": 1, "client_id": "", "namespace": "", "audience": "", "agent": ""}',
            ValueError,
        ),
        ("client.jwk.json", "x", ValueError),
        ("client.jwk.json", "{}", InvalidKey),
        ("subject.jwk.json", None, OSError),
    ],
)
def test_a_folder_that_is_not_one_is_refused(file, text, error, folder):
    """
    A file that is missing or not what it should be is an error, never half an orchestrator.
    """
    (folder / file).unlink() if text is None else (folder / file).write_text(text)

    with pytest.raises(error):
        load_orchestrator(folder)
