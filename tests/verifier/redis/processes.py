"""
Many processes that present the same tokens at the same time.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

__all__ = ["race"]

_LIMIT_S = 120


def race(
    url: str, *, processes: int, tokens: Sequence[str], threads: int = 1, deadline_ms: int = 30_000
) -> dict[str, list[str]]:
    """
    Use every identifier once in each thread of each process, and return what was heard of each.

    All of them wait until everyone is ready.
    """
    command = [sys.executable, __file__, url, str(threads), str(deadline_ms), json.dumps(list(tokens))]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    try:
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        heard: dict[str, list[str]] = {token: [] for token in tokens}
        for process in started:
            out, _ = process.communicate(timeout=_LIMIT_S)
            assert process.returncode == 0
            for token, outcome in json.loads(out):
                heard[token].append(outcome)
        return heard
    finally:
        for process in started:
            process.kill()
            process.wait()


def main(url: str, threads: int, deadline_ms: int, tokens: Sequence[str]) -> None:
    from verifier import ReplayStoreUnavailable  # noqa: PLC0415 -- of the process that races
    from verifier.replay_redis import RedisReplayStore  # noqa: PLC0415

    heard: list[tuple[str, str]] = []
    store = RedisReplayStore.from_url(url, deadline_ms=deadline_ms)
    scope = store.scoped("https://issuer.test", "https://api.test")

    def run() -> None:
        for token in tokens:
            try:
                first = scope.use(token, int(time.time()) + 60, time.time() - 1)
                heard.append((token, "accept" if first else "replay"))
            except ReplayStoreUnavailable:
                heard.append((token, "deny"))

    running = [threading.Thread(target=run) for _ in range(threads)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    store.close()
    sys.stdout.write(json.dumps(heard))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
