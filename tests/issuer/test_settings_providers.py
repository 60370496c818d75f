"""
Identity providers in the configuration: what a connection may say about its own, and what must hold between it and the rest.
"""

import json

import pytest

from issuer.provider import Provider
from issuer.settings import SettingsError, build_registry, load_settings
from keys import generate_key

from .provider import jwk, key_set
from .world import DROP

PLAIN = """\
origin = "https://id.example.com"
data_dir = "data"
sealing_keys = [{id = "a", file = "a"}]

[[workspaces]]
name = "acme"
path = "/w/acme"

  [[workspaces.connections]]
  name = "shop"
  namespace = "shop-login"
  audiences = ["https://api.shop.example"]

    [workspaces.connections.provider]
    issuer = "https://login.shop.example"
    algorithms = ["RS256", "ES256"]
    jwks_file = "provider.jwks.json"
    sign_in_lifetime_s = 3600

      [workspaces.connections.provider.clients]
      "shop-web" = "orc_main"
      "https://shop.example/app" = "orc_main"
      "shop-chat" = "orc_chat"

      [workspaces.connections.provider.acr]
      "urn:shop:mfa" = "high"
      "1" = "low"

      [[workspaces.connections.provider.amr]]
      values = ["pwd", "otp"]
      level = "standard"

      [[workspaces.connections.provider.amr]]
      values = ["hwk"]
      level = "high"

  [[workspaces.connections]]
  name = "bank"
  namespace = "bank-login"
  audiences = ["https://api.bank.example"]

    [workspaces.connections.provider]
    issuer = "https://login.bank.example/"

      [workspaces.connections.provider.clients]
      "bank-app" = "orc_main"

  [[workspaces.clients]]
  client_id = "orc_main"
  jwks_file = "main.jwks.json"
  subject_jwks_file = "subjects.jwks.json"
  connections = ["shop", "bank"]
  agents = ["agt_support"]
  subject_tokens = ["asserted", "id_token", "sign_in"]

  [[workspaces.clients]]
  client_id = "orc_chat"
  secret_sha256 = ["1111111111111111111111111111111111111111111111111111111111111111"]
  connections = ["shop"]
  agents = ["agt_support"]
  subject_tokens = ["sign_in"]
"""
SHOP, BANK = (f"workspaces[0].connections[{number}].provider" for number in (0, 1))
CHAT = "workspaces[0].clients[1]"


@pytest.fixture
def folder(tmp_path):
    """
    A folder with the key files that the configuration names.
    """
    for name in ("main", "subjects"):
        keys = {"keys": [dict(generate_key().public_jwk)]}
        (tmp_path / f"{name}.jwks.json").write_text(json.dumps(keys), encoding="utf-8")
    (tmp_path / "provider.jwks.json").write_bytes(key_set("rsa-1", "ec-1"))
    return tmp_path


def build(folder, *edits):
    text = PLAIN
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return build_registry(load_settings(file, {}))


def write(folder, name, *entries):
    (folder / name).write_bytes(key_set(*entries))


def problems(folder, *edits):
    with pytest.raises(SettingsError) as caught:
        build(folder, *edits)
    assert all(each.line for each in caught.value.problems)
    return {each.where: each.message for each in caught.value.problems}


def test_what_the_file_says_of_a_provider_arrives_in_the_registry(folder):
    """
    Every field, the maps as they stand, and the keys by the names that tokens find them under.
    """
    shop = build(folder).workspace("acme").connections[0].provider

    assert shop.issuer == "https://login.shop.example"
    assert shop.clients == {
        "shop-web": "orc_main",
        "https://shop.example/app": "orc_main",
        "shop-chat": "orc_chat",
    }
    assert shop.algorithms == {"RS256", "ES256"}
    assert set(shop.keys) == {"RS256", "RS256 rsa-1", "ES256", "ES256 ec-1"}
    assert shop.acr == {"urn:shop:mfa": "high", "1": "low"}
    assert shop.amr == {frozenset({"pwd", "otp"}): "standard", frozenset({"hwk"}): "high"}
    assert shop.sign_in_lifetime_s == 3600


def test_what_it_leaves_out_has_a_default(folder):
    """
    RS256, keys by discovery, eight hours, and nothing but low.
    """
    registry = build(folder)

    bank = registry.workspace("acme").connections[1].provider
    assert bank == Provider(issuer="https://login.bank.example/", clients={"bank-app": "orc_main"})
    assert (bank.algorithms, bank.keys, bank.sign_in_lifetime_s) == ({"RS256"}, None, 28_800)
    assert (bank.acr, bank.amr) == ({}, {})


def test_a_connection_needs_no_provider(folder):
    """
    Then clients vouch for its customers, as before.
    """
    bank = PLAIN[PLAIN.index('    [workspaces.connections.provider]\n    issuer = "https://login.bank') :]
    bank = bank[: bank.index("  [[workspaces.clients]]")]

    registry = build(folder, (bank, ""))

    assert registry.workspace("acme").connections[1].provider is None
    assert registry.workspace("acme").clients["orc_main"].subject_tokens == {"asserted", "id_token", "sign_in"}


def test_names_that_others_chose_are_no_paths(folder):
    """
    A client id or an `acr` value may be called like a setting that names a file.
    """
    registry = build(
        folder,
        ('"shop-web" = "orc_main"', '"jwks_file" = "orc_main"'),
        ('"1" = "low"', '"file" = "standard"'),
    )

    shop = registry.workspace("acme").connections[0].provider
    assert shop.clients["jwks_file"] == "orc_main"
    assert shop.acr["file"] == "standard"


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (('issuer = "https://login.shop.example"', ""), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"http://login.shop.example"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"login.shop.example"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"https://Login.shop.example"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"https://login.shop.example?tenant=1"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"https://login.shop.example#a"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"https://user@login.shop.example"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', '"https://login.shop.example//"'), f"{SHOP}.issuer"),
        (('"https://login.shop.example"', f'"https://login.shop.example/{"p" * 500}"'), f"{SHOP}.issuer"),
        (('"RS256", "ES256"', '"RS256", "HS256"'), f"{SHOP}.algorithms[1]"),
        (('"RS256", "ES256"', '"none"'), f"{SHOP}.algorithms[0]"),
        (('"RS256", "ES256"', '"rs256"'), f"{SHOP}.algorithms[0]"),
        (('"RS256", "ES256"', '"RS256", "RS256"'), f"{SHOP}.algorithms"),
        (('["RS256", "ES256"]', "[]"), f"{SHOP}.algorithms"),
        (("sign_in_lifetime_s = 3600", "sign_in_lifetime_s = 59"), f"{SHOP}.sign_in_lifetime_s"),
        (("sign_in_lifetime_s = 3600", "sign_in_lifetime_s = 2592001"), f"{SHOP}.sign_in_lifetime_s"),
        (("sign_in_lifetime_s = 3600", "sign_in_lifetime_s = true"), f"{SHOP}.sign_in_lifetime_s"),
        (("sign_in_lifetime_s = 3600", "lifetime_s = 3600"), f"{SHOP}.lifetime_s"),
        (('"urn:shop:mfa" = "high"', '"urn:shop:mfa" = "gold"'), f"{SHOP}.acr.urn:shop:mfa"),
        (('values = ["hwk"]', "values = []"), f"{SHOP}.amr[1].values"),
        (('values = ["hwk"]', 'values = ["hwk", "hwk"]'), f"{SHOP}.amr[1].values"),
        (('values = ["hwk"]', 'values = ["a b"]'), f"{SHOP}.amr[1].values[0]"),
        (('values = ["hwk"]', 'values = ["otp", "pwd"]'), f"{SHOP}.amr[1].values"),
        (('values = ["hwk"]\n      level = "high"', 'values = ["hwk"]'), f"{SHOP}.amr[1].level"),
        (('values = ["hwk"]', 'value = ["hwk"]'), f"{SHOP}.amr[1].value"),
        (('"bank-app" = "orc_main"', ""), f"{BANK}.clients"),
        (('"bank-app" = "orc_main"', '"bank-app" = "orc_other"'), f"{BANK}.clients.bank-app"),
        (('"bank-app" = "orc_main"', '"bank-app" = "orc_chat"'), f"{BANK}.clients.bank-app"),
        (('"bank-app" = "orc_main"', '"bank-app" = ["orc_main"]'), f"{BANK}.clients.bank-app"),
        (('"bank-app" = "orc_main"', '" bank" = "orc_main"'), f"{BANK}.clients. bank.[key]"),
        (('subject_tokens = ["sign_in"]', 'subject_tokens = ["saml"]'), f"{CHAT}.subject_tokens[0]"),
        (('subject_tokens = ["sign_in"]', 'subject_tokens = ["asserted"]'), CHAT),
        (('"shop-chat" = "orc_chat"', ""), f"{CHAT}.subject_tokens"),
    ],
)
def test_a_provider_that_is_configured_wrongly_stops_the_start(folder, edit, where):
    """
    Each mistake is told at its place, with a line.
    """
    assert where in problems(folder, edit)


def test_an_acr_value_is_one_word(folder):
    """
    One with a space could not be asked for.
    """
    assert any(where.startswith(f"{SHOP}.acr") for where in problems(folder, ('"1" = "low"', '"a b" = "low"')))


def test_a_client_id_of_a_provider_belongs_to_one_connection(folder):
    """
    Otherwise a token would lead to two customers; the same id at another provider is another client.
    """
    same = ('issuer = "https://login.bank.example/"', 'issuer = "https://login.shop.example"')

    found = problems(folder, same, ('"bank-app" = "orc_main"', '"shop-web" = "orc_main"'))
    registry = build(folder, ('"bank-app" = "orc_main"', '"shop-web" = "orc_main"'))

    assert list(found) == [f"{BANK}.clients.shop-web"]
    assert registry.workspace("acme").connections[1].provider.clients == {"shop-web": "orc_main"}


def test_one_provider_may_serve_two_connections(folder):
    """
    With a client id for each, and its keys from one file.
    """
    write(folder, "provider.jwks.json", "rsa-1")
    shop = ('algorithms = ["RS256", "ES256"]\n', "")
    bank = (
        'issuer = "https://login.bank.example/"',
        'issuer = "https://login.shop.example"\n    jwks_file = "provider.jwks.json"',
    )

    known = build(folder, shop, bank).workspace("acme").provider_clients("https://login.shop.example")

    assert {name: connection.name for name, (connection, _) in known.items()} == {
        "shop-web": "shop",
        "https://shop.example/app": "shop",
        "shop-chat": "shop",
        "bank-app": "bank",
    }


def test_one_namespace_has_one_provider(folder):
    """
    Two providers may call two customers alike; `namespace:sub` has to be one of them.
    """
    assert list(problems(folder, ('namespace = "bank-login"', 'namespace = "shop-login"'))) == [f"{BANK}.issuer"]


def test_kinds_of_subject_token_need_what_they_are_made_of(folder):
    """
    A client that signs none needs no keys for them; one that brings ID tokens needs a provider that knows it.
    """
    registry = build(
        folder,
        ('subject_jwks_file = "subjects.jwks.json"\n', ""),
        ('["asserted", "id_token", "sign_in"]', '["id_token"]'),
    )

    client = registry.workspace("acme").clients["orc_main"]
    assert client.subject_tokens == {"id_token"}
    assert client.subject_keys == {}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "holds no key"),
        (["rsa-1", jwk("rsa-2", use="enc")], "has entries that are no public keys for ES256, RS256 (use: 1)"),
        (["rsa-1", jwk("rsa-2", alg="PS256")], "has entries that are no public keys for ES256, RS256 (alg: 1)"),
        (["ed-1", "rsa-1"], "has entries that are no public keys for ES256, RS256 (alg: 1)"),
        (
            ["rsa-1", {"kty": "oct", "k": "c2VjcmV0"}],
            "has entries that are no public keys for ES256, RS256 (private: 1)",
        ),
        ([jwk("rsa1024-1")], "is not a JWK Set to work with: no entry is usable (modulus: 1)"),
        ([jwk("rsa-1", kid=DROP), jwk("rsa-2", kid=DROP)], "is not a JWK Set to work with: several keys without a kid"),
    ],
)
def test_a_fixed_key_set_is_taken_whole_or_not_at_all(folder, entries, message):
    """
    An operator who put a key there counts on it.
    """
    write(folder, "provider.jwks.json", *entries)

    assert problems(folder) == {f"{SHOP}.jwks_file": message}


def test_a_fixed_key_set_that_is_not_there(folder):
    """
    A file that cannot be read stops the start.
    """
    (folder / "provider.jwks.json").unlink()

    assert problems(folder) == {f"{SHOP}.jwks_file": "cannot be read: No such file or directory"}


def test_a_key_of_a_provider_needs_no_kid(folder):
    """
    Where it is the only one for its algorithm.
    """
    write(folder, "provider.jwks.json", jwk("rsa-1", kid=DROP))

    assert set(build(folder).workspace("acme").connections[0].provider.keys) == {"RS256"}


@pytest.mark.parametrize("file", ["main", "subjects"])
def test_no_key_of_a_provider_is_anybody_elses(folder, file):
    """
    Whoever can sign as a client would sign customers in, and the other way about.
    """
    entry = json.loads((folder / f"{file}.jwks.json").read_text(encoding="utf-8"))["keys"][0]
    write(folder, "provider.jwks.json", "rsa-1", {**entry, "kid": "renamed"})

    assert "that another party or role has as well" in problems(folder)[f"{SHOP}.jwks_file"]


def test_no_two_providers_have_one_key(folder):
    """
    A token of one would pass for a token of the other, but for what it says of itself.
    """
    second = (
        'issuer = "https://login.bank.example/"',
        'issuer = "https://login.bank.example/"\n    jwks_file = "bank.jwks.json"',
    )
    write(folder, "bank.jwks.json", jwk("rsa-1", kid="other"))

    assert list(problems(folder, second)) == [f"{BANK}.jwks_file"]
