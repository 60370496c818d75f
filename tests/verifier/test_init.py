"""
The public door: what a partner imports, and what comes in with it.
"""

import subprocess
import sys

import verifier

# As the design names them, and the types of what comes out.
DESIGN = {
    *("CustomerContextVerifier", "AsyncCustomerContextVerifier", "MemoryReplayStore", "verify_customer_context"),
    *("CustomerContextError", "StepUp", "step_up_required", "step_up_from_challenge", "parse_challenges"),
    *("action_digest", "bearer_token"),
    *("Challenge", "CustomerContext", "Reason", "ReplayStoreUnavailable"),
}


def test_the_door_offers_what_the_design_names():
    """
    The public names are these, sorted, and every one of them is there.
    """
    assert set(verifier.__all__) == DESIGN
    assert verifier.__all__ == sorted(verifier.__all__)
    assert all(getattr(verifier, name) is not None for name in verifier.__all__)


def test_nothing_optional_comes_in():
    """
    Importing the verifier loads nothing of the extras and nothing of the service.
    """
    program = "import sys, verifier, verifier.step_up_client, verifier.protected_resource; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()

    assert not {"redis", "click", "litestar", "authlib", "pydantic", "issuer", "keys"} & set(loaded)
