"""
Bodies with a strong validator, and the conditions that callers put on them.
"""

import pytest

from issuer.document import Document, is_not_modified


def test_equal_bodies_have_equal_tags_and_others_do_not():
    """The tag depends on the bytes alone and is strong."""
    one, same, other = (Document.of(body) for body in (b"{}", b"{}", b"{ }"))

    assert one.etag == same.etag
    assert one.etag != other.etag
    assert one.etag.startswith('"')
    assert one.etag.endswith('"')


@pytest.mark.parametrize(
    "lines",
    [
        ('"a"',),
        ('W/"a"',),
        ('"b", "a"',),
        ('"b",W/"a" , "c"',),
        ('"b"', '"a"'),
        ("*",),
        (" * ",),
    ],
)
def test_a_list_that_names_the_tag_matches(lines):
    """Weak comparison over every member of every line, and the asterisk (RFC 9110 section 13.1.2)."""
    assert is_not_modified(lines, '"a"')


@pytest.mark.parametrize("lines", [(), ("",), ("a",), ('"b"',), ('"A"',), ('"a',), ('W/a"',), ('"aa"',), ('"*"',)])
def test_anything_else_does_not_match(lines):
    """Text that is no entity tag names nothing."""
    assert not is_not_modified(lines, '"a"')
