"""
How routes describe themselves in the OpenAPI document: an operation that is written out, and the answers that it has.

Handlers carry their description as `operation_class`; Litestar builds the paths around it, so no route can stand in the
document that the service does not serve, and none can be served that is missing there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from litestar.openapi.spec import Operation

__all__ = ["RETRY_AFTER", "DocumentedOperation", "answer"]

RETRY_AFTER: Final = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}}}
"""The header field of answers that ask to wait."""


@dataclass
class DocumentedOperation(Operation):
    """
    An operation whose description is written out instead of derived from the handler's signature, `operationId` included.
    """

    documentation: ClassVar[Mapping[str, Any]] = {}

    def to_schema(self) -> dict[str, Any]:
        """
        Return the operation with `documentation` over what Litestar derived.
        """
        return super().to_schema() | dict(self.documentation)


def answer(
    description: str,
    *,
    schema: str | None = None,
    media_type: str = "application/json",
    headers: Mapping[str, Any] | None = None,
    examples: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    Build one response object; *schema* is the name of a component, *examples* are values by name.
    """
    response: dict[str, Any] = {"description": description}
    if headers:
        response["headers"] = dict(headers)
    if schema is not None:
        content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
        if examples:
            content["examples"] = {name: {"value": value} for name, value in examples.items()}
        response["content"] = {media_type: content}
    return response
