"""
The claims of a token are read by form: required ones, bounds, one of two spellings of the action (D1, D5, D8, D16).
"""

import pytest

from verifier.claims import (
    ActionClaim,
    Actor,
    ClaimsError,
    Confirmation,
    TokenClaims,
    read_actor,
)

PAYLOAD = {
    "iss": "https://issuer.test",
    "sub": "customer",
    "aud": "https://api.test",
    "client_id": "orc_main",
    "iat": 1000,
    "exp": 1060,
    "jti": "7SM1F1g6eyIwdzoeMtPQaQ",
    "acr": "high",
    "act": {"sub": "agt_support"},
}
CAPLO = {
    "action": "cancel_order",
    "actionDigest": "g-cGrguCKq-wECmd4solY_bOAB0xYSZ5yK0Ld7_VbsA",
    "idempotencyKey": "idk_5pQ0m3m1Yt7uVxk2Rr9aBw",
    "confirmation": {"by": "client", "at": 980},
}
DOTTED = {f"caplo.{name}": value for name, value in CAPLO.items()}
NOT_TEXT = [None, 1, True, ["x"], {"x": 1}]
NOT_TIMES = [None, True, False, "1000", [1000], {}, -1, -0.5, 2**53, 1e300]


def read(**changes: object) -> TokenClaims:
    """
    Read the payload with *changes*; `...` leaves a claim out.
    """
    return TokenClaims.from_payload({name: value for name, value in (PAYLOAD | changes).items() if value is not ...})


def faulty(**changes: object) -> str:
    """
    Read a payload that has to be refused, and return the claim that is named.
    """
    with pytest.raises(ClaimsError) as refusal:
        read(**changes)
    return str(refusal.value)


def chain(depth: int) -> dict[str, object]:
    """
    Nest *depth* agents.
    """
    act: dict[str, object] = {"sub": f"agt_{depth}"}
    for number in range(depth - 1, 0, -1):
        act = {"sub": f"agt_{number}", "act": act}
    return act


def test_the_least_token_is_read():
    """
    The required claims alone make a token; what may be absent is None.
    """
    claims = read()

    assert claims.to_payload() == PAYLOAD
    assert (claims.auth_time, claims.nbf, claims.scope, claims.action) == (None, None, None, None)


def test_the_fullest_token_is_read():
    """
    Every claim that is known comes out as it was written, fractions too.
    """
    payload = PAYLOAD | {"auth_time": 900.25, "nbf": 1000.5, "scope": "a b", "act": chain(4), "caplo": CAPLO}

    claims = TokenClaims.from_payload(payload)

    assert claims.to_payload() == payload
    assert claims.act.history() == ("agt_2", "agt_3", "agt_4")
    assert claims.action == ActionClaim(
        action="cancel_order",
        digest=CAPLO["actionDigest"],
        idempotency_key=CAPLO["idempotencyKey"],
        confirmation=Confirmation("client", 980),
    )


@pytest.mark.parametrize("name", PAYLOAD)
def test_a_required_claim_is_missing(name):
    """
    Each of the required claims is named when it is not there (D16).
    """
    assert faulty(**{name: ...}) == name


@pytest.mark.parametrize("value", [*NOT_TEXT, "", "x" * 1025])
@pytest.mark.parametrize("name", ["iss", "sub", "client_id", "acr"])
def test_an_identifier_is_text_of_bounded_length(name, value):
    """
    Identifiers are 1 to 1024 characters.
    """
    assert getattr(read(**{name: "x" * 1024}), name) == "x" * 1024
    assert faulty(**{name: value}) == name


@pytest.mark.parametrize("value", [*NOT_TIMES, ...])
@pytest.mark.parametrize("name", ["iat", "exp"])
def test_a_required_time_is_a_number(name, value):
    """
    Times are finite JSON numbers from 0 to 2^53-1; a bool is none (D5).
    """
    assert faulty(**{name: value}) == name


@pytest.mark.parametrize("value", NOT_TIMES)
@pytest.mark.parametrize("name", ["nbf", "auth_time"])
def test_a_time_that_may_be_absent_is_a_number_too(name, value):
    """
    A time that need not be there is not there in another form either, null included.
    """
    assert faulty(**{name: value}) == name


@pytest.mark.parametrize("name", ["exp", "nbf"])
@pytest.mark.parametrize("value", [0, 0.5, -0.0, 2**53 - 1, float(2**53 - 1)])
def test_times_at_the_edges_are_read(name, value):
    """
    Zero, fractions and the largest safe integer are times; whether they are good ones is not asked here.
    """
    assert getattr(read(**{name: value}), name) == value


def test_a_sign_in_after_the_token_is_refused():
    """
    `auth_time` lies at most 5 seconds after `iat` (D9).
    """
    assert read(auth_time=1005).auth_time == 1005
    assert faulty(auth_time=1005.1) == "auth_time"


@pytest.mark.parametrize("value", [*NOT_TEXT, "", " ", "a b", "a\n", "a\0", "a\x7f", "a\u200b", "j" * 257])
def test_a_jti_is_printable_and_bounded(value):
    """
    A jti is 1 to 256 printable characters without a space.
    """
    assert read(jti="j" * 256).jti == "j" * 256
    assert read(jti="a:b*é").jti == "a:b*é"
    assert faulty(jti=value) == "jti"


@pytest.mark.parametrize("value", [None, 1, ["a"], {"a": 1}])
def test_a_scope_is_text(value):
    """
    A scope is a string where there is one; an empty one is none.
    """
    assert read(scope="").scope is None
    assert faulty(scope=value) == "scope"


@pytest.mark.parametrize("value", [["https://api.test"], [], ["a", "b"], [None], [["a"]], ["a", 5]])
def test_an_array_of_audiences_is_read_as_it_is(value):
    """
    An array is left to the check of the audience, whatever stands in it.
    """
    assert read(aud=value).aud == tuple(value)


@pytest.mark.parametrize("value", [None, 1, True, {"https://api.test": 1}, ""])
def test_another_audience_is_none(value):
    """
    What is neither text nor an array is no audience.
    """
    assert faulty(aud=value) == "aud"


@pytest.mark.parametrize(
    "act",
    [
        *(None, "agt", 1, [], ["agt"], {}),
        *({"sub": ""}, {"sub": 1}, {"sub": None}, {"sub": "x" * 1025}, {"iss": "x"}),
        *({"sub": "a", "iss": None}, {"sub": "a", "iss": ""}, {"sub": "a", "iss": 1}),
        *({"sub": "a", name: 1} for name in ("exp", "nbf", "iat", "aud", "jti")),
        *({"sub": "a", "act": None}, {"sub": "a", "act": {}}, {"sub": "a", "act": {"sub": 1}}),
        chain(5),
        chain(30),
    ],
    ids=range(24),
)
def test_another_actor_is_none(act):
    """
    An actor has a sub, perhaps an iss and an earlier actor, no claims of a token, and at most three before it (D8).
    """
    assert faulty(act=act) == "act"


def test_an_actor_is_read():
    """
    Four actors are read, the issuer of an agent of another one is kept, unknown members are ignored.
    """
    assert read_actor(chain(4)).to_payload() == chain(4)
    assert read_actor({"sub": "a", "iss": "b", "name": "c"}) == Actor("a", "b")
    assert read_actor(chain(2), depth=2) == Actor("agt_1", None, Actor("agt_2"))
    with pytest.raises(ClaimsError):
        read_actor(chain(2), depth=1)


def test_both_spellings_of_an_action_are_one():
    """
    An object and dotted names give the same action, with the key and the confirmation or without (D1).
    """
    pair = {name: DOTTED[name] for name in ("caplo.action", "caplo.actionDigest")}

    assert read(**DOTTED).action == read(caplo=CAPLO).action
    assert read(**pair).action == ActionClaim(
        action="cancel_order", digest=CAPLO["actionDigest"], idempotency_key=None, confirmation=None
    )
    assert read(**pair).to_payload()["caplo"] == {name.removeprefix("caplo."): value for name, value in pair.items()}


@pytest.mark.parametrize("dotted", DOTTED)
def test_two_spellings_at_once_are_refused(dotted):
    """
    A dotted name beside the object is refused, also when they agree, and also beside an empty object.
    """
    assert faulty(caplo=CAPLO, **{dotted: DOTTED[dotted]}) == "caplo"
    assert faulty(caplo={}, **{dotted: DOTTED[dotted]}) == "caplo"


@pytest.mark.parametrize("dotted", DOTTED)
def test_half_a_pair_is_refused(dotted):
    """
    One dotted name without the pair is refused, not taken for a token without an action.
    """
    assert faulty(**{dotted: DOTTED[dotted]}) == "caplo"


@pytest.mark.parametrize("caplo", [None, [], "cancel_order", 1, True, {}, {"x": 1}])
def test_an_action_is_an_object(caplo):
    """
    A claim `caplo` of another form, null included, is refused and not taken for its absence.
    """
    assert faulty(caplo=caplo) == "caplo"


@pytest.mark.parametrize(
    "change",
    [
        *({"action": value} for value in (..., *NOT_TEXT, "", "a b", "a" * 129)),
        *({"actionDigest": value} for value in (..., *NOT_TEXT, "")),
        *({"idempotencyKey": value} for value in (*NOT_TEXT, "", "short", "k" * 129, '"' + "k" * 16 + '"')),
        *({"confirmation": value} for value in (*NOT_TEXT, [], {}, {"by": "client"}, {"at": 980})),
        *({"confirmation": {"by": by, "at": 980}} for by in (None, "", "Client", "agent", ["client"], 1)),
        *({"confirmation": {"by": "client", "at": at}} for at in NOT_TIMES),
    ],
    ids=str,
)
def test_a_member_of_another_form_is_refused(change):
    """
    Each member of the action has its form, in either spelling; null is not absence.
    """
    members = {name: value for name, value in (CAPLO | change).items() if value is not ...}

    assert faulty(caplo=members) == "caplo"
    assert faulty(**{f"caplo.{name}": value for name, value in members.items()}) == "caplo"


def test_unknown_claims_and_members_are_ignored():
    """
    What this profile does not know is no reason to refuse (RFC 7519 section 4).
    """
    claims = read(caplo=CAPLO | {"subjectNamespaceRef": "x"}, cnf={}, note=None, Caplo=1)

    assert claims == read(caplo=CAPLO)
    assert read(**{"caplo.x": 1}) == read()


def test_any_dotted_name_beside_the_object_is_refused():
    """
    The action stands in one spelling only, and a name nobody knows is no exception (D1).
    """
    assert faulty(caplo=CAPLO, **{"caplo.x": 1}) == "caplo"


def test_a_refusal_names_the_claim_and_not_its_value():
    """
    The text is the name of the claim alone.
    """
    assert faulty(jti="a secret") == "jti"
    assert faulty(caplo=CAPLO | {"action": "a secret"}) == "caplo"
