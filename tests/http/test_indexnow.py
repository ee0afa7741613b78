"""IndexNow: the key's file, and who is told which page URLs."""

import json
import os
import sqlite3
import sys

import pytest

from harness import ORIGIN, Server, eventually, sitemapd

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


def told_to(server):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT revision FROM indexnow").fetchone()


def test_what_is_no_news_is_passed_once(endpoint, tmp_path):
    """A long history without anything to tell is not read again with each look: the position moves behind it."""
    server = Server(tmp_path, config=config(endpoint), sites=())
    rows = lambda digest: [{"loc": f"{ORIGIN}/p/{i}", "digest": digest} for i in range(70_000)]
    put = lambda digest: server.bulk(rows(digest), f"/v1/urls?urlset={ORIGIN}/all.xml", "PUT")
    told = lambda: sum(len(body["urlList"]) for _, body in endpoint.told)
    endpoint.answer = 200
    del endpoint.told[:]
    for made in (("site", "add", ORIGIN), ("urlset", "add", ORIGIN + "/all.xml")):
        assert sitemapd(*made, database=server.database).code == 0
    server.start()
    try:
        eventually(lambda: told_to(server), "it begins with what comes next")
        assert put("1").status == 200
        eventually(lambda: told() == 70_000, "what came is told", 180)
        changed = put("2").json()
        assert changed["updated"] == 70_000, changed
        eventually(lambda: told_to(server)[0] > changed["revision"], "it is passed", 60)
        assert told() == 70_000
    finally:
        server.stop()


def test_page_urls_are_told(endpoint, tmp_path):
    """What comes, changes and goes, once taken not again, also over a restart; what is refused is kept."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = Server(tmp_path, sites=(), config=config(endpoint) + (
        f'[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nsplit = yes\n'))
    rows = [f"{ORIGIN}/p/{i}" for i in range(50_100)]
    put = lambda lines: ((folder / "part").write_text("".join(line + "\n" for line in lines)), (folder / "part").rename(folder / "all.txt"))
    del endpoint.told[:]
    server.start()
    try:
        eventually(lambda: told_to(server), "it begins with what comes next")
        put(rows)
        taken = lambda: [body for answered, body in endpoint.told if answered == 200]
        eventually(lambda: sum(len(body["urlList"]) for body in taken()) == len(rows), "all are told", 180)
        assert sorted(loc for body in taken() for loc in body["urlList"]) == sorted(rows)
        assert all(len(body["urlList"]) <= 10_000 for body in taken())
        assert {(body["host"], body["key"], body["keyLocation"]) for body in taken()} == {
            (ORIGIN.partition("//")[2], KEY, f"{ORIGIN}/{KEY}.txt")}
        endpoint.answer = 429
        put(rows[1:] + [ORIGIN + "/p/new"])
        eventually(lambda: "indexnow-failed" in server.log(), "it is not taken", 120)
        endpoint.answer = 200
        count = len(taken())
        server.restart()  # begins anew with what was not taken
        eventually(lambda: len(taken()) > count, "it is told again", 120)
        assert taken()[-1]["urlList"] == [rows[0], ORIGIN + "/p/new"]
        eventually(lambda: server.metrics()['sitemapd_indexnow_urls_total{result="told"}'] == 2, "it is counted")
        assert len(taken()) == count + 1
    finally:
        server.stop()
