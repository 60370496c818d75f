"""
Sockets are bound before anything else, at every address that was meant, and what is in the way is said in one line.
"""

import errno
import socket

import pytest

from issuer.cli import listening as listening_module
from issuer.cli.listening import CannotListen, addresses, bound, listen


def refused(host, port):
    with pytest.raises(CannotListen) as refusal, bound(host, port):
        pytest.fail("it was bound")
    return str(refusal.value)


@pytest.fixture
def resolved(monkeypatch):
    """
    Let every name stand for the addresses that a test says.
    """

    def resolve(*found):
        monkeypatch.setattr(listening_module.socket, "getaddrinfo", lambda *_, **__: list(found))

    return resolve


def place(address, family=socket.AF_INET):
    return (family, socket.SOCK_STREAM, 6, "", address)


def test_a_port_is_picked_and_told():
    """
    Port 0 means any; connections are taken when that is asked for, and none before, or when the block has ended.
    """
    with bound("127.0.0.1", 0) as sockets:
        (address,) = addresses(sockets)
        port = sockets[0].getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        listen(sockets)
        socket.create_connection(("127.0.0.1", port), timeout=5).close()

    assert address == f"http://127.0.0.1:{port}"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_port_can_be_bound_again_at_once():
    """
    Connections that ended a moment ago do not keep the next service from starting.
    """
    with bound("127.0.0.1", 0) as sockets:
        port = sockets[0].getsockname()[1]
        listen(sockets)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            accepted, _ = sockets[0].accept()
            accepted.close()

    with bound("127.0.0.1", port) as sockets:
        assert addresses(sockets) == (f"http://127.0.0.1:{port}",)


def test_all_addresses_of_a_name_get_one_port(resolved):
    """
    The port that is picked for the first one is that of all.
    """
    resolved(place(("127.0.0.1", 0)), place(("127.0.0.2", 0)), place(("127.0.0.1", 0)))

    with bound("localhost", 0) as sockets:
        names = [each.getsockname() for each in sockets]

    assert [host for host, _ in names] == ["127.0.0.1", "127.0.0.2"]
    assert len({port for _, port in names}) == 1


def test_an_address_that_the_machine_does_not_have_is_left_out(resolved):
    """
    A name may stand for two families, and a machine may have one of them.
    """
    resolved(place(("192.0.2.1", 0)), place(("127.0.0.1", 0)))

    with bound("localhost", 0) as sockets:
        assert [each.getsockname()[0] for each in sockets] == ["127.0.0.1"]


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_of_the_other_family_is_written_as_in_urls():
    """
    Between brackets.
    """
    try:
        with bound("::1", 0) as sockets:
            port = sockets[0].getsockname()[1]
            assert addresses(sockets) == (f"http://[::1]:{port}",)
    except CannotListen:
        pytest.skip("this machine has no IPv6 loopback address")


def test_a_port_that_is_taken():
    """
    It is said which one, and what to do.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        message = refused("127.0.0.1", port)

    assert message.startswith(f"127.0.0.1:{port} is taken")
    assert "--port" in message


def test_two_that_start_at_the_same_time():
    """
    Both can bind the port, and only one of them gets to listen.
    """
    with bound("127.0.0.1", 0) as first:
        port = first[0].getsockname()[1]
        with bound("127.0.0.1", port) as second:
            listen(first)

            with pytest.raises(CannotListen, match=f"127.0.0.1:{port} is taken"):
                listen(second)


def test_one_of_two_addresses_that_is_taken(resolved):
    """
    Half of a service is none; what was bound already is let go of.
    """
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        resolved(place(("127.0.0.1", port)), place(("127.0.0.2", port)))

        assert "is taken" in refused("localhost", port)

    with bound("localhost", port) as sockets:
        assert len(sockets) == 2


@pytest.mark.parametrize(
    ("host", "word"), [("nowhere.invalid", "nowhere.invalid"), ("192.0.2.1", "no address of this machine")]
)
def test_a_host_that_cannot_be_bound(host, word):
    """
    One that nobody knows, and one that is another machine's.
    """
    message = refused(host, 0)

    assert word in message
    assert "--host" in message


@pytest.mark.parametrize(
    ("number", "word"), [(errno.EACCES, "--port"), (errno.EINVAL, "cannot be bound"), (errno.EAFNOSUPPORT, "--host")]
)
def test_what_the_system_refuses(monkeypatch, number, word):
    """
    A port that is not for this user, a family that is not there, and whatever else.
    """

    class Refusing(socket.socket):
        def bind(self, address):
            raise OSError(number, "no")

    monkeypatch.setattr(listening_module.socket, "socket", Refusing)

    assert word in refused("::1" if number == errno.EINVAL else "127.0.0.1", 80)
