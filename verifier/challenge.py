r"""
Authentication challenges as HTTP writes them, read and written (RFC 9110 section 11, RFC 6750 section 3).

A comma separates parameters and challenges alike, quoted strings hold commas, one field holds several challenges and comes
several times. Splitting text at commas or spaces gets all of that wrong, hence this one grammar:

    WWW-Authenticate = #challenge
    challenge        = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
    auth-param       = token BWS "=" BWS ( token / quoted-string )
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from types import MappingProxyType
from typing import Final

__all__ = [
    "MAX_CHALLENGES",
    "MAX_LINES",
    "MAX_LINE_LENGTH",
    "MAX_PARAMS",
    "Challenge",
    "format_challenge",
    "parse_challenges",
]

MAX_LINE_LENGTH: Final = 16_384
"""Longest header line that is read, in characters; a longer one is ignored as a whole."""

MAX_LINES: Final = 32
"""Header lines that are read; further ones are ignored."""

MAX_CHALLENGES: Final = 64
"""Challenges that are returned; further ones are ignored."""

MAX_PARAMS: Final = 64
"""Parameters of one challenge; with more it is unusable."""

# Linear time: a run of one class is possessive, and where a group ends or has alternatives, the next character decides.
# NOTE: groups are never possessive or atomic, since Python 3.11 before 3.11.5 matches those wrongly (CPython issue 106052).
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_BWS: Final = r"[ \t]*+"
# RFC 9110 section 5.6.4. A decoded header may hold any character beyond ASCII where the octets of obs-text stood.
_QUOTED_TEXT: Final = r"(?:[\t \x21\x23-\x5B\x5D-\x7E\x80-\U0010FFFF]++|\\[\t\x20-\x7E\x80-\U0010FFFF])*"

# One member of the list, from the commas before it to the comma after it. `malformed` takes what fits nothing else up to the
# next comma outside quotes, so that something always matches; `broken` is its scheme when it starts like a challenge.
_MEMBER: Final = re.compile(
    rf"""
    [ \t,]*+
    (?:
        (?: (?P<scheme>{_TOKEN}) (?!{_BWS}=) (?: [ \t]++ | (?=,|\Z) ) )?
        (?:
            (?P<name>{_TOKEN}) {_BWS} = {_BWS} (?: (?P<token>{_TOKEN}) | "(?P<quoted>{_QUOTED_TEXT})" )
            | (?(scheme) (?P<token68>[A-Za-z0-9\-._~+/]++=*+) | (?!) )
        )?
        {_BWS} (?:,|\Z)
    |
        (?P<malformed>
            (?: (?P<broken>{_TOKEN}) (?=[ \t]++[^ \t=]) )?
            (?: [^",]++ | "(?:[^"\\]++|\\.)*"? )*
            ,?
        )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ONE_TOKEN: Final = re.compile(_TOKEN)
# RFC 6750 section 3: %x20-21 / %x23-5B / %x5D-7E.
_NOT_PERMITTED: Final = re.compile(r"[^\x20\x21\x23-\x5B\x5D-\x7E]")
_FIRST: Final = ("realm", "error", "error_description")


@dataclass(frozen=True, slots=True)
class Challenge:
    """
    One challenge: its scheme as written, its parameters by lower-case name with escapes undone, or its token68.

    A challenge has parameters or a token68 or neither, never both. `params` is a read-only copy.
    """

    scheme: str
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    token68: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.scheme, dict(self.params), self.token68))

    def is_of_scheme(self, scheme: str) -> bool:
        """
        Tell whether this challenge is of *scheme*; the case of ASCII letters does not matter (RFC 9110 section 11.1).
        """
        return self.scheme.lower() == scheme.lower()


def parse_challenges(header: str | bytes | Iterable[str | bytes] | None) -> tuple[Challenge, ...]:
    """
    Return every well-formed challenge of a `WWW-Authenticate` header in order: of one line, of several, or of none.

    Each line is read by itself, so a defect never reaches another line. Within a line a defect costs exactly the challenge it
    stands in, with every parameter up to the next scheme: text that fits no rule, a quoted string that never ends (which
    takes the rest of the line with it), a parameter that occurs twice, parameters beside a token68, more than `MAX_PARAMS`.
    A parameter before the first scheme of a line belongs to nothing and is ignored.

    Taken although the grammar is narrower: tabs between scheme and parameters, and `scheme, name=value`. Octets are read as
    ISO 8859-1. Nothing raises: what is neither text nor octets is no line, a line above `MAX_LINE_LENGTH` is ignored.
    """
    return tuple(islice(chain.from_iterable(map(_read_line, _lines(header))), MAX_CHALLENGES))


def format_challenge(scheme: str, params: Mapping[str, str]) -> str:
    """
    Write one challenge, every value a quoted string: `realm`, `error`, `error_description` first, the others as given.

    Values hold printable ASCII without double quote and backslash (RFC 6750 section 3); each other character, line breaks
    among them, is replaced by `?`, so no value can end its string, its header or its line.

    Raises:
        ValueError: when there is no parameter (RFC 6750 section 3 asks for one), when *scheme* or a name is not a token, or
            when a name occurs twice (case does not matter).
        TypeError: when a name or a value is not a str.
    """
    if not params or not all(map(_ONE_TOKEN.fullmatch, (scheme, *params))):
        raise ValueError("a challenge has a scheme and at least one parameter, named by tokens")
    if len({name.lower() for name in params}) != len(params):
        raise ValueError("a parameter occurs at most once in a challenge")
    names = sorted(params, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    return f"{scheme} " + ", ".join(f'{name}="{_NOT_PERMITTED.sub("?", params[name])}"' for name in names)


def _lines(header: object) -> Iterator[str]:
    if isinstance(header, str | bytes):
        header = (header,)
    if not isinstance(header, Iterable):
        return
    for line in islice(header, MAX_LINES):
        if isinstance(line, str | bytes) and len(line) <= MAX_LINE_LENGTH:
            yield line if isinstance(line, str) else line.decode("latin-1")


@dataclass(slots=True)
class _Draft:
    """
    A challenge while its members are read; once unusable it stays so and swallows what belongs to it.
    """

    scheme: str
    params: dict[str, str] = field(default_factory=dict)
    token68: str | None = None
    usable: bool = True

    def take(self, member: re.Match[str]) -> None:
        if member["malformed"] is not None:
            self.usable = False
        elif member["token68"] is not None:
            self.token68 = member["token68"]
        elif member["name"] is not None:
            self._take_param(member["name"].lower(), member)

    def _take_param(self, name: str, member: re.Match[str]) -> None:
        if self.token68 is not None or name in self.params or len(self.params) == MAX_PARAMS:
            self.usable = False
        elif member["quoted"] is None:
            self.params[name] = member["token"]
        else:
            self.params[name] = _ESCAPE.sub(r"\1", member["quoted"])

    def finished(self) -> Iterator[Challenge]:
        if self.usable:
            yield Challenge(self.scheme, self.params, self.token68)


def _read_line(line: str) -> Iterator[Challenge]:
    draft: _Draft | None = None
    for member in _MEMBER.finditer(line):
        scheme = member["scheme"] or member["broken"]
        if scheme is not None:
            if draft is not None:
                yield from draft.finished()
            draft = _Draft(scheme)
        if draft is not None:
            draft.take(member)
    if draft is not None:
        yield from draft.finished()
