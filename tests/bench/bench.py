"""
What a token costs: each figure as a ratio to raw ECDSA of `cryptography` measured in the same run, and the token endpoint's rate.

    python tests/bench/bench.py [--json] [--seconds 5]

Each figure is the median over rounds in which everything is measured in turn, so that a machine that changes its speed changes
all of them. Ratios are what to compare; microseconds depend on the machine.
"""

import argparse
import json
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import jwt as pyjwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jws as joserfc_jws
from joserfc.jwk import ECKey

from issuer.action_request import RequestedAction
from issuer.exchange import Exchange
from issuer.minting import mint, token_claims
from issuer.registry import Action, Client, Connection
from issuer.subject import Subject
from keys import LocalSigner, generate_key
from verifier import CustomerContextVerifier, MemoryReplayStore, action_digest
from verifier.claims import Actor
from verifier.compact import b64url_decode

ISSUER = "https://id.example.com/w/acme"
AUDIENCE = "https://api.shop.example"
KEY = "idk_5pQ0m3m1Yt7uVxk2Rr9aBw"
ARGUMENTS = {"orderId": "A-1001", "reason": "trop tard", "refund": {"currency": "EUR", "amount": 1250}, "notify": True}
ROUNDS = 15
PER_ROUND = 200


class Bench:
    """
    Everything that is measured, over one key.
    """

    def __init__(self) -> None:
        self.key = generate_key()
        self.signer = LocalSigner(self.key)
        self.private = ec.derive_private_key(self._secret(), ec.SECP256R1())
        self.public = self.private.public_key()
        self.jose_key = ECKey.import_key(self.key.private_jwk.reveal())
        self.exchanges = {"read": _exchange(write=False), "write": _exchange(write=True)}
        self.payload = token_claims(
            self.exchanges["read"], issuer=ISSUER, now=time.time(), confirmed_at=None
        ).to_payload()
        self.header = {"alg": "ES256", "typ": "at+jwt", "kid": self.key.kid}
        self.octets = json.dumps(self.payload, separators=(",", ":")).encode()
        self.compact = joserfc_jws.serialize_compact(self.header, self.octets, self.jose_key)
        self.signing_input = self.compact.rpartition(".")[0].encode()
        self.signature = self.private.sign(self.signing_input, ec.ECDSA(SHA256()))
        self.verifier = CustomerContextVerifier(
            issuer=ISSUER,
            audience=AUDIENCE,
            replay_store=MemoryReplayStore(max_entries=10_000_000),
            clock_tolerance_seconds=60,
            jwks={"keys": [dict(self.key.public_jwk)]},
        )

    def _secret(self) -> int:
        d = self.key.private_jwk.reveal()["d"]
        return int.from_bytes(b64url_decode(d.encode()))

    def figures(self) -> dict[str, Callable[[], object]]:
        ecdsa, private, public = ec.ECDSA(SHA256()), self.private, self.public
        return {
            "raw sign": lambda: private.sign(self.signing_input, ecdsa),
            "raw verify": lambda: public.verify(self.signature, self.signing_input, ecdsa),
            "mint read": lambda: self.mint("read"),
            "mint write": lambda: self.mint("write"),
            "digest": lambda: action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key=KEY),
            "joserfc encode": lambda: joserfc_jws.serialize_compact(self.header, self.octets, self.jose_key),
            "joserfc decode": lambda: joserfc_jws.deserialize_compact(
                self.compact, self.jose_key, algorithms=["ES256"]
            ),
            "pyjwt encode": lambda: pyjwt.encode(self.payload, private, "ES256", headers=self.header),
            "pyjwt decode": lambda: pyjwt.decode(
                self.compact, public, ["ES256"], audience=AUDIENCE, issuer=ISSUER, leeway=60
            ),
        }

    def mint(self, kind: str) -> str:
        exchange = self.exchanges[kind]
        now = time.time()
        confirmed_at = int(now) if exchange.action else None
        claims = token_claims(exchange, issuer=ISSUER, now=now, confirmed_at=confirmed_at)
        coroutine = mint(claims, self.signer)
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value.token
        raise AssertionError("a local signer does not wait")

    def verify_read(self, tokens: list[str]) -> None:
        for token in tokens:
            self.verifier.verify(token)

    def verify_write(self, tokens: list[str]) -> None:
        for token in tokens:
            self.verifier.verify(token, action="cancel_order", arguments=ARGUMENTS, idempotency_key=KEY)

    def measure(self) -> dict[str, float]:
        taken: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for name, run in self.figures().items():
                started = time.perf_counter()
                for _ in range(PER_ROUND):
                    run()
                taken.setdefault(name, []).append((time.perf_counter() - started) / PER_ROUND)
            for kind, verify in (("read", self.verify_read), ("write", self.verify_write)):
                tokens = [self.mint(kind) for _ in range(PER_ROUND)]
                started = time.perf_counter()
                verify(tokens)
                taken.setdefault(f"verify {kind}", []).append((time.perf_counter() - started) / PER_ROUND)
        return {name: statistics.median(times) * 1e6 for name, times in taken.items()}


def _exchange(*, write: bool) -> Exchange:
    action = Action(name="cancel_order", audience=AUDIENCE, scopes=frozenset({"orders:write"}))
    connection = Connection(
        name="shop",
        namespace="shop-login",
        audiences=(AUDIENCE,),
        scopes=frozenset({"orders:read"}),
        actions={action.name: action},
    )
    client = Client(
        client_id="orc_main",
        secret_sha256=(secrets.token_bytes(32),),
        audiences=(AUDIENCE,),
        scopes=frozenset(),
        actions=frozenset(),
        agents=("agt_support",),
    )
    subject = Subject(
        sub="cus_48213",
        namespace="shop-login",
        acr="standard",
        auth_time=time.time() - 300,
        expires_at=time.time() + 3600,
        scope=None,
        act=None,
        may_act=None,
    )
    requested = RequestedAction(
        action=action,
        digest=action_digest(action="cancel_order", arguments=ARGUMENTS, idempotency_key=KEY),
        idempotency_key=KEY,
        confirmed_by="client",
        confirmed_at=int(time.time()),
    )
    return Exchange(
        client=client,
        connection=connection,
        audience=AUDIENCE,
        subject=replace(subject, auth_time=int(subject.auth_time)),
        actor=Actor("agt_support"),
        scope="orders:write" if write else "orders:read",
        action=requested if write else None,
        not_after=subject.expires_at,
    )


def report(figures: dict[str, float]) -> dict[str, dict[str, float]]:
    """
    Set each figure against the raw operation it contains.
    """
    signing = {"raw sign", "mint read", "mint write", "joserfc encode", "pyjwt encode"}
    return {
        name: {
            "us": round(us, 1),
            "ratio": round(us / figures["raw sign" if name in signing or name == "digest" else "raw verify"], 2),
        }
        for name, us in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the token endpoint is asked")
    options = parser.parse_args()
    sys.stderr.write(f"measuring {ROUNDS} rounds of {PER_ROUND} ...\n")
    ratios = report(Bench().measure())
    sys.stderr.write(f"asking the token endpoint for {options.seconds:g} s each ...\n")
    from endpoint import measure_endpoint  # noqa: PLC0415 -- starts a service; the figures above want the machine alone

    endpoint = measure_endpoint(options.seconds)
    if options.json:
        print(json.dumps({"ratios": ratios, "token_endpoint": endpoint}, indent=2))
        return
    for name, figure in ratios.items():
        print(f"{name:<16} {figure['us']:>8.1f} us   {figure['ratio']:>5.2f} x raw")
    for name, value in endpoint.items():
        print(f"token endpoint, {name:<33} {value:>6.0f} requests/s")


if __name__ == "__main__":
    main()
