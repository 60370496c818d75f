"""
The OpenAPI document: it is what the code says, it hangs together, and what it promises is what the service does.
"""

import json
import re
import runpy
import sys
from pathlib import Path
from typing import get_args

import pytest

from issuer.errors import OAuthError
from issuer.http.admin_problems import ADMIN_PROBLEMS
from issuer.http.errors import OAUTH_EVENTS
from issuer.http.problems import PROBLEMS
from issuer.openapi import document, main, rendered
from issuer.registry import Permission

STORED = Path(__file__).parent.parent / "openapi" / "openapi.json"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
TOKEN = "/oauth/token"


@pytest.fixture(scope="module")
def described():
    return document()


def operations(described):
    """
    Yield path, method and operation.
    """
    for path, item in described["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield path, method, operation


def parts(value):
    """
    Yield every object, at every depth.
    """
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from parts(member)
    elif isinstance(value, list):
        for member in value:
            yield from parts(member)


TYPES = {
    "object": dict,
    "array": (list, tuple),
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def fits(described, value, schema):
    """
    Tell whether *value* is what *schema* says, for the keywords that matter to the examples.
    """
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    named = schema.get("type", ())
    allowed = tuple(TYPES[name] for name in ([named] if isinstance(named, str) else named)) or object
    is_plain = (
        isinstance(value, allowed)
        and value == schema.get("const", value)
        and value in schema.get("enum", [value])
        and ("pattern" not in schema or re.search(schema["pattern"], value) is not None)
    )
    members, children = schema.get("properties", {}), []
    if isinstance(value, dict) and members:
        is_plain = is_plain and set(schema.get("required", ())) <= set(value) <= set(members)
        children = [(member, members.get(name, {})) for name, member in value.items()]
    elif isinstance(value, list):
        children = [(each, schema["items"]) for each in value]
    return is_plain and all(fits(described, *child) for child in children)


def test_the_stored_document_is_the_one_the_code_builds():
    """
    Run `make openapi` when this fails, and look at what changed for callers.
    """
    assert STORED.read_text(encoding="utf-8") == rendered()


def test_it_is_written_to_the_path_that_is_named(tmp_path):
    """
    Sorted, indented, with a newline at the end; the same for the module run as a program.
    """
    by_call, by_module = tmp_path / "call.json", tmp_path / "module.json"

    main([str(by_call)])
    arguments, sys.argv = sys.argv, ["openapi", str(by_module)]
    try:
        with pytest.warns(RuntimeWarning, match="found in sys.modules"):
            runpy.run_module("issuer.openapi", run_name="__main__")
    finally:
        sys.argv = arguments

    text = by_call.read_text(encoding="utf-8")
    assert by_module.read_text(encoding="utf-8") == text
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_every_reference_and_name_resolves(described):
    """
    Components that are named exist, those that exist are named; tags and security schemes are declared.
    """
    named = {part["$ref"] for part in parts(described) if "$ref" in part}
    schemas = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    tags = {tag["name"] for tag in described["tags"]}
    schemes = set(described["components"]["securitySchemes"])

    assert named == schemas
    assert {tag for *_, operation in operations(described) for tag in operation["tags"]} == tags
    assert {name for part in parts(described["paths"]) for each in part.get("security", ()) for name in each} == schemes


def test_every_operation_says_what_it_is(described):
    """
    A unique id, a summary, and a description of each of its answers.
    """
    ids = [operation["operationId"] for *_, operation in operations(described)]

    assert described["openapi"].startswith("3.1")
    assert len(set(ids)) == len(ids)
    for *_, operation in operations(described):
        assert operation["summary"]
        assert all(response["description"] for response in operation["responses"].values())


def test_the_routes_are_those_of_an_issuer(described):
    """
    Relative to the issuer URL, operations aside.
    """
    assert {(path, method) for path, method, _ in operations(described)} == {
        ("/oauth/token", "post"),
        ("/.well-known/jwks.json", "get"),
        ("/.well-known/oauth-authorization-server", "get"),
        ("/health/live", "get"),
        ("/health/ready", "get"),
        ("/metrics", "get"),
        ("/admin/keys", "get"),
        ("/admin/keys/rotate", "post"),
        ("/admin/keys/{kid}/revoke", "post"),
        ("/admin/keys/revoke-all", "post"),
        ("/admin/suspensions", "get"),
        ("/admin/suspensions", "post"),
        ("/admin/suspensions/{suspension_id}", "delete"),
        ("/admin/audit", "get"),
        ("/sign-ins", "post"),
        ("/sign-ins/{handle}", "get"),
        ("/sign-ins/{handle}", "delete"),
        ("/backchannel-logout", "post"),
    }
    assert [server["url"] for server in described["servers"]] == ["{issuer}"]
    assert described["servers"][0]["variables"]["issuer"]["default"].startswith("https://")


def test_the_token_endpoint_documents_every_error(described):
    """
    Every code that the service can answer with, every status of the edge and the framework; all in OAuth JSON.
    """
    responses = described["paths"][TOKEN]["post"]["responses"]
    schema = described["components"]["schemas"]["OAuthError"]

    assert set(schema["properties"]["error"]["enum"]) == set(get_args(OAuthError))
    # 404 has no route to be documented at, and 415 is answered as 400.
    assert set(responses) == {"200", "400", "401", *map(str, set(OAUTH_EVENTS) - {404, 415})}
    assert all(set(response["content"]) == {"application/json"} for response in responses.values())
    assert {"Cache-Control", "Pragma"} <= set.intersection(*(set(each["headers"]) for each in responses.values()))


def test_other_routes_document_problems(described):
    """
    Each of their errors is a problem of the closed list, readiness aside, whose 503 says which ring it is.
    """
    for path, _, operation in operations(described):
        for status, response in operation["responses"].items():
            if path != TOKEN and int(status) >= 400 and (path, status) != ("/health/ready", "503"):
                assert set(response["content"]) == {"application/problem+json"}
                assert int(status) in PROBLEMS


def test_admin_routes_say_who_may_call_and_how_it_fails(described):
    """
    Either way to authenticate, the permission, the head of the trail; problems with both challenges, and each of their types.
    """
    shown = set()
    for path, method, operation in operations(described):
        if not path.startswith("/admin"):
            continue
        responses = operation["responses"]
        assert operation["security"] == [{"adminSecret": []}, {"adminAssertion": []}]
        assert any(f"`{permission}`" in operation["description"] for permission in get_args(Permission))
        assert {"400", "401", "403", "414", "415", "431", "500", "503"} <= set(responses)
        assert ("413" in responses) == ("requestBody" in operation)
        assert ("422" in responses) == (method != "get")
        assert {"WWW-Authenticate"} <= set(responses["401"]["headers"])
        assert all("Audit-Head" in responses[status]["headers"] for status in responses if status[0] == "2")
        shown |= {name for each in responses.values() for body in _bodies(each) for name in body.get("examples", ())}
    assert set(ADMIN_PROBLEMS) <= shown


def test_the_form_documents_every_parameter(described):
    """
    Those of RFC 8693, RFC 8707, RFC 7521, RFC 9396, RFC 9470 and OpenID Connect that the service reads, each with a description.
    """
    schema = described["components"]["schemas"]["TokenRequest"]

    assert set(schema["properties"]) == {
        *("grant_type", "client_id", "client_assertion_type", "client_assertion"),
        *("subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type"),
        *("resource", "audience", "scope", "acr_values", "max_age", "nonce", "authorization_details"),
    }
    assert all(parameter["description"] for parameter in schema["properties"].values())


def test_examples_fit_their_schemas(described):
    """
    A read, a write and a customer who signed in are shown, asked for and granted, and one example of each error.
    """
    operation = described["paths"][TOKEN]["post"]
    bodies = [*operation["requestBody"]["content"].values()]
    bodies += [body for *_, each in operations(described) for r in each["responses"].values() for body in _bodies(r)]
    bodies += [
        body for *_, each in operations(described) for body in each.get("requestBody", {}).get("content", {}).values()
    ]
    shown = [(example["value"], body["schema"]) for body in bodies for example in body.get("examples", {}).values()]

    assert set(bodies[0]["examples"]) == {"read", "write", "sign_in"}
    assert shown
    assert [value for value, schema in shown if not fits(described, value, schema)] == []


def _bodies(response):
    return response.get("content", {}).values()
