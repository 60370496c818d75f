"""
Records of sign-ins, in memory and in Redis alike: who finds them, what ends them, what a change of customers means.
"""

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url
from issuer.sign_ins import (
    CONVERSATION_MEMORY_S,
    MAX_SIGN_IN_LIFETIME_S,
    SignIn,
    SignInRecords,
    SignInSummary,
)
from issuer.sign_ins_memory import MemorySignIns
from issuer.sign_ins_redis import RedisSignIns
from keys import SealingKey, SealingKeys

from .sign_in_event import EVENT, OTHER
from .world import NOW

pytestmark = pytest.mark.anyio

ENDS = NOW + 28_800
SEALING = SealingKeys(SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32))
PATIENCE_S = 20.0
UNKNOWN = "A" * 43


class Records:
    """
    A store with what is the same in all questions of a test.
    """

    def __init__(self, store: SignInRecords, workspace: str = "acme", client_id: str = "orc_main"):
        self.store = store
        self.workspace = workspace
        self.client_id = client_id

    def of(self, workspace="acme", client_id="orc_main"):
        return Records(self.store, workspace, client_id)

    async def add(self, event=EVENT, now=NOW, **changes):
        added = await self.store.add(self.workspace, replace(event, client_id=self.client_id, **changes), now)
        return added if isinstance(added, str) else added[0]

    async def find(self, sign_in_id, now=NOW):
        return await self.store.find(self.workspace, self.client_id, sign_in_id, now)

    async def is_alive(self, sign_in_id, now=NOW):
        return await self.find(sign_in_id, now) is not None

    async def after(self, sign_in_id, now=NOW):
        return (await self.find(sign_in_id, now)).confirmed_after

    async def describe(self, handle, now=NOW):
        return await self.store.describe(self.workspace, self.client_id, handle, now)

    async def end(self, handle, now=NOW):
        return await self.store.end(self.workspace, self.client_id, handle, now)

    async def logout(self, provider_issuer=EVENT.provider_issuer, *, sub=None, sid=None, issued_at=NOW - 2, now=NOW):
        return await self.store.end_at_logout(
            self.workspace, self.client_id, provider_issuer, sub=sub, sid=sid, issued_at=issued_at, now=now
        )

    async def has_logged_out(self, **changes):
        event = replace(EVENT, **changes)
        return await self.store.has_logged_out(
            self.workspace,
            self.client_id,
            event.provider_issuer,
            sub=event.sub,
            sid=event.sid,
            issued_at=event.issued_at,
        )


@pytest.fixture(params=["memory", "redis"])
async def build(request):
    """
    Build stores; those in Redis have one server and each its own connection, as two instances have.
    """
    connections = []

    def memory(**limits):
        return Records(MemorySignIns(SEALING, **limits))

    def redis(**limits):
        server = request.getfixturevalue("redis_server")
        connections.append(RedisConnection(parse_redis_url(server.url), PATIENCE_S))
        return Records(RedisSignIns(connections[-1], SEALING, **limits))

    yield memory if request.param == "memory" else redis
    for connection in connections:
        await connection.aclose()


@pytest.fixture
async def records(build):
    return build()


async def test_a_sign_in_comes_back_by_its_id(records):
    """
    With everything that the event had, and when it was recorded.
    """
    sign_in_id, sign_in = await records.store.add("acme", EVENT, NOW + 0.9)

    assert await records.find(sign_in_id) == sign_in
    assert sign_in == SignIn(
        handle=sign_in.handle,
        client_id="orc_main",
        connection="shop",
        namespace="shop-login",
        provider_issuer=EVENT.provider_issuer,
        provider_client_id="shop-web",
        sub="cus_48213",
        level="standard",
        auth_time=NOW - 20.5,
        recorded_at=NOW,
        expires_at=ENDS,
        conversation="conv-77",
        confirmed_after=None,
    )


async def test_an_id_is_a_secret_and_a_handle_is_not(records):
    """
    The id has 256 random bits in 43 characters; the handle has 22, is no part of it, and opens nothing.
    """
    ids = [await records.add(conversation=None) for _ in range(20)]
    handles = [(await records.find(each)).handle for each in ids]

    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", each) for each in ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", each) for each in handles)
    assert len({*ids, *handles}) == 40
    assert not any(handle in sign_in_id for handle, sign_in_id in zip(handles, ids, strict=True))
    assert not any([await records.is_alive(each) for each in handles])


@pytest.mark.parametrize(
    "sub", ["a", "Jörg \U0001f6d2", 'quote " and \\ and space', "x" * 1024, "\x00\n", "\U0001f6d2" * 1024]
)
async def test_any_text_may_name_a_customer(records, sub):
    """
    What the provider calls them comes back to the character.
    """
    sign_in_id = await records.add(sub=sub, sid=sub, conversation=" ~" * 64)

    found = await records.find(sign_in_id)

    assert (found.sub, found.conversation) == (sub, " ~" * 64)
    assert await records.logout(sub=sub, sid=sub) == 1


async def test_what_is_recorded_says_nothing_of_the_customer_by_itself(records):
    """
    Neither customer nor conversation stand in what a log would show of a record or an event.
    """
    sign_in_id = await records.add()

    shown = f"{await records.find(sign_in_id)!r} {EVENT!r}"

    assert not any(secret in shown for secret in ("cus_48213", "conv-77", "session-1", sign_in_id))


async def test_a_sign_in_belongs_to_one_client_of_one_workspace(records):
    """
    For everybody else there is none: not to find, not to describe, not to end, not to log out.
    """
    sign_in_id = await records.add()
    handle = (await records.find(sign_in_id)).handle

    for other in (records.of("other"), records.of(client_id="orc_other"), records.of("acmeo", "rc_main")):
        assert await other.find(sign_in_id) is None
        assert await other.describe(handle) is None
        assert await other.end(handle) is False
        assert await other.logout(sub=EVENT.sub, sid=EVENT.sid) == 0
    assert await records.is_alive(sign_in_id)


@pytest.mark.parametrize(
    "text", ["", "A", UNKNOWN, UNKNOWN + "A", "A" * 42 + "B", "é" * 43, "*" * 43, UNKNOWN + "\n", " ", "x" * 100_000]
)
async def test_what_is_no_id_finds_nothing(records, text):
    """
    An id that was never given out and a text that cannot be one are alike; so are handles.
    """
    await records.add()

    assert await records.find(text) is None
    for handle in (text, text[:22]):
        assert await records.describe(handle) is None
        assert await records.end(handle) is False


async def test_a_changed_id_finds_nothing(records):
    """
    Every single character counts.
    """
    sign_in_id = await records.add()

    changed = [sign_in_id[:at] + ("A" if sign_in_id[at] != "A" else "E") + sign_in_id[at + 1 :] for at in range(43)]

    assert not any([await records.is_alive(each) for each in changed])


async def test_a_sign_in_expires_on_the_second(records):
    """
    It is found until just before, and not from its expiry on, by id or by handle; ending it then ends nothing.
    """
    sign_in_id = await records.add()
    handle = (await records.find(sign_in_id)).handle

    assert await records.is_alive(sign_in_id, ENDS - 0.001)
    assert await records.describe(handle, ENDS - 0.001) is not None
    for late in (ENDS, ENDS + 0.001, ENDS + 10**9):
        assert await records.find(sign_in_id, late) is None
        assert await records.describe(handle, late) is None
    assert await records.end(handle, ENDS) is False


@pytest.mark.parametrize("expires_at", [NOW, NOW - 1, 0, NOW + MAX_SIGN_IN_LIFETIME_S + 1])
async def test_a_sign_in_lives_more_than_nothing_and_at_most_30_days(records, expires_at):
    """
    Anything else is the caller's mistake.
    """
    with pytest.raises(ValueError, match="30 days"):
        await records.add(expires_at=expires_at)

    assert await records.is_alive(await records.add(expires_at=NOW + MAX_SIGN_IN_LIFETIME_S))


async def test_a_handle_describes_without_the_customer(records):
    """
    Level and times, and nothing that only the id opens.
    """
    handle = (await records.find(await records.add())).handle

    assert await records.describe(handle) == SignInSummary(
        handle=handle,
        client_id="orc_main",
        connection="shop",
        namespace="shop-login",
        provider_issuer=EVENT.provider_issuer,
        provider_client_id="shop-web",
        level="standard",
        auth_time=NOW - 20.5,
        recorded_at=NOW,
        expires_at=ENDS,
        confirmed_after=None,
    )


async def test_what_has_ended_stays_ended(build):
    """
    Also for another instance, and a second time there is nothing to end.
    """
    here = build()
    there = here if isinstance(here.store, MemorySignIns) else build()
    sign_in_id, another = await here.add(), await here.add()
    handle = (await there.find(sign_in_id)).handle

    assert await here.end(handle) is True
    assert await there.find(sign_in_id) is None
    assert await there.describe(handle) is None
    assert [await here.end(handle), await there.end(handle)] == [False, False]
    assert await there.is_alive(another)


async def test_a_logout_of_a_customer_ends_all_of_theirs(records):
    """
    Whatever the conversation or the session; other customers, and the same id at another provider, stay.
    """
    theirs = [await records.add(**each) for each in ({}, {"conversation": None}, {"sid": None}, {"sid": "s2"})]
    others = [
        await records.add(sub="cus_4821", conversation="c2"),
        await records.add(provider_issuer="https://login.other.test", connection="other", conversation="c3"),
        await records.of(client_id="orc_other").add(),
    ]

    assert await records.logout(sub=EVENT.sub) == 4
    assert not any([await records.is_alive(each) for each in theirs])
    assert [await records.is_alive(each) for each in others[:2]] == [True, True]
    assert await records.of(client_id="orc_other").is_alive(others[2])
    assert await records.logout(sub=EVENT.sub) == 0


async def test_a_logout_of_a_session_ends_what_came_of_it(records):
    """
    A customer's other sessions stay, and so does a session of the same name at another provider.
    """
    one, again = await records.add(), await records.add()
    other = await records.add(sid="session-9")
    elsewhere = await records.add(provider_issuer="https://login.other.test")

    assert await records.logout(sid="session-1") == 2
    alive = [await records.is_alive(each) for each in (one, again, other, elsewhere)]
    assert alive == [False, False, True, True]


async def test_a_logout_that_names_both_ends_what_has_no_session_too(records):
    """
    What cannot be told apart by its session is the customer's, and ends; another session of theirs does not.
    """
    one, nameless, other = await records.add(), await records.add(sid=None), await records.add(sid="session-9")
    elses = await records.add(sub="cus_99", sid=None, conversation="c2")

    assert await records.logout(sub=EVENT.sub, sid="session-1") == 2
    alive = [await records.is_alive(each) for each in (one, nameless, other, elses)]
    assert alive == [False, False, True, True]


@pytest.mark.parametrize("who", [{"sub": "cus_48213"}, {"sid": "session-1"}, {"sub": "cus_48213", "sid": "session-1"}])
async def test_a_logout_ends_what_was_issued_before_it(records, who):
    """
    And in the same second; what the provider issued later is of another sign-in.
    """
    before, at, after = [await records.add(issued_at=NOW + seconds) for seconds in (-3, -2, -1)]

    assert await records.logout(**who) == 2
    assert [await records.is_alive(each) for each in (before, at, after)] == [False, False, True]
    assert await records.logout(**who) == 0


WAYS = ({"sub": "cus_48213"}, {"sid": "session-1"}, {"sub": "cus_48213", "sid": "session-1"})


@pytest.mark.parametrize(
    ("late", "refused_by"),
    [
        ({}, (0, 1, 2)),
        ({"issued_at": NOW - 300}, (0, 1, 2)),
        ({"issued_at": NOW - 1}, ()),
        ({"sid": None}, (0, 2)),
        ({"sid": "session-2"}, (0,)),
        ({"sub": "cus_99"}, (1, 2)),
        ({"sub": "cus_99", "sid": None}, ()),
        ({"provider_issuer": "https://login.other.test"}, ()),
        ({"client_id": "orc_other"}, ()),
    ],
    ids=str,
)
@pytest.mark.parametrize("way", range(3))
async def test_what_comes_after_its_logout_is_not_recorded(build, late, refused_by, way):
    """
    An ID token that was on its way when its customer or session logged out signs nobody in, at any instance.
    """
    here = build()
    there = here if isinstance(here.store, MemorySignIns) else build()
    other = there.of(client_id=late.get("client_id", "orc_main"))
    event = {name: value for name, value in late.items() if name != "client_id"}
    alive = await here.add(sub="cus_77", sid="session-7")
    assert await here.logout(**WAYS[way]) == 0

    assert await other.has_logged_out(**event) is (way in refused_by)
    assert (await other.add(**event) == "logged_out") is (way in refused_by)
    if refused_by:
        assert await here.is_alive(alive) is (way in refused_by)


async def test_the_latest_logout_counts(records):
    """
    One that arrives behind a later one takes nothing back.
    """
    await records.logout(sub=EVENT.sub, issued_at=NOW)
    await records.logout(sub=EVENT.sub, issued_at=NOW - 100)

    assert await records.add(issued_at=NOW) == "logged_out"
    assert await records.add(issued_at=NOW + 1) != "logged_out"


async def test_a_logout_names_somebody(records):
    """
    One that names neither is the caller's mistake, and ends nothing.
    """
    sign_in_id = await records.add()

    with pytest.raises(ValueError, match="names"):
        await records.logout()

    assert await records.is_alive(sign_in_id)


async def test_a_different_customer_ends_the_first_one_of_a_conversation(records):
    """
    Both of the first one's sign-ins, and what was confirmed up to 5 s from then on is not for the second.
    """
    first, stronger = await records.add(), await records.add(level="high")

    second = await records.add(OTHER, NOW + 60.7)

    assert [await records.is_alive(each) for each in (first, stronger)] == [False, False]
    assert await records.after(second) == NOW + 65


@pytest.mark.parametrize("difference", [{"sub": "cus_99"}, {"connection": "other"}], ids=["sub", "connection"])
async def test_a_customer_is_somebody_of_a_connection(records, difference):
    """
    The same id in another connection is somebody else (D13).
    """
    first = await records.add()

    second = await records.add(now=NOW + 1, **difference)

    assert not await records.is_alive(first)
    assert await records.after(second) == NOW + 6


async def test_a_stronger_sign_in_of_the_same_customer_ends_nothing(records):
    """
    After a step-up the first sign-in is alive with its own level, and what was confirmed before can be minted from either.
    """
    weak = await records.add()
    strong = await records.add(now=NOW + 60, level="high", auth_time=NOW + 50, expires_at=ENDS + 60)

    assert (await records.find(weak)).level == "standard"
    assert (await records.find(weak)).expires_at == ENDS
    assert (await records.find(strong)).level == "high"
    assert [await records.after(each) for each in (weak, strong)] == [None, None]


async def test_a_step_up_has_what_its_customer_may_not_confirm(records):
    """
    The second customer's step-up is as late as their first sign-in, not later.
    """
    await records.add()
    second = await records.add(OTHER, NOW + 60)
    strong = await records.add(OTHER, NOW + 300, level="high")

    assert [await records.after(each) for each in (second, strong)] == [NOW + 65, NOW + 65]


async def test_a_customer_who_comes_back_is_a_different_one(records):
    """
    Each change counts, and none makes the instant earlier.
    """
    await records.add()
    await records.add(OTHER, NOW + 60)
    back = await records.add(now=NOW + 120)
    assert await records.after(back) == NOW + 125

    other = await records.add(OTHER, NOW + 100)
    assert await records.after(other) == NOW + 125


@pytest.mark.parametrize("way", ["ended", "logged out", "expired"])
async def test_a_conversation_is_remembered_without_its_sign_ins(records, way):
    """
    Who was there last still counts when their sign-in is over.
    """
    first = await records.add(expires_at=NOW + 60)
    now = NOW + 10
    if way == "ended":
        assert await records.end((await records.find(first)).handle)
    elif way == "logged out":
        assert await records.logout(sub=EVENT.sub) == 1
    else:
        now = NOW + 60 + CONVERSATION_MEMORY_S - 1

    assert await records.after(await records.add(OTHER, now), now) == now + 5


async def test_the_same_customer_comes_back_to_what_they_confirmed(records):
    """
    Ending one's own sign-in takes nothing from a later one.
    """
    first = await records.add()
    await records.end((await records.find(first)).handle)

    assert await records.after(await records.add(now=NOW + 60)) is None


async def test_conversations_do_not_touch_each_other(records):
    """
    Neither another conversation, nor a sign-in without one, nor the same name at another client ends anything.
    """
    kept = [await records.add(), await records.add(conversation=None)]
    for other in (records, records.of(client_id="orc_other"), records.of("other")):
        name = "conv-78" if other is records else "conv-77"
        assert await other.after(await other.add(OTHER, conversation=name)) is None
        assert await other.after(await other.add(OTHER, conversation=None)) is None

    assert [await records.is_alive(each) for each in kept] == [True, True]


async def test_a_client_has_a_number_of_sign_ins_and_the_others_theirs(build):
    """
    Beyond it there is no room, until one ends; nothing alive is dropped for it.
    """
    records = build(max_per_client=3)
    ids = [await records.add(conversation=None, sub=f"cus_{number}") for number in range(3)]

    assert await records.add(conversation=None) == "full"
    assert await records.is_alive(await records.of(client_id="orc_other").add()) is False
    assert all([await records.is_alive(each) for each in ids])
    await records.end((await records.find(ids[1])).handle)
    assert await records.is_alive(await records.add())
    assert await records.add(conversation=None) == "full"


async def test_a_customer_has_a_number_of_sign_ins_and_the_others_theirs(build):
    """
    Nobody takes the room of others by signing in again and again.
    """
    records = build(max_per_customer=2)
    ids = [await records.add(conversation=f"c{number}") for number in range(2)]

    assert await records.add() == "full"
    assert await records.is_alive(await records.add(OTHER))
    assert all([await records.is_alive(each) for each in ids])
    await records.logout(sub=EVENT.sub)
    assert await records.is_alive(await records.add(issued_at=NOW))


async def test_conversations_are_bounded_too(build):
    """
    They are remembered when their sign-ins have ended: twice as many as sign-ins, and known ones go on.
    """
    records = build(max_per_client=2)
    for number in range(4):
        await records.end((await records.find(await records.add(conversation=f"c{number}"))).handle)

    assert await records.add() == "full"
    known = await records.add(OTHER, conversation="c0")
    assert await records.after(known) == NOW + 5
    assert await records.is_alive(await records.add(conversation=None))


async def test_a_change_of_customers_makes_room(build):
    """
    What it ends is gone before anything is counted.
    """
    records = build(max_per_client=1)
    first = await records.add()

    assert await records.add(OTHER, conversation=None) == "full"
    second = await records.add(OTHER)
    assert [await records.is_alive(first), await records.is_alive(second)] == [False, True]


async def test_a_change_of_customers_counts_when_there_is_no_room(build):
    """
    The first one's sign-in ends, and the second one starts where they tried first.
    """
    records = build(max_per_client=2, max_per_customer=1)
    first = await records.add()
    elsewhere = await records.add(OTHER, conversation=None)

    assert await records.add(OTHER, NOW + 60) == "full"
    assert not await records.is_alive(first)
    await records.end((await records.find(elsewhere)).handle)
    assert await records.after(await records.add(OTHER, NOW + 90)) == NOW + 65


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": ""},
        {"sub": "x" * 1025},
        {"sub": "\ud800"},
        {"sub": None},
        {"sid": ""},
        {"sid": "x" * 1025},
        {"client_id": ""},
        {"connection": 7},
        {"namespace": ""},
        {"provider_issuer": ""},
        {"conversation": ""},
        {"conversation": "x" * 129},
        {"conversation": "x\n"},
        {"conversation": "é"},
        {"level": "gold"},
        {"auth_time": float("nan")},
        {"auth_time": True},
        {"auth_time": -1},
        {"expires_at": float(ENDS)},
        {"expires_at": 2**53},
    ],
)
def test_an_event_is_well_formed(changes):
    """
    What is empty, too long or of another form cannot be built, and the error does not show it.
    """
    with pytest.raises(ValueError) as refusal:
        replace(EVENT, **changes)

    assert "cus_48213" not in str(refusal.value)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["first", "first again", "second", "end", "logout", "session", "nothing"]), st.integers(0, 200)
    ),
    max_size=12,
)


async def story(records, steps):
    """
    Let two customers of one conversation sign in and out, and tell after each step whose sign-ins are alive.
    """
    now, ids, told, since, last = NOW, {}, [], None, None
    for step, seconds in steps:
        now += seconds
        if step in {"first", "first again", "second"}:
            event = OTHER if step == "second" else replace(EVENT, level="low" if step == "first" else "high")
            added = await records.add(event, now, issued_at=now, expires_at=now + 250)
            if added == "logged_out":
                continue
            since, last = since if last in {None, event.sub} else now + 5, event.sub
            ids[added] = since
        elif step == "end" and ids:
            oldest = await records.find(next(iter(ids)), now)
            assert oldest is None or await records.end(oldest.handle, now)
        elif step == "logout":
            await records.logout(sub=EVENT.sub, issued_at=now, now=now)
        elif step == "session":
            await records.logout(sid=OTHER.sid, issued_at=now, now=now)
        alive = [(await records.find(each, now), expected) for each, expected in ids.items()]
        assert all(one is None or one.confirmed_after == expected for one, expected in alive)
        told.append([(one.sub, one.level, one.recorded_at) for one, _ in alive if one is not None])
    return told


@given(steps=STEPS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_customers_of_a_conversation_are_never_both_alive(redis_server, steps):
    """
    Whatever happens in whichever order; both stores tell the same, and whoever follows another is told since when.
    """

    async def in_redis():
        connection = RedisConnection(parse_redis_url(redis_server.url), PATIENCE_S)
        try:
            await connection.call("FLUSHALL")
            return await story(Records(RedisSignIns(connection, SEALING)), steps)
        finally:
            await connection.aclose()

    told = asyncio.run(in_redis())

    assert told == asyncio.run(story(Records(MemorySignIns(SEALING)), steps))
    assert all(len({sub for sub, *_ in alive}) <= 1 for alive in told)
