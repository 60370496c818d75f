"""
The forms of single configured values: URLs, paths, names, scopes, digests (D2, D3, D6, D8).

Each function takes text and returns it, unchanged, or raises ValueError with a message that says which rule is broken and never
repeats the text.
"""

import re
from hashlib import sha256
from ipaddress import IPv6Network, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from keys.ring import check_workspace
from verifier.action import is_action_name
from verifier.url import check_url, is_loopback

from .redis_url import parse_redis_url

__all__ = [
    "absolute_path",
    "action_name",
    "agent",
    "argument_name",
    "audience",
    "client_id",
    "flag",
    "kid",
    "label",
    "namespace",
    "network",
    "origin",
    "provider",
    "provider_word",
    "redis_url",
    "scope_token",
    "secret_digest",
    "workspace_name",
    "workspace_path",
]

_MAX_URL: Final = 512
_URL: Final = re.compile(r"https?://[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_AUTHORITY: Final = re.compile(rf"({_HOST.pattern})(?::([1-9][0-9]{{0,4}}))?")
_DEFAULT_PORTS: Final = {"https": "443", "http": "80"}
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")
_ARGUMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,127}")
_SCOPE_TOKEN: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,128}")
_PROVIDER_WORD: Final = re.compile(r"[\x21-\x7e]{1,255}")
_KID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_EMPTY_DIGEST: Final = sha256(b"").hexdigest()


def origin(text: str) -> str:
    """
    Check the base URL of the service: scheme and host, with a port where it is not the default one (D3; RFC 8414 section 2).
    """
    parts = _url(text)
    if text.endswith("/"):
        raise ValueError("must not end with a slash")
    if parts.path or "?" in text:
        raise ValueError("must be scheme and host only; the path belongs to the workspaces")
    if parts.netloc != parts.netloc.lower():
        raise ValueError("the host must be in lower case")
    if parts.port is not None and str(parts.port) == _DEFAULT_PORTS[parts.scheme]:
        raise ValueError("the default port must be left out, as URL libraries leave it out")
    return text


def audience(text: str) -> str:
    """
    Check the URL of an API; it is compared code point by code point and never fetched (D6; RFC 8707 section 2).
    """
    _url(text)
    return text


def _url(text: str) -> SplitResult:
    if len(text) > _MAX_URL or _URL.fullmatch(text) is None:
        raise ValueError(f"must be an https URL of at most {_MAX_URL} characters of RFC 3986")
    if "#" in text:
        raise ValueError("must not have a fragment")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("must name a host") from None
    if "@" in parts.netloc:
        raise ValueError("must not have userinfo")
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None or int(authority[2] or "1") > 65_535:
        raise ValueError("must name a host, and a port from 1 to 65535 if any")
    if parts.scheme == "http" and not is_loopback(authority[1].lower()):
        raise ValueError("must be https; http is for loopback hosts only")
    return parts


def provider(text: str) -> str:
    """
    Check the issuer identifier of an identity provider; it may end in a slash (OpenID Connect Discovery 1.0 sections 3 and 4).
    """
    try:
        check_url(text.removesuffix("/") if len(text) <= _MAX_URL else "")
    except ValueError:
        raise ValueError(
            "must be an https URL (http on loopback hosts) with a host in lower case, and without user, query or fragment, "
            f"of at most {_MAX_URL} characters"
        ) from None
    return text


def provider_word(text: str) -> str:
    """
    Check a word that an identity provider puts into `acr` or `amr`.
    """
    return _matching(text, _PROVIDER_WORD, "must be 1 to 255 visible ASCII characters")


def workspace_name(text: str) -> str:
    """
    Check the id of a workspace (D3), which rings are sealed for.
    """
    try:
        return check_workspace(text)
    except ValueError:
        raise ValueError("must be 1 to 63 of a-z 0-9 -, beginning with a letter or digit") from None


def workspace_path(text: str) -> str:
    """
    Check what stands between the origin and the routes of a workspace: nothing, or segments of unreserved characters.
    """
    if len(text) > 128 or _PATH.fullmatch(text) is None:
        raise ValueError(
            'must be "" or like "/w/acme": segments of A-Z a-z 0-9 . _ ~ -, no slash at the end, at most 128'
        )
    if any(segment in {".", ".."} for segment in text.split("/")):
        raise ValueError("must not have dot segments")
    return text


def label(text: str) -> str:
    """
    Check a name that only this configuration uses.
    """
    return _matching(text, _LABEL, "must be 1 to 63 of A-Z a-z 0-9 . _ -, beginning with a letter or digit")


def namespace(text: str) -> str:
    """
    Check the name of an identity namespace, which subject tokens repeat (D21).
    """
    return _matching(text, _VISIBLE, "must be 1 to 128 visible ASCII characters")


def action_name(text: str) -> str:
    """
    Check the name of an action (D2).
    """
    if not is_action_name(text):
        raise ValueError("must be 1 to 128 of A-Z a-z 0-9 . _ : -")
    return text


def argument_name(text: str) -> str:
    """
    Check the name of an argument that the service fills.
    """
    return _matching(text, _ARGUMENT, "must be 1 to 128 of A-Z a-z 0-9 . _ -, beginning with a letter or _")


def scope_token(text: str) -> str:
    """
    Check one scope (RFC 6749 section 3.3).
    """
    return _matching(
        text, _SCOPE_TOKEN, "must be one scope: 1 to 128 visible ASCII characters other than quote and backslash"
    )


def client_id(text: str) -> str:
    """
    Check the id of a client. Basic authentication form-encodes it, so spaces, colons and letters of any script may stand in it.
    """
    if not 1 <= len(text) <= 255 or not text.isprintable() or text != text.strip():
        raise ValueError("must be 1 to 255 printable characters without a space at either end")
    return text


def agent(text: str) -> str:
    """
    Check the id of an agent; one with a colon is a URI (D8; RFC 7519 section 2, StringOrURI).
    """
    if _VISIBLE.fullmatch(text) is None:
        raise ValueError("must be 1 to 128 visible ASCII characters")
    if ":" in text and _URI.fullmatch(text) is None:
        raise ValueError("must not have a colon unless it is a URI")
    return text


def secret_digest(text: str) -> str:
    """
    Check the SHA-256 of a generated secret, in lower-case hexadecimal.
    """
    _matching(text, _DIGEST, "must be the SHA-256 of the secret as 64 lower-case hexadecimal digits")
    if text == _EMPTY_DIGEST:
        raise ValueError("is the digest of an empty secret")
    return text


def kid(text: str) -> str:
    """
    Check the id of a signing key, an RFC 7638 thumbprint.
    """
    return _matching(text, _KID, "must be a kid: 43 of A-Z a-z 0-9 - _")


def network(text: str) -> str:
    """
    Check an address, or a network in CIDR notation (RFC 4632 section 3.1), of proxies that are believed.
    """
    try:
        parsed = ip_network(text)
    except ValueError:
        raise ValueError("must be an IP address, or a network like 10.0.0.0/8 without bits after its prefix") from None
    if "%" in text:
        raise ValueError("must not name an interface")
    if not parsed.prefixlen:
        raise ValueError("must not be everybody: whoever reaches the service could say who they are")
    if isinstance(parsed, IPv6Network) and parsed.network_address.ipv4_mapped is not None:
        raise ValueError("must be written as IPv4, which a mapped address is taken for")
    return text


def redis_url(text: str) -> str:
    """
    Check the URL of a Redis, or nothing.
    """
    if text:
        parse_redis_url(text)
    return text


def flag(value: object) -> object:
    """
    Turn the words true and false, which are all that a variable can say, into what they mean.
    """
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def absolute_path(path: Path) -> Path:
    """
    Check a path after those of the file were made absolute; a variable has no folder that it could be relative to.
    """
    if not path.is_absolute():
        raise ValueError("must not be empty, and absolute where it comes from the environment")
    return path


def _matching(text: str, pattern: re.Pattern[str], rule: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(rule)
    return text
