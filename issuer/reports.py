"""
How a part of the service tells what happens to it, without knowing who listens.
"""

from typing import Protocol

__all__ = ["Report"]


class Report(Protocol):
    """
    Takes one event for the log, as a name and facts from a closed list.
    """

    def __call__(self, event: str, **facts: str | int | None) -> None:
        """
        Take note of one event.
        """
