"""
A service of two workspaces, one at the root and one below a path, whose clocks and stores the tests hold in their hands.
"""

import asyncio
from dataclasses import dataclass, field

import pytest
from litestar.testing import TestClient

from issuer.app import create_app
from issuer.limits import Rates
from issuer.limits_memory import MemoryLimits
from issuer.metrics import Metrics
from issuer.mint_counts import MintCounts
from issuer.registry import Action, Client, Connection, Registry, Workspace
from issuer.rings import LiveRing
from issuer.service import Service
from issuer.state import memory_state
from keys import KeyTimes, create_ring

from ..estate import SEALING, RingStore, office_of

NOW = 1_796_040_000
ORIGIN = "https://id.example"


@dataclass
class Clock:
    """
    A clock that stands still until it is moved.
    """

    at: float

    def __call__(self):
        return self.at


def workspace(name, path):
    """
    Build a workspace with one connection, one action and one client that authenticates with the secret `secret`.
    """
    audience = f"https://api.{name}.example"
    action = Action(name="cancel_order", audience=audience, scopes=frozenset({"orders:write"}))
    connection = Connection(
        name="shop",
        namespace="shop-login",
        audiences=(audience,),
        scopes=frozenset({"orders:read"}),
        actions={"cancel_order": action},
    )
    client = Client(
        client_id="orc_main",
        secret_sha256=(bytes(32),),
        audiences=(audience,),
        scopes=frozenset({"orders:read", "orders:write"}),
        actions=frozenset({"cancel_order"}),
        agents=("agt_support",),
    )
    return Workspace(
        name=name,
        path=path,
        issuer=ORIGIN + path,
        connections=(connection,),
        clients={client.client_id: client},
        admins={},
    )


@dataclass
class Harness:
    """
    The service and everything it was made of.
    """

    clock: Clock
    monotonic: Clock
    stores: dict
    service: Service
    events: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    def poll(self):
        """
        Let every ring be looked at once.
        """
        for ring in self.service.rings.values():
            asyncio.run(ring.poll())


@pytest.fixture
def harness():
    clock, monotonic, events, failures = Clock(NOW), Clock(1000.0), [], []

    def report(event, **facts):
        events.append((event, facts))

    registry = Registry(origin=ORIGIN, workspaces=(workspace("root", ""), workspace("acme", "/w/acme")))
    times = KeyTimes()
    stores = {each.name: RingStore(create_ring(each.name, now=NOW - 1000, times=times)) for each in registry}
    rings = {
        name: asyncio.run(LiveRing.open(name, store, now=clock, monotonic=monotonic, report=report))
        for name, store in stores.items()
    }
    mints = MintCounts(clock())
    service = Service(
        registry=registry,
        rings=rings,
        offices={
            each.name: office_of(
                each, rings[each.name], stores[each.name], times=times, mints=mints, now=clock, report=report
            )
            for each in registry
        },
        state=memory_state(clock, SEALING, MemoryLimits(Rates(), monotonic)),
        metrics=Metrics(),
        mints=mints,
        times=times,
        report=report,
        report_failure=failures.append,
        now=clock,
        monotonic=monotonic,
    )
    return Harness(clock, monotonic, stores, service, events, failures)


@pytest.fixture
def app(harness):
    """
    The application; its own looks at the rings, after that at the start, are too far apart to disturb a test.
    """
    return create_app(harness.service, poll_s=3600)


@pytest.fixture
def client(app):
    with TestClient(app, base_url=ORIGIN) as client:
        yield client
