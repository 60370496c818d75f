"""
The frozen facts of who may ask for what, and what cannot be constructed.
"""

from dataclasses import FrozenInstanceError

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from issuer.provider import Provider
from issuer.registry import Action, Admin, Client, Connection, Registry, Workspace

SHOP = "https://api.shop.example"
BANK = "https://api.bank.example"
KEY = ec.generate_private_key(ec.SECP256R1()).public_key()
DIGEST = bytes(32)


def connection(name="shop", audiences=(SHOP,), actions=(), scopes=frozenset({"orders:read"}), provider=None):
    return Connection(
        name=name,
        namespace=f"{name}-login",
        audiences=audiences,
        scopes=scopes,
        actions={action.name: action for action in actions},
        provider=provider,
    )


def provider(issuer="https://login.shop.example", *clients, **changes):
    return Provider(issuer=issuer, clients=dict.fromkeys(clients or ("shop-web",), "orc_main"), **changes)


def client(client_id="orc_main", **changes):
    given = {
        "keys": {"k1": KEY},
        "audiences": (SHOP,),
        "scopes": frozenset({"orders:read"}),
        "actions": frozenset(),
        "agents": ("agt_support",),
    }
    return Client(client_id=client_id, **{**given, **changes})


def workspace(name="acme", path="/w/acme", connections=None, clients=None, admins=None):
    return Workspace(
        name=name,
        path=path,
        issuer=f"https://id.example.com{path}",
        connections=(connection(),) if connections is None else connections,
        clients={} if clients is None else clients,
        admins={} if admins is None else admins,
    )


def test_an_audience_leads_to_its_one_connection():
    """
    An audience is found in the connection that lists it, and a URL that only looks the same is not.
    """
    shop, bank = connection(), connection("bank", (BANK,))

    tenant = workspace(connections=(shop, bank))

    assert tenant.connection_of(SHOP) is shop
    assert tenant.connection_of(BANK) is bank
    assert tenant.connection_of(SHOP + "/") is None


def test_an_action_is_found_with_its_connection():
    """
    An action is found by its name in whichever connection has it; an unknown name finds nothing.
    """
    cancel = Action(name="cancel_order", audience=SHOP, scopes=frozenset({"orders:write"}))
    shop = connection(actions=(cancel,))

    tenant = workspace(connections=(shop, connection("bank", (BANK,))))

    assert tenant.action("cancel_order") == (shop, cancel)
    assert tenant.action("close_account") is None


def test_a_connection_knows_which_scopes_actions_own():
    """
    The scopes that some action owns are told apart from those that need none.
    """
    actions = (
        Action(name="cancel_order", audience=SHOP, scopes=frozenset({"orders:write"})),
        Action(name="refund", audience=SHOP, scopes=frozenset({"orders:write", "refunds"})),
    )

    shop = connection(actions=actions)

    assert shop.action_scopes == {"orders:write", "refunds"}
    assert shop.scopes == {"orders:read"}


def test_a_client_id_of_a_provider_leads_to_its_connection():
    """
    Issuer and client id together do; neither does where the other is strange, and an issuer is compared exactly.
    """
    first, second = provider(), provider("https://login.shop.example", "bank-app")
    other = provider("https://login.other.example", "shop-web")
    shop, bank = connection(provider=first), connection("bank", (BANK,), provider=second)
    third = connection("third", ("https://api.third.example",), provider=other)

    tenant = workspace(connections=(shop, bank, third, connection("none", ("https://api.none.example",))))

    assert tenant.provider_clients("https://login.shop.example") == {
        "shop-web": (shop, first),
        "bank-app": (bank, second),
    }
    assert tenant.provider_clients("https://login.other.example") == {"shop-web": (third, other)}
    assert tenant.provider_clients("https://login.shop.example/") == {}


def test_a_provider_takes_the_safe_choice():
    """
    RS256, keys by discovery, nothing mapped, eight hours; and nothing of it can be changed.
    """
    given = {"shop-web": "orc_main"}

    plain = Provider(issuer="https://login.shop.example", clients=given)
    given["other"] = "orc_main"

    assert (plain.algorithms, plain.keys, plain.acr, plain.amr) == ({"RS256"}, None, {}, {})
    assert plain.sign_in_lifetime_s == 28_800
    assert plain.clients == {"shop-web": "orc_main"}
    for mapping in (plain.clients, plain.acr, plain.amr):
        with pytest.raises(TypeError):
            mapping["x"] = "high"


def test_a_registry_finds_workspaces_by_name():
    """
    Workspaces are found by name, and are walked in order.
    """
    acme, root = workspace(), workspace("root", "")

    registry = Registry(origin="https://id.example.com", workspaces=(acme, root))

    assert registry.workspace("acme") is acme
    assert registry.workspace("other") is None
    assert list(registry) == [acme, root]


@pytest.mark.parametrize(
    ("proof", "method"),
    [({"keys": {"k1": KEY}}, "private_key_jwt"), ({"keys": {}, "secret_sha256": (DIGEST,)}, "client_secret_basic")],
)
def test_a_client_has_one_way_to_authenticate(proof, method):
    """
    What is configured decides the one method of a client.
    """
    assert client(**proof).authentication_method == method


@pytest.mark.parametrize("proof", [{"keys": {}}, {"keys": {"k1": KEY}, "secret_sha256": (DIGEST,)}])
def test_a_client_or_admin_with_no_proof_or_two_cannot_be_built(proof):
    """
    Neither keys nor secret, or both at once, is refused for clients and admins alike.
    """
    with pytest.raises(ValueError):
        client(**proof)
    with pytest.raises(ValueError):
        Admin(name="secops", permissions=frozenset({"keys:read"}), **proof)


@pytest.mark.parametrize(
    "build",
    [
        lambda: connection(audiences=()),
        lambda: connection(actions=(Action(name="cancel_order", audience=BANK),)),
        lambda: Connection(
            name="shop",
            namespace="n",
            audiences=(SHOP,),
            scopes=frozenset(),
            actions={"other": Action(name="cancel_order", audience=SHOP)},
        ),
        lambda: workspace(connections=(connection(), connection("other"))),
        lambda: workspace(
            connections=(
                connection(actions=(Action(name="a", audience=SHOP),)),
                connection("bank", (BANK,), (Action(name="a", audience=BANK),)),
            )
        ),
        lambda: Connection(
            name="shop",
            namespace="shop:login",
            audiences=(SHOP,),
            scopes=frozenset(),
            actions={"a": Action(name="a", audience=SHOP, selector="account")},
        ),
        lambda: workspace(
            connections=(connection(provider=provider()), connection("bank", (BANK,), provider=provider()))
        ),
        lambda: Provider(issuer="https://login.shop.example", clients={}),
        lambda: provider(algorithms=frozenset()),
        lambda: provider(algorithms=frozenset({"RS256", "HS256"})),
        lambda: provider(algorithms=frozenset({"none"})),
        lambda: workspace(clients={"other": client()}),
        lambda: workspace(
            admins={"other": Admin(name="secops", secret_sha256=(DIGEST,), permissions=frozenset({"keys:read"}))}
        ),
        lambda: Registry(origin="https://id.example.com", workspaces=()),
        lambda: Registry(origin="https://id.example.com", workspaces=(workspace(), workspace(path="/w/b"))),
        lambda: Registry(origin="https://id.example.com", workspaces=(workspace(), workspace("b"))),
    ],
    ids=[
        "no audience",
        "action for a foreign audience",
        "action under another name",
        "audience in two connections",
        "action in two connections",
        "client id of a provider in two connections",
        "provider without a client",
        "provider without an algorithm",
        "provider with a symmetric algorithm",
        "provider without signatures",
        "selector in a namespace with a colon",
        "client under another name",
        "admin under another name",
        "no workspace",
        "two workspaces of one name",
        "two workspaces at one path",
    ],
)
def test_what_is_ambiguous_cannot_be_built(build):
    """
    Facts that contradict each other, such as an audience in two connections (D13), are a ValueError.
    """
    with pytest.raises(ValueError):
        build()


def test_nothing_of_a_registry_can_be_changed():
    """
    Neither fields nor mappings can be changed, also not through the mapping that they were built from.
    """
    clients = {"orc_main": client()}
    tenant = workspace(clients=clients)

    clients.clear()

    assert list(tenant.clients) == ["orc_main"]
    with pytest.raises(FrozenInstanceError):
        tenant.name = "other"
    with pytest.raises(TypeError):
        tenant.clients["x"] = client("x")
    with pytest.raises(TypeError):
        tenant.clients["orc_main"].keys["k2"] = KEY


def test_no_credential_shows_in_a_repr():
    """
    Keys and digests of secrets stay out of what is printed.
    """
    admin = Admin(name="secops", secret_sha256=(DIGEST,), permissions=frozenset({"keys:read"}))

    text = repr(workspace(clients={"orc_main": client()}, admins={"secops": admin}))

    assert "orc_main" in text
    assert "secret" not in text
    assert "keys=" not in text
