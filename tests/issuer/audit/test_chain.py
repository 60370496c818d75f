"""
How records hang together: what follows, what does not, and what a key of a later moment is good for.
"""

import hmac
import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from hashlib import sha256

import pytest

from issuer.audit import Head
from issuer.audit.canonical import MAX_NUMBER, canonical
from issuer.audit.chain import DoesNotFollow, confirmation, follow, genesis, link_of, next_record

from .stage import AFTER, BEFORE, NEW, OLD, SEALING, Chain, entry


def problem_of(tip, line, *, workspace="acme", sealing=SEALING):
    with pytest.raises(DoesNotFollow) as refusal:
        follow(tip, line, workspace=workspace, sealing=sealing)
    return refusal.value.problem


def octets(text):
    return urlsafe_b64decode(text + "=")


def test_records_follow_each_other():
    """
    Whoever has the tip before them finds the record and the tip behind it.
    """
    chain = Chain(3)

    followed = [
        follow(tip, line, workspace="acme", sealing=SEALING) for tip, line in zip(chain.tips, chain.lines, strict=False)
    ]

    assert followed == list(zip(chain.records, chain.tips[1:], strict=True))


def test_macs_and_hashes_are_those_of_the_documentation():
    """
    An auditor can check them with nothing but a sealing key and a standard library.
    """
    chain = Chain(2)
    keys = [NEW.derive("audit:1", "acme")]
    keys.append(hmac.digest(keys[0], b"caplo-audit:evolve", "sha256"))

    for line, key in zip(chain.lines, keys, strict=True):
        members = json.loads(line)
        mac = octets(members.pop("mac"))
        assert mac == hmac.digest(key, canonical(members), "sha256")
    assert octets(json.loads(chain.lines[0])["prev"]) == sha256(b"caplo-audit:genesis\0acme").digest()
    assert octets(json.loads(chain.lines[1])["prev"]) == sha256(chain.lines[0]).digest()
    assert chain.head == Head(2, link_of(chain.lines[1]))


def test_another_sealing_key_begins_another_epoch():
    """
    The first record names the key; the hash goes on.
    """
    chain = Chain(2, sealing=BEFORE)
    chain.sealing = SEALING
    chain.add()
    chain.add()

    assert [(each.epoch, each.sealing_key) for each in chain.records] == [
        (1, OLD.id),
        (1, None),
        (2, NEW.id),
        (2, None),
    ]
    assert follow(chain.tips[2], chain.lines[2], workspace="acme", sealing=AFTER)[1] == chain.tips[3]


def test_a_trail_can_begin_anew_under_the_same_key():
    """
    With a chain of keys that nobody has seen.
    """
    chain = Chain(1)

    record = chain.add(anew=True)

    assert (record.epoch, record.sealing_key) == (2, NEW.id)
    assert follow(chain.tips[1], chain.lines[1], workspace="acme", sealing=SEALING) == (record, chain.tips[2])


def test_what_does_not_follow_is_told_apart():
    """
    One word for each way of not being the next record.
    """
    chain = Chain(3)
    line, tip = chain.lines[1], chain.tips[1]
    renewed = Chain(3)
    renewed.add(anew=True)
    stranger = Chain(2, sealing=BEFORE)
    fork = Chain(1)
    fork.add(entry(reason="another"), behind=replace(fork.tips[0], key=b"other"))

    assert problem_of(tip, b"{}") == "malformed"
    assert problem_of(tip, line, workspace="globex") == "workspace"
    assert problem_of(tip, chain.lines[2]) == "missing"
    assert problem_of(tip, chain.lines[0]) == "out_of_order"
    assert problem_of(replace(tip, epoch=2), line) == "epoch"
    assert problem_of(replace(renewed.tips[3], epoch=2), renewed.lines[3]) == "epoch"
    assert problem_of(genesis("acme"), stranger.lines[0], sealing=AFTER) == "sealing_key"
    assert problem_of(tip, line.replace(b"planned", b"plunned")) == "changed"
    assert problem_of(replace(tip, head=Head(1, "A" * 43)), line) == "link"
    assert problem_of(replace(genesis("acme"), head=Head(1, "A" * 43)), line) == "epoch"


def test_a_key_of_a_later_moment_writes_no_earlier_record():
    """
    Who takes the state of a process behind record 3 cannot make another record 3 that follows.
    """
    chain = Chain(3)
    stolen = chain.tips[3]

    _, forged, _ = next_record(
        replace(chain.tips[2], key=stolen.key),
        entry(reason="nothing"),
        workspace="acme",
        revision=4,
        follows=2,
        sealing=SEALING,
    )

    assert problem_of(chain.tips[2], forged) == "changed"


def test_a_confirmation_is_another_one_for_each_record():
    """
    And not one of the MACs.
    """
    chain = Chain(3)
    confirmations = {confirmation(tip) for tip in chain.tips[1:]}

    assert len(confirmations) == 3
    assert confirmations.isdisjoint(json.loads(line)["mac"] for line in chain.lines)


def test_a_key_is_never_shown():
    """
    A tip in a message or a log gives nothing away.
    """
    assert "key=" not in repr(Chain(1).tips[1]).replace("sealing_key=", "")


def test_a_record_that_is_too_long_is_not_written():
    """
    It would never be read again.
    """
    with pytest.raises(ValueError):
        Chain(0).add(entry(after={"a": "b" * 262_144}))


def test_a_head_is_written_and_read_one_way():
    """
    As it stands in `Audit-Head`.
    """
    head = Chain(2).head

    assert Head.parse(str(head)) == head
    assert str(head) == f"2.{head.link}"


@pytest.mark.parametrize(
    "text",
    ["", "1", ".", "1.", "01." + "A" * 43, "1." + "A" * 42, "1." + "A" * 42 + "B", f"{MAX_NUMBER + 1}." + "A" * 43],
)
def test_what_is_no_head_is_refused(text):
    """
    A typing error does not become a head that is never found.
    """
    with pytest.raises(ValueError):
        Head.parse(text)
