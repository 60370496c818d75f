"""
Two workspaces as the tests have them, one at the root and one below a path, and the keys of those who ask there.
"""

import base64
import json
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote_plus

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from issuer.registry import Action, Client, Connection, Registry, Workspace
from keys import KeyTimes, create_ring
from verifier.compact import b64url_encode

NOW = 1_796_040_000
ORIGIN = "https://issuer.test"
SHOP, BILLING, BANK = "https://api.shop.example", "https://billing.shop.example", "https://api.bank.example"
SECRETS = {"orc_basic": "secret-1", "c1": "s:with:colons+plus", "my client:1/é": "a+b%/= :c&d€"}
DROP = ...
"""In the place of a claim or a member: leave it out."""


@lru_cache
def private_key(kid):
    return ec.generate_private_key(ec.SECP256R1())


def public_keys(*kids):
    return {kid: private_key(kid).public_key() for kid in kids}


@lru_cache
def ring_of(workspace):
    return create_ring(workspace, now=NOW - 1000, times=KeyTimes())


def changed(members, changes):
    return {name: value for name, value in {**members, **changes}.items() if value is not DROP}


def signed(claims, *, typ, key, header=()):
    """
    Sign *claims*, a mapping or the very octets of a payload, with the key of that name; *header* changes the header.
    """
    head = json.dumps(changed({"alg": "ES256", "typ": typ, "kid": key}, dict(header))).encode()
    body = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    signing_input = f"{b64url_encode(head)}.{b64url_encode(body)}"
    r, s = decode_dss_signature(private_key(key).sign(signing_input.encode(), ec.ECDSA(SHA256())))
    return f"{signing_input}.{b64url_encode(r.to_bytes(32) + s.to_bytes(32))}"


def basic(client_id, secret):
    joined = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(joined.encode()).decode()}"


def connections():
    actions = (
        Action(name="cancel_order", audience=SHOP, scopes=frozenset({"orders:write"})),
        Action(name="orders.read", audience=SHOP),
        Action(name="note_order", audience=SHOP, scopes=frozenset({"notes:write"}), confirmation="none"),
        Action(name="change_address", audience=SHOP, selector="account"),
        Action(name="write_off", audience=BILLING, confirmation="customer"),
    )
    shop = Connection(
        name="shop",
        namespace="shop-login",
        audiences=(SHOP, BILLING),
        scopes=frozenset({"orders:read", "orders:list"}),
        actions={action.name: action for action in actions},
    )
    bank = Connection(
        name="bank", namespace="bank-login", audiences=(BANK,), scopes=frozenset({"accounts:read"}), actions={}
    )
    return (shop, bank)


def clients():
    main = Client(
        client_id="orc_main",
        keys=public_keys("client-1", "client-2"),
        subject_keys=public_keys("subject-1", "subject-2"),
        audiences=(SHOP, BILLING, BANK),
        scopes=frozenset({"orders:read", "orders:write", "notes:write", "accounts:read"}),
        actions=frozenset({"cancel_order", "orders.read", "note_order", "write_off", "change_address"}),
        agents=("agt_support", "agt_orders"),
        max_asserted_level="high",
    )
    narrow = replace(
        main,
        client_id="orc_basic",
        keys={},
        secret_sha256=(bytes(32), sha256(b"secret-1").digest()),
        audiences=(SHOP,),
        agents=("agt_support",),
        max_asserted_level="standard",
    )
    others = (
        replace(main, client_id="orc_second"),
        replace(main, client_id="orc_strict", require_actor_token=True),
        replace(main, client_id="orc_mute", subject_tokens=frozenset()),
        replace(narrow, client_id="c1", secret_sha256=tuple(sha256(s).digest() for s in (b"s:with:colons+plus", b"s"))),
        replace(narrow, client_id="my client:1/é", secret_sha256=(sha256("a+b%/= :c&d€".encode()).digest(),)),
    )
    return (main, narrow, *others)


def registry(*, clients=clients, connections=connections):
    workspaces = (
        Workspace(
            name=name,
            path=path,
            issuer=ORIGIN + path,
            connections=connections(),
            clients={client.client_id: client for client in clients()},
            admins={},
        )
        for name, path in (("root", ""), ("acme", "/w/acme"))
    )
    return Registry(origin=ORIGIN, workspaces=tuple(workspaces))
