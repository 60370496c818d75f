"""
Two issuer instances on one Redis, partner APIs around them, an orchestrator and an admin, and how to talk to each of them.
"""

import asyncio
import itertools
import json
import secrets
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from clock import FastClock
from configuration import ADMIN, AUDIENCE, CLIENTS, WORKSPACE, Configured

from issuer.keystore_redis import RedisKeyStore
from issuer.orchestrator import Ask, RequestedWrite, new_idempotency_key
from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url
from keys import KeyTimes
from verifier.compact import UnverifiedToken, parse_compact

__all__ = ["PATIENCE_S", "Estate", "Minted", "PartnerKind", "Presented"]

ARGUMENTS = {"orderId": "A-1001", "refund": {"amount": 1250, "currency": "EUR"}}
PATIENCE_S = 30.0
PULSE_S = 0.1


@dataclass(frozen=True)
class PartnerKind:
    """
    What a partner is like; `replay` is False for one that accepts replays, so that one token can be shown again and again.
    """

    kind: str
    tolerance: int = 0
    replay: bool = True

    def __str__(self) -> str:
        return f"{self.kind}, tolerance {self.tolerance} s"


@dataclass(frozen=True)
class Minted:
    """
    What a token request brought: a token, or a status and an error; instants by the fast clock.
    """

    instance: int
    asked: float
    answered: float
    status: int
    error: str | None
    token: str | None = field(default=None, repr=False)
    is_write: bool = False

    @property
    def parts(self) -> UnverifiedToken:
        return parse_compact(self.token)

    @property
    def kid(self) -> str | None:
        return None if self.token is None else self.parts.kid


@dataclass(frozen=True)
class Presented:
    """
    What a partner said about a token; it looked at it between the two instants. No reason means that it was accepted.
    """

    partner: int
    reason: str | None
    began: float
    ended: float


@dataclass
class Estate:
    """
    Everything that runs, and how to talk to it.
    """

    clock: FastClock
    times: KeyTimes
    configured: Configured
    redis: Any
    origins: tuple[str, ...]
    kinds: tuple[PartnerKind, ...]
    http: httpx2.AsyncClient
    instances: list[subprocess.Popen] = field(default_factory=list)
    partners: list[str] = field(default_factory=list)
    longest_pause_s: float = 0

    def at(self, instance: int, path: str) -> str:
        return f"{self.origins[instance]}/w/{WORKSPACE}{path}"

    def store(self) -> RedisKeyStore:
        """
        Return the store of the ring, for whoever holds the sealing key.
        """
        return RedisKeyStore(
            RedisConnection(parse_redis_url(self.redis.url), PATIENCE_S), WORKSPACE, self.configured.sealing
        )

    async def admin(self, instance: int, method: str, path: str, body: Any = None) -> httpx2.Response:
        credential = b64encode(f"{ADMIN}:{self.configured.admin_secret}".encode()).decode()
        headers = {"Authorization": f"Basic {credential}", "Idempotency-Key": f"idk_{secrets.token_urlsafe(16)}"}
        return await self.http.request(method, self.at(instance, f"/admin{path}"), headers=headers, json=body)

    async def asked(self, instance: int, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """
        Make an admin call that has to succeed.
        """
        response = await self.admin(instance, method, path, body)
        if not response.is_success:
            raise AssertionError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json()

    async def mint(
        self,
        instance: int,
        *,
        client: str = CLIENTS[0],
        sub: str = "cus_1",
        is_write: bool = False,
        agent: str | None = None,
    ) -> Minted:
        """
        Ask for a token; a connection that fails shows as status 0.
        """
        now = self.clock.now()
        write = RequestedWrite(
            action="cancel_order", arguments=ARGUMENTS, idempotency_key=new_idempotency_key(), confirmed_at=int(now)
        )
        wanted = {"scope": "orders:write", "write": write} if is_write else {"scope": "orders:read"}
        ask = Ask(sub=sub, acr="standard", auth_time=int(now) - 60, audience=AUDIENCE, **wanted)
        orchestrator = self.configured.orchestrators[agent or client]
        form = await orchestrator.form(ask, now)
        status, members = await self._post(self.at(instance, "/oauth/token"), form)
        return Minted(
            instance=instance,
            asked=now,
            answered=self.clock.now(),
            status=status,
            error=members.get("error"),
            token=members.get("access_token"),
            is_write=is_write,
        )

    async def present(self, partner: int, token: str, *, is_write: bool = False) -> Presented:
        """
        Show a token to a partner.
        """
        path, body = ("/cancel", json.dumps(ARGUMENTS).encode()) if is_write else ("/", b"")
        answer = await self.http.post(
            self.partners[partner] + path, content=body, headers={"Authorization": f"Bearer {token}"}
        )
        return Presented(partner, **answer.json())

    async def control(self, partner: int, **order: bool) -> None:
        answer = await self.http.post(f"{self.partners[partner]}/control", json=order)
        if answer.json()["reason"] is not None:
            raise AssertionError(f"partner {partner} could not be told {order}: {answer.text}")

    def stop(self, instance: int) -> None:
        self.instances[instance].send_signal(signal.SIGSTOP)

    def go_on(self, instance: int) -> None:
        self.instances[instance].send_signal(signal.SIGCONT)

    def wait_until_stopped(self, instance: int, limit_s: float) -> None:
        stat = Path(f"/proc/{self.instances[instance].pid}/stat")
        deadline = time.monotonic() + limit_s
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            if time.monotonic() > deadline:
                raise TimeoutError(f"instance {instance} did not stop")
            time.sleep(0.001)

    async def feel_the_pulse(self) -> None:
        """
        Find out for how long the machine kept this process or a partner waiting at worst, in real seconds.
        """
        for number in itertools.count():
            began = time.monotonic()
            await asyncio.sleep(PULSE_S)
            await self.control(number % len(self.partners))
            self.longest_pause_s = max(self.longest_pause_s, time.monotonic() - began - PULSE_S)

    async def _post(self, url: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        try:
            response = await self.http.post(url, data=form)
        except httpx2.HTTPError as error:
            return 0, {"error": type(error).__name__}
        return response.status_code, response.json()
