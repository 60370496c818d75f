"""
Redis over TLS: the same store through a certificate that has to be right.
"""

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from verifier import ReplayStoreUnavailable
from verifier.replay_redis import RedisReplayStore

from ...redis_server import free_port
from .conftest import BINARIES
from .servers import Epochs, Server

NOW = 1_767_225_600.0


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """
    A server with a certificate of its own; returns it, its port for TLS and the certificate's file.
    """
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = issue(folder)
    port = free_port()
    options = ("--save", "", "--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key))
    more = ("--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no")
    for binary in filter(None, reversed(BINARIES.values())):
        server = Server(folder / "server", *options, *more, binary=binary)
        try:
            server.start()
        except AssertionError:
            continue  # built without TLS
        yield server, port, certificate
        server.stop()
        return
    pytest.skip("there is no server with TLS to start: install redis-server")


def issue(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "redis")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


def test_once_means_once_over_tls(store, secured):
    """
    A certificate that the store is told to trust is trusted, and everything else is as without TLS.
    """
    server, port, certificate = secured
    held = store(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}", now=lambda: NOW)
    held.open()
    Epochs(server).age(3600)
    jti = type(held.store).__name__

    assert held.use(jti, int(NOW) + 50, NOW) is True
    assert held.use(jti, int(NOW) + 50, NOW) is False
    assert held.check()


@pytest.mark.parametrize("face", [RedisReplayStore])
def test_a_silent_server_over_tls_keeps_nobody(store, secured):
    """
    The deadline holds over TLS too.
    """
    server, port, certificate = secured
    held = store(f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate}", now=lambda: NOW, deadline_ms=400)
    held.open()

    server.pause()
    try:
        with pytest.raises(ReplayStoreUnavailable):
            held.use("x", int(NOW) + 50, NOW)
    finally:
        server.resume()


@pytest.mark.parametrize("face", [RedisReplayStore])
def test_a_certificate_that_nobody_vouches_for(store, secured):
    """
    An unknown certificate is no connection.
    """
    _, port, _ = secured

    with pytest.raises(ReplayStoreUnavailable):
        store(f"rediss://127.0.0.1:{port}", now=lambda: NOW).open()
