"""
Records behind idempotency keys: one confirmed action under one key, counted, pinned, bounded, forgotten in time.
"""

from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from issuer.idempotency import (
    MAX_MINTS,
    Claimed,
    MemoryIdempotencyRecords,
    NotClaimed,
    RecordForgotten,
    RecordKey,
)
from verifier.claims import ConfirmedBy

NOW = 1_796_040_000
KEY: RecordKey = ("root", "orc_main", "cancel_order", "idk-0000000000001")


def claim(
    records: MemoryIdempotencyRecords,
    key: RecordKey = KEY,
    content: bytes = b"content",
    confirmed_by: ConfirmedBy = "client",
    confirmed_at: int = NOW,
    now: float = NOW,
) -> Claimed | NotClaimed:
    """
    Claim in one step: nothing is waited for in between, so no other task can come in between.
    """
    asked = records.claim(key, (content,), confirmed_by, confirmed_at, now)
    with pytest.raises(StopIteration) as done:
        asked.send(None)
    return done.value.value


def test_a_key_is_good_for_twenty_mints():
    """
    Each claim of the same thing counts; the 21st is refused, however long it waits (D12).
    """
    records = MemoryIdempotencyRecords()

    outcomes = [claim(records, now=NOW + second) for second in range(MAX_MINTS + 2)]

    assert outcomes == [Claimed(NOW)] * MAX_MINTS + ["exhausted"] * 2


@pytest.mark.parametrize(
    "changes",
    [
        {"content": b"other"},
        {"content": b""},
        {"confirmed_at": NOW - 1},
        {"confirmed_by": "none"},
        {"confirmed_by": "customer"},
        {"confirmed_by": "none", "confirmed_at": NOW - 1},
    ],
)
def test_anything_else_under_the_key_is_a_conflict(changes):
    """
    seed-idem-same-key: another content, instant or kind of confirmation is refused, and the record stays untouched.
    """
    records = MemoryIdempotencyRecords()
    claim(records)

    outcomes = [claim(records, **changes) for _ in range(30)]

    assert outcomes == ["conflict"] * 30
    assert [claim(records) for _ in range(MAX_MINTS)] == [Claimed(NOW)] * (MAX_MINTS - 1) + ["exhausted"]


def test_without_a_confirmation_the_first_mint_is_the_instant():
    """
    With `none` every later claim is answered with the first one's instant (D18).
    """
    records = MemoryIdempotencyRecords()

    outcomes = [
        claim(records, confirmed_by="none", confirmed_at=NOW + second, now=NOW + second) for second in (0, 7, 1000)
    ]

    assert outcomes == [Claimed(NOW)] * 3
    assert claim(records, confirmed_at=NOW) == "conflict"


@pytest.mark.parametrize("part", range(4))
def test_a_key_means_one_thing_in_its_scope_only(part):
    """
    Workspace, client, action and key are the scope: in another one the same words are another record.
    """
    records = MemoryIdempotencyRecords()
    elsewhere = tuple("other" if index == part else word for index, word in enumerate(KEY))
    claim(records)

    assert claim(records, key=elsewhere, content=b"other") == Claimed(NOW)
    assert claim(records, content=b"other") == "conflict"


def test_a_record_outlives_its_confirmation():
    """
    It is kept until the confirmation is 1800 s old plus 120 s, and then gone as if it had never been.
    """
    records = MemoryIdempotencyRecords()
    claim(records)

    assert claim(records, content=b"other", now=NOW + 1919.9) == "conflict"
    assert claim(records, content=b"other", confirmed_at=NOW + 1920, now=NOW + 1920) == Claimed(NOW + 1920)


def test_a_clock_that_went_backwards_does_not_free_a_key():
    """
    What was dropped while the clock was ahead cannot be told apart from what never was, so neither is claimed; later ones are.
    """
    records = MemoryIdempotencyRecords()
    other = (*KEY[:3], "idk-0000000000002")
    claim(records)
    claim(records, key=other, confirmed_at=NOW + 7200, now=NOW + 7200)

    for key, by, at in ((KEY, "client", NOW), (KEY, "none", NOW - 1), ((*KEY[:3], "idk-never-used"), "client", NOW)):
        with pytest.raises(RecordForgotten):
            claim(records, key=key, content=b"other", confirmed_by=by, confirmed_at=at, now=NOW + 1)
    assert claim(records, content=b"other", confirmed_at=NOW + 1, now=NOW + 1) == Claimed(NOW + 1)


def test_only_so_many_records_of_a_client_are_alive():
    """
    The bound is each client's own, claims of a live record pass it, and records that end make room.
    """
    records = MemoryIdempotencyRecords(max_per_client=2)
    keys = [(*KEY[:3], f"idk-{n}") for n in range(4)]

    created = [claim(records, key=key, confirmed_at=NOW + n) for n, key in enumerate(keys[:3])]

    assert created == [Claimed(NOW), Claimed(NOW + 1), "full"]
    assert claim(records, key=keys[0]) == Claimed(NOW)
    assert claim(records, key=("root", "orc_second", *keys[2][2:])) == Claimed(NOW)
    assert claim(records, key=("acme", "orc_main", *keys[2][2:])) == Claimed(NOW)
    assert claim(records, key=keys[2], confirmed_at=NOW + 1920, now=NOW + 1920) == Claimed(NOW + 1920)
    assert claim(records, key=keys[3], confirmed_at=NOW + 1920, now=NOW + 1920) == "full"


def test_nothing_is_left_of_records_that_ended():
    """
    A client whose records all ended takes no memory any more.
    """
    records = MemoryIdempotencyRecords()
    for n in range(50):
        claim(records, key=(*KEY[:3], str(n)))

    claim(records, key=("root", "orc_second", "a", "b"), confirmed_at=NOW + 1920, now=NOW + 1920)

    assert len(records._records) == len(records._queue) == 1
    assert dict(records._live) == {("root", "orc_second"): 1}


class Records(RuleBasedStateMachine):
    """
    The records against a model that never forgets and keeps lists instead of a queue.
    """

    def __init__(self):
        super().__init__()
        self.records = MemoryIdempotencyRecords(max_per_client=3)
        self.model = {}
        self.now = NOW

    @rule(seconds=st.sampled_from([0, 1, 119, 121, 1800, 1920]))
    def wait(self, seconds):
        self.now += seconds

    @rule(
        client=st.sampled_from("ab"),
        key=st.sampled_from("12345"),
        content=st.sampled_from([b"x", b"y"]),
        by=st.sampled_from(["none", "client"]),
        age_s=st.sampled_from([0, 1, 1000, 1799]),
    )
    def ask(self, client, key, content, by, age_s):
        name, at = ("w", client, "a", key), self.now - age_s
        live = {each: record for each, record in self.model.items() if record["at"] + 1920 > self.now}

        outcome = claim(self.records, name, content, by, at, self.now)

        found = live.get(name)
        if found is None:
            full = sum(each[1] == client for each in live) >= 3
            assert outcome == ("full" if full else Claimed(at))
            if not full:
                self.model[name] = {"content": content, "by": by, "at": at, "mints": 1}
        elif (found["content"], found["by"]) != (content, by) or (by == "client" and found["at"] != at):
            assert outcome == "conflict"
        elif found["mints"] == MAX_MINTS:
            assert outcome == "exhausted"
        else:
            found["mints"] += 1
            assert outcome == Claimed(found["at"])

    @invariant()
    def bounded(self):
        assert len(self.records._records) == len(self.records._queue) == sum(self.records._live.values()) <= 6


TestRecords = Records.TestCase
TestRecords.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


def test_every_refusal_has_a_word():
    """
    A claim fails for one of three reasons; the token endpoint answers each in its own way.
    """
    assert set(get_args(NotClaimed)) == {"conflict", "exhausted", "full"}
