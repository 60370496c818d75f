"""
The OpenAPI document, built from the routes that the service really has: `python -m issuer.openapi openapi/openapi.json`.

It is made offline, from an example with one workspace at the root; every issuer serves the same below its own URL. The service
itself serves no documentation: its usual pages load scripts from elsewhere.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Server, ServerVariable, Tag

from keys import FileKeyStore, KeyTimes, SealingKeys, generate_sealing_key

from .app import routes
from .audit import FileTrail, LineFile, Spill
from .http.admin_doc_parts import ADMIN_SECURITY_SCHEMES
from .http.admin_schemas import ADMIN_SCHEMAS
from .http.docs import DocumentedOperation
from .http.problem_docs import PROBLEM_SCHEMAS
from .http.public_docs import PUBLIC_SCHEMAS
from .http.sign_in_docs import SIGN_IN_SCHEMAS, SIGN_IN_SECURITY_SCHEMES
from .http.token_docs import SECURITY_SCHEMES
from .http.token_schemas import TOKEN_SCHEMAS
from .ledger import Ledger
from .limits import Rates
from .limits_memory import MemoryLimits
from .metrics import Metrics
from .mint_counts import MintCounts
from .office import open_office
from .registry import Connection, Registry, Workspace
from .rings import LiveRing
from .schedule import steady_clock
from .service import Service, report, report_failure
from .state import memory_state

__all__ = ["document", "main", "rendered"]

_ORIGIN: Final = "https://id.example.com"

_DESCRIPTION: Final = """\
Identity for calls that an AI agent makes on behalf of a customer. An orchestrator asks the token endpoint for a customer \
context token, which serves one call to one API; the API verifies it against the published keys.

Paths are relative to an issuer URL, one for each workspace, and listed from a workspace at the root of its origin. For an \
issuer with a path, such as `https://id.example.com/w/acme`, the metadata also stands where RFC 8414 inserts it: \
`https://id.example.com/.well-known/oauth-authorization-server/w/acme`.

Errors of the token endpoint are RFC 6749 JSON; those of all other routes are RFC 9457 problem details."""

_TAGS: Final = {
    "tokens": "Asking for a token.",
    "keys": "The public keys that tokens are verified with.",
    "sign-ins": "Customers who signed in at an identity provider, as clients record them.",
    "admin": "For those who look after the keys: rotation, revocation, suspensions and the audit trail of a workspace.",
    "discovery": "What an issuer supports.",
    "operations": "For those who run the service.",
}


def document() -> dict[str, Any]:
    """
    Build the document.
    """
    handlers, _ = routes(_example())
    config = OpenAPIConfig(
        title="Customer context issuer",
        version="1.0",
        description=_DESCRIPTION,
        servers=[
            Server(url="{issuer}", description="An issuer.", variables={"issuer": ServerVariable(default=_ORIGIN)})
        ],
        tags=[Tag(name=name, description=text) for name, text in _TAGS.items()],
        operation_id_creator=_operation_id,
    )
    built = Litestar(route_handlers=handlers, openapi_config=config, logging_config=None).openapi_schema.to_schema()
    built["components"] = {
        "schemas": {**PROBLEM_SCHEMAS, **PUBLIC_SCHEMAS, **TOKEN_SCHEMAS, **SIGN_IN_SCHEMAS, **ADMIN_SCHEMAS},
        "securitySchemes": {**SECURITY_SCHEMES, **SIGN_IN_SECURITY_SCHEMES, **ADMIN_SECURITY_SCHEMES},
    }
    return built


def _operation_id(handler: HTTPRouteHandler, *_: object) -> str:
    # Litestar makes sure that no two are the same; by itself it would take the names of functions.
    operation = cast("type[DocumentedOperation]", handler.operation_class)
    return str(operation.documentation["operationId"])


def rendered() -> str:
    """
    Write the document so that equal documents are equal files: sorted, indented, with a newline at the end.
    """
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> None:
    """
    Write the document to the one path that *arguments* name.
    """
    (path,) = arguments
    Path(path).write_text(rendered(), encoding="utf-8")


def _example() -> Service:
    connection = Connection(
        name="shop",
        namespace="shop-login",
        audiences=("https://api.shop.example",),
        scopes=frozenset({"orders:read"}),
        actions={},
    )
    workspace = Workspace(name="example", path="", issuer=_ORIGIN, connections=(connection,), clients={}, admins={})
    # Nothing is read: the routes are described, not called.
    sealing, mints, times = SealingKeys(generate_sealing_key("example")), MintCounts(time.time()), KeyTimes()
    store = FileKeyStore(Path("example.jwe"), workspace.name, sealing)
    trail, spill = FileTrail(Path("example.jsonl")), Spill(LineFile(Path("example.spilled.jsonl")))
    ledger = Ledger(
        workspace.name, store=store, trail=trail, spill=spill, sealing=sealing, now=time.time, report=report
    )
    ring = LiveRing(workspace.name, store, now=time.time, monotonic=time.monotonic, report=report)
    office = open_office(
        workspace,
        ring=ring,
        store=store,
        ledger=ledger,
        times=times,
        mints=mints,
        now=time.time,
        store_now=steady_clock(time.time, time.monotonic),
        report=report,
    )
    return Service(
        registry=Registry(origin=_ORIGIN, workspaces=(workspace,)),
        rings={workspace.name: ring},
        offices={workspace.name: office},
        state=memory_state(time.time, sealing, MemoryLimits(Rates(), time.monotonic)),
        metrics=Metrics(),
        mints=mints,
        times=times,
        report=report,
        report_failure=report_failure,
        now=time.time,
        monotonic=time.monotonic,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
