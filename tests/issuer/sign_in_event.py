"""
The sign-in of a customer that the tests of sign-ins begin with, and that of another one in the same conversation.
"""

from dataclasses import replace

from issuer.sign_ins import SignInEvent

from .world import NOW

WHO = ("acme", "orc_main")
EVENT = SignInEvent(
    client_id="orc_main",
    connection="shop",
    namespace="shop-login",
    provider_issuer="https://login.shop.test",
    provider_client_id="shop-web",
    issued_at=NOW - 2,
    sub="cus_48213",
    sid="session-1",
    level="standard",
    auth_time=NOW - 20.5,
    conversation="conv-77",
    expires_at=NOW + 28_800,
)
OTHER = replace(EVENT, sub="cus_99", sid="session-2")
