"""
What is wrong with a configuration, said so that the line to fix is found.

    SettingsError        the service does not start; `problems` lists everything that was found, not just the first of it

Positions come from a pass over the text of the TOML file, since `tomllib` gives none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Finding", "Location", "Problem", "SettingsError", "Source", "line_numbers", "spelled"]

Location = tuple[str | int, ...]
"""Where a value stands: names of tables and keys, and positions in arrays counted from 0."""

Finding = tuple[Location, str]
"""A location, and what is wrong there in our own words; never the value itself."""

_NAME: Final = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_NAMES: Final = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_TABLE: Final = re.compile(rf"\s*(\[\[?)\s*{_NAMES}\s*\]")
_KEY: Final = re.compile(rf"\s*{_NAMES}\s*=")
_MULTILINE: Final = re.compile(r'"""|' + "'''")


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing to fix. `where` is the place in the configuration, `line` the line of the file where that is known, from 1.
    """

    where: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{place}{self.where}: {self.message}"


class SettingsError(Exception):
    """
    The configuration cannot be used; nothing was started and nothing was changed.
    """

    problems: tuple[Problem, ...]

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        """
        Hold *problems*, in the order of the file; *source* names the file that they were found in.
        """
        self.problems = tuple(sorted(problems, key=lambda each: each.line or 0))
        super().__init__("\n".join(f"{source}: {each}" for each in self.problems))


@dataclass(frozen=True, slots=True)
class Source:
    """
    Where settings came from: the file, the lines of its keys, and the environment variables that stand over it.

    `variables` maps the location that a variable sets to the name of the variable.
    """

    name: str = "configuration"
    lines: Mapping[Location, int] = field(default_factory=dict, repr=False)
    variables: Mapping[Location, str] = field(default_factory=dict, repr=False)

    def problem(self, location: Location, message: str) -> Problem:
        """
        Build a problem that names the variable, or the line of the key, or else of the nearest table around it.
        """
        prefixes = [location[:length] for length in range(len(location), 0, -1)]
        for each in prefixes:
            if each in self.variables:
                rest = spelled(location[len(each) :])
                return Problem(f"{self.variables[each]} {rest}".rstrip(), message)
        line = next((self.lines[each] for each in prefixes if each in self.lines), None)
        return Problem(spelled(location), message, line)

    def error(self, findings: Iterable[Finding]) -> SettingsError:
        """
        Build the error that reports every finding.
        """
        return SettingsError(self.name, [self.problem(*each) for each in findings])


def spelled(location: Location) -> str:
    """
    Write a location as people read it: `workspaces[0].connections[0].audiences[2]`.
    """
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in location)
    return "".join(parts).removeprefix(".")


def line_numbers(text: str) -> Mapping[Location, int]:
    """
    Map the tables and keys of TOML text to the lines, counted from 1, on which they begin.

    The text is already known to be TOML. Members of inline tables and of arrays are not looked for: they are found at their key.
    """
    lines: dict[Location, int] = {}
    lengths: dict[Location, int] = {}
    table: Location = ()
    for number, line in _outside_strings(text):
        if header := _TABLE.match(line):
            table = _table(_split(header[2]), lengths, is_array=header[1] == "[[")
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault(table + _split(key[1]), number)
    return lines


def _outside_strings(text: str) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(text.split("\n"), start=1):
        if not inside:
            yield number, line
        inside ^= len(_MULTILINE.findall(line)) % 2 == 1


def _split(names: str) -> Location:
    return tuple(name.strip("\"'") for name in re.findall(_NAME, names))


def _table(names: Location, lengths: dict[Location, int], *, is_array: bool) -> Location:
    # `[[a]]` opens the next element of `a`; `[a.b]` and `[[a.b]]` belong to the element of `a` opened last.
    path: Location = ()
    for name in names[:-1]:
        path += (name,)
        if path in lengths:
            path += (lengths[path] - 1,)
    path += names[-1:]
    if is_array:
        lengths[path] = lengths.get(path, 0) + 1
        path += (lengths[path] - 1,)
    return path
