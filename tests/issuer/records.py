"""
Records of the service in memory and in Redis, asked alike: time passes when a test says so.
"""

import asyncio

from issuer.redis_connection import RedisConnection
from issuer.redis_url import parse_redis_url

from .world import NOW

# Far more than any answer takes; the machine may be busy.
PATIENCE_S = 20.0


class Kept:
    """
    Records of either kind, and the clock that they are told.
    """

    def __init__(self, build, runner, server=None):
        self.now, self.runner, self.server = NOW, runner, server
        self.connection = None if server is None else RedisConnection(parse_redis_url(server.url), PATIENCE_S)
        self.records = build() if self.connection is None else build(self.connection)

    def run(self, asked):
        async def awaited():
            return await asked

        return self.runner.run(awaited())

    def wait(self, seconds):
        """
        Let time pass: for a Redis, let everything in it come that much closer to its end.
        """
        self.now += seconds
        if self.server is not None:
            with self.server.client() as client:
                pass_by(client, seconds)

    def close(self):
        if self.connection is not None:
            self.run(self.connection.aclose())


def pass_by(client, seconds):
    """
    Bring everything in a Redis that has an end so much closer to it.
    """
    milliseconds = int(seconds * 1000)
    for key in client.keys("*"):
        left = client.pttl(key)
        if client.type(key) == b"zset":
            for member, _ in client.zrange(key, 0, -1, withscores=True):
                client.zincrby(key, -milliseconds, member)
        if left >= 0:
            # An end that has passed takes the key away.
            client.pexpire(key, left - milliseconds)


def kept_in(kind, request, memory, redis, **options):
    """
    Build records in memory, or in the Redis of the tests; they are closed with the test.
    """
    runner = asyncio.Runner()
    server = request.getfixturevalue("redis_server") if kind == "redis" else None
    kept = Kept(lambda *place: (redis if place else memory)(*place, **options), runner, server)

    def close():
        kept.close()
        runner.close()

    request.addfinalizer(close)
    return kept
