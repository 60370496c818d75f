"""
Prometheus metrics of the service, in a registry of its own.

Label values come from configuration and from closed lists of ours, never from a request, so that nobody outside can add series or
place text in them. The state of the rings is read when the metrics are asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from keys import STATES

from .rings import RingStatus

__all__ = ["CONTENT_TYPE", "KeySetResult", "Metrics", "MintKind"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
"""The text format that every Prometheus and agent reads, in UTF-8."""

MintKind = Literal["read", "write"]
KeySetResult = Literal["full", "not_modified", "unavailable"]

# A second series beside each, with the instant of its first event; Prometheus does not need it in this format.
disable_created_metrics()  # type: ignore[no-untyped-call]

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)


class Metrics:
    """
    What the service counts. Safe to use from any thread.
    """

    def __init__(self) -> None:
        """
        Start from zero, in a registry of its own: nothing that another library counts gets in.
        """
        registry = self._registry = CollectorRegistry()
        self._mints = Counter(
            "customer_context_mints", "Tokens minted.", ("workspace", "audience", "kind"), registry=registry
        )
        self._refusals = Counter(
            "customer_context_refusals", "Token requests refused.", ("workspace", "error"), registry=registry
        )
        self._key_sets = Counter(
            "customer_context_jwks_requests", "Requests for a key set.", ("workspace", "result"), registry=registry
        )
        self._requests = Counter(
            "customer_context_http_requests", "Requests answered.", ("route", "method", "status"), registry=registry
        )
        self._durations = Histogram(
            "customer_context_http_request_duration_seconds",
            "Seconds from taking a request to the end of its answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=registry,
        )

    def minted(self, workspace: str, audience: str, kind: MintKind) -> None:
        """
        Count a token; *audience* is one that is configured.
        """
        self._mints.labels(workspace, audience, kind).inc()

    def refused(self, workspace: str, error: str) -> None:
        """
        Count a refusal of the token endpoint; *error* is one of the codes it answers with.
        """
        self._refusals.labels(workspace, error).inc()

    def key_set_asked(self, workspace: str, result: KeySetResult) -> None:
        """
        Count a request for the key set of a workspace.
        """
        self._key_sets.labels(workspace, result).inc()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """
        Count an answer; *route* and *method* are from closed lists (see `issuer.http.middleware`).
        """
        self._requests.labels(route, method, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def render(self, rings: Iterable[RingStatus]) -> bytes:
        """
        Write everything, with the state that *rings* are in now, in the text format named by `CONTENT_TYPE`.
        """
        return generate_latest(self._registry) + generate_latest(_Rings(tuple(rings)))


class _Rings(Collector):
    def __init__(self, statuses: tuple[RingStatus, ...]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        for name, text, value in _RING_GAUGES:
            gauge = GaugeMetricFamily(f"customer_context_ring_{name}", text, labels=("workspace",))
            for status in self._statuses:
                gauge.add_metric((status.workspace,), value(status))
            yield gauge
        keys = GaugeMetricFamily("customer_context_ring_keys", "Keys by state.", labels=("workspace", "state"))
        failures = CounterMetricFamily(
            "customer_context_ring_poll_failures", "Looks at the store that failed.", labels=("workspace",)
        )
        for status in self._statuses:
            for state in STATES:
                keys.add_metric((status.workspace, state), status.keys.get(state, 0))
            failures.add_metric((status.workspace,), status.failures)
        yield keys
        yield failures


_RING_GAUGES: Final[tuple[tuple[str, str, Callable[[RingStatus], float]], ...]] = (
    ("usable", "1 while the service mints and serves the key set.", lambda status: status.usable),
    ("view_age_seconds", "Seconds since the store last confirmed the ring.", lambda status: status.view_age_s),
    ("active_key_age_seconds", "Seconds since the active key became active.", lambda status: status.active_age_s),
    ("next_due_timestamp_seconds", "When the active key is due to be replaced.", lambda status: status.next_due),
    ("overdue", "1 when the active key should have been replaced.", lambda status: status.overdue),
    (
        "rotation_failing",
        "1 while a rotation that is due does not happen.",
        lambda status: bool(status.rotation_problem),
    ),
    ("key_age_alarm", "1 when the active key has signed for far too long.", lambda status: status.alarm),
)
