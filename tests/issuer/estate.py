"""
Keys and trails in memory that a test holds in its hands, under the real ledger; and admins who ask for something.
"""

import asyncio
import contextlib
import json
import threading
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from typing import get_args

from issuer.audit.errors import PlaceTaken, TrailUnavailable
from issuer.audit.trail import TrailEnd
from issuer.ledger import Ledger
from issuer.office import open_office
from issuer.registry import Admin, Permission
from issuer.schedule import steady_clock
from keys import RevisionConflict, SealingKey, SealingKeys

from .world import NOW, basic, changed, public_keys, signed

SEALING = SealingKeys(SealingKey("2026-11", b"\x11" * 32))
ADMIN_SECRETS = {"secops": "s:1+ /%", "reader": "s-2"}
ADMINS = (
    Admin(
        name="secops",
        secret_sha256=(sha256(ADMIN_SECRETS["secops"].encode()).digest(),),
        permissions=frozenset(get_args(Permission)),
    ),
    Admin(
        name="reader",
        secret_sha256=(sha256(ADMIN_SECRETS["reader"].encode()).digest(),),
        permissions=frozenset({"keys:read"}),
    ),
    Admin(name="robot", keys=public_keys("admin-1"), permissions=frozenset({"keys:read", "keys:rotate"})),
)
NUMBERS = count()


@dataclass
class RingStore:
    """
    A store of a key ring that can be changed, or made to fail, between two looks.
    """

    ring: object
    revision: int = 1
    failure: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    async def stamp(self):
        return None if self.failure else self.revision

    async def load(self):
        if self.failure:
            raise self.failure
        return self.ring, self.revision

    async def save(self, ring, *, expect):
        if self.failure:
            raise self.failure
        # Somebody else may come in between what is asked and what is answered, as on a network.
        await asyncio.sleep(0)
        with self.lock:
            if expect != self.revision:
                raise RevisionConflict(where="memory", expected=expect, found=self.revision)
            self.put(ring)
            return self.revision

    def put(self, ring):
        self.ring, self.revision = ring, self.revision + 1


@dataclass
class MemoryTrail:
    """
    A trail without a disk, which may fail.
    """

    where: str = "memory"
    kept: list = field(default_factory=list)
    confirmed: str | None = None
    is_down: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def exclusive(self, *, wait_s):
        self._check()
        return contextlib.nullcontext()

    async def end(self):
        self._check()
        return TrailEnd(top=len(self.kept), confirmed=self.confirmed)

    async def lines(self, start=1):
        self._check()
        for line in self.kept[start - 1 :]:
            yield line

    async def append(self, seq, lines):
        self._check()
        await asyncio.sleep(0)
        with self.lock:
            if len(self.kept) >= seq:
                raise PlaceTaken(seq)
            self.kept += lines

    async def confirm(self, _seq, confirmation):
        self._check()
        self.confirmed = confirmation

    @property
    def records(self):
        return [json.loads(line) for line in self.kept]

    def _check(self):
        if self.is_down:
            raise TrailUnavailable(where=self.where, problem="it is down")


@dataclass
class MemorySpill:
    """
    What could not be recorded, without a disk.
    """

    lines: list = field(default_factory=list)

    async def append(self, line):
        self.lines.append(line)

    async def find(self, links):
        return {}


def ledger_of(workspace, store, *, trail, now, report, spill=None):
    return Ledger(
        workspace,
        store=store,
        trail=trail,
        spill=spill or MemorySpill(),
        sealing=SEALING,
        now=now,
        report=report,
    )


def office_of(workspace, ring, store, *, times, mints, now, report, trail=None):
    """
    Open the office of a workspace over a store in memory.
    """
    ledger = ledger_of(workspace.name, store, trail=trail or MemoryTrail(), now=now, report=report)
    return open_office(
        workspace,
        ring=ring,
        store=store,
        ledger=ledger,
        times=times,
        mints=mints,
        now=now,
        store_now=steady_clock(now, now),
        report=report,
    )


def with_admins(registry):
    """
    Return the registry with these admins in each of its workspaces.
    """
    admins = {admin.name: admin for admin in ADMINS}
    return replace(registry, workspaces=tuple(replace(each, admins=admins) for each in registry))


def credential(admin, *, issuer="", method="", path="", now=NOW, key="admin-1", **changes):
    """
    Return the Authorization value of an admin for one call.
    """
    if admin in ADMIN_SECRETS:
        return basic(admin, ADMIN_SECRETS[admin])
    claims = {
        "iss": admin,
        "sub": admin,
        "aud": issuer,
        "iat": int(now),
        "exp": int(now) + 60,
        "jti": f"admin-jti-{next(NUMBERS)}",
        "htm": method,
        "htu": issuer + path,
    }
    return f"Bearer {signed(changed(claims, changes), typ='caplo-admin+jwt', key=key)}"


class Desk:
    """
    A service with admins, and their calls; `site` is the service with everything it is made of.
    """

    def __init__(self, site):
        self.site = site

    def ring(self, workspace="root"):
        return self.site.ring_stores[workspace].ring

    def trail(self, workspace="root"):
        return self.site.trails[workspace]

    def ask(self, method, path, body=None, *, admin="secops", workspace="root", headers=(), **changes):
        """
        Send a call below the issuer, with what *admin* shows for it; a body is JSON, or the very octets of one.
        """
        lines = dict(headers)
        where = self.site.workspace(workspace)
        if admin is not None and "Authorization" not in lines:
            lines["Authorization"] = credential(
                admin,
                issuer=where.issuer,
                method=method,
                path=path.partition("?")[0],
                now=self.site.clock.at,
                **changes,
            )
        content = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
        if content is not None:
            lines.setdefault("Content-Type", "application/json")
        sent = [(name, value) for name, value in lines.items() if value is not None]
        return self.site.http.request(method, where.path + path, content=content, headers=sent)

    def rotate(self, *, key=None, workspace="root", **body):
        """
        Ask for a rotation of the key that is active, with a new idempotency key if none is given.
        """
        members = {"expected_active": self.ring(workspace).active.kid, **body}
        headers = {"Idempotency-Key": key or f"idk-of-the-tests-{next(NUMBERS)}"}
        return self.ask("POST", "/admin/keys/rotate", members, workspace=workspace, headers=headers)


def problem(response):
    """
    Return slug and status of problem details, which have the form of them whatever was asked (RFC 9457).
    """
    members = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert members["status"] == response.status_code
    assert {"type", "title", "status", "detail"} <= set(members)
    assert all(len(name) >= 3 for name in members)
    return response.status_code, members["type"].removeprefix("urn:caplo:problem:")
