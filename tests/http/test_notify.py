"""[notify]: who is told when a source begins to fail, and when it is well again."""

import json
import os
import sys

import pytest

from harness import ORIGIN, Server, eventually

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer  # noqa: E402


@pytest.fixture(scope="module")
def origin():
    with Origin() as made:
        made.told = []

        def take(connection, head):
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = made.body
            while len(body) < length:
                body += connection.recv(65536)
            made.told += [json.loads(line) for line in body.splitlines()]
            connection.sendall(answer(204))

        made.answers["/hook/secret"] = take
        yield made


def test_both_kinds_of_source(origin, tmp_path):
    """What the folder and the upstream say of themselves; the URL, which may be a secret, in no log."""
    folder = tmp_path / "sitemaps"
    base = f"http://127.0.0.2:{origin.port}"
    config = (
        f"[fetch]\nallow_address = 127.0.0.2\n[notify]\nurl = {base}/hook/secret\n"
        f'[site "here"]\norigin = {ORIGIN}\n[site "there"]\norigin = {base}\n'
        f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nrescan = 1s\nsettle = 100ms\n'
        f'[source "shop"]\nupstream = {base}/index.xml\ncheck = no\n'
    )
    server = Server(tmp_path, config=config, sites=())
    server.start()
    try:
        eventually(lambda: len([event for event in origin.told if event["event"] == "source-failing"]) >= 2, "both that fail", 60)
        failing = {event["source"]: event for event in origin.told if event["event"] == "source-failing"}
        assert failing["files"]["site"] == ORIGIN and failing["shop"]["site"] == base
        assert set(failing["shop"]) == {"event", "site", "source", "sentence", "since"} and "404" in failing["shop"]["sentence"]
        folder.mkdir()
        eventually(lambda: [event["source"] for event in origin.told if event["event"] == "source-well"] == ["files"], "the one that is well", 60)
        assert "secret" not in server.log()
    finally:
        server.stop()
