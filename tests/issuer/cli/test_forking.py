"""
A fork waits for threads that have ended, and for no others.
"""

import os
import subprocess
import sys
import threading
import time

from issuer.cli.forking import fork

CHILD = """
import os, threading
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from issuer.cli.forking import fork

key = ec.generate_private_key(ec.SECP256R1())
sign = lambda: key.sign(b"x", ec.ECDSA(SHA256()))
for _ in range(150):
    thread = threading.Thread(target=sign)
    thread.start()
    thread.join()
    pid = fork()
    if pid == 0:
        thread = threading.Thread(target=sign)
        thread.start()
        thread.join()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_no_child_waits_for_a_lock_of_a_thread_that_has_ended():
    """
    Signing in a thread, forking right after it was joined, and signing in a thread of the child goes well every time.
    """
    subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=60)


def test_a_thread_that_stays_is_not_waited_for_without_end():
    """
    With a thread that goes on, the fork comes all the same, about a second later.
    """
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    began = time.monotonic()

    pid = fork()
    if pid == 0:
        os._exit(7)
    took = time.monotonic() - began
    over.set()
    thread.join()

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert 0.9 < took < 10
