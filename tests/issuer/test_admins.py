"""
Who is let in to administer: a secret or an assertion of an admin's own, for one call, and nothing else.
"""

import asyncio
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import count

import pytest

from issuer.admins import AdminAuthentication, AdminRefused, check_permission
from issuer.limits import Rates
from issuer.limits_memory import MemoryLimits
from issuer.registry import Admin
from issuer.state import MemoryAssertionIds
from issuer.wrong_secrets import WrongSecrets

from .world import DROP, NOW, ORIGIN, basic, changed, public_keys, registry, signed

ISSUER = f"{ORIGIN}/w/acme"
URL = f"{ISSUER}/admin/keys/rotate"
ADMINS = (
    Admin(
        name="secops",
        secret_sha256=(bytes(32), sha256(b"s:1+ /%").digest(), sha256(b"s2").digest()),
        permissions=frozenset({"keys:read"}),
    ),
    Admin(name="robot", keys=public_keys("admin-1", "admin-2"), permissions=frozenset({"keys:read", "keys:rotate"})),
)
NUMBERS = count()


class Clock:
    at = float(NOW)

    def __call__(self):
        return self.at


class Broken:
    async def use(self, *_asked):
        raise OSError("secret-marked-1")


class Vague:
    async def use(self, *_asked):
        return 1


def nobody(_event, **_facts):
    """
    Listen to no report.
    """


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def workspace():
    acme = registry().workspace("acme")
    return replace(acme, admins={admin.name: admin for admin in ADMINS})


@pytest.fixture
def ids(clock):
    return MemoryAssertionIds(clock)


@pytest.fixture
def enter(workspace, clock, ids):
    """
    Authenticate a call, and tell the name of the admin or the refusal.
    """

    def enter(*authorization, method="POST", url=URL, ids=ids):
        wrong_secrets = WrongSecrets("acme", MemoryLimits(Rates(), clock), nobody)
        authentication = AdminAuthentication(workspace, ids, wrong_secrets, clock)
        entering = authentication.authenticate(authorization, method=method, url=url, source="198.51.100.1")
        try:
            return asyncio.run(entering).name
        except AdminRefused as refused:
            return refused.refusal, refused.reason, refused.scheme, refused.admin

    return enter


def assertion(*, typ="caplo-admin+jwt", key="admin-1", header=(), **changes):
    claims = {
        "iss": "robot",
        "sub": "robot",
        "aud": ISSUER,
        "iat": NOW,
        "exp": NOW + 60,
        "jti": f"jti-{next(NUMBERS)}",
        "htm": "POST",
        "htu": URL,
    }
    return f"Bearer {signed(changed(claims, changes), typ=typ, key=key, header=header)}"


def refused(reason, admin="robot"):
    return ("unauthenticated", f"assertion:{reason}", "bearer", admin)


@pytest.mark.parametrize("secret", ["s:1+ /%", "s2"])
def test_a_secret_of_an_admin_lets_in(enter, secret):
    """
    Each configured one does, name and secret form-encoded as at the token endpoint.
    """
    assert enter(basic("secops", secret)) == "secops"
    assert enter(basic("secops", secret).replace("Basic", "bAsIc  ")) == "secops"


@pytest.mark.parametrize(
    ("authorization", "named"),
    [
        (basic("secops", "s3"), "secops"),
        (basic("secops", "S2"), "secops"),
        (basic("nobody", "s2"), None),
        (basic("robot", "s2"), "robot"),
        (basic("orc_basic", "secret-1"), None),
        ("Basic " + b64encode(b"secops:").decode(), None),
        ("Basic " + b64encode(b"secops").decode(), None),
        ("Basic " + b64encode(b"secops:%zz").decode(), None),
        ("Basic " + b64encode(b"secops:\xff").decode(), None),
        ("Basic !", None),
        ("Basic", None),
        (f"{basic('secops', 's2')}, {basic('secops', 's2')}", None),
        ("Basic " + "A" * 2052, None),
    ],
)
def test_another_secret_does_not(enter, authorization, named):
    """
    A wrong one, that of nobody, that of an admin with keys or of a client, and what is no credential are refused alike.
    """
    assert enter(authorization) == ("unauthenticated", "credentials", "basic", named)


def test_one_credential_is_needed(enter):
    """
    None is no authentication; two are malformed, also when both are right; other schemes are not offered.
    """
    assert enter() == ("unauthenticated", "missing", None, None)
    assert enter("") == ("unauthenticated", "missing", None, None)
    assert enter("Digest x") == ("unauthenticated", "scheme", None, None)
    assert enter("DPoP x") == ("unauthenticated", "scheme", None, None)
    assert enter(basic("secops", "s2"), basic("secops", "s2")) == ("malformed", "two_credentials", None, None)
    assert enter(basic("secops", "s2"), assertion()) == ("malformed", "two_credentials", None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"key": "admin-2"},
        {"header": {"kid": DROP}},
        {"header": {"typ": "Caplo-Admin+JWT"}},
        {"aud": [ISSUER]},
        {"exp": NOW + 1},
        {"iat": NOW - 30, "exp": NOW + 30},
        {"iat": NOW + 5},
        {"extra": {"claim": 1}},
    ],
)
def test_an_assertion_of_an_admin_lets_in(enter, changes):
    """
    One that is signed by one of its keys, for this issuer and this very call, alive for a minute at most.
    """
    assert enter(assertion(**changes)) == "robot"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"typ": "JWT"}, "type"),
        ({"typ": None}, "type"),
        ({"header": {"typ": DROP}}, "type"),
        ({"typ": "at+jwt"}, "type"),
        ({"typ": "client-authentication+jwt"}, "type"),
        ({"typ": "caplo-subject+jwt"}, "type"),
        ({"typ": "application/caplo-admin+jwt"}, "type"),
        ({"header": {"alg": "none"}}, "algorithm"),
        ({"key": "client-1", "header": {"kid": DROP}}, "signature"),
        ({"key": "client-1"}, "key"),
        ({"key": "client-1", "header": {"kid": "admin-1"}}, "signature"),
        ({"aud": URL}, "audience"),
        ({"aud": ORIGIN}, "audience"),
        ({"aud": [ISSUER, ORIGIN]}, "audience"),
        ({"aud": DROP}, "audience"),
        ({"iss": "secops"}, "issuer"),
        ({"iss": DROP}, "iss"),
        ({"exp": NOW}, "expired"),
        ({"exp": DROP}, "expired"),
        ({"exp": NOW + 61, "iat": NOW + 1}, "lifetime"),
        ({"exp": NOW + 40, "iat": NOW - 21}, "lifetime"),
        ({"exp": NOW + 1, "iat": NOW + 2}, "lifetime"),
        ({"exp": NOW + 301}, "lifetime"),
        ({"iat": DROP}, "iat"),
        ({"iat": NOW + 6}, "not_yet_valid"),
        ({"nbf": NOW + 6}, "not_yet_valid"),
        ({"jti": DROP}, "jti"),
        ({"jti": ""}, "jti"),
        ({"jti": 7}, "jti"),
        ({"htm": DROP}, "htm"),
        ({"htm": "post"}, "htm"),
        ({"htm": "GET"}, "htm"),
        ({"htm": ["POST"]}, "htm"),
        ({"htu": DROP}, "htu"),
        ({"htu": [URL]}, "htu"),
    ],
)
def test_any_other_assertion_does_not(enter, changes, reason):
    """
    D7: another kind, key, audience, name, time or call is refused, and so is what is not there.
    """
    assert enter(assertion(**changes)) == refused(reason)


@pytest.mark.parametrize("sub", ["nobody", "secops", "orc_main", 7, DROP])
def test_a_name_that_has_no_such_key_is_refused(enter, sub):
    """
    An unknown admin, one with a secret, a client and no name at all.
    """
    name, said = ("secops", "secops") if sub == "secops" else (None, sub)

    assert enter(assertion(sub=said, iss=said)) == refused("key", name)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "a b", "x" * 9000, "\u00e9.e.e"])
def test_what_is_no_token_is_refused(enter, token):
    """
    A Bearer credential that is no compact JWS.
    """
    assert enter(f"Bearer {token}") == refused("malformed", None)


@pytest.mark.parametrize(
    "htu",
    [
        URL,
        f"{URL}?x=1",
        f"{URL}#x",
        f"HTTPS://ISSUER.TEST:443{URL.removeprefix(ORIGIN)}",
        URL.replace("admin", "%61dmin"),
    ],
)
def test_an_address_is_compared_in_its_normal_form(enter, htu):
    """
    RFC 9449 section 4.3: query and fragment are ignored, case of scheme and host, the default port and needless escapes too.
    """
    assert enter(assertion(htu=htu)) == "robot"


@pytest.mark.parametrize(
    "htu",
    [
        f"{URL}/",
        URL.upper(),
        URL.replace("https", "http"),
        URL.replace(".test", ".test:444"),
        URL.replace(".test", ".test:x"),
        URL.replace("https://", "https://user@"),
        URL.replace("https://", "https://:pw@"),
        URL.replace("rotate", "revoke-all"),
        URL.replace("/w/acme", ""),
        URL.replace("/w/acme", "/w/other/../acme"),
        URL.replace("admin/keys", "admin%2Fkeys"),
        URL.removeprefix(ORIGIN),
        "https://[::1",
        "",
        f"{URL}\n",
        f"{URL}\u00e9",
    ],
)
def test_another_address_is_another_call(enter, htu):
    """
    Any other path, port, host, scheme or workspace.
    """
    assert enter(assertion(htu=htu)) == refused("htu")


def test_the_root_has_one_spelling_of_its_path(enter):
    """
    RFC 3986 section 6.2.3: an empty path is `/`.
    """
    assert enter(assertion(htu=ORIGIN), url=f"{ORIGIN}/") == "robot"


def test_an_escape_is_compared_without_regard_to_its_case(enter):
    """
    RFC 3986 section 6.2.2.1; what is escaped for a reason stays another character.
    """
    assert enter(assertion(htu=f"{URL}%2fx"), url=f"{URL}%2Fx") == "robot"
    assert enter(assertion(htu=f"{URL}/x"), url=f"{URL}%2Fx") == refused("htu")


def test_an_assertion_is_used_once(enter, clock):
    """
    The second time it is refused, as long as it lives; after that it has expired.
    """
    once = assertion()

    assert [enter(once), enter(once)] == ["robot", refused("replayed")]
    clock.at += 59.9
    assert enter(once) == refused("replayed")
    clock.at += 0.1
    assert enter(once) == refused("expired")


def test_what_is_refused_is_not_used_up(enter):
    """
    An assertion that was sent to another address by mistake is still good for its own.
    """
    once = assertion()

    assert enter(once, method="GET") == refused("htm")
    assert enter(once) == "robot"


def test_identifiers_of_admins_and_clients_are_kept_apart(enter, ids):
    """
    A client that happens to be called like an admin cannot use up its identifiers.
    """
    asyncio.run(ids.use(ISSUER, "robot", "jti-shared", NOW + 60, NOW))

    assert enter(assertion(jti="jti-shared")) == "robot"


@pytest.mark.parametrize("broken", [Broken(), Vague()])
def test_without_a_clear_answer_of_the_store_nobody_is_let_in(enter, broken):
    """
    A store that fails, or that answers neither True nor False; a secret needs none.
    """
    assert enter(assertion(), ids=broken) == ("cannot_tell", "assertion:cannot_tell", "bearer", "robot")
    assert enter(basic("secops", "s2"), ids=broken) == "secops"


def test_wrong_credentials_keep_nobody_out(enter):
    """
    However many were refused, the right one lets in.
    """
    for _ in range(300):
        enter(basic("secops", "wrong"))
        enter("Bearer x")

    assert enter(basic("secops", "s2")) == "secops"


def test_a_permission_lets_pass_and_its_lack_does_not():
    """
    Exactly what the configuration lists.
    """
    check_permission(ADMINS[1], "keys:rotate")

    with pytest.raises(AdminRefused) as forbidden:
        check_permission(ADMINS[1], "keys:revoke")
    raised = forbidden.value
    assert (raised.refusal, raised.reason, raised.admin, raised.permission) == (
        "forbidden",
        "permission",
        "robot",
        "keys:revoke",
    )
