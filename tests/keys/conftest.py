"""
What the tests of this package share: a fixed clock, rings made at it, sealing keys, and a store in a folder of its own.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey

from keys import FileKeyStore, KeyTimes, SealingKey, SealingKeys, create_ring, import_private_jwk

NOW = 1_796_040_000


@pytest.fixture
def now():
    return NOW


@pytest.fixture(scope="session")
def times():
    return KeyTimes()


@pytest.fixture(scope="session")
def ring(times):
    """
    A ring of workspace `acme`, made at `now`; frozen, so every test may have the same.
    """
    return create_ring("acme", now=NOW, times=times)


@pytest.fixture(scope="session")
def other_ring(times):
    return create_ring("globex", now=NOW, times=times)


@pytest.fixture(scope="session")
def sealing():
    return SealingKeys(SealingKey("2026-11", b"\x11" * 32))


@pytest.fixture
def quick_folder(tmp_path):
    """
    A folder in memory where there is one: a process that is killed leaves the same behind there, and nothing waits for a disk.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rings" / "acme.jwe"


@pytest.fixture
def store(path, sealing):
    return FileKeyStore(path, "acme", sealing)


@pytest.fixture(scope="session")
def demo_key():
    """
    The demo key of the worked example, derived from a public label.
    """
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    label = hashlib.sha256(b"caplo demo signing key, TEST ONLY").digest()
    private = ec.derive_private_key(int.from_bytes(label, "big") % (order - 1) + 1, ec.SECP256R1())
    return import_private_jwk(ECKey.import_key(private).as_dict(private=True))
