"""
What a soak saw: one line a fact, promises marked as kept or broken, and all of it as JSON for whoever compares runs.
"""

import json
from typing import Any

__all__ = ["Report"]


class Report:
    """
    Collects facts by section and prints each at once.
    """

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, Any]] = {}
        self.broken: list[str] = []
        # When the machine kept a process waiting for longer than a lease by the fast clock, a broken promise may be its own.
        self.is_doubtful = False
        self._section = ""

    def section(self, name: str, title: str) -> None:
        self._section = name
        self.sections[name] = {}
        print(f"\n{title}", flush=True)

    def fact(self, what: str, value: Any) -> None:
        self._tell(what, value, "")

    def promise(self, what: str, value: Any, *, kept: bool) -> None:
        """
        Tell a fact that a promise stands or falls with.
        """
        self._tell(what, value, "ok" if kept else "BROKEN")
        if not kept:
            self.broken.append(f"{self._section}: {what}: {value}")

    def json(self) -> str:
        return json.dumps({"broken": self.broken, "doubtful": self.is_doubtful, **self.sections}, indent=2)

    def _tell(self, what: str, value: Any, mark: str) -> None:
        self.sections[self._section][what] = value
        shown = f"{value:.1f}" if isinstance(value, float) else value
        if isinstance(shown, dict):
            shown = ", ".join(f"{name} {number}" for name, number in shown.items()) or "none"
        print(f"  {what:<78} {shown}  {mark}".rstrip(), flush=True)
