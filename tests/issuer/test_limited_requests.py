"""
Limits at the token endpoint: where they stand among the other checks, what counts, and what happens when they cannot be asked.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from issuer.limits import Over, Rate, Rates
from issuer.limits_memory import MemoryLimits

from .estate import problem
from .site import Site
from .world import basic, registry

SECOND_US = 1_000_000
WRONG = {"Authorization": basic("orc_basic", "guessed")}


def limit(site, *, client=None, customer=None, every_s=10, **others):
    """
    Give a service limits of which one request comes back in ten seconds.
    """
    slow = [None if burst is None else Rate(every_s * SECOND_US, burst) for burst in (client, customer)]
    site.state.limits = MemoryLimits(Rates(client=slow[0], customer=slow[1], **others), site.monotonic)


class Recording:
    """
    Limits that let in everything and remember what they were asked.
    """

    def __init__(self, answer=None):
        self.answer, self.asked = answer, []

    async def request(self, *asked):
        return self._answer("request", asked)

    async def wrong_secret(self, *asked):
        return self._answer("wrong_secret", asked)

    def _answer(self, kind, asked):
        self.asked.append((kind, *asked))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def recording(site):
    site.state.limits = Recording()
    return site.state.limits


def test_a_client_over_its_limit_is_told_when_to_come_again(site):
    """
    D11, D21: 429, OAuth JSON, whole seconds; then it is let in, and nobody else was kept out.
    """
    limit(site, client=2)

    answers = [site.ask() for _ in range(3)]
    other = site.ask(client="orc_basic")
    site.monotonic.at += 9.5
    early = site.ask()
    site.monotonic.at += 0.5
    late = site.ask()

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[2].refusal == early.refusal == (429, "temporarily_unavailable", "limit:client")
    assert (answers[2].headers["retry-after"], early.headers["retry-after"]) == ("10", "1")
    assert (other.status, late.status) == (200, 200)


def test_a_customer_over_its_limit_leaves_the_others_alone(site):
    """
    The same client asks on for everybody else, and for a customer of the same id in another namespace.
    """
    limit(site, client=100, customer=1)
    bank = {"resource": "https://api.bank.example", "scope": "accounts:read"}

    first, second = site.ask(), site.ask()
    others = [
        site.ask(subject_token=site.subject_token(sub="cus_2")),
        site.ask(subject_token=site.subject_token(namespace="bank-login"), **bank),
        site.ask(client="orc_basic"),
        site.ask(workspace="acme"),
    ]

    assert first.status == 200
    assert second.refusal == (429, "temporarily_unavailable", "limit:customer")
    assert [answer.status for answer in others] == [200] * 4


def test_refusals_by_limits_are_counted_and_reported(site):
    """
    As all others: by error in the metrics, by reason, client and source in the log, and without the customer.
    """
    limit(site, client=1)
    site.ask()
    series = 'customer_context_refusals_total{error="temporarily_unavailable",workspace="root"}'
    before = value(site, series)

    site.ask()

    assert value(site, series) == before + 1
    assert [event for event in site.events if event[0] == "token_refused"] == [
        (
            "token_refused",
            {
                "workspace": "root",
                "error": "temporarily_unavailable",
                "reason": "limit:client",
                "source": "unknown",
                "client_id": "orc_main",
            },
        )
    ]


def value(site, series):
    lines = site.service.metrics.render([]).decode().splitlines()
    return float(next((line.rpartition(" ")[2] for line in lines if line.startswith(series)), 0))


def test_a_request_is_counted_once_whatever_comes_of_it(site, recording):
    """
    In one call: for client and customer when the grant is right, for the client alone when it is refused.
    """
    outcomes = [
        site.ask(),
        site.ask(authorization_details=site.details()),
        site.ask(grant_type="password"),
        site.ask(subject_token="x"),
        site.ask(scope="unknown"),
        site.ask(resource="https://unknown.example"),
        site.ask(client="orc_basic", acr_values="high"),
    ]

    customer = ("shop-login", "cus_48213")
    assert [answer.status for answer in outcomes] == [200] * 2 + [400] * 5
    assert recording.asked == [
        *[("request", "root", "orc_main", customer)] * 2,
        *[("request", "root", "orc_main", None)] * 4,
        ("request", "root", "orc_basic", None),
    ]


def test_who_is_not_authenticated_counts_for_nobody(site, recording):
    """
    A request in the name of a client, without its credential or with one that was used, takes nothing from it.
    """
    used = site.client_assertion()
    site.ask(client_assertion=used)
    recording.asked.clear()

    answers = [
        site.ask(client_assertion=used),
        site.ask(client_assertion=site.client_assertion(key="client-9")),
        site.ask(client_assertion=None, client_assertion_type=None),
        site.post(b"grant_type=x&grant_type=y"),
        site.post(site.form(), {"Content-Type": "text/plain"}),
    ]

    assert {answer.status for answer in answers} == {400, 401}
    assert recording.asked == []


def test_a_refused_grant_over_the_limit_is_over_the_limit(site):
    """
    Whoever sends what is refused has to slow down like everybody else.
    """
    limit(site, client=2)

    assert [site.ask(scope="unknown").reason for _ in range(4)] == ["scope:not_allowed"] * 2 + ["limit:client"] * 2
    assert site.ask().reason == "limit:client"


def test_limits_come_before_what_leaves_something_behind(site):
    """
    Over a limit no idempotency key is taken, no key asked to sign, and a ring that is gone is not even missed.
    """
    details = site.details()
    limit(site, client=1, every_s=100)
    site.ask()

    refused = [site.ask(authorization_details=site.details()) for _ in range(3)]
    site.lose_rings()
    without_ring = site.ask(authorization_details=details)

    assert [answer.reason for answer in [*refused, without_ring]] == ["limit:client"] * 4
    assert site.state.claims == []


def test_a_suspended_client_is_limited_first(build_site):
    """
    Limits stand before suspensions: what is suspended uses up its rate, and hears 429 beyond it.
    """
    site = build_site()
    limit(site, client=1)
    ring = site.service.rings["root"]
    found = SimpleNamespace(target=SimpleNamespace(kind="client"), id="sus-1")
    view = SimpleNamespace(suspensions=SimpleNamespace(find=lambda *_: found))
    site.service.rings["root"] = SimpleNamespace(current=lambda _now: view, head=ring.head)

    endpoint = site.endpoint()
    reasons = [reason_of(endpoint, site.token_request()) for _ in range(2)]

    assert reasons == ["suspended:client", "limit:client"]


def reason_of(endpoint, request):
    try:
        asyncio.run(endpoint.answer(request))
    except Exception as refused:  # noqa: BLE001 - whatever it is, it has to have a reason
        return refused.reason
    return None


@pytest.mark.parametrize("answer", [OSError("secret-marked-1"), TimeoutError(), True, 0, "over"], ids=repr)
def test_limits_that_cannot_tell_mint_nothing(answer, site):
    """
    Only None lets a request go on; a failure, or an answer that is none, is 503 and says so, for a refused grant as well.
    """
    site.state.limits = Recording(answer)

    for asked in ({}, {"authorization_details": site.details()}, {"scope": "unknown"}):
        refused = site.ask(**asked)
        assert refused.refusal == (503, "temporarily_unavailable", "limits:cannot_tell")
        assert refused.headers["retry-after"] == "1"
        assert dict(site.events)["token_refused"]["problem"] == type(answer).__name__
        assert "marked" not in f"{refused.text}{site.events}"


def test_a_full_table_is_one_that_cannot_tell(site):
    """
    In one process: when no more clients can be counted, whoever is not counted yet is asked to come again.
    """
    site.state.limits = MemoryLimits(Rates(customer=None), site.monotonic, max_requesters=1)

    assert [site.ask().status, site.ask(client="orc_second").reason] == [200, "limits:cannot_tell"]


def test_guessing_goes_on_unlimited_where_limits_cannot_tell(site):
    """
    A wrong secret stays wrong, 401, and it is reported why no limit holds; the right one is let in by what asks no limit.
    """
    site.state.limits = Recording(OSError("secret-marked-1"))

    answers = [site.post(site.form(client="orc_basic"), WRONG) for _ in range(12)]

    assert [answer.refusal for answer in answers] == [(401, "invalid_client", "client:credentials")] * 12
    assert site.events[0] == ("limits_failed", {"workspace": "root", "problem": "OSError"})
    assert len(site.state.limits.asked) == 12


def test_a_right_secret_asks_nothing_about_guesses(site, recording):
    """
    Nor do credentials that are no secret: malformed ones, two of them, an assertion, one that names another client.
    """
    right = {"Authorization": basic("orc_basic", "secret-1")}
    lines = [
        right,
        {"Authorization": "Basic !"},
        {"Authorization": "Basic b3JjX2Jhc2ljOg=="},
        {"Authorization": "Bearer x"},
        {},
    ]
    for each in lines:
        site.post(site.form(client="orc_basic"), each)
    site.post(site.form(client="orc_basic", client_id="orc_main"), right)
    site.post(b"client_id=orc_basic&client_secret=guessed")
    site.ask(client_assertion="x.y.z")

    assert {kind for kind, *_ in recording.asked} == {"request"}


def test_a_wrong_secret_is_counted_for_what_was_sent(site, recording):
    """
    By the name, whether somebody is called so or not, and the network that it came from.
    """
    for name in ("orc_basic", "orc_main", "nobody", "x" * 1000):
        site.post(site.form(client="orc_basic"), {"Authorization": basic(name, "guessed")})
    endpoint = site.endpoint("acme")
    request = replace(site.token_request([WRONG["Authorization"]], client="orc_basic"), source="2001:db8::9")
    assert reason_of(endpoint, request) == "client:credentials"

    assert recording.asked == [
        *(
            ("wrong_secret", "root", "client", name, "unknown")
            for name in ("orc_basic", "orc_main", "nobody", "x" * 1000)
        ),
        ("wrong_secret", "acme", "client", "orc_basic", "2001:0db8:0000:0000"),
    ]


def test_over_the_limit_everybody_looks_the_same(site):
    """
    A client that exists, one with keys and one that nobody has: the same answer, which names none of them.
    """
    site.state.limits = Recording(Over("wrong_secrets", 17_500_000))

    answers = [
        site.post(site.form(client="orc_basic"), {"Authorization": basic(name, "guessed")})
        for name in ("orc_basic", "orc_main", "nobody")
    ]

    assert len({(answer.status, answer.text, str(sorted(answer.headers.items()))) for answer in answers}) == 1
    assert answers[0].headers["retry-after"] == "18"


def test_admins_and_clients_share_what_a_source_may_guess(desk):
    """
    Names are counted apart, sources together: ten guesses at clients leave none at admins, and the right secret works.
    """
    site = desk.site
    for number in range(10):
        lines = {"Authorization": basic(f"client-{number}", "guessed")}
        assert site.post(site.form(client="orc_basic"), lines).status == 401

    refused = desk.ask("GET", "/admin/keys", headers={"Authorization": basic("secops", "guessed")})

    assert problem(refused) == (429, "too-many-requests")
    assert desk.ask("GET", "/admin/keys").status_code == 200


def test_admins_are_guessed_at_unlimited_where_limits_cannot_tell(desk):
    """
    401 as ever, and it is reported.
    """
    desk.site.state.limits = Recording(OSError("secret-marked-1"))

    answers = [desk.ask("GET", "/admin/keys", headers={"Authorization": basic("secops", "guessed")}) for _ in range(12)]

    assert [problem(answer) for answer in answers] == [(401, "unauthenticated")] * 12
    assert ("limits_failed", {"workspace": "root", "problem": "OSError"}) in desk.site.events
    assert desk.ask("GET", "/admin/keys").status_code == 200


def test_admin_assertions_are_never_limited(desk):
    """
    What is signed cannot be guessed: however many do not hold, none is told to wait.
    """
    site = desk.site
    site.state.limits = Recording(Over("wrong_secrets", 1))

    answers = [desk.ask("GET", "/admin/keys", admin="robot", exp=1) for _ in range(12)]

    assert [problem(answer) for answer in answers] == [(401, "unauthenticated")] * 12
    assert site.state.limits.asked == []


def test_instances_have_one_limit_when_their_store_is_one():
    """
    Two services on one memory, as on one Redis: together they let in what one would.
    """
    one = Site(registry())
    other = Site(registry(), beside=one)
    limit(one, client=3)
    other.state.limits = one.state.limits

    answers = [site.ask().status for site in (one, other, one, other, one)]

    assert answers == [200, 200, 200, 429, 429]
    one.close()
    other.close()
