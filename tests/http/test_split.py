"""[source] split: a file past the limits of a sitemap becomes a urlset at its URL."""

import gzip
import random
import re
import sqlite3
import time

import pytest

from harness import ORIGIN, Server, eventually, seconds

ROW = re.compile(r"<sitemap><loc>(.*?)</loc><lastmod>(.*?)</lastmod></sitemap>")
COUNT = 50_400


def url(number):
    return f"{ORIGIN}/p/{number}"


def xml(rows):
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
            'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1">\n'
            + "".join(f"<url><loc>{loc}</loc>{rest}</url>\n" for loc, rest in rows) + "</urlset>\n")


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    made = Server(tmp_path, sites=(), config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\n'
        "serve = yes\nsplit = yes\n"))
    made.all = folder / "all.xml"
    yield made
    made.stop()


def put(server, text):
    """As a job does it: whole, by a rename."""
    part = server.all.with_suffix(".part")
    part.write_text(text)
    part.rename(server.all)


def pages(server):
    """{page: its date in the index}"""
    return dict(ROW.findall(server.get("/sitemap_index.xml").xml().decode() if server.get("/sitemap_index.xml").status == 200 else ""))


def listed(server):
    """The page URLs, in their order, over all pages."""
    locs = []
    for page in sorted(pages(server), key=len):
        locs += re.findall("<loc>(http.*?)</loc>", server.get(page.removeprefix(ORIGIN)).xml().decode())
    return locs


def changes(server):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT created, updated, removed, part_of FROM history WHERE kind = 'split' ORDER BY revision").fetchall()


def problem(server):
    problems = server.api("GET", "/v1/sources").json()["sources"][0]["problems"]
    return problems[0]["code"] if problems else None


def test_nights(shop):
    """It grows over the limit, changes its order and a few rows, breaks, loses too much, and shrinks."""
    shop.all.write_text(xml((url(i), "") for i in range(3)))
    shop.start()
    eventually(lambda: list(pages(shop)) == [ORIGIN + "/all.xml"], "small, it is listed as a file")
    assert b"xmlns:video" in shop.get("/all.xml").body  # the file itself
    rows = [(url(i), "<lastmod>2026-01-01</lastmod>") for i in range(COUNT)]
    put(shop, xml(rows))
    eventually(lambda: len(pages(shop)) == 2, "it is split", 120)
    assert listed(shop) == [loc for loc, _ in rows]
    assert changes(shop) == [(COUNT, 0, 0, 0)]
    first = pages(shop)
    eventually(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > first[ORIGIN + "/all.xml"], "dates are of seconds")

    # Another order; one gone, one new, one twice, one elsewhere, one that says something else, and what is not kept.
    night = rows[:]
    random.Random(1).shuffle(night)
    night.remove(rows[7])
    night += [(url("new"), "<image:image><image:loc>https://cdn.example.com/1.png</image:loc></image:image><priority>1</priority>"),
              (url("new"), ""), ("https://elsewhere.example.net/p", "")]
    night[night.index(rows[9])] = (url(9), "<lastmod>2026-02-02</lastmod><video:video><video:title>no</video:title></video:video>")
    put(shop, xml(night))
    eventually(lambda: changes(shop)[1:], "the second night", 120)
    assert changes(shop)[1:] == [(1, 1, 1, 0)]
    wanted = [loc for loc, _ in rows]
    wanted[7] = url("new")
    assert listed(shop) == wanted, "places are kept, and a free one taken"
    page = shop.get("/all.xml").xml().decode()
    assert f"<loc>{url('new')}</loc><image:image><image:loc>https://cdn.example.com/1.png</image:loc></image:image></url>" in page
    assert f"<loc>{url(9)}</loc><lastmod>2026-02-02</lastmod></url>" in page
    eventually(lambda: pages(shop)[ORIGIN + "/all.xml"] > first[ORIGIN + "/all.xml"], "a part with changes has a new date")
    assert pages(shop)[ORIGIN + "/all-2.xml"] == first[ORIGIN + "/all-2.xml"], "and no other"

    # Broken at its end: nothing of it.
    put(shop, xml([(url(f"other-{i}"), "") for i in range(COUNT)])[:-12])
    eventually(lambda: problem(shop) == "truncated", "it is told", 120)
    assert listed(shop) == wanted
    # Half of it: held as a whole.
    put(shop, xml(rows[: COUNT // 2]))
    eventually(lambda: problem(shop) == "shrink-guard", "it is held", 120)
    assert listed(shop) == wanted and len(changes(shop)) == 2
    answer = shop.api("POST", "/v1/sources/shop/scan?max_removed=60000")
    assert answer.status == 200, answer
    assert listed(shop) == [url(i) if i != 7 else url(7) for i in range(COUNT // 2)] or len(listed(shop)) == COUNT // 2
    # Small again: the urlset stays, and shrinks to one page.
    assert list(pages(shop)) == [ORIGIN + "/all.xml"] and problem(shop) is None
    assert b"xmlns:video" not in shop.get("/all.xml").body, "the urlset's page wins over the file"
    assert shop.cli("check").code == 0


def test_killed_between_two_steps(shop):
    """The next scan goes on, as one group of the history, which is undone together."""
    shop.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "40ms"  # a step has a quarter of it
    put(shop, xml((url(i), "") for i in range(COUNT)))
    shop.start()
    eventually(lambda: len(changes(shop)) >= 2, "two steps are done", 120)
    shop.kill()
    done = changes(shop)
    assert sum(row[0] for row in done) < COUNT, "it was killed before the last one"
    shop.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "60s"
    shop.start()
    eventually(lambda: sum(row[0] for row in changes(shop)) == COUNT, "the next scan completes it", 120)
    assert sorted(listed(shop)) == sorted(url(i) for i in range(COUNT))
    steps = changes(shop)
    assert len({row[3] for row in steps}) == 1 and steps[0][3] != 0, "one group"
    last = shop.api("GET", "/v1/history?kind=split&limit=1").json()["changes"][0]["revision"]
    undo = f"/v1/history/{last}/undo"
    assert shop.api("POST", undo).json()["code"] == "source-decides"


def test_a_text_list_packed(shop):
    shop.all = shop.all.with_name("list.txt.gz")
    shop.all.write_bytes(gzip.compress("".join(url(i) + "\n" for i in range(COUNT)).encode(), 1))
    shop.start()
    eventually(lambda: len(pages(shop)) == 2, "it is split", 120)
    assert list(pages(shop)) == [ORIGIN + "/list.xml", ORIGIN + "/list-2.xml"]
    assert gzip.decompress(shop.get("/list.xml.gz").body) == shop.get("/list.xml", {"Accept-Encoding": "identity"}).body


def test_without_the_setting(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/all.xml").write_text(xml((url(i), "") for i in range(COUNT)))
    server = Server(tmp_path, sites=(), config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {tmp_path}/site\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\n'))
    server.start()
    try:
        eventually(lambda: problem(server) == "too-many-urls", "it is refused", seconds(60))
    finally:
        server.stop()
