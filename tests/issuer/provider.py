"""
An identity provider of the tests: real keys of each kind, tokens signed without the code under test, documents over real HTTP.
"""

import hmac
import json
from dataclasses import replace
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from issuer.provider import Provider
from verifier.compact import b64url_encode

from .world import NOW, changed, registry

ISSUER = "https://login.shop.example"
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
ALGORITHMS = {"RS256": "rsa", "PS256": "rsa", "ES256": "ec", "EdDSA": "ed"}
"""The algorithms, and how the names of keys begin that serve for them."""

_PSS = padding.PSS(mgf=padding.MGF1(SHA256()), salt_length=32)


@lru_cache
def signing_key(name):
    """
    Return the private key of that name, of the kind that its name begins with; `rsa1024` is a small one.
    """
    match name.partition("-")[0]:
        case "rsa":
            return rsa.generate_private_key(65537, 2048)
        case "rsa1024":
            return rsa.generate_private_key(65537, 1024)
        case "ec":
            return ec.generate_private_key(ec.SECP256R1())
        case "ed":
            return ed25519.Ed25519PrivateKey.generate()


def number(value):
    return b64url_encode(value.to_bytes((value.bit_length() + 7) // 8))


def jwk(name, **members):
    """
    Return the public key of that name as an entry of a JWK Set; `DROP` leaves a member out.
    """
    public = signing_key(name).public_key()
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        key = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    elif isinstance(public, ec.EllipticCurvePublicKey):
        numbers = public.public_numbers()
        x, y = (b64url_encode(each.to_bytes(32)) for each in (numbers.x, numbers.y))
        key = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
    else:
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        key = {"kty": "OKP", "crv": "Ed25519", "x": b64url_encode(raw)}
    return changed({**key, "kid": name, "use": "sig"}, members)


def key_set(*entries):
    """
    Write a JWK Set of names of keys and of entries as they are.
    """
    return json.dumps({"keys": [jwk(each) if isinstance(each, str) else each for each in entries]}).encode()


def signature(alg, key, signing_input):
    """
    Sign by an algorithm with the key of that name, or with a secret in octets.
    """
    if isinstance(key, bytes):
        return hmac.digest(key, signing_input, "sha256")
    private = signing_key(key)
    match alg:
        case "PS256":
            return private.sign(signing_input, _PSS, SHA256())
        case _ if isinstance(private, rsa.RSAPrivateKey):
            return private.sign(signing_input, padding.PKCS1v15(), SHA256())
        case _ if isinstance(private, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(private.sign(signing_input, ec.ECDSA(SHA256())))
            return r.to_bytes(32) + s.to_bytes(32)
        case _:
            return private.sign(signing_input)


def signed(claims, *, alg="RS256", key="rsa-1", header=()):
    """
    Sign *claims*, a mapping or the very octets of a payload; *header* changes the header.
    """
    kid = {} if isinstance(key, bytes) else {"kid": key}
    head = json.dumps(changed({"alg": alg, **kid}, dict(header))).encode()
    body = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    signing_input = f"{b64url_encode(head)}.{b64url_encode(body)}"
    return f"{signing_input}.{b64url_encode(signature(alg, key, signing_input.encode()))}"


def id_token(*, alg="RS256", key=None, header=(), issuer=ISSUER, now=NOW, **changes):
    """
    Return an ID token that is good at *now* but for *changes*; `DROP` leaves a claim out.
    """
    claims = {
        "iss": issuer,
        "aud": "app-1",
        "sub": "248289761001",
        "iat": int(now) - 2,
        "exp": int(now) + 600,
        "auth_time": int(now) - 20,
        "acr": "urn:shop:pwd",
    }
    return signed(changed(claims, changes), alg=alg, key=key or f"{ALGORITHMS.get(alg, 'rsa')}-1", header=header)


def logout_token(*, alg="RS256", key=None, header=(), issuer=ISSUER, now=NOW, **changes):
    """
    Return a logout token that is good at *now* but for *changes*.
    """
    claims = {
        "iss": issuer,
        "aud": "app-1",
        "sub": "248289761001",
        "sid": "session-1",
        "iat": int(now) - 2,
        "exp": int(now) + 120,
        "jti": "logout-1",
        "events": {LOGOUT_EVENT: {}},
    }
    typed = {"typ": "logout+jwt", **dict(header)}
    return signed(changed(claims, changes), alg=alg, key=key or f"{ALGORITHMS.get(alg, 'rsa')}-1", header=typed)


def provider(issuer=ISSUER, **changes):
    """
    Return an identity provider that knows our first two clients.
    """
    usual = {
        "issuer": issuer,
        "clients": {"app-1": "orc_main", "app-2": "orc_second"},
        "acr": {"urn:shop:pwd": "standard", "urn:shop:mfa": "high"},
        "amr": {frozenset({"pwd", "otp"}): "standard", frozenset({"hwk", "user"}): "high"},
    }
    return Provider(**(usual | changes))


def workspace(shop=None, bank=None, *, name="root"):
    """
    Return a workspace of which one connection, or both, have an identity provider.
    """
    found = registry().workspace(name)
    providers = {"shop": shop, "bank": bank}
    return replace(found, connections=tuple(replace(each, provider=providers[each.name]) for each in found.connections))


class IdentityProvider:
    """
    Serves discovery document and keys over HTTP on 127.0.0.1, and remembers what it was asked.

    `answers` has status, headers and body by path; what it lacks is 404. `asked` has path and headers of each request, the names
    of these in lower case.
    """

    def __init__(self, *keys, port=0, **headers):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                status, lines, body = site.answers.get(self.path, (404, {}, b""))
                self.send_response_only(status)
                for name, value in {**lines, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.asked = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.answers = {}
        self.publish(*keys, **headers)
        self.discover()
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def publish(self, *keys, status=200, body=None, **headers):
        """
        Answer with these keys from here on; header names are written with underscores.
        """
        lines = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers["/keys"] = (status, lines, key_set(*keys) if body is None else body)

    def discover(self, *, status=200, body=None, path="", **members):
        """
        Answer with this discovery document from here on.
        """
        document = changed({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}, members)
        content = json.dumps(document).encode() if body is None else body
        self.answers[f"{path}/.well-known/openid-configuration"] = (status, {}, content)

    def stop(self):
        """
        Listen no longer; it may be called again.
        """
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
