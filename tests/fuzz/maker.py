"""
Makes what the fuzzing gives to every reader: tokens, demands and header lines, from good ones to octets without a meaning.
"""

import json
import random
import string
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

ISSUER, AUDIENCE, NOW = "https://issuer.test", "https://api.test", 1_767_225_600
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
ARGUMENTS = {"orderId": "A-1001", "amount": 12.5}
PRIVATE = ec.derive_private_key(20261130, ec.SECP256R1())

B64URL = string.ascii_letters + string.digits + "-_"
ODD_TEXTS = [
    "",
    " ",
    "\0",
    "\n",
    "é",
    "\u0430",
    "\ud800",
    "\U0001f600",
    "a" * 5000,
    "../..",
    "k1\r\nx: y",
    "NaN",
    "[" * 2000,
    '"',
    "\\",
]
ODD_NUMBERS = [
    0,
    -1,
    1,
    -0.0,
    0.5,
    2**53 - 1,
    2**53,
    -(2**53),
    10**400,
    1e308,
    5e-324,
    1e21,
    NOW,
    NOW + 60,
    NOW - 61,
    NOW + 0.5,
]
ODD_JSON = [
    b"",
    b"{",
    b"NaN",
    b"1e400",
    b'{"a":1,"a":2}',
    b'"\\ud800"',
    b"[" * 3000,
    b"\xff",
    b"\xef\xbb\xbf{}",
    b"{}{}",
    b"-",
    b'{"a":01}',
]


def b64url(data: bytes) -> str:
    """
    Encode base64url without padding.
    """
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def jwks() -> dict[str, Any]:
    """
    Return the public key under two names.
    """
    point = PRIVATE.public_key().public_numbers()
    key = {"kty": "EC", "crv": "P-256", "x": b64url(point.x.to_bytes(32)), "y": b64url(point.y.to_bytes(32))}
    return {"keys": [key | {"kid": "k1"}, key | {"kid": "k2"}]}


def signed(header: bytes, payload: bytes) -> str:
    """
    Sign whatever octets there are.
    """
    signing_input = f"{b64url(header)}.{b64url(payload)}"
    numbers = decode_dss_signature(PRIVATE.sign(signing_input.encode(), ec.ECDSA(SHA256(), deterministic_signing=True)))
    return f"{signing_input}.{b64url(b''.join(number.to_bytes(32) for number in numbers))}"


class Maker:
    """
    Makes inputs from one source of randomness.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._number = 0

    def token(self) -> Any:
        """
        Make a token: good, mutated as text, with odd claims under a good signature, of odd octets, or of no text at all.
        """
        return self.random.choice(
            [self.good, self.mutated, self.mutated, self.odd_claims, self.odd_claims, self.octets, self.odd]
        )()

    def good(self) -> str:
        """
        Make a valid token.
        """
        return signed(self._json(self.header()), self._json(self.claims()))

    def header(self) -> dict[str, Any]:
        return {"typ": "at+jwt", "alg": "ES256", "kid": self.random.choice(["k1", "k2"])}

    def claims(self) -> dict[str, Any]:
        self._number += 1
        who: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "user-1",
            "client_id": "orc",
            "act": {"sub": "agt"},
        }
        when = {"iat": NOW - 5, "exp": NOW + 50, "auth_time": NOW - 600}
        claims = who | when | {"jti": f"j{self._number}", "acr": "standard", "scope": "orders:read"}
        if self.random.random() < 0.5:
            preimage = rfc8785.dumps({"action": "cancel_order", "arguments": ARGUMENTS, "idempotencyKey": KEY})
            claims["caplo"] = {
                "action": "cancel_order",
                "actionDigest": b64url(sha256(b"caplo-action-digest:v1\0" + preimage).digest()),
                "idempotencyKey": KEY,
                "confirmation": {"by": "client", "at": NOW - 20},
            }
        return claims

    def mutated(self) -> str:
        """
        Change, insert, drop, repeat or swap a few characters or parts of a valid token.
        """
        characters = list(self.good())
        for _ in range(self.random.randint(1, 4)):
            place = self.random.randrange(len(characters))
            change = self.random.randrange(5)
            if change == 0:
                characters[place] = self.random.choice(B64URL + ".=+/ \n\0é")
            elif change == 1:
                characters.insert(place, self.random.choice(B64URL + ".=+/ \n\0é"))
            elif change == 2:
                del characters[place : place + self.random.randint(1, 30)]
                characters = characters or ["."]
            elif change == 3:
                characters[place:place] = characters[place : place + self.random.randint(1, 300)]
            else:
                parts = "".join(characters).split(".")
                self.random.shuffle(parts)
                characters = list(".".join(parts)) or ["."]
        return "".join(characters)

    def odd_claims(self) -> str:
        """
        Put odd values, and odd JSON, under a good signature.
        """
        header, claims = self.header(), self.claims()
        for _ in range(self.random.randint(1, 2)):
            parts = [header, claims, claims, claims, claims.get("act"), claims.get("caplo")]
            part = self.random.choice([part for part in parts if isinstance(part, dict)])
            name = self.random.choice([*part, "crit", "nbf", "act", "caplo", "caplo.action", "b64", "x"])
            if self.random.random() < 0.2:
                part.pop(name, None)
            else:
                part[name] = self.value()
        pieces = [self._json(header), self._json(claims)]
        if self.random.random() < 0.2:
            pieces[self.random.randrange(2)] = self.random.choice(ODD_JSON)
        return signed(*pieces)

    def octets(self) -> str:
        """
        Make parts of random octets.
        """
        return ".".join(
            b64url(self.random.randbytes(self.random.randrange(90)))
            for _ in range(self.random.choice([1, 2, 3, 3, 3, 4]))
        )

    def odd(self) -> Any:
        """
        Make something that is no token at all.
        """
        text = "".join(chr(self.random.randrange(1, 0x500)) for _ in range(self.random.randrange(40)))
        return self.random.choice(
            [None, 5, b"a.b.c", [], {}, True, 1.5, text, text + "." + text + "." + text, "A" * 100_000, self.text()]
        )

    def value(self, depth: int = 0) -> Any:
        """
        Make a JSON value of any shape, reasonable ones among them.
        """
        kind = self.random.randrange(8 if depth < 4 else 5)
        if kind < 2:
            return self.random.choice(ODD_NUMBERS)
        if kind < 4:
            return self.text()
        if kind == 4:
            return self.random.choice([None, True, False])
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.random.randrange(3))]
        if kind == 6:
            names = ["sub", "act", "by", "at", "action", "actionDigest", "iss", self.text()]
            return {self.random.choice(names): self.value(depth + 1) for _ in range(self.random.randrange(4))}
        deep: Any = 1
        for _ in range(self.random.choice([5, 30, 33, 45, 300])):
            deep = [deep] if self.random.random() < 0.5 else {"x": deep}
        return deep

    def text(self) -> str:
        return self.random.choice([*ODD_TEXTS, "cancel_order", KEY, AUDIENCE, "high", "client", "orders:read"])

    def demands(self) -> dict[str, Any]:
        """
        Make the demands of a call: what the programmer says makes sense, what the request brings may be anything.
        """
        demands: dict[str, Any] = {}
        if self.random.random() < 0.5:
            brought = [
                ARGUMENTS,
                ARGUMENTS,
                self.value(),
                self.random.choice(ODD_JSON),
                self.text(),
                {self.text(): self.value()},
            ]
            arguments = self.random.choice(brought)
            # None stands for arguments that the programmer forgot.
            demands |= {"action": "cancel_order", "arguments": "null" if arguments is None else arguments}
            if self.random.random() < 0.5:
                demands["idempotency_key"] = self.random.choice([KEY, f'"{KEY}"', self.value()])
            if self.random.random() < 0.3:
                demands |= {
                    "confirmation": self.random.choice(["none", "client", "customer"]),
                    "max_confirmation_age_seconds": 60,
                }
        elif self.random.random() < 0.5:
            demands["ignore_action"] = True
        if self.random.random() < 0.2:
            demands["scope"] = self.random.choice(["orders:read", "orders:write"])
        if self.random.random() < 0.2:
            demands |= {"level": self.random.choice(["low", "standard", "high"]), "max_auth_age_seconds": 600}
        return demands

    def header_lines(self) -> Any:
        """
        Make header lines: good challenges, pieces of challenges in any order, octets, or no lines at all.
        """
        params = [
            'error="insufficient_user_authentication"',
            'acr_values="high"',
            "max_age=300",
            'realm="a, \\"b"',
            "x=y",
        ]
        pieces = [
            *params,
            "Bearer ",
            ", ",
            ",",
            " ",
            '"',
            "\\",
            "=",
            "Basic YWJj",
            "\t",
            "DPoP",
            "\0",
            "é",
            'max_age="' + "9" * 5000,
        ]
        if self.random.random() < 0.5:
            line = self.random.choice(["Bearer ", "bearer  ", "Basic YWJj, Bearer ", "Bearer\t"])
            line += self.random.choice([", ", ",", " ,, "]).join(self.random.sample(params, self.random.randint(1, 5)))
        else:
            line = "".join(self.random.choices(pieces, k=self.random.randrange(12)))
        if self.random.random() < 0.3:
            place = self.random.randrange(len(line) + 1)
            line = line[:place] + self.random.choice(pieces) + line[place + 1 :]
        lines = [line, line.encode(), [line, line[::-1]], [line.encode(), 5, None], iter([line]), {line: line}, None, 7]
        return self.random.choice(lines)

    def _json(self, value: Any) -> bytes:
        return json.dumps(value).encode()
