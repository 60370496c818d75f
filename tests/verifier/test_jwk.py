"""
Keys of a JWK Set: which are taken, which are ignored, and when a whole document is unusable.
"""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey, KeySet

from verifier.compact import b64url_encode
from verifier.jwk import UnusableKeySet, collect_keys, import_public_key, parse_key_set

K1, K2 = json.loads((Path(__file__).parents[1] / "data" / "fixture.json").read_text())["jwks"]["keys"]
SHARED = Path(__file__).parents[3] / "shared" / "cases" / "data"
SHAPES = SHARED / "real_jwks_shapes.json"
WYCHEPROOF = SHARED / "wycheproof"

UNUSABLE = {
    "not an object": ("form", None),
    "text": ("form", "k1"),
    "a list": ("form", []),
    "RSA": ("kty", {**K1, "kty": "RSA"}),
    "no kty": ("kty", {name: value for name, value in K1.items() if name != "kty"}),
    "kty in lower case": ("kty", {**K1, "kty": "ec"}),
    "kty of another type": ("kty", {**K1, "kty": ["EC"]}),
    "P-384": ("crv", {**K1, "crv": "P-384"}),
    "no crv": ("crv", {name: value for name, value in K1.items() if name != "crv"}),
    "no kid": ("kid", {name: value for name, value in K1.items() if name != "kid"}),
    "a number as kid": ("kid", {**K1, "kid": 1}),
    "an empty kid": ("kid", {**K1, "kid": ""}),
    "129 characters of kid": ("kid", {**K1, "kid": "k" * 129}),
    "a kid beyond ASCII": ("kid", {**K1, "kid": "k\u00e9"}),
    "a line break in kid": ("kid", {**K1, "kid": "k\n1"}),
    "ES384": ("alg", {**K1, "alg": "ES384"}),
    "RS256": ("alg", {**K1, "alg": "RS256"}),
    "null as alg": ("alg", {**K1, "alg": None}),
    "use enc": ("use", {**K1, "use": "enc"}),
    "use SIG": ("use", {**K1, "use": "SIG"}),
    "null as use": ("use", {**K1, "use": None}),
    "key_ops sign": ("key_ops", {**K1, "key_ops": ["sign"]}),
    "key_ops as text": ("key_ops", {**K1, "key_ops": "verify"}),
    "key_ops empty": ("key_ops", {**K1, "key_ops": []}),
    "key_ops with a number": ("key_ops", {**K1, "key_ops": ["verify", 1]}),
    "x missing": ("coordinates", {name: value for name, value in K1.items() if name != "x"}),
    "x too short": ("coordinates", {**K1, "x": K1["x"][:-1]}),
    "x padded": ("coordinates", {**K1, "x": K1["x"] + "="}),
    "x of 33 octets": ("coordinates", {**K1, "x": b64url_encode(bytes(33))}),
    "x with set spare bits": ("coordinates", {**K1, "x": K1["x"][:-1] + chr(ord(K1["x"][-1]) + 1)}),
    "x beyond ASCII": ("coordinates", {**K1, "x": "\u00e9" * 43}),
    "y as a number": ("coordinates", {**K1, "y": 1}),
    "y of another key": ("point", {**K1, "y": K2["y"]}),
    "the point (0, 0)": ("point", {**K1, "x": b64url_encode(bytes(32)), "y": b64url_encode(bytes(32))}),
    "x larger than the field": ("point", {**K1, "x": b64url_encode(b"\xff" * 32)}),
    **{
        f"private member {name}": ("private", {**K1, name: "AA"})
        for name in ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
    },
    "private member of an AKP key": ("private", {"kty": "AKP", "kid": "pq", "priv": "AA"}),
}


def document(*entries: object) -> bytes:
    return json.dumps({"keys": entries}).encode()


def usable_kids(entries: list[object]) -> list[str]:
    try:
        return sorted(parse_key_set(document(*entries)))
    except UnusableKeySet:
        return []


def filled(shape: dict[str, object]) -> dict[str, object]:
    """
    Put key material where a shape says "32 octets".
    """
    material = {
        name: b64url_encode(bytes(int(text.split()[0]))) for name, text in shape.items() if "octets" in str(text)
    }
    return {**shape, **material} | ({"x": K1["x"], "y": K1["y"]} if shape.get("crv") == "P-256" else {})


@pytest.mark.parametrize(("fault", "jwk"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_entry_is_refused_and_spoils_nothing(fault: str, jwk: object):
    """
    An entry with a fault is no key, is counted under that fault, and leaves its neighbour alone (jwks-lenient, bcp-key-one-alg).
    """
    taken = import_public_key(jwk)
    key_set = parse_key_set(document(jwk, K2))

    assert taken is None
    assert dict(key_set.ignored) == {fault: 1}
    assert list(key_set) == ["k2"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kid": "k" * 128},
        {"kid": "a b/../*'\";"},
        {"key_ops": ["verify"]},
        {"key_ops": ["sign", "verify"]},
        {"x5c": ["AAAA"], "aauth": {"device": "x"}, "ext": True},
    ],
)
def test_a_usable_entry_is_taken(changes: dict[str, object]):
    """
    The key that was published is imported under its kid; members that say nothing against it are ignored.
    """
    taken = import_public_key({**K1, **changes})

    assert taken is not None
    assert taken[0] == changes.get("kid", "k1")
    assert taken[1].curve.name == "secp256r1"
    assert b64url_encode(taken[1].public_numbers().x.to_bytes(32)) == K1["x"]


def test_alg_and_use_may_be_absent():
    """
    A key that carries neither alg nor use may verify (RFC 7517 sections 4.2 and 4.4).
    """
    sparse = {name: K1[name] for name in ("kty", "crv", "x", "y", "kid")}

    assert import_public_key(sparse) is not None


def test_a_key_with_a_leading_zero_octet_keeps_it():
    """
    About one key in 128 has a coordinate that begins with a zero octet; it has 43 characters all the same (ec-coords).
    """
    numbers = next(
        numbers
        for numbers in (
            ec.derive_private_key(scalar, ec.SECP256R1()).public_key().public_numbers() for scalar in range(1, 5000)
        )
        if numbers.x < 2**248
    )
    jwk = {"kty": "EC", "crv": "P-256", "kid": "zero"}

    full = import_public_key(
        {**jwk, "x": b64url_encode(numbers.x.to_bytes(32)), "y": b64url_encode(numbers.y.to_bytes(32))}
    )
    short = import_public_key(
        {**jwk, "x": b64url_encode(numbers.x.to_bytes(31)), "y": b64url_encode(numbers.y.to_bytes(32))}
    )

    assert full is not None
    assert full[1].public_numbers() == numbers
    assert short is None


def test_every_fault_beside_one_good_key():
    """
    A set of RSA, OKP, oct, broken EC keys and junk still has its one good key.
    """
    key_set = parse_key_set(document(*(jwk for _, jwk in UNUSABLE.values() if jwk != K1), {**K2, "kid": "good"}))

    assert set(key_set) == {"good"}
    assert sum(key_set.ignored.values()) == len(UNUSABLE)


@pytest.mark.parametrize(
    "twin",
    [K1, {**K2, "kid": "k1"}, {**K1, "use": "enc"}, {"kty": "RSA", "kid": "k1"}, {**K1, "d": "AA"}],
    ids=["the same key", "another key", "an encryption key", "an RSA key", "the private key"],
)
def test_a_kid_that_two_entries_name_is_unusable(twin: dict[str, object]):
    """
    Nobody can tell which of two entries is meant, so neither is (jwks-members); other keys of the set are.
    """
    key_set = parse_key_set(document(K1, twin, K2))

    assert set(key_set) == {"k2"}
    assert sum(key_set.ignored.values()) == 2


def test_one_key_may_have_two_names():
    """
    The same key under two kids is two entries, each of them usable.
    """
    assert set(parse_key_set(document(K1, {**K1, "kid": "old-name"}))) == {"k1", "old-name"}


def test_what_is_usable_may_be_decided_elsewhere():
    """
    Whoever takes other kinds of keys says which, and whether they need a kid; a kid that two share stays unusable.
    """
    entries = [{"kty": "oct"}, {"kty": "RSA", "n": 1}, {"kty": "RSA", "n": 2, "kid": "a"}, {"kty": "x", "kid": "a"}]

    def examine(entry: dict[str, object]) -> tuple[object, object] | str:
        return (entry.get("kid"), entry["n"]) if entry["kty"] == "RSA" else "kty"

    keys, ignored = collect_keys(document(*entries), examine)

    assert keys == [(None, 1)]
    assert ignored == {"kty": 2, "shared_kid": 1}
    with pytest.raises(UnusableKeySet):
        collect_keys(document(entries[0]), examine)


def test_an_empty_set_is_valid():
    """
    An empty array is the withdrawal of all keys, not an error.
    """
    key_set = parse_key_set(b'{"keys": []}')

    assert len(key_set) == 0
    assert dict(key_set.ignored) == {}


def test_a_key_set_is_a_mapping_that_cannot_be_changed():
    """
    A set maps kid to key and is frozen.
    """
    key_set = parse_key_set(document(K1, K2))

    assert list(key_set) == ["k1", "k2"]
    assert key_set["k1"] is key_set.get("k1")
    with pytest.raises(TypeError):
        key_set.by_kid["k3"] = key_set["k1"]
    with pytest.raises(AttributeError):
        key_set.by_kid = {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"keys": null}',
        b'{"keys": {}}',
        b'{"keys": "k1"}',
        b"<html>",
        b"\xff",
        b'{"keys": [], "keys": []}',
        b'{"keys": ' + b"[" * 100_000,
        document(*([K1] * 257)),
        b'{"keys": []}' + b" " * 65536,
        document({**K1, "use": "enc"}),
        document({**K1, "d": "AA"}, {**K2, "kid": None}),
        document(K1, K1),
        json.dumps(K1).encode(),
    ],
)
def test_a_document_that_is_no_usable_set(body: bytes):
    """
    Anything but an object with an array of keys, one of them usable if there are any, is unusable as a whole.
    """
    with pytest.raises(UnusableKeySet):
        parse_key_set(body)


def test_the_error_counts_the_faults():
    """
    An operator is told why no entry is usable, in words that quote nothing of the document.
    """
    with pytest.raises(UnusableKeySet) as caught:
        parse_key_set(document({**K1, "d": "SECRET"}, {**K2, "use": "enc"}, {**K2, "kid": "other", "use": "enc"}))

    assert dict(caught.value.ignored) == {"private": 1, "use": 2}
    assert "SECRET" not in str(caught.value)


def test_256_entries_in_64_kib_are_read():
    """
    Both limits are inclusive.
    """
    body = document(*({**K1, "kid": f"k{number}"} for number in range(256)))

    assert len(parse_key_set(body + b" " * (65536 - len(body)))) == 256


@pytest.mark.skipif(not SHAPES.exists(), reason="the shared case data lie beside a checkout, not in it")
def test_sets_published_in_the_wild():
    """
    Of twelve published sets, those with P-256 keys for ES256 are usable and all others are not; none raises anything else.
    """
    documents = json.loads(SHAPES.read_text())["documents"]

    usable = {entry["repo"]: usable_kids([filled(shape) for shape in entry["keys"]]) for entry in documents}

    assert {repo: kids for repo, kids in usable.items() if kids} == {
        "danielgleonard/health-cards-walkthrough": ["RFC 7638 thumbprint"],
        "dickhardt/dickhardt.github.io": ["date_hex"],
        "EUVABECO/pub": ["name A", "name B"],
        "Deloitte-Citizen-Digital-Identity/PHAC-IIAB-Example-Public-Keys-TEST-PURPOSES-ONLY": ["RFC 7638 thumbprint"],
        "contraco/contraco-ru": ["name-year"],
    }


@pytest.mark.skipif(not WYCHEPROOF.exists(), reason="the shared case data lie beside a checkout, not in it")
def test_wycheproof_key_sets():
    """
    Of Wycheproof's key sets one has a key for ES256: the mixed one, where it stands beside a shared secret that is ignored.
    """
    groups = json.loads((WYCHEPROOF / "json_web_key_test.json").read_text())["testGroups"]

    usable = [(group["comment"], usable_kids((group.get("public") or group["private"])["keys"])) for group in groups]

    assert [entry for entry in usable if entry[1]] == [("jws_mixedSymmetryKeyset", ["kid-ec-sign"])]


@pytest.mark.skipif(not WYCHEPROOF.exists(), reason="the shared case data lie beside a checkout, not in it")
def test_wycheproof_keys_for_es256():
    """
    Wycheproof's P-256 keys are taken unless they are marked for encryption by use or key_ops.
    """
    groups = json.loads((WYCHEPROOF / "es256_jws_subset.json").read_text())["groups"]

    taken = {(group["comment"], import_public_key(group["public"]) is not None) for group in groups}

    assert taken == {("es256", True), ("ec_key_for_encryption", False), ("SpecialCaseEs256", True)}


def test_what_joserfc_writes_is_read():
    """
    A set of another library's making is read to the same keys.
    """
    made = [ECKey.generate_key("P-256", {"alg": "ES256", "use": "sig"}, auto_kid=True) for _ in range(3)]

    key_set = parse_key_set(json.dumps(KeySet(made).as_dict(private=False)).encode())

    assert {kid: key.public_numbers() for kid, key in key_set.items()} == {
        key.kid: key.public_key.public_numbers() for key in made
    }
