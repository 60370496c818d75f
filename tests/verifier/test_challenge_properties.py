"""
Properties of the challenge reader and writer, held against a second reader that goes character by character.
"""

import string
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verifier.challenge import MAX_LINE_LENGTH, MAX_LINES, Challenge, format_challenge, parse_challenges
from verifier.demand import MAX_AGE_S
from verifier.levels import LEVELS
from verifier.step_up import StepUp, step_up_from_challenge

TOKEN_CHARACTERS = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
TOKEN68_CHARACTERS = string.ascii_letters + string.digits + "-._~+/"
PERMITTED = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\')

# The machine may be busy: how long one example takes says nothing.
unhurried = settings(deadline=None)
thorough = settings(deadline=None, max_examples=1000)

tokens = st.text(TOKEN_CHARACTERS, min_size=1, max_size=12)
white = st.text(" \t", max_size=3)
params = st.dictionaries(tokens.map(str.lower), st.text(PERMITTED, max_size=20), min_size=1, max_size=6)
# Text over few characters, all of which mean something to the grammar, gets into every corner of it.
tangled = st.text(st.sampled_from("aB=, \t\"\\/'\r\x7f\xe9"), max_size=40)
fragments = st.lists(
    st.sampled_from(
        [
            "Bearer ",
            'error="insufficient_user_authentication"',
            'acr_values="high"',
            "acr_values=urn:x",
            "max_age=5",
            ", ",
            ",",
            "Negotiate abc==",
            '"',
            "\\",
            " = ",
            "Basic",
        ]
    ),
    max_size=14,
).map("".join)
headers = st.one_of(
    st.none(),
    st.text(),
    st.binary(),
    tangled,
    fragments,
    st.lists(st.one_of(tangled, fragments, st.binary(), st.integers())),
)


def members(line: str) -> Iterator[str]:
    """
    Cut a line at its commas outside quotes.
    """
    member, quoted, escaped = "", False, False
    for character in line:
        if character == "," and not quoted:
            yield member
            member = ""
            continue
        member += character
        if escaped or (quoted and character == "\\"):
            escaped = not escaped
        elif character == '"':
            quoted = not quoted
    yield member


def unquoted(text: str) -> str | None:
    """
    Undo one quoted string that fills *text*.
    """
    value, rest = "", text[1:]
    while rest[:1] != '"':
        escaped = rest[:1] == "\\"
        rest = rest[1:] if escaped else rest
        if not rest or (ord(rest[0]) < 0x20 and rest[0] != "\t") or rest[0] == "\x7f":
            return None
        value, rest = value + rest[0], rest[1:]
    return value if rest == '"' else None


def leading_token(text: str) -> tuple[str, str]:
    """
    Part *text* after its longest token.
    """
    rest = text.lstrip(TOKEN_CHARACTERS)
    return text[: len(text) - len(rest)], rest


def parameter(text: str) -> tuple[str, str] | None:
    """
    Read one parameter that fills *text*.
    """
    name, rest = leading_token(text)
    rest = rest.lstrip(" \t")
    if not name or rest[:1] != "=":
        return None
    rest = rest[1:].lstrip(" \t")
    value = unquoted(rest) if rest[:1] == '"' else leading_token(rest)[0] or None
    if value is None or (rest[:1] != '"' and leading_token(rest)[1]):
        return None
    return name.lower(), value


def read_slowly(line: str) -> tuple[Challenge, ...]:
    """
    Read the challenges of one line, one character after the other.
    """
    drafts: list[tuple[str, list[tuple[str, str]], str | None, bool]] = [("", [], None, False)]
    for member in filter(None, (text.strip(" \t") for text in members(line))):
        scheme, rest = leading_token(member)
        inner = rest.strip(" \t")
        body = inner.rstrip("=")
        if (param := parameter(member)) is not None:
            name, found, token68, usable = drafts[-1]
            drafts[-1] = (name, [*found, param], token68, usable and token68 is None)
        elif scheme and (not rest or (rest[0] in " \t" and inner[0] != "=")):
            param = parameter(inner)
            token68 = inner if body and not body.strip(TOKEN68_CHARACTERS) and param is None else None
            usable = not inner or param is not None or token68 is not None
            drafts.append((scheme, [param] if param else [], token68, usable))
        else:
            drafts[-1] = (*drafts[-1][:3], False)
    return tuple(
        Challenge(scheme, dict(found), token68)
        for scheme, found, token68, usable in drafts
        if usable and len(dict(found)) == len(found)
    )


@thorough
@given(st.one_of(tangled, fragments))
@example('a/b, c=, X, Bearer a= , b=c, Y z="\\", W')
def test_reading_agrees_with_a_second_reader(line):
    """
    The grammar as one expression and the grammar character by character find the same challenges in any line.
    """
    assert parse_challenges(line) == read_slowly(line)


@unhurried
@given(tokens, params)
def test_a_written_challenge_reads_back(scheme, written):
    """
    What is written with permitted characters is read back whole, as one challenge with each parameter once.
    """
    assert parse_challenges(format_challenge(scheme, written)) == (Challenge(scheme, written),)


@unhurried
@given(st.dictionaries(tokens.map(str.lower), st.text(), min_size=1, max_size=6))
def test_a_written_challenge_is_one_line_of_permitted_characters(written):
    """
    Whatever the values hold, the header has no line break, and every value stays inside its own quotes.
    """
    header = format_challenge("Bearer", written)

    assert set(header) <= set(PERMITTED + '"')
    assert header.count('"') == 2 * len(written)
    (challenge,) = parse_challenges(header)
    assert challenge.params.keys() == written.keys()
    assert [len(value) for value in challenge.params.values()] == [len(written[name]) for name in challenge.params]


@st.composite
def spelled_challenges(draw):
    """
    Draw one challenge and one of the many ways to write it.
    """
    scheme = draw(tokens)
    if draw(st.booleans()):
        token68 = draw(st.from_regex(r"[A-Za-z0-9\-._~+/]{1,9}={0,3}", fullmatch=True))
        return Challenge(scheme, {}, token68), f"{scheme} {token68}"
    values = draw(st.dictionaries(tokens.map(str.lower), st.text(PERMITTED + '"\\\xe9', max_size=9), max_size=4))
    spelled = [scheme + " "]
    for name, value in values.items():
        written = draw(st.sampled_from([name, name.upper()]))
        bare = value != "" and not value.strip(TOKEN_CHARACTERS) and draw(st.booleans())
        spelled.append(f"{written}{draw(white)}={draw(white)}{value if bare else quoted(draw, value)}")
    separators = st.builds("{},{}".format, white, st.text(" \t,", max_size=3))
    return Challenge(scheme, values), spelled[0] + "".join(text + draw(separators) for text in spelled[1:]).rstrip(
        " \t,"
    )


def quoted(draw, value):
    """
    Write a quoted string in which any character may be escaped and those that need it are.
    """
    needed = [character in '"\\' or draw(st.booleans()) for character in value]
    return '"' + "".join("\\" * escaped + character for character, escaped in zip(value, needed, strict=True)) + '"'


@unhurried
@given(
    st.lists(spelled_challenges(), max_size=6),
    st.lists(st.sampled_from([",", " , ", ",,", ", \t,"]), min_size=7, max_size=7),
)
def test_every_spelling_of_a_list_of_challenges_is_read(spelled, commas):
    """
    Schemes, parameters, token68 and quoted strings in every spelling are found, in one line and line by line alike.
    """
    expected = tuple(challenge for challenge, _ in spelled)
    lines = [text for _, text in spelled]
    line = "".join(comma + text for comma, text in zip(commas, lines, strict=False)) + commas[-1]

    assert parse_challenges(line) == expected
    assert parse_challenges(lines) == expected
    assert parse_challenges([text.encode("latin-1") for text in lines]) == expected


@unhurried
@given(tangled, spelled_challenges(), tangled)
def test_a_defect_never_reaches_another_line(before, spelled, after):
    """
    Whatever stands in the lines around it, a well-formed line gives its challenge.
    """
    challenge, text = spelled

    found = parse_challenges([before, text, after])

    assert found == (*parse_challenges(before), challenge, *parse_challenges(after))


@thorough
@given(headers)
def test_nothing_from_the_network_raises(header):
    """
    Reading any header ends with a tuple of challenges, and with a step-up or none.
    """
    assert all(type(challenge) is Challenge for challenge in parse_challenges(header))
    assert type(step_up_from_challenge(header)) in {StepUp, type(None)}


@unhurried
@given(
    st.one_of(
        st.builds(StepUp, st.sampled_from(LEVELS), st.integers(0, MAX_AGE_S)),
        st.builds(StepUp, st.sampled_from(LEVELS), st.none()),
        st.builds(StepUp, st.none(), st.integers(0, MAX_AGE_S)),
    ),
    st.one_of(st.none(), st.text()),
)
def test_a_step_up_survives_its_challenge(step_up, realm):
    """
    What an API demands is what an orchestrator reads, whatever the realm is called.
    """
    assert step_up_from_challenge(step_up.challenge(realm)) == step_up


@pytest.mark.parametrize(
    "text",
    [
        ",",
        " ",
        '"',
        "\\",
        "a",
        "=",
        "a=",
        "a ",
        "a a,",
        "a=b,",
        'a="",',
        'a="\\',
        'a="\x00",',
        "a =\t",
        '"a" ',
        "a=b c,",
        "A b==,",
        'A b="\\"',
    ],
)
def test_reading_takes_linear_time(text):
    """
    The longest header that is read takes a fraction of a second, whatever it repeats; with quadratic time it would be minutes.
    """
    for start in ("", "Bearer ", 'Bearer a="'):
        line = (start + text * MAX_LINE_LENGTH)[:MAX_LINE_LENGTH]
        began = time.process_time()

        parse_challenges([line] * MAX_LINES)

        assert time.process_time() - began < 5
