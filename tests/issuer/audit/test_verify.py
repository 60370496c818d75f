"""
A verification names the record that is wrong, and how: changed, removed, cut off, moved, put there, or written by somebody else.
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuer.audit import Head, verify_trail
from issuer.audit.canonical import canonical
from issuer.audit.chain import genesis, link_of
from issuer.audit.findings import MAX_FINDINGS

from .stage import AFTER, BEFORE, NEW, OLD, SEALING, Chain, entry

TEN = Chain(10)
GHOST = "2020-01"


def verify(lines, *, ring_head=TEN.head, sealing=SEALING, workspace="acme", expected=()):
    return verify_trail(lines, workspace=workspace, sealing=sealing, ring_head=ring_head, expected=expected)


def problems(findings):
    """
    Return problem and numbers of each finding that nobody has answered for.
    """
    return [(each.problem, each.seq, each.last) for each in findings.findings if each.acknowledged_by is None]


def resealed(*, old=4, new=4):
    """
    Return a trail whose first records were written under the old sealing key.
    """
    chain = Chain(old, sealing=BEFORE)
    chain.sealing = SEALING
    for _ in range(new):
        chain.add()
    return chain


def changed(line, **changes):
    return canonical({**json.loads(line), **changes})


def rehashed(lines, *, start=1):
    """
    Link changed lines again, with the MACs as they are: what an attacker without keys can do.
    """
    link, result = genesis("acme").head.link, []
    for number, line in enumerate(lines, start=1):
        result.append(changed(line, prev=link) if number >= start else line)
        link = link_of(result[-1])
    return result


def test_a_good_trail_is_sound():
    """
    Nothing is found, and the end is where the ring says.
    """
    findings = verify(TEN.lines)

    assert findings.is_sound
    assert (findings.records, findings.head, findings.findings, findings.omitted) == (10, TEN.head, (), 0)
    assert (findings.not_carried_out, findings.beyond_head, findings.by_hash_alone) == ((), 0, 0)


def test_an_empty_trail_of_a_new_ring_is_sound():
    """
    Its head is the beginning of all trails of that workspace.
    """
    assert verify([], ring_head=Chain(0).head).is_sound
    assert problems(verify([], ring_head=Chain(0, workspace="globex").head)) == [("head", 0, 0)]


@pytest.mark.parametrize("seq", range(1, 11))
def test_a_changed_byte_is_found(seq):
    """
    In whichever record it is; those behind it are not blamed for it.
    """
    lines = list(TEN.lines)
    lines[seq - 1] = lines[seq - 1].replace(b"planned", b"plamned")

    findings = verify(lines)

    assert problems(findings) == [("changed", seq, seq)]
    assert findings.findings[0].line == seq


@pytest.mark.parametrize("seq", range(1, 11))
def test_a_line_that_was_made_unreadable_is_found(seq):
    """
    At its place.
    """
    lines = list(TEN.lines)
    lines[seq - 1] = lines[seq - 1][:-1]

    assert problems(verify(lines)) == [("malformed", seq, seq)]


@pytest.mark.parametrize("seq", range(1, 10))
def test_a_removed_record_is_found(seq):
    """
    In the middle and at the front, the one that names the sealing key included.
    """
    assert problems(verify(TEN.lines[: seq - 1] + TEN.lines[seq:])) == [("missing", seq, seq)]


@pytest.mark.parametrize(("first", "last"), [(1, 3), (2, 9), (4, 6)])
def test_removed_records_are_one_finding(first, last):
    """
    With the first and the last number.
    """
    findings = verify(TEN.lines[: first - 1] + TEN.lines[last:])

    assert problems(findings) == [("missing", first, last)]


@pytest.mark.parametrize("kept", range(10))
def test_a_cut_tail_is_found(kept):
    """
    By the head that the ring was sealed with.
    """
    findings = verify(TEN.lines[:kept])

    assert problems(findings) == [("cut", kept + 1, 10)]
    assert findings.head == TEN.tips[kept].head


def test_a_cut_tail_is_found_by_a_noted_head_without_a_ring():
    """
    From the log or an answer to an admin; nothing else can tell.
    """
    assert problems(verify(TEN.lines[:7], ring_head=None, expected=[TEN.tips[9].head])) == [("cut", 8, 9)]
    assert verify(TEN.lines[:7], ring_head=None).is_sound


def test_a_chain_that_was_recomputed_without_the_key_is_found():
    """
    Hashes fit each other; MACs do not.
    """
    lines = rehashed([line.replace(b"planned", b"nothing") for line in TEN.lines])

    findings = verify(lines, ring_head=None)

    assert not findings.is_sound
    assert problems(findings)[0] == ("changed", 1, 1)


def test_a_chain_that_was_recomputed_with_the_key_is_found_by_a_noted_head_alone():
    """
    Whoever has the sealing key can write another trail and seal its head; what somebody noted outside remains.
    """
    other = Chain(0)
    for _ in range(10):
        other.add(entry(reason="nothing happened"))

    assert verify(other.lines, ring_head=other.head).is_sound
    assert problems(verify(other.lines, ring_head=other.head, expected=[TEN.tips[4].head])) == [("head", 4, 4)]
    assert problems(verify(other.lines)) == [("head", 10, 10)]


def test_what_was_written_with_a_later_key_is_found():
    """
    Who has the state of the process behind record 10 rewrites none before it.
    """
    stolen = TEN.tips[10].key
    forged = Chain(0)
    forged.tips = [replace(TEN.tips[5], key=stolen)]
    for _ in range(5):
        forged.add(entry(reason="forged"))

    findings = verify(TEN.lines[:5] + forged.lines, ring_head=forged.head)

    assert problems(findings) == [("changed", seq, seq) for seq in range(6, 11)]


def test_records_in_another_order_are_found():
    """
    One is missing at its place, and stands at another.
    """
    lines = list(TEN.lines)
    lines[3], lines[4] = lines[4], lines[3]

    assert problems(verify(lines)) == [("missing", 4, 4), ("out_of_order", 4, 4)]


def test_a_repeated_record_is_found():
    """
    Also the one that begins an epoch.
    """
    assert problems(verify([*TEN.lines, TEN.lines[4]])) == [("out_of_order", 5, 5)]
    assert problems(verify([*TEN.lines, TEN.lines[0]])) == [("out_of_order", 1, 1)]


@pytest.mark.parametrize("place", range(11))
def test_a_line_that_was_put_there_is_found(place):
    """
    A record of another workspace, garbage, or one that claims any number.
    """
    foreign = Chain(11, workspace="globex").lines[place]
    claims = changed(TEN.lines[5], seq=9_000_000_000)

    assert problems(verify([*TEN.lines[:place], foreign, *TEN.lines[place:]])) == [("workspace", place + 1, place + 1)]
    assert problems(verify([*TEN.lines[:place], b"{}", *TEN.lines[place:]])) == [("malformed", place + 1, place + 1)]
    assert not verify([*TEN.lines[:place], claims, *TEN.lines[place:]]).is_sound
    if place:
        assert problems(verify([*TEN.lines[:place], claims, *TEN.lines[place:]])) == [("changed", place + 1, place + 1)]


def test_a_fork_is_found():
    """
    Two records 6 were written with the key at hand, and somebody put the other one there.
    """
    chain = Chain(5)
    other = chain.add(entry(reason="the other one"), behind=TEN.tips[5])
    lines = [*TEN.lines[:5], chain.lines[5], *TEN.lines[6:]]

    findings = verify(lines)

    assert other.seq == 6
    assert problems(findings) == [("link", 7, 7)]


def test_damage_in_several_places_is_found_in_each():
    """
    The check goes on behind what it finds.
    """
    lines = list(TEN.lines)
    lines[1] = lines[1].replace(b"planned", b"changed")
    lines[6] = b"garbage"
    del lines[3:5]

    assert problems(verify(lines)) == [("changed", 2, 2), ("missing", 4, 5), ("malformed", 7, 7)]


def test_wrong_lines_count_for_those_that_are_missing():
    """
    Three records became two lines of garbage: one more is missing.
    """
    lines = [*TEN.lines[:3], b"x", b"y", *TEN.lines[6:]]

    assert problems(verify(lines)) == [("malformed", 4, 4), ("malformed", 5, 5), ("missing", 6, 6)]


def test_a_changed_record_at_the_end_is_not_cut_off_too():
    """
    It is there, and wrong.
    """
    lines = [*TEN.lines[:9], TEN.lines[9].replace(b"planned", b"changed")]

    assert problems(verify(lines)) == [("changed", 10, 10)]


def test_many_findings_are_counted():
    """
    The first are listed.
    """
    chain = Chain(1)
    findings = verify([chain.lines[0], *[b"garbage"] * 1000], ring_head=chain.head)

    assert (len(findings.findings), findings.omitted) == (MAX_FINDINGS, 900)
    assert not findings.is_sound


@given(st.data())
def test_no_change_goes_unnoticed(data):
    """
    Any line changed in any place, removed, repeated, moved or put there: with the head of the ring, something is found.
    """
    chain = resealed()
    lines = list(chain.lines)
    at = data.draw(st.integers(0, 7))
    kind = data.draw(st.sampled_from(["flip", "remove", "repeat", "move", "insert", "cut"]))
    if kind == "flip":
        offset = data.draw(st.integers(0, len(lines[at]) - 1))
        flipped = lines[at][offset] ^ data.draw(st.integers(1, 255))
        lines[at] = lines[at][:offset] + bytes([flipped]) + lines[at][offset + 1 :]
    elif kind == "remove":
        del lines[at]
    elif kind == "repeat":
        lines.insert(data.draw(st.integers(0, 8)), lines[at])
    elif kind == "move":
        line = lines.pop(at)
        lines.insert(data.draw(st.integers(0, 7).filter(lambda place: place != at)), line)
    elif kind == "insert":
        lines.insert(at, data.draw(st.binary(max_size=40)))
    else:
        del lines[at:]

    for sealing in (SEALING, AFTER, None):
        assert not verify(lines, ring_head=chain.head, sealing=sealing).is_sound


def test_records_that_were_not_carried_out_are_named():
    """
    A crash left record 3, a competing writer 5 and 6.
    """
    chain = Chain(3)
    chain.add(follows=2)
    chain.add()
    chain.add()
    chain.add(follows=4)
    head = chain.head
    chain.add()

    findings = verify(chain.lines, ring_head=head)

    assert findings.is_sound
    assert findings.not_carried_out == (range(3, 4), range(5, 7))
    assert findings.beyond_head == 1
    assert verify(chain.lines, ring_head=None).not_carried_out == findings.not_carried_out


def test_epochs_follow_each_other():
    """
    With all sealing keys at hand, every MAC is checked.
    """
    chain = resealed()

    findings = verify(chain.lines, ring_head=chain.head)

    assert findings.is_sound
    assert findings.by_hash_alone == 0


def test_records_of_a_destroyed_sealing_key_are_held_by_their_hashes():
    """
    The first record under the next key proves them.
    """
    chain = resealed()

    findings = verify(chain.lines, ring_head=None, sealing=AFTER)

    assert findings.is_sound
    assert findings.by_hash_alone == 4


@pytest.mark.parametrize("seq", range(1, 5))
def test_a_change_to_a_record_of_a_destroyed_sealing_key_is_found(seq):
    """
    Where the hash does not fit: at the record behind it.
    """
    chain = resealed()
    lines = list(chain.lines)
    lines[seq - 1] = lines[seq - 1].replace(b"planned", b"changed")

    findings = verify(lines, ring_head=None, sealing=AFTER)

    assert ("link", seq + 1, seq + 1) in problems(findings)


def test_old_records_that_were_rewritten_under_a_leaked_old_key_are_found():
    """
    The old key is known to the attacker; the record under the new one names another hash.
    """
    chain, other = resealed(), Chain(0, sealing=BEFORE)
    for _ in range(4):
        other.add(entry(reason="rewritten"))

    findings = verify(other.lines + chain.lines[4:], ring_head=None)

    assert problems(findings) == [("link", 5, 5)]


def test_records_that_nothing_proves_are_unproven():
    """
    Somebody wrote a trail that claims a sealing key which nobody has.
    """
    ghost = Chain(0, sealing=SEALING)
    for _ in range(3):
        ghost.add()
    lines = rehashed(
        [changed(line, sealing_key=GHOST) if number == 0 else line for number, line in enumerate(ghost.lines)]
    )

    assert problems(verify(lines, ring_head=None)) == [("unproven", 1, 3)]
    assert [each.problem for each in verify(lines, ring_head=ghost.head).findings] == ["head", "unproven"]


def test_a_forged_epoch_in_the_middle_is_found():
    """
    Claiming a key that nobody has does not switch the check off.
    """
    forged = changed(TEN.lines[0], seq=6, epoch=2, sealing_key=GHOST, prev=TEN.tips[5].head.link, follows=5)

    findings = verify([*TEN.lines[:5], forged, *TEN.lines[5:]])

    assert not findings.is_sound
    assert problems(findings)[0] == ("out_of_order", 6, 6)


def test_without_any_key_a_known_head_proves_the_hashes():
    """
    An auditor who was given the trail and a head needs nothing else.
    """
    findings = verify(TEN.lines, sealing=None, ring_head=None, expected=[TEN.head])

    assert findings.is_sound
    assert findings.by_hash_alone == 10
    assert problems(verify(TEN.lines, sealing=None, ring_head=None)) == [("unproven", 1, 10)]
    assert problems(verify(TEN.lines, sealing=None, ring_head=None, expected=[TEN.tips[5].head])) == [
        ("unproven", 6, 10)
    ]


def test_without_keys_what_is_wrong_is_found_by_the_hashes():
    """
    Removed, repeated, and of an older epoch.
    """
    chain = resealed()
    lines = [*chain.lines[:2], *chain.lines[3:], chain.lines[1], changed(chain.lines[3], seq=9)]

    findings = verify(lines, ring_head=chain.head, sealing=None)

    assert [(problem, seq) for problem, seq, _ in problems(findings)] == [
        ("missing", 3),
        ("unproven", 1),
        ("out_of_order", 2),
        ("epoch", 9),
    ]


@pytest.mark.parametrize("gone", [1, 2])
def test_the_first_record_of_an_epoch_may_be_the_one_that_is_gone(gone):
    """
    Its key is found again where that record stood right behind the last good one.
    """
    chain = resealed()

    findings = verify(chain.lines[:4] + chain.lines[4 + gone :], ring_head=chain.head)

    assert problems(findings) == [("missing", 5, 4 + gone)]
    assert findings.by_hash_alone == 0


def test_an_epoch_whose_beginning_cannot_be_found_is_held_by_its_hashes():
    """
    More records are gone than are looked for.
    """
    chain = resealed(new=30)

    findings = verify(chain.lines[:4] + chain.lines[24:], ring_head=chain.head)

    assert problems(findings) == [("missing", 5, 24)]
    assert findings.by_hash_alone == 10


def test_a_record_that_claims_an_epoch_of_its_own_is_found():
    """
    It does not switch the check off either.
    """
    lines = [*TEN.lines[:5], changed(TEN.lines[5], epoch=7), *TEN.lines[6:]]

    findings = verify(lines)

    assert problems(findings)[0] == ("epoch", 6, 6)
    assert not findings.is_sound


def test_an_epoch_of_a_lower_number_does_not_begin():
    """
    A record from another trail under the same key, put behind this one.
    """
    chain = Chain(2)
    chain.add(anew=True)
    other = Chain(3)
    other.add(anew=True, behind=replace(other.tips[3], epoch=1))

    assert other.records[3].epoch == 2
    assert problems(verify([*chain.lines, other.lines[3]], ring_head=chain.head)) == [("out_of_order", 4, 4)]


@pytest.mark.parametrize("sealing_key", [NEW, OLD])
def test_a_changed_beginning_of_a_trail_is_found_and_the_rest_checked(sealing_key):
    """
    Whichever of the keys at hand it begins with.
    """
    chain = Chain(3, sealing=BEFORE if sealing_key is OLD else AFTER)
    lines = [chain.lines[0].replace(b"planned", b"changed"), *chain.lines[1:]]

    findings = verify(lines, ring_head=chain.head)

    assert problems(findings) == [("changed", 1, 1)]
    assert findings.by_hash_alone == 0


def restarted(lines, tip, *, seq):
    """
    Add a record by which somebody goes on behind what is wrong.
    """
    chain = Chain(0)
    chain.tips = [replace(tip, head=Head(seq - 1, tip.head.link))]
    chain.add(entry(event="trail_restarted", reason="found on Monday"), anew=True)
    chain.add()
    return [*lines, *chain.lines], chain


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: lines[:5],
        lambda lines: [*lines[:4], *lines[5:]],
        lambda lines: [*lines[:4], lines[4].replace(b"planned", b"changed"), *lines[5:]],
        lambda lines: [*lines, b"garbage", b"more"],
    ],
    ids=["cut", "missing", "changed", "garbage"],
)
def test_what_somebody_answers_for_is_shown_as_such(damage):
    """
    It is found for ever, and the trail is sound again.
    """
    lines, chain = restarted(damage(TEN.lines), TEN.tips[10], seq=11)

    findings = verify(lines, ring_head=chain.head)

    assert findings.is_sound
    assert findings.findings
    assert {each.acknowledged_by for each in findings.findings} == {11}


def test_what_comes_after_is_not_answered_for():
    """
    A restart covers what was wrong before it, and what a second one covers is not covered by the first.
    """
    lines, chain = restarted(TEN.lines[:8], TEN.tips[10], seq=11)
    again, later = restarted([*lines, b"garbage"], chain.tips[-1], seq=13)

    assert problems(verify([*lines, b"garbage"], ring_head=chain.head)) == [("malformed", 13, 13)]
    findings = verify(again, ring_head=later.head)
    assert findings.is_sound
    assert [each.acknowledged_by for each in findings.findings] == [11, 13]


def test_a_restart_under_a_destroyed_sealing_key_still_answers():
    """
    Once the records behind it prove it.
    """
    old = Chain(3, sealing=BEFORE)
    old.tips.append(replace(old.tips[3], head=Head(5, old.head.link)))
    old.add(entry(event="trail_restarted"), anew=True, follows=3)
    old.sealing = SEALING
    old.add()

    findings = verify(old.lines, ring_head=None, sealing=AFTER)

    assert findings.is_sound
    assert [(each.problem, each.acknowledged_by) for each in findings.findings] == [("missing", 6), ("unproven", 6)]


def test_a_forged_restart_answers_for_nothing():
    """
    Neither with a MAC that is none, nor under a key that nobody has.
    """
    said = entry(event="trail_restarted")
    forged = Chain(0)
    forged.tips = [TEN.tips[8]]
    forged.add(said, anew=True)
    wrong = forged.lines[0].replace(b"planned", b"nothing")
    ghost = changed(forged.lines[0], sealing_key=GHOST)

    for line in (wrong, ghost):
        assert not verify([*TEN.lines[:4], *TEN.lines[5:8], line], ring_head=None).is_sound


def test_ten_thousand_records_take_seconds():
    """
    A changed byte, a removed record and a cut tail are each found among them, in one pass.
    """
    chain = Chain(10_000)
    lines = list(chain.lines[:9990])
    lines[2999] = lines[2999].replace(b"planned", b"plamned")
    del lines[4999]

    assert verify(chain.lines, ring_head=chain.head).is_sound
    assert problems(verify(lines, ring_head=chain.head)) == [
        ("changed", 3000, 3000),
        ("missing", 5000, 5000),
        ("cut", 9991, 10_000),
    ]


def test_a_chain_that_was_recomputed_from_a_changed_record_on_is_found_there():
    """
    All hashes behind it fit; with the ring or without, the first wrong record is named.
    """
    chain = Chain(300)
    lines = rehashed(
        [*chain.lines[:149], chain.lines[149].replace(b"planned", b"plamned"), *chain.lines[150:]], start=151
    )

    findings = [verify(lines, ring_head=head) for head in (chain.head, None)]

    assert [problems(each)[0] for each in findings] == [("changed", 150, 150)] * 2
    assert [each.omitted for each in findings] == [51, 51]


def test_a_number_far_away_costs_no_time(monkeypatch):
    """
    Keys are looked for so far ahead and no further.
    """
    monkeypatch.setattr("issuer.audit.verify._MAX_MISSING", 3)
    lines = [*TEN.lines[:2], *TEN.lines[7:]]

    assert problems(verify(lines))[0] == ("changed", 3, 3)
