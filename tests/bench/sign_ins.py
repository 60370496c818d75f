"""
Minting from a customer's sign-in, beside npm's `oidc-provider` issuing access tokens by client credentials: requests a second.

    python tests/bench/sign_ins.py [--rounds 3] [--seconds 5]

Both sign ES256 JWTs of type at+jwt, authenticate the client by `client_secret_basic`, and run as one process; `wrk` asks them in
turn over 16 connections. It needs `wrk`, node, and what `make interop` installs.
"""

import argparse
import base64
import json
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from runpy import run_path
from urllib.parse import urlencode

import httpx2
from joserfc import jwt
from joserfc.jwk import RSAKey

from issuer.exchange import GRANT_TYPE
from issuer.init_config import write_development_config
from issuer.subjects import SIGN_IN_TYPE

HERE = Path(__file__).parent
DEMO = run_path(str(HERE.parent / "demo" / "demo.py"))
AUDIENCE = "https://api.shop.example"
CONNECTIONS = 16
CLIENT = """
  [[workspaces.clients]]
  client_id = "orc_bench"
  secret_sha256 = ["{digest}"]
  subject_tokens = ["sign_in"]
  connections = ["shop"]
  agents = ["agt_support"]
  scopes = ["orders:read"]
"""
PROVIDER = """
    [workspaces.connections.provider]
    issuer = "https://login.shop.example"
    jwks_file = "provider.jwks.json"
    [workspaces.connections.provider.clients]
    "shop-web" = "orc_bench"
"""
LIMITS = """
[limits]
client_per_second = 0
customer_per_minute = 0
"""


def basic(name: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


class Target:
    """
    A token request that may be sent again and again.
    """

    def __init__(self, name: str, url: str, authorization: str, form: dict[str, str], folder: Path) -> None:
        self.name, self.url = name, url
        self.headers = {"Authorization": authorization, "Content-Type": "application/x-www-form-urlencoded"}
        self.body = urlencode(form)
        self.script = folder / f"{name.partition(' ')[0]}.lua"
        lines = ['wrk.method = "POST"', f"wrk.body = {json.dumps(self.body)}"]
        lines += [f"wrk.headers[{json.dumps(each)}] = {json.dumps(value)}" for each, value in self.headers.items()]
        self.script.write_text("\n".join(lines) + "\n")

    def check(self) -> None:
        """
        See to it that the request is granted.
        """
        answer = httpx2.post(self.url, content=self.body, headers=self.headers)
        if answer.status_code != 200:
            sys.exit(f"{self.name}: {answer.status_code} {answer.text}")

    def measure(self, seconds: int) -> float:
        """
        Return the requests a second that are granted, every single one of them.
        """
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", self.script, self.url]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rate = re.search(r"Requests/sec:\s+([0-9.]+)", told)
        if rate is None or "Non-2xx" in told or "Socket errors" in told:
            sys.exit(f"{self.name}: not every request was granted\n{told}")
        return float(rate[1])


def issuer_target(folder: Path, stack: ExitStack) -> Target:
    origin = f"http://127.0.0.1:{DEMO['free_port']()}"
    written = write_development_config(folder / "issuer", origin=origin, now=int(time.time()))
    key, secret = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": "bench"}), secrets.token_urlsafe(32)
    (written.config.parent / "provider.jwks.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    text = written.config.read_text().replace(
        "    [[workspaces.connections.actions]]", f"{PROVIDER}\n    [[workspaces.connections.actions]]", 1
    )
    client = CLIENT.format(digest=sha256(secret.encode()).hexdigest())
    text = text.replace("  [[workspaces.admins]]", f"{client}\n  [[workspaces.admins]]", 1)
    # As it is run in production: lines of JSON.
    text = text.replace('log_format = "console"', 'log_format = "json"', 1)
    written.config.write_text(text.replace("[[sealing_keys]]", f"{LIMITS}\n[[sealing_keys]]", 1))
    serve = [DEMO["COMMAND"], "serve", "--config", written.config, "--port", origin.rpartition(":")[2]]
    stack.enter_context(DEMO["running"](serve, f"{origin}/health/ready", folder / "issuer.log"))
    now = int(time.time())
    claims = {"iss": "https://login.shop.example", "aud": "shop-web", "sub": "cus_48213", "iat": now, "exp": now + 60}
    id_token = jwt.encode({"alg": "RS256", "kid": "bench"}, {**claims, "auth_time": now}, key)
    authorization = basic("orc_bench", secret)
    answer = httpx2.post(
        f"{origin}/w/demo/sign-ins", json={"id_token": id_token}, headers={"Authorization": authorization}
    )
    if answer.status_code != 201:
        sys.exit(answer.text)
    form = {
        "grant_type": GRANT_TYPE,
        "subject_token": answer.json()["sign_in_id"],
        "subject_token_type": SIGN_IN_TYPE,
        "resource": AUDIENCE,
        "scope": "orders:read",
    }
    return Target("issuer, from a sign-in", f"{origin}/w/demo/oauth/token", authorization, form, folder)


def provider_target(folder: Path, stack: ExitStack) -> Target:
    tools = run_path(str(HERE.parent / "interop" / "identity_provider.py"))
    provider = tools["IdentityProvider"](folder, DEMO["free_port"](), redirect_uri="http://127.0.0.1/back")
    stack.enter_context(provider)
    form = {"grant_type": "client_credentials", "resource": AUDIENCE, "scope": "orders:read"}
    return Target(
        "oidc-provider, client credentials",
        f"{provider.issuer}/token",
        basic("machine", tools["CLIENT_SECRET"]),
        form,
        folder,
    )


def main() -> None:
    """
    Measure both in turn and print the ratio of the medians.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    if shutil.which("wrk") is None or shutil.which("node") is None:
        sys.exit("wrk and node are needed")
    targets: list[Callable[[Path, ExitStack], Target]] = [issuer_target, provider_target]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        made = [target(Path(name), stack) for target in targets]
        for each in made:
            each.check()
            each.measure(2)
        rates: dict[str, list[float]] = {each.name: [] for each in made}
        for number in range(options.rounds):
            for each in made:
                rates[each.name].append(each.measure(options.seconds))
                print(f"round {number + 1}: {each.name:36} {rates[each.name][-1]:7.0f} requests/s", flush=True)
    ours, theirs = (statistics.median(rates[each.name]) for each in made)
    print(f"median {ours:.0f} and {theirs:.0f}: {ours / theirs:.2f} times as many")


if __name__ == "__main__":
    main()
