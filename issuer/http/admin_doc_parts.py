"""
The parts that the descriptions of the admin routes are made of: security, the idempotency key, bodies, answers, problems.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..admin_idempotency import MAX_RECORDS, RETENTION_S
from .admin_problems import ADMIN_PROBLEMS
from .docs import answer
from .json_body import MAX_BODY_OCTETS
from .problem_docs import problem_answers
from .problems import Problem

__all__ = [
    "ADMIN_SECURITY",
    "ADMIN_SECURITY_SCHEMES",
    "answers",
    "body",
    "key_parameter",
    "number",
    "path_parameter",
    "shown",
    "told",
]

ADMIN_SECURITY_SCHEMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "adminSecret": {
        "type": "http",
        "scheme": "basic",
        "description": "Name and secret of an admin, each form-urlencoded first (RFC 6749 section 2.3.1). After too many wrong "
        "secrets the next wrong one is answered 429; the right one is accepted at any time.",
    },
    "adminAssertion": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": (
            "A JWT of `typ` `caplo-admin+jwt` for this one call, signed by a key of the admin with ES256: `iss` and `sub` the "
            "admin, `aud` this issuer and nothing else, `iat`, `exp` at most 60 seconds after `iat` and ahead, `jti` used once, "
            "`htm` and `htu` the method and the URL without query and fragment (RFC 9449 section 4.2). A token that this service "
            "issued is never accepted here."
        ),
    },
}

ADMIN_SECURITY: Final[list[dict[str, list[str]]]] = [{"adminSecret": []}, {"adminAssertion": []}]

_HEAD: Final = {
    "Audit-Head": {
        "description": "The end of the audit trail: the number of its last record, a dot, and the hash of that record's line. "
        "Whoever notes it can tell later whether the trail was cut or rewritten. It stands in every answer to an admin.",
        "schema": {"type": "string", "pattern": r"^(0|[1-9][0-9]*)\.[A-Za-z0-9_-]{43}$"},
    }
}

_WITHOUT_HEAD: Final = ("401", "414", "431", "500")

_KEY_RULES: Final = (
    "16 to 128 of A-Z a-z 0-9 . _ ~ -, bare or in double quotes. It belongs to this admin, method and path. Sent again with the "
    f"same body, the call is not done again: within {RETENTION_S // 3600} hours its answer comes again, and while it goes on "
    "409. With another body it is 422. A call that was refused is not remembered. "
    f"At most {MAX_RECORDS} calls of an admin are remembered at a time."
)


def key_parameter(*, is_required: bool) -> dict[str, Any]:
    """
    Describe `Idempotency-Key`.
    """
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": is_required,
        "description": _KEY_RULES,
        "schema": {"type": "string", "minLength": 16, "maxLength": 130},
        "example": "idk_5pQ0m3m1Yt7uVxk2Rr9aBw",
    }


def path_parameter(name: str, description: str) -> dict[str, Any]:
    """
    Describe a parameter of the path.
    """
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
    }


def body(schema: str, **examples: Any) -> dict[str, Any]:
    """
    Describe a body by the name of a component, with examples by name.
    """
    named = {name: {"value": value} for name, value in examples.items()}
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": named}
    description = f"Strict JSON in UTF-8, without unknown members and equal ones. At most {MAX_BODY_OCTETS} octets."
    return {"required": True, "description": description, "content": {"application/json": content}}


def shown(slug: str, **extensions: Any) -> tuple[Problem, Mapping[str, Any]]:
    """
    Name a problem type that says more than its status, with the extension members of its example.
    """
    return ADMIN_PROBLEMS[slug], extensions


def answers(
    success: Mapping[str, Any], *statuses: int, examples: Iterable[tuple[Problem, Mapping[str, Any]]] = ()
) -> dict[str, Any]:
    """
    Describe all answers: the one of success, and problems by status, with examples of those that say more than it.
    """
    problems = problem_answers(400, 401, 403, 429, 503, *statuses, examples=examples)
    for status, each in problems.items():
        # Those who are not let in, and those whom the edge refuses before anybody looks who calls, do not learn it.
        if status not in _WITHOUT_HEAD:
            each["headers"] = {**each.get("headers", {}), **_HEAD}
    return {**success, **problems}


def told(status: int, description: str, schema: str, example: Any) -> dict[str, Any]:
    """
    Describe the answer of success.
    """
    return {str(status): answer(description, schema=schema, headers=_HEAD, examples={"answer": example})}


def number(name: str, description: str, **schema: int) -> dict[str, Any]:
    """
    Describe a parameter of the query that is a number.
    """
    return {"name": name, "in": "query", "description": description, "schema": {"type": "integer", **schema}}
