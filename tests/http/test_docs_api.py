# SPDX-License-Identifier: LicenseRef-Undeclared
"""docs/api.md is true: its examples are run as a reader would, in their order and by a shell, and each reply
is compared with the one below the example."""

import json
import os
import re
import shutil
import subprocess

import pytest

from harness import BIN, ORIGIN, Reply, environment, eventually, seconds

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/api.md")
ELLIPSIS = "…"  # in the page: differs from run to run

with open(PAGE, encoding="utf-8") as file:
    TEXT = file.read()
with open(os.path.join(os.path.dirname(PAGE), "../config/sitemapd.conf"), encoding="utf-8") as file:
    SETTINGS = set(re.findall(r"^;?([a-z_]+) =", file.read(), re.M))
(_, START), *BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)


def examples():
    """[(command, reply as shown)]; every block but the first two is of such a pair."""
    assert [kind for kind, _ in BLOCKS[1:]] == ["sh", "http"] * (len(BLOCKS[1:]) // 2)
    return [(BLOCKS[i][1], BLOCKS[i + 1][1]) for i in range(1, len(BLOCKS), 2)]


class Shown:
    """A reply as the page shows it."""

    def __init__(self, text):
        head, _, body = text.partition("\n\n")
        first, *lines = head.rstrip("\n").split("\n")
        version, status, self.reason = first.split(" ", 2)
        assert version == "HTTP/1.1", first
        self.status = int(status)
        self.headers = [line.split(": ", 1) for line in lines]
        # A bare ellipsis matches a value of any type.
        self.body = json.loads(re.sub(r'(?<!")…(?!")', '"\\\\u0000"', body)) if body.strip() else None


def agrees(real, shown, at="$"):
    """Why the two differ, or None. The page shows every member, in the order in which it comes."""
    if shown == "\0":
        return None
    if isinstance(shown, str) and ELLIPSIS in shown:
        pattern = ".+".join(map(re.escape, shown.split(ELLIPSIS)))
        fits = isinstance(real, str) and re.fullmatch(pattern, real)
        return None if fits else f"{at}: {real!r} is not {shown!r}"
    if type(real) is not type(shown):
        return f"{at}: {real!r} is not {shown!r}"
    if isinstance(shown, dict):
        if list(real) != list(shown):
            return f"{at}: members {list(real)}, shown {list(shown)}"
        return next(filter(None, (agrees(real[k], shown[k], f"{at}.{k}") for k in shown)), None)
    if isinstance(shown, list):
        if len(real) != len(shown):
            return f"{at}: {len(real)} elements, shown {len(shown)}: {real}"
        return next(filter(None, (agrees(r, s, f"{at}[{i}]") for i, (r, s) in enumerate(zip(real, shown)))), None)
    return None if real == shown else f"{at}: {real!r} is not {shown!r}"


@pytest.fixture
def server(start, tmp_path):
    """As the page says that it is started; its folder is where the examples run."""
    (tmp_path / "site").mkdir()
    assert f"sitemapd serve --site {ORIGIN} --source site={ORIGIN}/ &" in START
    return start("--source", f"{tmp_path}/site={ORIGIN}/")


@pytest.fixture
def shell(server, tmp_path):
    """Runs a command of the page: `sitemapd` is the program under test, and curl shows the head too."""
    tools = tmp_path / "tools"
    tools.mkdir()
    os.symlink(BIN, tools / "sitemapd")
    curl = shutil.which("curl")
    assert curl, "curl is not installed"
    (tools / "curl").write_text(f'#!/bin/sh\nexec {curl} --silent --show-error --include --max-time {int(seconds(20))} "$@"\n')
    (tools / "curl").chmod(0o755)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "SITEMAPD_DATABASE": server.database}

    def run(command):
        env = {**environment(), **variables}
        done = subprocess.run(
            ["sh", "-euc", command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=seconds(60))
        assert done.returncode == 0 and done.stderr == b"", (command, done)
        return done.stdout

    run.variables = variables
    return run


def prepare(shell, server):
    """The page's second block sets what the others use; only the port is ours."""
    kind, text = BLOCKS[0]
    assert kind == "sh" and re.findall(r"^(\w+)=", text, re.M) == ["API", "TOKEN"]
    api, token = shell(text + 'printf "%s %s" "$API" "$TOKEN"\n').decode().split(" ")
    assert api == "http://127.0.0.1:8081" and token.startswith("smd_")
    shell.variables.update({"API": f"http://{server.admin}", "TOKEN": token})
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")


def test_the_examples(server, shell):
    prepare(shell, server)
    for command, text in examples():
        shown = Shown(text)
        head, _, body = shell(command).partition(b"\r\n\r\n")
        real = Reply(head, body)
        assert (real.status, real.reason.strip()) == (shown.status, shown.reason), (command, real)
        for name, value in shown.headers:
            why = agrees(real.get(name), value, name)
            assert why is None, (command, why, real)
        if shown.body is None:
            assert body == b"", (command, real)
        else:
            why = agrees(real.json(), shown.body)
            assert why is None, (command, why, real)


def test_every_curl_of_the_page_is_an_example():
    outside = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    assert "curl" not in outside
    assert len(examples()) >= 8 and all(command.count("curl") == 1 for command, _ in examples())


def test_the_page_names_what_the_document_does(server):
    """Every path and query parameter of the API has its place in the tour; no path is invented."""
    document = server.api("GET", "/openapi.json").json()
    for path, item in document["paths"].items():
        assert path in TEXT, path
        for operation in (o for m, o in item.items() if m != "parameters"):
            for parameter in operation.get("parameters", []):
                if "$ref" in parameter:
                    parameter = document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
                assert parameter["name"] in TEXT, (path, parameter["name"])
    templates = [re.sub(r"\\\{\w+\\\}", r"(\\{\\w+\\}|[a-z]+)", re.escape(path)) for path in document["paths"]]
    for path in set(re.findall(r"/v1/[a-z]+(?:/(?:\{\w+\}|[a-z]+))?(?:/[a-z]+)?", TEXT)):
        assert any(re.fullmatch(template, path) for template in templates), path


def objects(schema):
    """The schema and those within it that have members."""
    found = [schema] if "properties" in schema else []
    for value in schema.values():
        for part in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
            found += objects(part) if isinstance(part, dict) else []
    return found


def test_every_member_is_described_and_every_member_of_the_page_exists(server):
    """The page leaves members to /openapi.json, where each has its sentence; those that it names exist."""
    document = server.api("GET", "/openapi.json").json()
    schemas = [s for part in ("components", "paths") for s in objects(document[part])]
    members = [(name, schema) for one in schemas for name, schema in one["properties"].items()]
    assert len(members) > 400
    assert [name for name, schema in members if len(schema.get("description", "")) < 4] == []
    known = {name for name, _ in members} | set(re.findall(r'"name": ?"([\w-]+)"', json.dumps(document))) | SETTINGS
    named = set(re.findall(r"`([a-z]+_[a-z_0-9]+)`", TEXT))
    assert len(named) > 20 and named - known == set()


def test_the_comparison_is_strict():
    same = {"a": 1, "b": ["x-…"], "c": "\0"}
    assert agrees({"a": 1, "b": ["x-7"], "c": None}, same) is None
    for real in ({"a": 2, "b": ["x-7"], "c": 1}, {"a": 1, "b": ["y-7"], "c": 1}, {"a": 1, "b": [], "c": 1}, {"a": 1, "b": ["x-7"]},
                 {"b": ["x-7"], "a": 1, "c": 1}, {"a": True, "b": ["x-7"], "c": 1}, {"a": 1, "b": ["x-"], "c": 1}):
        assert agrees(real, same) is not None, real
