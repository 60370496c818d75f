"""
Reading the configuration: the file, the environment over it, and everything that stops the start.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from issuer.settings import CONFIG_VARIABLE, OPTION_VARIABLES, SettingsError, load_settings, settings_warnings

KID = "g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA"
DIGEST = sha256(b"a generated secret").hexdigest()
DESIGN = f"""\
origin = "https://id.example.com"
data_dir = "/var/lib/customer-context"
redis_url = ""

[[sealing_keys]]
id = "2026-11"
file = "/run/secrets/sealing-2026-11"

[[workspaces]]
name = "acme"
path = "/w/acme"

  [[workspaces.connections]]
  name = "shop"
  namespace = "shop-login"
  audiences = ["https://api.shop.example"]
  scopes = ["orders:read"]

    [[workspaces.connections.actions]]
    name = "cancel_order"
    audience = "https://api.shop.example"
    scopes = ["orders:write"]
    confirmation = "client"

  [[workspaces.clients]]
  client_id = "orc_main"
  jwks_file = "orc_main.jwks.json"
  subject_jwks_file = "orc_main.subjects.jwks.json"
  connections = ["shop"]
  agents = ["agt_support"]
  scopes = ["orders:read", "orders:write"]
  actions = ["cancel_order"]
  max_asserted_level = "standard"

  [[workspaces.admins]]
  name = "secops"
  secret_sha256 = ["{DIGEST}"]
  permissions = ["keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"]
"""


def load(folder, *edits, environ=None):
    """
    Write the configuration of the design with some edits, each of which must apply, and load it.
    """
    text = DESIGN
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file = folder / "c.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file, environ or {})


def problems(folder, *edits, environ=None):
    """
    Load a configuration that must be refused; return where and on which line the problems are.
    """
    with pytest.raises(SettingsError) as caught:
        load(folder, *edits, environ=environ)
    return [(each.where, each.line) for each in caught.value.problems]


def test_the_shape_of_the_design_is_read(tmp_path):
    """
    A whole configuration is read, with the safe choice for everything that it leaves out.
    """
    settings = load(tmp_path)

    client = settings.workspaces[0].clients[0]
    assert settings.origin == "https://id.example.com"
    assert settings.data_dir == Path("/var/lib/customer-context")
    assert settings.log_level == "info"
    assert settings.log_format == "json"
    assert (settings.jwks.max_age_s, settings.jwks.stale_if_error_s) == (120, 120)
    assert (settings.limits.client_per_second, settings.limits.client_burst) == (100, 200)
    assert (settings.limits.customer_per_minute, settings.limits.wrong_secrets_per_minute) == (120, 10)
    assert settings.trusted_proxies == ()
    assert client.subject_tokens == ("asserted",)
    assert client.max_asserted_level == "standard"
    assert client.require_actor_token is False
    assert client.audiences is None
    assert settings_warnings(settings) == ()


def test_what_is_said_about_keys_is_read(tmp_path):
    """
    A Redis for everything, one for the rings, whether they may forget, and keys that are revoked by hand.
    """
    settings = load(
        tmp_path,
        ('redis_url = ""', 'redis_url = "redis://db"\nkeys_redis_url = "rediss://u:hunter2@keys"'),
        ('path = "/w/acme"', f'path = "/w/acme"\nrevoked_kids = ["{KID}"]'),
        environ={
            "CUSTOMER_CONTEXT_KEYS_REDIS_ALLOW_VOLATILE": "true",
            "CUSTOMER_CONTEXT_REDIS_ALLOW_EVICTION": "true",
        },
    )

    assert settings.redis_url.get_secret_value() == "redis://db"
    assert settings.keys_redis_url.get_secret_value() == "rediss://u:hunter2@keys"
    assert settings.keys_redis_allow_volatile is True
    assert settings.redis_allow_eviction is True
    assert settings.workspaces[0].revoked_kids == (KID,)
    assert "hunter2" not in repr(settings)
    assert settings_warnings(settings) == ()


def test_defaults_are_the_safe_choice(tmp_path):
    """
    Without a word about it an action needs the client's confirmation, and a client asserts no more than standard.
    """
    settings = load(tmp_path, ('confirmation = "client"\n', ""), ('max_asserted_level = "standard"\n', ""))

    assert settings.workspaces[0].connections[0].actions[0].confirmation == "client"
    assert settings.workspaces[0].clients[0].max_asserted_level == "standard"


def test_relative_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    """
    Paths in the file start at its folder, wherever the process was started from.
    """
    monkeypatch.chdir("/")

    settings = load(tmp_path, ('"/var/lib/customer-context"', '"data"'))

    assert settings.data_dir == tmp_path / "data"
    assert settings.workspaces[0].clients[0].jwks_file == tmp_path / "orc_main.jwks.json"
    assert settings.sealing_keys[0].file == Path("/run/secrets/sealing-2026-11")


def test_settings_cannot_be_changed_and_show_no_credentials(tmp_path):
    """
    Settings are frozen at every depth, and their repr has no digest of a secret in it.
    """
    settings = load(tmp_path)

    with pytest.raises(ValueError):
        settings.origin = "https://other.example"
    with pytest.raises(ValueError):
        settings.workspaces[0].admins[0].name = "other"
    assert DIGEST not in repr(settings)


def test_the_file_can_be_named_by_the_environment(tmp_path):
    """
    CUSTOMER_CONTEXT_CONFIG names the file where no option does.
    """
    load(tmp_path)

    settings = load_settings(None, {CONFIG_VARIABLE: str(tmp_path / "c.toml")})

    assert settings.origin == "https://id.example.com"


@pytest.mark.parametrize("environ", [{}, {CONFIG_VARIABLE: ""}], ids=["absent", "empty"])
def test_a_start_without_a_file_is_refused(environ):
    """
    Nothing is guessed where no file is named.
    """
    with pytest.raises(SettingsError):
        load_settings(None, environ)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (None, None),
        (b'origin = "\xff"', 1),
        (b'\norigin = "\xff"', 2),
        (b"\na = [", None),
        (b"\na = 1 2\n", 2),
        (b"#" * (16 * 2**20 + 1), None),
        (b"a = " + b"[" * 20_000, None),
        (b"a = " + b"9" * 5000, None),
        (b".".join([b"a"] * 5000) + b" = 1", None),
    ],
    ids=[
        "missing",
        "not UTF-8",
        "not UTF-8 further down",
        "TOML cut short",
        "not TOML",
        "huge",
        "deep",
        "many digits",
        "dotted deep",
    ],
)
def test_a_file_that_cannot_be_read_stops_the_start(tmp_path, body, line):
    """
    A file that is missing, too large or no TOML is an error that names the file, not a configuration of defaults.
    """
    file = tmp_path / "c.toml"
    if body is not None:
        file.write_bytes(body)

    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})

    assert str(caught.value).startswith(str(file))
    assert [each.line for each in caught.value.problems] == [line]


def test_variables_of_options_are_no_settings(tmp_path):
    """
    What the command reads for its options does not count as an unknown variable.
    """
    settings = load(tmp_path, environ=dict.fromkeys(OPTION_VARIABLES, "127.0.0.1"))

    assert settings.origin == "https://id.example.com"


def test_variables_stand_over_the_file(tmp_path):
    """
    A variable replaces a value of the file, one member of a table with two underscores, an array as JSON.
    """
    environ = {
        "CUSTOMER_CONTEXT_ORIGIN": "https://other.example",
        "CUSTOMER_CONTEXT_DATA_DIR": "/elsewhere",
        "CUSTOMER_CONTEXT_JWKS__MAX_AGE_S": "60",
        "CUSTOMER_CONTEXT_LIMITS__CLIENT_PER_SECOND": "0",
        "CUSTOMER_CONTEXT_TRUSTED_PROXIES": '["10.0.0.0/8"]',
        "CUSTOMER_CONTEXT_SEALING_KEYS": json.dumps([{"id": "k", "file": "/run/secrets/k"}]),
        "UNRELATED": "1",
    }

    settings = load(tmp_path, ("[[sealing_keys]]", "[jwks]\nstale_if_error_s = 0\n[[sealing_keys]]"), environ=environ)

    assert settings.origin == "https://other.example"
    assert settings.data_dir == Path("/elsewhere")
    assert (settings.jwks.max_age_s, settings.jwks.stale_if_error_s) == (60, 0)
    assert (settings.limits.client_per_second, settings.limits.client_burst) == (0, 200)
    assert settings.trusted_proxies == ("10.0.0.0/8",)
    assert [each.id for each in settings.sealing_keys] == ["k"]
    assert settings.workspaces[0].name == "acme"


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("CUSTOMER_CONTEXT_ORIGN", "https://id.example.com", "CUSTOMER_CONTEXT_ORIGN"),
        ("CUSTOMER_CONTEXT_origin", "https://id.example.com", "CUSTOMER_CONTEXT_origin"),
        ("customer_context_origin", "https://id.example.com", "customer_context_origin"),
        ("CUSTOMER_CONTEXT_ORIGIN__HOST", "id.example.com", "CUSTOMER_CONTEXT_ORIGIN__HOST"),
        ("CUSTOMER_CONTEXT_WORKSPACES__0__NAME", "acme", "CUSTOMER_CONTEXT_WORKSPACES__0__NAME"),
        ("CUSTOMER_CONTEXT_JWKS__MAX_AGE", "60", "CUSTOMER_CONTEXT_JWKS__MAX_AGE"),
        ("CUSTOMER_CONTEXT_JWKS__MAX_AGE_S", "soon", "CUSTOMER_CONTEXT_JWKS__MAX_AGE_S"),
        ("CUSTOMER_CONTEXT_LIMITS__CLIENT_BURST", "0", "CUSTOMER_CONTEXT_LIMITS__CLIENT_BURST"),
        ("CUSTOMER_CONTEXT_TRUSTED_PROXIES", '["*"]', "CUSTOMER_CONTEXT_TRUSTED_PROXIES [0]"),
        ("CUSTOMER_CONTEXT_WORKSPACES", "[", "CUSTOMER_CONTEXT_WORKSPACES"),
        pytest.param("CUSTOMER_CONTEXT_WORKSPACES", "[" * 20_000, "CUSTOMER_CONTEXT_WORKSPACES", id="deep"),
        ("CUSTOMER_CONTEXT_WORKSPACES", "[]", "CUSTOMER_CONTEXT_WORKSPACES"),
        ("CUSTOMER_CONTEXT_ORIGIN", "", "CUSTOMER_CONTEXT_ORIGIN"),
        ("CUSTOMER_CONTEXT_DATA_DIR", "data", "CUSTOMER_CONTEXT_DATA_DIR"),
        ("CUSTOMER_CONTEXT_JWKS", '{"max_age_s": true}', "CUSTOMER_CONTEXT_JWKS max_age_s"),
    ],
)
def test_a_variable_that_is_unknown_or_wrong_stops_the_start(tmp_path, name, value, where):
    """
    A misspelt variable is refused, not ignored, and the problem names the variable instead of a line of the file.
    """
    assert problems(tmp_path, environ={name: value}) == [(where, None)]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (("redis_url", "_env_file"), ("_env_file", 3)),
        (("redis_url", "token_lifetime_s"), ("token_lifetime_s", 3)),
        (('name = "shop"', 'name = "shop"\n  trusted = true'), ("workspaces[0].connections[0].trusted", 15)),
    ],
    ids=["option of the library", "lifetime", "in a table"],
)
def test_an_unknown_key_stops_the_start(tmp_path, edit, problem):
    """
    A key that is not known is refused with its line, at any depth; the lifetime of tokens is none that could be set.
    """
    assert problems(tmp_path, edit) == [problem]


def test_a_misspelt_key_is_answered_with_the_right_one(tmp_path):
    """
    The message for an unknown key names the known one that is closest.
    """
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, ("audiences =", "audience ="), ("namespace =", "namespaces ="))

    assert "did you mean namespace?" in str(caught.value)


def test_a_key_of_another_table_is_not_answered_with_itself(tmp_path):
    """
    Whoever leaves out a header, as of a table that stands behind #, is told that it is the table that is wrong.
    """
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, ('redis_url = ""', "client_burst = 5"))

    assert [str(each) for each in caught.value.problems] == [
        "line 3: client_burst: belongs into another table than the one that this line is in"
    ]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (('"https://id.example.com"', '"http://id.example.com"'), ("origin", 1)),
        (('redis_url = ""', 'redis_url = "http://user:hunter2@db"'), ("redis_url", 3)),
        (('redis_url = ""', 'keys_redis_url = "redis://hunter2@db"'), ("keys_redis_url", 3)),
        (('redis_url = ""', "keys_redis_allow_volatile = 1"), ("keys_redis_allow_volatile", 3)),
        (('redis_url = ""', "limits.client_per_second = -1"), ("limits.client_per_second", 3)),
        (('redis_url = ""', "limits.client_per_second = 10_001"), ("limits.client_per_second", 3)),
        (('redis_url = ""', "limits.client_burst = 0"), ("limits.client_burst", 3)),
        (('redis_url = ""', "limits.client_burst = 10_001"), ("limits.client_burst", 3)),
        (('redis_url = ""', "limits.customer_per_minute = true"), ("limits.customer_per_minute", 3)),
        (('redis_url = ""', "limits.customer_per_minute = 10_001"), ("limits.customer_per_minute", 3)),
        (('redis_url = ""', "limits.wrong_secrets_per_minute = 101"), ("limits.wrong_secrets_per_minute", 3)),
        (('redis_url = ""', "limits.wrong_secrets_per_minute = 9.5"), ("limits.wrong_secrets_per_minute", 3)),
        (('redis_url = ""', "limits.per_minute = 9"), ("limits.per_minute", 3)),
        (('redis_url = ""', 'trusted_proxies = ["10.0.0.1/8"]'), ("trusted_proxies[0]", 3)),
        (('redis_url = ""', 'trusted_proxies = ["::1", "::1"]'), ("trusted_proxies", 3)),
        (('redis_url = ""', f"trusted_proxies = {[f'10.0.0.{n}' for n in range(65)]}"), ("trusted_proxies", 3)),
        (('redis_url = ""', 'keys_redis_allow_volatile = "yes"'), ("keys_redis_allow_volatile", 3)),
        (('redis_url = ""', "redis_allow_eviction = 1"), ("redis_allow_eviction", 3)),
        (('path = "/w/acme"', 'path = "/w/acme"\nrevoked_kids = ["leaked"]'), ("workspaces[0].revoked_kids[0]", 12)),
        (
            ('path = "/w/acme"', f'path = "/w/acme"\nrevoked_kids = {[KID, KID]}'),
            ("workspaces[0].revoked_kids", 12),
        ),
        (('id = "2026-11"', 'id = ""'), ("sealing_keys[0].id", 6)),
        (('name = "acme"', 'name = "Acme"'), ("workspaces[0].name", 10)),
        (('path = "/w/acme"', 'path = "/w/"'), ("workspaces[0].path", 11)),
        (('path = "/w/acme"\n', ""), ("workspaces[0].path", 9)),
        (('"https://api.shop.example"]', '"https://a.example#"]'), ("workspaces[0].connections[0].audiences[0]", 16)),
        (('["https://api.shop.example"]', "[]"), ("workspaces[0].connections[0].audiences", 16)),
        (
            ('["https://api.shop.example"]', json.dumps([f"https://a{number}.example" for number in range(9)])),
            ("workspaces[0].connections[0].audiences", 16),
        ),
        (('["orders:read"]', '["orders:read", "orders:read"]'), ("workspaces[0].connections[0].scopes", 17)),
        (
            ('confirmation = "client"', 'confirmation = "gold"'),
            ("workspaces[0].connections[0].actions[0].confirmation", 23),
        ),
        (
            ('confirmation = "client"', 'confirmation = "customer"'),
            ("workspaces[0].connections[0].actions[0].confirmation", 23),
        ),
        (('["agt_support"]', "[]"), ("workspaces[0].clients[0].agents", 30)),
        (('["agt_support"]', '[":support"]'), ("workspaces[0].clients[0].agents[0]", 30)),
        (('"standard"', '"gold"'), ("workspaces[0].clients[0].max_asserted_level", 33)),
        (
            ('max_asserted_level = "standard"', 'require_actor_token = "false"'),
            ("workspaces[0].clients[0].require_actor_token", 33),
        ),
        (('"orc_main.jwks.json"', '""'), ("workspaces[0].clients[0].jwks_file", 27)),
        (('"audit:read"', '"everything"'), ("workspaces[0].admins[0].permissions[4]", 38)),
        ((f'["{DIGEST}"]', '["hunter2"]'), ("workspaces[0].admins[0].secret_sha256[0]", 37)),
    ],
)
def test_a_value_out_of_bounds_stops_the_start(tmp_path, edit, problem):
    """
    Each field has its form and bounds, and the problem names the field and its line, never the value.
    """
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, edit)

    assert [(each.where, each.line) for each in caught.value.problems] == [problem]
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('redis_url = ""', 'trusted_proxies = "10.0.0.1"'), "must be a list"),
        (('["https://api.shop.example"]', "[3]"), "must be a string"),
        (('redis_url = ""', "limits = 3"), "must be a table"),
        (('redis_url = ""', 'limits.client_burst = "many"'), "must be a whole number"),
        (('redis_url = ""', "limits.client_burst = 9.5"), "must be a whole number"),
        (('redis_url = ""', "limits.client_burst = []"), "must be a whole number"),
        (('redis_url = ""', 'redis_allow_eviction = "yes"'), "must be true or false"),
        (('"orc_main.jwks.json"', "3"), "must be a path"),
        (('namespace = "shop-login"', 'namespace = "shop-login"\nprovider = {acr = 3}'), "must be a table"),
    ],
)
def test_a_value_of_another_type_is_answered_in_words_of_toml(tmp_path, edit, message):
    """
    Nobody has to know what Python calls a list or a table.
    """
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, edit)

    assert message in {each.message for each in caught.value.problems}


def test_all_problems_are_reported_at_once(tmp_path):
    """
    Problems of the file and of the environment come together, in the order of the file.
    """
    found = problems(
        tmp_path,
        ("https://id", "http://id"),
        ('name = "shop"', 'name = ""'),
        ('"standard"', '"gold"'),
        environ={"CUSTOMER_CONTEXT_X": "1"},
    )

    assert found == [
        ("CUSTOMER_CONTEXT_X", None),
        ("origin", 1),
        ("workspaces[0].connections[0].name", 14),
        ("workspaces[0].clients[0].max_asserted_level", 33),
    ]
