"""
What stands in the log, and above all what never does.
"""

import ast
import io
import json
import logging
import re
from pathlib import Path

import pytest

import issuer
from issuer.logs import FIELDS, configure_logging, get_logger

SECRETS = ("hunter2", "cus_48213")
TOKEN = "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiJjdXNfNDgyMTMifQ.c2lnbmF0dXJl"


@pytest.fixture
def stream():
    """
    A stream to log to; the process's logging is put back afterwards.
    """
    root = logging.getLogger()
    names = (None, "authlib", "uvicorn.access", "issuer", "keys", "verifier")
    before = [
        (logging.getLogger(name), logging.getLogger(name).level, logging.getLogger(name).disabled) for name in names
    ]
    handlers = root.handlers[:]
    yield io.StringIO()
    root.handlers[:] = handlers
    for logger, level, disabled in before:
        logger.setLevel(level)
        logger.disabled = disabled


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def line(stream):
    (only,) = lines(stream)
    return only


def test_an_event_is_one_line_of_json(stream):
    """
    An event has its level, its logger, its instant in UTC and its fields, on one line.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer.token").info("Token minted", workspace="acme", status=200, duration_ms=1.5, kid=None)

    event = line(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", event.pop("timestamp"))
    assert event == {
        "level": "info",
        "logger": "issuer.token",
        "event": "Token minted",
        "workspace": "acme",
        "status": 200,
        "duration_ms": 1.5,
        "kid": None,
    }


@pytest.mark.parametrize(("json", "words"), [(True, '"worker": 2'), (False, "worker=2")])
def test_a_process_among_several_says_which_one_it_is(stream, json, words):
    """
    In every line, those of other libraries included.
    """
    configure_logging("info", json=json, stream=stream, worker=2)

    get_logger("issuer").info("One", kid="k1")
    logging.getLogger("uvicorn.error").info("Another")

    assert [words in each for each in stream.getvalue().splitlines()] == [True, True]


def test_a_person_reads_text(stream):
    """
    The form for a person has the same event and fields on one line, without colours.
    """
    configure_logging("info", json=False, stream=stream)

    get_logger("issuer").warning("Key withdrawn", kid="k1", secret="hunter2")

    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "Key withdrawn" in text
    assert "kid=k1" in text
    assert "dropped=1" in text
    assert "hunter2" not in text
    assert "\x1b" not in text


def test_a_field_that_is_not_listed_is_dropped_and_counted(stream):
    """
    Only names on the allow-list get through; the line says how many did not, and neither their names nor values.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").info("Refused", reason="scope", sub="cus_48213", arguments={"a": "hunter2"}, kid="k1")

    event = line(stream)
    assert (event["reason"], event["kid"], event["dropped"]) == ("scope", "k1", 2)
    assert not any(secret in stream.getvalue() for secret in SECRETS)
    assert "arguments" not in stream.getvalue()


def test_every_field_that_the_service_reports_is_listed():
    """
    No call in the service passes a field that would be dropped.
    """
    calls = (
        node
        for file in Path(issuer.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    reports = [
        call
        for call in calls
        if call.func.attr in {"_report", "report"}
        or (isinstance(call.func.value, ast.Name) and call.func.value.id == "_LOG")
    ]

    used = {keyword.arg for call in reports for keyword in call.keywords if keyword.arg is not None}

    assert used - {"exc_info"} <= FIELDS
    assert {"workspace", "reason", "jti"} <= used


def test_names_for_secrets_tokens_and_customers_are_not_listed():
    """
    The allow-list has none of the names that such things usually have.
    """
    assert not FIELDS & {
        "sub",
        "subject",
        "customer",
        "token",
        "secret",
        "arguments",
        "headers",
        "body",
        "form",
        "path",
        "url",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TOKEN, "[token]"),
        (f"at={TOKEN[:40]}", "at=[token]"),
        ("Basic b3JjOmh1bnRlcjI=", "Basic [credentials]"),
        ("authorization: bearer hunter2", "authorization: bearer [credentials]"),
        ("one\ntwo\r\x1b[31m\u2028\u202e\x00", "one\\ntwo\\r\\x1b[31m\\u2028\\u202e\\x00"),
        ("\ud800é", "\\ud800é"),
        ("x" * 300, "x" * 256 + "..."),
        ("x " * 5000 + "hunter2", "x " * 128 + "..."),
    ],
    ids=["token", "cut token", "basic", "bearer", "control characters", "surrogate", "long", "very long"],
)
def test_a_value_is_bounded_and_cannot_forge_a_line(stream, text, shown):
    """
    What looks like a token or credentials is replaced, what is not printable is escaped, what is long is cut.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").info(text, reason=text)

    event = line(stream)
    assert event["reason"] == shown
    assert event["event"] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (("b", "a"), ["b", "a"]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (["hunter2\n", 7, {"x": "hunter2"}], ["hunter2\\n", "<int>", "<dict>"]),
        (tuple("x" * 20), list("x" * 16)),
        ({"x": "hunter2"}, "<dict>"),
        (b"hunter2", "<bytes>"),
        (ValueError("hunter2"), "<ValueError>"),
        (float("nan"), "<float>"),
        (10**400, "<int>"),
        (True, True),
    ],
    ids=["tuple", "set", "mixed", "many", "mapping", "bytes", "exception", "not a number", "huge number", "bool"],
)
def test_only_simple_values_are_written_out(stream, value, shown):
    """
    Numbers and short lists of text are written; of anything else only its type is.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").info("x", scope=value)

    assert line(stream)["scope"] == shown


def fail():
    password = "hunter2"
    try:
        int(password)
    except ValueError as error:
        raise KeyError(password) from error


def test_an_exception_is_its_class_and_places(stream):
    """
    Of an exception and its causes the class and the way it took are logged, not its text, which may hold what was sent.
    """
    configure_logging("info", json=True, stream=stream)

    try:
        fail()
    except KeyError:
        get_logger("issuer").exception("Failed", reason="internal")

    event = line(stream)
    assert event["reason"] == "internal"
    assert [each.split(" < ")[0] for each in event["raised"]] == ["KeyError", "ValueError"]
    assert re.fullmatch(
        r"KeyError < issuer/test_logs\.py:\d+ fail < issuer/test_logs\.py:\d+ test_\w+", event["raised"][0]
    )
    assert "hunter2" not in stream.getvalue()


def test_every_member_of_a_group_is_named_but_not_without_end(stream):
    """
    A group shows its members, a loop of causes ends, and a suppressed context stays out.
    """
    configure_logging("info", json=True, stream=stream)
    members = [ValueError("hunter2"), TypeError()]
    members[0].__context__ = OSError()
    members[0].__suppress_context__ = True
    members[1].__cause__ = members[1]
    many = ExceptionGroup("hunter2", [KeyError(), *(RuntimeError() for _ in range(50))])

    get_logger("issuer").error("Failed", exc_info=ExceptionGroup("hunter2", members))
    get_logger("issuer").error("Failed", exc_info=many)

    first, second = lines(stream)
    assert first["raised"] == ["ExceptionGroup", "ValueError", "TypeError"]
    assert len(second["raised"]) == 8


def test_asking_for_an_exception_where_there_is_none_logs_none(stream):
    """
    An event that is logged as if there were an exception is still logged.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").error("Failed", exc_info=True)

    assert line(stream)["raised"] == []


def test_other_libraries_take_the_same_way(stream):
    """
    What comes through the standard library is cleaned, bounded and rendered like everything else.
    """
    configure_logging("info", json=True, stream=stream)

    logging.getLogger("uvicorn.error").warning("Invalid %s\n", f"Bearer {TOKEN}", extra={"sub": "cus_48213"})
    try:
        fail()
    except KeyError:
        logging.getLogger("asyncio").exception("Task failed", stack_info=True)

    first, second = lines(stream)
    assert (first["event"], first["level"], first["logger"]) == ("Invalid Bearer [token]", "warning", "uvicorn.error")
    assert (second["event"], second["raised"][0][:8]) == ("Task failed", "KeyError")
    assert not any(secret in stream.getvalue() for secret in SECRETS)


def test_debugging_is_for_our_own_packages(stream):
    """
    With the level debug our packages say more; authlib, which would print requests, and all others do not.
    """
    configure_logging("debug", json=True, stream=stream)

    for name in ("issuer.x", "keys.x", "verifier.x", "authlib.oauth2", "litestar"):
        logging.getLogger(name).debug("said")

    assert [each["logger"] for each in lines(stream)] == ["issuer.x", "keys.x", "verifier.x"]


def test_a_level_silences_what_is_below_it(stream):
    """
    Events below the level are not written, ours and those of others.
    """
    configure_logging("warning", json=True, stream=stream)

    get_logger("issuer").info("quiet")
    logging.getLogger("litestar").info("quiet")
    get_logger("issuer").warning("loud")

    assert line(stream)["event"] == "loud"


def test_there_is_no_access_log(stream):
    """
    Requests are counted by the metrics; their URLs are not logged.
    """
    configure_logging("debug", json=True, stream=stream)

    logging.getLogger("uvicorn.access").info("GET /?token=hunter2")

    assert stream.getvalue() == ""


def test_configuring_again_replaces_the_first_time(stream):
    """
    After a second call every event is written once, in the new form.
    """
    configure_logging("error", json=False, stream=io.StringIO())
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").info("once")

    assert line(stream)["event"] == "once"


def test_a_record_that_cannot_be_written_says_nothing_of_itself(stream, capsys):
    """
    A record whose text cannot be made leaves a fixed line; the standard library would print its arguments.
    """
    configure_logging("info", json=True, stream=stream)

    logging.getLogger("careless").info("one %s two %s", "hunter2")  # noqa: PLE1206  that is the mistake

    assert line(stream)["level"] == "error"
    assert "hunter2" not in stream.getvalue() + "".join(capsys.readouterr())


def test_a_broken_stream_never_stops_the_caller(stream, capsys):
    """
    Where nothing can be written any more, logging is lost and nothing else.
    """
    configure_logging("info", json=True, stream=stream)
    stream.close()

    get_logger("issuer").info("lost", reason="hunter2")

    assert "hunter2" not in "".join(capsys.readouterr())


def test_events_go_to_standard_error_by_default(stream, capsys):
    """
    Without a stream of its own the log is standard error, so that the output of a command stays clean.
    """
    configure_logging("info", json=True)

    get_logger("issuer").info("here")

    captured = capsys.readouterr()
    assert json.loads(captured.err)["event"] == "here"
    assert captured.out == ""


def test_a_logger_drops_fields_before_anything_is_configured(caplog):
    """
    A handler that somebody else set up gets nothing either that is not on the list.
    """
    with caplog.at_level("INFO", "issuer.early"):
        get_logger("issuer.early").bind(secret="hunter2").info("Early", kid="k1")

    (record,) = caplog.records
    assert record.msg == {"level": "info", "event": "Early", "kid": "k1", "dropped": 1}


def test_a_call_without_an_event_does_not_fail(stream):
    """
    A careless call leaves an empty event instead of an exception in the middle of a request.
    """
    configure_logging("info", json=True, stream=stream)

    get_logger("issuer").info(None, kid="k1")

    assert line(stream)["kid"] == "k1"
