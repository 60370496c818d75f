"""
How problems are described in the OpenAPI document: each as an answer of its status, all of them as one component (RFC 9457).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .admin_problems import ADMIN_PROBLEMS
from .admin_schemas import PROBLEM_EXTENSIONS
from .docs import RETRY_AFTER, answer
from .problems import PROBLEM_JSON, PROBLEMS, Problem, problem_members
from .sign_in_problems import SIGN_IN_PROBLEMS

__all__ = ["PROBLEM_SCHEMAS", "problem_answers"]

_CHALLENGE: Final = {
    "WWW-Authenticate": {
        "description": "With 401 a Basic and a Bearer challenge, with 403 the permission that is lacking (RFC 6750 section 3).",
        "schema": {"type": "string"},
    }
}

_EDGE_STATUSES: Final = (414, 415, 431, 500)
"""What every route may answer, whatever it does."""


def problem_answers(
    *statuses: int, examples: Iterable[tuple[Problem, Mapping[str, Any]]] = ()
) -> dict[str, dict[str, Any]]:
    """
    Build the responses for problems, by status, those of the edge included.

    *examples* are problems that say more than their status, each with its extension members.
    """
    answers = {str(status): _problem_answer(status) for status in sorted({*statuses, *_EDGE_STATUSES})}
    for problem, extensions in examples:
        shown = answers[str(problem.status)]["content"][PROBLEM_JSON]["examples"]
        shown[problem.slug] = {"value": problem_members(problem) | dict(extensions)}
    return answers


def _problem_answer(status: int) -> dict[str, Any]:
    problem = PROBLEMS[status]
    headers = {401: _CHALLENGE, 403: _CHALLENGE, 429: RETRY_AFTER, 503: RETRY_AFTER}
    return answer(
        problem.meaning,
        schema="Problem",
        media_type=PROBLEM_JSON,
        headers=headers.get(status),
        examples={problem.slug: problem_members(problem)},
    )


_PROBLEM_TYPES: Final = "\n".join(
    f"* `{each.uri}` ({each.status}): {each.meaning}"
    for each in (*PROBLEMS.values(), *SIGN_IN_PROBLEMS.values(), *ADMIN_PROBLEMS.values())
)

PROBLEM_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Problem": {
        "type": "object",
        "description": f"RFC 9457 problem details. Types:\n\n{_PROBLEM_TYPES}",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string", "format": "uri", "description": "A stable name; compare it, do not fetch it."},
            "title": {"type": "string"},
            "status": {"type": "integer", "description": "Equals the status of the answer."},
            "detail": {"type": "string"},
            "reason": {
                "type": "string",
                "description": "A closed word: what is wrong with a token of an identity provider.",
            },
            **PROBLEM_EXTENSIONS,
        },
    },
}
"""The component of all problems."""
