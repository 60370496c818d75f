"""
The lock that a fork does not carry over in a locked state.
"""

import os

from verifier import MemoryReplayStore
from verifier.process_lock import ProcessLock


def test_a_child_does_not_wait_for_a_lock_that_its_parent_held():
    """
    A fork while another thread holds the lock leaves the child free to go on.
    """
    lock = ProcessLock()

    with lock():
        child = os.fork()
        if not child:
            os._exit(0 if lock().acquire(timeout=1) else 1)
        status = os.waitpid(child, 0)[1]

    assert os.waitstatus_to_exitcode(status) == 0


def test_a_memory_store_answers_in_the_child_of_a_fork():
    """
    A store whose lock was held at the fork still tells first uses from second ones in the child.
    """
    store = MemoryReplayStore()

    with store._lock():
        child = os.fork()
        if not child:
            answers = (store.use("jti", 4_102_444_800), store.use("jti", 4_102_444_800))
            os._exit(0 if answers == (True, False) else 1)
        status = os.waitpid(child, 0)[1]

    assert os.waitstatus_to_exitcode(status) == 0


def test_one_process_has_one_lock():
    """
    Whoever asks in one process gets the same lock.
    """
    lock = ProcessLock()

    assert lock() is lock()
