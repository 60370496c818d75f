"""
The rules that hold the tree together: who may import what, what a module exports, what lies at the top.

Formatting, docstrings and the order of `__all__` are ruff's; what no tool knows about this project stands here.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# For each package what it may import besides the standard library and itself, and in which of its modules.
DOORS = {
    "verifier": {
        "click": ["cli*.py"],
        "cryptography": ["*"],
        "httpx2": ["round_trip.py"],
        "joserfc": ["jwk.py"],
        "redis": ["replay_redis_*.py"],
        "rfc8785": ["action.py"],
    },
    "keys": {
        "cryptography": ["*"],
        "joserfc": ["key.py", "sealing.py"],
    },
    "issuer": {
        "keys": ["*"],
        "verifier": ["*"],
        "authlib": ["oauth.py"],
        "click": ["cli/*.py"],
        "cryptography": ["*"],
        "httpx2": ["cli/admin_client.py", "cli/token.py"],
        "joserfc": ["id_token_signature.py"],
        "litestar": ["app.py", "openapi.py", "http/*.py"],
        "msgspec": ["minting.py", "http/*.py"],
        "prometheus_client": ["metrics.py"],
        "pydantic": ["settings*.py"],
        "pydantic_core": ["settings*.py"],
        "pydantic_settings": ["settings*.py"],
        "redis": ["redis_clients.py", "redis_connection.py"],
        "structlog": ["logs.py"],
        "uvicorn": ["cli/serve.py"],
    },
}
# Identifiers are drawn with `secrets`, which neither of these does.
NEVER = {"random", "uuid"}
TOP = {
    *(".ci", ".github", "issuer", "keys", "openapi", "tests", "verifier"),
    *(".dockerignore", ".gitignore", "CHANGELOG.md", "Dockerfile", "LICENSE", "Makefile", "README.md"),
    *("pyproject.toml", "requirements-dev.lock", "requirements.lock"),
}

MODULES = sorted(path.relative_to(ROOT).as_posix() for package in DOORS for path in (ROOT / package).rglob("*.py"))


def tree_of(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_bytes(), module)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def bound(tree: ast.Module) -> set[str]:
    froms = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    return {*defined(tree), *(alias.asname or alias.name for node in froms for alias in node.names)}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_through_the_doors_only(module: str):
    """
    The issuer may use keys and verifier, those two nothing of ours; each dependency has its one place in a package.
    """
    package, _, inside = module.partition("/")
    doors = DOORS[package]

    foreign = set(imported(tree_of(module))) - sys.stdlib_module_names

    assert {name for name in foreign if not any(fnmatch(inside, door) for door in doors.get(name, ()))} == set()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_means_the_same_to_the_type_checker_and_at_run_time(module: str):
    """
    Nothing is imported for the type checker alone (litestar resolves annotations at run time) or drawn from weak randomness.
    """
    tree = tree_of(module)

    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert "TYPE_CHECKING" not in names
    assert NEVER.isdisjoint(imported(tree))


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_exports_is_complete(module: str):
    """
    `__all__`, where there is one, names every public name defined in the module, and only names that exist.
    """
    tree = tree_of(module)
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    exports = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    exported = {name for value in exports for name in ast.literal_eval(value)}

    public = {name for name in defined(tree) if not name.startswith("_")} if exports else set()

    assert public <= exported <= bound(tree)


@pytest.mark.parametrize("module", MODULES)
def test_a_decision_that_is_named_can_be_read(module: str):
    """
    "(D5)" in a module names an entry of the decisions, where the standards leave a choice.
    """
    entries = set(re.findall(r"^\*\*(D\d+)\.", (ROOT / ".github" / "DECISIONS.md").read_text(), re.MULTILINE))

    assert set(re.findall(r"\bD\d{1,2}\b", (ROOT / module).read_text())) <= entries


def test_every_test_says_what_it_shows():
    """
    Each test function has a docstring; those of the packages are ruff's to see to.
    """
    trees = [(path.name, ast.parse(path.read_bytes())) for path in (ROOT / "tests").rglob("test_*.py")]
    functions = (
        (file, node)
        for file, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )

    assert [f"{file}: {node.name}" for file, node in functions if not ast.get_docstring(node)] == []


def test_tests_are_no_packages():
    """
    An `__init__.py` under tests would shadow the package of the same name.
    """
    assert list((ROOT / "tests").rglob("__init__.py")) == []


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="only a git checkout knows its files"
)
def test_nothing_else_lies_at_the_top():
    """
    The top level holds the three packages, their tests, and the small files a project needs.
    """
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert {line.partition("/")[0] for line in listed.splitlines()} <= TOP
