"""
What is counted, and under which labels.
"""

import os
import shutil

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from issuer.metrics import Metrics, is_shared, own_metrics, shared_metrics
from issuer.rings import RingStatus

STATUS = RingStatus(
    workspace="acme",
    usable=False,
    view_age_s=16.5,
    active_age_s=100,
    next_due=1_796_040_000,
    overdue=True,
    keys={"active": 1, "standby": 2},
    failures=3,
    problem="ring_missing",
    alarm=True,
    rotation_problem="clock_ahead",
)


API = "https://api.example"
TOKEN = "{workspace}/oauth/token"


def samples(metrics, *statuses):
    """
    Read the text the way a scraper does: values by the name without its prefix, and the labels in the order of their names.
    """
    families = text_string_to_metric_families(metrics.render(statuses).decode())
    found = (sample for family in families for sample in family.samples)
    return {
        (each.name.removeprefix("customer_context_"), *(value for _, value in sorted(each.labels.items()))): each.value
        for each in found
    }


def test_events_are_counted_by_their_labels():
    """
    Mints, refusals, key set requests and answers.
    """
    metrics = Metrics()

    metrics.minted("acme", API, "read")
    metrics.minted("acme", API, "write")
    metrics.refused("acme", "invalid_client")
    metrics.refused("acme", "invalid_client")
    metrics.key_set_asked("acme", "full")
    metrics.answered(TOKEN, "POST", 401, 0.02)

    found = samples(metrics)
    assert {key: value for key, value in found.items() if key[0].endswith("_total") or key[0].endswith("_sum")} == {
        ("mints_total", API, "read", "acme"): 1,
        ("mints_total", API, "write", "acme"): 1,
        ("refusals_total", "invalid_client", "acme"): 2,
        ("jwks_requests_total", "full", "acme"): 1,
        ("http_requests_total", "POST", TOKEN, "401"): 1,
        ("http_request_duration_seconds_sum", TOKEN): 0.02,
    }


def test_rings_are_shown_as_they_are_now():
    """
    Read at the scrape, not remembered from the last one.
    """
    metrics = Metrics()

    before, after = samples(metrics), samples(metrics, STATUS)

    assert before == {}
    assert after == {
        ("ring_usable", "acme"): 0,
        ("ring_view_age_seconds", "acme"): 16.5,
        ("ring_active_key_age_seconds", "acme"): 100,
        ("ring_next_due_timestamp_seconds", "acme"): 1_796_040_000,
        ("ring_overdue", "acme"): 1,
        ("ring_rotation_failing", "acme"): 1,
        ("ring_key_age_alarm", "acme"): 1,
        ("ring_poll_failures_total", "acme"): 3,
        ("ring_keys", "standby", "acme"): 2,
        ("ring_keys", "active", "acme"): 1,
        ("ring_keys", "retiring", "acme"): 0,
        ("ring_keys", "retired", "acme"): 0,
        ("ring_keys", "revoked", "acme"): 0,
    }


def test_two_services_do_not_count_into_each_other():
    """
    Each has a registry of its own.
    """
    one, other = Metrics(), Metrics()

    one.refused("acme", "invalid_request")

    assert samples(other) == {}


class Processes:
    """
    Processes that share metrics, one after the other in this one: `be` says which one it is.
    """

    def __init__(self, folder, count):
        self.now = 0
        self.metrics = shared_metrics(folder, count, lambda: self.now)

    def be(self, number):
        self.now = number
        return self.metrics


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """
    Two processes of one service, whose way of counting is not that of the tests behind this one.
    """
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    made, shared = Processes(tmp_path, 2), values.ValueClass
    yield made
    shared.close_all_files()


def test_every_process_answers_for_all(processes):
    """
    Counters and histograms are those of all together, whichever process is asked.
    """
    processes.be(1).minted("acme", API, "read")
    processes.be(1).answered(TOKEN, "POST", 200, 0.02)
    processes.be(2).minted("acme", API, "read")
    processes.be(2).answered(TOKEN, "POST", 200, 0.03)

    one, other = samples(processes.be(1)), samples(processes.be(2))

    assert one == other
    assert one["mints_total", API, "read", "acme"] == 2
    assert one["http_requests_total", "POST", TOKEN, "200"] == 2
    assert one["http_request_duration_seconds_count", TOKEN] == 2
    assert one["http_request_duration_seconds_sum", TOKEN] == pytest.approx(0.05)
    assert one["http_request_duration_seconds_bucket", "0.025", TOKEN] == 1


def test_a_ring_is_not_counted_twice(processes):
    """
    What the processes share is shown as the one that answers sees it; only what failed for each of them is added up.
    """
    samples(processes.be(1), STATUS)

    found = samples(processes.be(2), STATUS)

    assert found["ring_keys", "standby", "acme"] == 2
    assert found["ring_view_age_seconds", "acme"] == 16.5
    assert found["ring_poll_failures_total", "acme"] == 3


def test_whoever_takes_the_place_of_a_process_goes_on_counting(tmp_path, processes):
    """
    What was counted stays, and there are no more files than processes.
    """
    processes.be(1).refused("acme", "invalid_client")
    values.ValueClass = values.MultiProcessValue(lambda: 1)
    successor = Metrics()

    successor.refused("acme", "invalid_client")

    assert samples(processes.be(2))["refusals_total", "invalid_client", "acme"] == 2
    assert len(list(tmp_path.iterdir())) == 4


def test_room_is_there_before_anything_is_counted(processes, tmp_path):
    """
    A disk that is full later must not end the process in the midst of counting.
    """
    blocks = {path.name: path.stat().st_blocks * 512 >= 128 * 1024 for path in tmp_path.iterdir()}

    assert blocks == dict.fromkeys(("counter_1.db", "counter_2.db", "histogram_1.db", "histogram_2.db"), True)
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(tmp_path)


@pytest.mark.parametrize("lost", ["the folder", "a file", "a file that is a link", "the folder is a link"])
def test_a_folder_that_is_not_as_it_was_left_is_not_shared(processes, tmp_path, tmp_path_factory, lost):
    """
    It may have been cleaned up, and somebody else may have put something in its place.
    """
    folder = tmp_path_factory.mktemp("shared") / "metrics"
    shutil.copytree(tmp_path, folder)
    elsewhere = folder.with_name("elsewhere")
    match lost:
        case "the folder":
            shutil.rmtree(folder)
        case "a file":
            (folder / "histogram_1.db").unlink()
        case "a file that is a link":
            (folder / "histogram_1.db").rename(elsewhere)
            (folder / "histogram_1.db").symlink_to(elsewhere)
        case _:
            folder.rename(elsewhere)
            folder.symlink_to(elsewhere)

    assert is_shared(tmp_path, 1)
    assert not is_shared(folder, 1)
    alone = own_metrics()
    alone.minted("acme", API, "read")
    assert samples(alone)["mints_total", API, "read", "acme"] == 1
    assert processes.be(2).render(()).count(b"acme") == 0


@pytest.mark.usefixtures("processes")
def test_a_folder_of_somebody_else_is_not_shared(tmp_path, monkeypatch):
    """
    Whoever may write there could have made it in the meantime.
    """
    monkeypatch.setattr(os, "geteuid", lambda: 4711)

    assert not is_shared(tmp_path, 1)


def test_failed_looks_are_counted_once():
    """
    However often the metrics are asked for.
    """
    metrics = Metrics()

    samples(metrics, STATUS)

    assert samples(metrics, STATUS)["ring_poll_failures_total", "acme"] == 3
