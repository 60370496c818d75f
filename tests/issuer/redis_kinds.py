"""
The kinds of Redis that a service may be pointed at: one server, one behind a Sentinel, a cluster.
"""

import time

LIMIT_S = 20.0


def said(server, command):
    with server.client() as client:
        return client.execute_command(command)


def eventually(holds):
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sentinel_url(start_redis, server, options="--sentinel"):
    watch = f"sentinel monitor main 127.0.0.1 {server.port} 1\n"
    sentinel = start_redis(options, config=watch)
    return f"redis+sentinel://127.0.0.1:{sentinel.port}/main"


def begin_epoch(server, *, age_s):
    """
    Write the epoch record of one server as a replay store would have done it *age_s* ago.
    """
    with server.client() as client:
        seconds, micros = client.time()
        identity = client.info("replication")["master_replid"]
        client.set("cc:e", f"{identity} {seconds * 1000 + micros // 1000 - int(age_s * 1000)}")
