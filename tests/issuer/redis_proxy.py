"""
What stands between a service and its Redis, and loses answers.
"""

import asyncio
from contextlib import asynccontextmanager


async def whole(reader):
    """
    Read one reply of RESP 2 as it stands.
    """
    line = await reader.readuntil(b"\r\n")
    if line[:1] == b"$" and line != b"$-1\r\n":
        return line + await reader.readexactly(int(line[1:]) + 2)
    if line[:1] == b"*":
        return line + b"".join([await whole(reader) for _ in range(int(line[1:]))])
    return line


async def command(reader):
    """
    Read one command, and return it as octets and as words.
    """
    octets = await whole(reader)
    return octets, octets.split(b"\r\n")[2::2]


@asynccontextmanager
async def lossy(port, *, lose, script=b"EVAL"):
    """
    Pass everything on, but keep the answer to a script back where `lose(number)` says so; the scripts are counted from 1.
    """
    counted = 0
    open_tasks = set()

    async def serve(reader, writer):
        nonlocal counted
        task = asyncio.current_task()
        open_tasks.add(task)
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while True:
                octets, words = await command(reader)
                up_writer.write(octets)
                reply = await whole(up_reader)
                if words[0] == script:
                    counted += 1
                    if lose(counted):
                        continue
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            open_tasks.discard(task)
            up_writer.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tuple(open_tasks):
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)
