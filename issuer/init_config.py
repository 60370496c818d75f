"""
What `customer-context init` writes: a configuration to develop with, complete enough that `serve` starts from it.

Everything is written to a temporary folder first, read back the way the service reads it, and only then moved into place, the
configuration file last. Nothing that exists is ever replaced.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from keys import FileKeyStore, SigningKey, create_ring, generate_key, generate_sealing_key, write_sealing_key

from .settings import build_registry, load_settings
from .settings_formats import origin as checked_origin
from .settings_sealing import key_times, load_sealing_keys, ring_path

__all__ = ["CONFIG_NAME", "AlreadyThere", "InitResult", "write_development_config"]

CONFIG_NAME: Final = "customer-context.toml"
"""Name of the configuration file in its folder."""

_CLIENT: Final = "orc_main"
_ADMIN: Final = "secops"
_CLIENT_KEY: Final = "orchestrator/client.jwk.json"
_SUBJECT_KEY: Final = "orchestrator/subject.jwk.json"
_ORCHESTRATOR: Final = "orchestrator/orchestrator.json"
_SEALING_KEY: Final = "sealing.key"
# What is moved into place, in this order; the configuration file comes last.
_ENTRIES: Final = ("data", "clients", "orchestrator", _SEALING_KEY, CONFIG_NAME)


class AlreadyThere(Exception):
    """
    Raised when something of what would be written exists; nothing was written, and `paths` is what is in the way.
    """

    paths: tuple[Path, ...]

    def __init__(self, paths: tuple[Path, ...]) -> None:
        """
        Name what is in the way.
        """
        super().__init__(f"not replaced: {', '.join(map(str, paths))}")
        self.paths = paths


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """
    What was written, and the one secret that is not stored: show it once and forget it.

    `client_key` and `subject_key` are private JWKs: an orchestrator signs client assertions and actor tokens with the first,
    subject tokens with the second.
    """

    config: Path
    files: tuple[Path, ...]
    client_id: str
    client_key: Path
    subject_key: Path
    admin: str
    admin_secret: str = field(repr=False)
    next_command: str


def write_development_config(folder: Path, *, origin: str = "http://127.0.0.1:8000", now: int) -> InitResult:
    """
    Write a development configuration into *folder*, which is made when missing; *now* is in epoch seconds.

    Files are of mode 0600 and folders of mode 0700. On any failure the folder is left as it was. It runs an event loop of its
    own, so it is not for calling from within one.

    Raises:
        AlreadyThere: when a file or folder that would be written exists.
        ValueError: when *origin* is not https, or http on a loopback host, followed by nothing.
        OSError, keys.KeysError: when the folder cannot be written to.
    """
    checked_origin(origin)
    _refuse_to_replace(folder, *_ENTRIES)
    admin_secret = f"cca_{secrets.token_urlsafe(32)}"
    with _workshop(folder) as workshop:
        _write(workshop, origin=origin, admin_secret=admin_secret, now=now)
        found = (path.relative_to(workshop) for path in workshop.rglob("*") if path.is_file())
        written = sorted(path for path in found if path.suffix != ".lock")
        _move(workshop, folder)
    config = folder / CONFIG_NAME
    return InitResult(
        config=config,
        files=tuple(folder / each for each in written),
        client_id=_CLIENT,
        client_key=folder / _CLIENT_KEY,
        subject_key=folder / _SUBJECT_KEY,
        admin=_ADMIN,
        admin_secret=admin_secret,
        next_command=f"customer-context serve --config {shlex.quote(str(config))}",
    )


def _refuse_to_replace(folder: Path, *names: str) -> None:
    # A link that leads nowhere is in the way as well.
    in_the_way = tuple(folder / name for name in names if os.path.lexists(folder / name))
    if in_the_way:
        raise AlreadyThere(in_the_way)


@contextlib.contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=".init-", dir=folder))
    try:
        yield workshop
    except BaseException:
        shutil.rmtree(workshop)
        if is_new:
            folder.rmdir()
        raise
    workshop.rmdir()


def _move(workshop: Path, folder: Path) -> None:
    moved: list[Path] = []
    try:
        for name in _ENTRIES:
            _refuse_to_replace(folder, name)
            (workshop / name).rename(folder / name)
            moved.append(folder / name)
    except BaseException:
        for path in moved:
            path.rename(workshop / path.name)
        raise


def _write(folder: Path, *, origin: str, admin_secret: str, now: int) -> None:
    for name in ("data", "clients", "orchestrator"):
        (folder / name).mkdir(mode=0o700)
    for private, public in ((_CLIENT_KEY, f"{_CLIENT}.jwks.json"), (_SUBJECT_KEY, f"{_CLIENT}.subjects.jwks.json")):
        _write_key(generate_key(), private=folder / private, public=folder / "clients" / public)
    facts = {
        "issuer": f"{origin}/w/demo",
        "client_id": _CLIENT,
        "namespace": "shop-login",
        "audience": "https://api.shop.example",
        "agent": "agt_support",
    }
    _write_file(folder / _ORCHESTRATOR, json.dumps(facts, indent=2) + "\n")
    sealing_key = generate_sealing_key(f"dev-{datetime.fromtimestamp(now, UTC):%Y-%m}")
    write_sealing_key(folder / _SEALING_KEY, sealing_key)
    digest = sha256(admin_secret.encode("ascii")).hexdigest()
    config = folder / CONFIG_NAME
    _write_file(config, _TOML.format(origin=origin, sealing_id=sealing_key.id, admin_digest=digest))
    settings = load_settings(config, {})
    build_registry(settings)
    sealing_keys = load_sealing_keys(settings)
    for each in settings.workspaces:
        ring = create_ring(each.name, now=now, times=key_times(settings))
        store = FileKeyStore(ring_path(settings, each.name), each.name, sealing_keys)
        asyncio.run(store.save(ring, expect=0))


def _write_key(key: SigningKey, *, private: Path, public: Path) -> None:
    _write_file(private, json.dumps(key.private_jwk.reveal(), indent=2) + "\n")
    _write_file(public, json.dumps({"keys": [dict(key.public_jwk)]}, indent=2) + "\n")


def _write_file(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)


_TOML: Final = """\
# Development configuration, written by `customer-context init`. Paths are relative to this file.
# Check it with `customer-context config check`, start the service with `customer-context serve`.
# Behind # are the keys that are not needed here, with their defaults where they have one. A variable goes before the
# file: CUSTOMER_CONTEXT_REDIS_URL, CUSTOMER_CONTEXT_LIMITS__CLIENT_BURST; arrays are JSON there.

origin = "{origin}"            # every issuer URL begins with it; https anywhere but on this machine
data_dir = "data"                           # sealed key rings and audit trails; keep it, and back it up
log_format = "console"                      # "json" where logs are collected
#log_level = "info"
#trusted_proxies = ["10.0.0.0/8"]           # whose X-Forwarded-For says who asks
#redis_url = "redis://127.0.0.1:6379"       # what instances and workers share; or redis+sentinel://, redis+cluster://
#redis_allow_eviction = false
#keys_redis_url = "redis://127.0.0.1:6380"  # another one for rings and trails
#keys_redis_allow_volatile = false
#shared_audiences = []                      # APIs that several workspaces may name

#[limits]                                   # 0 turns one off
#client_per_second = 100                    # requests of a client ...
#client_burst = 200                         # ... and at once after a while
#customer_per_minute = 120                  # ... and for one customer
#wrong_secrets_per_minute = 10              # for a name, and from an address

#[jwks]                                     # how long the key set may be kept: both bound what a revocation takes
#max_age_s = 120
#stale_if_error_s = 120

[[sealing_keys]]                            # opens the rings: the first seals, all open; the same at every instance
id = "{sealing_id}"
file = "sealing.key"                        # in production a mounted secret

[[workspaces]]                              # read again on SIGHUP, but for name and path; the rest needs a restart
name = "demo"
path = "/w/demo"                            # issuer = origin + path
#revoked_kids = []                          # keys that are revoked even where their store is down

  [[workspaces.connections]]                # one set of customers, and the APIs that know them
  name = "shop"
  namespace = "shop-login"                  # subject tokens must name it
  audiences = ["https://api.shop.example"]  # a name for the API; nothing is ever sent there
  scopes = ["orders:read"]

    [[workspaces.connections.actions]]      # a write: minted only as confirmed, with its arguments
    name = "cancel_order"
    audience = "https://api.shop.example"
    scopes = ["orders:write"]               # minted only together with this action
    confirmation = "client"                 # the orchestrator vouches for it; "none" asks nobody
    #selector = "customerId"                # an argument that the service fills with namespace:sub

    #[workspaces.connections.provider]      # where the customers sign in; without it the orchestrator vouches for them
    #issuer = "https://login.shop.example"
    #algorithms = ["RS256"]                 # and ES256, PS256, EdDSA
    #jwks_file = "provider.jwks.json"       # without it the keys are found by OpenID Connect Discovery
    #sign_in_lifetime_s = 28800
      #[workspaces.connections.provider.clients]
      #"shop-web" = "orc_main"              # its client id, and which client below brings the tokens issued to it
      #[workspaces.connections.provider.acr]
      #"urn:shop:mfa" = "high"              # its acr, exactly; what is not listed is low
      #[[workspaces.connections.provider.amr]]
      #values = ["pwd", "otp"]              # a complete set of its amr; the higher level counts
      #level = "standard"

  [[workspaces.clients]]                    # an orchestrator; what is not listed is refused
  client_id = "orc_main"
  jwks_file = "clients/orc_main.jwks.json"  # public halves of its keys, private ones: orchestrator/; or secret_sha256
  subject_jwks_file = "clients/orc_main.subjects.jwks.json"
  connections = ["shop"]
  #audiences = ["https://api.shop.example"] # only these of its connections
  agents = ["agt_support"]
  scopes = ["orders:read", "orders:write"]
  actions = ["cancel_order"]
  max_asserted_level = "high"               # so that step-up can be tried; "standard" is the default
  #subject_tokens = ["asserted"]            # its own word; from a provider "sign_in", or "id_token" for a single token
  #require_actor_token = false

  # Another secret and its digest, for an admin or a client:
  # python3 -c 'import hashlib as h, secrets; s = secrets.token_urlsafe(32); print(s, h.sha256(s.encode()).hexdigest())'
  [[workspaces.admins]]
  name = "secops"
  secret_sha256 = ["{admin_digest}"]  # of the secret shown once; or jwks_file
  permissions = ["keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"]
"""
