"""
Case group B, the rows that are one key set and one token: given as a fixed set, and fetched.

A fixed set without any usable key is the programmer's mistake, found when the verifier is built; the same document from the
network is an answer that brings no keys.
"""

import json
from pathlib import Path

import pytest

from verifier.fetch import FetchResponse

CASES = {
    case["id"]: case["input"]["documents"] | {"": case["expected"]["variants"]}
    for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
    if case["input"]["kind"] == "verify_with_jwks"
}
ROWS = [f"{name}-{row}" for name, documents in CASES.items() for row in documents if row]

UNUSABLE = "unusable"
# What is not accepted: `unusable` for a set without a usable key, else the reason of the refusal.
EXPECTED = {
    # A token without a kid is malformed, and no key is tried; but a fixed set without a usable key is told before.
    "B01": dict.fromkeys(
        ["only_key_has_no_kid_token_names_k1", "only_key_has_no_kid_token_has_none", "kid_is_number_in_set"], UNUSABLE
    ),
    "B02": {"token_names_unknown_kty": "key"},
    "B03": dict.fromkeys(["use_enc", "key_ops_encrypt", "key_ops_sign_only", "use_wrong_case"], UNUSABLE),
    "B06": {},
    # Rows that may be repaired or skipped are skipped here: 31 octets, 33 octets, padding.
    "B07": {"x_stripped_to_31": "key", "x_33_octets": UNUSABLE, "x_padded_base64": UNUSABLE},
    "B10": dict.fromkeys(
        [
            *("empty_keys", "no_keys_member", "bare_array", "bare_key", "keys_is_object", "keys_is_null"),
            *("json_null", "empty_body", "x509_map", "error_object"),
        ],
        UNUSABLE,
    ),
}
# From the network: an empty set is a good answer that knows no key, and a malformed token is refused before any fetch.
FETCHED = {
    "B01-only_key_has_no_kid_token_has_none": "malformed",
    "B10-empty_keys": "key",
}


@pytest.fixture
def row(request):
    """
    Give the document as octets, the token and what is expected of a row.
    """
    case, _, name = request.param.partition("-")
    given = CASES[case][name]
    document = given["jwks"] if isinstance(given["jwks"], str) else json.dumps(given["jwks"])
    expected, allowed = EXPECTED[case].get(name), CASES[case][""][name]
    assert allowed in {"accept" if expected is None else "reject", "either"}
    return request.param, document.encode(), given["token"], expected


@pytest.mark.parametrize("row", ROWS, indirect=True)
def test_row_as_a_fixed_set(api, row):
    """
    Each row given as `jwks` is accepted, refused, or no set to build a verifier with.
    """
    _, document, token, expected = row

    if expected == UNUSABLE:
        with pytest.raises(ValueError):
            api(jwks=document)
    elif expected is None:
        assert api(jwks=document).verify(token)
    else:
        assert api(jwks=document).refused(token) == expected


@pytest.mark.parametrize("row", [row for row in ROWS if not row.startswith("B10")], indirect=True)
def test_row_as_a_mapping(api, row):
    """
    Each row that is an object gives the same when it is passed as a mapping.
    """
    _, document, token, expected = row

    if expected == UNUSABLE:
        with pytest.raises(ValueError):
            api(jwks=json.loads(document))
    elif expected is None:
        assert api(jwks=json.loads(document)).verify(token)
    else:
        assert api(jwks=json.loads(document)).refused(token) == expected


@pytest.mark.parametrize("row", ROWS, indirect=True)
def test_row_as_fetched(api, row):
    """
    Each row fetched from the issuer is accepted, refused, or brings no keys.
    """
    name, document, token, expected = row
    built = api(fetch=lambda *_: FetchResponse(200, (), document))

    if expected is None:
        assert built.verify(token)
    else:
        usual = "keys_unavailable" if expected == UNUSABLE else expected
        assert built.refused(token) == FETCHED.get(name, usual)


def test_every_row_is_driven():
    """
    The table names rows of the cases only, and each case of this kind is in it.
    """
    assert EXPECTED.keys() == CASES.keys()
    assert all(rows.keys() <= CASES[name].keys() for name, rows in EXPECTED.items())
    assert all(documents.keys() - {""} == documents[""].keys() for documents in CASES.values())
