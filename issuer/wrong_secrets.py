"""
Guessing of secrets, made slow: wherever a secret is taken, a wrong one is counted for its name and for where it came from.

The secret is looked at first, in the same way as ever. So the right one is let in whatever others tried before, and nobody can
lock anybody out; a wrong one over the limit is told to wait instead of that it was wrong.
"""

from .limits import Over, RequestLimits, SecretOwner
from .reports import Report
from .source import network_of

__all__ = ["WrongSecrets"]


class WrongSecrets:
    """
    Counts the wrong secrets of one workspace.
    """

    __slots__ = ("_limits", "_report", "_workspace")

    def __init__(self, workspace: str, limits: RequestLimits, report: Report) -> None:
        """
        Name the workspace, and where it is counted.
        """
        self._workspace = workspace
        self._limits = limits
        self._report = report

    async def count(self, owner: SecretOwner, name: str, source: str) -> Over | None:
        """
        Count a wrong secret that came with *name*, whatever that is, and return the limit that is reached, if one is.

        When it cannot be told, none is: the secret is refused in any case.
        """
        try:
            return await self._limits.wrong_secret(self._workspace, owner, name, network_of(source))
        except Exception as error:  # noqa: BLE001 -- a store may fail in any way; what is wrong stays wrong
            self._report("limits_failed", workspace=self._workspace, problem=type(error).__name__)
            return None
