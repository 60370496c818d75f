"""
How problems of a configuration are located, spelled and ordered.
"""

import tomllib

import pytest

from issuer.settings_problems import Problem, SettingsError, Source, line_numbers, spelled

TEXT = '''\
origin = "https://id.example.com"   # [not.a.table]
"data_dir" = "data"
note = """
[[workspaces]]
name = "inside a string"
"""

[jwks]
max_age_s = 60
[[ workspaces ]]
name = "acme"
  [[workspaces.connections]]
  audiences = [
    "https://a.example",
    "https://b.example",
  ]
  [[workspaces.connections]]
  'name' = "second"
    [[workspaces.connections.actions]]
    name = "cancel"
[[workspaces]]
name = "beta"
[workspaces.extra]
a.b = 1
[plain.nested]
c = 2
'''


def test_every_table_and_key_has_its_line():
    """
    Keys are found in tables, arrays of tables and nested ones; text inside of strings and comments is not taken for keys.
    """
    lines = line_numbers(TEXT)

    assert tomllib.loads(TEXT)["workspaces"][0]["connections"][1]["actions"][0]["name"] == "cancel"
    assert lines == {
        ("origin",): 1,
        ("data_dir",): 2,
        ("note",): 3,
        ("jwks",): 8,
        ("jwks", "max_age_s"): 9,
        ("workspaces", 0): 10,
        ("workspaces", 0, "name"): 11,
        ("workspaces", 0, "connections", 0): 12,
        ("workspaces", 0, "connections", 0, "audiences"): 13,
        ("workspaces", 0, "connections", 1): 17,
        ("workspaces", 0, "connections", 1, "name"): 18,
        ("workspaces", 0, "connections", 1, "actions", 0): 19,
        ("workspaces", 0, "connections", 1, "actions", 0, "name"): 20,
        ("workspaces", 1): 21,
        ("workspaces", 1, "name"): 22,
        ("workspaces", 1, "extra"): 23,
        ("workspaces", 1, "extra", "a", "b"): 24,
        ("plain", "nested"): 25,
        ("plain", "nested", "c"): 26,
    }


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("workspaces", 0, "connections", 0, "audiences", 1), 13),
        (("workspaces", 0, "connections", 0, "namespace"), 12),
        (("workspaces", 1, "path"), 21),
        (("redis_url",), None),
    ],
)
def test_a_problem_names_the_nearest_line(location, line):
    """
    An entry of an array is found at its key, a missing key at its table, and what is nowhere has no line.
    """
    source = Source("c.toml", line_numbers(TEXT))

    problem = source.problem(location, "is wrong")

    assert problem == Problem(spelled(location), "is wrong", line)


def test_a_value_from_the_environment_is_named_by_its_variable():
    """
    A line of the file would mislead where a variable stands over it.
    """
    variables = {("origin",): "CUSTOMER_CONTEXT_ORIGIN", ("workspaces",): "CUSTOMER_CONTEXT_WORKSPACES"}
    source = Source("c.toml", line_numbers(TEXT), variables)

    plain = source.problem(("origin",), "is wrong")
    nested = source.problem(("workspaces", 0, "name"), "is wrong")

    assert str(plain) == "CUSTOMER_CONTEXT_ORIGIN: is wrong"
    assert str(nested) == "CUSTOMER_CONTEXT_WORKSPACES [0].name: is wrong"


def test_an_error_lists_every_problem_in_the_order_of_the_file():
    """
    The text has one line a problem, each with the file, the line, the place and what is wrong.
    """
    source = Source("c.toml", line_numbers(TEXT))

    error = source.error([(("workspaces", 1, "name"), "second"), (("origin",), "first")])

    assert isinstance(error, SettingsError)
    assert [each.line for each in error.problems] == [1, 22]
    assert str(error) == "c.toml: line 1: origin: first\nc.toml: line 22: workspaces[1].name: second"
