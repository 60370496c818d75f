"""
What must hold between the fields of a configuration ("Who may ask for what"; D3, D8, D13).
"""

from hashlib import sha256

import pytest

from issuer.settings import SettingsError, load_settings, settings_warnings
from issuer.settings_rules import Ownership, violations

DIGEST = sha256(b"one generated secret").hexdigest()
OTHER = sha256(b"another generated secret").hexdigest()
HEAD = """\
origin = "https://id.example.com"
data_dir = "data"
sealing_keys = [{id = "a", file = "a"}, {id = "b", file = "b"}]
shared_audiences = []
"""
ACME = """
[[workspaces]]
name = "acme"
path = "/w/acme"
  [[workspaces.connections]]
  name = "shop"
  namespace = "shop-login"
  audiences = ["https://shop.example", "https://shop.example/v2"]
  scopes = ["orders:read"]
  actions = [
    {name = "cancel_order", audience = "https://shop.example", scopes = ["orders:write"]},
    {name = "refund", audience = "https://shop.example/v2", scopes = ["orders:write", "refunds"]},
  ]
  [[workspaces.connections]]
  name = "bank"
  namespace = "bank-login"
  audiences = ["https://bank.example"]
  scopes = ["accounts:read"]
  actions = [{name = "transfer", audience = "https://bank.example", selector = "account"}]
  [[workspaces.clients]]
  client_id = "orc_main"
  jwks_file = "main.json"
  subject_jwks_file = "subjects.json"
  connections = ["shop"]
  agents = ["agt_support"]
  scopes = ["orders:read", "orders:write"]
  actions = ["cancel_order"]
  [[workspaces.admins]]
  name = "secops"
  jwks_file = "admin.json"
  permissions = ["keys:read"]
"""
BETA = f"""
[[workspaces]]
name = "beta"
path = "/w/beta"
  [[workspaces.connections]]
  name = "shop"
  namespace = "shop-login"
  audiences = ["https://beta.example"]
  [[workspaces.clients]]
  client_id = "orc_beta"
  secret_sha256 = ["{DIGEST}"]
  subject_jwks_file = "subjects.json"
  connections = ["shop"]
  agents = ["agt_support"]
  [[workspaces.admins]]
  name = "secops"
  secret_sha256 = ["{OTHER}"]
  permissions = ["keys:read"]
"""
CLIENT = "workspaces[0].clients[0]"
SHOP = "workspaces[0].connections[0]"


def load(folder, *edits):
    text = HEAD + ACME + BETA
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "c.toml").write_text(text, encoding="utf-8")
    return load_settings(folder / "c.toml", {})


def test_a_consistent_configuration_breaks_no_rule(tmp_path):
    """
    Two workspaces with actions that share a scope, keys here and secrets there, are in order.
    """
    settings = load(tmp_path)

    assert list(violations(settings)) == []
    assert settings_warnings(settings) == ()


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (('id = "b"', 'id = "a"'), "sealing_keys[1].id"),
        (('name = "beta"', 'name = "acme"'), "workspaces[1].name"),
        (('path = "/w/beta"', 'path = "/w/acme"'), "workspaces[1].path"),
        (('path = "/w/beta"', 'path = "/w/acme/oauth"'), "workspaces[1].path"),
        (('path = "/w/beta"', 'path = "/w/acme/.well-known/x"'), "workspaces[1].path"),
        (('path = "/w/beta"', 'path = "/health"'), "workspaces[1].path"),
        (('path = "/w/beta"', 'path = "/metrics/w"'), "workspaces[1].path"),
        (('path = "/w/beta"', 'path = "/.well-known"'), "workspaces[1].path"),
        (("https://beta.example", "https://shop.example"), "workspaces[1].connections[0].audiences[0]"),
        (('name = "bank"', 'name = "shop"'), "workspaces[0].connections[1].name"),
        (
            ('"https://bank.example"]', '"https://bank.example", "https://shop.example"]'),
            "workspaces[0].connections[1].audiences[1]",
        ),
        (('name = "transfer"', 'name = "refund"'), "workspaces[0].connections[1].actions[0].name"),
        (('audience = "https://shop.example"', 'audience = "https://bank.example"'), f"{SHOP}.actions[0].audience"),
        (('scopes = ["orders:write"]}', 'scopes = ["orders:read"]}'), f"{SHOP}.actions[0].scopes[0]"),
        (
            (
                'namespace = "bank-login"\n',
                'namespace = "bank:login"\n',
            ),
            "workspaces[0].connections[1].actions[0].selector",
        ),
        (('jwks_file = "main.json"', ""), CLIENT),
        (('jwks_file = "main.json"', f'jwks_file = "main.json"\nsecret_sha256 = ["{"0" * 64}"]'), CLIENT),
        (('subject_jwks_file = "subjects.json"', ""), CLIENT),
        (('connections = ["shop"]', 'connections = ["shop", "none"]'), f"{CLIENT}.connections[1]"),
        (('actions = ["cancel_order"]', 'actions = ["cancel_order", "transfer"]'), f"{CLIENT}.actions[1]"),
        (('actions = ["cancel_order"]', 'actions = ["cancel_order", "none"]'), f"{CLIENT}.actions[1]"),
        (('"orders:write"]\n', '"orders:write", "refunds"]\n'), f"{CLIENT}.scopes[2]"),
        (('"orders:write"]\n', '"orders:write", "accounts:read"]\n'), f"{CLIENT}.scopes[2]"),
        (('actions = ["cancel_order"]', 'audiences = ["https://bank.example"]'), f"{CLIENT}.audiences[0]"),
        (
            ('actions = ["cancel_order"]', 'actions = ["cancel_order"]\naudiences = ["https://shop.example/v2"]'),
            f"{CLIENT}.actions[0]",
        ),
        (('jwks_file = "admin.json"', ""), "workspaces[0].admins[0]"),
        (
            ('name = "secops"\n  jwks', 'name = "secops"\n  secret_sha256 = ["' + "0" * 64 + '"]\n  jwks'),
            "workspaces[0].admins[0]",
        ),
        ((f'["{OTHER}"]', f'["{DIGEST}"]'), "workspaces[1].admins[0].secret_sha256[0]"),
        (
            (f'secret_sha256 = ["{DIGEST}"]', f'secret_sha256 = ["{DIGEST}"]\nrequire_actor_token = true'),
            "workspaces[1].clients[0].require_actor_token",
        ),
    ],
)
def test_a_broken_rule_stops_the_start(tmp_path, edit, where):
    """
    Each rule that is broken is reported at the field that breaks it, with a line.
    """
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, edit)

    assert where in [each.where for each in caught.value.problems]
    assert all(each.line for each in caught.value.problems)


def test_a_root_workspace_reserves_its_routes(tmp_path):
    """
    A workspace at the root and one below it live together unless the path of the second is a route of the first.
    """
    root = ('path = "/w/acme"', 'path = ""')

    settings = load(tmp_path, root)

    assert [each.path for each in settings.workspaces] == ["", "/w/beta"]
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, root, ('path = "/w/beta"', 'path = "/admin"'))
    assert [each.where for each in caught.value.problems] == ["workspaces[1].path"]


def test_a_route_name_deep_in_a_path_is_no_collision(tmp_path):
    """
    A segment is only taken where a workspace stands right above it.
    """
    settings = load(tmp_path, ('path = "/w/beta"', 'path = "/w/oauth"'))

    assert settings.workspaces[1].path == "/w/oauth"


def test_two_workspaces_share_an_audience_that_is_allowed(tmp_path):
    """
    The operator's allow-list lets two workspaces name one audience (D13).
    """
    settings = load(
        tmp_path,
        ("shared_audiences = []", 'shared_audiences = ["https://shop.example"]'),
        ("https://beta.example", "https://shop.example"),
    )

    assert settings.workspaces[1].connections[0].audiences == ("https://shop.example",)
    assert settings_warnings(settings) == ()


def test_one_party_may_use_one_secret_in_several_workspaces(tmp_path):
    """
    The same client in another workspace is one party with one secret; another name with it is not.
    """
    proof = ('jwks_file = "main.json"', f'secret_sha256 = ["{DIGEST}"]')

    same = load(tmp_path, proof, ('client_id = "orc_beta"', 'client_id = "orc_main"'))

    assert same.workspaces[1].clients[0].client_id == "orc_main"
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, proof)
    assert [each.where for each in caught.value.problems] == ["workspaces[1].clients[0].secret_sha256[0]"]


def test_a_client_may_be_narrowed_to_some_audiences(tmp_path):
    """
    Audiences that a client lists must be among those of its connections, and its actions must fit them.
    """
    settings = load(
        tmp_path, ('actions = ["cancel_order"]', 'actions = ["cancel_order"]\naudiences = ["https://shop.example"]')
    )

    assert settings.workspaces[0].clients[0].audiences == ("https://shop.example",)


def test_the_number_of_clients_is_bounded(tmp_path, monkeypatch):
    """
    All workspaces together have a bounded number of clients.
    """
    monkeypatch.setattr("issuer.settings_rules._MAX_CLIENTS", 1)

    with pytest.raises(SettingsError) as caught:
        load(tmp_path)

    assert [each.where for each in caught.value.problems] == ["workspaces"]


def test_what_is_seldom_meant_is_a_warning(tmp_path):
    """
    An audience that ends in a slash, a workspace without clients and an unused allowance start, with a warning each.
    """
    settings = load(
        tmp_path,
        ("shared_audiences = []", 'shared_audiences = ["https://unused.example"]'),
        ('https://bank.example"]\n', 'https://bank.example/"]\n'),
        ('audience = "https://bank.example"', 'audience = "https://bank.example/"'),
    )
    without = load(tmp_path, (BETA[BETA.index("  [[workspaces.clients]]") : BETA.index("  [[workspaces.admins]]")], ""))

    assert [each.where for each in settings_warnings(settings)] == [
        "workspaces[0].connections[1].audiences[0]",
        "shared_audiences[0]",
    ]
    assert [each.where for each in settings_warnings(without)] == ["workspaces[1]"]


@pytest.mark.parametrize(
    ("leave", "named", "warned"),
    [
        ("keys_redis_allow_volatile", "", True),
        ("keys_redis_allow_volatile", "redis_url", False),
        ("keys_redis_allow_volatile", "keys_redis_url", False),
        ("redis_allow_eviction", "", True),
        ("redis_allow_eviction", "redis_url", False),
        ("redis_allow_eviction", "keys_redis_url", True),
    ],
)
def test_leave_to_forget_without_that_redis_is_a_warning(leave, named, warned, tmp_path):
    """
    Files forget nothing, and nothing of what was used is kept where the keys alone are.
    """
    line = named and f'{named} = "redis://db"'

    settings = load(tmp_path, ("shared_audiences = []", f"{leave} = true\n{line}"))

    assert [each.where for each in settings_warnings(settings)] == [leave] * warned


def test_a_credential_belongs_to_one_party_in_one_role():
    """
    The same party in the same role may show up again; another party or role may not.
    """
    ownership = Ownership()

    assert not ownership.is_foreign("k", "client", "orc_main")
    assert not ownership.is_foreign("k", "client", "orc_main")
    assert ownership.is_foreign("k", "subject", "orc_main")
    assert ownership.is_foreign("k", "client", "orc_other")
    assert not ownership.is_foreign("other", "client", "orc_other")
