"""
An identity provider that changes with the configuration, in a service that runs and is asked over HTTP.
"""

import asyncio
import time

import pytest
from litestar.testing import TestClient

from issuer.app import create_app
from issuer.orchestrator import Ask, load_orchestrator
from issuer.subjects import ID_TOKEN_TYPE

from .provider import IdentityProvider, id_token
from .test_reload import Running

PROVIDER = """\
  [workspaces.connections.provider]
  issuer = "{issuer}"
  algorithms = ["{algorithm}"]
    [workspaces.connections.provider.clients]
    "app-1" = "orc_main"

  [[workspaces.clients]] """


class SigningIn(Running):
    """
    A service whose customers sign in at one of two identity providers.
    """

    def __init__(self, folder, idp):
        super().__init__(folder)
        self.table = None
        self.change("subject_jwks_file", 'subject_tokens = ["asserted", "id_token"]\n  subject_jwks_file')
        self.provide(idp)

    def provide(self, idp, algorithm="RS256"):
        """
        Configure a provider in the place of the one before.
        """
        table = PROVIDER.format(issuer=idp.issuer, algorithm=algorithm)
        self.change(self.table or "  [[workspaces.clients]] ", table)
        self.table = table

    def exchange(self, client, idp, **token):
        """
        Exchange an ID token that was issued just now, and return the error code, if any.
        """
        orchestrator, now = load_orchestrator(self.folder / "orchestrator"), time.time()
        ask = Ask(sub="x", acr="low", auth_time=int(now), audience=orchestrator.audience, scope="orders:read")
        form = asyncio.run(orchestrator.form(ask, now))
        brought = {"subject_token": id_token(issuer=idp.issuer, now=now, **token), "subject_token_type": ID_TOKEN_TYPE}
        return client.post("/w/demo/oauth/token", data={**form, **brought}).json().get("error")


@pytest.fixture
def idps():
    """
    Serve two identity providers.
    """
    sites = [IdentityProvider("rsa-1", "ec-1", Cache_Control="max-age=600") for _ in range(2)]
    yield sites
    for site in sites:
        site.stop()


def test_a_provider_may_change_while_the_service_runs(tmp_path, idps):
    """
    Another algorithm, and another provider: from the next request on, and the one before is a stranger then.
    """
    first, second = idps
    running = SigningIn(tmp_path / "dev", first)
    with TestClient(create_app(running.service, reloader=running.reloader)) as client:
        running.reload()
        good = running.exchange(client, first)
        running.provide(first, "ES256")
        running.reload()
        other_algorithm = running.exchange(client, first), running.exchange(client, first, alg="ES256")
        running.provide(second)
        running.reload()
        other_provider = running.exchange(client, first, alg="ES256"), running.exchange(client, second)
        kept = list(running.service.provider_keys._sources)

    assert good is None
    assert other_algorithm == ("invalid_request", None)
    assert other_provider == ("invalid_request", None)
    assert kept == [(second.issuer, frozenset({"RS256"}))]
    assert len(first.asked) == 4


def test_a_provider_that_is_configured_wrongly_changes_nothing(tmp_path, idps):
    """
    What was configured before goes on.
    """
    running = SigningIn(tmp_path / "dev", idps[0])
    with TestClient(create_app(running.service, reloader=running.reloader)) as client:
        running.reload()
        running.provide(idps[0], "HS256")
        event, facts = running.reload()
        after = running.exchange(client, idps[0])

    assert event == "configuration_refused"
    assert "algorithms[0]: must be 'RS256', 'ES256', 'PS256' or 'EdDSA'" in facts["problem"]
    assert after is None
