"""
What the operator is told about an issuer's keys, on the logger `verifier.keys`.

A `kid` is an attacker's text until its signature holds, and a foreign exception may quote anything: both are written escaped and
shortened, or not at all.
"""

import logging
from collections.abc import Collection
from typing import Final

from .fetch import FetchError
from .jwk import KeySet, UnusableKeySet
from .jwks_cache import UnusableAnswer

__all__ = ["described", "report_failure", "report_keys", "report_unknown_kid"]

_LOG: Final = logging.getLogger("verifier.keys")
_MAX_CHARACTERS: Final = 120
_MAX_KIDS: Final = 8
_OWN_TEXTS: Final = (FetchError, UnusableAnswer, UnusableKeySet)


def described(error: BaseException) -> str:
    """
    Return an error's class, and its text where that is made of our own words.
    """
    name = type(error).__name__
    return _escaped(f"{name}: {error}" if isinstance(error, _OWN_TEXTS) else name)


def report_unknown_kid(url: str, kid: str) -> None:
    """
    Tell that a token's `kid` is not among the keys and makes them be fetched.
    """
    _LOG.info("unknown kid %s: asking %s", _escaped(kid), url)


def report_failure(url: str, error: BaseException) -> None:
    """
    Tell that a fetch brought no keys.
    """
    _LOG.warning("no keys from %s: %s", url, described(error))
    if isinstance(error, UnusableKeySet) and "private" in error.ignored:
        _report_private(url, error.ignored["private"])


def report_keys(url: str, before: Collection[str], after: KeySet[object]) -> None:
    """
    Tell what changed with a fetch: aloud when every key was withdrawn, or a private key was published.
    """
    if "private" in after.ignored:
        _report_private(url, after.ignored["private"])
    if not after:
        _LOG.error("%s withdrew all keys: every token is refused", url)
        return
    added, removed = set(after).difference(before), set(before).difference(after)
    if added or removed:
        _LOG.info("keys of %s: added %s; removed %s", url, _listed(added), _listed(removed))


def _report_private(url: str, count: int) -> None:
    _LOG.error("%s publishes private key material; compromised keys that are ignored: %d", url, count)


def _listed(kids: set[str]) -> str:
    shown = [_escaped(kid) for kid in sorted(kids)[:_MAX_KIDS]]
    return ", ".join([*shown, f"{len(kids) - _MAX_KIDS} more"] if len(kids) > _MAX_KIDS else shown) or "none"


def _escaped(text: str) -> str:
    return ascii(text[:_MAX_CHARACTERS])[1:-1]
