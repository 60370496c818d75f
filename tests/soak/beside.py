"""
Modules that stand with other tests, imported from where they are: there are no packages under tests.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["module_beside"]

TESTS = Path(__file__).parents[1]


def module_beside(*parts: str) -> ModuleType:
    """
    Import a module by its path below the tests.
    """
    path = TESTS.joinpath(*parts)
    name = "_".join(parts).removesuffix(".py")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
