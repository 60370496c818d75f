"""
The application: routes, errors, edge and pollers of a service, wired here and nowhere else.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, NoReturn

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from .admins import AdminAuthentication
from .bookkeeping import INTERVAL_S
from .client_entry import ClientEntry
from .form import MAX_BODY_OCTETS
from .http.admin import admin_routes
from .http.admin_calls import AdminDesk
from .http.errors import exception_handlers
from .http.health import operations_routes
from .http.jwks import jwks_routes
from .http.metadata import metadata_routes
from .http.middleware import Edge, Limits
from .http.sign_ins import sign_in_routes
from .http.token import token_route
from .oauth import OAuthServer
from .registry import Workspace
from .reload import Reloader, loaded
from .rings import POLL_S
from .service import Service
from .sign_in_desk import SignInDesk
from .token_endpoint import TokenEndpoint
from .wrong_secrets import WrongSecrets

__all__ = ["create_app", "routes"]

_TYPE: Final = re.compile(r":[a-z]+\}")


def create_app(
    service: Service,
    *,
    limits: Limits | None = None,
    poll_s: float = POLL_S,
    books_s: float = INTERVAL_S,
    reloader: Reloader | None = None,
    is_recorder: bool = True,
) -> Litestar:
    """
    Build the ASGI application; while it runs, it looks at each ring every *poll_s* seconds, and into the books every *books_s*.

    It also rotates keys when that is due, looks at a ring earlier where the store tells of changes, and takes another
    configuration when the *reloader* is asked for one: requests that are being answered end as they began. Of several processes
    that take the same configuration one is the recorder, which puts that into the trail.

    Nothing but the configured routes is served: no documentation pages, and no debugging whatever the environment says.
    """

    @asynccontextmanager
    async def pollers(app: Litestar) -> AsyncIterator[None]:
        watches = [*_watches(service, poll_s=poll_s, books_s=books_s)]
        if reloader is not None:
            loaded(service, is_recorder=is_recorder)
            watches.append(_follow(reloader, app, edge, service, is_recorder=is_recorder))
        tasks = [asyncio.create_task(watch) for watch in watches]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await service.aclose()

    handlers, labels = routes(service)
    app = _application(service, handlers, pollers)
    edge = Edge(observe=service.metrics.answered, monotonic=service.monotonic, routes=labels, limits=limits or Limits())
    # Litestar calls its own middleware after the routing, which would leave 404 and 405 without bounds, metrics and headers.
    app.asgi_handler = edge(app.asgi_handler)
    return app


def _watches(service: Service, *, poll_s: float, books_s: float) -> Iterator[Coroutine[Any, Any, None]]:
    for ring in service.rings.values():
        yield ring.watch(poll_s)
    for office in service.offices.values():
        yield office.books.watch(books_s)
        yield office.schedule.watch()
    if service.place is not None:
        yield service.place.listen({name: ring.wake for name, ring in service.rings.items()})


def _application(
    service: Service,
    handlers: list[HTTPRouteHandler],
    *lifespan: Callable[[Litestar], AbstractAsyncContextManager[None]],
) -> Litestar:
    return Litestar(
        route_handlers=handlers,
        exception_handlers=exception_handlers(service.report_failure),
        lifespan=lifespan,
        request_max_body_size=MAX_BODY_OCTETS,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


async def _follow(reloader: Reloader, app: Litestar, edge: Edge, service: Service, *, is_recorder: bool) -> NoReturn:
    """
    Answer by the configuration as it is read again, from one request to the next.
    """
    while True:
        await reloader.requested()
        try:
            renewed = await reloader.renewed(service)
            # Thousands of routes take their time, which is not that of the requests in between.
            inner = None if renewed is None else await asyncio.to_thread(_renewed_application, renewed)
        except Exception as error:  # noqa: BLE001 -- the service goes on with what it has
            service.report_failure(error)
        else:
            if renewed is not None and inner is not None:
                app.asgi_handler, service = edge(inner.asgi_handler), renewed
                loaded(service, is_recorder=is_recorder)


def _renewed_application(service: Service) -> Litestar:
    return _application(service, routes(service)[0])


def routes(service: Service) -> tuple[list[HTTPRouteHandler], Mapping[str, str]]:
    """
    Build every route, and the label that the answers of each path are counted under.

    Operations stand at the root of the service, everything else below its workspace.
    """
    operations = operations_routes(service.statuses, service.metrics)
    handlers = list(operations)
    labels = {path: path for handler in operations for path in handler.paths}
    for workspace in service.registry:
        built = _workspace_routes(service, workspace)
        handlers += built
        labels |= {_TYPE.sub("}", path): _label(path, workspace) for handler in built for path in handler.paths}
    return handlers, labels


def _workspace_routes(service: Service, workspace: Workspace) -> tuple[HTTPRouteHandler, ...]:
    ring = service.rings[workspace.name]
    events = service.sign_in_events(workspace)
    server = OAuthServer(workspace, service.now)
    entry = ClientEntry(workspace, server, service.state, service.report)
    endpoint = TokenEndpoint(
        workspace,
        ring=ring,
        server=server,
        entry=entry,
        state=service.state,
        events=events,
        metrics=service.metrics,
        mints=service.mints,
        report=service.report,
        now=service.now,
    )
    sign_ins = SignInDesk(
        workspace, events=events, records=service.state.sign_ins, report=service.report, now=service.now
    )
    return (
        token_route(workspace, endpoint, service.sources),
        *sign_in_routes(workspace, desk=sign_ins, entry=entry, sources=service.sources, report=service.report),
        *admin_routes(workspace, _admin_desk(service, workspace)),
        *jwks_routes(workspace, ring, times=service.times, metrics=service.metrics, now=service.now),
        *metadata_routes(workspace),
    )


def _admin_desk(service: Service, workspace: Workspace) -> AdminDesk:
    return AdminDesk(
        workspace,
        administration=service.offices[workspace.name].administration,
        authentication=AdminAuthentication(
            workspace,
            service.state.assertion_ids,
            WrongSecrets(workspace.name, service.state.limits, service.report),
            service.now,
        ),
        records=service.state.admin_records,
        books=service.offices[workspace.name].books,
        head=lambda: service.rings[workspace.name].head,
        report=service.report,
        now=service.now,
        sources=service.sources,
    )


def _label(path: str, workspace: Workspace) -> str:
    # The same for every workspace: their number must not multiply the series. In a template, parameters have no types.
    path = _TYPE.sub("}", path)
    if path.startswith(f"{workspace.path}/"):
        return "{workspace}" + path.removeprefix(workspace.path)
    return path.removesuffix(workspace.path) + "{workspace}"
