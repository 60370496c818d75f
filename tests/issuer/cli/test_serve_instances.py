"""
Services as processes of their own on one Redis: what one of them did, the others know.
"""

import asyncio
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from issuer.cli.serve import command
from issuer.idempotency import MAX_MINTS
from issuer.orchestrator import Ask, RequestedWrite, load_orchestrator
from issuer.ring_stores import ring_stores
from issuer.settings import load_settings
from issuer.settings_sealing import load_sealing_keys
from keys import export_blob, import_blob
from verifier.compact import parse_compact

from ..instances import mints_of
from ..redis_kinds import begin_epoch
from .conftest import COMMAND, START_LIMIT_S, free_port, stop

PROCESSES = 4


def move(dev, server):
    """
    Let keys and state of a configuration be in a Redis.
    """

    async def with_ring(work):
        settings = load_settings(dev.config, {})
        place = ring_stores(settings, load_sealing_keys(settings), deadline_s=20)
        try:
            return await work(place.ring("demo"))
        finally:
            await place.aclose()

    blob = asyncio.run(with_ring(export_blob))
    named = f'redis_url = "{server.url}"\nkeys_redis_allow_volatile = true\n'
    dev.config.write_text(named + dev.config.read_text())
    asyncio.run(with_ring(lambda ring: import_blob(ring, blob)))


@pytest.fixture
def shared(dev, redis_server):
    """
    A configuration whose Redis an instance met an hour ago.
    """
    move(dev, redis_server)
    begin_epoch(redis_server, age_s=3600)
    return dev


@pytest.fixture
def processes(shared, tmp_path):
    """
    Services that each have a data folder of their own; they are ended with the test.
    """
    started, places = [], []
    try:
        for number in range(PROCESSES):
            folder = tmp_path / f"data-{number}"
            folder.mkdir()
            places.append(f"http://127.0.0.1:{free_port()}")
            words = [COMMAND, "serve", "--config", shared.config, "--port", places[-1].rpartition(":")[2]]
            environ = {**os.environ, "CUSTOMER_CONTEXT_DATA_DIR": str(folder)}
            with (tmp_path / f"log-{number}").open("wb") as log:
                started.append(subprocess.Popen(words, stdout=log, stderr=log, env=environ))
        deadline = time.monotonic() + START_LIMIT_S
        while not all(is_ready(place) for place in places):
            assert time.monotonic() < deadline, [(tmp_path / f"log-{n}").read_text() for n in range(PROCESSES)]
            time.sleep(0.1)
        yield places
    finally:
        for process in started:
            process.terminate()
        for process in started:
            stop(process)


def is_ready(place):
    try:
        return httpx2.get(f"{place}/health/ready", trust_env=False, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def test_g04_0_fifty_requests_with_one_new_key_at_four_processes(shared, processes, redis_server):
    """
    G04-0: one record and no more than twenty tokens, each of its own, all with the one digest.

    What a busy machine does not answer in time is 503, and may have used up one of the twenty.
    """
    orchestrator, now = load_orchestrator(shared.orchestrator), time.time()
    write = RequestedWrite(
        action="cancel_order",
        arguments={"orderId": "A-1001"},
        idempotency_key="idk-case-0000000000004",
        confirmed_at=int(now),
    )
    asked = Ask(sub="cus_1", acr="low", auth_time=int(now), audience=orchestrator.audience, write=write)
    forms = [asyncio.run(orchestrator.form(asked, now)) for _ in range(90)]

    def ask(number):
        place = processes[number % PROCESSES]
        return httpx2.post(f"{place}/w/demo/oauth/token", data=forms[number], trust_env=False, timeout=30)

    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(ask, range(50)))
    # Until it is used up for certain.
    for number in range(50, 90):
        if answers[-1].status_code == 400:
            break
        answers.append(ask(number))

    granted = [answer.json() for answer in answers if answer.status_code == 200]
    unavailable = sum(answer.status_code == 503 for answer in answers)
    exhausted = [answer.json()["error"] for answer in answers if answer.status_code not in (200, 503)]
    assert MAX_MINTS - unavailable <= len(granted) <= MAX_MINTS
    assert len({parse_compact(each["access_token"]).claims["jti"] for each in granted}) == len(granted)
    assert len({each["authorization_details"][0]["actionDigest"] for each in granted}) == 1
    assert set(exhausted) == {"invalid_authorization_details"}
    assert mints_of(redis_server) == [MAX_MINTS]
    used = [httpx2.post(f"{place}/w/demo/oauth/token", data=forms[0], trust_env=False) for place in processes]
    assert {answer.json()["error"] for answer in used} <= {"invalid_client", "temporarily_unavailable"}


def test_a_redis_that_is_not_fit_ends_the_start_in_one_line(run, dev, start_redis):
    """
    It says what is wrong, what to do, and where, without a traceback.
    """
    server = start_redis("--save", "", "--maxmemory-policy", "volatile-lru")
    move(dev, server)

    result = run(command, "--config", dev.config, "--port", "0")

    assert result.exit_code == 2
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("customer-context:")]
    assert all(word in line for word in (server.url, "volatile-lru", "noeviction", "redis_allow_eviction"))
    assert "Traceback" not in result.output
