"""
The names that orchestrators give to their conversations with customers: whom a sign-in or a call is for.
"""

import re
from typing import Final

__all__ = ["MAX_CONVERSATION_LENGTH", "is_conversation"]

MAX_CONVERSATION_LENGTH: Final = 128
"""Longest name of a conversation, in characters."""

_CONVERSATION: Final = re.compile(rf"[\x20-\x7e]{{1,{MAX_CONVERSATION_LENGTH}}}")


def is_conversation(text: str) -> bool:
    """
    Tell whether *text* names a conversation: 1 to 128 printable ASCII characters.
    """
    return _CONVERSATION.fullmatch(text) is not None
