"""
The trail over HTTP: the last records for people, and all of them in order for whoever collects them.
"""

import pytest

from issuer.audit.chain import Head

from ..estate import problem
from ..world import NOW


@pytest.fixture
def told(desk):
    """
    A trail of seven records.
    """
    for at in range(7):
        body = {"kind": "agent", "value": f"agt_{at}", "reason": "exercise"}
        assert desk.ask("POST", "/admin/suspensions", body).status_code == 201
    return desk


def read(desk, query=""):
    answer = desk.ask("GET", f"/admin/audit{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def seqs(page):
    return [record["seq"] for record in page["records"]]


def test_the_last_records_come_first(told):
    """
    Each with who, what, when, from where, the outcome, and whether it was carried out.
    """
    page = read(told)

    record = page["records"][0]
    assert seqs(page) == [7, 6, 5, 4, 3, 2, 1]
    assert (record["at"], record["actor"], record["source"]) == (NOW, {"kind": "admin", "name": "secops"}, "unknown")
    assert (record["event"], record["outcome"], record["target"]) == ("suspension_added", "done", "agt_6")
    assert (record["reason"], record["revision"], record["carried_out"]) == ("exercise", 8, True)
    assert page["next"] == {"before": None}
    assert page["head"] == f"7.{record['hash']}"
    assert Head.parse(page["head"]).seq == 7


def test_pages_lead_back_to_the_first_record(told):
    """
    `before` of a page gives the next one.
    """
    first = read(told, "?limit=3")
    second = read(told, f"?limit=3&before={first['next']['before']}")
    third = read(told, f"?before={second['next']['before']}&limit=3")

    assert [seqs(page) for page in (first, second, third)] == [[7, 6, 5], [4, 3, 2], [1]]
    assert third["next"] == {"before": None}


def test_a_collector_reads_on_where_it_stopped(told):
    """
    `after` gives what came later, in order, and in the end nothing until there is more.
    """
    pages = [read(told, "?after=0&limit=5"), read(told, "?after=5&limit=5"), read(told, "?after=7")]

    assert [seqs(page) for page in pages] == [[1, 2, 3, 4, 5], [6, 7], []]
    assert [page["next"] for page in pages] == [{"after": 5}, {"after": 7}, {"after": 7}]
    told.rotate()
    assert seqs(read(told, "?after=7")) == [8]
    assert read(told, "?after=100")["next"] == {"after": 100}


def test_a_record_that_may_not_be_carried_out_is_shown_as_such(told):
    """
    One behind the head is for people to see; a collector gets it when it is known what became of it.
    """
    trail, store = told.trail(), told.site.ring_stores["root"]
    before = store.ring, store.revision
    told.rotate()
    store.ring, store.revision = before
    trail.confirmed = None

    shown, collected = read(told), read(told, "?after=6")

    assert (shown["records"][0]["seq"], shown["records"][0]["carried_out"]) == (8, None)
    assert seqs(collected) == [7]
    told.site.monotonic.at += 0.1
    added = told.ask("POST", "/admin/suspensions", {"kind": "agent", "value": "agt_9", "reason": "exercise"})
    assert added.status_code == 201
    assert [(each["seq"], each["carried_out"]) for each in read(told, "?after=7")["records"]] == [(8, False), (9, True)]


@pytest.mark.parametrize(
    "query",
    [
        "?after=-1",
        "?after=x",
        "?after=01",
        "?after=1.0",
        "?after=",
        "?after",
        "?limit=0",
        "?limit=201",
        "?before=0",
        "?before=1&after=1",
        "?after=1&after=1",
        "?limit=%31%30&limit=1",
        "?seq=1",
        "?after=99999999999999999",
        "?" + "&".join(f"after={at}" for at in range(20)),
        "?after=%C3%A9",
        "?after=\u0661",
    ],
)
def test_a_query_that_is_none_is_refused(one_desk, query):
    """
    400 for what is unknown, repeated, no number, out of bounds, or both ways at once.
    """
    assert problem(one_desk.ask("GET", f"/admin/audit{query}")) == (400, "invalid-query")


def test_an_empty_trail_is_an_empty_page(desk):
    """
    Nothing happened yet.
    """
    pages = [read(desk), read(desk, "?after=0")]

    assert [page["records"] for page in pages] == [[], []]
    assert pages[1]["next"] == {"after": 0}


def test_a_trail_that_cannot_be_read_is_unavailable(desk):
    """
    503, also when the ring says nothing about it that can be read; then there is no head to tell.
    """
    desk.trail().is_down = True
    assert problem(desk.ask("GET", "/admin/audit")) == (503, "unavailable")

    store = desk.site.ring_stores["root"]
    store.put(type(store.ring)(store.ring.workspace, store.ring.records, {"trail": {"seq": "spoilt"}}))
    answers = [desk.ask("GET", "/admin/audit?after=0"), desk.ask("GET", "/admin/keys")]
    assert problem(answers[0]) == (503, "unavailable")
    assert answers[0].json()["code"] == "trail_damaged"
    assert answers[1].status_code == 200
