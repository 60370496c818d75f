"""
The configuration that two instances share: one workspace, two orchestrators with two agents each, one admin, one sealing key.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from issuer.orchestrator import Orchestrator
from keys import KeyTimes, SealingKeys, generate_key, generate_sealing_key, write_sealing_key

__all__ = ["ADMIN", "AUDIENCE", "CLIENTS", "WORKSPACE", "Configured", "write_configuration"]

WORKSPACE, AUDIENCE, ADMIN, SEALING_ID = "soak", "https://api.shop.example", "secops", "soak-1"
CLIENTS = ("orc_main", "orc_second")

CONFIG = """
origin = "{origin}"
data_dir = "data"
redis_url = "{redis}"
log_level = "warning"
log_format = "console"
jwks = {{ max_age_s = {times.max_age_s}, stale_if_error_s = {times.stale_if_error_s} }}
limits = {{ client_per_second = 0, customer_per_minute = 0 }}

[[sealing_keys]]
id = "{sealing}"
file = "sealing.key"

[[workspaces]]
name = "{workspace}"
path = "/w/{workspace}"

  [[workspaces.connections]]
  name = "shop"
  namespace = "shop-login"
  audiences = ["{audience}"]
  scopes = ["orders:read"]

    [[workspaces.connections.actions]]
    name = "cancel_order"
    audience = "{audience}"
    scopes = ["orders:write"]
    confirmation = "client"

{clients}
  [[workspaces.admins]]
  name = "{admin}"
  secret_sha256 = ["{digest}"]
  permissions = ["keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"]
"""
CLIENT = """
  [[workspaces.clients]]
  client_id = "{client}"
  jwks_file = "{client}.jwks.json"
  subject_jwks_file = "{client}.subjects.jwks.json"
  connections = ["shop"]
  agents = ["agt_support", "agt_second"]
  scopes = ["orders:read", "orders:write"]
  actions = ["cancel_order"]
"""


@dataclass(frozen=True)
class Configured:
    """
    The file, and everything that is secret in it.

    `orchestrators` has one for each client, and by the name of the second agent the one that uses it.
    """

    path: Path
    issuer: str
    sealing: SealingKeys
    orchestrators: Mapping[str, Orchestrator]
    admin_secret: str = field(repr=False)


def write_configuration(folder: Path, *, origin: str, redis: str, times: KeyTimes) -> Configured:
    """
    Write the configuration and the files that it names.
    """
    secret, sealing_key = f"cca_{secrets.token_urlsafe(32)}", generate_sealing_key(SEALING_ID)
    write_sealing_key(folder / "sealing.key", sealing_key)
    issuer = f"{origin}/w/{WORKSPACE}"
    orchestrators = {client: _orchestrator(folder, issuer, client) for client in CLIENTS}
    orchestrators["agt_second"] = replace(orchestrators[CLIENTS[0]], agent="agt_second")
    text = CONFIG.format(
        origin=origin,
        redis=redis,
        times=times,
        sealing=sealing_key.id,
        workspace=WORKSPACE,
        audience=AUDIENCE,
        clients="".join(CLIENT.format(client=client) for client in CLIENTS),
        admin=ADMIN,
        digest=sha256(secret.encode()).hexdigest(),
    )
    path = folder / "config.toml"
    path.write_text(text)
    return Configured(path, issuer, SealingKeys(sealing_key), orchestrators, secret)


def _orchestrator(folder: Path, issuer: str, client: str) -> Orchestrator:
    client_key, subject_key = generate_key(), generate_key()
    for name, key in ((f"{client}.jwks.json", client_key), (f"{client}.subjects.jwks.json", subject_key)):
        (folder / name).write_text(json.dumps({"keys": [dict(key.public_jwk)]}))
    return Orchestrator(
        issuer=issuer,
        client_id=client,
        namespace="shop-login",
        audience=AUDIENCE,
        agent="agt_support",
        client_key=client_key,
        subject_key=subject_key,
        # Tokens live as long as they can, whatever a busy machine makes of the time in between.
        lifetime_s=300,
    )
