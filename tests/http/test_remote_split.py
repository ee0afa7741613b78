# SPDX-License-Identifier: LicenseRef-Undeclared
"""[source] upstream with split: a remote sitemap that is past the limits becomes a urlset at its URL."""

import contextlib
import gzip
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness import PLAIN, Server, ask, eventually, seconds, sitemapd
from origin import Origin, answer, index, urlset
from test_split import killed_while_it_splits

COUNT = 50_400
ROW = re.compile(r"<sitemap><loc>(.*?)</loc>(?:<lastmod>(.*?)</lastmod>)?</sitemap>")


def xml(rows):
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            + "".join(f"<url><loc>{loc}</loc>{rest}</url>\n" for loc, rest in rows) + "</urlset>\n").encode()


class Shop:
    """A server whose source names /all.xml to be split, beside /small.xml."""

    def __init__(self, origin, folder, **settings):
        self.origin, self.base = origin, f"http://{origin.address}:{origin.port}"
        self.all = self.base + "/all.xml"
        origin.answers["/small.xml"] = answer(200, urlset(self.base + "/s", lastmod="2025-02-03"))
        origin.answers["/list.xml"] = answer(200, index(self.all, self.base + "/small.xml"))
        self.split = settings.pop("split", "split = {base}/all.xml\n").format(base=self.base)
        site = settings.pop("site", "")
        self.server = Server(folder, sites=(), config=(
            "[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 1\n" + settings.pop("more", "")
            + f'[site "m"]\norigin = {self.base}\nindex = /sitemap_index.xml\n{site}[source "shop"]\nupstream = {self.base}/list.xml\n{self.split}'), **settings)

    def url(self, number):
        return f"{self.base}/p/{number}"

    def rows(self, count, rest=""):
        return [(self.url(i), rest) for i in range(count)]

    def get(self, path):
        return ask(self.server.public, "GET", path, host=f"{self.origin.address}:{self.origin.port}")

    def pages(self):
        """{entry of the index: its date}"""
        reply = self.get("/sitemap_index.xml")
        return dict(ROW.findall(reply.xml().decode())) if reply.status == 200 else {}

    def listed(self):
        """The page URLs of the urlset, in their order."""
        paths = sorted((page.removeprefix(self.base) for page in self.pages() if "/all" in page), key=len)
        return [loc for path in paths for loc in re.findall("<loc>(http.*?)</loc>", self.get(path).xml().decode())]

    def check(self, loc=None):
        checks = {check["loc"]: check["check"] for check in self.server.api("GET", "/v1/checks").json()["checks"]}
        return checks.get(loc or self.all, {"state": None, "code": None, "urls": None, "remarks": []})

    def source(self):
        (source,) = self.server.api("GET", "/v1/sources").json()["sources"]
        return source

    def serve(self, body, **headers):
        self.origin.answers["/all.xml"] = answer(200, body, **headers)

    def poll(self, expected, timeout=120):
        """Polls it now, until it stands as expected: a state, or the code of a problem."""
        self.tick()
        since = self.check()["checked_at"]
        eventually(lambda: self.server.api("POST", f"/v1/checks?loc={self.all}").status == 200, "its turn comes")
        self.until(lambda: (lambda check: check["checked_at"] > since and expected in (check["state"], check["code"]))(self.check()), expected, timeout)

    def until(self, state, what, timeout=120):
        eventually(state, f"{what}: {self.check()}" if self.server.running() else what, seconds(timeout))
        self.source()  # which shows what is published: a check is reported as soon as it is written

    def changes(self, kind="split"):
        with sqlite3.connect(f"file:{self.server.database}?mode=ro", uri=True) as db:
            return db.execute("SELECT created, updated, removed, part_of FROM history WHERE kind = ? ORDER BY revision", [kind]).fetchall()

    def tick(self):
        """Dates are of seconds."""
        now = time.time()
        eventually(lambda: time.time() > now + 1.1, "the next second")


@pytest.fixture
def make(tmp_path):
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin())

        def make_one(folder=tmp_path, **settings):
            shop = Shop(origin, folder, **settings)
            stack.callback(shop.server.kill)
            return shop

        yield make_one


@pytest.mark.masses
def test_nights(make):
    """Small, it is a sitemap of the list; then it grows over the limit, changes order and a few rows, breaks, loses too much, and shrinks."""
    shop = make()
    shop.server.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "1h"  # each night is one step, however slow the machine
    shop.serve(urlset(shop.url(0), lastmod="2025-01-01"))
    shop.server.start()
    shop.until(lambda: shop.pages().get(shop.all) == "2025-01-01" and shop.check()["state"] == "good", "small, it is listed where it is")
    assert shop.check()["remarks"] == [] and shop.source()["split"] == [shop.all] and shop.source()["split_files"] == []
    rows = shop.rows(COUNT, "<lastmod>2026-01-01</lastmod>")
    shop.serve(xml(rows), ETag='"1"')
    shop.poll("good")
    assert shop.check()["remarks"] == ["split"] and shop.check()["urls"] == COUNT and shop.check()["code"] is None
    assert f"{shop.all}: its {COUNT} page URLs are now a urlset: {COUNT} added, 0 updated, 0 removed" in shop.server.wait_for_log("source-file-split")[-1]
    assert shop.listed() == [loc for loc, _ in rows]
    assert shop.changes() == [(COUNT, 0, 0, 0)]
    first = shop.pages()
    assert set(first) == {shop.all, shop.base + "/all-2.xml", shop.base + "/small.xml"}
    shop.until(lambda: shop.source()["split_files"] == [{"path": shop.all, "urls": COUNT}], "the list has it as split")
    shop.until(lambda: (shop.source()["quarantined"], shop.source()["listed"]) == (0, 1), "it is neither an entry of the list nor a problem")
    outcome = sitemapd("scan", "shop", "--dry-run", "--server", "http://" + shop.server.admin, env={"SITEMAPD_TOKEN": shop.server.token})
    assert outcome.out == "would be: 0 added, 0 updated, 0 removed, 0 sitemaps with a problem\n", outcome

    # Asked for what is new only, and it is not.
    conditional = lambda head: "If-None-Match: \"1\"" in head
    shop.origin.answers["/all.xml"] = lambda connection, head: connection.sendall(answer(304 if conditional(head) else 500))
    shop.poll("good")
    assert shop.check()["status"] == 304 and shop.check()["remarks"] == ["split"] and shop.check()["urls"] == COUNT

    # Another order, one gone, one new, one twice, one elsewhere, one that says something else; packed on its way.
    night = rows[:]
    random.Random(1).shuffle(night)
    night.remove(rows[7])
    night += [(shop.url("new"), ""), (shop.url("new"), ""), ("http://elsewhere.example.net/p", "")]
    night[night.index(rows[9])] = (shop.url(9), "<lastmod>2026-02-02</lastmod>")
    shop.serve(gzip.compress(xml(night), 1), Content_Encoding="gzip")
    shop.poll("good")
    wanted = [loc for loc, _ in rows]
    wanted[7] = shop.url("new")
    assert shop.changes()[1:] == [(1, 1, 1, 0)] and shop.listed() == wanted, "places are kept, and a free one taken"
    assert shop.check()["detail"] == "left out: 1 rejected, 1 repeated"
    assert shop.pages()[shop.all] > first[shop.all] and shop.pages()[shop.base + "/all-2.xml"] == first[shop.base + "/all-2.xml"]

    # An incomplete answer or file changes nothing.
    packed = gzip.compress(xml(rows), 1)
    for body, more, expected in [(xml(rows)[:-12], {}, "truncated"), (packed[:-9], {"Content_Encoding": "gzip"}, "truncated")]:
        shop.serve(body, **more)
        shop.poll(expected)
        assert shop.check()["state"] == "broken"
    shop.origin.answers["/all.xml"] = shop.origin.cut(answer(200, xml(rows)[:-12], length=1 << 30))
    shop.poll("unreachable")
    assert shop.listed() == wanted and len(shop.changes()) == 2

    # Half of it: held as a whole, until a scan releases it.
    shop.serve(xml(rows[: COUNT // 2]))
    shop.poll("shrink-guard")
    assert shop.listed() == wanted and shop.check()["state"] == "broken"
    assert shop.server.api("POST", "/v1/sources/shop/scan?max_removed=60000").status == 200
    shop.until(lambda: shop.check()["state"] == "good", "it is let through")
    # Small again: the urlset stays, and shrinks to one page.
    assert set(shop.pages()) == {shop.all, shop.base + "/small.xml"} and len(shop.listed()) == COUNT // 2
    assert shop.check()["remarks"] == ["split"]
    assert shop.server.cli("check").code == 0
    shop.server.stop()


def test_others_are_polled_meanwhile(make):
    """One a host at once, and a fetch that takes for ever, is killed in its middle, or was asked for before its time: it keeps nobody waiting, and
    leaves nothing behind. What is named no more is a sitemap that is too large, and its urlset stays."""
    shop = make()
    shop.serve(xml(shop.rows(COUNT)), ETag='"1"')
    shop.server.start()
    shop.until(lambda: shop.check()["remarks"] == ["split"], "it is split")
    asked = shop.origin.paths().count("/all.xml")
    shop.server.stop()
    shop.server.start()
    head = answer(200, b"", length=1 << 30)
    shop.origin.answers["/all.xml"] = shop.origin.silent(head + xml(shop.rows(5000)))
    small = lambda: shop.origin.paths().count("/small.xml")
    before = small()
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.base}/small.xml").status == 200, "it is watched")
    assert small() == before + 1 and shop.origin.paths().count("/all.xml") == asked, "a restart fetches nothing before its time"
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 200, "it is asked for")
    eventually(lambda: shop.origin.paths().count("/all.xml") == asked + 1, "it is on its way")
    for _ in range(3):
        assert shop.server.api("POST", f"/v1/checks?loc={shop.base}/small.xml").json()["check"]["state"] == "good"
    assert shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 503, "nobody waits for it"
    # It lies nowhere that a kill would leave it.
    files = lambda: {path.name for path in shop.server.folder.iterdir()}
    had = files()
    shop.server.kill()
    assert files() <= had
    shop.server.start()
    assert len(shop.listed()) == COUNT
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 200, "it is asked for again")
    eventually(lambda: shop.origin.paths().count("/all.xml") > asked + 1, "it is on its way")
    began = time.monotonic()
    shop.server.stop()
    assert time.monotonic() - began < seconds(10), "a stop waits for no origin"
    # The operator names it no more.
    settings = shop.server.folder / "sitemapd.conf"
    settings.write_text(settings.read_text().replace(shop.split, ""))
    shop.serve(xml(shop.rows(COUNT)))
    shop.server.start()
    shop.poll("too-many-urls")
    assert len(shop.listed()) == COUNT and shop.check()["state"] == "broken"
    shop.server.stop()


def test_reloaded_while_it_is_fetched(make):
    """If it is no longer named during the fetch, it is dropped at once, without a result; named again, it is fetched again."""
    shop = make()
    asked = lambda: shop.origin.paths().count("/all.xml")
    shop.origin.answers["/all.xml"] = shop.origin.silent(answer(200, b"", length=1 << 30) + xml(shop.rows(5000)))
    shop.server.start()
    eventually(lambda: asked() == 1, "it is on its way")
    settings = shop.server.folder / "sitemapd.conf"
    named = settings.read_text()

    def reload(text):
        reloads = len(shop.server.wait_for_log("reload"))
        settings.write_text(text)
        shop.server.process.send_signal(signal.SIGHUP)
        eventually(lambda: len(shop.server.wait_for_log("reload")) > reloads, "it is read again")

    shop.serve(xml(shop.rows(COUNT)))
    reload(named.replace(shop.split, ""))
    shop.until(lambda: shop.check()["code"] == "too-many-urls", "a sitemap like any other")
    shop.origin.answers["/all.xml"] = shop.origin.silent(answer(200, b"", length=1 << 30))
    before = asked()
    reload(named)
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 200, "its turn comes")
    eventually(lambda: asked() > before, "it is on its way again")
    shop.serve(xml(shop.rows(COUNT)))
    reload(named + "drop_after = 9d\n")  # another source by that
    shop.until(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 200, "the one that was released is over")
    shop.until(lambda: shop.check()["remarks"] == ["split"], "it is split")
    assert shop.listed() == [loc for loc, _ in shop.rows(COUNT)]
    shop.server.stop()


def test_killed_between_two_steps_and_undone(make):
    """As of a folder: the next poll goes on, as one group, which is undone together, and read again after the thaw."""
    shop = make()
    shop.origin.answers["/all.xml"] = shop.origin.silent()
    shop.server.start()
    shop.until(lambda: len(shop.pages()) == 2, "the list is read")
    shop.server.stop()
    shop.serve(xml(shop.rows(COUNT)), ETag='"1"')

    def polls():
        """Again and again, until it is killed: few writes are done in so short a time where the machine is busy."""
        with contextlib.suppress(OSError, AssertionError):
            while shop.server.api("POST", f"/v1/checks?loc={shop.all}").status:
                time.sleep(0.5)

    killed_while_it_splits(shop.server, shop.changes, polls)
    shop.server.start()

    def completed():
        shop.server.api("POST", f"/v1/checks?loc={shop.all}")
        return sum(row[0] for row in shop.changes()) == COUNT and shop.check()["remarks"] == ["split"]

    eventually(completed, "the next poll completes it, and reports it", seconds(120), 1)
    shop.server.stop()
    shop.server.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "60s"
    shop.server.start()
    steps = shop.changes()
    assert len({row[3] for row in steps}) == 1 and steps[0][3] != 0, "one group"
    last = shop.server.api("GET", "/v1/history?kind=split&limit=1").json()["changes"][0]["revision"]
    assert shop.server.api("POST", f"/v1/history/{last}/undo?max_removed={COUNT}").json()["code"] == "source-decides"
    assert shop.server.cli("freeze", shop.all).code == 0
    due, asked = shop.check()["next_at"], shop.origin.paths().count("/all.xml")
    assert shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 503, "frozen, it is not fetched for nothing"
    assert shop.origin.paths().count("/all.xml") == asked
    assert shop.server.api("POST", f"/v1/history/{last}/undo?max_removed={COUNT}").json()["removed"] == COUNT
    assert shop.listed() == [] and shop.check()["next_at"] == due, "it is reported when it is due, as it is"
    assert shop.server.cli("thaw", shop.all).code == 0
    shop.origin.answers["/all.xml"] = lambda connection, head: connection.sendall(
        answer(304) if "If-None-Match" in head else answer(200, xml(shop.rows(COUNT))))
    shop.poll("good")
    assert sorted(shop.listed()) == sorted(loc for loc, _ in shop.rows(COUNT)), "its validators are forgotten"
    assert shop.server.cli("check").code == 0
    shop.server.stop()


def test_a_scan_lets_each_of_them_through(make):
    """What the guard holds of several is let through by one scan, once."""
    shop = make(split="split = {base}/all.xml {base}/old.xml\n")
    both = shop.all, shop.base + "/old.xml"
    shop.origin.answers["/list.xml"] = answer(200, index(*both))
    serve = lambda rows: shop.origin.answers.update({"/all.xml": answer(200, xml(rows)), "/old.xml": answer(200, xml([(f"{loc}?old", rest) for loc, rest in rows]))})
    poll = lambda: [eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={loc}").status == 200, "its turn comes") for loc in both]
    stand = lambda word: all(word in (shop.check(loc)["code"], shop.check(loc)["urls"]) for loc in both)
    serve(shop.rows(COUNT))
    shop.server.start()

    def both_are_split():
        """One is split at once: the other is asked for, as its own turn comes only after ten seconds."""
        for loc in both:
            if shop.check(loc)["urls"] != COUNT:
                shop.server.api("POST", f"/v1/checks?loc={loc}")
        return stand(COUNT)

    shop.until(both_are_split, "both are split")
    serve(shop.rows(COUNT // 2))
    poll()
    shop.until(lambda: stand("shrink-guard"), "both are held")
    assert shop.server.api("POST", "/v1/sources/shop/scan?max_removed=60000").status == 200
    shop.until(lambda: stand(COUNT // 2) and stand(None), "both are let through")
    serve(shop.rows(10))
    poll()
    shop.until(lambda: stand("shrink-guard"), "it was for once")
    shop.server.stop()


def test_a_scan_lets_through_what_is_being_fetched(make):
    """The poll that is under way began before the scan and is held; the next one follows at once."""
    shop = make()
    shop.serve(xml(shop.rows(COUNT)))
    shop.server.start()
    shop.until(lambda: shop.check()["urls"] == COUNT, "it is split")
    asked, scanned = threading.Event(), threading.Event()

    def held(connection, _):
        asked.set()
        scanned.wait(seconds(120))
        connection.sendall(answer(200, xml(shop.rows(COUNT // 2))))

    shop.origin.answers["/all.xml"] = held
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}").status == 200 or asked.is_set(), "its turn comes")
    assert asked.wait(seconds(120)), "it is under way"
    assert shop.server.api("POST", "/v1/sources/shop/scan?max_removed=60000").status == 200
    scanned.set()
    shop.until(lambda: shop.check()["urls"] == COUNT // 2 and shop.check()["code"] is None, "it is let through")
    shop.server.stop()


def test_who_asks_for_too_much(make):
    """Polls that are asked for, and scans that let much go, hurry it only until its site had its share: some 1.5 GB here."""
    shop = make(more="[limits]\nmax_spool = 1G\n")
    shop.origin.answers["/all.xml"] = shop.origin.endless(b"HTTP/1.1 200 OK\r\n\r\n" + xml(shop.rows(10))[:-10], b"<!-- more and more and more -->" * 20000)
    shop.server.start()
    asked = lambda: shop.origin.paths().count("/all.xml")
    ask_for = lambda: shop.server.api("POST", f"/v1/checks?loc={shop.all}")
    last = []

    def refused():
        last[:] = [ask_for().json().get("detail", "")]
        return "used its share" in last[0]

    eventually(refused, f"it is refused: {last}", seconds(120))
    assert 3 <= asked() <= 4, "of half a gigabyte each"
    had = asked()
    assert shop.server.api("POST", "/v1/sources/shop/scan?max_removed=60000").status == 200
    small = f"{shop.base}/small.xml"
    eventually(lambda: shop.server.api("POST", f"/v1/checks?loc={small}").status == 200, "others are polled as ever")
    assert refused() and asked() == had
    shop.server.stop()


def test_larger_than_its_share(make):
    """As sent it has half of max_spool."""
    shop = make(more="[limits]\nmax_spool = 2M\n")
    shop.origin.answers["/all.xml"] = shop.origin.endless(b"HTTP/1.1 200 OK\r\n\r\n" + xml(shop.rows(COUNT))[:-10], b"<!-- more and more and more -->" * 2000)
    shop.server.start()
    shop.until(lambda: shop.check()["code"] == "split-too-large", "it is refused")
    assert shop.check()["state"] == "broken" and set(shop.pages()) == {shop.all, shop.base + "/small.xml"}, "its entry stays"
    shop.server.stop()


def test_on_another_host(make):
    """Its urlset would lie on a host that is not the site's: it is reported, and listed as before."""
    with Origin("127.0.0.3") as other:
        elsewhere = f"{other.address}:{other.port}"
        shop = make(split=f"split = http://{elsewhere}/all.xml\nindex = /sitemap_index.xml\n", site=f"cross_host = {elsewhere}\n", more="allow_address = 127.0.0.3\n")
        shop.all = f"http://{elsewhere}/all.xml"
        other.answers["/all.xml"] = answer(200, xml(shop.rows(COUNT)))
        shop.origin.answers["/list.xml"] = answer(200, index(shop.all, shop.base + "/small.xml"))
        shop.server.start()
        shop.until(lambda: shop.check()["code"] == "too-many-urls", "it is refused")
        assert shop.check()["detail"].endswith("; it is not split: its URL is not on its site's own host")
        assert set(shop.pages()) == {shop.all, shop.base + "/small.xml"} and not shop.changes()
        shop.server.stop()


def test_a_disk_that_is_full(make, tmp_path):
    """It is reported as what it is, and the catalogue has room all the while."""
    if os.geteuid() != 0:
        pytest.skip("a small tmpfs needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)], capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        shop = make(folder)
        shop.origin.answers["/all.xml"] = shop.origin.endless(b"HTTP/1.1 200 OK\r\n\r\n" + xml(shop.rows(COUNT))[:-10], b"<!-- more and more and more -->" * 2000)
        shop.server.start()
        shop.until(lambda: shop.check()["code"] == "no-space", "it is reported")
        assert shop.check()["state"] == "unreachable" and "cannot be stored beside" in shop.check()["detail"]
        assert shop.server.register(shop.base + "/other.xml").status == 201 and shutil.disk_usage(folder).free > 30 << 20
        shop.server.stop()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.masses
@pytest.mark.stress
def test_two_million(make):
    """Fetched packed, as a list, and split: memory stays bounded."""
    count = 2_000_000 if PLAIN else 300_000
    shop = make(split="split = {base}/all.txt.gz\n")
    packed = gzip.compress("".join(f"{shop.url(i)}\n" for i in range(count)).encode(), 1)
    shop.all = shop.base + "/all.txt.gz"
    shop.origin.answers["/all.txt.gz"] = answer(200, packed)
    shop.origin.answers["/list.xml"] = answer(200, index(shop.all))
    shop.server.start()
    peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{shop.server.process.pid}/status").read_text())[1]) / 1024
    before = peak()
    shop.until(lambda: shop.check()["remarks"] == ["split"], "it is split", 400)
    assert shop.check()["urls"] == count
    shop.until(lambda: len(shop.pages()) == count // 50_000, "all of its pages are listed")
    grown = peak() - before
    print(f"grown by {grown:.0f} MiB")
    assert not PLAIN or grown < 150, f"{grown} MiB"
    shop.server.stop()
