"""
The check at start and the doctor: what makes a Redis unfit, what is worth knowing, and what to do about it (rp-no-evict).
"""

import json
import logging
from dataclasses import replace

import pytest
from click.testing import CliRunner

from verifier import ReplayStoreUnavailable
from verifier.cli_doctor import command
from verifier.redis_doctor import Observed, UnfitRedis, diagnose

from .servers import replicates, wait_until

FIT = Observed(
    primary="",
    info={
        "redis_version": "7.2.4",
        "used_memory": "10000000",
        "maxmemory": "100000000",
        "maxmemory_policy": "noeviction",
        "aof_enabled": "0",
        "rdb_last_save_time": "1",
        "role": "master",
        "connected_slaves": "0",
        "master_replid": "0" * 40,
        "run_id": "1" * 40,
    },
    config={"maxmemory-policy": "noeviction", "min-replicas-to-write": "0"},
    clock_ahead_s=0.01,
    latency_ms=0.2,
)


def seen(*, config=FIT.config, clock=0.01, latency=0.2, **info):
    """
    Return a fit Redis but for what is given; None leaves a line of INFO out.
    """
    lines = {name: value for name, value in (FIT.info | info).items() if value is not None}
    return replace(FIT, info=lines, config=config, clock_ahead_s=clock, latency_ms=latency)


def diagnosed(observed, *, replicas=0, deadline_ms=250, allow_eviction=False):
    found = diagnose(observed, replicas=replicas, deadline_ms=deadline_ms, allow_eviction=allow_eviction)
    return {finding.check: finding for finding in found}


def test_a_fit_redis():
    """
    Nothing is said against it.
    """
    assert {finding.outcome for finding in diagnosed(FIT).values()} == {"ok"}


CONFIG = FIT.config | {"min-replicas-to-write": "1"}
ROWS = [
    ("version", "fails", seen(redis_version="6.2.14"), {}),
    ("version", "ok", seen(valkey_version="9.1.2"), {}),
    ("version", "ok", seen(redis_version="unstable"), {}),
    ("version", "warning", seen(redis_version=None), {}),
    ("eviction", "fails", seen(maxmemory_policy="volatile-lru"), {}),
    ("eviction", "fails", seen(maxmemory_policy="allkeys-random", config=None), {}),
    ("eviction", "fails", seen(maxmemory_policy=None, config={"maxmemory-policy": "volatile-ttl"}), {}),
    ("eviction", "warning", seen(maxmemory_policy="allkeys-lru"), {"allow_eviction": True}),
    ("eviction", "warning", seen(maxmemory_policy=None, config=None), {}),
    ("eviction", "warning", seen(config=None), {}),
    ("memory", "warning", seen(maxmemory="0"), {}),
    ("memory", "warning", seen(maxmemory=None), {}),
    ("memory", "warning", seen(maxmemory="11000000"), {}),
    ("replicas", "ok", seen(connected_slaves=None), {}),
    ("replicas", "warning", seen(connected_slaves=None), {"replicas": 1}),
    ("memory", "fails", seen(maxmemory="10000000"), {}),
    ("persistence", "ok", seen(aof_enabled="1"), {}),
    ("persistence", "warning", seen(rdb_last_save_time=None), {}),
    ("replicas", "fails", seen(role="slave"), {}),
    ("replicas", "fails", seen(connected_slaves="1"), {"replicas": 2}),
    ("replicas", "warning", seen(connected_slaves="1"), {"replicas": 1}),
    ("replicas", "warning", seen(connected_slaves="1", config=None), {"replicas": 1}),
    ("replicas", "ok", seen(connected_slaves="1", config=CONFIG), {}),
    ("replicas", "ok", seen(connected_slaves="1", config=CONFIG), {"replicas": 1}),
    ("identity", "warning", seen(master_replid=None), {}),
    ("identity", "warning", seen(master_replid=None, run_id=None), {}),
    ("clock", "warning", seen(clock=5.1), {}),
    ("clock", "warning", seen(clock=-5.1), {}),
    ("latency", "warning", seen(latency=70), {}),
    ("latency", "ok", seen(latency=70), {"deadline_ms": 500}),
]


@pytest.mark.parametrize(("check", "outcome", "observed", "options"), ROWS, ids=range(len(ROWS)))
def test_each_finding(check, outcome, observed, options):
    """
    One thing that is off shows in its own line, with what to do, and in no other.
    """
    found = diagnosed(observed, **options)

    assert found.pop(check).outcome == outcome
    assert {finding.outcome for finding in found.values()} <= {"ok", "warning"}
    assert "\n" not in "".join(finding.note for finding in found.values())


def test_a_real_server_is_fit(store, server):
    """
    A server as it should be is fit, and its epoch has begun when the check returns.
    """
    found = store(server.url).check()

    assert {finding.check: finding.outcome for finding in found} == dict.fromkeys(
        ("version", "eviction", "memory", "persistence", "replicas", "identity", "clock", "latency"), "ok"
    )
    with server.client() as client:
        assert client.exists("cc:e")


@pytest.mark.parametrize("policy", ["volatile-lru", "allkeys-lru", "allkeys-random", "volatile-ttl"])
def test_c09_an_evicting_server_is_refused_at_start(store, server, policy):
    """
    C09, rp-no-evict: every record has an expiry and would be among the first to go; told otherwise, it is a warning.
    """
    with server.client() as client:
        client.config_set("maxmemory-policy", policy)

    with pytest.raises(UnfitRedis, match=policy) as refusal:
        store(server.url).check()

    assert [each.check for each in refusal.value.findings if each.outcome == "fails"] == ["eviction"]
    found = store(server.url).check(allow_eviction=True)
    assert [each.check for each in found if each.outcome == "warning"] == ["eviction"]


def test_c09_where_config_is_forbidden_there_is_a_warning(store, start_server):
    """
    C09: a managed Redis that forbids CONFIG is started with, and a warning says what to make sure of.
    """
    server = start_server("--save", "")
    with server.client() as client:
        client.acl_setuser("shop", enabled=True, passwords=["+pw"], keys="*", commands=["+@all", "-config"])

    found = store(f"redis://shop:pw@127.0.0.1:{server.port}").check()

    assert [each.check for each in found if each.outcome == "warning"] == ["eviction"]


def test_a_server_that_hides_everything(store, start_server):
    """
    Without INFO and CONFIG there are warnings, and no error.
    """
    server = start_server("--save", "")
    with server.client() as client:
        client.acl_setuser("shop", enabled=True, passwords=["+pw"], keys="*", commands=["+@all", "-config", "-info"])

    found = store(f"redis://shop:pw@127.0.0.1:{server.port}").check()

    assert {each.check for each in found if each.outcome == "warning"} == {
        *("version", "eviction", "memory", "persistence", "identity")
    }


def test_a_server_with_a_replica(store, start_server):
    """
    What the store waits for has to be there.
    """
    primary = start_server("--save", "", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", "0")
    replica = start_server("--save", "", "--replicaof", f"127.0.0.1 {primary.port}")
    wait_until(lambda: replicates(replica))

    (found,) = [each for each in store(primary.url, replicas=1).check() if each.check == "replicas"]
    with pytest.raises(UnfitRedis, match="waits for 2"):
        store(primary.url, replicas=2).check()

    assert (found.outcome, "min-replicas-to-write 1" in found.note) == ("warning", True)


def test_a_server_that_cannot_be_asked(store):
    """
    Nobody there is no finding: the check cannot be made.
    """
    with pytest.raises(ReplayStoreUnavailable):
        store("redis://127.0.0.1:1").check()


def doctor(*arguments):
    return CliRunner().invoke(command, ["redis", *arguments])


def test_the_doctor_prints_a_line_for_each_check(server):
    """
    A fit Redis ends with 0, one line for each check and a verdict.
    """
    ran = doctor(server.url)

    assert ran.exit_code == 0
    assert len(ran.stdout.splitlines()) == 9
    assert ran.stdout.splitlines()[-1] == "fit to remember used tokens"


def test_the_doctor_speaks_json(server):
    """
    With --json the findings can be read by a program, also those of a Redis that is not fit.
    """
    with server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")

    ran = doctor(server.url, "--json")
    told = json.loads(ran.stdout)

    assert ran.exit_code == 1
    assert told["fit"] is False
    assert [each["check"] for each in told["findings"] if each["outcome"] == "fails"] == ["eviction"]
    assert doctor(server.url, "--allow-eviction").exit_code == 0


def test_the_doctor_at_a_closed_door():
    """
    A Redis that cannot be asked is one line and exit code 1, and shows no password.
    """
    ran = doctor("redis://:s3cret@127.0.0.1:1")

    assert ran.exit_code == 1
    assert ran.stdout.splitlines()[0].split()[:2] == ["FAILS", "reachable"]
    assert "s3cret" not in ran.output


def test_the_doctor_takes_the_url_from_the_environment(server):
    """
    A password need not stand in the list of processes.
    """
    ran = CliRunner().invoke(command, ["redis"], env={"CUSTOMER_CONTEXT_REDIS_URL": server.url})

    assert ran.exit_code == 0


@pytest.mark.parametrize(
    "arguments", [(), ("http://x",), ("redis://:s3cret@[x",), ("redis://h", "--replicas", "99")], ids=range(4)
)
def test_the_doctor_and_arguments_that_make_no_sense(arguments):
    """
    A mistake in the call is exit code 2.
    """
    ran = doctor(*arguments)

    assert ran.exit_code == 2
    assert "s3cret" not in ran.output


def test_primaries_are_named_where_there_are_several():
    """
    A finding of a cluster says which primary it is about.
    """
    found = diagnosed(replace(FIT, primary="here"))

    assert {finding.primary for finding in found.values()} == {"here"}


def test_nothing_of_it_is_logged_but_the_epoch(store, server, caplog):
    """
    The check is quiet.
    """
    with caplog.at_level(logging.DEBUG):
        store(server.url).check()

    assert {record.name for record in caplog.records if record.name.startswith("verifier")} <= {"verifier.replay"}


@pytest.mark.parametrize("replicas", [0, 1])
def test_what_is_hidden_is_not_said_to_be_missing(replicas):
    """
    Where INFO is forbidden nobody knows whether there is a limit to the memory, or a replica.
    """
    found = diagnosed(seen(maxmemory=None, connected_slaves=None), replicas=replicas)

    assert [found[check].note.partition(";")[0] for check in ("memory", "replicas")] == ["hidden", "hidden"]
