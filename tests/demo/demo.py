"""
The main job end to end on this machine: a real service, a real partner API, tokens asked for over HTTP, every misuse refused.

Prints one line a step and exits with 1 as soon as one goes otherwise.
"""

import asyncio
import dataclasses
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from issuer.orchestrator import Ask, Orchestrator, RequestedWrite, load_orchestrator, new_idempotency_key
from verifier import step_up_from_challenge

HERE = Path(__file__).parent
COMMAND = Path(sys.executable).with_name("customer-context")
START_LIMIT_S = 60
# Long enough that a busy machine mints before it is over.
SHORT_S = 4
ARGUMENTS = {"orderId": "A-1001", "reason": "too late", "refund": {"amount": 1250, "currency": "EUR"}}


class Went(Exception):
    """
    Raised when a step goes otherwise than it should.
    """


class Demo:
    """
    The steps, with what they share.
    """

    def __init__(self, orchestrator: Orchestrator, config: Path, partner: str) -> None:
        self.orchestrator = orchestrator
        self.config = config
        self.partner = partner
        self.http = httpx2.Client(trust_env=False, timeout=10)
        self.steps = 0

    def run(self) -> None:
        """
        Take every step in turn.
        """
        self.reads_and_writes()
        self.misuse()
        self.step_up()
        self.rotation()

    def reads_and_writes(self) -> None:
        read = self.mint(scope="orders:read")
        self.expect("a read token opens the read endpoint", self.get("/orders", read), 200)
        self.expect("the same token again is refused", self.get("/orders", read), 401, "replayed")
        key = new_idempotency_key()
        write = self.mint(scope="orders:write", write=confirmed(ARGUMENTS, key))
        self.expect("a write token opens the write endpoint, once", self.cancel(write, ARGUMENTS, key), 200)
        again = self.mint(scope="orders:write", write=confirmed(ARGUMENTS, key))
        self.expect("a retry gets a new token for the same action", self.cancel(again, ARGUMENTS, key), 200)

    def misuse(self) -> None:
        key = new_idempotency_key()
        write = self.mint(scope="orders:read orders:write", write=confirmed(ARGUMENTS, key))
        changed = ARGUMENTS | {"orderId": "A-1002"}
        self.expect("a changed argument is refused", self.cancel(write, changed, key), 403, "action")
        self.expect("a write token at a read endpoint is refused", self.get("/orders", write), 403, "action")
        foreign = self.mint(scope="orders:read")
        self.expect("a token for another audience is refused", self.get("/invoices", foreign), 401, "audience")
        short = self.mint(scope="orders:read", subject_lives_s=SHORT_S)
        time.sleep(SHORT_S + 0.5)
        self.expect("an expired token is refused", self.get("/orders", short), 401, "expired")
        self.expect("no token at all is refused", self.get("/orders", None), 401, "missing")

    def step_up(self) -> None:
        weak = self.mint(scope="orders:read")
        refused = self.get("/payment-methods", weak)
        self.expect("a level too low is challenged", refused, 401, "step_up")
        header = refused.headers["www-authenticate"]
        self.say("the challenge reads", header)
        demand = step_up_from_challenge(header)
        if demand is None or demand.level is None:
            raise Went(f"the challenge cannot be read back: {header}")
        self.say("and is read back as", repr(demand))
        strong = self.mint(scope="orders:read", acr=demand.level)
        self.expect("a stronger sign-in is accepted", self.get("/payment-methods", strong), 200)

    def rotation(self) -> None:
        before = self.mint(scope="orders:read")
        options = ("--config", self.config, "--force", "--reason", "demonstration", "--json")
        ran = subprocess.run([COMMAND, "keys", "rotate", *options], capture_output=True, text=True, check=True)
        new = json.loads(ran.stdout)["active"]
        self.say("the key is rotated early, by force and with a reason; signs next", new)
        time.sleep(1.5)
        after = self.mint(scope="orders:read")
        self.expect("a token from before the rotation passes", self.get("/orders", before), 200)
        self.expect("a token from after it passes", self.get("/orders", after), 200)

    def mint(self, *, subject_lives_s: int | None = None, acr: str = "standard", **wanted: object) -> str:
        now = time.time()
        ask = Ask(sub="cus_48213", acr=acr, auth_time=int(now) - 60, audience=self.orchestrator.audience, **wanted)
        orchestrator = self.orchestrator
        if subject_lives_s is not None:
            orchestrator = dataclasses.replace(orchestrator, lifetime_s=subject_lives_s)
        form = asyncio.run(orchestrator.form(ask, now))
        response = self.http.post(orchestrator.token_endpoint, data=form)
        if response.status_code != 200:
            raise Went(f"the issuer answered {response.status_code} {response.text}")
        return response.json()["access_token"]

    def get(self, path: str, token: str | None) -> httpx2.Response:
        return self.http.get(self.partner + path, headers=authorization(token))

    def cancel(self, token: str, arguments: dict, key: str) -> httpx2.Response:
        headers = authorization(token) | {"Idempotency-Key": key}
        return self.http.post(self.partner + "/cancel", json=arguments, headers=headers)

    def expect(self, step: str, response: httpx2.Response, status: int, reason: str | None = None) -> None:
        answer = response.json()
        if response.status_code != status or answer.get("reason") != reason:
            raise Went(f"{step}: expected {status} {reason or ''}, got {response.status_code} {response.text}")
        outcome = f"{status} {reason}" if reason else f"{status} customer {answer['customer']}, agent {answer['agent']}"
        self.say(step, outcome)

    def say(self, step: str, outcome: str) -> None:
        self.steps += 1
        print(f"{self.steps:>3}  {step:<52} {outcome}", flush=True)


def confirmed(arguments: dict, key: str) -> RequestedWrite:
    return RequestedWrite(action="cancel_order", arguments=arguments, idempotency_key=key, confirmed_at=CONFIRMED_AT)


def authorization(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@contextmanager
def running(command: list, ready: str, log: Path) -> Iterator[None]:
    """
    Run a process until the block ends; enter the block when *ready* answers.
    """
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            wait_for(process, ready, log)
            yield
        finally:
            process.terminate()
            process.wait(timeout=15)


def wait_for(process: subprocess.Popen, url: str, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Went(f"a process ended with {process.returncode}:\n{log.read_text()}")
        try:
            httpx2.get(url, trust_env=False, timeout=1)
        except httpx2.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise Went(f"{url} did not answer within {START_LIMIT_S} s:\n{log.read_text()}")


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        origin, partner = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        dev, config = folder / "dev", folder / "dev" / "customer-context.toml"
        subprocess.run([COMMAND, "init", dev, "--origin", origin], check=True, stdout=subprocess.DEVNULL)
        orchestrator = load_orchestrator(dev / "orchestrator")
        serve = [COMMAND, "serve", "--config", config, "--port", origin.rpartition(":")[2]]
        api = [sys.executable, HERE / "partner_api.py", partner.rpartition(":")[2]]
        api += [orchestrator.issuer, orchestrator.audience]
        try:
            with (
                running(serve, f"{origin}/health/ready", folder / "issuer.log"),
                running(api, f"{partner}/orders", folder / "partner.log"),
            ):
                print(f"issuer {orchestrator.issuer}, partner API {orchestrator.audience} at {partner}")
                Demo(orchestrator, config, partner).run()
        except Went as went:
            print(f"FAILED  {went}", file=sys.stderr)
            return 1
    print("every step went as it should")
    return 0


CONFIRMED_AT = int(time.time())

if __name__ == "__main__":
    sys.exit(main())
