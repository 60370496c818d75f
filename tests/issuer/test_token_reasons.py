"""
Every reason for which a token request is refused, reached over HTTP, and what of such a request is never repeated anywhere.
"""

import ast
import io
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

import issuer
from issuer.limits import Over
from issuer.logs import configure_logging
from issuer.service import report
from issuer.subject import JWT_TOKEN_TYPE

from .site import Answer, Site
from .world import NOW, SHOP

Ask = Callable[[Site], Answer]

PACKAGE = Path(issuer.__file__).parent
SUB, ARGUMENT, SECRET, KEY = "cus_marked_48213", "argument-marked-A1001", "secret-marked-1", "idk-marked-000001"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"


def form(**parameters) -> Ask:
    return lambda site: site.ask(**parameters)


def body(octets: bytes, *lines: tuple[str, str | None]) -> Ask:
    return lambda site: site.post(octets, lines)


def subject(client="orc_main", **changes) -> Ask:
    return lambda site: site.ask(client=client, subject_token=site.subject_token(client, **{"sub": SUB, **changes}))


def action(**changes) -> Ask:
    return lambda site: site.ask(authorization_details=site.details(**{"arguments": {"o": ARGUMENT}, **changes}))


def credentials(text: str) -> Ask:
    return lambda site: site.post(site.form(client="orc_basic"), {"Authorization": text})


def twice(client: str = "orc_main", **changes) -> Ask:
    """
    Ask for two things under one idempotency key.
    """

    def ask(site: Site) -> Answer:
        site.ask(client=client, authorization_details=site.details(idempotencyKey=KEY))
        return site.ask(client=client, authorization_details=site.details(idempotencyKey=KEY, **changes))

    return ask


def exhausted(site: Site) -> Answer:
    details = site.details(idempotencyKey=KEY)
    for _ in range(20):
        assert site.ask(authorization_details=details).status == 200
    return site.ask(authorization_details=details)


def repeated_target(site: Site) -> Answer:
    return site.post(f"{urlencode(site.form())}&resource={SHOP}".encode())


def replayed(site: Site) -> Answer:
    assertion = site.client_assertion()
    site.ask(client_assertion=assertion)
    return site.ask(client_assertion=assertion)


def with_store(name: str, answer: object) -> Ask:
    async def asked(*_asked):
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(site: Site) -> Answer:
        setattr(site.state, name, SimpleNamespace(use=asked, claim=asked))
        return site.ask(authorization_details=site.details())

    return ask


def with_limits(answer: object, ask: Ask) -> Ask:
    """
    Ask of limits that say so, or fail.
    """

    async def asked(*_asked):
        if isinstance(answer, Exception):
            raise answer
        return answer

    def asking(site: Site) -> Answer:
        site.state.limits = SimpleNamespace(request=asked, wrong_secret=asked)
        return ask(site)

    return asking


def without_ring(site: Site) -> Answer:
    site.lose_rings()
    return site.ask()


ASSERTION_FAULTS: dict[str, dict] = {
    "malformed": {"header": {"crit": ["exp"]}},
    "type": {"header": {"typ": "at+jwt"}},
    "algorithm": {"header": {"alg": "HS256"}},
    "key": {"header": {"kid": "marked"}},
    "signature": {"header": {"kid": "client-2"}},
    "audience": {"aud": SHOP},
    "expired": {"exp": NOW},
    "lifetime": {"exp": NOW + 301},
    "not_yet_valid": {"nbf": NOW + 6},
    "exp": {"exp": "x"},
    "iat": {"iat": "x"},
    "nbf": {"nbf": "x"},
    "iss": {"iss": 5},
    "sub": {"sub": ""},
    "jti": {"jti": ...},
}
"""By the word of the refusal, what has it in any kind of assertion."""


def faulty(kind: str, changes: dict) -> Ask:
    """
    Ask with a faulty client assertion, subject token or actor token.
    """
    if kind == "subject_token" and changes.get("header") == {"kid": "client-2"}:
        changes = {"header": {"kid": "subject-2"}}

    def ask(site: Site) -> Answer:
        token = getattr(site, kind)(**changes)
        return site.ask(**({"actor_token_type": JWT_TOKEN_TYPE} if kind == "actor_token" else {}), **{kind: token})

    return ask


REASONS: dict[str, tuple[int, str, Ask]] = {
    "form:media_type": (400, "invalid_request", body(b"a=1", ("Content-Type", "application/json"))),
    "form:syntax": (400, "invalid_request", body(b"a")),
    "form:encoding": (400, "invalid_request", body(b"a=%zz")),
    "form:count": (400, "invalid_request", body(b"&".join(b"a%d=1" % n for n in range(65)))),
    "form:repeated": (400, "invalid_request", body(b"a=1&a=1")),
    "missing:grant_type": (400, "invalid_request", form(grant_type=None)),
    "missing:subject_token": (400, "invalid_request", form(subject_token="")),
    "missing:subject_token_type": (400, "invalid_request", form(subject_token_type=None)),
    "client:two_methods": (400, "invalid_request", form(client_secret=SECRET)),
    "client:no_credentials": (401, "invalid_client", form(client_assertion=None, client_assertion_type=None)),
    "client:secret_in_body": (401, "invalid_client", body(f"client_id=c1&client_secret={SECRET}".encode())),
    "client:scheme": (401, "invalid_client", credentials(f"Bearer {SECRET}")),
    "client:credentials": (401, "invalid_client", credentials("Basic b3JjX2Jhc2ljOnNlY3JldC1tYXJrZWQtMQ==")),
    "client:other_client_id": (401, "invalid_client", form(client_id="orc_second")),
    "client:assertion_type": (401, "invalid_client", form(client_assertion_type="x")),
    "client_assertion:issuer": (401, "invalid_client", faulty("client_assertion", {"iss": "orc_second"})),
    "client_assertion:replayed": (401, "invalid_client", replayed),
    "client_assertion:cannot_tell": (503, "temporarily_unavailable", with_store("assertion_ids", OSError(SECRET))),
    "grant_type": (400, "unsupported_grant_type", form(grant_type="password")),
    "requested_token_type": (400, "invalid_request", form(requested_token_type=ID_TOKEN)),
    "target:missing": (400, "invalid_target", form(resource=None)),
    "target:repeated": (400, "invalid_target", repeated_target),
    "target:differ": (400, "invalid_target", form(audience="https://billing.shop.example")),
    "target:not_allowed": (400, "invalid_target", form(resource="https://unknown.example")),
    "subject_token:token_type": (
        400,
        "invalid_request",
        form(subject_token_type="urn:ietf:params:oauth:token-type:saml2"),
    ),
    "subject_token:not_allowed": (400, "unauthorized_client", subject("orc_mute")),
    "subject_token:subject": (400, "invalid_request", subject(sub="orc_main")),
    "subject_token:namespace": (400, "invalid_request", subject(namespace="bank-login")),
    "subject_token:acr": (400, "invalid_request", subject(acr="gold")),
    "subject_token:auth_time": (400, "invalid_request", subject(auth_time=NOW + 6)),
    "subject_token:scope": (400, "invalid_request", subject(scope=5)),
    "subject_token:act": (400, "invalid_request", subject(act="agt_support")),
    "subject_token:may_act": (400, "invalid_request", subject(may_act="agt_support")),
    "actor_token:pair": (400, "invalid_request", form(actor_token="x")),
    "actor_token:token_type": (400, "invalid_request", form(actor_token="x", actor_token_type=ID_TOKEN)),
    "actor_token:missing": (400, "invalid_request", subject("orc_strict")),
    "actor_token:issuer": (400, "invalid_request", faulty("actor_token", {"iss": "orc_second"})),
    "actor:ambiguous": (400, "invalid_request", subject(act=...)),
    "actor:depth": (
        400,
        "invalid_request",
        lambda site: site.ask(
            **site.actor(),
            subject_token=site.subject_token(
                act={"sub": "a", "act": {"sub": "b", "act": {"sub": "c", "act": {"sub": "d"}}}}
            ),
        ),
    ),
    "actor:not_allowed": (400, "invalid_request", subject(act={"sub": "agt_foreign"})),
    "actor:may_act": (400, "invalid_request", subject(may_act={"sub": "agt_orders"})),
    "scope:form": (400, "invalid_scope", form(scope="a  b")),
    "scope:needs_action": (400, "invalid_scope", form(scope="orders:write")),
    "scope:not_allowed": (400, "invalid_scope", form(scope="unknown")),
    "scope:wider": (
        400,
        "invalid_scope",
        lambda site: site.ask(scope="orders:read", subject_token=site.subject_token(scope="x")),
    ),
    "max_age:form": (400, "invalid_request", form(max_age="-1")),
    "authentication:unmet": (400, "unmet_authentication_requirements", form(acr_values="high")),
    "action:json": (400, "invalid_authorization_details", form(authorization_details=f"[{ARGUMENT}")),
    "action:count": (400, "invalid_authorization_details", form(authorization_details="[]")),
    "action:type": (400, "invalid_authorization_details", form(authorization_details='[{"type": "x"}]')),
    "action:members": (400, "invalid_authorization_details", action(unknown=ARGUMENT)),
    "action:unknown": (400, "invalid_authorization_details", action(action="marked_action")),
    "action:idempotency_key": (400, "invalid_authorization_details", action(idempotencyKey="marked")),
    "action:arguments": (400, "invalid_authorization_details", action(arguments={ARGUMENT: 2**53})),
    "action:selector": (
        400,
        "invalid_authorization_details",
        action(action="change_address", arguments={"account": ARGUMENT}),
    ),
    "confirmation:form": (400, "invalid_authorization_details", action(confirmation={"by": "client"})),
    "confirmation:customer": (400, "invalid_authorization_details", action(confirmation={"by": "customer"})),
    "confirmation:too_weak": (400, "invalid_authorization_details", action(confirmation={"by": "none"})),
    "confirmation:expired": (
        400,
        "invalid_authorization_details",
        action(confirmation={"by": "client", "at": NOW - 1800}),
    ),
    "idempotency:conflict": (400, "invalid_request", twice(arguments={"o": ARGUMENT})),
    "idempotency:exhausted": (400, "invalid_authorization_details", exhausted),
    "idempotency:full": (429, "temporarily_unavailable", with_store("idempotency", "full")),
    "idempotency:cannot_tell": (503, "temporarily_unavailable", with_store("idempotency", OSError(SECRET))),
    "limit:client": (429, "temporarily_unavailable", with_limits(Over("client", 1), form())),
    "limit:customer": (429, "temporarily_unavailable", with_limits(Over("customer", 1), form())),
    "limit:wrong_secrets": (
        429,
        "temporarily_unavailable",
        with_limits(Over("wrong_secrets", 1), credentials("Basic b3JjX2Jhc2ljOnNlY3JldC1tYXJrZWQtMQ==")),
    ),
    "limits:cannot_tell": (503, "temporarily_unavailable", with_limits(OSError(SECRET), form())),
    "mint:dead_on_arrival": (400, "invalid_request", subject(exp=NOW + 0.5)),
    "mint:too_long": (
        400,
        "invalid_request",
        lambda site: site.ask(
            authorization_details=site.details(idempotencyKey="k" * 128),
            subject_token=site.subject_token(
                sub=SUB + "s" * 1000,
                act={"sub": "agt_support", "act": {"sub": "a" * 1024, "iss": "i" * 2600, "act": {"sub": "b" * 1000}}},
            ),
        ),
    ),
    "ring:unavailable": (503, "temporarily_unavailable", without_ring),
    **{
        f"{kind}:{word}": (status, error, faulty(kind, changes))
        for kind, status, error in (
            ("client_assertion", 401, "invalid_client"),
            ("subject_token", 400, "invalid_request"),
            ("actor_token", 400, "invalid_request"),
        )
        for word, changes in ASSERTION_FAULTS.items()
        if (kind, word) != ("client_assertion", "sub")
    },
}
"""By reason, the status, the error and a request that has it."""

ELSEWHERE = {
    "form:size": "the framework stops reading a larger body and answers 413; tests/issuer/test_form.py has the reason",
    **dict.fromkeys(
        (
            "confirmation:other_customer",
            "id_token:cannot_tell",
            "id_token:keys_unavailable",
            "sign_in:ahead",
            "sign_in:cannot_tell",
            "sign_in:provider",
            "sign_in:sub",
            "sign_in:unknown",
        ),
        "needs an identity provider; tests/issuer/test_sign_in_tokens.py has one",
    ),
    "missing:logout_token": "needs a provider that tells of a logout; tests/issuer/http/test_sign_ins.py has one",
    "client_assertion:sub": "whose keys to take is known from `sub`, so without a good one there are none: client_assertion:key",
    **{
        f"suspended:{kind}": "needs a ring that says so; tests/issuer/test_suspended_mints.py has one"
        for kind in ("client", "agent", "customer", "action")
    },
}
"""Reasons that no request to the service as it is has, and why; where there is one, the test that has it."""


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_has_its_request(reason, site):
    """
    One request a reason, with the status and the registered code that go with it.
    """
    status, error, ask = REASONS[reason]

    answer = ask(site)

    assert answer.refusal == (status, error, reason)
    assert ("retry-after" in answer.headers) == (status in (429, 503))


@lru_cache
def trees() -> Mapping[str, tuple[ast.AST, ...]]:
    """
    Parse the modules that can refuse a token request, by name.
    """
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    refusing = {name: text for name, text in texts.items() if re.search(r"\b(Token|Assertion)Refused\b", text)}
    return {name: tuple(ast.walk(ast.parse(text))) for name, text in refusing.items()}


def words(nodes: Iterable[ast.AST], **positions: int) -> set[str]:
    """
    Collect the constants that calls of the named functions have at the given positions of their arguments.
    """
    found = set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        position = positions.get(getattr(call.func, "id", getattr(call.func, "attr", "")))
        if position is not None and len(call.args) > position and isinstance(call.args[position], ast.Constant):
            found.add(call.args[position].value)
    return found


PARTS = {"kind.name": "(subject_token|actor_token)"}
"""What stands for a word that is computed, where it is known better than that it is a word."""


def test_no_reason_is_missing_here():
    """
    The words that the source refuses with are the words of the table, neither more nor fewer.
    """
    nodes = [node for module in trees().values() for node in module]
    given = [each.value for each in nodes if isinstance(each, ast.keyword) and each.arg == "reason"]
    fixed = {value.value for value in given if isinstance(value, ast.Constant)}
    chosen = {each.value for value in given if isinstance(value, ast.IfExp) for each in (value.body, value.orelse)}
    patterns = [
        "".join(
            PARTS.get(ast.unparse(part.value), "[a-z_]+") if isinstance(part, ast.FormattedValue) else part.value
            for part in value.values
        )
        for value in given
        if isinstance(value, ast.JoinedStr)
    ]
    tabled = {*REASONS, *ELSEWHERE}

    refused = words(trees()["assertions.py"], AssertionRefused=0, _time=1, _text=1)
    claims = words(trees()["subject.py"], _refused=0, _text=1)
    required = words(nodes, require=0)

    assert fixed | chosen <= tabled
    assert {
        reason for reason in tabled - fixed - chosen if not any(re.fullmatch(each, reason) for each in patterns)
    } == set()
    assert [each for each in patterns if not any(re.fullmatch(each, reason) for reason in tabled)] == []
    assert refused == set(ASSERTION_FAULTS)
    assert {f"subject_token:{claim}" for claim in claims} <= tabled
    assert {f"missing:{name}" for name in required} == {reason for reason in tabled if reason.startswith("missing:")}


MARKED = (SUB, ARGUMENT, SECRET, KEY, "marked", "eyJ")
"""Customer, argument, secret, key of the action, what else was sent, and the beginning of every token."""


def everything(site: Site) -> Iterator[Answer]:
    """
    Send every request that is refused, and with the same marked values what is granted.
    """
    for reason, (_, _, ask) in REASONS.items():
        site.renew()
        answer = ask(site)
        assert answer.reason == reason
        yield answer
    site.renew()
    details = site.details(arguments={"o": ARGUMENT}, idempotencyKey=KEY)
    granted = site.ask(subject_token=site.subject_token(sub=SUB), authorization_details=details)
    assert granted.claims["sub"] == SUB


def test_no_error_repeats_anything_of_a_request(site):
    """
    Texts are fixed: neither customer nor argument, secret, token or key comes back in a body or a header of a refusal.
    """
    shown = [f"{answer.text} {answer.headers}" for answer in everything(site)]

    assert [text for text in shown if any(mark in text for mark in MARKED)] == []


@contextmanager
def logging_to(stream: io.StringIO) -> Iterator[io.StringIO]:
    """
    Log as the service does, everything, to *stream*, and as before afterwards.
    """
    loggers = [logging.getLogger(name) for name in ("", "authlib", "issuer", "keys", "uvicorn.access", "verifier")]
    before = [(logger.handlers[:], logger.level, logger.disabled) for logger in loggers]
    configure_logging("debug", json=True, stream=stream)
    yield stream
    for logger, (handlers, level, disabled) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.disabled = handlers, disabled
        logger.setLevel(level)


def test_neither_log_nor_metrics_hold_anything_of_a_request(site, monkeypatch):
    """
    Promise 5: no event, no line of the real log and no series has a customer, an argument, a secret, a token or a key in it.
    """
    events: list[tuple[str, dict]] = []

    def reported(event: str, **facts: str | int | None):
        events.append((event, facts))
        report(event, **facts)

    monkeypatch.setattr(site, "report_too", reported)
    with logging_to(io.StringIO()) as stream:
        answers = list(everything(site))

    lines = stream.getvalue()
    assert len(answers) == len(REASONS)
    assert {facts["reason"] for event, facts in events if event == "token_refused"} >= set(REASONS)
    assert all(json.loads(line) for line in lines.splitlines())
    for mark in MARKED:
        assert mark not in repr(events)
        assert mark not in lines
        assert mark not in site.service.metrics.render(site.service.statuses()).decode()
    assert site.failures == []
