"""
Instances of a service that have a Redis in common, and all that they remember.
"""

from contextlib import contextmanager

from issuer.limits import Rates
from issuer.state_redis import redis_state
from verifier.replay_redis import AsyncRedisReplayStore

from .estate import SEALING, with_admins
from .records import pass_by
from .redis_kinds import LIMIT_S
from .site import Site
from .world import registry


class PatientStore(AsyncRedisReplayStore):
    """
    A replay store that waits for its Redis for as long as it takes.
    """

    @classmethod
    def from_url(cls, url, **options):
        return super().from_url(url, deadline_ms=int(LIMIT_S * 1000), **options)


class Instance(Site):
    """
    A service whose state is in a Redis.
    """

    def __init__(self, url, *, beside=None, **parts):
        configured = parts.pop("configured", None) or with_admins(registry())
        state = redis_state(url, SEALING, Rates(), now=self.now)
        super().__init__(configured, beside=beside, state=state, **parts)

    def now(self):
        return self.clock()


def instances_on(url, number=2, **parts):
    """
    Build instances that share a Redis, their keys, trails and clock.
    """
    first = Instance(url, **parts)
    return [first, *(Instance(url, beside=first, **parts) for _ in range(number - 1))]


@contextmanager
def closed(sites):
    try:
        yield sites
    finally:
        for site in sites:
            site.close()


def wait(sites, server, seconds):
    """
    Let time pass for instances and their Redis; it goes on by itself there as well.
    """
    sites[0].clock.at += seconds
    with server.client() as client:
        pass_by(client, seconds)


def records_of(server, kind="cc:i:"):
    """
    Return what a Redis has under the names of records of one kind.
    """
    with server.client() as client:
        return [client.hgetall(name) for name in client.keys(f"{kind}{{*}}:*")]


def mints_of(server):
    return [int(record[b"mints"]) for record in records_of(server)]
