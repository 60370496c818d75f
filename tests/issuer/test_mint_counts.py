"""
What was minted under a key: by audience and action, for ten minutes.
"""

from issuer.mint_counts import WINDOW_MINUTES, MintCount, MintCounts

from .world import BANK, NOW, SHOP

MINUTE = NOW - NOW % 60


def test_tokens_are_counted_by_key_audience_and_action():
    """
    Reads have no action; other keys do not count.
    """
    counts = MintCounts(NOW)
    for kid, audience, action in [
        ("k1", SHOP, "cancel_order"),
        ("k1", SHOP, None),
        ("k1", SHOP, None),
        ("k1", BANK, None),
        ("k2", SHOP, "cancel_order"),
    ]:
        counts.add(kid, audience, action, NOW)

    minted = counts.under({"k1"}, NOW)

    assert minted.counts == (MintCount(BANK, None, 1), MintCount(SHOP, None, 2), MintCount(SHOP, "cancel_order", 1))
    assert (minted.total, minted.since) == (4, NOW)
    assert counts.under({"k1", "k2"}, NOW).total == 5


def test_minutes_pass():
    """
    A token counts for the minute it was minted in and the ten after it.
    """
    counts = MintCounts(0)
    counts.add("k1", SHOP, None, MINUTE + 59)

    last = MINUTE + 60 * (WINDOW_MINUTES + 1)
    assert counts.under({"k1"}, last - 1).total == 1
    assert counts.under({"k1"}, last - 1).since == MINUTE
    assert counts.under({"k1"}, last).total == 0


def test_memory_is_bounded_by_the_window():
    """
    Minutes beyond the window are forgotten, also when a clock leaps about.
    """
    counts = MintCounts(NOW)
    for step in range(1000):
        counts.add("k1", SHOP, None, NOW + (-1) ** step * step * 3600)

    assert len(counts._minutes) == WINDOW_MINUTES + 1
