"""
Case group A: tokens from public bug reports, each row with its answer and, where it is refused, the reason of D20.

The rows of A15 and A19 carry neither `acr` nor `act`, which this profile requires (D16). Each is driven twice: as it is, and with
these two added and signed again, so that what the row is about decides.
"""

import json
import re
import time
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from verifier import CustomerContextError
from verifier.fetch import FetchResponse

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
    if case["group"] == "A"
}
ROWS = [f"{name}-{row}" for name, case in CASES.items() for row in case["input"]["tokens"]]
WITHOUT_ACTOR = ("A15", "A19")
JWKS_URL = "https://issuer.test/.well-known/jwks.json"


def rows(reason: str, names: str) -> dict[str, str]:
    """
    Give several rows one reason.
    """
    return dict.fromkeys(names.split(), reason)


# The reason of each refused row. Where a row is wrong in several ways the first check of D20 that notices decides.
REASONS = {
    # An empty signature is no part of a token; the others carry a good ES256 signature.
    "A01": rows("malformed", "lower mixed upper")
    | rows("algorithm", "empty null array lowercase_es256 trailing_space alg_missing"),
    "A02": rows("algorithm", "jwk_json jwk_json_compact spki_pem spki_pem_no_newline spki_der raw_point jwks_body"),
    "A03": {"jwk_same_kid": "signature", "jwk_without_kid": "malformed"}
    | rows("key", "jku_attacker x5u_loopback x5c_garbage"),
    "A04": rows("malformed", "unknown_ext unknown_url_ext known_plus_unknown"),
    "A07": rows("malformed", "deflated_payload bomb_2MB_in_2KB"),
    "A08": rows("malformed", "alg_none_last alg_none_first kid_twice typ_twice escaped_spelling"),
    # One or two characters more are a canonical spelling of 65 or 66 octets, which is no signature.
    "A10": rows(
        "malformed",
        "sig_unused_bits_1 sig_unused_bits_7 sig_unused_bits_15 sig_padded sig_newline_at_end sig_space_inside "
        "sig_question_mark_inside sig_equals_inside payload_newline_inside sig_standard_alphabet "
        "payload_unused_bits_signed",
    )
    | rows("signature", "sig_extra_char sig_two_extra_chars"),
    "A11": rows("signature", "der der_hex_text s_then_r little_endian"),
    "A12": rows(
        "signature",
        "zero_zero psychic_der r_n_s_n r_zero s_zero s_is_n one_one r_nminus1_s_1 all_ff truncated_63",
    )
    | {"empty": "malformed"},
    "A14": {"flipped_s_after_original": "replayed"},
    # A number without an end is no strict JSON; the year 1970 is a time.
    "A15": rows("malformed", "exp_1e400 exp_minus_1e400 exp_NaN exp_Infinity iat_1e400 iat_NaN nbf_NaN")
    | rows("claims", "exp_string exp_null exp_array exp_object exp_true exp_negative exp_missing exp_1e308")
    | rows("claims", "exp_hex_string iat_string iat_null iat_missing nbf_string nbf_null nbf_array")
    | {"exp_zero": "expired"},
    # A life of nothing or less has expired before its length is looked at.
    "A19": rows("expired", "exp_equals_now lifetime_zero exp_before_iat")
    | rows("not_yet_valid", "nbf_now_plus_1 iat_now_plus_1 future_window_60")
    | {"lifetime_61": "lifetime"},
    "A20": rows("issuer", "trailing_slash upper_host default_port http trailing_dot leading_space")
    | rows("claims", "array missing"),
    "A21": rows("issuer", "iss_prefix iss_inner")
    | rows("audience", "aud_superstring aud_embedded aud_prefix")
    | rows("claims", "iss_empty aud_empty"),
    "A22": rows("audience", "array_two array_empty array_with_number array_with_null nested_array")
    | rows("audience", "wildcard space_list trailing_slash")
    | rows("claims", "object missing null"),
    "A23": rows("type", "jwt missing number array null trailing_space parameter double_prefix cyrillic_a")
    | rows("type", "typ_only_in_payload dpop_jwt"),
    "A24": rows("malformed", "missing null integer list object true empty newline_log_injection long_2000")
    | rows("key", "trailing_space upper path")
    | {"other_published_key": "signature"},
    "A25": rows("malformed", "header_array header_string header_null header_empty header_trailing_garbage")
    | rows("malformed", "payload_array payload_number payload_string payload_empty payload_two_objects")
    | rows("malformed", "payload_comment payload_single_quotes"),
    "A27": rows("malformed", "header_5MB signature_segment_5MB payload_nest_1000 header_nest_1000_bad_sig")
    | {"payload_100k_nest": "malformed"},
    "A30": rows("issuer", "iss_homoglyph iss_fullwidth iss_idna_dot") | rows("audience", "aud_zero_width aud_nfd_like"),
    "A31": rows("claims", "jti_missing jti_null jti_empty jti_blank jti_integer jti_list jti_long_3000")
    | rows("claims", "sub_missing sub_empty sub_number sub_null"),
    # A scope that is no string has the wrong form before anybody asks what is in it.
    "A32": rows("scope", "substring prefix_only case comma_list missing empty tab_separated nbsp_separated")
    | {"array": "claims"},
}


def expanded(text: str) -> str:
    """
    Repeat what `<A x 5000000>` and the like stand for.
    """
    return re.sub(r"<(.) x (\d+)>", lambda match: match[1] * int(match[2]), text)


@pytest.fixture
def written(mint):
    """
    Write the token of a row, of whichever form it stands in the case.
    """

    def write(row: str) -> str:
        case, _, name = row.partition("-")
        token = CASES[case]["input"]["tokens"][name]
        if isinstance(token, str):
            return token
        if "token_parts" in token:
            parts = token["token_parts"]
            header, payload = (expanded(parts[part]).encode() for part in ("header_json", "payload_json"))
            return mint.compact(header, payload, parts["sign_with"])
        return token["token"] + token["append"] + token["repeat"] * token["times"]

    return write


@pytest.fixture
def completed(mint, written):
    """
    Write the token of a row with `acr` and `act` put in as text and signed again, or as it is where it has them.
    """

    def write(row: str) -> str:
        token = written(row)
        if not row.startswith(WITHOUT_ACTOR):
            return token
        header, payload = (urlsafe_b64decode(part + "===") for part in token.split(".")[:2])
        return mint.compact(header, b'{"acr":"standard","act":{"sub":"agent-1"},' + payload.removeprefix(b"{"))

    return write


@pytest.fixture
def asked():
    """
    Collect the URLs that are fetched.
    """
    return []


@pytest.fixture
def partner(api, mint, asked):
    """
    Build the API of a case, which fetches its keys by a function that remembers what it was asked for.
    """

    def fetch(url, _headers):
        asked.append(url)
        return FetchResponse(200, (("Cache-Control", "max-age=120"),), json.dumps(mint.jwks).encode())

    def build(case: str):
        given = CASES[case]["input"]
        assert (given["issuer"], given["audience"], given["now"]) == (mint.issuer, mint.audience, mint.now)
        assert given["jwks"] == "data/fixture.json#jwks"
        return api(
            fetch=fetch,
            clock_tolerance_seconds=given["clock_tolerance"],
            required_scope=given.get("required_scope"),
        )

    return build


@pytest.mark.parametrize("row", ROWS)
def test_row(partner, completed, asked, row):
    """
    Each row is accepted, or refused for its reason; whatever happens, only the issuer's own key set is ever fetched.
    """
    case, _, name = row.partition("-")
    built, token, expected = partner(case), completed(row), CASES[case]["expected"]["variants"][name]
    if name == "flipped_s_after_original":
        built.verify(completed("A14-original"))

    if expected == "accept":
        assert built.verify(token).jti.startswith(case)
    elif expected == "reject":
        assert built.refused(token) == REASONS[case][name]
    else:
        assert expected == "either"
        assert outcome(built, token) in {None, "claims"}
    assert set(asked) <= {JWKS_URL}


def outcome(built, token) -> str | None:
    """
    Return the reason for which a token is refused, or None where it is accepted.
    """
    try:
        built.verify(token)
    except CustomerContextError as refusal:
        return refusal.reason
    return None


@pytest.mark.parametrize("row", [row for row in ROWS if row.startswith(WITHOUT_ACTOR)])
def test_row_without_an_actor(partner, written, row):
    """
    As they stand in the case, these rows lack claims that are required here, and are refused for that or for worse (D16).
    """
    assert partner(row[:3]).refused(written(row)) in {"malformed", "claims"}


def test_every_refused_row_has_a_reason():
    """
    The table of reasons names exactly the rows that are to be refused.
    """
    refused = {
        (name, row)
        for name, case in CASES.items()
        for row, expected in case["expected"]["variants"].items()
        if expected == "reject"
    }

    assert {(name, row) for name, reasons in REASONS.items() for row in reasons} == refused
    assert len(CASES) == 22
    assert all(case["input"]["tokens"].keys() == case["expected"]["variants"].keys() for case in CASES.values())


def test_rows_in_order_a10(partner, written):
    """
    Other spellings of a token do not use it up: sent last, the canonical one is accepted.
    """
    built = partner("A10")

    for name in REASONS["A10"]:
        assert built.refused(written(f"A10-{name}")) == REASONS["A10"][name]
    assert built.verify(written("A10-canonical"))
    assert built.refused(written("A10-canonical")) == "replayed"


def test_rows_in_order_a14(partner, written):
    """
    The twin of a signature is a spelling of the same token: sent first it is accepted once, and then the original is not.
    """
    built = partner("A14")

    assert built.verify(written("A14-flipped_s_after_original"))
    assert built.refused(written("A14-original")) == "replayed"


def test_rows_of_a24_cause_no_fetch(partner, written, mint, asked):
    """
    A malformed kid is refused before anything is fetched, and an unknown one right after a fetch causes no second.
    """
    built = partner("A24")

    for name, reason in REASONS["A24"].items():
        if reason == "malformed":
            built.refused(written(f"A24-{name}"))
    assert asked == []

    assert built.verify(mint.signed())
    for name in REASONS["A24"]:
        built.refused(written(f"A24-{name}"))
    assert asked == [JWKS_URL]


def test_rows_of_a27_take_no_time(partner, written):
    """
    A token that is far too long or too deep is refused within the 50 ms of the case.
    """
    assert CASES["A27"]["input"]["time_limit_ms"] == 50
    tokens = [written(f"A27-{name}") for name in REASONS["A27"]]
    built = partner("A27")
    built.refused("x")

    began = time.process_time()
    for token in tokens:
        assert built.refused(token) == "malformed"

    assert time.process_time() - began < 0.05 * len(tokens)


def test_rows_of_a30_are_two_customers(partner, written):
    """
    Two spellings that Unicode would make one are two subjects.
    """
    built = partner("A30")

    subjects = [built.verify(written(f"A30-{name}")).sub for name in ("sub_nfc", "sub_nfd")]

    assert subjects == ["caf\u00e9", "cafe\u0301"]


def test_rows_of_a31_are_two_tokens(partner, written):
    """
    Identifiers that differ in case are different tokens.
    """
    built = partner("A31")

    assert built.verify(written("A31-jti_case_lower"))
    assert built.verify(written("A31-jti_case_upper"))
