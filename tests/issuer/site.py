"""
A service whose clocks, stores and keys the tests hold in their hands, and valid token requests to break.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from http.client import HTTPConnection
from itertools import count
from typing import get_args
from urllib.parse import urlencode

from litestar.testing import TestClient

from issuer.app import create_app
from issuer.client_entry import ClientEntry
from issuer.clients import ASSERTION_TYPE
from issuer.errors import OAuthError
from issuer.exchange import GRANT_TYPE
from issuer.limits import Rates
from issuer.limits_memory import MemoryLimits
from issuer.metrics import Metrics
from issuer.mint_counts import MintCounts
from issuer.oauth import OAuthServer
from issuer.rings import LiveRing
from issuer.service import Service
from issuer.source import Sources
from issuer.state import memory_state
from issuer.subject import JWT_TOKEN_TYPE
from issuer.token_endpoint import TokenEndpoint, TokenRequest
from keys import KeyTimes
from verifier import CustomerContextVerifier, MemoryReplayStore
from verifier.compact import parse_compact

from .estate import SEALING, MemoryTrail, RingStore, office_of
from .world import NOW, ORIGIN, SECRETS, SHOP, basic, changed, registry, ring_of, signed


@dataclass
class Clock:
    """
    A clock that stands still until it is moved, or goes on by `step` seconds each time somebody looks.
    """

    at: float
    step: float = 0.0

    def __call__(self):
        self.at += self.step
        return self.at


class State:
    """
    What the service remembers, which a test may begin anew or replace by something that fails.

    `claims` are the keys that mints were claimed under, one for each claim.
    """

    def __init__(self, clock, monotonic):
        self.clock, self.monotonic = clock, monotonic
        self.renew()

    def renew(self):
        state = memory_state(self.clock, SEALING, MemoryLimits(Rates(), self.monotonic))
        self.assertion_ids, self.idempotency, self.limits = state.assertion_ids, state.idempotency, state.limits
        self.claims = []

    async def use(self, *asked):
        return await self.assertion_ids.use(*asked)

    async def claim(self, key, *asked):
        self.claims.append(key)
        return await self.idempotency.claim(key, *asked)

    async def request(self, *asked):
        return await self.limits.request(*asked)

    async def wrong_secret(self, *asked):
        return await self.limits.wrong_secret(*asked)


class Answer:
    """
    An answer of the token endpoint, which has the form of one whatever was asked (RFC 6749 section 5).
    """

    def __init__(self, status, headers, text, reason):
        self.status, self.headers, self.text, self.reason = status, headers, text, reason
        self.members = json.loads(text)
        self.error = self.members.get("error")
        assert self.headers["content-type"] == "application/json"
        assert (self.headers["cache-control"], self.headers["pragma"]) == ("no-store", "no-cache")
        assert ("www-authenticate" in self.headers) == (self.status == 401)
        if self.status == 200:
            assert "error" not in self.members
        else:
            assert self.error in get_args(OAuthError)
            assert self.members.keys() == {"error", "error_description"}
            assert set(self.members["error_description"]) <= {*map(chr, range(0x20, 0x7F))} - {'"', "\\"}

    @property
    def refusal(self):
        return self.status, self.error, self.reason

    @cached_property
    def token(self):
        assert self.status == 200, (self.members, self.reason)
        return self.members["access_token"]

    @cached_property
    def claims(self):
        return parse_compact(self.token).claims

    @property
    def granted(self):
        return self.members["authorization_details"][0]


class Site:
    """
    The service with everything it is made of, and the requests of an orchestrator that it knows.

    A claim or member that is `DROP` is left out, and so is a parameter that is None. With an `address`, requests go to the
    server that listens there; without, to the application in this process. A site *beside* another one is a second instance:
    it has the same keys, trails and clock. With a *state*, the service remembers there; `state` is its own memory otherwise.
    Proxies in *trusted* networks are believed.
    """

    def __init__(self, configured=None, *, beside=None, times=None, state=None, trusted=()):
        self.clock = Clock(NOW) if beside is None else beside.clock
        self.monotonic, self.events, self.failures = Clock(1000.0), [], []
        self.state, self.address, self._client = State(self.clock, self.monotonic), None, None
        self.numbers = count() if beside is None else beside.numbers
        self.registry_in_use = configured or registry()
        self.ring_stores = {each.name: RingStore(ring_of(each.name)) for each in self.registry_in_use}
        self.trails = {each.name: MemoryTrail() for each in self.registry_in_use}
        if beside is not None:
            self.ring_stores, self.trails = beside.ring_stores, beside.trails
        rings = {name: asyncio.run(self._opened(name, store)) for name, store in self.ring_stores.items()}
        mints, times = MintCounts(self.clock()), times or KeyTimes()
        self.service = Service(
            registry=self.registry_in_use,
            rings=rings,
            offices={
                each.name: office_of(
                    each,
                    rings[each.name],
                    self.ring_stores[each.name],
                    times=times,
                    mints=mints,
                    now=self.clock,
                    report=self._report,
                    trail=self.trails[each.name],
                )
                for each in self.registry_in_use
            },
            state=state
            or replace(
                memory_state(self.clock, SEALING, limits=self.state),
                assertion_ids=self.state,
                idempotency=self.state,
            ),
            metrics=Metrics(),
            mints=mints,
            times=times,
            report=self._report,
            report_failure=self.failures.append,
            now=self.clock,
            monotonic=self.monotonic,
            sources=Sources(trusted),
        )

    def renew(self):
        self.clock.at, self.clock.step, self.monotonic.at = NOW, 0.0, 1000.0
        for store in self.ring_stores.values():
            store.failure = None
        self.state.renew()
        self.events.clear()
        self.failures.clear()

    def lift_limits(self):
        """
        Let clients ask as often as they like, until the site is renewed.
        """
        self.state.limits = MemoryLimits(Rates(client=None, customer=None), self.monotonic)

    def lose_rings(self):
        """
        Let the stores of the rings fail, until their lease is over.
        """
        for store in self.ring_stores.values():
            store.failure = OSError("secret-marked-1")
        self.monotonic.at += 15.5

    def close(self):
        if self._client is not None:
            self._client.__exit__(None, None, None)

    @cached_property
    def http(self):
        self._client = TestClient(create_app(self.service), base_url=ORIGIN)
        return self._client.__enter__()

    def poll(self, workspace="root"):
        """
        Look at the keys now, as the service does twice a second.
        """
        assert self.http
        self._client.blocking_portal.call(self.service.rings[workspace].poll)

    def workspace(self, name="root"):
        return self.registry_in_use.workspace(name)

    def client_assertion(self, client="orc_main", *, workspace="root", key="client-1", header=(), **changes):
        claims = self._claims(client, workspace) | {"sub": client}
        return signed(changed(claims, changes), typ="client-authentication+jwt", key=key, header=header)

    def subject_token(self, client="orc_main", *, workspace="root", key="subject-1", header=(), **changes):
        event = {
            "sub": "cus_48213",
            "namespace": "shop-login",
            "acr": "standard",
            "auth_time": int(self.clock.at) - 360,
        }
        claims = self._claims(client, workspace) | event | {"act": {"sub": "agt_support"}}
        return signed(changed(claims, changes), typ="caplo-subject+jwt", key=key, header=header)

    def actor_token(self, client="orc_main", *, workspace="root", key="client-1", header=(), **changes):
        claims = self._claims(client, workspace) | {"sub": "agt_orders"}
        return signed(changed(claims, changes), typ="caplo-actor+jwt", key=key, header=header)

    def details(self, **changes):
        members = {
            "type": "caplo_action",
            "action": "cancel_order",
            "arguments": {"orderId": "A-1001"},
            "idempotencyKey": f"idk-of-the-tests-{next(self.numbers)}",
            "confirmation": {"by": "client", "at": int(self.clock.at) - 20},
        }
        return json.dumps([changed(members, changes)])

    def form(self, *, client="orc_main", workspace="root", **parameters):
        form = {
            "grant_type": GRANT_TYPE,
            "subject_token": self.subject_token(client, workspace=workspace),
            "subject_token_type": JWT_TOKEN_TYPE,
            "resource": SHOP,
        }
        if client not in SECRETS:
            assertion = self.client_assertion(client, workspace=workspace)
            form |= {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
        return {name: value for name, value in {**form, **parameters}.items() if value is not None}

    def actor(self, token=None):
        return {"actor_token": token or self.actor_token(), "actor_token_type": JWT_TOKEN_TYPE}

    def ask(self, *, client="orc_main", workspace="root", **parameters):
        headers = {"Authorization": basic(client, SECRETS[client])} if client in SECRETS else {}
        return self.post(self.form(client=client, workspace=workspace, **parameters), headers, workspace=workspace)

    def post(self, form, headers=(), *, workspace="root", method="POST", query=""):
        """
        Send *form*, a mapping or the very octets of a body; another media type than the form's is a header.
        """
        body = urlencode(form).encode() if isinstance(form, Mapping) else form
        lines = [*(headers.items() if isinstance(headers, Mapping) else headers)]
        if not any(name.lower() == "content-type" for name, _ in lines):
            lines.append(("Content-Type", "application/x-www-form-urlencoded"))
        sent = [(name, value) for name, value in lines if value is not None]
        self.events.clear()
        answered = self._send(method, f"{self.workspace(workspace).path}/oauth/token{query}", body, sent)
        refused = (facts["reason"] for event, facts in self.events if event == "token_refused")
        return Answer(*answered, next(refused, None))

    def _send(self, method, url, body, lines):
        if self.address is None:
            response = self.http.request(method, url, content=body, headers=lines)
            return response.status_code, response.headers, response.text
        with closing(HTTPConnection(*self.address)) as connection:
            # Line by line: a client that joins equal names, as TestClient does, would hide them.
            connection.putrequest(method, url, skip_accept_encoding=True)
            for name, value in [*lines, ("Content-Length", str(len(body)))]:
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()

    def endpoint(self, workspace="root"):
        service, server = self.service, OAuthServer(self.workspace(workspace), self.clock)
        return TokenEndpoint(
            self.workspace(workspace),
            ring=service.rings[workspace],
            server=server,
            entry=ClientEntry(self.workspace(workspace), server, service.state, service.report),
            state=service.state,
            events=service.sign_in_events(self.workspace(workspace)),
            metrics=service.metrics,
            mints=service.mints,
            report=service.report,
            now=service.now,
        )

    def token_request(self, authorization=(), **parameters):
        body = urlencode(self.form(**parameters)).encode()
        return TokenRequest(authorization=authorization, content_type="application/x-www-form-urlencoded", body=body)

    def call(self, method, path, lines, body=b"", *, workspace="root"):
        """
        Send a call of any kind below an issuer; return status, headers and text.
        """
        return self._send(method, self.workspace(workspace).path + path, body, lines)

    def verifier(self, audience=SHOP, *, workspace="root", **options):
        """
        Build the verifier of an API, on the same clock and the workspace's published keys.
        """
        settings = {"replay_store": MemoryReplayStore(now=self.clock), "now": self.clock, **options}
        jwks = ring_of(workspace).jwks(NOW)
        return CustomerContextVerifier(
            issuer=self.workspace(workspace).issuer, audience=audience, jwks=jwks, **settings
        )

    def _claims(self, client, workspace):
        iat, issuer = int(self.clock.at), self.workspace(workspace).issuer
        return {"iss": client, "aud": issuer, "iat": iat, "exp": iat + 60, "jti": f"jti-{next(self.numbers)}"}

    def _report(self, event, **facts):
        self.events.append((event, facts))
        self.report_too(event, **facts)

    @staticmethod
    def report_too(event, **facts):
        """
        Take every event as well; a test may put something of its own here.
        """

    async def _opened(self, name, store):
        return await LiveRing.open(name, store, now=self.clock, monotonic=self.monotonic, report=self._report)
