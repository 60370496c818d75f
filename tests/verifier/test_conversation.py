"""
The names of conversations.
"""

import pytest

from verifier.conversation import is_conversation


@pytest.mark.parametrize("text", ["c", "conv_71", " ", "a b~", "c" * 128])
def test_a_conversation_is_printable_ascii(text):
    """
    1 to 128 characters from the space to the tilde name a conversation.
    """
    assert is_conversation(text)


@pytest.mark.parametrize("text", ["", "c" * 129, "c\n", "\n", "c\tc", "\x7f", "é", "\ud800", "conv\x00"])
def test_nothing_else_is_a_conversation(text):
    """
    Whatever is empty, longer or cannot be printed names none, also where it ends in a line feed.
    """
    assert not is_conversation(text)
