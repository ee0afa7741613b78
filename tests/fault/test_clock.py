# SPDX-License-Identifier: LicenseRef-Undeclared
"""A catalogue that was written while the clock was ahead: that is reported, the next change of a page dates it by the
clock again, and no date ever gives a 304 for other bytes."""

import email.utils
import os
import re
import sqlite3
import time

import pytest

from harness import ORIGIN, Clock, eventually, faster
from origin import Origin, answer

XML = "/sitemap_index.xml"
YEARS = 10 * 366 * 86400


@pytest.fixture
def clock(tmp_path):
    return Clock(str(tmp_path))


def year(text):
    return int(re.search(r"\d{4}", text)[0])


def seconds_of(date):
    return email.utils.parsedate_to_datetime(date).timestamp()


def ready(server):
    reply = server.api("GET", "/readyz", token=None)
    assert reply.status == 200
    return reply.json()["status"], [reason["code"] for reason in reply.json()["reasons"]]


def assert_honest(reply):
    """RFC 9110 8.8.2.1."""
    assert seconds_of(reply["Last-Modified"]) <= seconds_of(reply["Date"]), reply


def test_dates_come_back_to_the_clock(start, clock):
    server = start(env=clock.environment)
    this_year = time.gmtime().tm_year
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert ready(server) == ("ok", [])
    clock.set(YEARS)
    server.wait_for_log("clock-set")
    assert year(server.register(ORIGIN + "/b.xml").json()["sitemap"]["registered_at"]) >= this_year + 10
    ahead = server.get(XML)
    assert year(ahead["Last-Modified"]) >= this_year + 10
    assert_honest(ahead)

    clock.set(0)
    back = server.get(XML)
    assert_honest(back)
    assert back.body == ahead.body and back["ETag"] == ahead["ETag"]
    eventually(lambda: ready(server) == ("degraded", ["clock-behind"]), "it is reported")
    server.wait_for_log("clock-behind")
    assert server.get(XML, {"If-None-Match": ahead["ETag"]}).status == 304
    for date in (ahead["Last-Modified"], back["Last-Modified"], back["Date"]):
        assert server.get(XML, {"If-Modified-Since": date}).status == 200

    changed = server.register(ORIGIN + "/c.xml").json()["sitemap"]
    assert max(year(changed["registered_at"]), year(changed["changed_at"])) <= this_year + 1  # a year may end meanwhile
    eventually(lambda: ready(server) == ("ok", []), "it is over")
    server.wait_for_log("clock-agrees")
    now = server.get(XML)
    assert_honest(now)
    assert year(now["Last-Modified"]) <= this_year + 1 and len(re.findall(b"<loc>", now.xml())) == 3
    for date in (ahead["Last-Modified"], back["Last-Modified"], back["Date"], now["Last-Modified"]):
        assert server.get(XML, {"If-Modified-Since": date}).status == 200
    assert server.cli("check").code == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_an_index_that_was_dated_ahead_is_reported_until_it_changes(start, clock, restarted):
    """A write elsewhere does not end it, nor does a restart."""
    server = start(env=clock.environment)
    assert server.api("POST", "/v1/indexes", {"url": ORIGIN + "/shop/index.xml"}).status == 201
    clock.set(YEARS)
    server.wait_for_log("clock-set")
    for name in ("/a.xml", "/shop/a.xml"):
        assert server.register(ORIGIN + name).status == 201
    clock.set(0)
    eventually(lambda: ready(server) == ("degraded", ["clock-behind"]), "it is reported")
    assert server.register(ORIGIN + "/b.xml").status == 201
    server.wait_for_log("clock-behind")  # perhaps after that write
    if restarted:
        server.restart()
        eventually(lambda: ready(server) == ("degraded", ["clock-behind"]), "it is reported by the new one, too")
    assert ready(server) == ("degraded", ["clock-behind"])
    assert server.register(ORIGIN + "/shop/b.xml").status == 201
    eventually(lambda: ready(server) == ("ok", []), "it is over")
    server.wait_for_log("clock-agrees")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_source_comes_back(start, clock, tmp_path, restarted):
    folder = tmp_path / "files"
    folder.mkdir()
    config = f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/files/\nsettle = 0s\n'
    server = start(env=clock.environment, config=config)
    this_year = time.gmtime().tm_year
    scan = lambda: eventually(lambda: server.api("POST", "/v1/sources/files/scan").status == 200, "a scan is made")
    date = lambda: next(iter(e["lastmod"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]), None)

    def write(text, at=None):
        beside = folder / "a.txt.part"  # the server watches: it must not see the file with another date
        beside.write_text(f"{ORIGIN}/{text}\n")
        if at is not None:
            os.utime(beside, (at, at))
        beside.rename(folder / "a.txt")

    clock.set(YEARS)
    write("one", time.time() + YEARS - 100)
    scan()
    assert year(date()) >= this_year + 10
    clock.set(0)
    if restarted:
        server.restart()
        eventually(lambda: ready(server)[1] == ["clock-behind"], "it is reported by the new one too")
    write("two")
    eventually(lambda: scan() and year(date()) <= this_year + 1, "the date has come back")
    first = date()
    time.sleep(1.1)  # dates have seconds
    write("three", time.time() - 86400)
    eventually(lambda: scan() and date() > first, "it does not run backwards")


def test_page_urls_leave_in_their_time(start, clock):
    """Without any write: the writer removes expired page URLs on its own."""
    server = start(env=clock.environment)
    urlset = ORIGIN + "/news.xml"
    assert server.api("POST", "/v1/urlsets", {"url": urlset, "expires": "2d"}).status == 201
    day = lambda ago: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago * 86400))
    for name, ago in (("old", 1.5), ("new", 0.1)):
        assert server.api("POST", "/v1/urls", {"loc": f"{ORIGIN}/{name}", "lastmod": day(ago), "urlset": urlset}).status == 201
    assert re.findall("<loc>(.*?)</loc>", server.get("/news.xml").xml().decode()) == [ORIGIN + "/old", ORIGIN + "/new"]
    clock.set(86400)
    eventually(lambda: re.findall("<loc>(.*?)</loc>", server.get("/news.xml").xml().decode()) == [ORIGIN + "/new"], "two days old", 60)
    clock.set(3 * 86400)
    eventually(lambda: server.get(XML).status == 404 or b"news.xml" not in server.get(XML).xml(), "its page left the index", 60)
    assert server.get("/news.xml").status == 404
    changes = server.api("GET", "/v1/history").json()["changes"]
    assert [(change["kind"], change["by"]) for change in changes[:2]] == [("expiry", "expiry")] * 2, changes[:2]
    assert server.cli("check").code == 0


def test_indexnow_gives_up_after_a_day(start, clock, tmp_path):
    with Origin() as endpoint:
        endpoint.answers["/indexnow"] = answer(503, Connection="close")
        server = start(env=clock.environment | faster(10), sites=(), config=(
            f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindexnow_key = 5f1c6a0e7d2b49c8\n'
            f"indexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
        urlset = ORIGIN + "/pages.xml"
        assert server.api("POST", "/v1/urlsets", {"url": urlset}).status == 201
        outcome = lambda result: server.metrics()[f'sitemapd_indexnow_urls_total{{result="{result}"}}']
        def begun():
            with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
                return db.execute("SELECT revision FROM indexnow").fetchone()

        eventually(begun, "it begins with what comes next")
        assert server.api("POST", "/v1/urls", {"loc": ORIGIN + "/a", "urlset": urlset}).status == 201
        server.wait_for_log("indexnow-failed")
        assert outcome("given-up") == 0
        first = begun()
        clock.set(86400 + 3600)
        eventually(lambda: outcome("given-up") == 1, "at the next try", 90)
        assert outcome("told") == 0
        eventually(lambda: begun() > first, "it goes on behind them")
