"""
What holds for every token, every claim and every argument, with joserfc and rfc8785 as independent second opinions.
"""

import json
import string

import pytest
import rfc8785
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey

from verifier import CustomerContextError, CustomerContextVerifier, action_digest
from verifier.action import ArgumentsError, canonical_json
from verifier.claims import ActionClaim, Actor, Confirmation, TokenClaims
from verifier.compact import parse_compact
from verifier.strict_json import loads

B64URL = string.ascii_letters + string.digits + "-_"
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
LARGEST = 2**53 - 1

texts = st.text(st.characters(codec="utf-8"), max_size=12)
integers = st.integers(-LARGEST, LARGEST)
floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: not (x.is_integer() and 2**53 <= abs(x) < 1e21)
)


def json_of(names, leaves):
    """
    Draw JSON values with such names and such leaves.
    """
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
    )


plain = st.none() | st.booleans() | integers | texts
json_values = json_of(texts, plain | floats)
arguments = st.dictionaries(texts, json_values, max_size=5)


@pytest.fixture(scope="module")
def verifier(mint):
    """
    A verifier that remembers no token, so that one may be tried often.
    """
    return CustomerContextVerifier(
        issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks, replay_store=None, now=lambda: mint.now
    )


@pytest.fixture(scope="module")
def token(mint):
    return mint.signed()


@pytest.fixture(scope="module")
def jose_key(mint):
    return ECKey.import_key(dict(mint.jwks["keys"][0]))


def is_refused(verifier, token):
    """
    Tell whether a token is refused, by the one error that there is.
    """
    try:
        verifier.verify(token)
    except CustomerContextError:
        return True
    return False


@given(st.data())
def test_any_one_changed_character_is_noticed(verifier, token, data):
    """
    A token of which any one character is another one is refused.
    """
    index = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.sampled_from(B64URL + ".=+/ \n") | st.characters())
    assume(token[index] != character)

    assert is_refused(verifier, token[:index] + character + token[index + 1 :])


@given(st.data())
def test_any_missing_or_added_character_is_noticed(verifier, token, data):
    """
    A token with a character too few or too many is refused.
    """
    index = data.draw(st.integers(0, len(token)))
    character = data.draw(st.sampled_from(B64URL + ".= \n") | st.characters())

    assert is_refused(verifier, token[:index] + character + token[index:])
    assert is_refused(verifier, token[: max(index - 1, 0)] + token[max(index, 1) :])


def test_every_character_is_noticed(verifier, token):
    """
    Each character of a token counts: no place is left out by chance.
    """
    for index, character in enumerate(token):
        for other in ("A", "B", "w", "_") if character not in "ABw_" else ("x", "-"):
            assert is_refused(verifier, token[:index] + other + token[index + 1 :])


claims = st.fixed_dictionaries(
    {},
    optional={
        "sub": st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
        "client_id": st.text(string.ascii_letters, min_size=1),
        "acr": st.sampled_from(["low", "standard", "high", "phr"]),
        "scope": st.sampled_from(["", "orders.read", "orders.read orders.write"]),
        "iat": st.integers(1_767_225_541, 1_767_225_600),
        "exp": st.integers(1_767_225_590, 1_767_225_660) | st.floats(1_767_225_590, 1_767_225_660),
        "nbf": st.integers(1_767_225_590, 1_767_225_610),
        "unknown": json_values,
    },
)


@given(claims)
def test_what_is_accepted_here_verifies_with_joserfc_too(mint, verifier, jose_key, changes):
    """
    No token is accepted whose signature joserfc would refuse or whose claims it would read differently.
    """
    token = mint.signed(**changes)

    try:
        context = verifier.verify(token)
    except CustomerContextError:
        return

    payload = json.loads(jws.deserialize_compact(token, jose_key, algorithms=["ES256"]).payload)
    assert json.loads(json.dumps(context.claims)) == payload
    assert context.sub == payload["sub"]


@given(st.sampled_from(["k1", "k2"]), texts.filter(bool))
def test_what_joserfc_signs_is_accepted_here(mint, verifier, kid, sub):
    """
    A token that joserfc made from the same claims verifies.
    """
    number = mint.private[kid].private_numbers().private_value
    jwk = next(jwk for jwk in mint.jwks["keys"] if jwk["kid"] == kid)
    key = ECKey.import_key({**jwk, "d": mint.b64url(number.to_bytes(32))})
    payload = json.dumps(mint.claims(sub=sub)).encode()

    token = jws.serialize_compact({"typ": "at+jwt", "alg": "ES256", "kid": kid}, payload, key, algorithms=["ES256"])

    assert verifier.verify(token).sub == sub


words = st.text(string.ascii_letters + string.digits, min_size=16, max_size=40)
times = st.integers(0, LARGEST) | st.floats(0, LARGEST)
actors = st.recursive(
    st.builds(Actor, words, st.none() | words),
    lambda inner: st.builds(Actor, words, st.none() | words, inner),
    max_leaves=1,
).filter(lambda actor: len(actor.history()) < 4)
token_claims = st.builds(
    TokenClaims,
    iss=words,
    sub=texts.filter(bool),
    aud=words | st.lists(words).map(tuple),
    client_id=words,
    iat=times,
    exp=times,
    jti=words,
    acr=words,
    act=actors,
    auth_time=st.none(),
    nbf=st.none() | times,
    scope=st.none() | words,
    action=st.none()
    | st.builds(
        ActionClaim,
        action=words,
        digest=words,
        idempotency_key=st.none() | words,
        confirmation=st.none() | st.builds(Confirmation, st.sampled_from(["none", "client", "customer"]), times),
    ),
)


@given(token_claims, st.none() | st.floats(0, 1))
def test_claims_survive_the_way_through_a_token(claims, share):
    """
    What the issuer writes is what the verifier reads, through JSON and back.
    """
    written = claims.to_payload() | ({} if share is None else {"auth_time": claims.iat * share})

    read = TokenClaims.from_payload(loads(json.dumps(written)))

    assert read.to_payload() == written


@given(arguments, st.randoms(use_true_random=False))
def test_a_digest_does_not_mind_the_order_of_members(value, random):
    """
    Members in any order, at any depth, and any spelling of the text give one digest.
    """

    def shuffled(part):
        if isinstance(part, dict):
            names = random.sample(list(part), len(part))
            return {name: shuffled(part[name]) for name in names}
        return [shuffled(member) for member in part] if isinstance(part, list) else part

    expected = action_digest(action="a", arguments=value, idempotency_key=KEY)

    assert action_digest(action="a", arguments=shuffled(value), idempotency_key=KEY) == expected
    assert action_digest(action="a", arguments=json.dumps(shuffled(value), indent=1), idempotency_key=KEY) == expected


@given(arguments, arguments)
def test_a_digest_changes_with_any_value(one, other):
    """
    Two arguments have one digest exactly when they are one JSON value.
    """
    equal = rfc8785.dumps(one) == rfc8785.dumps(other)

    digests = [action_digest(action="a", arguments=value, idempotency_key=KEY) for value in (one, other)]

    assert (digests[0] == digests[1]) is equal


@given(arguments, texts, plain | floats)
def test_a_digest_changes_with_one_member(value, name, member):
    """
    Adding or changing one member changes the digest, null and an absent one included.
    """
    changed = value | {name: member}
    assume(name not in value or rfc8785.dumps(value[name]) != rfc8785.dumps(member))

    digests = {action_digest(action="a", arguments=form, idempotency_key=KEY) for form in (value, changed)}

    assert len(digests) == 2


@settings(max_examples=300)
@given(json_of(texts, plain) | json_of(st.text(string.printable, max_size=8), plain) | json_values)
def test_the_canonical_form_is_that_of_rfc8785(value):
    """
    The fast way and the slow way write the same octets as the reference implementation.
    """
    assert canonical_json(value) == rfc8785.dumps(value)


@given(json_values)
def test_the_canonical_form_is_read_back(value):
    """
    Canonical text is strict JSON of the same value, and its own canonical form.
    """
    canonical = canonical_json(value)

    assert canonical_json(loads(canonical)) == canonical


@given(st.text(st.characters(codec=None, exclude_categories=())) | st.integers() | st.floats())
def test_arguments_raise_one_type(value):
    """
    Nothing but `ArgumentsError` leaves the computing of a digest, whatever text or number stands in the arguments.
    """
    for form in (value, {"x": value}, {str(value): 1}):
        try:
            digest = action_digest(action="a", arguments=form, idempotency_key=KEY)
        except ArgumentsError:
            continue
        assert len(digest) == 43


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=80))
def test_any_three_parts_give_one_error(mint, verifier, header, payload, signature):
    """
    Octets of any kind in the three parts are refused, with nothing else raised.
    """
    assert is_refused(verifier, ".".join(map(mint.b64url, (header, payload, signature))))


@given(st.text(max_size=80) | st.none() | st.integers() | st.binary() | st.lists(st.text()))
def test_anything_else_gives_one_error(verifier, token):
    """
    Text and values of any kind in the place of a token are refused, with nothing else raised.
    """
    assert is_refused(verifier, token)


def test_the_token_that_is_changed_is_a_good_one(verifier, token):
    """
    The properties above start from a token that is accepted.
    """
    assert not is_refused(verifier, token)
    assert parse_compact(token).kid == "k1"
