"""
What a service does at its start about an audit trail that is not as it should be.
"""

import asyncio
import shutil
import time
from functools import partial

import pytest

from issuer import service as service_module
from issuer.audit import Actor, RingOlderThanTrail
from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.service import open_service
from issuer.settings import load_settings

OPERATOR = Actor("cli", "root")
FORCED = {"expected_active": None, "force": True, "reason": "exercise"}


@pytest.fixture
def dev(tmp_path):
    write_development_config(tmp_path / "dev", now=int(time.time()))
    return tmp_path / "dev"


@pytest.fixture
def events(monkeypatch):
    found = []
    monkeypatch.setattr(service_module, "report", lambda event, **facts: found.append((event, facts)))
    return found


def opened(dev):
    return asyncio.run(open_service(load_settings(dev / CONFIG_NAME, {})))


def rotated(dev):
    administration = opened(dev).offices["demo"].administration
    asyncio.run(administration.rotate(OPERATOR, **FORCED))


def test_a_damaged_trail_does_not_stop_the_service(dev, events):
    """
    Tokens are minted on; the log says that no planned change is possible.
    """
    rotated(dev)
    (dev / "data" / "audit" / "demo.jsonl").write_bytes(b"")

    service = opened(dev)

    assert ("audit_check_failed", {"workspace": "demo", "problem": "trail_damaged"}) in events
    assert service.rings["demo"].current(time.time()).kid


def test_a_ring_that_is_older_than_its_trail_stops_the_service(dev):
    """
    Somebody put a copy in its place, which might bring a revoked key back.
    """
    shutil.copytree(dev / "data" / "rings", dev / "older")
    rotated(dev)
    shutil.rmtree(dev / "data" / "rings")
    shutil.copytree(dev / "older", dev / "data" / "rings")

    start = partial(opened, dev)

    with pytest.raises(RingOlderThanTrail):
        start()
