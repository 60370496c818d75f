"""
JSON of others: the canonicalisation vectors of RFC 8785's author, ten thousand numbers, and the JSON parsing test suite.

The vectors are third-party data that lies beside the project, each with its licence, and is not copied into it.
"""

import json
import struct
from hashlib import sha256
from pathlib import Path

import pytest
import rfc8785

from verifier.action import ArgumentsError, canonical_json
from verifier.strict_json import StrictJSONError, loads

DATA = Path(__file__).parents[3] / "shared" / "cases" / "data"
PARSING = sorted(path.name for path in DATA.glob("jsontestsuite/test_parsing/*.json"))

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the vectors of others lie beside a checkout, not in it")

# Legal JSON that is refused here: two parsers read a repeated name differently (RFC 8259 section 4).
STRICTER = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


def double(text: str) -> float:
    """
    Read the sixteen or fewer hexadecimal digits of an IEEE 754 number.
    """
    return struct.unpack(">d", bytes.fromhex(text.zfill(16)))[0]


def is_ambiguous(number: float) -> bool:
    """
    Tell whether a number is written like an integer beyond 2^53-1, and so has no canonical form for arguments (D2).
    """
    return number.is_integer() and 2**53 <= abs(number) < 1e21


def test_canonical_vectors():
    """
    The six documents have exactly the octets and hashes that RFC 8785's author published.
    """
    vectors = json.loads((DATA / "jcs/vectors.json").read_text("utf-8"))["vectors"]

    for vector in vectors:
        canonical = canonical_json(loads(vector["input_json_text"]))
        assert canonical == bytes.fromhex(vector["canonical_utf8_hex"])
        assert sha256(canonical).hexdigest() == vector["sha256_hex"]
    assert len(vectors) == 6


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_canonical_files(name):
    """
    Each input file gives its output file, octet by octet.
    """
    source, output = ((DATA / "jcs" / folder / f"{name}.json").read_bytes() for folder in ("input", "output"))

    assert canonical_json(loads(source)) == output
    assert output.hex() == "".join((DATA / "jcs/outhex" / f"{name}.txt").read_text().split())


def test_ten_thousand_numbers():
    """
    Each number is written as ECMAScript writes it; those that look like unsafe integers are refused, and only those.
    """
    numbers = [line.split(",") for line in (DATA / "jcs/es6_numbers_10000.txt").read_text().split()]

    wrong = []
    for digits, text in numbers:
        number = double(digits)
        try:
            written = canonical_json(number).decode()
        except ArgumentsError:
            written = rfc8785.dumps(number).decode() if is_ambiguous(number) else "refused"
        else:
            written = "accepted" if is_ambiguous(number) else written
        wrong += [(digits, text, written)] * (written != text)
    assert wrong == []
    assert len(numbers) == 10_000


def test_rfc_8785_appendix_b():
    """
    The sample numbers of RFC 8785 read as they are printed there, and what is no number has no form.
    """
    rows = json.loads((DATA / "jcs/rfc8785_appendix_b.json").read_text("utf-8"))["rows"]

    for row in rows:
        number = double(row["ieee754_hex"])
        if row.get("json") is None:
            with pytest.raises(ArgumentsError):
                canonical_json(number)
        elif is_ambiguous(number):
            with pytest.raises(ArgumentsError):
                canonical_json(number)
            assert rfc8785.dumps(number).decode() == row["json"]
        else:
            assert canonical_json(number).decode() == row["json"]
    assert len(rows) > 20


@pytest.mark.parametrize("name", PARSING)
def test_parsing(name):
    """
    What must be read is read, what must be refused is refused, and where a parser is free one error is all there is.
    """
    document = (DATA / "jsontestsuite/test_parsing" / name).read_bytes()

    try:
        value = loads(document)
    except StrictJSONError:
        assert name in STRICTER or not name.startswith("y_")
        return
    assert name not in STRICTER
    assert not name.startswith("n_")
    assert value == json.loads(document)


# What a parser is free in, and what is decided here: an encoding other than UTF-8, lone surrogates, numbers without an end and
# deep nesting are refused; numbers are read as Python reads them.
FREE = {
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
}


def test_parsing_where_it_is_free():
    """
    Of the documents that a parser may read or refuse exactly these are read.
    """
    taken = set()

    for name in PARSING:
        if name.startswith("i_"):
            try:
                loads((DATA / "jsontestsuite/test_parsing" / name).read_bytes())
            except StrictJSONError:
                continue
            taken.add(name)

    assert taken == FREE
    assert len(PARSING) == 318
