"""
npm's `oidc-provider` signs customers in by its own pages; a partner demands more; the write goes through with a stronger sign-in.

Run with `-s` to read what went over the wire.
"""

import asyncio
import json
import runpy
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from issuer.clients import ASSERTION_TYPE
from issuer.exchange import GRANT_TYPE
from issuer.init_config import write_development_config
from issuer.orchestrator import Orchestrator, load_orchestrator, new_idempotency_key
from issuer.subjects import SIGN_IN_TYPE
from verifier import CustomerContextError, CustomerContextVerifier, MemoryReplayStore, bearer_token
from verifier.compact import parse_compact
from verifier.levels import Level
from verifier.step_up_client import APICall, MintedToken, SignInRequest, StepUpClient, TokenRequest

from .identity_provider import ACR, CLIENT_ID, IdentityProvider

HERE = Path(__file__).parent
DEMO = runpy.run_path(str(HERE.parent / "demo" / "demo.py"))
AUDIENCE = "https://api.shop.example"
ARGUMENTS = {"orderId": "A-1001", "refund": {"amount": 12.5, "currency": "EUR"}}
LEVELS: dict[str, Level] = {ACR[0]: "standard", ACR[1]: "high"}
# An unknown key is asked for at most this often (D19).
ATTEMPT_INTERVAL_S = 30

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node"),
    pytest.mark.skipif(
        not (HERE / "node_modules" / "oidc-provider").is_dir(), reason="`make interop` installs the npm packages"
    ),
]

PROVIDER = """\
    [workspaces.connections.provider]
    issuer = "{issuer}"
    [workspaces.connections.provider.clients]
    "{client_id}" = "orc_main"
    [workspaces.connections.provider.acr]
    "{low}" = "standard"
    "{high}" = "high"

    [[workspaces.connections.actions]]"""


def say(text: str) -> None:
    print(f"  {text}")  # noqa: T201  a transcript for who asks for it


class Partner:
    """
    A partner's API: cancels an order for whoever signed in at level high within 300 s, and remembers what it saw.
    """

    def __init__(self, issuer: str) -> None:
        self.verifier = CustomerContextVerifier(
            issuer=issuer, audience=AUDIENCE, replay_store=MemoryReplayStore(), clock_tolerance_seconds=5
        )
        self.seen: list[tuple[int, dict[str, Any]]] = []
        partner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, members, headers = partner.cancel(self.headers, body)
                answer = json.dumps(members).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def cancel(self, headers: Any, body: bytes) -> tuple[int, dict[str, Any], dict[str, str]]:
        token = bearer_token(headers.get_all("authorization"))
        claims = parse_compact(token).claims
        try:
            context = self.verifier.verify(
                token,
                action="cancel_order",
                arguments=body,
                idempotency_key=headers["idempotency-key"],
                scope="orders:write",
                confirmation="client",
            )
            context.require(level="high", max_auth_age_seconds=300)
        except CustomerContextError as error:
            self.seen.append((error.status, claims))
            say(f"partner     {error.status} {error.reason}  WWW-Authenticate: {error.www_authenticate}")
            return error.status, {"reason": error.reason}, {"WWW-Authenticate": error.www_authenticate or ""}
        self.seen.append((200, claims))
        say(f"partner     200 cancelled {context.arguments['orderId']} for {context.sub}, level {context.level}")
        return 200, {"customer": context.sub}, {}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.verifier.close()


@dataclass
class Agent:
    """
    An orchestrator: it lets customers sign in at the provider, records that, and asks for tokens with it.
    """

    orchestrator: Orchestrator
    provider: IdentityProvider
    name: str
    conversation: str
    http: httpx2.Client
    sign_in_id: str = ""
    prompts: int = 0

    def assertion(self) -> str:
        return asyncio.run(self.orchestrator.client_assertion(time.time()))

    def sign_in(self, *, factors: str, acr: str, **demands: str) -> dict[str, Any]:
        """
        Let the customer sign in and record it, as soon as the issuer knows the provider's keys.
        """
        id_token, nonce = self.provider.sign_in(self.name, factors=factors, demands={"acr_values": acr, **demands})
        say(f"provider    signed {self.name} in by {factors!r}")
        until = time.monotonic() + ATTEMPT_INTERVAL_S + 5
        while True:
            answer = self.http.post(
                f"{self.orchestrator.issuer}/sign-ins",
                json={"id_token": id_token, "nonce": nonce, "conversation": self.conversation},
                headers={"Authorization": f"Bearer {self.assertion()}"},
            )
            told: dict[str, Any] = answer.json()
            if told.get("reason") != "key" or time.monotonic() > until:
                break
            time.sleep(1)
        assert answer.status_code == 201, told
        say(f"issuer      201 sign-in {told['handle']}, level {told['level']}, auth_time {told['auth_time']}")
        self.sign_in_id = told["sign_in_id"]
        return told

    def mint(self, request: TokenRequest) -> MintedToken:
        confirmation = {"by": "client", "at": request.confirmed_at}
        details = {
            "type": "caplo_action",
            "action": request.action,
            "arguments": json.loads(json.dumps(request.arguments)),
            "idempotencyKey": request.idempotency_key,
            "confirmation": confirmation,
        }
        answer = self.ask(resource=request.audience, scope=request.scope, authorization_details=json.dumps([details]))
        members = answer.json()
        assert answer.status_code == 200, members
        say(f"issuer      200 token for {members['authorization_details'][0]['actionDigest']}")
        return MintedToken(members["access_token"])

    def ask(self, **parameters: Any) -> httpx2.Response:
        form = {
            "grant_type": GRANT_TYPE,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self.assertion(),
            "subject_token": self.sign_in_id,
            "subject_token_type": SIGN_IN_TYPE,
        }
        return self.http.post(self.orchestrator.token_endpoint, data={**form, **parameters})

    def prompt(self, request: SignInRequest) -> Level | None:
        self.prompts += 1
        demand = request.demand
        say(f"orchestrator asks {self.name} to sign in: level {demand.level}, within {demand.max_auth_age_seconds} s")
        told = self.sign_in(factors="pwd otp", acr=ACR[1], max_age=str(demand.max_auth_age_seconds))
        level: Level = told["level"]
        return level

    def cancel(self, partner: Partner, call: APICall) -> int:
        client = StepUpClient(apis={AUDIENCE: partner.url}, mint=self.mint, sign_in=self.prompt)
        return client.call(call).status


@dataclass
class Shop:
    """
    A provider, an issuer and a partner.
    """

    provider: IdentityProvider
    orchestrator: Orchestrator
    partner: Partner
    http: httpx2.Client

    def agent(self, name: str, conversation: str) -> Agent:
        return Agent(self.orchestrator, self.provider, name, conversation, self.http)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """
    Run all three for one test.
    """
    origin = f"http://127.0.0.1:{DEMO['free_port']()}"
    written = write_development_config(tmp_path / "dev", origin=origin, now=int(time.time()))
    provider = IdentityProvider(
        tmp_path,
        DEMO["free_port"](),
        redirect_uri=f"{origin}/back",
        logout_uri=f"{origin}/w/demo/backchannel-logout",
    )
    block = PROVIDER.format(issuer=provider.issuer, client_id=CLIENT_ID, low=ACR[0], high=ACR[1])
    text = written.config.read_text().replace("    [[workspaces.connections.actions]]", block, 1)
    kinds = '  client_id = "orc_main"\n  subject_tokens = ["sign_in", "id_token"]'
    written.config.write_text(text.replace('  client_id = "orc_main"', kinds, 1))
    serve = [DEMO["COMMAND"], "serve", "--config", written.config, "--port", origin.rpartition(":")[2]]
    with provider, DEMO["running"](serve, f"{origin}/health/ready", tmp_path / "issuer.log"):
        orchestrator = load_orchestrator(written.config.parent / "orchestrator")
        partner = Partner(orchestrator.issuer)
        with httpx2.Client(trust_env=False, timeout=10) as http:
            yield Shop(provider, orchestrator, partner, http)
        partner.close()


def order(key: str | None = None, *, at: int | None = None) -> APICall:
    return APICall(
        audience=AUDIENCE,
        conversation="conv_71",
        method="POST",
        path="/orders/cancel",
        scope="orders:write",
        action="cancel_order",
        arguments=ARGUMENTS,
        idempotency_key=key or new_idempotency_key(),
        confirmed_at=int(time.time()) if at is None else at,
    )


def test_a_challenge_becomes_a_stronger_sign_in_and_a_second_call(shop):
    """
    The write is refused for the first sign-in and goes through after the second, with one key and one digest.
    """
    agent = shop.agent("cus_48213", "conv_71")
    assert agent.sign_in(factors="pwd", acr=ACR[0])["level"] == "standard"

    assert agent.cancel(shop.partner, order()) == 200

    (refused, before), (done, after) = shop.partner.seen
    assert (refused, done, agent.prompts) == (401, 200, 1)
    assert (before["acr"], after["acr"]) == ("standard", "high")
    assert before["caplo"] == after["caplo"]
    assert before["jti"] != after["jti"]
    assert after["auth_time"] >= before["auth_time"]


def test_keys_that_were_rotated_and_a_provider_that_is_gone(shop):
    """
    A sign-in under new keys of the provider is taken within half a minute; with the provider stopped, minting goes on.
    """
    agent = shop.agent("cus_48213", "conv_71")
    agent.sign_in(factors="pwd", acr=ACR[0])
    shop.provider.stop()
    shop.provider.start()
    say("provider    has new keys")

    assert agent.cancel(shop.partner, order()) == 200
    shop.provider.stop()
    say("provider    is stopped")

    assert agent.cancel(shop.partner, order()) == 200
    assert [status for status, _ in shop.partner.seen] == [401, 200, 200]


def test_two_customers_in_one_conversation(shop):
    """
    What the first customer confirmed is minted for nobody after another one has signed in to the conversation.
    """
    first, second = (shop.agent(name, "conv_71") for name in ("cus_1", "cus_2"))
    first.sign_in(factors="pwd otp", acr=ACR[1])
    confirmed_at, key = int(time.time()), new_idempotency_key()
    assert first.cancel(shop.partner, order(key, at=confirmed_at)) == 200

    second.sign_in(factors="pwd otp", acr=ACR[1])

    for agent, its_key in ((first, key), (second, key), (second, new_idempotency_key())):
        details = {
            "type": "caplo_action",
            "action": "cancel_order",
            "arguments": ARGUMENTS,
            "idempotencyKey": its_key,
            "confirmation": {"by": "client", "at": confirmed_at},
        }
        answer = agent.ask(resource=AUDIENCE, scope="orders:write", authorization_details=json.dumps([details]))
        say(f"issuer      {answer.status_code} for {agent.name}: {answer.text}")
        assert answer.status_code == 400


def test_a_logout_at_the_provider_ends_the_sign_in(shop):
    """
    The provider tells the issuer over its back channel; nothing is minted from the sign-in after that.
    """
    agent = shop.agent("cus_48213", "conv_71")
    id_token, nonce = shop.provider.sign_in("cus_48213", demands={"acr_values": ACR[0]})
    answer = agent.http.post(
        f"{shop.orchestrator.issuer}/sign-ins",
        json={"id_token": id_token, "nonce": nonce},
        headers={"Authorization": f"Bearer {agent.assertion()}"},
    )
    agent.sign_in_id = answer.json()["sign_in_id"]
    before = agent.ask(resource=AUDIENCE, scope="orders:read").status_code

    shop.provider.sign_out("cus_48213", id_token)

    after = agent.ask(resource=AUDIENCE, scope="orders:read")
    assert (before, after.status_code, after.json()["error"]) == (200, 400, "invalid_request")
