"""
The keys of identity providers over real HTTP: found by discovery, cached, renewed, and not to be had.
"""

import asyncio
import json

import pytest

from issuer.provider_key_set import parse_provider_keys
from issuer.provider_keys import ProviderKeys, ProviderUnavailable, discovery_url
from issuer.provider_token import IDTokenRefused
from verifier.fetch import FetchError, FetchResponse

from .provider import IdentityProvider, jwk, key_set, provider
from .site import Clock
from .world import DROP


class Keys:
    """
    The keys under test, on one event loop and with clocks that stand still.
    """

    def __init__(self, runner, **options):
        self.clock = Clock(0.0)
        self.runner = runner
        self.keys = ProviderKeys(now=Clock(1_796_040_000.0), monotonic=self.clock, **options)

    def key(self, kid="rsa-1", *, alg="RS256", of):
        return self.runner.run(self.keys.key(of, alg, kid))

    def refusal(self, kid="rsa-1", *, alg="RS256", of):
        with pytest.raises((IDTokenRefused, ProviderUnavailable)) as caught:
            self.key(kid, alg=alg, of=of)
        return caught.value.reason

    def used(self, kid, *, of):
        async def call():
            self.keys.used(of, "RS256", kid)
            await asyncio.gather(*(task for source in self.keys._sources.values() for task in source._tasks))

        self.runner.run(call())


@pytest.fixture
def build():
    """
    Build what is under test; what it fetches ends with the test.
    """
    built = []
    with asyncio.Runner() as runner:

        def make(**options):
            built.append(Keys(runner, **options))
            return built[-1]

        yield make
        for each in built:
            runner.run(each.keys.aclose())


@pytest.fixture
def idp():
    """
    Serve an identity provider with one key.
    """
    site = IdentityProvider("rsa-1", Cache_Control="max-age=600")
    yield site
    site.stop()


def paths(idp):
    return [path for path, _ in idp.asked]


DISCOVERED = ["/.well-known/openid-configuration", "/keys"]


def test_keys_are_found_by_discovery_and_kept(build, idp):
    """
    The document is read, the keys it names are, and the next token finds the same key without a question.
    """
    keys, of = build(), provider(idp.issuer)

    first, second = keys.key(of=of), keys.key(of=of)

    assert first is second
    assert first.algorithms == {"RS256"}
    assert paths(idp) == DISCOVERED
    assert [headers["accept"] for _, headers in idp.asked] == [
        "application/json",
        "application/jwk-set+json, application/json",
    ]


def test_nothing_is_asked_before_it_is_needed(build, idp):
    """
    Neither when the keys are built nor for a provider whose keys are configured.
    """
    keys = build()
    fixed = provider(idp.issuer, keys=parse_provider_keys(key_set("rsa-2"), frozenset({"RS256"})))

    found = keys.key("rsa-2", of=fixed)
    keys.used("rsa-2", of=fixed)

    assert found is fixed.keys["RS256 rsa-2"]
    assert keys.refusal("rsa-1", of=fixed) == "key"
    assert idp.asked == []


@pytest.mark.parametrize("path", ["/realms/shop", "/realms/shop/"])
def test_an_issuer_may_have_a_path(build, idp, path):
    """
    Discovery 1.0 section 4.1: one slash at its end is left out where the document is looked for, and kept where it is compared.
    """
    idp.discover(issuer=idp.issuer + path, path="/realms/shop")
    keys = build()

    assert keys.key(of=provider(idp.issuer + path)).algorithms == {"RS256"}
    assert discovery_url("https://a.example/x/") == "https://a.example/x/.well-known/openid-configuration"


@pytest.mark.parametrize("place", ["/keys?p=b2c_1_policy", "/jwks/", "/discovery/v2.0/keys"])
def test_keys_may_lie_anywhere(build, idp, place):
    """
    A query or a slash at the end, which real providers have, is followed as it stands.
    """
    idp.answers[place] = idp.answers["/keys"]
    idp.discover(jwks_uri=idp.issuer + place)

    assert build().key(of=provider(idp.issuer)).algorithms == {"RS256"}
    assert paths(idp)[-1] == place


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://login.other.example"},
        {"issuer": DROP},
        {"issuer": None},
        {"jwks_uri": DROP},
        {"jwks_uri": None},
        {"jwks_uri": 5},
        {"jwks_uri": ""},
        {"jwks_uri": "/keys"},
        {"jwks_uri": "http://login.shop.example/keys"},
        {"jwks_uri": "ftp://127.0.0.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://user:password@login.shop.example/keys"},
        {"jwks_uri": "https://login.shop.example/keys#a"},
        {"jwks_uri": "https://login.shop.example/keys?a#b"},
        {"jwks_uri": "https://login.shop.example/keys?a b"},
        {"jwks_uri": "https://login.shop.example/../keys"},
        {"jwks_uri": "https://login.shop.example/" + "k" * 2048},
    ],
)
def test_a_document_that_is_not_this_providers_brings_no_keys(build, idp, document):
    """
    Another issuer, or no place that keys are fetched from: nothing further is asked.
    """
    idp.discover(**document)

    assert build().refusal(of=provider(idp.issuer)) == "keys_unavailable"
    assert paths(idp) == DISCOVERED[:1]


def test_a_slash_more_is_another_issuer(build, idp):
    """
    Discovery 1.0 section 4.3: the document's issuer is the configured one, code point by code point.
    """
    idp.discover(issuer=idp.issuer + "/")

    assert build().refusal(of=provider(idp.issuer)) == "keys_unavailable"


def test_keys_of_a_provider_on_the_network_do_not_lie_on_this_machine(build):
    """
    Only a provider that is on a loopback host itself may name one without TLS.
    """
    asked = []

    async def fetch(url, _headers):
        asked.append(url)
        document = {"issuer": "https://login.shop.example", "jwks_uri": "http://127.0.0.1:8080/keys"}
        return FetchResponse(200, (), json.dumps(document).encode())

    assert build(fetch=fetch).refusal(of=provider()) == "keys_unavailable"
    assert asked == ["https://login.shop.example/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}, b""),
        (404, {}, b""),
        (302, {"Location": "/elsewhere"}, b""),
        (304, {}, b""),
        (200, {}, b""),
        (200, {}, b"<html>"),
        (200, {}, b"[]"),
        (200, {}, b'{"issuer": 1, "issuer": 2}'),
        (200, {}, b" " * 70_000),
    ],
)
@pytest.mark.parametrize("path", DISCOVERED)
def test_an_answer_without_keys_is_no_answer(build, idp, path, answer):
    """
    Errors, redirects, pages and what is larger than 64 KiB: the provider is not to be had, whichever document it is.
    """
    idp.answers[path] = answer
    idp.answers["/elsewhere"] = idp.answers["/keys"]

    assert build().refusal(of=provider(idp.issuer)) == "keys_unavailable"
    assert "/elsewhere" not in paths(idp)


@pytest.mark.parametrize("keys", [["ec-1"], [jwk("rsa-1", use="enc")], [jwk("rsa-1", alg="RS512")]])
def test_a_set_that_has_no_key_to_use_is_no_answer(build, idp, keys):
    """
    Keys of other kinds than are allowed are none.
    """
    idp.publish(*keys)

    assert build().refusal(of=provider(idp.issuer)) == "keys_unavailable"


def test_an_unknown_key_makes_the_keys_be_fetched_at_most_every_thirty_seconds(build, idp):
    """
    D19: a rotated key is found at once where the interval allows, and whoever invents keys causes no more than that.
    """
    keys, of = build(), provider(idp.issuer)
    keys.key(of=of)
    idp.publish("rsa-1", "rsa-2")

    keys.clock.at = 29
    early = [keys.refusal(kid, of=of) for kid in ("rsa-2", "made-up")]
    asked = len(idp.asked)
    keys.clock.at = 30
    found = keys.key("rsa-2", of=of)
    late = [keys.refusal(kid, of=of) for kid in ("made-up", None)]

    assert early == late == ["key", "key"]
    assert asked == 2
    assert found.algorithms == {"RS256"}
    assert paths(idp) == DISCOVERED * 2
    assert [headers.get("cache-control") for _, headers in idp.asked] == [None, None, "no-cache", "no-cache"]


def test_a_provider_that_moves_its_keys_is_followed(build, idp):
    """
    The document is read anew with every fetch, and nothing stored for the old place is asked for at the new one.
    """
    idp.publish("rsa-1", ETag='"1"', Cache_Control="max-age=600")
    keys, of = build(), provider(idp.issuer)
    keys.key(of=of)
    idp.answers["/moved"] = (200, {"ETag": '"1"'}, key_set("rsa-2"))
    idp.answers["/keys"] = (410, {}, b"")
    idp.discover(jwks_uri=f"{idp.issuer}/moved")

    keys.clock.at = 600
    found = keys.key("rsa-2", of=of)

    assert found.algorithms == {"RS256"}
    assert keys.refusal("rsa-1", of=of) == "key"
    assert all("if-none-match" not in headers for _, headers in idp.asked)


def test_a_provider_that_is_down_is_one_that_keys_outlive(build, idp):
    """
    Fresh keys go on serving, an unknown key cannot be told, and once they are stale nothing can; back again, all is well.
    """
    keys, of = build(), provider(idp.issuer)
    keys.key(of=of)
    idp.stop()

    keys.clock.at = 100
    unknown = keys.refusal("rsa-2", of=of)
    fresh = keys.key(of=of)
    keys.clock.at = 601
    stale = keys.refusal(of=of)
    again = IdentityProvider("rsa-1", port=idp.port)
    keys.clock.at = 640
    back = keys.key(of=of)
    again.stop()

    assert (unknown, stale) == ("keys_unavailable", "keys_unavailable")
    assert fresh.algorithms == back.algorithms == {"RS256"}


def test_keys_may_be_stale_while_the_provider_fails(build, idp):
    """
    RFC 5861: for as long as the provider said so when it gave them out.
    """
    idp.publish("rsa-1", Cache_Control="max-age=60, stale-if-error=60")
    keys, of = build(), provider(idp.issuer)
    keys.key(of=of)
    idp.answers["/keys"] = (503, {}, b"")

    keys.clock.at = 60
    serving = keys.key(of=of)
    keys.clock.at = 120

    assert serving.algorithms == {"RS256"}
    assert keys.refusal(of=of) == "keys_unavailable"


def test_many_tokens_wait_for_one_fetch(build, idp):
    """
    However many come while nothing is known, the provider is asked once.
    """
    keys, of = build(), provider(idp.issuer)

    async def together():
        return await asyncio.gather(*(keys.keys.key(of, "RS256", "rsa-1") for _ in range(50)))

    found = keys.runner.run(together())

    assert len({id(key) for key in found}) == 1
    assert paths(idp) == DISCOVERED


def test_a_failing_provider_is_not_asked_all_the_time(build):
    """
    Everybody is told so until thirty seconds after the last attempt began.
    """
    asked = []

    async def fetch(url, _headers):
        asked.append(url)
        raise FetchError("down")

    keys, of = build(fetch=fetch), provider()
    for keys.clock.at in (0, 1, 29, 30, 31):
        keys.refusal(of=of)

    assert len(asked) == 2


def test_a_changed_key_makes_the_old_one_be_forgotten(build, idp):
    """
    The first good token under another key than the last is followed by a fetch, so that a key that was withdrawn goes.
    """
    idp.publish("rsa-1", "rsa-2", Cache_Control="max-age=600")
    keys, of = build(), provider(idp.issuer)
    keys.key("rsa-1", of=of)
    keys.used("rsa-1", of=of)
    idp.publish("rsa-2")

    keys.clock.at = 31
    keys.used("rsa-2", of=of)

    assert keys.refusal("rsa-1", of=of) == "key"


def test_each_provider_and_each_choice_of_algorithms_has_its_own_keys(build, idp):
    """
    What one provider publishes serves no other, and a key for PS256 nobody who allows RS256 alone.
    """
    other = IdentityProvider("rsa-2")
    keys = build()
    both = provider(idp.issuer, algorithms=frozenset({"RS256", "PS256"}))

    keys.key(of=provider(idp.issuer))
    found = keys.key("rsa-2", of=provider(other.issuer))
    wide = keys.key(alg="PS256", of=both)
    refused = keys.refusal("rsa-1", of=provider(other.issuer)), keys.refusal(alg="PS256", of=provider(idp.issuer))
    other.stop()

    assert found.algorithms == {"RS256"}
    assert wide.algorithms == {"RS256", "PS256"}
    assert refused == ("key", "key")


def test_what_a_new_configuration_keeps_stays_in_the_cache(build, idp):
    """
    The keys of providers that it names go on serving; those of others are forgotten.
    """
    keys = build()
    kept, dropped = provider(idp.issuer), provider(idp.issuer, algorithms=frozenset({"PS256"}))
    fixed = provider(idp.issuer, keys=parse_provider_keys(key_set("rsa-2"), frozenset({"RS256"})))
    keys.key(of=kept)
    keys.key(alg="PS256", of=dropped)

    keys.runner.run(keys.keys.keep([kept]))
    keys.key(of=kept)
    before = len(idp.asked)
    keys.key(alg="PS256", of=dropped)
    after = len(idp.asked)
    keys.runner.run(keys.keys.keep([fixed]))
    keys.key(of=kept)

    assert (before, after, len(idp.asked)) == (4, 6, 8)


def test_the_log_tells_an_operator_what_is_wrong_and_nothing_of_a_token(build, idp, caplog):
    """
    Place and cause stand in the log of the keys; a key's name that a token made up is told escaped.
    """
    keys, of = build(), provider(idp.issuer)
    keys.key(of=of)
    idp.discover(issuer="https://login.other.example")

    keys.clock.at = 30
    with caplog.at_level("INFO", logger="verifier.keys"):
        keys.refusal("made-up", of=of)

    assert "unknown kid RS256 made-up: asking" in caplog.text
    assert "FetchError: discovery: the document of another issuer" in caplog.text
    assert f"{idp.issuer}/.well-known/openid-configuration" in caplog.text
