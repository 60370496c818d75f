"""
One key: its thumbprint, its published form, its import, its self-test, and that it never shows itself.
"""

import copy
import hashlib
import json
import pickle
from base64 import urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jws
from joserfc.jwk import ECKey

from keys import InvalidKey, PrivateJWK, SelfTestFailed, check_pair, generate_key, import_private_jwk, thumbprint
from keys import key as key_module
from keys.key import ALGORITHMS, Algorithm, check_public_jwk

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

# The worked example of tests/verifier/test_decisions.py: derived from a public label, never to be used.
DEMO_KID = "lxn_9vHeTQ4ezB3BeyXJr_oRIq0WKNfdgC-fwyOEmUA"
DEMO_PUBLIC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "eVN9rZfCrsW_4dMDJoTgj3VbwPQMwFVDLp9RTT1uUjk",
    "y": "6jDaox70Rg8iz4KEc4d_8Tdoz1DTNgbJfR-UqYCzcTY",
    "use": "sig",
    "alg": "ES256",
    "kid": DEMO_KID,
}
OTHER_X = "T17tJ09YbqiGjrSSAG677v99cQAMJfz9adZmb7Fr2cg"
OTHER_Y = "mgrtRZ5D7n5dVO6xMcao4vJeNVT4VToGpIJ7ydeP6R4"


def b64u(number):
    return urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()


def private_jwk(scalar):
    public = ec.derive_private_key(scalar, ec.SECP256R1()).public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "x": b64u(public.x), "y": b64u(public.y), "d": b64u(scalar)}


def demo_scalar():
    return int.from_bytes(hashlib.sha256(b"caplo demo signing key, TEST ONLY").digest(), "big") % (ORDER - 1) + 1


def test_the_demo_key_has_its_documented_kid_and_form():
    """
    The worked example comes out: kid, members and their order.
    """
    key = import_private_jwk(private_jwk(demo_scalar()))

    assert key.kid == DEMO_KID
    assert key.public_jwk == DEMO_PUBLIC
    assert list(key.public_jwk) == list(DEMO_PUBLIC)


def test_the_thumbprint_is_the_hash_of_the_required_members_alone():
    """
    RFC 7638: SHA-256 of crv, kty, x, y in that order without white space; optional members do not change it.
    """
    required = json.dumps({name: DEMO_PUBLIC[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
    expected = urlsafe_b64encode(hashlib.sha256(required.encode()).digest()).rstrip(b"=").decode()

    assert thumbprint(DEMO_PUBLIC) == expected == DEMO_KID
    assert thumbprint({**DEMO_PUBLIC, "kid": "another", "d": "private"}) == DEMO_KID


def test_a_generated_key_is_new_and_whole():
    """
    Two generated keys differ, and each has exactly the published members.
    """
    first, second = generate_key(), generate_key()

    assert first.kid != second.kid
    assert list(first.public_jwk) == ["kty", "crv", "x", "y", "use", "alg", "kid"]
    assert (first.public_jwk["use"], first.public_jwk["alg"], first.public_jwk["kid"]) == ("sig", "ES256", first.kid)
    assert first.private_jwk.reveal().keys() - first.public_jwk.keys() == {"d"}


@pytest.mark.parametrize("coordinate", ["x", "y"])
def test_a_coordinate_keeps_its_leading_zero(coordinate):
    """
    About one key in 128 has a coordinate that begins with a zero octet; it is published in 43 characters all the same.
    """
    scalar = next(n for n in range(1, 5000) if (m := private_jwk(n))[coordinate][0] == "A" and m[coordinate][1] < "Q")

    key = import_private_jwk(private_jwk(scalar))

    assert len(key.public_jwk[coordinate]) == 43
    assert ECKey.import_key(dict(key.public_jwk)).thumbprint() == key.kid


def test_an_exported_key_imports_again():
    """
    What a key reveals imports to an equal key.
    """
    key = generate_key()

    assert import_private_jwk(key.private_jwk.reveal()) == key


@pytest.mark.parametrize(
    "change",
    [
        {"kty": "OKP"},
        {"crv": "P-384"},
        {"x": OTHER_X},
        {"x": OTHER_X, "y": OTHER_Y},
        {"x": DEMO_PUBLIC["x"][:-2]},
        {"x": DEMO_PUBLIC["x"] + "="},
        {"x": "AA" + DEMO_PUBLIC["x"]},
        {"d": b64u(0)},
        {"d": b64u(ORDER)},
        {"d": "AQ"},
        {"y": None},
        {"y": 5},
        {"k": "AAAA"},
        {"use": "enc"},
        {"alg": "ES384"},
        {"kid": "another"},
    ],
)
def test_a_wrong_private_jwk_is_refused(change):
    """
    Another curve, a foreign half, short, long or padded members, unknown ones and a contradicting kid are refused.
    """
    members = {name: value for name, value in {**private_jwk(demo_scalar()), **change}.items() if value is not None}

    with pytest.raises(InvalidKey) as refusal:
        import_private_jwk(members)

    assert members["d"] not in str(refusal.value)


def test_a_pair_that_fits_passes_its_self_test():
    """
    Signing with the private part verifies with the published form; a key without private part is tested for its kid and point.
    """
    key = generate_key()

    check_pair(key.public_jwk, key.private_jwk, kid=key.kid, alg=key.alg)
    check_pair(key.public_jwk, None, kid=key.kid, alg=key.alg)


def test_a_pair_that_does_not_fit_fails_its_self_test():
    """
    F13: a private key whose published half belongs to another key is found before it signs anything.
    """
    key, other = generate_key(), generate_key()

    with pytest.raises(SelfTestFailed) as failure:
        check_pair(key.public_jwk, other.private_jwk, kid=key.kid, alg=key.alg)

    assert failure.value.kid == key.kid


def test_a_kid_that_is_not_the_thumbprint_fails_the_self_test():
    """
    A key cannot go under the name of another.
    """
    key, other = generate_key(), generate_key()

    with pytest.raises(SelfTestFailed):
        check_pair(key.public_jwk, key.private_jwk, kid=other.kid, alg=key.alg)


def test_a_point_off_the_curve_fails_the_self_test():
    """
    The published form is loaded, also where there is no private part left to test it with.
    """
    off = {**DEMO_PUBLIC, "y": DEMO_PUBLIC["y"][:-1] + "c"}

    with pytest.raises(SelfTestFailed):
        check_pair(off, None, kid=thumbprint(off), alg="ES256")


@pytest.mark.parametrize(
    "change", [{"d": "AA"}, {"use": "enc"}, {"alg": "ES384"}, {"kid": "k1"}, {"x": 5}, {"y": None}]
)
def test_a_published_jwk_has_exactly_its_members(change):
    """
    Private, missing, foreign and malformed members are refused before anything is published.
    """
    members = {name: value for name, value in {**DEMO_PUBLIC, **change}.items() if value is not None}

    with pytest.raises(InvalidKey):
        check_public_jwk(members, kid=DEMO_KID, alg="ES256")


def test_a_published_jwk_is_read_only():
    """
    What a record publishes cannot be changed behind its back.
    """
    given = dict(DEMO_PUBLIC)
    checked = check_public_jwk(given, kid=DEMO_KID, alg="ES256")

    given["x"] = OTHER_X

    assert checked["x"] == DEMO_PUBLIC["x"]
    with pytest.raises(TypeError):
        checked["x"] = OTHER_X


def test_a_private_key_does_not_show_itself():
    """
    Neither repr nor str nor a format shows the private part of a key.
    """
    key = generate_key()
    secret = key.private_jwk.reveal()["d"]

    shown = f"{key!r} {key} {key.private_jwk!r} {key.private_jwk} {[key.private_jwk]}"

    assert secret not in shown


def test_a_private_key_is_neither_pickled_nor_copied():
    """
    It leaves the process only through the sealed ring.
    """
    key = generate_key()

    with pytest.raises(TypeError):
        pickle.dumps(key.private_jwk)
    with pytest.raises(TypeError):
        copy.deepcopy(key.private_jwk)


def test_private_keys_compare_by_content():
    """
    Equal members are equal, others and other things are not.
    """
    private, other = PrivateJWK({"d": "AA"}), PrivateJWK({"d": "AQ"})

    assert private == PrivateJWK({"d": "AA"})
    assert private != other
    assert private != {"d": "AA"}
    with pytest.raises(TypeError):
        hash(private)


def test_an_algorithm_that_is_not_listed_is_refused():
    """
    The allow-list has one entry, and nothing else gets a key.
    """
    assert list(ALGORITHMS) == ["ES256"]
    with pytest.raises(InvalidKey):
        generate_key("RS256")


def test_a_second_algorithm_is_one_entry_in_the_list(monkeypatch):
    """
    ES256 under another name and another key type: with an entry in the list it is made, named, tested and told apart.
    """

    def renamed(jwk):
        return {**jwk, "kty": "EC"}

    es256 = ALGORITHMS["ES256"]
    second = Algorithm(
        name="FAKE256",
        public_members=("kty", "crv", "x", "y"),
        private_members=("d",),
        generate=lambda: {**es256.generate(), "kty": "FAKE"},
        load_private=lambda jwk: es256.load_private(renamed(jwk)),
        load_public=lambda jwk: es256.load_public(renamed(jwk)),
    )
    monkeypatch.setattr(key_module, "ALGORITHMS", {**ALGORITHMS, "FAKE256": second})

    key = generate_key("FAKE256")

    assert (key.alg, key.public_jwk["alg"], key.public_jwk["kty"]) == ("FAKE256", "FAKE256", "FAKE")
    assert import_private_jwk(key.private_jwk.reveal(), alg="FAKE256") == key
    with pytest.raises(InvalidKey):
        import_private_jwk(key.private_jwk.reveal())


def test_joserfc_accepts_what_a_key_publishes():
    """
    The published form is a key for an independent implementation, which verifies a signature made with the private form.
    """
    key = generate_key()
    token = jws.serialize_compact(
        {"alg": "ES256", "kid": key.kid}, b"payload", ECKey.import_key(key.private_jwk.reveal()), algorithms=["ES256"]
    )

    verified = jws.deserialize_compact(token, ECKey.import_key(dict(key.public_jwk)), algorithms=["ES256"])

    assert verified.payload == b"payload"
