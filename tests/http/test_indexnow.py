"""IndexNow: the key's file, and who is told which page URLs."""

import json
import os
import sqlite3
import sys
import threading

import pytest

from harness import ORIGIN, Server, eventually, sitemapd

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer  # noqa: E402

KEY = "5f1c6a0e7d2b49c8"


@pytest.fixture(scope="module")
def endpoint():
    with Origin() as made:
        made.told, made.answer, made.more = [], 200, {}
        made.hold, made.released = None, threading.Event()  # from so many on nothing is answered until then

        def take(connection, head):
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = made.body
            while len(body) < length:
                body += connection.recv(65536)
            if made.hold is not None and len(made.told) >= made.hold:
                made.told.append((None, json.loads(body)))
                made.released.wait(300)
                return
            made.told.append((made.answer, json.loads(body)))
            connection.sendall(answer(made.answer, Connection="close", **made.more))

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


def positions(server, table="indexnow"):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute(f"SELECT * FROM {table}").fetchall()


def with_urlset(endpoint, folder, more=""):
    """A server with /all.xml, of which nothing was told yet, and that tells what comes next."""
    server = Server(folder, config=more + config(endpoint), sites=())
    endpoint.answer = 200
    del endpoint.told[:]
    for made in (("site", "add", ORIGIN), ("urlset", "add", ORIGIN + "/all.xml")):
        assert sitemapd(*made, database=server.database).code == 0
    server.start()
    eventually(lambda: told_to(server), "it begins with what comes next")
    return server


@pytest.mark.masses
def test_what_is_no_news_is_passed_once(endpoint, tmp_path):
    """A long history without anything to tell is not read again with each look: the position moves behind it."""
    server = with_urlset(endpoint, tmp_path)
    rows = lambda digest: [{"loc": f"{ORIGIN}/p/{i}", "digest": digest} for i in range(70_000)]
    put = lambda digest: server.bulk(rows(digest), f"/v1/urls?urlset={ORIGIN}/all.xml", "PUT")
    told = lambda: [url for _, body in endpoint.told for url in body["urlList"]]
    try:
        assert put("1").status == 200
        eventually(lambda: len(set(told())) == 70_000, "what came is told", 180)
        before = told()
        changed = put("2").json()
        assert changed["updated"] == 70_000, changed
        eventually(lambda: told_to(server)[0] > changed["revision"], "it is passed", 60)
        assert told() == before
    finally:
        server.stop()


def test_what_the_history_has_no_longer_is_said_once(endpoint, tmp_path):
    """The position moves behind what is gone; also one change that is gone is said, and what comes is told."""
    server = with_urlset(endpoint, tmp_path)
    add = lambda name: sitemapd("url", "add", f"{ORIGIN}/{name}", "--urlset", "/all.xml", database=server.database).code
    gaps = lambda: server.log().count("indexnow-gap")
    told = lambda: [url for _, body in endpoint.told for url in body["urlList"]]
    try:
        position, = told_to(server)
        server.stop()
        assert add("lost") == 0
        with sqlite3.connect(server.database) as db:  # as after [history] keep
            db.execute("DELETE FROM history WHERE revision = ?", [position])
            db.execute("UPDATE catalogue SET history_from = ?", [position + 1])
        db.close()
        server.start()
        eventually(lambda: gaps() == 1 and told_to(server)[0] > position, "it is said")
        for name in ("one", "two"):
            assert add(name) == 0
            eventually(lambda: f"{ORIGIN}/{name}" in told(), "what comes is told")
        assert gaps() == 1 and f"{ORIGIN}/lost" not in told()
    finally:
        server.stop()


def test_a_gap_that_cannot_be_passed_is_said_once(endpoint, tmp_path):
    """While the catalogue does not take the position, each look finds it again."""
    server = with_urlset(endpoint, tmp_path)
    gaps = lambda: server.log().count("indexnow-gap")
    try:
        position, = told_to(server)
        with sqlite3.connect(server.database) as db:  # beneath the server, which opens no file with another's trigger
            db.execute("UPDATE catalogue SET history_from = ?", [position + 1])
            db.execute("CREATE TABLE tried(position INTEGER)")
            db.execute("CREATE TRIGGER stay BEFORE UPDATE ON indexnow BEGIN INSERT INTO tried VALUES (new.revision); SELECT RAISE(IGNORE); END")
        db.close()
        eventually(lambda: len(positions(server, "tried")) >= 3, "it is tried again")
        assert gaps() == 1 and told_to(server) == (position,)
    finally:
        server.stop()


@pytest.mark.waits
def test_who_says_when_is_asked_then(endpoint, tmp_path):
    """Two sites, both refused: the one whose engine says `Retry-After` waits for so long, the other is told again."""
    other = "https://other.example"
    server = Server(tmp_path, sites=(), config=config(endpoint) + (
        f'[site "other"]\norigin = {other}\nindex = /sitemap_index.xml\nindexnow_key = {KEY}\n'
        f"indexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
    sites = (ORIGIN, other)
    told = lambda origin, url: [code for code, body in endpoint.told if origin + url in body["urlList"]]
    endpoint.answer, endpoint.more = 503, {"Retry-After": "86400"}
    del endpoint.told[:]
    server.start()
    try:
        for origin in sites:
            assert server.cli("urlset", "add", origin + "/all.xml").code == 0
        eventually(lambda: len(positions(server)) == 2, "they begin with what comes next")
        assert server.cli("url", "add", ORIGIN + "/a", "--urlset", ORIGIN + "/all.xml").code == 0
        eventually(lambda: told(ORIGIN, "/a") == [503], "the first is refused, and told when to come")
        endpoint.more = {}
        assert server.cli("url", "add", other + "/a", "--urlset", other + "/all.xml").code == 0
        eventually(lambda: told(other, "/a") == [503], "so is the other, without that")
        endpoint.answer = 200
        eventually(lambda: told(other, "/a") == [503, 200], "the other is told again", 90)
        assert server.cli("url", "add", other + "/b", "--urlset", other + "/all.xml").code == 0
        eventually(lambda: told(other, "/b") == [200], "and goes on")
        assert told(ORIGIN, "/a") == [503]
    finally:
        endpoint.more = {}
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
        locs = lambda: sorted(loc for body in taken() for loc in body["urlList"])
        eventually(lambda: len(locs()) >= len(rows), "all are told", 180)
        assert locs() == sorted(rows)
        assert all(len(body["urlList"]) <= 10_000 for body in taken())
        assert {(body["host"], body["key"], body["keyLocation"]) for body in taken()} == {
            (ORIGIN.partition("//")[2], KEY, f"{ORIGIN}/{KEY}.txt")}
        endpoint.answer = 429
        put(rows[1:] + [ORIGIN + "/p/new"])
        eventually(lambda: "indexnow-failed" in server.log(), "it is not taken", 120)
        server.stop()
        endpoint.answer = 200
        count = len(taken())
        server.start()  # begins anew with what was not taken
        eventually(lambda: len(taken()) > count, "it is told again", 120)
        assert taken()[-1]["urlList"] == [rows[0], ORIGIN + "/p/new"]
        eventually(lambda: server.metrics()['sitemapd_indexnow_urls_total{result="told"}'] == 2, "it is counted")
        assert len(taken()) == count + 1
    finally:
        server.stop()


def test_killed_in_mid_batch(endpoint, tmp_path):
    """What was taken is not told again, and what was on its way is: at least once, from the position that is kept."""
    server = Server(tmp_path, config=config(endpoint), sites=())
    rows = [f"{ORIGIN}/p/{i}" for i in range(35_000)]
    urls = lambda told: [loc for answered, body in told if answered == 200 for loc in body["urlList"]]
    endpoint.answer, endpoint.hold = 200, 2
    endpoint.released.clear()
    del endpoint.told[:]
    for made in (("site", "add", ORIGIN), ("urlset", "add", ORIGIN + "/all.xml")):
        assert sitemapd(*made, database=server.database).code == 0
    server.start()
    try:
        eventually(lambda: told_to(server), "it begins with what comes next")
        assert server.bulk([{"loc": loc} for loc in rows], f"/v1/urls?urlset={ORIGIN}/all.xml", "PUT").status == 200
        eventually(lambda: len(endpoint.told) == 3, "the third batch is on its way", 120)
        server.kill()
        before, endpoint.hold = endpoint.told[:], None
        endpoint.released.set()
        assert [answered for answered, _ in before] == [200, 200, None]
        server.start()
        eventually(lambda: sorted(urls(endpoint.told)) == sorted(rows), "all are told", 120)
        assert endpoint.told[3][1]["urlList"] == before[2][1]["urlList"], "it goes on where it was"
    finally:
        endpoint.hold = None
        endpoint.released.set()
        server.kill()
