"""
The verbs of administration against a running service: the same as on its stores, with a secret or a key of the admin's own.
"""

import json

import httpx2
import pytest

from issuer.cli.admin_client import AdminClient, AdminCredential
from issuer.cli.audit import command as audit_command
from issuer.cli.facts import show
from issuer.cli.keys import command as keys_command
from issuer.cli.suspensions import command as suspensions_command
from issuer.registry import Admin
from issuer.suspensions import Target
from keys import generate_key
from verifier.es256 import PublicKey
from verifier.jwk import import_public_key

from ..estate import ADMIN_SECRETS, Desk, with_admins
from ..site import Site
from ..world import NOW, ORIGIN, registry

KEY = generate_key()


def admins():
    imported = import_public_key(dict(KEY.public_jwk))
    public: PublicKey = imported[1]
    configured = with_admins(registry())
    robot = Admin(
        name="robot 2/é",
        keys={KEY.kid: public},
        permissions=frozenset({"keys:read", "keys:rotate", "keys:revoke", "suspensions", "audit:read"}),
    )
    for workspace in configured:
        object.__setattr__(workspace, "admins", {**workspace.admins, robot.name: robot})
    return configured


@pytest.fixture
def desk():
    site = Site(admins())
    yield Desk(site)
    site.close()


@pytest.fixture(params=["secret", "key"])
def client(request, desk):
    """
    An admin with a secret, and one with a key.
    """
    credential = {
        "secret": AdminCredential(name="secops", secret=ADMIN_SECRETS["secops"]),
        "key": AdminCredential(name="robot 2/é", key=KEY),
    }[request.param]

    def send(method, url, *, headers, content, **_options):
        return desk.site.http.request(method, url, headers=headers, content=content)

    return AdminClient(f"{ORIGIN}/w/acme/", credential, send=send, now=lambda: NOW)


def test_every_verb_reaches_the_service(client, desk):
    """
    Keys, suspensions and the trail, each answered as the route answers.
    """
    active = desk.ring("acme").active.kid

    assert client.keys()["active"] == active
    rotated = client.rotate(expected_active=None, force=False, reason=None)
    assert rotated["retired"] == active
    revoked = client.revoke(rotated["active"], reason="leaked")
    assert revoked["revoked"] == rotated["active"]
    assert set(client.revoke_all(reason="stolen")["revoked"]) > {revoked["active"]}
    added = [
        client.suspend(Target("client", "orc_main"), reason="leaked", until=NOW + 60),
        client.suspend(Target("customer", "cus_1", "shop-login"), reason="x", until=None),
    ]
    assert [row["id"] for row in client.suspensions()["suspensions"]] == [each["id"] for each in added]
    assert client.lift(added[0]["id"])["lifted"]["id"] == added[0]["id"]
    assert [record["seq"] for record in client.audit(before=3, after=None, limit=2)["records"]] == [2, 1]
    assert [record["seq"] for record in client.audit(before=None, after=4, limit=200)["records"]] == [5, 6]


def test_what_is_refused_ends_the_command(client, capsys):
    """
    With the words of the service, and what an admin needs to go on.
    """
    with pytest.raises(SystemExit) as ended:
        client.rotate(expected_active="another", force=False, reason=None)

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "409 Another key is active" in said
    assert f"active {client.keys()['active']}" in said


@pytest.mark.parametrize("issuer", ["http://id.example", "id.example", "ftp://id.example", "", "http://127.0.0.1.evil"])
def test_only_an_address_that_keeps_secrets_is_spoken_to(issuer):
    """
    A secret is sent over https, or to this machine.
    """
    with pytest.raises(SystemExit):
        AdminClient(issuer, AdminCredential(name="secops", secret="s"))


def answering(content, status=200):
    return lambda *_args, **_options: httpx2.Response(status, content=content)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'{"a":1,"a":2}'])
@pytest.mark.parametrize("status", [200, 404, 502])
def test_what_is_no_issuer_is_said_to_be_none(content, status, capsys):
    """
    An answer without strict JSON comes from something else.
    """
    client = AdminClient("https://id.example", AdminCredential(name="a", secret="s"), send=answering(content, status))

    with pytest.raises(SystemExit):
        client.keys()

    assert "is it the issuer?" in capsys.readouterr().err


def test_a_service_that_does_not_answer(capsys):
    """
    Of a call that changes something it is said that nobody knows whether it was done.
    """

    def refuse(*_args, **_options):
        raise httpx2.ConnectError("secret-marked-1")

    client = AdminClient("http://127.0.0.1:1", AdminCredential(name="a", secret="s"), send=refuse)

    for verb in (client.keys, lambda: client.revoke_all(reason="x")):
        with pytest.raises(SystemExit):
            verb()

    read, written = capsys.readouterr().err.splitlines()
    assert "ConnectError" in read
    assert "is not known" not in read
    assert "is not known" in written
    assert "secret-marked-1" not in read + written


def test_a_credential_shows_nothing():
    """
    Neither the secret nor the key stands in its representation.
    """
    assert "s-secret" not in repr(AdminCredential(name="a", secret="s-secret"))
    assert KEY.kid not in repr(AdminCredential(name="a", key=KEY))


@pytest.fixture
def remote(service, tmp_path, run):
    """
    Run a command against the service that runs.
    """
    name, secret = service.admin
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n")
    words = ("--service", f"{service.origin}/w/demo", "--admin", name, "--admin-secret-file", file)

    def remote(command, *more):
        return run(command, more[0], *words, *more[1:])

    return remote


def test_what_was_minted_under_a_key_is_shown(client, desk, capsys):
    """
    How much, since when, and for whom; reads have no action.
    """
    desk.site.ask(workspace="acme", scope="orders:read")
    desk.site.ask(workspace="acme", authorization_details=desk.site.details())

    show(client.revoke_all(reason="stolen"), as_json=False)

    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("minted under it") and "2 tokens since" in line for line in lines)
    assert [line.split(", ")[1] for line in lines if line.startswith(" ")] == ["reads", "cancel_order"]


def test_commands_administer_a_running_service(remote, service):
    """
    `--service` and a secret from a file are enough; the service follows at once.
    """
    listed = json.loads(remote(keys_command, "list", "--json").stdout)
    rotated = json.loads(remote(keys_command, "rotate", "--force", "--reason", "exercise", "--json").stdout)
    revoked = remote(keys_command, "revoke", rotated["retired"], "--reason", "exercise")
    added = json.loads(remote(suspensions_command, "add", "agent", "agt_x", "--reason", "exercise", "--json").stdout)
    lifted = remote(suspensions_command, "lift", added["id"])
    told = remote(audit_command, "list")

    assert rotated["retired"] == listed["active"]
    assert rotated["retired"] not in service.kids()
    assert "minted under it" in revoked.stdout
    assert lifted.exit_code == 0
    assert "suspension_lifted" in told.stdout
    assert "admin secops from 127.0.0.1" in told.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("--service", "https://id.example"),
        ("--service", "https://id.example", "--admin", "secops"),
        ("--service", "https://id.example", "--admin-secret-file", "{full}"),
        (
            "--service",
            "https://id.example",
            "--admin",
            "secops",
            "--admin-secret-file",
            "{full}",
            "--admin-key-file",
            "{full}",
        ),
        ("--service", "https://id.example", "--admin", "secops", "--admin-secret-file", "{missing}"),
        ("--service", "https://id.example", "--admin", "secops", "--admin-secret-file", "{empty}"),
        ("--service", "https://id.example", "--admin", "secops", "--admin-secret-file", "{long}"),
        ("--service", "https://id.example", "--admin", "secops", "--admin-secret-file", "{binary}"),
        ("--service", "https://id.example", "--admin", "secops", "--admin-key-file", "{full}"),
        ("--service", "https://id.example", "--admin", "secops", "--admin-key-file", "{object}"),
    ],
)
def test_a_credential_is_needed(run, tmp_path, words):
    """
    Exactly one file that holds what it should; nothing of it is repeated.
    """
    contents = {"full": b"secret-marked-1", "empty": b"\n", "long": b"x" * 5000, "binary": b"\xff", "object": b"{}"}
    for name, octets in contents.items():
        (tmp_path / name).write_bytes(octets)
    named = {name: str(tmp_path / name) for name in (*contents, "missing")}

    result = run(keys_command, "list", *(word.format(**named) for word in words))

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "secret-marked-1" not in result.stderr


def test_a_key_of_an_admin_is_read_from_its_file(run, tmp_path):
    """
    A private JWK, as for any signer; the call goes out with it.
    """
    file = tmp_path / "admin.jwk.json"
    file.write_text(json.dumps(KEY.private_jwk.reveal()))
    words = ("--service", "http://127.0.0.1:1", "--admin", "robot", "--admin-key-file", file)

    result = run(keys_command, "list", *words)

    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr
