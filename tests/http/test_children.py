# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sitemaps of remote sources with `serve = yes`: served here, from copies, also while their origin is down."""

import contextlib
import gzip
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from harness import ask, eventually, q
from nodes import joined
from origin import Origin, answer, index, urlset

FETCH = "[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n"

pytestmark = pytest.mark.faster(5)


class World:
    """A site that mirrors an origin, and its server."""

    def __init__(self, start, origin, fetch="", **settings):
        self.start, self.origin = start, origin
        self.base = f"http://{origin.address}:{origin.port}"
        self.host = f"{origin.address}:{origin.port}"
        self.fetch, self.settings = fetch, {"serve": "yes"} | settings

    def config(self, **changed):
        settings = "".join(f"{key} = {value}\n" for key, value in (self.settings | changed).items())
        return f'{FETCH}{self.fetch}[site "m"]\norigin = {self.base}\nindex = /sitemap_index.xml\n[source "shop"]\nupstream = {self.base}/list.xml\n{settings}'

    def list(self, *members):
        members = [m if isinstance(m, tuple) else (m, None) for m in members]
        self.origin.answers["/list.xml"] = answer(200, index(*((self.base + path.replace("&", "&amp;"), date) if date else self.base + path.replace("&", "&amp;") for path, date in members)))

    def serve(self):
        self.server = self.start(sites=(), config=self.config())
        return self.server

    def get(self, path, headers=(), method="GET"):
        return ask(self.server.public, method, path, headers, host=self.host)

    def index(self):
        return self.get("/sitemap_index.xml").body.decode()

    def poll(self, path):
        """Has the server poll a sitemap now."""
        reply = self.server.api("POST", f"/v1/checks?loc={quote(self.base + path, safe='')}")
        assert reply.status == 200, reply
        return reply.json()["check"]["state"]

    def reasons(self):
        return {reason["code"] for reason in self.server.api("GET", "/readyz").json()["reasons"]}

    def asked(self, path):
        return sum(head.split(" ", 2)[1] == path for head in self.origin.asked)

    def scan(self):
        return self.server.api("POST", "/v1/sources/shop/scan")

    def stored(self):
        folder = Path(self.server.database + ".children")
        return [file for file in folder.glob("*/*") if len(file.name) == 32]

    def bytes_stored(self):
        total = 0
        for file in self.stored():
            with contextlib.suppress(FileNotFoundError):  # the store may remove it just now
                total += file.stat().st_size
        return total

    def is_stored(self, count):
        eventually(lambda: len(self.stored()) == count, f"{count} copies")


@pytest.fixture
def world(start):
    with Origin() as origin:
        yield World(start, origin)


def test_children_are_served_as_the_origin_has_them(world):
    good = urlset(world.base + "/page", lastmod="2025-02-03")
    large = urlset(*(f"{world.base}/page/{i}" for i in range(2000)))
    bodies = {
        "/good.xml": (good, answer(200, good)),
        "/packed.xml": (good + b"\n", answer(200, gzip.compress(good + b"\n"), Content_Encoding="gzip")),
        "/packed.xml.gz": (gzip.compress(good), answer(200, gzip.compress(good))),
        "/twice.xml.gz": (gzip.compress(good), answer(200, gzip.compress(gzip.compress(good)), Content_Encoding="gzip")),
        "/sitemap.php?type=posts&page=2": (large, answer(200, large)),
        "/urls?kind=text": (f"\n{world.base}/page\n".encode(), answer(200, f"\n{world.base}/page\n".encode(), Content_Type="text/plain")),
        "/list.txt": (f"{world.base}/page\n".encode(), answer(200, f"{world.base}/page\n".encode(), Content_Type="text/plain")),
    }
    for path, (_, reply) in bodies.items():
        world.origin.answers[path] = reply
    world.origin.answers["/coded.xml.gz"] = answer(200, gzip.compress(good), Content_Encoding="gzip")
    world.list(*((path, "2025-03-04T05:06:07Z") for path in [*bodies, "/coded.xml.gz"]))
    world.serve()
    world.is_stored(len(bodies) + 1)
    for path, (body, _) in bodies.items():
        reply = world.get(path)
        assert (reply.status, reply.body) == (200, body), path
        assert reply["Last-Modified"] == "Tue, 04 Mar 2025 05:06:07 GMT" and reply["ETag"].startswith('"'), path
        assert world.get(path, {"If-None-Match": reply["ETag"]}).status == 304
        head = world.get(path, method="HEAD")
        assert head.status == 200 and head["Content-Length"] == str(len(body)) and head["ETag"] == reply["ETag"]
        kind = "application/gzip" if path.endswith(".gz") else "text/plain; charset=utf-8" if path.endswith((".txt", "text")) else "application/xml"
        assert reply["Content-Type"].startswith(kind.split(";")[0]), path
        assert reply["Content-Security-Policy"] == "script-src 'none'" and reply["X-Content-Type-Options"] == "nosniff"
    # A .gz that is gzip only by its Content-Encoding: its copy is a .gz, too.
    reply = world.get("/coded.xml.gz")
    assert reply["Content-Type"] == "application/gzip" and gzip.decompress(reply.body) == good and world.get("/coded.xml.gz", {"Accept-Encoding": "gzip"}).body == reply.body
    packed = world.get("/sitemap.php?type=posts&page=2", {"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == large
    # What no list names is served by nobody, and the origin is not asked for it.
    for path in ("/sitemap.php?type=posts&page=3", "/sitemap.php", "/other.xml", "/good.xml?x=1"):
        assert world.get(path).status == 404 and world.asked(path) == 0, path


def test_children_past_the_web_server(start):
    """With `connect`, after the switch: a second look at the public address, which leads here, costs no copy."""
    with Origin() as old:
        host = "www.shop.example"
        good = urlset(f"http://{host}/page")
        old.answers["/a.xml"] = answer(200, good)
        old.answers["/list.xml"] = answer(200, index(f"http://{host}/a.xml", f"http://{host}/sitemap_index.xml?page=1"))
        old.answers["/sitemap_index.xml?page=1"] = answer(200, good)
        config = f'{FETCH}[site "m"]\norigin = http://{host}\nindex = /sitemap_index.xml\n[source "shop"]\nupstream = http://{host}/list.xml\nconnect = {old.address}:{old.port}\nserve = yes\n'
        server = start(sites=(), config=config)
        for path in ("/a.xml", "/sitemap_index.xml?page=1"):
            eventually(lambda: ask(server.public, "GET", path, host=host).body == good, "it is served")
        old.answers.clear()
        server.restart()
        for path in ("/a.xml", "/sitemap_index.xml?page=1"):
            assert ask(server.public, "GET", path, host=host).body == good
        assert b"<sitemapindex" in ask(server.public, "GET", "/sitemap_index.xml", host=host).body


def test_the_last_good_copy_is_served_while_the_origin_fails(world):
    good = urlset(world.base + "/page")
    for path in ("/a.xml", "/b.xml", "/c.xml"):
        world.origin.answers[path] = answer(200, good)
    world.list(("/a.xml", "2025-03-04"), "/b.xml", "/c.xml")
    server = world.serve()
    world.is_stored(3)
    before = world.get("/a.xml")
    assert (before.status, before.body, before["Last-Modified"]) == (200, good, "Tue, 04 Mar 2025 00:00:00 GMT")
    # A page for people, half a sitemap, and nothing at all: each is reported, and none replaces the copy.
    broken = {"/a.xml": answer(200, b"<!doctype html><html></html>"), "/b.xml": answer(200, good[:-30]), "/c.xml": world.origin.cut(b"")}
    world.origin.answers.update(broken)
    for path in broken:
        assert world.poll(path) != "good"
        reply = world.get(path)
        assert (reply.status, reply.body) == (200, good), path
    assert world.get("/a.xml")["Last-Modified"] == before["Last-Modified"] and world.get("/a.xml")["ETag"] == before["ETag"]
    # It outlives the server, too, which asks nobody.
    server.stop()
    world.origin.answers.clear()
    asked = len(world.origin.asked)
    server.start()
    after = world.get("/a.xml")
    assert (after.status, after.body, after["ETag"], after["Last-Modified"]) == (200, good, before["ETag"], before["Last-Modified"])
    assert world.get("/a.xml", {"If-None-Match": before["ETag"]}).status == 304
    assert all("/a.xml" not in head.split("\r\n")[0] for head in world.origin.asked[asked:])


def test_a_change_of_the_content_moves_copy_and_date_together(world):
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/one"))
    world.list(("/a.xml", "2025-03-04"))
    world.serve()
    world.is_stored(1)
    before = world.get("/a.xml")
    changed = urlset(world.base + "/two")
    world.origin.answers["/a.xml"] = answer(200, changed)
    assert world.poll("/a.xml") == "good"
    after = eventually(lambda: (reply := world.get("/a.xml")).body == changed and reply, "the new content")
    assert after["ETag"] != before["ETag"]
    lastmod = eventually(lambda: (text := world.index().split("<lastmod>")[1].split("<")[0]) != "2025-03-04" and text, "the new date")
    assert parsedate_to_datetime(after["Last-Modified"]) >= parsedate_to_datetime(before["Last-Modified"])
    assert lastmod.startswith(parsedate_to_datetime(after["Last-Modified"]).strftime("%Y-%m-%dT%H:%M:%S")), (lastmod, after["Last-Modified"])


def test_what_no_list_names_any_more_is_not_served(world):
    for path in ("/a.xml", "/b.xml", "/c.xml", "/d.xml", "/e.xml"):
        world.origin.answers[path] = answer(200, urlset(world.base + path))
    world.list("/a.xml", "/b.xml", "/c.xml", "/d.xml", "/e.xml")
    world.serve()
    world.is_stored(5)
    assert world.get("/b.xml").status == 200
    world.list("/a.xml", "/c.xml", "/d.xml", "/e.xml")
    assert world.scan().status == 200
    eventually(lambda: world.get("/b.xml").status == 404, "it left with the index")
    assert "/b.xml" not in world.index() and world.get("/a.xml").status == 200
    # Nor is what the list names of a source that serves no more.
    settings = Path(world.server.args[world.server.args.index("--config") + 1])
    settings.write_text(settings.read_text().replace("serve = yes", "serve = no"))
    world.server.process.send_signal(1)
    eventually(lambda: world.get("/a.xml").status == 404, "its source serves no more")
    assert "/a.xml" in world.index()
    world.is_stored(0)
    settings.write_text(settings.read_text().replace("serve = no", "serve = yes"))
    world.server.process.send_signal(1)
    world.is_stored(4)
    assert world.get("/a.xml").status == 200


def test_a_sitemap_that_is_gone_for_good_leaves_index_and_store_together(world):
    world.settings["drop_after"] = "1s"
    paths = [f"/{name}.xml" for name in "abcde"]  # one of two would be held by the shrink guard
    for path in paths:
        world.origin.answers[path] = answer(200, urlset(world.base + path))
    world.list(*paths)
    world.serve()
    world.is_stored(5)
    world.origin.answers["/b.xml"] = answer(404)
    assert world.poll("/b.xml") == "gone"
    assert world.get("/b.xml").status == 200, "once is not proof"
    eventually(lambda: world.poll("/b.xml") == "gone" and "/b.xml" not in world.index(), "it is dropped", 60)
    eventually(lambda: world.get("/b.xml").status == 404, "it is looked at once a second")
    assert world.get("/a.xml").status == 200


@pytest.mark.parametrize("by", ["guard", "freeze"])
def test_what_an_index_lists_is_served_while_its_removal_is_held(world, by):
    """Sitemaps that are gone for good: crawlers get the last version, as long as the shrink guard or a freeze keeps them listed."""
    world.settings["drop_after"] = "1s"
    paths = ["/a.xml", "/b.xml"]
    for path in paths:
        world.origin.answers[path] = answer(200, urlset(world.base + path))
    world.list(*paths)
    server = world.serve()
    world.is_stored(2)
    if by == "freeze":
        assert server.cli("freeze", world.base).code == 0
    for path in paths:
        world.origin.answers[path] = answer(404)
    dropped = lambda path: "dropped" in server.api("POST", f"/v1/checks?loc={q(world.base + path)}").json()["check"]["remarks"]
    eventually(lambda: all([dropped(path) for path in paths]), "all are dropped", 60)
    leftover = world.stored()[0].with_name("0" * 32)
    leftover.write_bytes(b"no copy")
    server.reload(world.config(poll="20m"))
    eventually(lambda: not leftover.exists(), "the store has looked at its copies", 60)
    for path in paths:
        assert path in world.index() and world.get(path).status == 200, path
    if by == "freeze":
        assert server.cli("thaw", world.base).code == 0
    eventually(lambda: "source-held" in world.reasons(), "the shrink guard holds the removal", 60)
    assert server.api("POST", "/v1/sources/shop/scan?max_removed=2").status == 200
    eventually(lambda: [world.get(path).status for path in paths] == [404, 404], "they are listed no more")
    server.reload(world.config())
    world.is_stored(0)


@pytest.mark.faster(1)  # who waits for a copy has all the time that is given
def test_a_copy_that_is_missing_is_fetched_once_for_all_who_wait(world):
    body = urlset(world.base + "/page")
    world.origin.answers["/a.xml"] = answer(200, body)
    world.list("/a.xml")
    server = world.serve()
    world.is_stored(1)
    server.stop()
    shutil.rmtree(server.database + ".children")
    held, waiting = threading.Event(), threading.Event()

    def slow(connection, _):
        waiting.set()
        held.wait(60)
        connection.sendall(answer(200, body))

    world.origin.answers["/a.xml"] = slow
    asked = world.asked("/a.xml")
    server.start()
    with ThreadPoolExecutor(6) as pool:
        replies = [pool.submit(world.get, "/a.xml") for _ in range(6)]
        assert waiting.wait(60)
        assert server.register(world.base + "/other.xml").status == 201, "nobody else waits"
        held.set()
        assert [reply.result().status for reply in replies] == [200] * 6
        assert {reply.result().body for reply in replies} == {body}
    assert world.asked("/a.xml") == asked + 1


def test_a_copy_that_cannot_be_fetched_is_503_and_not_404(world):
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/page"))
    world.list("/a.xml")
    server = world.serve()
    world.is_stored(1)
    server.stop()
    shutil.rmtree(server.database + ".children")
    world.origin.answers["/a.xml"] = answer(500)
    server.start()
    reply = world.get("/a.xml")
    assert reply.status == 503 and reply["Retry-After"]
    assert eventually(world.reasons, "it is reported") == {"source-checks"}
    world.origin.answers["/a.xml"] = world.origin.silent()
    reply = world.get("/a.xml")
    assert reply.status == 503 and reply["Retry-After"], "an origin that never answers keeps nobody for long"
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/page"))
    eventually(lambda: world.get("/a.xml").status == 200, "it is there again", 180)
    eventually(lambda: not world.reasons(), "which is known")


@pytest.mark.faster(2)  # likewise
def test_the_store_keeps_to_its_bound(world):
    body = urlset(*(f"{world.base}/page/{i}" for i in range(500)))
    paths = [f"/{i}.xml" for i in range(20)]
    for path in paths:
        world.origin.answers[path] = answer(200, body)
    world.list(*paths)
    world.fetch = f"store_bytes = {len(body) * 10}\n"
    server = world.serve()
    eventually(lambda: server.wait_for_log("child-store-full"), "it is reported")
    eventually(lambda: 0 < world.bytes_stored() <= len(body) * 10, "it keeps to it")
    assert "child-store-full" in world.reasons()
    assert {world.get(path).status for path in paths} == {200}, "what has no copy is fetched while the origin is there"
    eventually(lambda: world.bytes_stored() <= len(body) * 10, "and it still does")


def test_a_full_store_does_not_fetch_again_what_it_removed(world):
    body = urlset(*(f"{world.base}/page/{i}" for i in range(500)))
    paths = [f"/{i}.xml" for i in range(20)]
    for path in paths:
        world.origin.answers[path] = answer(200, body)
    world.list(*paths)
    world.fetch = f"store_bytes = {len(body) * 10}\n"
    server = world.serve()
    eventually(lambda: server.wait_for_log("child-store-full"), "it is full")
    for path in paths:
        eventually(lambda path=path: world.poll(path) == "good", "each was read")
    eventually(lambda: 0 < len(world.stored()) == server.metrics()["sitemapd_child_copies"] < 10, "it made room")
    asked, stored = [world.asked(path) for path in paths], len(world.stored())
    world.stored()[0].unlink()
    server.reload(world.config())
    eventually(lambda: server.metrics()["sitemapd_child_copies"] == stored - 1, "it looked again")
    assert [world.asked(path) for path in paths] == asked and "child-store-full" in world.reasons()
    world.fetch = ""
    server.reload(world.config())
    world.is_stored(20)
    eventually(lambda: "child-store-full" not in world.reasons(), "there is room for all")


def test_copies_that_cannot_be_fetched_again_take_no_other_sites_room(start):
    """A tenant fills the store, and its origin has nothing any more: the tenant's copies are removed, not those of others."""
    with Origin() as large, Origin("127.0.0.3") as small:
        bases = [f"http://{o.address}:{o.port}" for o in (large, small)]
        body = urlset(*(f"{bases[0]}/page/{i}" for i in range(500)))
        paths = [f"/{i}.xml" for i in range(12)]
        for path in paths:
            large.answers[path] = answer(200, body)
        small.answers["/a.xml"] = answer(200, urlset(bases[1] + "/page"))
        for origin, base, members in ((large, bases[0], paths), (small, bases[1], ["/a.xml"])):
            origin.answers["/list.xml"] = answer(200, index(*(base + path for path in members)))
        config = lambda fetch="": FETCH + "allow_address = 127.0.0.3\n" + fetch + "".join(
            f'[site "s{i}"]\norigin = {base}\n[source "m{i}"]\nupstream = {base}/list.xml\nserve = yes\nindex = {base}/sitemap_index.xml\n' for i, base in enumerate(bases))
        server = start(sites=(), config=config())
        files = lambda: [file for file in Path(server.database + ".children").glob("*/*") if len(file.name) == 32]
        poll = lambda loc: server.api("POST", f"/v1/checks?loc={quote(loc, safe='')}").json()["check"]["state"]
        eventually(lambda: len(files()) == 13, "all have copies")
        eventually(lambda: poll(bases[1] + "/a.xml") == "good", "the catalogue knows that it was read")
        for path in paths:
            large.answers[path] = answer(404)
            eventually(lambda path=path: poll(bases[0] + path) == "gone", "it cannot be fetched again")
        small.answers["/a.xml"] = answer(503, Retry_After=3600)
        server.reload(config(f"store_bytes = {len(body) * 6}\n"))
        eventually(lambda: server.wait_for_log("child-store-full"), "the store is full")
        eventually(lambda: server.metrics()["sitemapd_child_bytes"] <= len(body) * 6, "it keeps to its bound")
        assert ask(server.public, "GET", "/a.xml", host=bases[1].removeprefix("http://")).status == 200, "the other site's copy is there"
        assert 3 < len(files()) < 7


def test_copies_that_cannot_be_fetched_are_missing(world):
    paths = [f"/{i}.xml" for i in range(8)]
    for path in paths:
        world.origin.answers[path] = answer(200, urlset(world.base + path))
    world.list(*paths)
    server = world.serve()
    world.is_stored(8)
    for path in paths:
        eventually(lambda path=path: world.poll(path) == "good", "the catalogue knows that it was read: only such are missing")
        world.origin.answers[path] = answer(503, Retry_After=3600)
    for file in world.stored():
        file.unlink()
    server.reload(world.config())
    # The first may count as failed; its host then rests.
    eventually(lambda: server.metrics()["sitemapd_children_missing"] >= 7, "they are counted")


def test_it_is_known_which_crawler_has_the_newest_copy(world):
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/page"))
    world.origin.answers["/b.xml"] = answer(200, urlset(world.base + "/other"))
    world.list("/a.xml", "/b.xml")
    server = world.serve()
    world.is_stored(2)
    eventually(lambda: world.poll("/a.xml") == world.poll("/b.xml") == "good", "both were read")
    crawl = lambda: world.get("/a.xml", headers={"User-Agent": "Googlebot/2.1"})

    def row(path="/a.xml"):
        reply = server.api("GET", "/v1/sitemaps?checks=1&loc=" + q(world.base + path))
        return reply.json()["sitemaps"][0].get("crawlers", [])

    def current():
        crawl()
        return row() and row()[0]["current"]

    world.get("/a.xml", headers={"User-Agent": "curl/8"})
    assert row() == [], "who is nobody is not followed"
    eventually(current, "what it fetched may be a second old")
    assert [(one["name"], one["status"]) for one in row()] == [("googlebot", 200)] and row("/b.xml") == []
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/page", world.base + "/new"))
    world.poll("/a.xml")
    eventually(lambda: row()[0]["current"] is False, "it lacks what is new")
    server.stop()
    server.start()
    assert row()[0]["current"] is False, "that is kept"
    eventually(current, "it has it")
    world.origin.answers["/a.xml"] = answer(404)
    eventually(lambda: world.poll("/a.xml") != "good", "it is gone there")
    assert row()[0]["current"] is None


def test_an_alias_that_crawlers_cannot_use_is_reported(world):
    """A single sitemap is mirrored: the index lists it, at the path that the alias takes."""
    world.origin.answers["/list.xml"] = answer(200, urlset(world.base + "/page"))
    server = world.serve()
    world.is_stored(1)
    assert world.get("/list.xml").status == 200 and world.reasons() == set()
    details = lambda: {r["code"]: r["detail"] for r in server.api("GET", "/readyz").json()["reasons"]}
    found = lambda *codes: eventually(lambda: set(details()) == set(codes), f"found: {codes}")
    alias = lambda *pairs: world.config().replace("[source", "".join(f"alias = {a} -> {b}\n" for a, b in pairs) + "[source")
    server.reload(alias(("/list.xml", "/sitemap_index.xml")))
    found("alias-hides-sitemap")
    assert details() == {"alias-hides-sitemap": f"{world.base}/list.xml is a listed sitemap, but an alias redirects it to {world.base}/sitemap_index.xml; crawlers cannot read it: remove the alias from [site]"}
    server.restart()
    found("alias-hides-sitemap")
    server.reload(alias(("/old.xml", "/sitemap_index.xml"), ("/a.xml", "/old.xml"), ("/b.xml", "/list.xml"), ("/c.xml", "/new.xml"), ("/d.xml", "/newer.xml")))
    found("alias-leads-nowhere")
    assert details() == {"alias-leads-nowhere": f"the alias {world.base}/c.xml redirects to {world.base}/new.xml, which does not exist here (and 1 more); crawlers get 404: correct the alias in [site], or add the index"}
    server.reload(alias(*((f"/old-{i}.xml", "/newer.xml") for i in range(250))))
    eventually(lambda: "(and 249 more)" in details().get("alias-leads-nowhere", ""), "all are looked at, some at a time")
    server.reload(alias(("/c.xml", "/new.xml"), ("/a.xml", "/sitemap_index.xml")).replace("index = /sitemap", "index = /new.xml\nindex = /sitemap"))
    found()  # an index without entries exists, too
    assert server.register(world.base + "/a.xml").status == 201
    found("alias-hides-sitemap")
    assert server.api("DELETE", f"/v1/sitemaps?loc={quote(world.base + '/a.xml', safe='')}").status == 204
    found()


def test_a_store_that_cannot_be_written_costs_only_the_copies(world):
    world.origin.answers["/a.xml"] = answer(200, urlset(world.base + "/page", lastmod="2025-02-03"))
    world.list("/a.xml")
    server = world.serve()
    world.is_stored(1)
    server.stop()
    folder = Path(server.database + ".children")
    shutil.rmtree(folder)
    folder.write_text("in the way")
    server.start()
    assert world.get("/a.xml").status == 503
    eventually(lambda: server.wait_for_log("child-store-failed"), "it is reported")
    assert "child-store-failed" in world.reasons() and server.metrics()["sitemapd_child_store_failing"] == 1
    assert world.poll("/a.xml") == "good" and "/a.xml" in world.index()
    folder.unlink()
    eventually(lambda: world.get("/a.xml").status == 200, "it is made once it can be")
    assert server.wait_for_log("child-store-recovered") and world.reasons() == set() and server.metrics()["sitemapd_child_store_failing"] == 0


def test_a_change_that_cannot_be_copied_waits_until_it_can(world):
    """The index never dates a version that is not served."""
    old, new = (urlset(f"{world.base}/page-{date}", lastmod=date) for date in ("2025-02-03", "2025-03-04"))
    world.origin.answers["/a.xml"] = answer(200, old)
    world.list("/a.xml")
    server = world.serve()
    eventually(lambda: "<lastmod>2025-02-03</lastmod>" in world.index(), "it is read")
    world.is_stored(1)
    in_the_way = Path(f"{world.stored()[0]}.new")
    in_the_way.mkdir()
    world.origin.answers["/a.xml"] = answer(200, new)
    reply = server.api("POST", f"/v1/checks?loc={quote(world.base + '/a.xml', safe='')}")
    assert reply.status == 503 and "it has changed, but its copy cannot be written" in reply.json()["detail"], reply
    assert world.reasons() == {"child-store-failed"}
    assert "<lastmod>2025-02-03</lastmod>" in world.index() and world.get("/a.xml").body == old
    in_the_way.rmdir()
    assert world.poll("/a.xml") == "good"
    eventually(lambda: "<lastmod>2025-03-04</lastmod>" in world.index(), "it is dated")
    assert world.get("/a.xml").body == new and world.reasons() == set()


def test_the_folder_of_copies_may_be_deleted_at_any_time(world):
    body = urlset(world.base + "/page")
    world.origin.answers["/a.xml"] = answer(200, body)
    world.list("/a.xml")
    server = world.serve()
    world.is_stored(1)
    shutil.rmtree(server.database + ".children")
    assert world.poll("/a.xml") == "good"
    world.is_stored(1)
    assert world.get("/a.xml").body == body and world.reasons() == set()
    shutil.rmtree(server.database + ".children")
    server.restart()
    assert eventually(lambda: world.get("/a.xml").body == body, "it is fetched again")


def test_a_source_of_the_api_serves_too(world):
    body = urlset(world.base + "/page")
    world.origin.answers["/a.xml"] = answer(200, body)
    world.list("/a.xml")
    config = f'{FETCH}[site "m"]\norigin = {world.base}\nindex = /sitemap_index.xml\n'
    world.server = world.start(sites=(), config=config)
    made = world.server.api("POST", "/v1/sources", {"name": "shop", "upstream": world.base + "/list.xml", "serve": True})
    assert made.status == 201 and made.json()["serve"] is True, made
    eventually(lambda: world.get("/a.xml").body == body, "it is served")
    assert world.server.api("PATCH", "/v1/sources/shop", {"serve": False}).status == 200
    eventually(lambda: world.get("/a.xml").status == 404, "it no longer exists")
    assert world.server.api("DELETE", "/v1/sources/shop").status in (200, 204)


def test_a_sitemap_without_an_index_is_listed_and_served(world):
    """Magento and small shops: /sitemap.xml is a urlset. An index of its own lists it, and dates it."""
    body = urlset(world.base + "/page", lastmod="2025-02-03")
    world.origin.answers["/list.xml"] = answer(200, body, ETag='"1"')
    server = world.serve()
    world.is_stored(1)
    reply = world.get("/list.xml")
    assert (reply.status, reply.body) == (200, body)
    eventually(lambda: f"<loc>{world.base}/list.xml</loc><lastmod>2025-02-03</lastmod>" in world.index().replace("\n", ""), "it is dated by its pages")
    assert world.reasons() == set() and world.server.api("GET", "/v1/sources/shop").json()["members"] == 1
    changed = urlset(world.base + "/page", world.base + "/more", lastmod="2025-02-04")
    world.origin.answers["/list.xml"] = answer(200, changed, ETag='"2"')
    assert world.poll("/list.xml") == "good"
    eventually(lambda: world.get("/list.xml").body == changed and "2025-02-04" in world.index(), "both move")
    # Its program moves it: the new one takes the old one's place.
    world.origin.answers["/moved.xml"] = answer(200, changed)
    settings = Path(server.args[server.args.index("--config") + 1])
    whole = settings.read_text()
    for path, text in (("moved.xml", whole.replace("/list.xml", "/moved.xml")), ("list.xml", whole)):
        settings.write_text(text)
        server.restart()
        alone = f"<loc>{world.base}/{path}</loc><lastmod>2025-02-04</lastmod>"
        eventually(lambda alone=alone: alone in world.index().replace("\n", "") and world.index().count("<loc>") == 1 and world.reasons() == set(), "it alone is listed, and dated")
    assert world.get("/list.xml").body == changed
    eventually(lambda: world.get("/moved.xml").status == 404, "what it was moved from is served no longer")
    server.restart()  # a start soon looks for copies of what nothing lists
    world.is_stored(1)
    # It gets an index later: that is read as any other.
    world.origin.answers["/a.xml"] = answer(200, body)
    world.list("/a.xml", "/list.xml")
    assert world.scan().status == 200
    eventually(lambda: "/a.xml" in world.index() and world.index().count("<lastmod>") == 2, "the index is read, and what it lists is dated")
    # An index that is a urlset all of a sudden is broken: nothing changes.
    before = world.index()
    world.origin.answers["/list.xml"] = answer(200, body)
    world.scan()
    eventually(lambda: world.reasons() == {"source-failing"}, "it is reported")
    eventually(lambda: "urlset-not-index" in server.log(), "and logged")
    assert world.index() == before
    # Unless that is said to be intended, as the message says.
    needed = re.search(r"max_removed=([0-9]+)", world.server.api("GET", "/v1/sources/shop").json()["failure"]).group(1)
    assert world.server.api("POST", f"/v1/sources/shop/scan?max_removed={int(needed) - 1}").status != 200 and world.index() == before
    assert world.server.api("POST", f"/v1/sources/shop/scan?max_removed={needed}").status == 200
    eventually(lambda: world.index().count("<loc>") == 1 and f"{world.base}/list.xml" in world.index() and world.reasons() == set(), "it alone is listed")


def test_a_copy_of_one_site_is_never_anothers(start):
    """Each site has its own store: what one's origin sends is served at no other's address, whatever its path."""
    with Origin() as one, Origin("127.0.0.3") as two:
        bases = [f"http://{o.address}:{o.port}" for o in (one, two)]
        for origin, base in zip((one, two), bases):
            origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
            origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        config = FETCH + "allow_address = 127.0.0.3\n" + "".join(
            f'[site "s{i}"]\norigin = {base}\nindex = /sitemap_index.xml\n[source "m{i}"]\nupstream = {base}/list.xml\nserve = {"yes" if i == 0 else "no"}\n' for i, base in enumerate(bases))
        server = start(sites=(), config=config)
        get = lambda at, path: ask(server.public, "GET", path, host=bases[at].removeprefix("http://"))
        eventually(lambda: get(0, "/a.xml").status == 200, "one is served")
        assert get(0, "/a.xml").body == urlset(bases[0] + "/page")
        assert get(1, "/a.xml").status == 404, "the other one's source does not serve"
        for path in (f"/{bases[0]}/a.xml", "/../a.xml", "/%2e%2e/a.xml", "//a.xml"):
            assert get(1, path).status in (400, 404), path


def test_a_node_that_does_not_poll_serves_its_own_copies(cluster):
    with Origin() as shop:
        base, host = f"http://{shop.address}:{shop.port}", f"{shop.address}:{shop.port}"
        body, changed = urlset(base + "/one"), urlset(base + "/two")
        shop.answers["/a.xml"] = answer(200, body)
        shop.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        config = f'{FETCH}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n[source "shop"]\nupstream = {base}/list.xml\nserve = yes\n'
        a, b = [cluster.node(name, config=config) for name in "ab"]
        joined(b)
        get = lambda node: ask(node.public, "GET", "/a.xml", host=host)
        for node in (a, b):
            eventually(lambda: get(node).body == body, "both serve it")
        # Another content, which one of them polls: the other one's copy follows.
        shop.answers["/a.xml"] = answer(200, changed)
        assert a.api("POST", f"/v1/checks?loc={quote(base + '/a.xml', safe='')}").status == 200
        for node in (a, b):
            eventually(lambda: get(node).body == changed, "both serve the new one")
        shop.answers.clear()
        assert {get(node).body for node in (a, b)} == {changed}
