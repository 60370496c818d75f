"""
What every test needs.
"""

import os

import pytest
from hypothesis import settings

# A machine that runs other things too makes any example slow at times. Continuous integration draws the same ones each run.
settings.register_profile("project", settings.get_profile("ci" if "CI" in os.environ else "default"), deadline=None)
settings.load_profile("project")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """
    Run asynchronous tests on asyncio, the one loop that the service runs on.
    """
    return "asyncio"
