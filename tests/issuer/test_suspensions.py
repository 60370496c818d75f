"""
Who is cut off, until when, and how much of it fits beside the keys.
"""

import json

import pytest

from issuer.suspensions import (
    KINDS,
    MAX_SUSPENSIONS,
    Suspension,
    Suspensions,
    SuspensionsFull,
    SuspensionsUnreadable,
    Target,
    UnknownSuspension,
    read_suspensions,
    ring_with_suspensions,
)

from .world import NOW, ring_of

CLIENT, AGENT, ACTION = Target("client", "orc_main"), Target("agent", "agt_support"), Target("action", "cancel_order")
CUSTOMER = Target("customer", "cus_48213", "shop-login")


def suspension(target=CLIENT, suspension_id="sus-1", *, at=NOW, until=None, reason="leaked"):
    return Suspension(id=suspension_id, target=target, reason=reason, at=at, until=until)


def of_rows(rows):
    ring = ring_of("root")
    return read_suspensions(type(ring)(ring.workspace, ring.records, {"suspensions": rows}))


@pytest.mark.parametrize("target", [CLIENT, AGENT, CUSTOMER, ACTION])
def test_what_is_suspended_is_found(target):
    """
    A suspension stands in the way of exactly its target.
    """
    suspensions = Suspensions().with_added(suspension(target))

    assert suspensions.find([target], NOW).target == target
    assert suspensions.find([each for each in (CLIENT, AGENT, CUSTOMER, ACTION) if each != target], NOW) is None


def test_equal_names_of_two_kinds_or_namespaces_are_two():
    """
    A client is no agent of the same name, and a customer of one namespace none of another.
    """
    suspensions = Suspensions((suspension(Target("client", "same")), suspension(CUSTOMER)))

    assert suspensions.find([Target("agent", "same"), Target("action", "same")], NOW) is None
    assert suspensions.find([Target("customer", "cus_48213", "bank-login")], NOW) is None


def test_a_suspension_ends_at_its_instant():
    """
    It holds until just before `until`; without one it holds for good.
    """
    suspensions = Suspensions((suspension(until=NOW + 60), suspension(AGENT)))

    assert suspensions.find([CLIENT], NOW + 59.9) is not None
    assert suspensions.find([CLIENT], NOW + 60) is None
    assert suspensions.find([AGENT], NOW + 10**9) is not None
    assert [each.target for each in suspensions.in_force(NOW + 60).all] == [AGENT]


def test_of_several_suspensions_of_one_target_each_stands_by_itself():
    """
    One that has ended or was lifted does not end the other.
    """
    suspensions = Suspensions(
        (suspension(until=NOW + 60), suspension(suspension_id="sus-2"), suspension(AGENT, "sus-3"))
    )

    assert suspensions.find([CLIENT], NOW + 100).id == "sus-2"
    rest, lifted = suspensions.without("sus-2")
    assert (lifted.id, rest.find([CLIENT], NOW).id, rest.find([CLIENT], NOW + 100)) == ("sus-2", "sus-1", None)


def test_only_what_is_there_can_be_lifted():
    """
    An id that is none is refused.
    """
    with pytest.raises(UnknownSuspension):
        Suspensions((suspension(),)).without("sus-2")


def test_there_is_a_bound_on_their_number():
    """
    The 201st is refused, whatever room there is.
    """
    short = [Suspension(id=f"{at}", target=Target("agent", "a"), reason="r", at=0) for at in range(MAX_SUSPENSIONS)]
    suspensions = Suspensions(tuple(short[:-1])).with_added(short[-1])

    with pytest.raises(SuspensionsFull):
        suspensions.with_added(suspension())


def test_all_of_them_fit_beside_the_keys():
    """
    What the longest ids and reasons would take beyond the room in the ring is refused; what is accepted can be saved.
    """
    suspensions, ring = Suspensions(), ring_of("root")
    long = suspension(Target("customer", "ä" * 400, "shop-login"), reason="x" * 500)
    for _ in range(13):
        suspensions = suspensions.with_added(long)

    with pytest.raises(SuspensionsFull):
        suspensions.with_added(long)
    assert read_suspensions(ring_with_suspensions(ring, suspensions)) == suspensions


def test_what_a_ring_says_is_read_as_it_was_written():
    """
    Every kind, with an end and without one; the rest of the companion and the keys stay.
    """
    ring = ring_of("root")
    other = type(ring)(ring.workspace, ring.records, {"trail": {"seq": 7}})
    suspensions = Suspensions(
        tuple(
            suspension(target, until=until) for target in (CLIENT, AGENT, CUSTOMER, ACTION) for until in (None, NOW + 1)
        )
    )

    changed = ring_with_suspensions(other, suspensions)

    assert read_suspensions(changed) == suspensions
    assert changed.records == ring.records
    assert changed.companion["trail"] == {"seq": 7}
    assert json.loads(json.dumps(changed.companion))["suspensions"] == suspensions.rows()


def test_a_ring_that_says_nothing_suspends_nobody():
    """
    As a new one does.
    """
    assert read_suspensions(ring_of("root")) == Suspensions()


@pytest.mark.parametrize(
    "rows",
    [
        7,
        [7],
        [[]],
        [["sus-1", "client", None, "orc_main", "leaked", NOW]],
        [["sus-1", "client", None, "orc_main", "leaked", NOW, None, None]],
        [["", "client", None, "orc_main", "leaked", NOW, None]],
        [[7, "client", None, "orc_main", "leaked", NOW, None]],
        [["sus-1", "tenant", None, "orc_main", "leaked", NOW, None]],
        [["sus-1", ["client"], None, "orc_main", "leaked", NOW, None]],
        [["sus-1", "client", "shop-login", "orc_main", "leaked", NOW, None]],
        [["sus-1", "customer", None, "cus_48213", "leaked", NOW, None]],
        [["sus-1", "client", None, "", "leaked", NOW, None]],
        [["sus-1", "client", None, 7, "leaked", NOW, None]],
        [["sus-1", "client", None, "orc_main", "", NOW, None]],
        [["sus-1", "client", None, "orc_main", "leaked", "now", None]],
        [["sus-1", "client", None, "orc_main", "leaked", None, None]],
        [["sus-1", "client", None, "orc_main", "leaked", NOW, True]],
        [["sus-1", "client", None, "orc_main", "leaked", NOW, NOW]],
    ],
)
def test_what_cannot_be_read_is_no_empty_list(rows):
    """
    A ring that says something else about suspensions is refused: somebody might be let through.
    """
    with pytest.raises(SuspensionsUnreadable) as refused:
        of_rows(rows)

    assert refused.value.code == "suspensions_unreadable"


def test_a_customer_is_not_shown():
    """
    The id of a customer stands in no representation.
    """
    assert "cus_48213" not in repr(Suspensions((suspension(CUSTOMER),)))
    assert KINDS == ("client", "agent", "customer", "action")
