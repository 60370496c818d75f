"""
What the configuration says about those who ask, as the service works with it.
"""

import pytest

from issuer.limits import Rate, Rates
from issuer.settings_limits import limit_rates, sources
from issuer.settings_models import LimitsSettings, Settings


def configured(**parts):
    return Settings.model_construct(**parts)


def test_the_defaults_agree():
    """
    A configuration without a word about it has the limits that the code has by itself, and trusts no proxy.
    """
    settings = configured(limits=LimitsSettings(), trusted_proxies=())

    assert limit_rates(settings) == Rates()
    assert sources(settings).find("198.51.100.1", ["203.0.113.9"]) == "198.51.100.1"


@pytest.mark.parametrize(
    ("said", "rates"),
    [
        ({"client_per_second": 50, "client_burst": 1}, Rates(client=Rate(20_000, 1))),
        ({"client_per_second": 0}, Rates(client=None)),
        ({"customer_per_minute": 1}, Rates(customer=Rate(60_000_000, 1))),
        ({"customer_per_minute": 0}, Rates(customer=None)),
        ({"wrong_secrets_per_minute": 0}, Rates(wrong_secrets=0)),
    ],
)
def test_a_limit_is_what_is_configured(said, rates):
    """
    So many a second with a burst, so many a minute, and 0 for none.
    """
    assert limit_rates(configured(limits=LimitsSettings(**said))) == rates


def test_trusted_proxies_are_believed():
    """
    What one of them says about where a request comes from counts.
    """
    found = sources(configured(trusted_proxies=("10.0.0.0/8",))).find("10.0.0.1", ["203.0.113.9"])

    assert found == "203.0.113.9"
