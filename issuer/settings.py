"""
The only reader of the configuration: one TOML file, environment variables over it, secrets in files of their own.

Nothing is guessed: a missing file, a key or variable that is not known, a value out of bounds and settings that contradict each
other stop the start, all reported together, each with the line to fix (`settings_problems.SettingsError`).
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from .settings_models import ENVIRONMENT_PREFIX, JWKSSettings, LimitsSettings, SealingKeySettings, Settings
from .settings_problems import Finding, Location, Problem, SettingsError, Source, line_numbers
from .settings_registry import build_registry
from .settings_rules import doubts, violations
from .settings_workspaces import (
    ActionSettings,
    AdminSettings,
    AmrSettings,
    ClientSettings,
    ConnectionSettings,
    ProviderSettings,
    WorkspaceSettings,
)

__all__ = [
    "CONFIG_VARIABLE",
    "OPTION_VARIABLES",
    "Problem",
    "Settings",
    "SettingsError",
    "build_registry",
    "load_settings",
    "settings_warnings",
]

CONFIG_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}CONFIG"
"""The environment variable that names the file where no option does."""

OPTION_VARIABLES: Final = frozenset({CONFIG_VARIABLE, f"{ENVIRONMENT_PREFIX}BIND_HOST"})
"""Variables that stand for options of the command; they are no settings."""

_MAX_FILE: Final = 16 * 1024 * 1024
_PATHS: Final = frozenset({"data_dir", "file", "jwks_file", "subject_jwks_file"})
# Tables whose keys are names that others chose, maybe one of the above.
_FREE: Final = frozenset({"clients", "acr"})
_TABLES: Final[tuple[type[BaseModel], ...]] = (
    Settings,
    SealingKeySettings,
    WorkspaceSettings,
    ConnectionSettings,
    JWKSSettings,
    LimitsSettings,
    ActionSettings,
    ProviderSettings,
    AmrSettings,
    ClientSettings,
    AdminSettings,
)
# What the library says of these is in words of Python.
_IN_WORDS_OF_TOML: Final = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "model_type": "must be a table",
    "path_type": "must be a path",
    "string_type": "must be a string",
    "tuple_type": "must be a list",
}
_AT_LINE: Final = re.compile(r"at line (\d+)")
_KEYS: Final = frozenset(key for table in _TABLES for key in table.model_fields)


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """
    Read and check the configuration.

    *path* is the TOML file, or None for the one that `CUSTOMER_CONTEXT_CONFIG` in *environ* names. Relative paths in the file are
    relative to its folder; those in variables must be absolute. A variable `CUSTOMER_CONTEXT_ORIGIN` stands over `origin` in the
    file, and one for an array (`CUSTOMER_CONTEXT_WORKSPACES`) holds it as JSON. No other file is opened here.

    Raises:
        SettingsError: with everything that is wrong.
    """
    file = _file(path, environ)
    text, data = _read(file)
    variables = {_location(name): name for name in sorted(environ) if _is_ours(name)}
    source = Source(str(file), line_numbers(text), variables)
    unknown = dict(_unknown(data, variables))
    known = {name: environ[name] for location, name in variables.items() if location not in unknown}
    try:
        over = _Environment(known)()
        settings = Settings.from_source(_merged(_absolute(data, file.parent.absolute()), over), source)
    except _NotJSON as error:
        raise source.error([*unknown.items(), ((str(error),), "must be JSON")]) from None
    except ValidationError as error:
        raise source.error([*unknown.items(), *_findings(error)]) from None
    except RecursionError:
        raise SettingsError(str(file), [Problem("the file", "is nested too deeply")]) from None
    findings = [*unknown.items(), *violations(settings)]
    if findings:
        raise source.error(findings)
    return settings


def settings_warnings(settings: Settings) -> tuple[Problem, ...]:
    """
    Return what does not forbid the start but is seldom meant, such as an audience that ends in a slash (D6).
    """
    return tuple(settings.source.problem(*each) for each in doubts(settings))


class _NotJSON(Exception):
    """
    Raised for a variable that must hold JSON and does not; the text is the name of the field.
    """


class _Environment(EnvSettingsSource):
    """
    The library's reader of variables, over given ones, all of them known, instead of those of the process.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items()}

    def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except (ValueError, RecursionError):
            raise _NotJSON(field_name) from None


def _is_ours(name: str) -> bool:
    # Names in lower case are looked at too, so that a misspelt one is refused instead of ignored.
    return name.upper().startswith(ENVIRONMENT_PREFIX) and name not in OPTION_VARIABLES


def _location(name: str) -> Location:
    return tuple(name[len(ENVIRONMENT_PREFIX) :].lower().split("__"))


def _file(path: Path | None, environ: Mapping[str, str]) -> Path:
    if path is not None:
        return path
    named = environ.get(CONFIG_VARIABLE, "")
    if not named:
        message = f"pass --config or set {CONFIG_VARIABLE}; `customer-context init` writes one to begin with"
        raise SettingsError("configuration", [Problem("no file is named", message)])
    return Path(named)


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        with file.open("rb") as opened:
            body = opened.read(_MAX_FILE + 1)
    except OSError as error:
        raise SettingsError(str(file), [Problem("the file", f"cannot be read: {error.strerror}")]) from None
    if len(body) > _MAX_FILE:
        raise SettingsError(str(file), [Problem("the file", f"is larger than {_MAX_FILE} octets")])
    try:
        text = body.decode("utf-8").replace("\r\n", "\n")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise SettingsError(str(file), [Problem("the file", "is not UTF-8", line)]) from None
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        problem = Problem("the file", f"is not TOML: {error}", int(at[1]) if at else None)
        raise SettingsError(str(file), [problem]) from None
    except (ValueError, RecursionError):
        # TOML to the library, and yet more than Python reads.
        message = "is nested too deeply, or holds a number of too many digits"
        raise SettingsError(str(file), [Problem("the file", message)]) from None


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(each, folder) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _absolute_member(key, each, folder) for key, each in value.items()}


def _absolute_member(key: str, value: Any, folder: Path) -> Any:
    if key in _FREE and isinstance(value, dict):
        return value
    if key in _PATHS and isinstance(value, str) and value:
        return str(folder / value)
    return _absolute(value, folder)


def _merged(data: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: value for key, value in data.items() if not key.startswith("_")}
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(values.get(key), dict)
        values[key] = values[key] | value if both else value
    return values


def _unknown(data: Mapping[str, Any], variables: Mapping[Location, str]) -> Iterator[Finding]:
    # The library silently ignores variables it does not know, and takes keys with an underscore for options of its own.
    for key in data:
        if key.startswith("_"):
            yield (key,), _unknown_key(key)
    for location, name in variables.items():
        field = Settings.model_fields.get(str(location[0]))
        if field is None or name != name.upper():
            yield location, "is not a known variable"
        elif len(location) > 1 and field.annotation not in {JWKSSettings, LimitsSettings}:
            yield location, "is not a known variable; an array is written as JSON in one variable"


def _unknown_key(key: str) -> str:
    if key in _KEYS:
        return "belongs into another table than the one that this line is in"
    close = get_close_matches(key, _KEYS, n=1)
    return f"is not a known key; did you mean {close[0]}?" if close else "is not a known key"


def _findings(error: ValidationError) -> Iterator[Finding]:
    errors = error.errors(include_url=False, include_input=False)
    around = {each["loc"][:length] for each in errors for length in range(len(each["loc"]))}
    for each in errors:
        # An array is called too short as soon as one of its entries is wrong, which is reported by itself.
        if each["type"] != "too_short" or each["loc"] not in around:
            yield each["loc"], _message(each)


def _message(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return _unknown_key(str(error["loc"][-1]))
        case "missing":
            return "is missing"
        case "too_short":
            return f"must have at least {context['min_length']} of them"
        case "too_long":
            return f"must have at most {context['max_length']} of them"
        case kind:
            said = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            return _IN_WORDS_OF_TOML.get(kind, said)
