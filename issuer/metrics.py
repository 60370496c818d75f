"""
Prometheus metrics of the service, in a registry of its own.

Label values come from configuration and from closed lists of ours, never from a request, so that nobody outside can add series or
place text in them. The state of the rings is read when the metrics are asked for.

Where several processes serve, each of them answers with what all have counted together, those that have ended included. What a
ring looks like is no count: there every process shows its own view of what they share.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from keys import STATES

from .rings import RingStatus

__all__ = ["CONTENT_TYPE", "KeySetResult", "Metrics", "MintKind", "is_shared", "own_metrics", "shared_metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
"""The text format that every Prometheus and agent reads, in UTF-8."""

MintKind = Literal["read", "write"]
KeySetResult = Literal["full", "not_modified", "unavailable"]

# A second series beside each, with the instant of its first event; Prometheus does not need it in this format.
disable_created_metrics()  # type: ignore[no-untyped-call]

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)
_RESERVED_OCTETS: Final = 256 * 1024


class Metrics:
    """
    What the service counts. Safe to use from any thread.
    """

    def __init__(self, counted: Collector | None = None) -> None:
        """
        Start from zero, in a registry of its own: nothing that another library counts gets in.

        *counted* gives what all processes have counted, where that is more than what this one has.
        """
        registry = CollectorRegistry()
        self._counted: Collector = registry if counted is None else counted
        self._seen_failures: dict[str, int] = {}
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
        self._ring_failures = Counter(
            "customer_context_ring_poll_failures", "Looks at the store that failed.", ("workspace",), registry=registry
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
        statuses = tuple(rings)
        for status in statuses:
            seen = self._seen_failures.get(status.workspace, 0)
            self._ring_failures.labels(status.workspace).inc(status.failures - seen)
            self._seen_failures[status.workspace] = status.failures
        return generate_latest(self._counted) + generate_latest(_Rings(statuses))


def shared_metrics(folder: Path, workers: int, worker: Callable[[], int]) -> Metrics:
    """
    Count in *folder*, which is private to the processes of one service and empty, so that each answers for all of them.

    To be called once, by the process that starts the others. *worker* returns the number of the process it is called in: 0 in
    that one, 1 to *workers* in those. One that takes the place of another goes on counting where that one ended.

    Raises:
        OSError: when the folder has no room.
    """
    for number in range(1, workers + 1):
        for path in _files(folder, number):
            _reserve(path)
    # The library looks for the folder there, and for the kind of a value here, whenever a series begins.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue(worker)  # type: ignore[no-untyped-call]
    return Metrics(MultiProcessCollector(None, str(folder)))  # type: ignore[no-untyped-call]


def is_shared(folder: Path, worker: int) -> bool:
    """
    Tell whether a worker finds its files as `shared_metrics` left them: a service that runs for weeks may lose the folder.
    """
    try:
        found = folder.lstat()
        # Where many may write, somebody else may have made one of the same name.
        is_ours = S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        return is_ours and all(S_ISREG(path.lstat().st_mode) for path in _files(folder, worker))
    except OSError:
        return False


def own_metrics() -> Metrics:
    """
    Count for this process alone, whatever was shared before.
    """
    values.ValueClass = values.MutexValue
    return Metrics()


def _files(folder: Path, worker: int) -> tuple[Path, ...]:
    return tuple(folder / f"{kind}_{worker}.db" for kind in ("counter", "histogram"))


def _reserve(path: Path) -> None:
    # The file is written through the memory: a disk that is full by then would end the process by a signal.
    with path.open("xb") as file:
        file.write(bytes(_RESERVED_OCTETS))


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
        for status in self._statuses:
            for state in STATES:
                keys.add_metric((status.workspace, state), status.keys.get(state, 0))
        yield keys


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
