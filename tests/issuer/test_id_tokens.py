"""
ID tokens and logout tokens of one workspace, verified with the keys of a provider that answers over HTTP.
"""

import asyncio
import json
from pathlib import Path

import pytest

from issuer.id_token_signature import ID_TOKEN_ALGORITHMS
from issuer.id_tokens import IDTokenRefused, IDTokens, ProviderUnavailable
from issuer.provider_key_set import parse_provider_keys
from issuer.provider_keys import ProviderKeys
from verifier.fetch import FetchResponse

from .provider import ALGORITHMS, IdentityProvider, id_token, jwk, key_set, logout_token, provider, workspace
from .site import Clock
from .world import NOW

EVERY = frozenset(ID_TOKEN_ALGORITHMS)
CASES = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
E11 = next(case["input"] for case in CASES if case["id"] == "E11")


class Tokens:
    """
    What verifies under test, on one event loop; time stands still until `clock` is moved.
    """

    def __init__(self, runner, tenant, **options):
        self.clock = Clock(0.0)
        self.runner = runner
        self.keys = ProviderKeys(now=Clock(float(NOW)), monotonic=self.clock, **options)
        self.configure(tenant)

    def configure(self, tenant):
        """
        Go on with another configuration, as after a reload.
        """
        self.tenant = tenant
        self.tokens = IDTokens(tenant, self.keys, monotonic=self.clock)

    def verify(self, token, *, client="orc_main", nonce=None, now=NOW):
        asked = self.tokens.verify(token, client=self.tenant.clients[client], nonce=nonce, now=now)
        return self.runner.run(asked)

    def reason(self, token, **asked):
        with pytest.raises((IDTokenRefused, ProviderUnavailable)) as caught:
            self.verify(token, **asked)
        return caught.value.reason

    def log_out(self, token, now=NOW):
        return self.runner.run(self.tokens.verify_logout(token, now))


@pytest.fixture
def build():
    """
    Build what is under test; what it fetches ends with the test.
    """
    built = []
    with asyncio.Runner() as runner:

        def make(tenant, **options):
            built.append(Tokens(runner, tenant, **options))
            return built[-1]

        yield make
        for each in built:
            runner.run(each.keys.aclose())


@pytest.fixture
def idp():
    """
    Serve an identity provider with a key of each kind.
    """
    site = IdentityProvider("rsa-1", "ec-1", "ed-1", Cache_Control="max-age=600")
    yield site
    site.stop()


@pytest.mark.parametrize("alg", ID_TOKEN_ALGORITHMS)
def test_a_sign_in_and_a_sign_out_by_each_algorithm(build, idp, alg):
    """
    Both kinds of token are verified with the keys that the provider publishes, fetched once.
    """
    tokens = build(workspace(provider(idp.issuer, algorithms=EVERY)))

    verified = tokens.verify(id_token(alg=alg, issuer=idp.issuer, nonce="n-1"), nonce="n-1")
    ended = tokens.log_out(logout_token(alg=alg, issuer=idp.issuer))

    assert (verified.connection.name, verified.sub, verified.level) == ("shop", "248289761001", "standard")
    assert (ended.sub, ended.sid) == (verified.sub, "session-1")
    assert len(idp.asked) == 2


@pytest.mark.parametrize("alg", ID_TOKEN_ALGORITHMS)
def test_a_token_needs_no_kid_where_one_key_fits(build, idp, alg):
    """
    OpenID Connect Core 1.0 section 10.1: with one key for its algorithm none has to be named, with two one has.
    """
    tokens = build(workspace(provider(idp.issuer, algorithms=EVERY)))
    token = id_token(alg=alg, issuer=idp.issuer, header={"kid": ...})

    alone = tokens.verify(token)
    idp.publish("rsa-1", "rsa-2", "ec-1", "ec-2", "ed-1", "ed-2")
    tokens.clock.at = 600
    beside = tokens.reason(token)

    assert alone.sub == "248289761001"
    assert beside == "key"


# E11: an ID token exchanged by a client it was not issued to, as these rules have it; the token endpoint is asked elsewhere.

HERE, ELSEWHERE = E11["idp"], "https://idp.other-customer.test"
OUTCOMES = [None, "client", None, "client", "azp", "audience", "issuer", "algorithm", "algorithm", "expired", "issuer"]


@pytest.mark.parametrize(
    ("row", "outcome"), [*zip(E11["rows"][:-1], OUTCOMES, strict=True)], ids=[f"E11-{n}" for n in range(len(OUTCOMES))]
)
def test_a_token_is_exchanged_by_the_client_it_was_issued_to(build, row, outcome):
    """
    E11: each row by its own reason; with `app-2` being another client's, whoever brings it.
    """
    keys = parse_provider_keys(key_set("rsa-1"), frozenset({"RS256"}))
    tokens = build(workspace(provider(HERE, clients={"app-1": "orc_main", "app-2": "orc_second"}, keys=keys)))
    changes = dict(row["id_token"])
    made = {"issuer": HERE}
    match changes.pop("alg", None):
        case "none":
            made["header"] = {"alg": "none"}
        case "HS256 with client secret":
            made |= {"key": b"secret-1", "header": {"alg": "HS256"}}
    if changes.get("iss") == "other tenant's IdP":
        changes["iss"] = ELSEWHERE
    if changes.get("exp") == "now-1":
        changes["exp"] = NOW - 1
    token = id_token(**made, **changes)

    if outcome is None:
        assert row["result"] == "ok"
        assert tokens.verify(token).audience == E11["allowed_client_of_idp"]
    else:
        assert row["result"].startswith("invalid_request") or "never sub or e-mail alone" in row["result"]
        assert tokens.reason(token) == outcome


def test_a_provider_of_another_tenant_is_a_stranger(build):
    """
    E11: the same issuer, client id and `sub`, configured in another workspace, open nothing in this one.
    """
    keys = parse_provider_keys(key_set("rsa-1"), frozenset({"RS256"}))
    theirs = build(workspace(provider(ELSEWHERE, keys=keys), name="acme"))
    ours = build(workspace(provider(HERE, keys=keys)))
    token = id_token(issuer=ELSEWHERE, sub="admin@customer")

    assert theirs.verify(token).sub == "admin@customer"
    assert ours.reason(token) == "issuer"


def test_a_provider_that_is_down_cannot_be_told(build, idp):
    """
    E11, last row: without keys there is no answer, which is not the same as a bad token; and no customer.
    """
    assert E11["rows"][-1]["idp_jwks"] == "down"
    tokens = build(workspace(provider(idp.issuer)))
    idp.stop()

    assert tokens.reason(id_token(issuer=idp.issuer)) == "keys_unavailable"
    assert tokens.reason(id_token(issuer=idp.issuer, aud="app-2")) == "client"


def test_each_bad_token_has_a_reason_of_its_own(build, idp):
    """
    Another client's, another provider's with the same `sub`, expired, another nonce, unknown key, clock ahead, provider down.
    """
    down = "https://127.0.0.1:1"
    tokens = build(workspace(provider(idp.issuer), provider(down)))
    good = id_token(issuer=idp.issuer)
    bad = {
        "client": id_token(issuer=idp.issuer, aud="app-2"),
        "issuer": id_token(),
        "expired": id_token(issuer=idp.issuer, exp=NOW),
        "too_old": id_token(issuer=idp.issuer, iat=NOW - 400, auth_time=NOW - 500),
        "nonce": id_token(issuer=idp.issuer, nonce="of another sign-in"),
        "key": id_token(issuer=idp.issuer, key="rsa-2"),
        "signature": id_token(issuer=idp.issuer, key="rsa-2", header={"kid": "rsa-1"}),
        "not_yet_valid": id_token(issuer=idp.issuer, iat=NOW + 60),
        "keys_unavailable": id_token(issuer=down),
    }

    assert tokens.verify(good).sub == "248289761001"
    assert {reason: tokens.reason(token) for reason, token in bad.items()} == {reason: reason for reason in bad}


def test_a_token_that_is_refused_by_what_it_says_costs_no_fetch(build, idp):
    """
    Junk cannot make this service ask a provider.
    """
    tokens = build(workspace(provider(idp.issuer)))

    for token in (
        id_token(),
        id_token(issuer=idp.issuer, aud="app-3"),
        id_token(issuer=idp.issuer, exp=NOW),
        id_token(issuer=idp.issuer, alg="ES256"),
        id_token(issuer=idp.issuer, auth_time=...),
        "junk",
    ):
        tokens.reason(token)

    assert idp.asked == []


def test_the_provider_rotates_its_keys(build, idp):
    """
    The next token under the new key is good at once, and the old key is gone with what published it.
    """
    tokens = build(workspace(provider(idp.issuer)))
    tokens.verify(id_token(issuer=idp.issuer))
    idp.publish("rsa-2", Cache_Control="max-age=600")

    tokens.clock.at = 30
    after = tokens.verify(id_token(issuer=idp.issuer, key="rsa-2"))

    assert after.sub == "248289761001"
    assert tokens.reason(id_token(issuer=idp.issuer)) == "key"


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ({"key": jwk("rsa-1")["n"].encode(), "header": {"alg": "HS256", "kid": "rsa-1"}}, "algorithm"),
        ({"key": key_set("rsa-1"), "header": {"alg": "HS256", "kid": "rsa-1"}}, "algorithm"),
        ({"key": "rsa-1", "header": {"alg": "none"}}, "algorithm"),
        ({"key": "ec-1", "alg": "ES256", "header": {"kid": "rsa-1"}}, "key"),
        ({"key": "ed-1", "alg": "EdDSA", "header": {"kid": "ec-1"}}, "key"),
        ({"key": "rsa-1", "alg": "PS256", "header": {"kid": "ec-1"}}, "key"),
        ({"key": "rsa-1", "alg": "PS256", "header": {"alg": "RS256"}}, "signature"),
        ({"key": "rsa-1", "alg": "RS256", "header": {"alg": "PS256"}}, "signature"),
        ({"key": "rsa-3", "alg": "PS256"}, "key"),
        ({"key": "rsa-3", "alg": "PS256", "header": {"alg": "RS256"}}, "signature"),
        ({"key": "ec-1", "alg": "ES256", "header": {"alg": "EdDSA"}}, "key"),
        ({"key": "rsa-1", "header": {"alg": "RS256", "crit": ["exp"]}}, "malformed"),
        ({"key": "rsa-1", "header": {"b64": False, "crit": ["b64"]}}, "malformed"),
        ({"key": "rsa-2", "header": {"jwk": jwk("rsa-2"), "kid": "rsa-1"}}, "signature"),
        ({"key": "rsa-2", "header": {"jwk": jwk("rsa-2")}}, "key"),
    ],
)
def test_no_confusion_of_algorithms(build, idp, token, reason):
    """
    The public key as a secret, no signature, an algorithm of other keys, a key of the token's own (RFC 8725 section 2.1).
    """
    idp.publish("rsa-1", "ec-1", "ed-1", jwk("rsa-3", alg="RS256"))
    tokens = build(workspace(provider(idp.issuer, algorithms=EVERY)))

    assert tokens.reason(id_token(issuer=idp.issuer, **token)) == reason


def test_a_key_that_took_its_time_does_not_lengthen_a_token(build):
    """
    `exp` has no tolerance: what expired while the provider was answering is refused.
    """
    seconds = iter([1.0, 20.0])

    async def fetch(url, _headers):
        if url.endswith("/keys"):
            tokens.clock.at += next(seconds)
            return FetchResponse(200, (("Cache-Control", "max-age=60"),), key_set("rsa-1"))
        document = {"issuer": provider().issuer, "jwks_uri": f"{provider().issuer}/keys"}
        return FetchResponse(200, (), json.dumps(document).encode())

    tokens = build(workspace(provider()), fetch=fetch)
    token = id_token(exp=NOW + 20)

    assert tokens.verify(token).sub == "248289761001"
    tokens.clock.at = 100
    assert tokens.reason(token) == "expired"


def test_a_new_configuration_is_followed_at_once(build, idp):
    """
    What it allows and maps is what counts, with the keys that are at hand; a provider that it no longer names is a stranger.
    """
    tokens = build(workspace(provider(idp.issuer)))
    token = id_token(issuer=idp.issuer)
    before = tokens.verify(token)

    tokens.configure(workspace(provider(idp.issuer, acr={"urn:shop:pwd": "high"}, clients={"app-1": "orc_second"})))
    refused, after = tokens.reason(token), tokens.verify(token, client="orc_second")
    tokens.configure(workspace(provider(idp.issuer, algorithms=frozenset({"ES256"}))))
    of_old, of_new = tokens.reason(token), tokens.verify(id_token(issuer=idp.issuer, alg="ES256"))
    asked = len(idp.asked)
    tokens.configure(workspace())
    stranger = tokens.reason(token)

    assert (before.level, refused, after.level) == ("standard", "client", "high")
    assert (of_old, of_new.sub, stranger) == ("algorithm", "248289761001", "issuer")
    assert asked == 4


def test_a_refusal_says_nothing_of_the_token(build, idp):
    """
    What a refusal is made of is a closed word, in its text and everywhere.
    """
    tokens = build(workspace(provider(idp.issuer)))

    for token, text in (
        (id_token(issuer=idp.issuer, exp=1), "expired"),
        (id_token(issuer=idp.issuer, key="rsa-2"), "key"),
    ):
        with pytest.raises(IDTokenRefused) as caught:
            tokens.verify(token)
        assert (str(caught.value), caught.value.args) == (text, (text,))
        assert caught.value.__cause__ is None
    assert set(ALGORITHMS) == EVERY
