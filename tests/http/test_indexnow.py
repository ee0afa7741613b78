"""IndexNow: the key's file, and who is told which page URLs."""

import json
import os
import sys

import pytest

from harness import ORIGIN, Server

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer  # noqa: E402

KEY = "5f1c6a0e7d2b49c8"


@pytest.fixture(scope="module")
def endpoint():
    with Origin() as made:
        made.told, made.answer = [], 200

        def take(connection, head):
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = made.body
            while len(body) < length:
                body += connection.recv(65536)
            made.told.append((made.answer, json.loads(body)))
            connection.sendall(answer(made.answer, Connection="close"))

        made.answers["/indexnow"] = take
        yield made


def config(endpoint, key=KEY):
    return (
        f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
        f"indexnow_key = {key}\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"
    )


def test_key_file(endpoint, tmp_path):
    """It is what proves who tells: served like robots.txt, at the site's hosts alone."""
    server = Server(tmp_path, config=config(endpoint), sites=())
    server.start()
    try:
        got = server.get(f"/{KEY}.txt")
        assert (got.status, got.body, got.get("Content-Type")) == (200, KEY.encode(), "text/plain; charset=utf-8")
        assert server.get(f"/{KEY}.txt", headers=[("If-None-Match", got.get("ETag"))]).status == 304
        assert server.get(f"/{KEY}.txt?x").status == 404
    finally:
        server.stop()


@pytest.mark.parametrize("key", ["short", "with_underline", "x" * 129])
def test_keys_that_are_none(endpoint, tmp_path, key):
    server = Server(tmp_path, config=config(endpoint, key), sites=())
    server.start(expect_ready=False)
    assert server.process.wait(60) != 0
    assert "indexnow_key is not 8 to 128 letters, digits and dashes" in server.log()
