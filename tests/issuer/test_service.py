"""
How a service is put together from a configuration, and what it tells its log.
"""

import asyncio
import io
import json
import logging
import time

import pytest

from issuer.init_config import CONFIG_NAME, write_development_config
from issuer.logs import configure_logging
from issuer.service import build_service, open_service, report, report_failure
from issuer.settings import load_settings
from keys import LoosePermissions, RingCorrupt, RingMissing

RING = "data/rings/demo.jwe"


@pytest.fixture
def folder(tmp_path):
    """
    A folder with a development configuration of the workspace `demo`.
    """
    write_development_config(tmp_path / "dev", now=int(time.time()))
    return tmp_path / "dev"


@pytest.fixture
def log():
    """
    What is logged, one JSON object a line.
    """
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    configure_logging("info", json=True, stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], root.level = before, level


def settings_of(folder):
    return load_settings(folder / CONFIG_NAME, {})


def test_a_configuration_becomes_a_service(folder):
    """
    Every workspace has its open ring; the clocks are the real ones and the key times those of the settings.
    """
    service = build_service(settings_of(folder))

    (status,) = service.statuses()
    assert list(service.rings) == [workspace.name for workspace in service.registry] == ["demo"]
    assert (status.workspace, status.usable, status.keys) == ("demo", True, {"active": 1, "standby": 2})
    assert service.times.max_age_s == settings_of(folder).jwks.max_age_s
    assert service.rings["demo"].current(service.now()).revision == 1
    assert service.now() == pytest.approx(time.time(), abs=60)


def test_the_clocks_can_be_given(folder):
    """
    Also the one that leases are measured by.
    """
    service = asyncio.run(open_service(settings_of(folder), now=lambda: 5.0, monotonic=lambda: 7.0))

    assert (service.now(), service.monotonic()) == (5.0, 7.0)
    assert service.rings["demo"].status(5.0).view_age_s == 0


def _remove(path):
    path.unlink()


def _cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def _open_up(path):
    path.chmod(0o640)


@pytest.mark.parametrize(
    ("spoil", "error"), [(_remove, RingMissing), (_cut, RingCorrupt), (_open_up, LoosePermissions)]
)
def test_a_ring_that_cannot_be_opened_stops_the_start(folder, spoil, error):
    """
    Nothing is created or overwritten instead.
    """
    path = folder / RING
    spoil(path)
    before = path.read_bytes() if path.exists() else None

    with pytest.raises(error):
        build_service(settings_of(folder))

    assert (path.read_bytes() if path.exists() else None) == before


def test_events_reach_the_log_with_their_facts(log):
    """
    What an operator must see is an error, the rest is information.
    """
    report("ring_adopted", workspace="demo", revision=3)
    report("ring_poll_failed", workspace="demo", problem="ring_missing")

    adopted, failed = log()
    assert (adopted["event"], adopted["level"], adopted["revision"]) == ("ring_adopted", "info", 3)
    assert (failed["event"], failed["level"], failed["problem"]) == ("ring_poll_failed", "error", "ring_missing")


def test_a_failure_is_logged_without_its_text(log):
    """
    By its class and the places it passed: the text may hold what a caller sent.
    """
    with pytest.raises(RuntimeError) as caught:
        _fail()
    report_failure(caught.value)

    (line,) = log()
    assert (line["event"], line["level"], line["error"]) == ("request_failed", "error", "RuntimeError")
    assert "test_service.py" in line["raised"][0]
    assert "secret of a caller" not in json.dumps(line)


def _fail():
    raise RuntimeError("secret of a caller")
