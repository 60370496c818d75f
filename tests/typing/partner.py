"""
A partner's code as a type checker sees it: `mypy --strict` accepts what is meant and refuses what is not.

It is checked, not run. An ignore that nothing needs is an error to `mypy --strict`, so each one below states a refusal.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_type

from verifier import (
    AsyncCustomerContextVerifier,
    Challenge,
    CustomerContext,
    CustomerContextError,
    CustomerContextVerifier,
    MemoryReplayStore,
    Reason,
    ReplayStoreUnavailable,
    StepUp,
    action_digest,
    bearer_token,
    parse_challenges,
    step_up_from_challenge,
    step_up_required,
    verify_customer_context,
)
from verifier.fetch import FetchResponse
from verifier.protected_resource import protected_resource_metadata, protected_resource_metadata_url
from verifier.step_up_client import (
    APICall,
    APIRequest,
    APIResponse,
    AsyncStepUpClient,
    MintedToken,
    SignInRequest,
    StepUpClient,
    StepUpError,
    StepUpGuard,
    StepUpReason,
    TokenRequest,
)

ISSUER, AUDIENCE = "https://id.example.com/w/acme", "https://api.shop.example"
METADATA = protected_resource_metadata_url(AUDIENCE)


class OwnStore:
    """
    A replay store of the partner's own.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()

    def use(self, jti: str, expires_at: int) -> bool:
        """
        Tell the first use from a second.
        """
        if expires_at > 2**53:
            raise ReplayStoreUnavailable
        first = jti not in self._used
        self._used.add(jti)
        return first


class OwnAsyncStore:
    """
    A replay store of the partner's own that has to be awaited.
    """

    async def use(self, jti: str, expires_at: int) -> bool:
        """
        Tell the first use from a second.
        """
        return OwnStore().use(jti, expires_at)


class NoStore:
    """
    Something that is no replay store.
    """

    def use(self, jti: str) -> str:
        """
        Answer something else.
        """
        return jti


def own_fetch(url: str, headers: Mapping[str, str]) -> FetchResponse:
    """
    Get a key set by the partner's own HTTP.
    """
    return FetchResponse(200, (("Cache-Control", "max-age=120"),), f"{url}{headers}".encode())


async def own_async_fetch(url: str, headers: Mapping[str, str]) -> FetchResponse:
    """
    Get a key set by the partner's own HTTP, awaited.
    """
    return own_fetch(url, headers)


blocking = CustomerContextVerifier(
    issuer=ISSUER, audience=AUDIENCE, replay_store=MemoryReplayStore(), resource_metadata=METADATA
)
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=OwnStore(), fetch=own_fetch)
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=None, jwks={"keys": []}, denied_kids=["k1"])
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=OwnAsyncStore())  # type: ignore[arg-type]
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=NoStore())  # type: ignore[arg-type]
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=None, fetch=own_async_fetch)  # type: ignore[arg-type]
CustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE)  # type: ignore[call-arg]

asynchronous = AsyncCustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=OwnAsyncStore())
AsyncCustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=MemoryReplayStore(), fetch=own_async_fetch)
AsyncCustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=OwnStore())
AsyncCustomerContextVerifier(issuer=ISSUER, audience=AUDIENCE, replay_store=None, fetch=own_fetch)  # type: ignore[arg-type]


def read_order(authorization: Sequence[str]) -> tuple[int, str | None]:
    """
    Serve a read.
    """
    try:
        token = bearer_token(authorization, resource_metadata=METADATA)
        context = blocking.verify(token, scope="orders:read", level="standard")
    except CustomerContextError as refusal:
        assert_type(refusal.reason, Reason)
        assert_type(refusal.hint, str | None)
        return refusal.status, refusal.www_authenticate
    assert_type(context, CustomerContext)
    assert_type(context.level, Literal["low", "standard", "high"] | None)
    assert_type(context.action, str | None)
    assert_type(context.scopes, frozenset[str])
    context.sub = "another"  # type: ignore[misc]
    return 200, context.sub


async def cancel_order(authorization: str | None, body: bytes, key: str | None) -> CustomerContext:
    """
    Serve a write.
    """
    context = await asynchronous.verify(
        bearer_token(authorization),
        action="cancel_order",
        arguments=body,
        idempotency_key=key,
        level="high",
        max_auth_age_seconds=300,
        confirmation="client",
        max_confirmation_age_seconds=600,
    )
    await asynchronous.verify("x", level="gold")  # type: ignore[arg-type]
    await asynchronous.verify("x", confirmation="agent")  # type: ignore[arg-type]
    await asynchronous.verify("x", "orders:read")  # type: ignore[call-arg]
    return context


def pay(context: CustomerContext, amount: int) -> str:
    """
    Demand more once it is known what is to be done.
    """
    context.require(level="gold")  # type: ignore[arg-type]
    context.require("high")  # type: ignore[call-arg]
    return context.require(level="high", max_auth_age_seconds=300).sub if amount > 100 else context.sub


def describe() -> dict[str, Any]:
    """
    Tell what the API takes.
    """
    protected_resource_metadata(resource=AUDIENCE)  # type: ignore[call-arg]
    return protected_resource_metadata(resource=AUDIENCE, authorization_servers=[ISSUER], scopes_supported=["a"])


def in_one_call(token: str, arguments: Mapping[str, Any]) -> CustomerContext:
    """
    Verify without a verifier to keep.
    """
    return verify_customer_context(
        token, issuer=ISSUER, audience=AUDIENCE, replay_store=OwnStore(), action="a", arguments=arguments
    )


def orchestrate(header: str) -> StepUp | None:
    """
    Read a challenge on the other side.
    """
    assert_type(parse_challenges(header), tuple[Challenge, ...])
    assert_type(action_digest(action="a", arguments={}, idempotency_key="k" * 16), str)
    step_up_required("gold")  # type: ignore[arg-type]
    demand = step_up_required(level="high", max_auth_age_seconds=300)
    return step_up_from_challenge(demand.challenge(realm="shop", resource_metadata=METADATA))


def mint(request: TokenRequest) -> str | MintedToken:
    """
    Ask the issuer for a token.
    """
    assert_type(request.demand, StepUp | None)
    return MintedToken("a.b.c", {"account": "shop:1"}) if request.action else "a.b.c"


async def mint_awaited(request: TokenRequest) -> str:
    """
    Ask the issuer for a token, awaited.
    """
    return f"{request.audience}.b.c"


def sign_in(request: SignInRequest) -> Literal["standard", "high"] | None:
    """
    Ask the customer.
    """
    return "high" if request.demand.level == "high" else None


async def sign_in_awaited(request: SignInRequest) -> Literal["low", "standard", "high"] | None:
    """
    Ask the customer, awaited.
    """
    return sign_in(request)


def said_yes(request: SignInRequest) -> bool:
    """
    Answer something else.
    """
    return request.demand.level is None


def send(request: APIRequest) -> APIResponse:
    """
    Send by the orchestrator's own HTTP.
    """
    return APIResponse(200, (("Content-Type", "text/plain"),), request.url.encode())


APIS = {AUDIENCE: "https://api.shop.example/v1"}
client = StepUpClient(apis=APIS, mint=mint, sign_in=sign_in, send=send, guard=StepUpGuard(max_keys=10))
StepUpClient(apis=APIS, mint=mint_awaited, sign_in=sign_in)  # type: ignore[arg-type]
StepUpClient(apis=APIS, mint=mint, sign_in=said_yes)  # type: ignore[arg-type]
StepUpClient(mint=mint, sign_in=sign_in)  # type: ignore[call-arg]
awaiting = AsyncStepUpClient(apis=APIS, mint=mint_awaited, sign_in=sign_in_awaited)
AsyncStepUpClient(apis=APIS, mint=mint, sign_in=sign_in_awaited)  # type: ignore[arg-type]


async def cancel(arguments: Mapping[str, Any], key: str) -> StepUpReason | int:
    """
    Call an API that may demand a stronger sign-in.
    """
    call = APICall(
        audience=AUDIENCE,
        conversation="c-1",
        method="POST",
        path="/orders/A-1001/cancel",
        action="cancel_order",
        arguments=arguments,
        idempotency_key=key,
        present_level="standard",
    )
    APICall(audience=AUDIENCE, method="GET", path="/orders")  # type: ignore[call-arg]
    call.path = "/other"  # type: ignore[misc]
    try:
        assert_type(client.call(call), APIResponse)
        return (await awaiting.call(call)).status
    except StepUpError as stopped:
        assert_type(stopped.demand, StepUp)
        return stopped.reason
