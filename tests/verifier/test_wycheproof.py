"""
Signatures and JOSE objects of others: Wycheproof, the JOSE cookbook and the RFCs' own examples.

The vectors are third-party data that lies beside the project, each with its licence, and is not copied into it.
"""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from verifier import parse_challenges, step_up_from_challenge
from verifier.compact import MalformedToken, b64url_decode, parse_compact
from verifier.es256 import ALGORITHM, signature_is_valid
from verifier.jwk import import_public_key
from verifier.strict_json import StrictJSONError, loads_object

DATA = Path(__file__).parents[3] / "shared" / "cases" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the vectors of others lie beside a checkout, not in it")


def read(name: str):
    """
    Read a data file.
    """
    return json.loads((DATA / name).read_text("utf-8"))


def is_accepted(jws: str, jwk: object) -> bool:
    """
    Verify a JWS whose payload is anything with the pieces a token is verified with.
    """
    try:
        header, payload, signature = (part.encode() for part in jws.split("."))
        members, octets = loads_object(b64url_decode(header)), b64url_decode(signature)
        b64url_decode(payload)
    except (MalformedToken, StrictJSONError, ValueError):
        return False
    imported = import_public_key(jwk)
    if imported is None or "crit" in members or members.get("alg") != ALGORITHM or members.get("kid") != imported[0]:
        return False
    return signature_is_valid(imported[1], header + b"." + payload, octets)


def test_ecdsa_vectors():
    """
    Each of the 262 vectors for P-256 with SHA-256 in the form of JWS gets the answer of its label.
    """
    expected, answers = {}, {}
    for group in read("wycheproof/ecdsa_secp256r1_sha256_p1363_test.json")["testGroups"]:
        point = bytes.fromhex(group["publicKey"]["uncompressed"])
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        for vector in group["tests"]:
            expected[vector["tcId"]] = vector["result"] == "valid"
            signature = bytes.fromhex(vector["sig"])
            answers[vector["tcId"]] = signature_is_valid(key, bytes.fromhex(vector["msg"]), signature)

    assert answers == expected
    assert len(answers) == 262


def test_jws_vectors():
    """
    Each of the 41 ES256 vectors gets the answer of its label: misused keys, numbers out of range, embedded keys.
    """
    groups = read("wycheproof/es256_jws_subset.json")["groups"]

    answers = {test["tcId"]: is_accepted(test["jws"], group["public"]) for group in groups for test in group["tests"]}

    assert answers == {test["tcId"]: test["result"] == "valid" for group in groups for test in group["tests"]}
    assert len(answers) == 41


def test_jws_vectors_of_other_algorithms():
    """
    Of all 401 vectors nothing but the ES256 ones is accepted, and nothing but `MalformedToken` is raised.
    """
    good = {test["tcId"] for group in read("wycheproof/es256_jws_subset.json")["groups"] for test in group["tests"]}
    vectors = [
        (test["tcId"], test["jws"], group.get("public") or group.get("private"))
        for group in read("wycheproof/json_web_signature_test.json")["testGroups"]
        for test in group["tests"]
    ]

    for number, jws, jwk in vectors:
        # No payload there is a claims set, so none of them is a token.
        with pytest.raises(MalformedToken):
            parse_compact(jws, kid_required=False)
        assert number in good or not is_accepted(jws, jwk)
    assert len(vectors) == 401


def test_jose_cookbook_keys():
    """
    Keys of another curve are not imported.
    """
    assert import_public_key(read("jose-cookbook/3_1.ec_public_key.json")) is None
    assert import_public_key(read("jose-cookbook/3_2.ec_private_key.json")) is None


@pytest.mark.parametrize(
    "name", ["4_3.ecdsa_signature", "4_8.multiple_signatures", "4.2.hmac-sha2_b64_false", "hmac-sha2_b64_false"]
)
def test_jose_cookbook_objects(api, name):
    """
    Other algorithms, the JSON serialisation, several signatures and unencoded payloads are all refused as malformed.
    """
    output = read(f"jose-cookbook/{name}.json")["output"]

    for form in output.values():
        text = form if isinstance(form, str) else json.dumps(form)
        assert api().refused(text) == "malformed"
    assert output


def test_rfc_7515_example(api):
    """
    The ES256 example of RFC 7515 appendix A.3 has a valid signature and is no customer context token.
    """
    example = read("rfc_examples.json")["rfc7515_a3_es256"]
    public = {name: value for name, value in example["jwk"].items() if name != "d"} | {"kid": "a3"}
    token = parse_compact(example["jws"], kid_required=False)

    assert signature_is_valid(import_public_key(public)[1], token.signing_input, token.signature)
    assert (token.typ, token.kid, token.claims["iss"]) == (None, None, "joe")
    assert api().refused(example["jws"]) == "malformed"
    assert import_public_key(example["jwk"] | {"kid": "a3"}) is None


def test_rfc_challenges():
    """
    The challenges of RFC 9110, RFC 6750, RFC 9470 and of a server in the field read as they are meant.
    """
    examples = read("rfc_examples.json")

    expected = examples["rfc9110_11_6_1"]["challenges"]
    read_back = parse_challenges(examples["rfc9110_11_6_1"]["header"])
    assert [{"scheme": challenge.scheme, "params": dict(challenge.params)} for challenge in read_back] == expected
    for header in (*examples["rfc6750_s3"]["headers"], *examples["rfc9470_s3"]["headers"]):
        assert [challenge.scheme for challenge in parse_challenges(header)] == ["Bearer"]
    assert step_up_from_challenge(examples["rfc9470_s3"]["headers"][0]) is None
    assert step_up_from_challenge(examples["rfc9470_s3"]["headers"][1]).max_auth_age_seconds == 5
    (unquoted,) = parse_challenges(examples["camel_27123"]["header_shape"])
    assert (unquoted.params["acr_values"], unquoted.params["max_age"]) == ("2", "300")
