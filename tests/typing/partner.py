"""
A partner's code as a type checker sees it: mypy --strict reads this, nothing runs it.

What is ignored here must be an error: an ignore that is not needed fails the check.
"""

from collections.abc import Mapping
from typing import Any, assert_type

from verifier import (
    AsyncCustomerContextVerifier,
    CustomerContext,
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
    StepUp,
    action_digest,
    bearer_token,
    step_up_from_challenge,
)


class OwnStore:
    """
    A store of the partner's own; it needs no base class.
    """

    def use(self, jti: str, expires_at: int) -> bool:
        return bool(jti) and expires_at > 0


class OwnAsyncStore:
    """
    The same, awaited.
    """

    async def use(self, jti: str, expires_at: int) -> bool:
        return bool(jti) and expires_at > 0


with_own_store = CustomerContextVerifier(
    issuer="https://id.example", audience="https://api.example", replay_store=OwnStore()
)
without_store = CustomerContextVerifier(issuer="https://id.example", audience="https://api.example", replay_store=None)
asynchronous = AsyncCustomerContextVerifier(
    issuer="https://id.example", audience="https://api.example", replay_store=OwnAsyncStore()
)
in_memory = AsyncCustomerContextVerifier(
    issuer="https://id.example", audience="https://api.example", replay_store=MemoryReplayStore()
)

CustomerContextVerifier(issuer="https://id.example", audience="https://api.example")  # type: ignore[call-arg]


def endpoint(headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """
    Answer a write.
    """
    try:
        context = with_own_store.verify(
            bearer_token(headers.get("authorization")), action="cancel_order", arguments=body, level="high"
        )
    except CustomerContextError as error:
        return error.status, error.www_authenticate
    assert_type(context, CustomerContext)
    assert_type(context.sub, str)
    assert_type(context.action, str | None)
    return 200, context.sub


async def asynchronous_endpoint(token: str, arguments: dict[str, Any]) -> str:
    """
    Answer a write, asynchronously.
    """
    context = await asynchronous.verify(token, action="cancel_order", arguments=arguments, confirmation="client")
    assert_type(context, CustomerContext)
    return context.client_id


def tool(header: str) -> StepUp | None:
    """
    Read what an API demands, as an orchestrator's tool does.
    """
    with_own_store.verify("token", level="gold")  # type: ignore[arg-type]
    assert_type(action_digest(action="cancel_order", arguments={}, idempotency_key="k" * 16), str)
    return step_up_from_challenge(header)
