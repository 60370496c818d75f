"""
The one-call form verifies like the verifier, and keeps a bounded number of verifiers so that keys are cached.
"""

import gc
import weakref

import pytest

from verifier import CustomerContextError, MemoryReplayStore, oneshot, verify_customer_context


@pytest.fixture(autouse=True)
def _no_verifiers(monkeypatch):
    """
    Begin with none, and leave those of others alone.
    """
    monkeypatch.setattr(oneshot, "_VERIFIERS", type(oneshot._VERIFIERS)())


@pytest.fixture
def options(mint, scripted_issuer, wall_clock):
    """
    What a call says besides its token; keys are fetched.
    """
    return {
        "issuer": mint.issuer,
        "audience": mint.audience,
        "replay_store": None,
        "fetch": scripted_issuer.fetch,
        "now": wall_clock,
    }


def test_one_call_verifies(mint, options):
    """
    A token is accepted with the demands of the call, and refused by the same reasons.
    """
    context = verify_customer_context(mint.write(), **options, **mint.call, scope="orders.read", confirmation="client")

    assert (context.sub, context.action) == ("user-1", mint.action)
    with pytest.raises(CustomerContextError) as refusal:
        verify_customer_context(mint.signed(), **options, level="high")
    assert refusal.value.reason == "step_up"


def test_a_store_is_shared_by_the_calls_that_name_it(mint, options, wall_clock):
    """
    A token that one call used up is replayed for the next.
    """
    options |= {"replay_store": MemoryReplayStore(now=wall_clock)}
    token = mint.signed()

    assert verify_customer_context(token, **options)
    with pytest.raises(CustomerContextError) as refusal:
        verify_customer_context(token, **options)
    assert refusal.value.reason == "replayed"


def test_keys_are_fetched_once(mint, scripted_issuer, wall_clock, options):
    """
    Calls that name the same things share one verifier; a bound method is the same thing each time it is named.
    """
    for _ in range(5):
        options |= {"fetch": scripted_issuer.fetch, "now": wall_clock.__call__}
        verify_customer_context(mint.signed(), **options)

    assert len(scripted_issuer.asked) == 1
    assert len(oneshot._VERIFIERS) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"audience": "https://other.test"},
        {"issuer": "https://other.test"},
        {"required_scope": "orders.read"},
        {"clock_tolerance_seconds": 5},
        {"denied_kids": ["k1"]},
        {"replay_store": MemoryReplayStore()},
        {"monotonic": lambda: 0.0},
        {"now": lambda: 0.0},
        {"fetch": lambda *_: None},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_value_is_another_verifier(mint, options, other):
    """
    Two calls that differ in any option share nothing.
    """
    verify_customer_context(mint.signed(), **options)
    (first,) = oneshot._VERIFIERS

    with pytest.raises(CustomerContextError):
        verify_customer_context("x", **(options | other))

    assert len(oneshot._VERIFIERS) == 2
    assert first in oneshot._VERIFIERS


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        ({"clock_tolerance_seconds": True}, TypeError),
        ({"clock_tolerance_seconds": 61}, ValueError),
        ({"audience": ""}, ValueError),
        ({"issuer": "http://issuer.test"}, ValueError),
        ({"replay_store": object()}, TypeError),
        ({"denied_kids": "k1"}, TypeError),
        ({"level": "gold"}, ValueError),
        ({"levels": "high"}, TypeError),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else value.__name__,
)
def test_a_mistake_is_told_to_the_programmer(mint, options, mistake, error):
    """
    A value that makes no sense is told on each call, also beside a verifier with an equal value of another type.
    """
    verify_customer_context(mint.signed(), **(options | {"clock_tolerance_seconds": 1}))

    for _ in range(2):
        with pytest.raises(error):
            verify_customer_context(None, **(options | mistake))


def test_fixed_keys_are_told_apart_by_identity(mint, options):
    """
    Calls with one key set share a verifier, and an equal one of its own is another.
    """
    options |= {"fetch": None, "jwks": mint.jwks}

    verify_customer_context(mint.signed(), **options)
    verify_customer_context(mint.signed(), **options)
    assert len(oneshot._VERIFIERS) == 1
    verify_customer_context(mint.signed(), **(options | {"jwks": dict(mint.jwks)}))
    assert len(oneshot._VERIFIERS) == 2


def test_verifiers_are_bounded(mint, options):
    """
    At most 64 are kept; the least recently used one is dropped, with everything it held, and goes on working where it is in use.
    """
    stores = [MemoryReplayStore() for _ in range(65)]
    for store in stores[:64]:
        verify_customer_context(mint.signed(), **(options | {"replay_store": store, "now": lambda: mint.now}))
    dropped = next(iter(oneshot._VERIFIERS.values()))[0]
    held = weakref.ref(stores[0])

    verify_customer_context(mint.signed(), **(options | {"replay_store": stores[64]}))

    assert len(oneshot._VERIFIERS) == 64
    assert dropped.verify(mint.signed())
    del dropped, stores[0]
    gc.collect()
    assert held() is None


def test_a_used_verifier_is_kept(mint, options):
    """
    Using a verifier makes it the last one to go.
    """
    stores = [MemoryReplayStore() for _ in range(64)]
    for store in [*stores, stores[0]]:
        verify_customer_context(mint.signed(), **(options | {"replay_store": store}))

    verify_customer_context(mint.signed(), **options)

    kept = [parts[0] for _, parts in oneshot._VERIFIERS.values()]
    assert stores[0] in kept
    assert stores[1] not in kept
