"""
What is counted, and under which labels.
"""

from prometheus_client.parser import text_string_to_metric_families

from issuer.metrics import Metrics
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
