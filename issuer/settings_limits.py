"""
What the configuration says about those who ask: how much each may, and whose word counts about where a request comes from.
"""

from .limits import Rate, Rates
from .settings_models import Settings
from .source import Sources

__all__ = ["limit_rates", "sources"]


def limit_rates(settings: Settings) -> Rates:
    """
    Return the limits of requests and wrong secrets.
    """
    limits = settings.limits
    return Rates(
        client=Rate.of(limits.client_per_second, per_s=1, burst=limits.client_burst),
        customer=Rate.of(limits.customer_per_minute, per_s=60, burst=limits.customer_per_minute),
        wrong_secrets=limits.wrong_secrets_per_minute,
    )


def sources(settings: Settings) -> Sources:
    """
    Return what tells where requests come from, by the proxies that are trusted.
    """
    return Sources(settings.trusted_proxies)
