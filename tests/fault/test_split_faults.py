# SPDX-License-Identifier: LicenseRef-Undeclared
"""A split on a full disk, or whose server is killed within a step: no step is applied in part, no scratch file is left, and
the next scan completes the split."""

import os
import sqlite3
import subprocess
import time

import pytest

from harness import ORIGIN, Server, eventually, seconds
from test_disk import fill, mounted
from test_split import COUNT, changes, listed, pages, problem, put, url, xml

ROWS = [(url(i), "<lastmod>2026-01-01</lastmod>") for i in range(COUNT)]


def shop_on(folder, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    made = Server(tmp_path, sites=(), database=folder / "catalogue.db", config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {site}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nsplit = yes\n'))
    made.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = "1h"  # it is one step, however slow the machine
    made.all = site / "all.xml"
    return made


@pytest.fixture
def small(tmp_path):
    folder = mounted(tmp_path, "64m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def scratch(server):
    """The nameless files beside the catalogue that it has open."""
    found, folder = 0, f"/proc/{server.process.pid}/fd"
    for fd in os.listdir(folder):
        try:
            link = os.readlink(f"{folder}/{fd}")
        except OSError:
            continue
        found += link.startswith(os.path.dirname(server.database)) and link.endswith("(deleted)")
    return found


def strangers(server):
    return {name for name in os.listdir(os.path.dirname(server.database)) if not name.startswith("catalogue.db")}


def all_is_split(server, rows):
    eventually(lambda: problem(server) is None and len(pages(server)) == 2, "the next scan does all of it", 120)
    assert listed(server) == [loc for loc, _ in rows]
    assert [row[:3] for row in changes(server)] == [(len(rows), 0, 0)], "one change, whole"
    eventually(lambda: scratch(server) == 0, "the scan is over")
    assert server.cli("check").code == 0


@pytest.mark.parametrize("room, where", [(0, "before its first byte"), (800_000, "among its hashes"), (4_000_000, "when rows were kept aside, too"), (9_000_000, "in the transaction")])
def test_a_disk_that_is_full(small, tmp_path, room, where):
    server = shop_on(small, tmp_path)
    try:
        server.start()
        assert server.register(ORIGIN + "/before.xml").status == 201
        filler = fill(small)
        os.truncate(filler, max(0, os.path.getsize(filler) - room))
        before = server.get("/sitemap_index.xml")
        put(server, xml(ROWS))
        eventually(lambda: "no-space" in server.log() or problem(server), f"it is reported: full {where}", 120)
        eventually(lambda: scratch(server) == 0, "the scan is over")
        assert not changes(server)
        now = server.get("/sitemap_index.xml")
        assert (now.body, now["ETag"]) == (before.body, before["ETag"])
        os.unlink(filler)
        eventually(lambda: server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/before.xml").status == 204, "writes are taken again")
        all_is_split(server, ROWS)
    finally:
        server.kill()


def read(server, sql):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchone()[0]


def wal(server):
    return os.path.getsize(server.database + "-wal")


STATES = {
    "scratch is written": lambda server, had: scratch(server) > 0,
    "its urlset is made, and no row in it": lambda server, had: read(server, "SELECT count(*) FROM sitemap_index WHERE kind = 1") == 1,
    "the first step is being committed": lambda server, had: wal(server) > had + 1_000_000,
}


@pytest.mark.parametrize("state", STATES)
def test_killed_within_a_step(tmp_path, state):
    """Where this process was not given its turn until the step was over, it begins again."""
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        (folder / "data").mkdir(parents=True)
        server = shop_on(folder / "data", folder)
        try:
            server.start()
            had, reached = wal(server), STATES[state]
            put(server, xml(ROWS))
            until = time.monotonic() + seconds(60)
            while not reached(server, had) and not changes(server):  # looked for without a pause: it is a state of milliseconds
                assert time.monotonic() < until, state
            is_there = reached(server, had)
            server.kill()
            if not is_there:
                continue
            assert not strangers(server)
            assert changes(server) in ([], [(COUNT, 0, 0, 0)]), "a step is there or not"
            server.start()
            all_is_split(server, ROWS)
            return
        finally:
            server.kill()
    raise AssertionError(f"never seen: {state}")
