"""
`customer-context serve`: it starts only when everything is in order, says what is not, and ends when told to.
"""

import asyncio
import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager

import httpx2
import pytest
import uvicorn

from issuer.cli import serve as serve_module
from issuer.cli.serve import command
from issuer.orchestrator import Ask, RequestedWrite

STOPPED_S = 10
CUSTOMER = "cus_48213_of_the_log_test"
KEY = "idk_of_the_log_test"
ARGUMENT = "argument-of-the-log-test"


# What is wrong, and a word that the message must have.
FAULTS = {
    "a missing ring": (lambda dev: dev.ring.unlink(), "keys init"),
    "an empty ring": (lambda dev: dev.ring.write_bytes(b""), "demo.jwe"),
    "a ring cut off": (lambda dev: dev.ring.write_bytes(dev.ring.read_bytes()[:-40]), "demo.jwe"),
    "a ring readable by others": (lambda dev: dev.ring.chmod(0o640), "chmod 600"),
    "a sealing key readable by others": (lambda dev: dev.sealing_key.chmod(0o604), "sealing_keys[0].file"),
    "no sealing key": (lambda dev: dev.sealing_key.unlink(), "sealing_keys[0].file"),
    "another sealing key": (lambda dev: dev.exchange_sealing_key(), "sealing_keys"),
    "a workspace without a ring": (lambda dev: dev.add_workspace(), "other"),
    "a field of a wrong value": (lambda dev: dev.change('"client"', '"nobody"'), "actions[0].confirmation"),
    "a field that is not known": (lambda dev: dev.change("agents =", "agentz ="), "agentz"),
    "no TOML": (lambda dev: dev.config.write_text("[["), "TOML"),
    "no file": (lambda dev: dev.config.unlink(), "customer-context.toml"),
}


@pytest.fixture
def serve(run, dev, monkeypatch: pytest.MonkeyPatch):
    """
    Run the command up to the point where uvicorn would take over; what it would be given is returned beside the result.
    """
    given = {}

    @contextmanager
    def bound(host, port):
        given["bound"] = (host, port)
        yield ()

    class Server:
        def __init__(self, config):
            given["config"] = config

        def run(self, sockets):
            given["sockets"] = sockets

    monkeypatch.setattr(serve_module, "bound", bound)
    monkeypatch.setattr(uvicorn, "Server", Server)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: None)
    return lambda *words: (run(command, "--config", dev.config, *words), given)


def files(dev):
    return {path: (path.read_bytes(), path.stat().st_mode) for path in dev.folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("spoil", "word"), FAULTS.values(), ids=FAULTS.keys())
def test_it_refuses_to_start(serve, dev, spoil, word):
    """
    Nothing is bound, one line or one for each fault says what to mend, and every file stays as it is.
    """
    spoil(dev)
    before = files(dev)

    result, given = serve()

    assert (result.exit_code, "config" in given) == (2, False)
    assert word in result.stderr
    assert "Traceback" not in result.output
    assert files(dev) == before


@pytest.mark.parametrize("setting", ["", 'keys_redis_url = "redis://127.0.0.1:1"\n'], ids=["none", "keys alone"])
def test_several_workers_need_a_shared_store(serve, dev, setting):
    """
    State in memory is for one process: two workers would accept an assertion twice, also where they share the keys.
    """
    dev.config.write_text(setting + dev.config.read_text())

    result, given = serve("--workers", "2")

    assert (result.exit_code, given) == (2, {})
    assert len(result.stderr.splitlines()) == 1
    assert "redis_url" in result.stderr


@pytest.mark.parametrize("words", [("--port", "65536"), ("--port", "x"), ("--workers", "0")])
def test_a_bad_option_is_a_usage_error(serve, words):
    """
    What is no port and no number of workers exits with 2.
    """
    result, given = serve(*words)

    assert (result.exit_code, given) == (2, {})
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize("host", ["", "a..b", "\udcff", "x" * 64])
def test_a_host_that_is_no_name_is_one_line(serve, host):
    """
    What could not be looked up ends like every other mistake, and nothing at all is not taken for every address.
    """
    result, given = serve("--host", host)

    assert (result.exit_code, given, len(result.stderr.splitlines())) == (2, {}, 1)
    assert "--host" in result.stderr


@pytest.mark.parametrize("host", ["localhost", "::1", "0.0.0.0", "fe80::1%eth0", "id.example.com", "bücher.example"])
def test_a_host_is_bound_as_it_is(serve, host):
    """
    Names and addresses of both families are passed on.
    """
    result, given = serve("--host", host)

    assert (result.exit_code, given["bound"]) == (0, (host, 8000))


def test_uvicorn_is_told_to_keep_to_itself(serve):
    """
    It binds loopback unless told otherwise, trusts no proxy's headers, logs no request and has bounds.
    """
    result, given = serve()

    assert result.exit_code == 0
    config = given["config"]
    assert given["bound"] == ("127.0.0.1", 8000)
    assert (config.proxy_headers, config.access_log, config.server_header) == (False, False, False)
    assert config.timeout_graceful_shutdown == 5
    assert config.limit_concurrency == 8192


@pytest.mark.parametrize(
    ("origin", "port"),
    [("http://localhost:9000", 9000), ("http://localhost", 80), ("https://id.example.com:8443", 8000)],
)
def test_the_port_is_the_one_of_a_loopback_origin(serve, dev, origin, port):
    """
    What `init --origin` wrote is served where its issuer URLs lead; behind a proxy the port is 8000.
    """
    dev.change('origin = "http://127.0.0.1:8000"', f'origin = "{origin}"')

    _, given = serve()

    assert given["bound"] == ("127.0.0.1", port)


def test_the_address_may_come_from_the_environment(serve, monkeypatch: pytest.MonkeyPatch):
    """
    `CUSTOMER_CONTEXT_BIND_HOST` stands for `--host`, and is not taken for a setting that is not known.
    """
    monkeypatch.setenv("CUSTOMER_CONTEXT_BIND_HOST", "0.0.0.0")

    result, given = serve("--port", "0")

    assert result.exit_code == 0
    assert given["bound"] == ("0.0.0.0", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(start, run, number):
    """
    It answers when ready, ends with 0 within seconds of a signal, and its log holds no token, customer id or argument.
    """
    service = start({**os.environ, "CUSTOMER_CONTEXT_LOG_FORMAT": "json", "CUSTOMER_CONTEXT_LOG_LEVEL": "debug"})
    now = time.time()
    write = RequestedWrite(
        action="cancel_order", arguments={"note": ARGUMENT}, idempotency_key=KEY, confirmed_at=int(now)
    )
    ask = Ask(sub=CUSTOMER, acr="low", auth_time=int(now), audience=service.orchestrator.audience, write=write)
    form = asyncio.run(service.orchestrator.form(ask, now))
    ready = service.get("/health/ready")
    minted, replayed = (service.exchange(form) for _ in range(2))

    service.process.send_signal(number)
    status = service.process.wait(STOPPED_S)

    log = service.log.read_text()
    secret = (CUSTOMER, ARGUMENT, form["client_assertion"], form["subject_token"], minted.json()["access_token"])
    assert (ready.status_code, minted.status_code, replayed.status_code) == (200, 200, 401)
    assert status == 0
    assert {"ring_adopted", "token_minted"} <= {json.loads(line)["event"] for line in log.splitlines()}
    assert not [piece for each in secret for piece in each.split(".") if piece in log]
    assert "Traceback" not in log


def test_configured_limits_and_proxies_hold(start):
    """
    As configured: a second token for one customer in a minute, and a third wrong secret from behind the proxy, have to wait.
    """
    limits = {"CUSTOMER_PER_MINUTE": "1", "WRONG_SECRETS_PER_MINUTE": "2"}
    service = start(
        os.environ
        | {f"CUSTOMER_CONTEXT_LIMITS__{name}": number for name, number in limits.items()}
        | {"CUSTOMER_CONTEXT_TRUSTED_PROXIES": '["127.0.0.1"]', "CUSTOMER_CONTEXT_LOG_FORMAT": "json"}
    )

    def ask(sub):
        now = time.time()
        wanted = Ask(sub=sub, acr="low", auth_time=int(now), audience=service.orchestrator.audience)
        return service.exchange(asyncio.run(service.orchestrator.form(wanted, now)))

    def guess(name, source):
        endpoint, lines = service.orchestrator.token_endpoint, {"X-Forwarded-For": f"192.0.2.9, {source}"}
        form = {"grant_type": "x"}
        return httpx2.post(endpoint, data=form, auth=(name, "guessed"), headers=lines, trust_env=False, timeout=5)

    asked = [ask(CUSTOMER), ask(CUSTOMER), ask("cus_2")]
    guesses = [guess(f"client-{number}", "198.51.100.1") for number in range(3)]
    elsewhere = guess("client-3", "198.51.100.2")

    assert [answer.status_code for answer in (*asked, *guesses, elsewhere)] == [200, 429, 200, 401, 401, 429, 401]
    assert 50 <= int(asked[1].headers["retry-after"]) <= 60
    assert 50 <= int(guesses[2].headers["retry-after"]) <= 60
    logged = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert [(each["reason"], each["source"]) for each in logged if each["event"] == "token_refused"] == [
        ("limit:customer", "127.0.0.1"),
        *[("client:credentials", "198.51.100.1")] * 2,
        ("limit:wrong_secrets", "198.51.100.1"),
        ("client:credentials", "198.51.100.2"),
    ]


def test_a_port_in_use_ends_the_start(service, dev):
    """
    A second service on the same port ends by itself with one line that says what to do, and the first one goes on.
    """
    words = ["--config", dev.config, "--port", service.origin.rpartition(":")[2]]

    ran = subprocess.run([service.command, "serve", *words], capture_output=True, text=True, check=False, timeout=30)

    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert "is taken" in ran.stderr
    assert "--port" in ran.stderr
    assert service.get("/health/ready").status_code == 200


def test_a_data_folder_in_use_ends_the_start(service):
    """
    A second service on the same data folder would not know what the first one has seen; it ends with one line.
    """
    words = ["--config", service.dev.config, "--port", "0"]

    ran = subprocess.run([service.command, "serve", *words], capture_output=True, text=True, check=False, timeout=30)

    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert "another process serves from" in ran.stderr
    assert service.get("/health/ready").status_code == 200


def test_a_signal_reloads_the_service(start):
    """
    SIGHUP, on a service that runs: the file is read again, and the process goes on.
    """
    service = start(os.environ)
    kids = service.kids()
    service.dev.change('path = "/w/demo"', f'revoked_kids = ["{kids[1]}"]\npath = "/w/demo"')

    service.process.send_signal(signal.SIGHUP)

    deadline = time.monotonic() + STOPPED_S
    while kids[1] in service.kids() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert kids[1] not in service.kids()
    assert service.process.poll() is None


def test_people_are_told_where_it_serves(service):
    """
    One line says at which address, in how many processes, and where state and keys are.
    """
    (line,) = [line for line in service.log.read_text().splitlines() if line.startswith("serving")]

    keys = service.dev.folder / "data"
    assert line == f"serving at {service.origin} in 1 process; state: memory; keys: {keys}"
