"""
The configuration read again: taken whole or not at all, from one request to the next, also while the store is down.
"""

import asyncio
import json
import time
from dataclasses import replace

import pytest
from litestar.testing import TestClient

from issuer.app import create_app
from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.orchestrator import Ask, load_orchestrator
from issuer.reload import Reloader
from issuer.service import build_service
from issuer.settings import load_settings
from keys import FileUnreadable, SelfTestFailed

from .redis_kinds import begin_epoch
from .test_service import move_to_redis

LIMIT_S = 10


class Running:
    """
    A service on a folder of its own, and its configuration.
    """

    def __init__(self, folder, server=None):
        write_development_config(folder, now=int(time.time()))
        if server is not None:
            move_to_redis(folder, server, name="redis_url")
            begin_epoch(server, age_s=3600)
        self.folder, self.config, self.events = folder, folder / CONFIG_NAME, []
        self.failures = []
        service = build_service(self.settings())
        self.service = replace(service, report=self._report, report_failure=self.failures.append)
        self.reloader = Reloader(self.settings(), self.settings)

    def settings(self):
        return load_settings(self.config, {})

    def change(self, old, new):
        text = self.config.read_text()
        assert text.count(old) == 1
        self.config.write_text(text.replace(old, new))

    def revoke_by_hand(self, *kids):
        self.change('path = "/w/demo"', f'revoked_kids = {json.dumps(kids)}\npath = "/w/demo"')

    def reload(self):
        """
        Ask for it, and wait until it is over.
        """
        before = len(self.events) + len(self.failures)
        deadline = time.monotonic() + LIMIT_S
        while self.reloader._loop is None:
            assert time.monotonic() < deadline
        self.reloader.request()
        while len(self.events) + len(self.failures) == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self.events[-1] if self.events else None

    def token(self, client, **changes):
        """
        Ask for a token as the orchestrator that the folder is for.
        """
        orchestrator = load_orchestrator(self.folder / "orchestrator")
        now = time.time()
        ask = Ask(sub="cus_1", acr="low", auth_time=int(now), audience=orchestrator.audience, scope="orders:read")
        form = asyncio.run(replace(orchestrator, **changes).form(ask, now))
        return client.post("/w/demo/oauth/token", data=form)

    def kids(self, client):
        return [key["kid"] for key in client.get("/w/demo/.well-known/jwks.json").json()["keys"]]

    def records(self):
        file = self.folder / "data" / "audit" / "demo.jsonl"
        asyncio.run(self.service.offices["demo"].books.enter())
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    def _report(self, event, **facts):
        self.events.append((event, facts))


@pytest.fixture
def running(tmp_path):
    return Running(tmp_path / "dev")


@pytest.fixture
def client(running):
    with TestClient(create_app(running.service, reloader=running.reloader)) as client:
        yield client


def test_a_client_that_is_taken_out_is_refused_from_the_next_request_on(running, client):
    """
    And back again: what the file says holds after each reload.
    """
    assert running.token(client).status_code == 200
    running.change('client_id = "orc_main"', 'client_id = "orc_other"')

    assert running.reload() == ("configuration_loaded", {})
    assert running.token(client).json()["error"] == "invalid_client"
    assert running.token(client, client_id="orc_other").status_code == 200
    running.change('client_id = "orc_other"', 'client_id = "orc_main"')
    running.reload()
    assert running.token(client).status_code == 200


def test_what_is_wrong_is_not_taken(running, client):
    """
    The old configuration stays whole, and each problem is said with its line.
    """
    running.change('client_id = "orc_main"', 'client_id = "orc_other"\nsecrets = 7')

    event, facts = running.reload()

    assert event == "configuration_refused"
    assert "secrets" in facts["problem"]
    assert "line" in facts["problem"]
    assert running.token(client).status_code == 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('origin = "http://127.0.0.1:8000"', 'origin = "http://127.0.0.1:8001"'),
        ('path = "/w/demo"', 'path = "/w/other"'),
        ('log_format = "console"', 'log_format = "json"'),
    ],
)
def test_what_needs_a_restart_is_not_taken(running, client, old, new):
    """
    It is said which setting that is; the rest of the file is not taken either.
    """
    running.change(old, new)
    running.change('client_id = "orc_main"', 'client_id = "orc_other"')

    event, facts = running.reload()

    assert event == "configuration_refused"
    assert "needs a restart" in facts["problem"]
    assert running.token(client).status_code == 200


def test_a_key_file_that_cannot_be_used_is_not_taken(running, client):
    """
    Files that the configuration names count as part of it.
    """
    (file,) = (running.folder / "clients").glob("*main.jwks.json")
    file.write_text("{}")

    assert running.reload()[0] == "configuration_refused"
    assert running.token(client).status_code == 200


def test_keys_that_are_revoked_by_hand_are_gone_although_the_store_is_down(running, client):
    """
    Neither published nor signed with from the next request on; a standby signs instead.
    """
    active, standby, last = running.kids(client)
    ring = running.service.rings["demo"]
    ring._store = type("Down", (), {"stamp": _down, "load": _down})()
    running.revoke_by_hand(active)

    running.reload()

    assert active not in running.kids(client)
    token = running.token(client).json()["access_token"]
    assert ring.current(time.time()).kid in (standby, last)
    assert token
    running.change(f"revoked_kids = {json.dumps([active])}\n", "")
    running.reload()
    assert active in running.kids(client)


async def _down(_self):
    raise FileUnreadable(path="x", problem="gone")


def test_without_a_key_that_is_left_nothing_is_minted(running, client):
    """
    503 for tokens and keys, and readiness says why.
    """
    running.revoke_by_hand(*running.kids(client))

    running.reload()

    assert running.token(client).status_code == 503
    assert client.get("/w/demo/.well-known/jwks.json").status_code == 503
    assert client.get("/health/ready").json()["workspaces"]["demo"]["problem"] == "no_key_may_sign"


def test_a_key_that_does_not_work_in_its_place_is_said(running, client, monkeypatch):
    """
    Then nothing is signed or published, and the rest of the configuration is taken.
    """

    async def failing(_revoked):
        raise SelfTestFailed(kid="k", problem="x")

    ring = running.service.rings["demo"]
    monkeypatch.setattr(type(ring), "withdraw", lambda _self, revoked: failing(revoked))
    running.revoke_by_hand(running.kids(client)[0])

    running.reload()

    assert ("withdrawal_failed", {"workspace": "demo", "kid": "k"}) in running.events


def test_what_nobody_expected_changes_nothing(running, client, monkeypatch):
    """
    It is reported, and the next reload works.
    """
    monkeypatch.setattr(running.reloader, "_load", lambda: 1 / 0)
    running.reload()
    monkeypatch.setattr(running.reloader, "_load", running.settings)
    running.change('client_id = "orc_main"', 'client_id = "orc_other"')

    assert [type(failure) for failure in running.failures] == [ZeroDivisionError]
    assert running.reload() == ("configuration_loaded", {})
    assert running.token(client).status_code == 401


def test_loads_are_on_record(running, client):
    """
    What was taken, with the keys that are revoked by hand; and what was not.
    """
    active = running.kids(client)[0]
    running.revoke_by_hand(active)
    running.reload()
    running.change('client_id = "orc_main"', 'client_id = "orc_other"\nsecrets = 7')
    running.reload()

    records = [record for record in running.records() if record["event"].startswith("configuration_")]
    assert [(record["event"], record["outcome"]) for record in records] == [
        ("configuration_loaded", "done"),
        ("configuration_loaded", "done"),
        ("configuration_refused", "refused"),
    ]
    assert [record["after"]["revoked_kids"] for record in records[:2]] == [[], [active]]
    assert records[0]["after"]["admins"] == ["secops"]
    assert records[2]["after"] == {"problems": 1}


def test_admins_are_told_by_the_configuration_of_now(running, client):
    """
    Those of the old one are not let in any more, and routes know the new clients.
    """
    running.change('name = "secops"', 'name = "secops2"')

    running.reload()

    records = [each["after"]["admins"] for each in running.records() if each["event"] == "configuration_loaded"]
    assert records[-1] == ["secops2"]


def test_before_anybody_waits_nothing_happens(running):
    """
    A signal that comes too early is not kept.
    """
    running.reloader.request()

    assert not running.reloader._asked.is_set()


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_what_was_used_stays_used(tmp_path, kind, request, patient):
    """
    A configuration that is read again begins nothing anew: an assertion from before is known.
    """
    running = Running(tmp_path / "dev", request.getfixturevalue("redis_server") if kind == "redis" else None)
    orchestrator, now = load_orchestrator(running.folder / "orchestrator"), time.time()
    asked = Ask(sub="cus_1", acr="low", auth_time=int(now), audience=orchestrator.audience, scope="orders:read")
    form = asyncio.run(orchestrator.form(asked, now))
    with TestClient(create_app(running.service, reloader=running.reloader)) as client:
        assert client.post("/w/demo/oauth/token", data=form).status_code == 200
        running.change('max_asserted_level = "high"', 'max_asserted_level = "low"')
        assert running.reload() == ("configuration_loaded", {})

        answer = client.post("/w/demo/oauth/token", data=form)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
