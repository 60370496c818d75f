"""
Verify customer context tokens in a partner's API: this customer, through this agent, at this level, asked for this call.

    verifier = CustomerContextVerifier(issuer=..., audience=..., replay_store=MemoryReplayStore())
    context = verifier.verify(bearer_token(header), scope="orders:read")

Only `CustomerContextError` leaves a verification; answer with its `status` and `www_authenticate`.
"""

from .action import action_digest
from .bearer import bearer_token
from .challenge import Challenge, parse_challenges
from .context import CustomerContext
from .errors import CustomerContextError, Reason
from .oneshot import verify_customer_context
from .replay import MemoryReplayStore, ReplayStoreUnavailable
from .step_up import StepUp, step_up_from_challenge, step_up_required
from .verifiers import AsyncCustomerContextVerifier, CustomerContextVerifier

__all__ = [
    "AsyncCustomerContextVerifier",
    "Challenge",
    "CustomerContext",
    "CustomerContextError",
    "CustomerContextVerifier",
    "MemoryReplayStore",
    "Reason",
    "ReplayStoreUnavailable",
    "StepUp",
    "action_digest",
    "bearer_token",
    "parse_challenges",
    "step_up_from_challenge",
    "step_up_required",
    "verify_customer_context",
]
