"""
A Redis that also speaks TLS, with a certificate of its own that nobody knows.
"""

import datetime as dt
import ipaddress
import shutil
from pathlib import Path
from unittest.mock import patch

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from . import redis_server
from .redis_server import RedisServer, free_port

__all__ = ["SecuredRedis", "start_secured"]


class SecuredRedis(RedisServer):
    """
    A server of one kind; `tls_port` is where it speaks TLS, and `certificate` the file that vouches for it.

    Servers that speak with each other have the certificate of one of them.
    """

    def __init__(
        self, folder: Path, *options: str, binary: str, like: "SecuredRedis | None" = None, config: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.tls_port = free_port()
        self.certificate, self.key = (like.certificate, like.key) if like else _issue(folder)
        self._binary = binary
        tls = {
            "--tls-port": str(self.tls_port),
            "--tls-cert-file": str(self.certificate),
            "--tls-key-file": str(self.key),
            "--tls-ca-cert-file": str(self.certificate),
            "--tls-auth-clients": "no",
        }
        # The options that say what kind of server it is come first.
        super().__init__(folder, *options, *(word for each in tls.items() for word in each), config=config)

    def start(self) -> None:
        """
        Start it and wait until it answers.
        """
        with patch.object(redis_server, "redis_binary", lambda: self._binary):
            super().start()


def start_secured(
    folder: Path, *options: str, like: SecuredRedis | None = None, config: str = ""
) -> SecuredRedis | None:
    """
    Start a server with TLS, or return None where there is none that knows it.
    """
    find = redis_server.get_binary_path
    for binary in (shutil.which("redis-server"), None if find is None else str(find())):
        if binary is None:
            continue
        server = SecuredRedis(folder, *(options or ("--save", "")), binary=binary, like=like, config=config)
        try:
            server.start()
        except AssertionError:
            continue  # built without TLS
        return server
    return None


def _issue(folder: Path) -> tuple[Path, Path]:
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
