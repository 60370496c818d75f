"""
A service whose connections have an identity provider, and customers who sign in there.
"""

import json
from dataclasses import replace
from itertools import count

from issuer.provider_key_set import parse_provider_keys
from issuer.registry import Registry
from issuer.subjects import ID_TOKEN_TYPE, SIGN_IN_TYPE

from .provider import id_token, key_set, logout_token, provider, workspace
from .site import Site
from .world import SECRETS, basic, registry

KINDS = frozenset({"asserted", "id_token", "sign_in"})


def with_provider(*, kinds=KINDS, namespace="bank-login", **changes):
    """
    Return the usual registry, in which the customers of the shop sign in at an identity provider with keys that are fixed.

    Clients bring these *kinds* of subject token; *namespace* is that of the bank's customers.
    """
    keys = parse_provider_keys(key_set("rsa-1", "ec-1", "ed-1"), frozenset({"RS256", "PS256", "ES256", "EdDSA"}))
    usual = {
        "keys": keys,
        "algorithms": frozenset({"RS256", "ES256"}),
        "clients": {"app-1": "orc_main", "app-2": "orc_second", "app-3": "orc_basic", "app-4": "c1"},
    }
    shop = provider(**(usual | changes))
    found = []
    for name in ("root", "acme"):
        made = workspace(shop, name=name)
        clients = {each.client_id: replace(each, subject_tokens=frozenset(kinds)) for each in made.clients.values()}
        connections = (made.connections[0], replace(made.connections[1], namespace=namespace))
        found.append(replace(made, clients=clients, connections=connections))
    return Registry(origin=registry().origin, workspaces=tuple(found))


class SignedIn(Site):
    """
    The service, the provider's tokens, and the calls that clients make about sign-ins.
    """

    def __init__(self, configured=None, **parts):
        super().__init__(configured or with_provider(), **parts)
        self.ids = count(1)

    def id_token(self, *, aud="app-3", **changes):
        """
        Return an ID token of its own: no two are the same.
        """
        return id_token(**{"now": self.clock.at, "aud": aud, "jti": f"id-{next(self.ids)}", **changes})

    def logout_token(self, *, aud="app-3", **changes):
        return logout_token(**{"now": self.clock.at, "aud": aud, "jti": f"logout-{next(self.ids)}", **changes})

    def record(self, token=None, *, client="orc_basic", workspace="root", authorization=None, **members):
        """
        Record a sign-in; return status, headers and what was answered.
        """
        body = {"id_token": self.id_token() if token is None else token, **members}
        return self.about("POST", "/sign-ins", body, client=client, workspace=workspace, authorization=authorization)

    def about(self, method, path, body=None, *, client="orc_basic", workspace="root", authorization=None):
        """
        Call a route of sign-ins; *body* is a mapping, or the very octets.
        """
        lines = [("Authorization", authorization or basic(client, SECRETS[client]))]
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            lines.append(("Content-Type", "application/json"))
        self.events.clear()
        status, headers, text = self.call(method, path, lines, octets, workspace=workspace)
        return status, headers, json.loads(text) if text else None

    def log_out(self, token=None, *, workspace="root", body=None):
        octets = body or f"logout_token={self.logout_token() if token is None else token}".encode()
        lines = [("Content-Type", "application/x-www-form-urlencoded")]
        self.events.clear()
        status, headers, text = self.call("POST", "/backchannel-logout", lines, octets, workspace=workspace)
        return status, headers, json.loads(text) if text else None

    def ask_with(self, sign_in_id, *, client="orc_basic", **parameters):
        """
        Ask for a token with the id of a sign-in.
        """
        return self.ask(client=client, subject_token=sign_in_id, subject_token_type=SIGN_IN_TYPE, **parameters)

    def exchange(self, token=None, *, client="orc_basic", **parameters):
        """
        Ask for a token with an ID token.
        """
        subject = self.id_token() if token is None else token
        return self.ask(client=client, subject_token=subject, subject_token_type=ID_TOKEN_TYPE, **parameters)

    @property
    def reasons(self):
        """
        What the log says why sign-ins were refused.
        """
        return [facts["reason"] for event, facts in self.events if event == "sign_in_refused"]
