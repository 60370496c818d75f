"""
Starts the Redis, the instances and the partners, hands them out when they answer, and ends them whatever happens.
"""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
from beside import module_beside
from clock import FastClock
from configuration import AUDIENCE, WORKSPACE, write_configuration
from estate import PATIENCE_S, Estate, PartnerKind

from keys import KeyTimes, create_ring

__all__ = ["a_redis", "open_estate"]

HERE = Path(__file__).parent
START_LIMIT_S, END_LIMIT_S = 60, 15


@contextlib.contextmanager
def a_redis(folder: Path) -> Any:
    """
    Run a Redis that keeps what it is told.
    """
    redis = module_beside("redis_server.py").RedisServer(folder / "redis", "--appendonly", "yes", "--save", "")
    redis.start()
    try:
        yield redis
    finally:
        redis.stop()


@contextlib.asynccontextmanager
async def open_estate(
    folder: Path, *, factor: float, kinds: tuple[PartnerKind, ...], times: KeyTimes, is_due: bool
) -> AsyncIterator[Estate]:
    """
    Start everything, and hand it out while the block runs.

    The standbys of the ring are mature; where a rotation *is_due*, the schedules of both instances find it so at once.
    """
    origins = tuple(f"http://127.0.0.1:{free_port()}" for _ in range(2))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S, limits=limits) as http:
        with a_redis(folder) as redis, ending() as processes:
            configured = write_configuration(folder, origin=origins[0], redis=redis.url, times=times)
            estate = Estate(FastClock.starting(factor), times, configured, redis, origins, kinds, http)
            born = int(estate.clock.now()) - (times.rotation_s + 1 if is_due else times.maturity_s)
            await estate.store().save(create_ring(WORKSPACE, now=born, times=times), expect=0)
            start_all(folder, estate, processes)
            await ready(folder, estate, processes)
            feeling = asyncio.create_task(estate.feel_the_pulse())
            try:
                yield estate
            finally:
                feeling.cancel()


@contextlib.contextmanager
def ending() -> Any:
    """
    Hand out a list of processes, and end those that are in it, stopped ones too.
    """
    processes: list[subprocess.Popen] = []
    try:
        yield processes
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start_all(folder: Path, estate: Estate, processes: list[subprocess.Popen]) -> None:
    for number, origin in enumerate(estate.origins):
        data, port = folder / f"data-{number}", origin.rpartition(":")[2]
        data.mkdir(mode=0o700)
        command = [HERE / "instance.py", estate.configured.path, data, port, estate.clock]
        estate.instances.append(start(folder / f"instance-{number}.log", command, processes))
    for number, each in enumerate(estate.kinds):
        port, replay, issuer = free_port(), "memory" if each.replay else "none", estate.configured.issuer
        command = [HERE / "partner.py", port, each.kind, issuer, AUDIENCE, each.tolerance, replay, estate.clock]
        start(folder / f"partner-{number}.log", [*command, *estate.origins], processes)
        estate.partners.append(f"http://127.0.0.1:{port}")


def start(log: Path, command: list[Any], processes: list[subprocess.Popen]) -> subprocess.Popen:
    with log.open("wb") as opened:
        process = subprocess.Popen([sys.executable, *map(str, command)], stdout=opened, stderr=subprocess.STDOUT)
    processes.append(process)
    return process


async def ready(folder: Path, estate: Estate, processes: list[subprocess.Popen]) -> None:
    urls = [f"{origin}/health/ready" for origin in estate.origins]
    async with asyncio.timeout(START_LIMIT_S):
        for url in [*urls, *(f"{partner}/control" for partner in estate.partners)]:
            while not await is_ready(estate, url):
                check_alive(folder, processes)
                await asyncio.sleep(0.05)


def check_alive(folder: Path, processes: list[subprocess.Popen]) -> None:
    if any(process.poll() is not None for process in processes):
        logs = "\n".join(path.read_text() for path in sorted(folder.glob("*.log")))
        raise RuntimeError(f"a process ended:\n{logs}")


async def is_ready(estate: Estate, url: str) -> bool:
    try:
        # A partner is ready when it has the keys.
        is_partner = url.endswith("control")
        answer = await (estate.http.post(url, json={"refresh": True}) if is_partner else estate.http.get(url))
    except httpx2.HTTPError:
        return False
    return answer.is_success and (not is_partner or answer.json()["reason"] is None)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
