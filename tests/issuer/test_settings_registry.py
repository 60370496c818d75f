"""
Building the registry from settings, with real key files.
"""

import json
import time

import pytest

from issuer.init_config import write_development_config
from issuer.settings import SettingsError, build_registry, load_settings
from keys import generate_key


@pytest.fixture
def folder(tmp_path):
    write_development_config(tmp_path, now=int(time.time()))
    return tmp_path


def build(folder, *edits):
    """
    Build the registry of the development configuration with some edits.
    """
    file = folder / "customer-context.toml"
    text = file.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return build_registry(load_settings(file, {}))


def write_keys(file, *keys, **members):
    file.write_text(json.dumps({"keys": [{**key.public_jwk, **members} for key in keys]}), encoding="utf-8")


def problems(folder, *edits):
    with pytest.raises(SettingsError) as caught:
        build(folder, *edits)
    assert all(each.line for each in caught.value.problems)
    return [each.where for each in caught.value.problems]


def test_revoked_kids_arrive_in_the_registry(folder):
    """
    Of the workspace that names them.
    """
    kid = "g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA"

    registry = build(folder, ('path = "/w/demo"', f'revoked_kids = ["{kid}"]\npath = "/w/demo"'))

    assert registry.workspace("demo").revoked_kids == {kid}


def test_the_registry_says_what_the_file_says(folder):
    """
    Every fact of the configuration arrives in the registry, the issuer being the origin followed by the path.
    """
    registry = build(folder)

    demo = registry.workspace("demo")
    client, admin = demo.clients["orc_main"], demo.admins["secops"]
    connection, action = demo.action("cancel_order")
    assert registry.origin == "http://127.0.0.1:8000"
    assert (demo.path, demo.issuer) == ("/w/demo", "http://127.0.0.1:8000/w/demo")
    assert demo.connection_of("https://api.shop.example") is connection
    assert (connection.name, connection.namespace) == ("shop", "shop-login")
    assert (connection.scopes, connection.action_scopes) == ({"orders:read"}, {"orders:write"})
    assert (action.audience, action.scopes, action.confirmation) == (
        "https://api.shop.example",
        {"orders:write"},
        "client",
    )
    assert client.authentication_method == "private_key_jwt"
    assert len(client.keys) == len(client.subject_keys) == 1
    assert client.audiences == ("https://api.shop.example",)
    assert (client.scopes, client.actions, client.agents) == (
        {"orders:read", "orders:write"},
        {"cancel_order"},
        ("agt_support",),
    )
    assert (client.subject_tokens, client.max_asserted_level, client.require_actor_token) == (
        {"asserted"},
        "high",
        False,
    )
    assert demo.revoked_kids == frozenset()
    assert [len(each) for each in admin.secret_sha256] == [32]
    assert admin.permissions == {"keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"}


def test_a_client_may_have_several_keys_or_a_secret(folder):
    """
    Two keys are valid at once, and a secret instead of keys makes the other method.
    """
    write_keys(folder / "clients/orc_main.jwks.json", generate_key(), generate_key())

    with_keys = build(folder).workspace("demo").clients["orc_main"]
    with_secret = (
        build(
            folder,
            ('jwks_file = "clients/orc_main.jwks.json"', f'secret_sha256 = ["{"ab" * 32}"]'),
            ('client_id = "orc_main"', 'client_id = "my client:1/é"\naudiences = ["https://api.shop.example"]'),
        )
        .workspace("demo")
        .clients["my client:1/é"]
    )

    assert len(with_keys.keys) == 2
    assert with_secret.secret_sha256 == (bytes.fromhex("ab" * 32),)
    assert with_secret.authentication_method == "client_secret_basic"
    assert with_secret.audiences == ("https://api.shop.example",)


def test_an_admin_may_have_keys(folder):
    """
    An admin with a key file has those keys and no secret.
    """
    write_keys(folder / "admin.jwks.json", key := generate_key())
    text = (folder / "customer-context.toml").read_text(encoding="utf-8")
    secret = next(line for line in text.split("\n") if line.strip().startswith("secret_sha256"))

    admin = build(folder, (secret, '  jwks_file = "admin.jwks.json"')).workspace("demo").admins["secops"]

    assert list(admin.keys) == [key.kid]
    assert admin.secret_sha256 == ()


@pytest.mark.parametrize(
    "body",
    [None, b"", b"{}", b'{"keys": []}', b"[" * 70_000, b'{"keys": [{"kty": "RSA"}]}'],
    ids=["missing", "empty", "no keys", "empty set", "huge", "unusable"],
)
def test_a_key_file_that_cannot_serve_stops_the_start(folder, body):
    """
    A file that is missing, no JWK Set, or without a usable key is a problem of the setting that names it.
    """
    file = folder / "clients/orc_main.jwks.json"
    file.unlink()
    if body is not None:
        file.write_bytes(body)

    assert problems(folder) == ["workspaces[0].clients[0].jwks_file"]


def test_one_unusable_entry_spoils_the_file(folder):
    """
    An entry that would be ignored on the network is an error here, a private key above all.
    """
    private = generate_key().private_jwk.reveal()
    entries = [dict(generate_key().public_jwk), private]
    (folder / "clients/orc_main.jwks.json").write_text(json.dumps({"keys": entries}), encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        build(folder)

    assert "private: 1" in str(caught.value)
    assert private["d"] not in str(caught.value)


def test_a_client_has_eight_keys_at_most(folder):
    """
    Each of them is tried with an assertion that names none, so their number is bounded like that of the secrets.
    """
    keys = [generate_key() for _ in range(9)]
    file = folder / "clients" / "orc_main.jwks.json"

    write_keys(file, *keys[:8])
    workspace = build(folder).workspace("demo")
    write_keys(file, *keys)

    assert workspace.most_keys == len(workspace.clients["orc_main"].keys) == 8
    assert problems(folder) == ["workspaces[0].clients[0].jwks_file"]


def test_no_key_serves_two_roles(folder):
    """
    A key that signs client assertions and subject tokens is refused, also under two kids.
    """
    key = generate_key()
    write_keys(folder / "clients/orc_main.jwks.json", key)
    write_keys(folder / "clients/orc_main.subjects.jwks.json", generate_key(), key, kid="other")
    write_keys(folder / "clients/orc_main.subjects.jwks.json", key, kid="other")

    assert problems(folder) == ["workspaces[0].clients[0].subject_jwks_file"]


def test_no_key_belongs_to_two_parties(folder):
    """
    A key of a client is no key of an admin.
    """
    text = (folder / "customer-context.toml").read_text(encoding="utf-8")
    secret = next(line for line in text.split("\n") if line.strip().startswith("secret_sha256"))

    assert problems(folder, (secret, '  jwks_file = "clients/orc_main.jwks.json"')) == [
        "workspaces[0].admins[0].jwks_file"
    ]


def test_all_key_files_are_reported_at_once(folder):
    """
    Every file that cannot serve is reported, not just the first.
    """
    for file in (folder / "clients").iterdir():
        file.unlink()

    assert problems(folder) == ["workspaces[0].clients[0].jwks_file", "workspaces[0].clients[0].subject_jwks_file"]
