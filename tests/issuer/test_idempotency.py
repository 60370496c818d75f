"""
Records behind idempotency keys, in memory and in Redis alike: one action under one key, counted, pinned, bounded, then forgotten.

For a Redis time goes on by itself as well, so that what has to be there is looked for some seconds before its end.
"""

from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from issuer.idempotency import MAX_MINTS, Claimed, MemoryIdempotencyRecords, NotClaimed, RecordForgotten, RecordKey
from issuer.idempotency_redis import RedisIdempotencyRecords

from .records import kept_in
from .world import NOW

KEY: RecordKey = ("root", "orc_main", "cancel_order", "idk-0000000000001")


@pytest.fixture(params=["memory", "redis"])
def kind(request):
    return request.param


@pytest.fixture
def kept(kind, request):
    return kept_in(kind, request, MemoryIdempotencyRecords, RedisIdempotencyRecords)


@pytest.fixture
def few(kind, request):
    """
    Records that hold at most two of a client.
    """
    return kept_in(kind, request, MemoryIdempotencyRecords, RedisIdempotencyRecords, max_per_client=2)


def claim(kept, key=KEY, content=b"content", confirmed_by="client", confirmed_at=NOW):
    contents = content if isinstance(content, tuple) else (content,)
    return kept.run(kept.records.claim(key, contents, confirmed_by, confirmed_at, kept.now))


def test_a_key_is_good_for_twenty_mints(kept):
    """
    Each claim of the same thing counts; the 21st is refused, however long it waits (D12).
    """
    outcomes = []
    for _ in range(MAX_MINTS + 2):
        outcomes.append(claim(kept))
        kept.wait(1)

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
def test_anything_else_under_the_key_is_a_conflict(kept, changes):
    """
    seed-idem-same-key: another content, instant or kind of confirmation is refused, and the record stays untouched.
    """
    claim(kept)

    outcomes = [claim(kept, **changes) for _ in range(30)]

    assert outcomes == ["conflict"] * 30
    assert [claim(kept) for _ in range(MAX_MINTS)] == [Claimed(NOW)] * (MAX_MINTS - 1) + ["exhausted"]
    assert claim(kept, **changes) == "conflict"


def test_without_a_confirmation_the_first_mint_is_the_instant(kept):
    """
    With `none` every later claim is answered with the first one's instant (D18).
    """
    outcomes = []
    for seconds in (7, 993, 0):
        outcomes.append(claim(kept, confirmed_by="none", confirmed_at=kept.now))
        kept.wait(seconds)

    assert outcomes == [Claimed(NOW)] * 3
    assert claim(kept, confirmed_at=NOW) == "conflict"


def test_without_a_confirmation_later_claims_prolong_nothing(kept):
    """
    The record is over when that of its first instant is.
    """
    claim(kept, confirmed_by="none")
    kept.wait(1900)
    assert claim(kept, confirmed_by="none", confirmed_at=kept.now) == Claimed(NOW)

    kept.wait(20)

    assert claim(kept, content=b"other", confirmed_by="none", confirmed_at=kept.now) == Claimed(NOW + 1920)


@pytest.mark.parametrize("part", range(4))
def test_a_key_means_one_thing_in_its_scope_only(kept, part):
    """
    Workspace, client, action and key are the scope: in another one the same words are another record.
    """
    elsewhere = tuple("other" if index == part else word for index, word in enumerate(KEY))
    claim(kept)

    assert claim(kept, key=elsewhere, content=b"other") == Claimed(NOW)
    assert claim(kept, content=b"other") == "conflict"


def test_any_of_the_contents_is_the_same(kept):
    """
    Sealing keys rotate: what one instance stored under the old key is known to one that has both, and only to those that have it.
    """
    before, during, after = (b"old",), (b"new", b"old"), (b"new",)
    claim(kept, content=before)
    other = (*KEY[:3], "idk-0000000000002")
    claim(kept, key=other, content=during)

    assert claim(kept, content=during) == claim(kept, content=before) == Claimed(NOW)
    assert claim(kept, content=after) == "conflict"
    assert claim(kept, key=other, content=after) == Claimed(NOW)
    assert claim(kept, key=other, content=before) == "conflict"


def test_a_record_outlives_its_confirmation(kept):
    """
    It is kept until the confirmation is 1800 s old plus 120 s, and then gone as if it had never been.
    """
    claim(kept)

    kept.wait(1900)
    assert claim(kept, content=b"other") == "conflict"
    kept.wait(20)
    assert claim(kept, content=b"other", confirmed_at=NOW + 1920) == Claimed(NOW + 1920)


def test_only_so_many_records_of_a_client_are_alive(few):
    """
    The bound is each client's own, claims of a live record pass it, and records that end make room.
    """
    keys = [(*KEY[:3], f"idk-{n}") for n in range(4)]

    created = [claim(few, key=key, confirmed_at=NOW - 20 * n) for n, key in enumerate(keys[:3])]

    assert created == [Claimed(NOW), Claimed(NOW - 20), "full"]
    assert claim(few, key=keys[0]) == Claimed(NOW)
    assert claim(few, key=("root", "orc_second", *keys[2][2:])) == Claimed(NOW)
    assert claim(few, key=("acme", "orc_main", *keys[2][2:])) == Claimed(NOW)
    few.wait(1900)
    assert claim(few, key=keys[2], confirmed_at=few.now) == Claimed(NOW + 1900)
    assert claim(few, key=keys[3], confirmed_at=few.now) == "full"


@pytest.fixture
def in_memory():
    """
    Records in memory, claimed in one step: nothing is waited for in between, so no other task can come in between.
    """
    records = MemoryIdempotencyRecords()

    def claim(key=KEY, content=b"content", confirmed_by="client", confirmed_at=NOW, now=NOW):
        asked = records.claim(key, (content,), confirmed_by, confirmed_at, now)
        with pytest.raises(StopIteration) as done:
            asked.send(None)
        return done.value.value

    claim.records = records
    return claim


def test_a_clock_that_went_backwards_does_not_free_a_key(in_memory):
    """
    What was dropped while the clock was ahead cannot be told apart from what never was, so neither is claimed; later ones are.
    """
    other = (*KEY[:3], "idk-0000000000002")
    in_memory()
    in_memory(key=other, confirmed_at=NOW + 7200, now=NOW + 7200)

    for key, by, at in ((KEY, "client", NOW), (KEY, "none", NOW - 1), ((*KEY[:3], "idk-never-used"), "client", NOW)):
        with pytest.raises(RecordForgotten):
            in_memory(key=key, content=b"other", confirmed_by=by, confirmed_at=at, now=NOW + 1)
    assert in_memory(content=b"other", confirmed_at=NOW + 1, now=NOW + 1) == Claimed(NOW + 1)


def test_nothing_is_left_of_records_that_ended(in_memory):
    """
    A client whose records all ended takes no memory any more.
    """
    for n in range(50):
        in_memory(key=(*KEY[:3], str(n)))

    in_memory(key=("root", "orc_second", "a", "b"), confirmed_at=NOW + 1920, now=NOW + 1920)

    records = in_memory.records
    assert len(records._records) == len(records._queue) == 1
    assert dict(records._live) == {("root", "orc_second"): 1}


class Model(RuleBasedStateMachine):
    """
    Records against a model that never forgets and keeps lists instead of a queue.
    """

    def __init__(self, kept):
        super().__init__()
        self.kept, self.model = kept, {}
        # Other examples were there before, in another workspace.
        kept.workspace = f"w{kept.examples}"
        kept.examples += 1

    @rule(seconds=st.sampled_from([0, 10, 110, 130, 1800, 1920]))
    def wait(self, seconds):
        self.kept.wait(seconds)

    @rule(
        client=st.sampled_from("ab"),
        key=st.sampled_from("12345"),
        content=st.sampled_from([b"x", b"y"]),
        by=st.sampled_from(["none", "client"]),
        age_s=st.sampled_from([0, 10, 1000, 1790]),
    )
    def ask(self, client, key, content, by, age_s):
        name, at = (self.kept.workspace, client, "a", key), self.kept.now - age_s
        live = {each: record for each, record in self.model.items() if record["at"] + 1920 > self.kept.now}

        outcome = claim(self.kept, name, content, by, at)

        found = live.get(name)
        if found is None:
            full = sum(each[1] == client for each in live) >= 2
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


def test_records_behave_like_their_model(few):
    """
    Whatever is claimed and however time passes, the answers are those of the model.
    """
    few.examples = 0
    run_state_machine_as_test(
        lambda: Model(few), settings=settings(max_examples=20, stateful_step_count=30, deadline=None)
    )


def test_every_refusal_has_a_word():
    """
    A claim fails for one of three reasons; the token endpoint answers each in its own way.
    """
    assert set(get_args(NotClaimed)) == {"conflict", "exhausted", "full"}
