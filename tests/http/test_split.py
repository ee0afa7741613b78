# SPDX-License-Identifier: LicenseRef-Undeclared
"""[source] split: a file past the limits of a sitemap becomes a urlset at its URL."""

import contextlib
import gzip
import os
import random
import re
import shutil
import signal
import sqlite3
import threading
import time

import pytest

from harness import ORIGIN, Server, eventually, seconds, sitemapd

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
    if made.process is not None:  # else its test failed
        made.stop()


def put(server, text):
    """As a job does it: whole, by a rename."""
    part = server.all.with_suffix(".part")
    part.write_text(text)
    part.rename(server.all)


def pages(server):
    """{page: its date in the index}"""
    reply = server.get("/sitemap_index.xml")
    return dict(ROW.findall(reply.xml().decode())) if reply.status == 200 else {}


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
    shop.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "1h"  # each night is one step, however slow the machine
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
    night[night.index(rows[9])] = (url(9), "<lastmod>2026-02-02</lastmod><video:video><video:title>no</video:title></video:video><geo>x</geo>")
    put(shop, xml(night))
    eventually(lambda: changes(shop)[1:], "the second night", 120)
    assert changes(shop)[1:] == [(1, 1, 1, 0)]
    wanted = [loc for loc, _ in rows]
    wanted[7] = url("new")
    eventually(lambda: listed(shop) == wanted, "places are kept, and a free one taken; published a moment after it is written")
    assert f"all.xml: its {COUNT} page URLs are now a urlset: 1 added, 1 updated, 1 removed; left out: 1 rejected, 1 repeated, 2 other elements and dates (<geo> in line " in shop.wait_for_log("source-file-split", 2)[-1]
    page = shop.get("/all.xml").xml().decode()
    assert f"<loc>{url('new')}</loc><image:image><image:loc>https://cdn.example.com/1.png</image:loc></image:image></url>" in page
    assert f"<loc>{url(9)}</loc><lastmod>2026-02-02</lastmod></url>" in page
    eventually(lambda: pages(shop)[ORIGIN + "/all.xml"] > first[ORIGIN + "/all.xml"], "a part with changes has a new date")
    assert pages(shop)[ORIGIN + "/all-2.xml"] == first[ORIGIN + "/all-2.xml"], "and no other"

    # Broken at its end: nothing of it.
    put(shop, xml([(url(f"other-{i}"), "") for i in range(COUNT)])[:-12])
    eventually(lambda: problem(shop) == "truncated", "it is reported", 120)
    assert listed(shop) == wanted
    # Half of it: held as a whole.
    put(shop, xml(rows[: COUNT // 2]))
    eventually(lambda: problem(shop) == "shrink-guard", "it is held", 120)
    assert listed(shop) == wanted and len(changes(shop)) == 2
    held = shop.api("GET", "/v1/sources").json()["sources"][0]["problems"][0]["detail"]
    assert held.startswith(f"would remove {COUNT // 2 + 1} page URLs and leave {COUNT // 2}, "), held
    answer = shop.api("POST", "/v1/sources/shop/scan?max_removed=60000")
    assert answer.status == 200, answer
    assert listed(shop) == [url(i) if i != 7 else url(7) for i in range(COUNT // 2)] or len(listed(shop)) == COUNT // 2
    # Small again: the urlset stays, and shrinks to one page.
    assert list(pages(shop)) == [ORIGIN + "/all.xml"] and problem(shop) is None
    assert b"xmlns:video" not in shop.get("/all.xml").body, "the urlset's page wins over the file"
    assert shop.cli("check").code == 0


def undone(server):
    """(removed, which group) of each step that an undo had."""
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT removed, part_of FROM history WHERE kind = 'undo' ORDER BY revision").fetchall()


def killed_within(server, go, steps, least, is_within):
    """The server, which was stopped, started, made to split by `go`, and killed after its first steps; returns these steps. Where this process was not
    given its turn until it was too far, it begins again."""
    before = server.database + ".before"
    shutil.copyfile(server.database, before)
    for _ in range(20):
        server.start()
        going = threading.Thread(target=go, daemon=True)
        going.start()
        eventually(lambda: len(steps()) >= least, "the first steps are done", 120, longest_pause=0.01)
        server.kill()
        going.join()
        if is_within(steps()):
            return steps()
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(server.database + suffix)
        shutil.copyfile(before, server.database)
    raise AssertionError("it was never killed before the last ones")


def killed_while_it_splits(server, changes, go=lambda: None):
    """With two steps done at least. What the configuration makes is there: a step has a quarter of the time that a write may wait,
    which is short then."""
    server.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "40ms"
    killed_within(server, go, changes, 2, lambda done: sum(row[0] for row in done) < COUNT)


def test_killed_between_two_steps(shop):
    """The next scan goes on, as one group of the history, which is undone together: in steps too, and after a kill in one."""
    shop.start()
    shop.stop()
    put(shop, xml((url(i), "") for i in range(COUNT)))
    killed_while_it_splits(shop, lambda: changes(shop))
    shop.start()
    eventually(lambda: sum(row[0] for row in changes(shop)) == COUNT, "the next scan completes it", 120)
    shop.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "60s"
    shop.restart()
    source = lambda: shop.api("GET", "/v1/sources").json()["sources"][0]
    eventually(lambda: source()["split_files"] == [{"path": "all.xml", "urls": COUNT}] and not source()["scanning"], "its source knows it as split")
    assert sorted(listed(shop)) == sorted(url(i) for i in range(COUNT))
    steps = changes(shop)
    assert len({row[3] for row in steps}) == 1 and steps[0][3] != 0, "one group"
    last = shop.api("GET", "/v1/history?kind=split&limit=1").json()["changes"][0]["revision"]
    undo = f"/v1/history/{last}/undo"
    assert shop.api("POST", undo).json()["code"] == "source-decides"

    whole = listed(shop)
    assert shop.cli("freeze", ORIGIN + "/all.xml").code == 0
    assert shop.api("POST", undo).json()["code"] == "shrink-guard", "the first step is checked like the whole"
    assert not undone(shop) and listed(shop) == whole
    dry = shop.api("POST", undo + f"?dry_run=1&max_removed={COUNT}").json()
    assert (dry["removed"], len(dry["rows"])) == (COUNT, 1000), dry
    assert not undone(shop) and listed(shop) == whole

    def ask():
        with contextlib.suppress(AssertionError, OSError):  # it has no answer
            shop.api("POST", undo + f"?max_removed={COUNT}")

    shop.stop()
    first = killed_within(shop, ask, lambda: undone(shop), 1, lambda done: len(done) + 2 <= len(steps))
    gone = sum(row[0] for row in first)
    shop.start()
    assert len(listed(shop)) == COUNT - gone, "each step is there or not"
    answer = shop.api("POST", undo + f"?max_removed={COUNT}").json()
    assert answer["removed"] == COUNT - gone and not pages(shop)
    back = undone(shop)[len(first):]
    assert len(back) > 1 and len({row[1] for row in back}) == 1 != back[0][1], "steps back are a group"
    # Undone itself, what it took comes back where it was; and undone again it is one whole for the guard.
    again = shop.api("POST", f"/v1/history/{answer['revision']}/undo").json()
    assert again["created"] == COUNT - gone and listed(shop) == whole[: COUNT - gone]
    assert shop.api("POST", f"/v1/history/{again['revision']}/undo").json()["code"] == "shrink-guard"
    assert shop.api("POST", f"/v1/history/{again['revision']}/undo?max_removed={COUNT}").json()["removed"] == COUNT - gone
    assert shop.cli("check").code == 0
    assert shop.cli("thaw", ORIGIN + "/all.xml").code == 0
    eventually(lambda: len(listed(shop)) == COUNT, "its source says again what it has", 120)
    assert shop.cli("check").code == 0


@pytest.mark.masses
def test_a_text_list_packed(shop):
    shop.all = shop.all.with_name("list.txt.gz")
    shop.all.write_bytes(gzip.compress("".join(url(i) + "\n" for i in range(COUNT)).encode(), 1))
    shop.start()
    eventually(lambda: len(pages(shop)) == 2, "it is split", 120)
    assert list(pages(shop)) == [ORIGIN + "/list.xml", ORIGIN + "/list-2.xml"]
    assert gzip.decompress(shop.get("/list.xml.gz").body) == shop.get("/list.xml", {"Accept-Encoding": "identity"}).body


@pytest.mark.masses
def test_too_much_for_its_share_of_the_disk(shop):
    """What is known of its rows has half of max_spool."""
    shop.env["SITEMAPD_LIMITS_MAX_SPOOL"] = "1M"
    put(shop, xml((url(i), "") for i in range(COUNT)))
    shop.start()
    eventually(lambda: problem(shop) == "split-too-large", "it is refused", 120)
    assert not pages(shop) and not changes(shop)


@pytest.mark.masses
def test_by_the_command(shop):
    """sitemapd scan: what it would do, and that it is done, without a server."""
    shop.start()
    shop.stop()
    put(shop, xml((url(i), "") for i in range(COUNT)))
    scan = ("scan", "shop", "--config", shop.folder / "sitemapd.conf")
    dry = shop.cli(*scan, "--dry-run")
    did = f"{COUNT} added, 0 updated, 0 removed"
    result = f"{COUNT} page URLs: %s{did}\n%s0 added, 0 updated, 0 removed, 0 files with a problem, 1 split into page URLs ({did})\n"
    assert dry.code == 0 and dry.out == "split     all.xml  " + result % (("would be: ",) * 2) and not changes(shop), dry
    done = shop.cli(*scan)
    assert done.code == 0 and done.out == "split     all.xml  " + result % ("", ""), done
    result = shop.cli("history", "--json", "--config", shop.folder / "sitemapd.conf")
    vias = {(line["kind"], line["via"]) for line in result.lines() if line["kind"] in ("split", "urlset-add")}
    assert vias == {("split", "cli"), ("urlset-add", "cli")}, result
    steps = changes(shop)  # one, or on a slow machine a few
    assert [sum(step[i] for step in steps) for i in range(3)] == [COUNT, 0, 0]
    assert shop.cli(*scan).out == "0 added, 0 updated, 0 removed, 0 files with a problem\n" and changes(shop) == steps
    put(shop, xml([(url(1), "<x:old xmlns:x='urn:x'>1</x:old><lastmod>2026-01-01</lastmod>"), (url(2), "<new>1</new>")]))
    read = shop.cli("import", "--dry-run", "--urlset", ORIGIN + "/all.xml", shop.all, "--config", shop.folder / "sitemapd.conf")
    assert "(extra-element): 2 in all, first in line 3: <x:old>, <new>" in read.err, read
    put(shop, xml((url(i), "") for i in range(COUNT)))
    shop.start()
    assert listed(shop) == [url(i) for i in range(COUNT)]


def test_by_the_command_on_a_server(shop):
    """What the split did is reported by the scan that did it, and by no other."""
    config = shop.folder / "sitemapd.conf"
    config.write_text(config.read_text().replace("settle = 100ms\nrescan = 1s", "settle = 1h\nrescan = 1d"))
    shop.start()
    source = lambda: shop.api("GET", "/v1/sources").json()["sources"][0]
    eventually(lambda: source()["last_scan_at"] and not source()["scanning"], "the scan of a start is over")
    scan = lambda *more: sitemapd("scan", "shop", "--server", "http://" + shop.admin, *more, env={"SITEMAPD_TOKEN": shop.token}).out
    nothing = "0 added, 0 updated, 0 removed, 0 files with a problem"

    def put_old(rows):
        """Which nobody writes to any more, so that a scan that is asked for takes it; none comes by itself."""
        put(shop, xml(rows))
        os.utime(shop.all, (time.time() - 7200,) * 2)

    put_old((url(i), "") for i in range(COUNT))
    assert scan("--dry-run") == f"would be: {nothing}, 1 split into page URLs ({COUNT} added, 0 updated, 0 removed)\n"
    assert scan() == f"{nothing}, 1 split into page URLs ({COUNT} added, 0 updated, 0 removed)\n"
    assert scan() == nothing + "\n"
    put_old((url(i), "<lastmod>2026-01-01</lastmod>" if i == 7 else "") for i in range(1, COUNT + 2))
    assert scan() == f"{nothing}, 1 split into page URLs (2 added, 1 updated, 1 removed)\n"


@pytest.mark.masses
def test_what_comes_again_and_again_takes_no_room(tmp_path):
    """Few locs in a small packed file of many rows: neither disk nor memory is theirs (a row takes 32 bytes of either)."""
    folder = tmp_path / "site"
    folder.mkdir()
    again = "".join(url(i) + "\n" for i in range(5)).encode() * 100_000
    (folder / "all.txt.gz").write_bytes(gzip.compress("".join(url(i) + "\n" for i in range(COUNT)).encode() + again, 6))
    server = Server(tmp_path, sites=(), config=(
        f'[site "main"]\norigin = {ORIGIN}\n[limits]\nmax_spool = 20M\n'
        f'[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nsplit = yes\n'))
    server.start()
    try:
        eventually(lambda: problem(server) or len(pages(server)) == 2, "it is split", 120)
        assert problem(server) is None and listed(server) == [url(i) for i in range(COUNT)]
    finally:
        server.stop()


def test_without_the_setting(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/all.xml").write_text(xml((url(i), "") for i in range(COUNT)))
    server = Server(tmp_path, sites=(), config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {tmp_path}/site\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\n'))
    server.start()
    try:
        eventually(lambda: problem(server) == "too-many-urls", "it is refused", seconds(60))
        with open(tmp_path / "sitemapd.conf", "a", encoding="utf-8") as config:
            config.write("split = yes\n")  # said for a file that is there, and is not touched again
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: problem(server) is None and len(pages(server)) == 2, "it is split", seconds(120))
    finally:
        server.stop()
