# SPDX-License-Identifier: LicenseRef-Undeclared
"""IndexNow: the key's file, changes that the history no longer has, and retries after a rejection."""

import sqlite3

import pytest

from indexnow import KEY, config, endpoint, positions, reported_to, with_urlset  # noqa: F401
from harness import ORIGIN, Server, eventually, faster, sitemapd


def test_key_file(endpoint, tmp_path):
    """It proves who the sender is: served like robots.txt, at the site's hosts alone."""
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
def test_invalid_keys(endpoint, tmp_path, key):
    server = Server(tmp_path, config=config(endpoint, key), sites=())
    server.start(expect_ready=False)
    assert server.process.wait(60) != 0
    assert "indexnow_key is not 8 to 128 letters, digits and dashes" in server.log()


def test_changes_missing_in_the_history_are_reported_once(endpoint, tmp_path):
    """The position moves behind what is gone; also one change that is gone is said, and what comes is reported."""
    server = with_urlset(endpoint, tmp_path)
    add = lambda name: sitemapd("url", "add", f"{ORIGIN}/{name}", "--urlset", "/all.xml", database=server.database).code
    gaps = lambda: server.log().count("indexnow-gap")
    result = lambda: [url for _, body in endpoint.received for url in body["urlList"]]
    try:
        position, = reported_to(server)
        server.stop()
        assert add("lost") == 0
        with sqlite3.connect(server.database) as db:  # as after [history] keep
            db.execute("DELETE FROM history WHERE revision = ?", [position])
            db.execute("UPDATE catalogue SET history_from = ?", [position + 1])
        db.close()
        server.start()
        eventually(lambda: gaps() == 1 and reported_to(server)[0] > position, "it is said")
        for name in ("one", "two"):
            assert add(name) == 0
            eventually(lambda: f"{ORIGIN}/{name}" in result(), "what comes is reported")
        assert gaps() == 1 and f"{ORIGIN}/lost" not in result()
    finally:
        server.stop()


def test_a_gap_that_cannot_be_passed_is_reported_once(endpoint, tmp_path):
    """While the catalogue does not take the position, each look finds it again."""
    server = with_urlset(endpoint, tmp_path)
    gaps = lambda: server.log().count("indexnow-gap")
    try:
        position, = reported_to(server)
        with sqlite3.connect(server.database, timeout=60) as db:  # beneath the server, which opens no file with another's trigger
            db.execute("UPDATE catalogue SET history_from = ?", [position + 1])
            db.execute("CREATE TABLE tried(position INTEGER)")
            db.execute("CREATE TRIGGER stay BEFORE UPDATE ON indexnow BEGIN INSERT INTO tried VALUES (new.revision); SELECT RAISE(IGNORE); END")
        db.close()
        eventually(lambda: len(positions(server, "tried")) >= 3, "it is tried again")
        server.wait_for_log("indexnow-gap")
        assert gaps() == 1 and reported_to(server) == (position,)
    finally:
        server.stop()


def test_rejections_are_reported_where_users_look(endpoint, tmp_path):
    server = with_urlset(endpoint, tmp_path)
    reasons = lambda: {r["code"]: r["detail"] for r in server.api("GET", "/readyz").json()["reasons"]}
    endpoint.answer = 500
    try:
        assert server.cli("url", "add", f"{ORIGIN}/a", "--urlset", "/all.xml").code == 0
        eventually(lambda: "indexnow-failing" in reasons(), "it is rejected")
        assert "the page URLs of 1 site;" in reasons()["indexnow-failing"] and "indexnow-failed" in server.log()
        assert "page URLs of 1 site" in sitemapd("status", "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": server.token}).out
        assert b"[-]engines: indexnow-failing" in server.api("GET", "/readyz?verbose").body
        endpoint.answer = 200
        eventually(lambda: "indexnow-failing" not in reasons(), "it is accepted", 120)
    finally:
        endpoint.answer = 200
        server.stop()


def test_retry_after_is_respected(endpoint, tmp_path):
    """Two sites, both refused: the one whose engine says `Retry-After` waits for so long, the other is notified again."""
    other = "https://other.example"
    server = Server(tmp_path, sites=(), env=faster(10), config=config(endpoint) + (
        f'[site "other"]\norigin = {other}\nindex = /sitemap_index.xml\nindexnow_key = {KEY}\n'
        f"indexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
    sites = (ORIGIN, other)
    result = lambda origin, url: [code for code, body in endpoint.received if origin + url in body["urlList"]]
    endpoint.answer, endpoint.more = 503, {"Retry-After": "86400"}
    del endpoint.received[:]
    server.start()
    try:
        for origin in sites:
            assert server.cli("urlset", "add", origin + "/all.xml").code == 0
        eventually(lambda: len(positions(server)) == 2, "they begin with what comes next")
        assert server.cli("url", "add", ORIGIN + "/a", "--urlset", ORIGIN + "/all.xml").code == 0
        eventually(lambda: result(ORIGIN, "/a") == [503], "the first is rejected, with Retry-After")
        endpoint.more = {}
        assert server.cli("url", "add", other + "/a", "--urlset", other + "/all.xml").code == 0
        eventually(lambda: result(other, "/a"), "so is the other, without that")
        endpoint.answer = 200
        eventually(lambda: 200 in result(other, "/a"), "the other is notified again", 90)
        *refused, accepted = result(other, "/a")
        assert set(refused) == {503} and accepted == 200, "on a busy machine it may be refused twice"
        assert server.cli("url", "add", other + "/b", "--urlset", other + "/all.xml").code == 0
        eventually(lambda: result(other, "/b") == [200], "and goes on")
        assert result(ORIGIN, "/a") == [503]
    finally:
        endpoint.more = {}
        server.stop()
