"""
Where the record of an emergency is kept when the trail cannot take it.
"""

import json

import pytest

from issuer.audit import LineFile, Spill
from issuer.audit.chain import link_of
from issuer.audit.spill import spill_line
from keys import FileUnwritable

from .stage import entry

pytestmark = pytest.mark.anyio

LINE = spill_line("acme", 7, [entry(), entry(event="key_revoked")])


@pytest.fixture
def spill(tmp_path):
    return Spill(LineFile(tmp_path / "audit" / "acme.spill.jsonl"))


async def test_entries_are_found_by_the_hash_of_their_line(spill):
    """
    Those that are asked for and here.
    """
    other = spill_line("acme", 8, [entry(reason="another")])
    await spill.append(LINE)
    await spill.append(other)

    found = await spill.find([link_of(LINE), "A" * 43])

    assert found == {link_of(LINE): (entry(), entry(event="key_revoked"))}
    assert json.loads(LINE)["revision"] == 7


async def test_where_nothing_was_spilled_nothing_is_found(spill):
    """
    On another machine, say.
    """
    assert await spill.find([link_of(LINE)]) == {}
    assert await spill.find([]) == {}


@pytest.mark.parametrize("line", [b"{}", b"[]", b"garbage", b'{"entries":[{}]}', b'{"entries":[1]}', b'{"entries":1}'])
async def test_a_line_that_this_version_cannot_read_has_no_entries(spill, line):
    """
    Its hash still stands in the trail.
    """
    await spill.append(line)

    assert await spill.find([link_of(line)]) == {link_of(line): ()}


async def test_a_spill_that_cannot_be_written_says_so(tmp_path):
    """
    The emergency goes on all the same.
    """
    (tmp_path / "audit").touch()

    with pytest.raises(FileUnwritable):
        await Spill(LineFile(tmp_path / "audit" / "acme.spill.jsonl")).append(LINE)


async def test_a_large_file_is_read_in_part(spill, monkeypatch):
    """
    What was spilled first counts; nobody spills that much.
    """
    monkeypatch.setattr("issuer.audit.spill._MAX_READ_OCTETS", 1)
    await spill.append(LINE)

    assert list(await spill.find([link_of(LINE)])) == [link_of(LINE)]
