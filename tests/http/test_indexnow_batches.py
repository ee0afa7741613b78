# SPDX-License-Identifier: LicenseRef-Undeclared
"""IndexNow: many page URLs, in batches, over restarts and a kill."""

import pytest

from indexnow import KEY, config, endpoint, reported_to, with_urlset  # noqa: F401
from harness import ORIGIN, Server, eventually, faster, sitemapd


@pytest.mark.masses
def test_changes_without_page_urls_are_passed_once(endpoint, tmp_path):
    """A long history without anything to send is not read again each time: the position moves behind it."""
    server = with_urlset(endpoint, tmp_path)
    rows = lambda digest: [{"loc": f"{ORIGIN}/p/{i}", "digest": digest} for i in range(70_000)]
    put = lambda digest: server.bulk(rows(digest), f"/v1/urls?urlset={ORIGIN}/all.xml", "PUT")
    outcome = lambda: [url for _, body in endpoint.received for url in body["urlList"]]
    try:
        assert put("1").status == 200
        eventually(lambda: len(set(outcome())) == 70_000, "what came is reported", 180)
        before = outcome()
        changed = put("2").json()
        assert changed["updated"] == 70_000, changed
        eventually(lambda: reported_to(server)[0] > changed["revision"], "it is passed", 60)
        assert outcome() == before
    finally:
        server.stop()


def test_page_urls_are_sent(endpoint, tmp_path):
    """Added, changed and removed page URLs are sent once, also across a restart; rejected ones are sent again."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = Server(tmp_path, sites=(), env=faster(5), config=config(endpoint) + (
        f'[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nsplit = yes\n'))
    rows = [f"{ORIGIN}/p/{i}" for i in range(50_100)]
    put = lambda lines: ((folder / "part").write_text("".join(line + "\n" for line in lines)), (folder / "part").rename(folder / "all.txt"))
    del endpoint.received[:]
    server.start()
    try:
        eventually(lambda: reported_to(server), "it begins with what comes next")
        put(rows)
        taken = lambda: [body for answered, body in endpoint.received if answered == 200]
        locs = lambda: sorted(loc for body in taken() for loc in body["urlList"])
        eventually(lambda: len(locs()) >= len(rows), "all are reported", 180)
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
        server.start()  # begins again with what was not taken
        eventually(lambda: len(taken()) > count, "it is notified again", 120)
        assert taken()[-1]["urlList"] == [rows[0], ORIGIN + "/p/new"]
        eventually(lambda: server.metrics()['sitemapd_indexnow_urls_total{result="told"}'] == 2, "it is counted")
        assert len(taken()) == count + 1
    finally:
        server.stop()


def test_killed_in_mid_batch(endpoint, tmp_path):
    """Accepted batches are not sent again; the batch that was being sent is, from the stored position: at least once."""
    server = Server(tmp_path, config=config(endpoint), sites=(), env=faster(5))
    rows = [f"{ORIGIN}/p/{i}" for i in range(35_000)]
    urls = lambda outcome: [loc for answered, body in outcome if answered == 200 for loc in body["urlList"]]
    endpoint.answer, endpoint.hold = 200, 2
    endpoint.released.clear()
    del endpoint.received[:]
    for made in (("site", "add", ORIGIN), ("urlset", "add", ORIGIN + "/all.xml")):
        assert sitemapd(*made, database=server.database).code == 0
    server.start()
    try:
        eventually(lambda: reported_to(server), "it begins with what comes next")
        assert server.bulk([{"loc": loc} for loc in rows], f"/v1/urls?urlset={ORIGIN}/all.xml", "PUT").status == 200
        eventually(lambda: len(endpoint.received) == 3, "the third batch is on its way", 120)
        server.kill()
        before, endpoint.hold = endpoint.received[:], None
        endpoint.released.set()
        assert [answered for answered, _ in before] == [200, 200, None]
        server.start()
        eventually(lambda: sorted(urls(endpoint.received)) == sorted(rows), "all are reported", 120)
        assert endpoint.received[3][1]["urlList"] == before[2][1]["urlList"], "it goes on where it was"
    finally:
        endpoint.hold = None
        endpoint.released.set()
        server.kill()
