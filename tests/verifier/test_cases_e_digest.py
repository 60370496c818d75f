"""
Cases E14, E15, E17, G06, G07 and G09 as far as they speak of canonical JSON and of what is confirmed.

Hex digests in these cases are SHA-256 of the bare canonical arguments; they show which inputs are the same octets (D2).
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import rfc8785

from verifier import action_digest
from verifier.action import ArgumentsError, canonical_json
from verifier.strict_json import loads

CASES = {
    case["id"]: case for case in json.loads((Path(__file__).parents[1] / "data" / "cases.json").read_text("utf-8"))
}
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"


def rows(*cases: str) -> dict[str, dict[str, str]]:
    """
    Name the rows of cases by case and number.
    """
    return {
        f"{case}-{number}": row
        for case in cases
        for number, row in enumerate(CASES[case]["input"].get("rows") or CASES[case]["input"]["steps"])
    }


CANONICAL = {name: row for name, row in rows("E14", "E15").items() if "canonical" in row}
REFUSED = {name: row for name, row in rows("E15", "E17").items() if row.get("result", "").startswith("refused")}
PAIRS = {
    name: (row["json_a"], row["json_b"], row["result"]) for name, row in rows("E17").items() if "json_a" in row
} | {name: (row["a"], row["b"], row["expect"]) for name, row in rows("G09").items()}


def digest(arguments: object, action: str = "a") -> str:
    """
    Compute an action digest.
    """
    return action_digest(action=action, arguments=arguments, idempotency_key=KEY)


@pytest.mark.parametrize("name", CANONICAL)
def test_row_is_written_to_the_octet(name):
    """
    Each row has exactly the canonical octets and the hash of the case; one number is canonical and still has no digest.
    """
    row = CANONICAL[name]
    value = loads(row["json"])

    if "canonicaliser only" in row.get("note", ""):
        canonical = rfc8785.dumps(value)
        with pytest.raises(ArgumentsError):
            digest(row["json"])
    else:
        canonical = canonical_json(value)
        assert digest(row["json"]) == digest(row["canonical"]) == digest(value)

    assert canonical == row["canonical"].encode() == bytes.fromhex(row["canonical_utf8_hex"])
    assert sha256(canonical).hexdigest() == row["sha256_hex"]


@pytest.mark.parametrize("name", REFUSED)
def test_row_is_refused(api, mint, name):
    """
    Each row that is no I-JSON object has no digest, and as the arguments of a call is refused with reason `action`.
    """
    raw = REFUSED[name]["json"]

    with pytest.raises(ArgumentsError):
        digest(raw)
    with pytest.raises(ArgumentsError):
        digest(raw.encode())
    assert api().refused(mint.write(), action=mint.action, arguments=raw) == "action"


@pytest.mark.parametrize("name", PAIRS)
def test_row_of_two_spellings(name):
    """
    Each pair has one digest or two, as the case says.
    """
    one, other, expected = PAIRS[name]

    assert expected.startswith(("same digest", "two different digests", "different"))
    assert (digest(one) == digest(other)) is expected.startswith("same")


def test_rows_of_g09_have_the_hash_of_the_case():
    """
    The octets that are hashed are those of the case.
    """
    given = CASES["G09"]["input"]

    hashes = {sha256(canonical_json(loads(step["a"]))).hexdigest() for step in given["steps"][:4]}

    assert hashes == {given["sha256_of_a"]}
    assert given["steps"][0]["expect"].endswith(given["sha256_of_a"])


def test_row_g06_0(api, mint):
    """
    Arguments that were changed after the approval are refused by the API that is about to execute them.
    """
    step = CASES["G06"]["input"]["steps"][0]
    token = mint.signed(caplo=mint.caplo(arguments=loads(step["approved_args"])))
    built = api()

    assert sha256(canonical_json(loads(step["approved_args"]))).hexdigest() == step["digest"]
    assert built.refused(token, action=mint.action, arguments=step["executed_args"]) == "action"
    assert built.verify(token, action=mint.action, arguments=step["approved_args"])


def test_row_g06_1(api, mint):
    """
    A field that a middleware adds is seen, since the digest is computed on the final arguments.
    """
    final = {**mint.arguments, "channel": "web"}

    assert api().refused(mint.write(), action=mint.action, arguments=final) == "action"


def test_row_g06_2(api, mint):
    """
    What is executed is what was digested: the arguments come out as they were checked, not as something was coerced to.
    """
    token = mint.signed(caplo=mint.caplo(arguments={"amount": "100"}))

    context = api().verify(token, action=mint.action, arguments=b'{"amount":"100"}')

    assert context.arguments == {"amount": "100"}
    token = mint.signed(caplo=mint.caplo(arguments={"amount": "100"}))
    assert api().refused(token, action=mint.action, arguments={"amount": 100}) == "action"


def test_row_g06_3(mint):
    """
    What is shown for approval can be produced from the canonical arguments, which leave nothing out.
    """
    assert loads(canonical_json(mint.arguments)) == mint.arguments


def test_rows_g07_0_and_1(api, mint):
    """
    An approved token used with other arguments is refused and not used up; the honest call is then accepted once.
    """
    built, token = api(), mint.write()

    assert built.refused(token, action=mint.action, arguments={"orderId": "everything"}) == "action"
    assert built.verify(token, **mint.call)
    assert built.refused(token, **mint.call) == "replayed"


def test_row_g07_2(api, mint):
    """
    The same arguments under another name are another action.
    """
    assert api().refused(mint.write(), action="orders.delete", arguments=mint.arguments) == "action"
    assert digest(mint.arguments, "orders.delete") != digest(mint.arguments, "orders.read")


def test_row_g07_3(api, mint):
    """
    Another customer or audience cannot be put into a token without its signature, and another audience refuses it.
    """
    token = mint.write()
    header, _, signature = token.split(".")
    forged = [
        mint.b64url(json.dumps(mint.claims(caplo=mint.caplo(), **change)).encode()) for change in ({"sub": "x"}, {})
    ]

    assert {api().refused(f"{header}.{payload}.{signature}", **mint.call) for payload in forged} == {"signature"}
    assert api(audience="https://other.test").refused(token, **mint.call) == "audience"


def test_row_g07_4(api, mint):
    """
    The same identifier at another tenant is another issuer's token.
    """
    assert api(issuer="https://issuer.test/w/other").refused(mint.write(), **mint.call) == "issuer"


def test_every_row_is_driven():
    """
    Each row of the three digest cases and of G09 belongs to one of the tables above.
    """
    assert {*CANONICAL, *REFUSED, *PAIRS} == {*rows("E14", "E15", "E17", "G09")}
    assert [len(CASES[case]["input"]["steps"]) for case in ("G06", "G07")] == [4, 5]
