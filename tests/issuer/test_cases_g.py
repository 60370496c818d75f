"""
Case group G, from public bug reports: confirmed actions, from the request for a token to the API that executes, each step.

Issuer and verifier stand on one clock. Steps that need confirmations taken by the service wait.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from issuer.idempotency import MAX_MINTS
from verifier import CustomerContextError, action_digest
from verifier.action import canonical_json

from .world import BILLING, NOW, clients, connections

ALL = json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
CASES = {case["id"]: case["input"] for case in ALL if case["group"] == "G"}
STEPS = {f"{name}-{index}": step for name, case in CASES.items() for index, step in enumerate(case["steps"])}
WAITING = {
    "G04-1": "the service does not take confirmations itself yet",
    "G04-2": "the service does not take confirmations itself yet",
}
"""Steps for which a part is missing, and which. Several instances are in test_instances, several processes in cli."""

X = "idk-case-X-0000001"
ARGUMENTS = {"amount": 100, "currency": "EUR", "to": "acct-1"}


def ask(site, arguments: dict | str = ARGUMENTS, *, key: str = X, at: int = NOW, client: str = "orc_main", **changes):
    """
    Ask for a token for `cancel_order`, confirmed by the client at *at*; *arguments* may be JSON text as written.
    """
    subject = {name: changes.pop(name) for name in ("sub", "acr", "exp") if name in changes}
    target = {name: changes.pop(name) for name in ("resource", "workspace") if name in changes}
    members = {"idempotencyKey": key, "confirmation": {"by": "client", "at": at}, **changes}
    details = site.details(arguments="<arguments>", **members)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    details = details.replace('"<arguments>"', text)
    token = site.subject_token(client, workspace=target.get("workspace", "root"), **subject)
    return site.ask(client=client, authorization_details=details, subject_token=token, **target)


def verify(site, token: str, arguments: object = ARGUMENTS, *, action: str = "cancel_order", **options):
    return site.verifier(**options).verify(token, action=action, arguments=arguments)


def reason(site, token: str, arguments: object = ARGUMENTS, **options) -> str:
    with pytest.raises(CustomerContextError) as caught:
        verify(site, token, arguments, **options)
    return caught.value.reason


def mints_left(site, *asked, **changes) -> int:
    """
    Ask until the key is exhausted, and return how many tokens it was still good for.
    """
    for number in range(MAX_MINTS + 1):
        if ask(site, *asked, **changes).reason == "idempotency:exhausted":
            return number
    pytest.fail("a key that is never exhausted")


CONFLICT = (400, "invalid_request", "idempotency:conflict")
EXPIRED = (400, "invalid_authorization_details", "confirmation:expired")


# G01: one key, other bodies


def test_g01_0_and_1_another_body_under_the_key(site):
    """
    G01-0, G01-1: the first body is minted, another one under its key is not, and the record is untouched.
    """
    first, second = (STEPS[name]["request"] for name in ("G01-0", "G01-1"))

    granted = ask(site, first["args"], key=first["key"])
    refused = ask(site, second["args"], key=second["key"])
    again = ask(site, first["args"], key=first["key"])

    assert refused.refusal == CONFLICT
    assert granted.granted == again.granted
    assert mints_left(site, first["args"], key=first["key"]) == MAX_MINTS - 2


def test_g01_2_the_key_at_another_endpoint(desk):
    """
    G01-2: an admin endpoint reads the key in its own scope, and never hears the answer of the token endpoint, nor the reverse.
    """
    request, site = STEPS["G01-2"]["request"], desk.site
    token = ask(site, request["args"], key=request["key"])

    rotated = desk.rotate(key=request["key"])
    again = ask(site, request["args"], key=request["key"])

    assert rotated.json().keys() >= {"retired", "active"}
    assert token.granted == again.granted
    assert again.claims["jti"] != token.claims["jti"]


def test_g01_3_another_client(site):
    """
    G01-3: keys are scoped to the authenticated client, so another one's is independent.
    """
    key = STEPS["G01-3"]["request"]["key"]
    ask(site, {"amount": 1000}, key=key)

    other = ask(site, STEPS["G01-3"]["request"]["args"], key=key, client="orc_second")

    assert other.claims["client_id"] == "orc_second"


# G03: a retry after a lost answer


def test_g03_0_the_answer_was_lost(site):
    """
    G03-0: the retry gets a new token with a new `jti` and the same digest; the action is recorded once.
    """
    lost, retried = ask(site), ask(site)

    assert lost.claims["jti"] != retried.claims["jti"]
    assert lost.claims["caplo"] == retried.claims["caplo"]
    assert mints_left(site) == MAX_MINTS - 2


def test_g03_1_the_token_is_over(site):
    """
    G03-1: after its 60 s the token is worth nothing, and a new one is minted while the confirmation is younger than 30 minutes.
    """
    first = ask(site)
    site.clock.at = NOW + 61
    second = ask(site)
    site.clock.at = NOW + 1800
    third = ask(site)

    site.clock.at = NOW + 61
    assert reason(site, first.token) == "expired"
    assert verify(site, second.token).action == "cancel_order"
    assert third.refusal == EXPIRED


def test_g03_2_the_first_attempt_failed_before_it_counted(site):
    """
    G03-2: a 503 before anything was recorded leaves the whole of the key to the retry.
    """
    site.lose_rings()
    failed = ask(site)
    site.renew()

    retried = ask(site)

    assert failed.refusal == (503, "temporarily_unavailable", "ring:unavailable")
    assert retried.status == 200
    assert mints_left(site) == MAX_MINTS - 1


def test_g03_3_the_first_attempt_was_refused(site):
    """
    G03-3: what was refused is asked anew; no refusal and no token is kept to be served again.
    """
    refused = ask(site, exp=NOW)
    executed = ask(site)

    assert refused.refusal == (400, "invalid_request", "subject_token:expired")
    assert executed.status == 200


def test_g03_4_the_same_json_in_another_spelling(site):
    """
    G03-4: reordered names and added spaces are the same arguments under the same key.
    """
    spelled = '{ "to":"acct-1",  "currency": "\\u0045UR", "amount": 1e2 }'

    assert ask(site).granted == ask(site, spelled).granted


# G04: many at once


def test_g04_0_many_at_once_with_one_new_key(served):
    """
    G04-0, in one process: fifty at once make one record and twenty tokens, each of its own, all with the one digest.
    """
    details = served.details(idempotencyKey="idk-case-0000000000004")
    forms = [served.form(authorization_details=details) for _ in range(50)]

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(served.post, forms))

    granted = [answer for answer in answers if answer.status == 200]
    assert len(granted) == len({answer.claims["jti"] for answer in granted}) == MAX_MINTS
    assert len({answer.granted["actionDigest"] for answer in granted}) == 1
    assert {answer.error for answer in answers} == {None, "invalid_authorization_details"}


# G05: the end of a confirmation counts when it is used


def test_g05_0_and_1_a_confirmation_is_good_for_1800_s(site):
    """
    G05-0, G05-1: minted at 1799 s, and not at 1800 s.
    """
    site.clock.at = NOW + 1799
    alive = ask(site)
    assert verify(site, alive.token).confirmation.at == NOW

    site.clock.at = NOW + 1800
    assert ask(site).refusal == EXPIRED
    assert reason(site, alive.token) == "expired"


def test_g05_2_a_restart_does_not_revive_a_confirmation(site):
    """
    G05-2: a service that forgot everything refuses the confirmation all the same, because its end follows from its instant.
    """
    ask(site)
    site.clock.at = NOW + 1800
    site.state.renew()

    assert ask(site).refusal == EXPIRED


def test_g05_3_the_policy_is_looked_at_again(site, build_site):
    """
    G05-3: an action that was withdrawn, or that needs more than before, is not minted although it was confirmed and minted once.
    """
    assert ask(site).status == 200
    assert ask(site, action="note_order", confirmation={"by": "none"}).status == 200
    withdrawn = build_site(clients=lambda: (replace(clients()[0], actions=frozenset()),))
    shop, bank = connections()
    note = replace(shop.actions["note_order"], confirmation="client")
    tightened = build_site(connections=lambda: (replace(shop, actions={**shop.actions, "note_order": note}), bank))
    for later in (withdrawn, tightened):
        later.state.idempotency = site.state.idempotency

    gone = ask(withdrawn)
    weak = ask(tightened, action="note_order", confirmation={"by": "none"})

    assert gone.refusal == (400, "invalid_authorization_details", "action:unknown")
    assert weak.refusal == (400, "invalid_authorization_details", "confirmation:too_weak")


@pytest.mark.parametrize(("age_s", "lives_s"), [(0, 60), (1740, 60), (1741, 59), (1770, 30), (1799, 1)])
def test_g05_4_a_token_does_not_outlive_its_confirmation(age_s, lives_s, site):
    """
    G05-4: `exp` is at most the end of the confirmation.
    """
    answer = ask(site, at=NOW - age_s)

    assert answer.claims["exp"] == NOW + lives_s <= NOW - age_s + 1800


# G06: arguments that change after they were confirmed


def test_g06_0_other_arguments_are_executed(site):
    """
    G06-0: the API is refused, because the digest of what it is about to execute is not the signed one.
    """
    step = STEPS["G06-0"]
    confirmed, executed = json.loads(step["approved_args"]), json.loads(step["executed_args"])
    token = ask(site, step["approved_args"]).token

    assert sha256(canonical_json(confirmed)).hexdigest() == step["digest"]
    assert reason(site, token, executed) == reason(site, token, step["executed_args"].encode()) == "action"
    assert verify(site, token, confirmed).arguments == confirmed


def test_g06_1_a_field_is_added_after_the_check(site):
    """
    G06-1: with the default the digest differs, and what was verified is frozen, so that nothing can be added afterwards.
    """
    token = ask(site).token

    assert reason(site, token, ARGUMENTS | {"priority": "normal"}) == "action"
    context = verify(site, token)
    with pytest.raises(TypeError):
        context.arguments["priority"] = "normal"


def test_g06_2_the_executor_coerces(site):
    """
    G06-2: "100" and 100 are two arguments; the digest is that of the one which is executed.
    """
    token = ask(site, ARGUMENTS | {"amount": "100"}).token

    assert reason(site, token, ARGUMENTS | {"amount": 100}) == "action"
    assert verify(site, token, ARGUMENTS | {"amount": "100"}).arguments["amount"] == "100"


@pytest.mark.parametrize("hidden", [{"\u200b": 1}, {"": None}, {"to\u202e": "x"}, {"note": ""}, {"z": {"y": [{}]}}])
def test_g06_3_nothing_is_hidden_from_the_digest(hidden, site):
    """
    G06-3: every field counts, however it looks; what is shown is to be made from the canonical text, which has them all.
    """
    token = ask(site, ARGUMENTS | hidden).token

    assert reason(site, token, ARGUMENTS) == "action"
    context = verify(site, token, ARGUMENTS | hidden)
    assert json.loads(canonical_json(context.arguments)) == ARGUMENTS | hidden


# G07: one confirmation, another use


def test_g07_0_and_1_a_confirmation_is_not_consumed_by_other_arguments(site):
    """
    G07-0, G07-1: destructive arguments get nothing, at the issuer and at the API, and the honest call goes through once.
    """
    token = ask(site, {"ids": ["1"]}).token
    verifier = site.verifier()

    assert ask(site, {"ids": ["*"]}).refusal == CONFLICT
    with pytest.raises(CustomerContextError) as caught:
        verifier.verify(token, action="cancel_order", arguments={"ids": ["*"]})
    assert caught.value.reason == "action"
    assert verifier.verify(token, action="cancel_order", arguments={"ids": ["1"]}).arguments["ids"] == ("1",)
    with pytest.raises(CustomerContextError) as caught:
        verifier.verify(token, action="cancel_order", arguments={"ids": ["1"]})
    assert caught.value.reason == "replayed"
    assert ask(site, {"ids": ["1"]}).status == 200


def test_g07_2_another_action_with_the_same_arguments(site):
    """
    G07-2: a token stands for one action; the other one's endpoint refuses it, and its digest would differ as well.
    """
    token = ask(site, action="orders.read").token

    assert reason(site, token, action="orders.delete") == reason(site, token) == "action"
    assert verify(site, token, action="orders.read").action == "orders.read"
    digests = {
        action_digest(action=name, arguments=ARGUMENTS, idempotency_key=X) for name in ("orders.read", "orders.delete")
    }
    assert len(digests) == 2


def test_g07_3_another_customer_or_audience(build_site):
    """
    G07-3: under the same client and key, another `sub`, audience or connection is refused.
    """
    shop, bank = connections()
    everywhere = {name: replace(action, audience=BILLING) for name, action in shop.actions.items()}
    site, moved = build_site(), build_site(connections=lambda: (replace(shop, actions=everywhere), bank))
    moved.state.idempotency = site.state.idempotency
    granted = ask(site)

    assert ask(site, sub="cus_2").refusal == CONFLICT
    assert ask(site, resource=BILLING).refusal == (400, "invalid_authorization_details", "action:unknown")
    assert ask(moved, resource=BILLING).refusal == CONFLICT
    assert reason(site, granted.token, audience=BILLING) == "audience"


def test_g07_4_another_tenant(site):
    """
    G07-4: a confirmation of one workspace opens nothing in another; there, the key is a key of its own.
    """
    here = ask(site)
    subject = site.subject_token()

    there = ask(site, {"amount": 1}, workspace="acme")
    borrowed = site.ask(workspace="acme", subject_token=subject, authorization_details=site.details(idempotencyKey=X))

    assert reason(site, here.token, workspace="acme") == "issuer"
    assert reason(site, there.token, {"amount": 1}) == "issuer"
    assert borrowed.refusal == (400, "invalid_request", "subject_token:audience")
    assert verify(site, there.token, {"amount": 1}, workspace="acme").iss == "https://issuer.test/w/acme"


# G09: which spellings are the same


@pytest.mark.parametrize("name", [name for name in STEPS if name.startswith("G09-")])
def test_g09_spelling_does_not_matter_and_meaning_does(name, site):
    """
    G09: what was confirmed in one spelling is verified in another exactly when the canonical octets are the same.
    """
    step = STEPS[name]
    same = step["expect"].startswith("same digest")
    answers = [ask(site, step[side], key=f"idk-case-{side * 16}") for side in "ab"]

    if step["a"] == CASES["G09"]["steps"][0]["a"]:
        assert sha256(canonical_json(json.loads(step["a"]))).hexdigest() == CASES["G09"]["sha256_of_a"]
    assert ask(site, step["b"], key=f"idk-case-{'a' * 16}").refusal == ((200, None, None) if same else CONFLICT)
    for answer, own, other in ((answers[0], "a", "b"), (answers[1], "b", "a")):
        if not same:
            assert reason(site, answer.token, step[other].encode()) == "action"
        assert (
            verify(site, answer.token, step[other if same else own].encode()).idempotency_key == f"idk-case-{own * 16}"
        )


# G12: how long a key is remembered


def test_g12_0_after_the_retention(site):
    """
    G12-0: when the record is gone its confirmation has expired, so that nothing is minted a second time.
    """
    ask(site)
    site.clock.at = NOW + 1800 + 121

    assert ask(site).refusal == EXPIRED
    assert ask(site, {"amount": 1000}, at=NOW + 1921).status == 200


def test_g12_1_the_retention_is_no_setting(site):
    """
    G12-1: it follows from the life of a confirmation, so that nobody can set it shorter: at its last instant the record is there.
    """
    ask(site)
    site.clock.at = NOW + 1799.999

    assert ask(site, {"amount": 1000}).refusal == CONFLICT


def test_g12_2_clearing_away_during_a_retry(site):
    """
    G12-2: clearing away is part of the claim, one step to every other; of many retries at the end none is lost or counted twice.
    """
    ask(site, at=NOW - 1799)
    ask(site, key="idk-case-ended-0001", at=NOW - 1799)
    endpoint, details = (
        site.endpoint(),
        site.details(idempotencyKey=X, arguments=ARGUMENTS, confirmation={"by": "client", "at": NOW - 1799}),
    )
    requests = [site.token_request(authorization_details=details) for _ in range(40)]

    async def all_at_once():
        return await asyncio.gather(*(endpoint.answer(each) for each in requests), return_exceptions=True)

    outcomes = asyncio.run(all_at_once())

    assert sum(not isinstance(each, Exception) for each in outcomes) == MAX_MINTS - 1
    assert mints_left(site, at=NOW - 1799) == 0


@pytest.mark.parametrize("key", ["k" * 10_000, "", "idk-case-0000\u0000\u0001\u001f", "idk case 0000000001"])
def test_g12_3_a_key_that_is_none(key, site):
    """
    G12-3: too long, empty, or with control characters: 400.
    """
    assert ask(site, key=key).refusal == (400, "invalid_authorization_details", "action:idempotency_key")


def test_g12_4_no_key(site):
    """
    G12-4: an action without a key is refused; a header is not read in its place.
    """
    details = site.details(idempotencyKey=...)

    answer = site.post(site.form(authorization_details=details), {"Idempotency-Key": X})

    assert answer.refusal == (400, "invalid_authorization_details", "action:members")


def test_no_step_is_left_out():
    """
    Each step of the group is run by the test of its name, or waits with a reason.
    """
    run = {
        *("G01-0", "G01-1", "G01-2", "G01-3", "G04-0"),
        *(f"G03-{n}" for n in range(5)),
        *(f"G05-{n}" for n in range(5)),
        *(f"G06-{n}" for n in range(4)),
        *(f"G07-{n}" for n in range(5)),
        *(f"G09-{n}" for n in range(5)),
        *(f"G12-{n}" for n in range(5)),
    }

    assert run | set(WAITING) == set(STEPS)
    assert run.isdisjoint(WAITING)
