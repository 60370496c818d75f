"""
The service that the tests of the token endpoint share, handed out as new: clocks at `NOW`, nothing remembered or reported.
"""

import pytest

from .site import Site
from .world import registry


@pytest.fixture(scope="session")
def one_site():
    """
    Build the one service that the tests share.
    """
    site = Site()
    yield site
    site.close()


@pytest.fixture
def site(one_site):
    one_site.renew()
    return one_site


@pytest.fixture
def build_site():
    """
    Build a service with another registry; it is closed after the test.
    """
    built = []

    def build(**parts):
        built.append(Site(registry(**parts)))
        return built[-1]

    yield build
    for site in built:
        site.close()
