# SPDX-License-Identifier: LicenseRef-Undeclared
"""Directory sources from outside: folders of sitemap files that the real program reads, watches and serves."""

import base64
import email.utils
import gzip
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

import harness
from harness import (HOST, INDEX, ORIGIN, PUBLIC_CACHE, ask_raw, eventually, gunzip, locs, problem, q, request_bytes, seconds,
                     sitemapd)

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
OLD = 1700000000  # 2023-11-14T22:13:20Z: long settled
URLSET = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}">'
NOT_WATCHED = "watch = no\nsettle = 0s\n"  # scans are asked for
WATCHED = "settle = 200ms\n"
SITEMAPS = ["a.xml", "b.xml.gz", "deep/er/c.txt", "d.txt.gz"]


def urlset(*pages, comment="", count=1):
    """A sitemap of these pages; without any, of `count` pages."""
    pages = pages or [f"/page/{i}" for i in range(count)]
    urls = "".join(f"<url><loc>{ORIGIN}{page}</loc></url>\n" for page in pages)
    return f"{URLSET}{comment}\n{urls}</urlset>\n".encode()


EMPTY = f"{URLSET}</urlset>".encode()


def utc(stamp):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))


class Folder:
    """The files of a source; written beside and renamed, as they should be."""

    def __init__(self, path):
        self.path = str(path)
        os.makedirs(self.path, exist_ok=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def put(self, name, data=None, mtime=OLD):
        data = urlset(f"/{name}") if data is None else data
        if name.endswith(".gz") and data[:2] != b"\x1f\x8b":
            data = gzip.compress(data, mtime=0)
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        beside = self.at(name) + ".part"
        with open(beside, "wb") as file:
            file.write(data)
        if mtime is not None:
            os.utime(beside, (mtime, mtime))
        os.rename(beside, self.at(name))

    def fill(self, count, stem="many", mtime=OLD):
        for i in range(count):
            self.put(f"{stem}{i}.xml", mtime=mtime)

    def remove(self, *names):
        for name in names:
            os.unlink(self.at(name))


class World:
    def __init__(self, start, tmp_path):
        self.start_server = start
        self.tmp_path = tmp_path
        self.folder = Folder(tmp_path / "files")

    def configure(self, settings=NOT_WATCHED, name="files", url=f"{ORIGIN}/", directory=None):
        return f'[source "{name}"]\ndirectory = {directory or self.folder.path}\nurl = {url}\n{settings}'

    def start(self, settings=NOT_WATCHED, config="", wait=True, **options):
        self.server = self.start_server(config=config + self.configure(settings), **options)
        if wait:
            self.scanned()
        return self

    def scanned(self, name="files"):
        def over():
            source = self.source(name)  # remembers when it was scanned last over a restart
            return source["last_scan_at"] and not source["scanning"] and self.server.metrics()[f'sitemapd_source_scans_total{{source="{name}"}}'] >= 1

        eventually(over, "the first scan is over")

    def source(self, name="files"):
        found = {s["name"]: s for s in self.server.api("GET", "/v1/sources").json()["sources"]}
        return found[name]

    def problems(self):
        return {p["path"]: p["code"] for p in self.source()["problems"]}

    def scan(self, query="", name="files"):
        """Scans once another change of a file would have another ctime, so that the files are not read again for it."""
        stats = lambda: [os.stat(os.path.join(folder, file)) for folder, _, files in os.walk(self.folder.path) for file in files
                         if not os.path.islink(os.path.join(folder, file))]
        eventually(lambda: all(time.time() - stat.st_ctime > 0.05 for stat in stats()), "the times of the files are over")
        reply = self.server.api("POST", f"/v1/sources/{name}/scan{query}")
        assert reply.status == 200, reply
        return reply.json()

    def index(self):
        return self.server.get("/sitemap_index.xml")

    def entries(self, reply=None):
        """{path: lastmod} of the index."""
        reply = reply or self.index()
        if reply.status == 404:
            return {}
        assert reply.status == 200, reply
        pairs = re.findall(rb"<sitemap><loc>([^<]*)</loc>(?:<lastmod>([^<]*)</lastmod>)?</sitemap>", reply.body)
        assert len(pairs) == reply.body.count(b"<sitemap>") == len(dict(pairs))
        return {loc.decode()[len(ORIGIN) + 1:]: lastmod.decode() or None for loc, lastmod in pairs}

    def names(self):
        return set(self.entries())

    def becomes(self, names):
        """Waits until the index lists these, and the outcome of the scan that found them is reported."""
        eventually(lambda: self.names() == set(names), f"the index lists {sorted(names)[:9]}")
        self.rests()

    def rests(self):
        eventually(lambda: not any(s["scanning"] for s in self.server.api("GET", "/v1/sources").json()["sources"]), "no scan is under way")

    def metric(self, name):
        return self.server.metrics()[f'sitemapd_{name}{{source="files"}}']

    def revision(self):
        return self.server.metrics()["sitemapd_catalogue_revision"]

    def ready(self):
        reply = harness.ask(self.server.admin, "GET", "/readyz", host=self.server.admin)
        assert reply.status == 200, reply
        return {r["code"]: r["detail"] for r in reply.json()["reasons"]} if reply.json()["status"] == "degraded" else None

    def state(self):
        """What must not move where nothing is news."""
        page = self.index()
        return self.revision(), page["ETag"], page["Last-Modified"], page.body

    def wait_for_log(self, event, count=1):
        return self.server.wait_for_log(event, count)


@pytest.fixture
def world(start, tmp_path):
    return World(start, tmp_path)


# ---- how a source comes to be -------------------------------------------------------------------


def test_a_folder_on_the_command_line(world, start, tmp_path):
    for name in SITEMAPS:
        world.folder.put(name, urlset("/x") if "txt" not in name else f"{ORIGIN}/x\n".encode())
    world.server = start("--source", world.folder.path)
    world.becomes(SITEMAPS)
    source = world.source()
    assert source["directory"] == world.folder.path and source["url"] == ORIGIN + "/" and source["serve"] and source["index"] is None
    assert source["files"] == source["listed"] == 4 and source["problems"] == [] and source["watching"] == "inotify"
    assert world.ready() is None
    found = world.server.api("GET", "/v1/sitemaps?source=files").json()["sitemaps"]
    assert {e["loc"] for e in found} == {f"{ORIGIN}/{n}" for n in SITEMAPS}
    for name in SITEMAPS:
        with open(world.folder.at(name), "rb") as file:
            assert world.server.get("/" + name).body == file.read()


def test_a_folder_on_the_command_line_is_there(tmp_path):
    """For a folder that is missing, or a path of Windows, the server does not print "ready"."""
    (tmp_path / "file").write_text("")
    for folder, words in ((tmp_path / "none", "No such file"), (tmp_path / "file", "is not a folder"), ("C:\\maps", "not a Windows path")):
        for source in (folder, f"{folder}={ORIGIN}/maps/"):
            command = sitemapd("serve", "--source", source, "--site", ORIGIN, database=tmp_path / "c.db")
            assert command.code in (1, 2) and words in command.err and "ready" not in command.out, command


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_a_folder_with_its_url(world, start, how):
    world.folder.put("a.xml")
    given = f"{world.folder.path}={ORIGIN}/sub/dir"
    world.server = start("--source", given) if how == "flag" else start(env={"SITEMAPD_SOURCE": given})
    world.becomes(["sub/dir/a.xml"])
    assert world.server.get("/sub/dir/a.xml").status == 200 and world.server.get("/a.xml").status == 404


def test_a_folder_needs_its_url_where_there_are_several_sites(start, world):
    server = start("--source", world.folder.path, sites=(ORIGIN, "https://shop.example.org"), ready=False)
    assert server.process.wait(seconds(60)) == 1
    assert "several sites" in server.log()
    server.kill()


def test_a_folder_keeps_its_url_when_sites_change(world, start):
    """Sources that are added later start, too."""
    world.folder.put("a.xml")
    world.server = start("--source", world.folder.path)
    world.becomes(["a.xml"])
    world.server.cli("site", "add", "https://shop.example.org")
    world.server.cli("source", "add", "later", "--upstream", f"{ORIGIN}/later.xml")
    eventually(lambda: world.server.api("GET", "/v1/sources/later").status == 200, "the later source starts")
    assert world.server.wait_for_log("source-url-missing")
    world.folder.put("b.xml")
    world.becomes(["a.xml", "b.xml"])
    world.server.cli("site", "remove", ORIGIN, "--max-removed", "2")
    world.server.cli("source", "add", "last", "--upstream", "https://shop.example.org/last.xml")
    eventually(lambda: world.server.api("GET", "/v1/sources/last").status == 200, "the last source starts")
    assert world.source()["url"] == ORIGIN + "/", "not the URL of the site that is left"
    assert "sources-incomplete" not in world.server.log()


def test_sections(world, start):
    shop = Folder(world.tmp_path / "shop")
    for name in ("yes.xml", "no.xml", "yes.txt", "drafts/x.xml", "deep/drafts/x.xml"):
        world.folder.put(name, urlset("/x"))
        shop.put(name, urlset("/x"))
    config = f"[site \"main\"]\norigin = {ORIGIN}\nindex = /shop/index.xml\nindex = /sitemap_index.xml\n"
    config += world.configure("pattern = yes.*\nexclude = drafts/*\nwatch = no\n", name="one", url=f"{ORIGIN}/one/")
    config += world.configure("serve = yes\npattern = *.xml\nindex = /shop/index.xml\nrescan = 1s\nwatch = no\nsettle = 0s\n", "two", f"{ORIGIN}/shop/", shop.path)
    world.server = start(config=config, sites=())
    world.scanned("one"), world.scanned("two")
    world.becomes(["one/yes.xml", "one/yes.txt"])
    page = world.server.get("/shop/index.xml")
    assert set(locs(page.body)) == {f"{ORIGIN}/shop/{n}" for n in ("yes.xml", "no.xml", "drafts/x.xml", "deep/drafts/x.xml")}
    assert world.server.get("/one/yes.xml").status == 404, "not served: serve = no"
    assert world.server.get("/shop/yes.xml").status == 200 and world.server.get("/shop/yes.txt").status == 404
    assert [world.source(n)["watching"] for n in ("one", "two")] == ["rescans-only"] * 2
    shop.put("later.xml")
    eventually(lambda: b"later.xml" in world.server.get("/shop/index.xml").body, "a rescan finds it")


def test_a_token_of_another_site_sees_no_source(world):
    world.folder.put("a.xml")
    world.start(sites=(ORIGIN, "https://shop.example.org"))
    token = world.server.cli("token", "add", "shop", "--site", "https://shop.example.org").out.strip()
    eventually(lambda: world.server.api("GET", "/v1/sources", token=token).status == 200, "the token is known")
    assert world.server.api("GET", "/v1/sources", token=token).json()["sources"] == []
    problem(world.server.api("POST", "/v1/sources/files/scan", token=token), 403, "token-of-another-site")


# ---- sitemapd scan ------------------------------------------------------------------------------


def test_scan_reports_what_and_why(tmp_path):
    folder = Folder(tmp_path / "f")
    database = tmp_path / "c.db"
    run = lambda *more: sitemapd("scan", folder.path, "--url", ORIGIN + "/", *more, database=database)
    exported = lambda: sitemapd("export", database=database).out
    assert sitemapd("site", "add", ORIGIN, database=database).code == 0
    folder.fill(6)
    folder.put("empty.xml", EMPTY)
    folder.put("broken.xml", b'<urlset xmlns="%s">\n  <url></loc>' % NAMESPACE.encode())
    folder.put("index.html", b"<html>")
    dry = run("--dry-run")
    assert dry.code == 0 and exported() == "", dry
    lines = dry.out.splitlines()
    assert f"new       many0.xml  {utc(OLD)}  1 URL" in lines, dry
    assert "empty     empty.xml" in lines
    assert any(re.match(r"problem   broken\.xml:2:\d+: malformed-xml: .", line) for line in lines), dry
    assert lines[-1] == "would be: 6 added, 0 updated, 0 removed, 1 file with a problem"
    real = run()
    assert real.code == 0 and real.out.splitlines()[-1] == lines[-1].replace("would be: ", "")
    assert len(exported().splitlines()) == 6
    known = next(line for line in lines if line.startswith("problem"))
    for more, prefix in ([], ""), (["--dry-run"], "would be: "):  # a problem is there until it is mended
        again = run(*more)
        assert again.code == 0 and again.out == f"{known}\n{prefix}0 added, 0 updated, 0 removed, 1 file with a problem\n", again

    folder.put("many0.xml", urlset("/changed"), mtime=OLD + 100)
    folder.put("broken.xml")
    folder.remove("many1.xml")
    before = exported()
    expected = [f"changed   many0.xml  {utc(OLD + 100)}  1 URL", f"recovered broken.xml  {utc(OLD)}  1 URL", "gone      many1.xml"]
    for more, prefix in (["--dry-run"], "would be: "), ([], ""):
        done = run(*more)
        assert done.code == 0 and set(expected) < set(done.out.splitlines()), done
        assert done.out.splitlines()[-1] == prefix + "1 added, 1 updated, 1 removed, 0 files with a problem"
        assert (exported() == before) == (prefix != "")

    folder.remove("many2.xml", "many3.xml", "many4.xml")
    held = run()
    assert held.code == 1 and "--max-removed 3" in held.err and len(exported().splitlines()) == 6, held
    assert run("--max-removed", "2").code == 1
    assert run("--max-removed", "3").code == 0 and len(exported().splitlines()) == 3


def test_scan_of_a_configured_source_beside_a_server(world):
    world.folder.put("a.xml")
    world.start()
    world.folder.put("b.xml")
    conf = ["--config", str(world.tmp_path / "sitemapd.conf")]
    done = world.server.cli("scan", "files", *conf)
    assert done.code == 0 and "1 added" in done.out, done
    world.becomes(["a.xml", "b.xml"])
    assert world.server.cli("scan", "files", "--url", ORIGIN + "/", *conf).code == 2
    assert world.server.cli("scan", "none", *conf).code == 2
    assert world.server.cli("scan", str(world.tmp_path / "none"), "--url", ORIGIN + "/").code == 1
    assert world.server.cli("scan", world.folder.path, "--url", "https://other.example.org/").code == 1


def test_a_scan_beside_a_server_ends_what_the_guard_held(world):
    world.folder.fill(20)
    world.start("watch = no\nrescan = 1h\n")
    conf = ["--config", str(world.tmp_path / "sitemapd.conf")]
    for i in range(10):
        world.folder.remove(f"many{i}.xml")
    assert world.scan()["held_removals"] == 10 and "source-held" in world.ready()
    assert world.wait_for_log("source-removals-held")[-1].endswith("entries whose URLs no file of the folder has are kept by the shrink guard; scan with max_removed to remove them")
    done = world.server.cli("scan", "files", "--max-removed", "10", *conf)
    assert done.code == 0 and "10 removed" in done.out, done
    eventually(lambda: world.ready() is None and world.metric("source_held_removals") == 0, "the server knows", seconds(30))


# ---- what is not a sitemap -------------------------------------------------------------------------

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
WEB_ROOT = {
    "robots.txt": b"User-agent: *\nDisallow: /private/\nSitemap: https://www.example.com/sitemap.xml\n",
    "humans.txt": b"/* TEAM */\nChef: Juanjo\n",
    "ads.txt": b"google.com, pub-0000000000000000, DIRECT, f08c47fec0942fa0\n",
    "llms.txt": b"# Example\n\n> A site.\n",
    "feed.xml": b'<?xml version="1.0"?><rss version="2.0"><channel><title>x</title></channel></rss>',
    "atom.xml": b'<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title></feed>',
    "browserconfig.xml": b'<?xml version="1.0"?><browserconfig><msapplication/></browserconfig>',
    "crossdomain.xml": b'<?xml version="1.0"?><!DOCTYPE cross-domain-policy SYSTEM "http://x/y.dtd"><cross-domain-policy/>',
    "index.html": b"<!DOCTYPE html><html><body>x</body></html>",
    "error.xml": b"<!DOCTYPE html>\n<html><body>404</body></html>",
    "logo.png": PNG,
    "logo.xml": PNG,
    "style.css": b"a{}",
    "old/sitemap_index.xml": f'<?xml version="1.0"?><sitemapindex xmlns="{NAMESPACE}"><sitemap><loc>{ORIGIN}/a.xml</loc></sitemap></sitemapindex>'.encode(),
    ".well-known/security.txt": b"Contact: mailto:x@example.com\n",
    ".git/config.xml": b"<broken",
    ".hidden.xml": b"<broken",
    "download.xml.part": b"<urlset",
}


def test_a_web_root_is_ignored_without_a_word(world):
    for name, data in WEB_ROOT.items():
        world.folder.put(name, data)
    world.folder.put("a.xml")
    world.start(WATCHED)
    world.becomes(["a.xml"])
    source = world.source()
    assert source["problems"] == [] and source["quarantined"] == 0 and source["listed"] == 1
    assert world.ready() is None
    assert not world.wait_for_log("source-file-problem", 0)
    assert not re.search(r"robots|feed|logo|index\.html", "\n".join(world.wait_for_log("source-", 0)))


def test_a_file_named_xml_that_is_not_xml_is_reported(world):
    """An export that went wrong is a problem of its file, and not a file that nobody missed."""
    good = GOOD.decode()
    world.folder.put("wide.xml", good.encode("utf-32"))
    world.folder.put("big.xml", good.encode("utf-32-be"))
    world.folder.put("host.xml", good.encode("cp037"))
    world.folder.put("rows.xml", b"loc,lastmod\n" + ORIGIN.encode() + b"/a,2026-01-01\n")
    world.folder.put("rows.XML.gz", gzip.compress(b"loc,lastmod\n"))
    world.folder.put("rows.txt", b"loc,lastmod\n")
    world.folder.put("a.xml")
    world.start(NOT_WATCHED + "pattern = *\n")
    world.becomes(["a.xml"])
    result = {p["path"]: (p["code"], p["listed"]) for p in world.source()["problems"]}
    assert result == {"wide.xml": ("not-utf8", False), "big.xml": ("not-utf8", False), "host.xml": ("not-utf8", False),
                    "rows.xml": ("not-a-sitemap", False), "rows.XML.gz": ("not-a-sitemap", False)}, result
    world.folder.put("rows.xml", GOOD, OLD + 100)
    world.scan()
    assert world.names() == {"a.xml", "rows.xml"} and "rows.xml" not in world.problems()


def test_a_hole_is_not_read_to_its_end(world):
    """A good member and a hole of 1 TB, which takes no disk: reported, and the source goes on."""
    world.folder.put("hole.xml.gz", gzip.compress(GOOD))
    with open(world.folder.at("hole.xml.gz"), "r+b") as file:
        file.truncate(1 << 40)
    world.folder.put("a.xml")
    world.start(NOT_WATCHED)
    world.becomes(["a.xml"])
    assert world.problems() == {"hole.xml.gz": "malformed-gzip"}


def test_a_name_that_reverses_its_text_is_shown_by_its_numbers(world, tmp_path):
    """U+202E makes "gnp.xml" of what is named otherwise: no terminal and no log gets it as it is."""
    world.folder.put("a\u202efdp.xml", b"<urlset")
    server = world.start(NOT_WATCHED).server
    eventually(lambda: world.problems(), "it is refused")
    raw = server.api("GET", "/v1/sources").body.decode()
    assert "\u202e" not in raw and "a\\u202efdp.xml" in raw
    assert list(world.problems()) == ["a\u202efdp.xml"]  # JSON loses nothing
    for words in (["source", "show", "files"], ["source", "list"]):
        command = server.cli(*words)
        assert "\u202e" not in command.out + command.err, command
    assert "\u202e" not in server.log()


def test_an_old_static_index_where_ours_is_served(world):
    """The file is in the web root under the very path of our index: it is ignored, ours is served."""
    world.folder.put("sitemap_index.xml", WEB_ROOT["old/sitemap_index.xml"])
    world.folder.put("robots.txt", WEB_ROOT["robots.txt"])
    world.folder.put("b.xml")
    world.start(NOT_WATCHED + "serve = yes\n")
    assert world.names() == {"b.xml"} and world.problems() == {} and world.ready() is None
    assert b"Sitemap: " + INDEX.encode() in world.server.get("/robots.txt").body


def test_an_empty_sitemap_is_left_out(world):
    world.folder.put("empty.xml", EMPTY)
    world.folder.fill(4)
    world.start()
    assert "empty.xml" not in world.names() and len(world.names()) == 4
    assert world.ready() is None and world.source()["problems"] == []
    world.folder.put("empty.xml", urlset("/now"), OLD + 5)
    assert world.scan()["created"] == 1 and world.entries()["empty.xml"] == utc(OLD + 5)
    world.folder.put("empty.xml", EMPTY, OLD + 6)
    assert world.scan()["removed"] == 1 and "empty.xml" not in world.names()


# ---- quarantine ---------------------------------------------------------------------------------

GOOD = urlset("/a", "/b")
BROKEN = {
    "malformed-xml": URLSET.encode() + b"<url><loc>x</url></urlset>",
    "truncated": GOOD[:-20],
    "doctype": GOOD.replace(b"<urlset", b"<!DOCTYPE urlset><urlset", 1),
    "too-many-urls": urlset(count=50001),
    "file-too-large": URLSET.encode() + b"<url><loc>%s/x</loc></url>\n" % ORIGIN.encode() + b" " * 52428800 + b"</urlset>",
    "malformed-gzip": gzip.compress(GOOD)[:-8] + b"x" * 8,
    "empty-file": b"",
    "not-utf8": GOOD.replace(b"/a", b"/\xff"),
    "no-usable-url": f"{URLSET}\n<url><loc>/a</loc></url>\n<url/></urlset>".encode(),
    "nested-index": WEB_ROOT["old/sitemap_index.xml"],
    "not-a-sitemap": WEB_ROOT["error.xml"],
}


@pytest.mark.parametrize("code", sorted(BROKEN))
def test_a_refused_file_keeps_its_last_good_entry(world, code):
    world.folder.put("a.xml", GOOD)
    world.folder.put("b.xml")
    world.start()
    world.scan()  # the first one may still be under way
    before, state = world.entries(), world.state()
    world.folder.put("a.xml", BROKEN[code], OLD + 100)
    world.scan()
    problems = world.source()["problems"]
    assert [(p["path"], p["listed"]) for p in problems] == [("a.xml", True)] and problems[0]["detail"], problems
    assert problems[0]["code"] == code, problems
    if code in ("malformed-xml", "doctype"):
        assert problems[0]["line"] == 2 and problems[0]["column"] > 0, problems
        assert "line" not in problems[0]["detail"], problems  # the place is beside it
    assert world.entries() == before and world.state()[1:] == state[1:]
    rows = {row["loc"].rpartition("/")[2]: row for row in world.server.api("GET", "/v1/sitemaps?checks=1").json()["sitemaps"]}
    found = rows["a.xml"]["check"]
    assert (found["state"], found["code"], found["detail"]) == (code if code == "not-a-sitemap" else "broken", code, problems[0]["detail"]), found
    assert rows["b.xml"]["check"]["state"] == "good" and world.server.api("GET", f"/v1/sitemaps/{rows['a.xml']['id']}").json()["check"] == found
    assert world.metric("source_problems") == 1 and world.metric("source_listed") == 1
    assert "GET /v1/sources" in world.ready()["source-problems"]
    result = world.wait_for_log("source-file-problem")
    assert len(result) == 1 and "a.xml" in result[0] and code in result[0] and "last good entry stays" in result[0]
    world.scan()
    assert len(world.wait_for_log("source-file-problem")) == 1, "reported once"

    world.folder.put("a.xml", GOOD, OLD + 200)
    world.scan()
    assert world.entries() == before, "the content is what it was"
    assert world.problems() == {} and world.ready() is None and len(world.wait_for_log("source-file-recovered")) == 1
    assert world.metric("source_problems") == 0
    world.folder.put("a.xml", urlset("/c"), OLD + 300)
    world.scan()
    assert world.entries()["a.xml"] == utc(OLD + 300)


def test_a_new_file_that_is_broken_has_no_entry(world):
    world.folder.put("b.xml")
    world.start()
    world.folder.put("a.xml", BROKEN["truncated"])
    world.scan()
    assert world.names() == {"b.xml"} and world.source()["problems"][0]["listed"] is False
    world.folder.remove("a.xml")
    world.scan()
    assert world.problems() == {} and world.ready() is None


def test_of_many_broken_files_the_log_counts_those_that_it_does_not_name(world):
    for i in range(23):
        world.folder.put(f"b{i:02}.xml", BROKEN["truncated"])
    world.start()
    lines = world.wait_for_log("source-file-problem", 21)
    assert "3 more files have problems; GET /v1/sources/files lists them" in lines[-1], lines[-1]
    assert len(world.problems()) == 23


def test_bombs_are_refused_in_bounded_time(world):
    bomb = gzip.compress(URLSET.encode() + b" " * 200000000, 9)
    world.folder.put("bomb.xml.gz", bomb)
    world.folder.put("double.xml.gz", gzip.compress(gzip.compress(GOOD)))
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "x"}">' for i in range(12))
    world.folder.put("laugh.xml", f'<!DOCTYPE urlset [{entities}]><urlset xmlns="{NAMESPACE}">&e11;</urlset>'.encode())
    world.folder.put("deep.xml", URLSET.encode() + b"<x>" * 100000)
    world.folder.put("b.xml")
    world.start()
    assert world.names() == {"b.xml"}
    found = world.problems()
    assert found["bomb.xml.gz"] in ("gzip-bomb", "file-too-large") and found["laugh.xml"] == "doctype" and found["deep.xml"] == "nesting-too-deep"


def test_half_a_file_is_waited_for(world):
    """Written in place and slowly, within `settle`: nothing is said of it until it is whole."""
    world.folder.put("b.xml")
    world.start(f"settle = {int(seconds(4))}s\n")
    whole = urlset(count=300)
    with open(world.folder.at("a.xml"), "wb", buffering=0) as file:
        for i in range(0, len(whole), len(whole) // 8):
            file.write(whole[i:i + len(whole) // 8])
            time.sleep(0.1)
            assert world.source()["problems"] == []
    world.becomes(["a.xml", "b.xml"])
    assert not world.wait_for_log("source-file-problem", 0)


def test_a_file_that_stays_half_is_reported_and_recovers(world):
    world.folder.put("a.xml")
    world.start(WATCHED)
    before = world.entries()
    world.folder.put("a.xml", urlset("/a")[:-30], mtime=None)
    eventually(lambda: world.problems() == {"a.xml": "truncated"}, "it is refused")
    assert world.entries() == before
    world.folder.put("a.xml", urlset("/other"), mtime=None)
    eventually(lambda: world.problems() == {}, "it recovers")
    eventually(lambda: world.entries() != before, "with the new date")


def without_the_powers_of_root(tmp_path, monkeypatch):
    """Root reads what it likes: the program runs without that power."""
    if os.geteuid() == 0:
        program = tmp_path / "sitemapd"
        program.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-dac_override,-dac_read_search {harness.BIN} "$@"\n')
        program.chmod(0o755)
        if subprocess.run([program, "--version"], capture_output=True).returncode != 0:
            pytest.skip("needs setpriv")
        monkeypatch.setattr(harness, "BIN", str(program))


def test_unreadable_files_and_folders(world, tmp_path, monkeypatch):
    without_the_powers_of_root(tmp_path, monkeypatch)
    world.folder.fill(5)
    world.folder.put("sub/a.xml")
    world.folder.put("sub/b.xml")
    world.start()
    names = world.names()
    for locked in ("many0.xml", "sub"):
        os.chmod(world.folder.at(locked), 0)
        os.utime(world.folder.at("many0.xml"), (OLD + 1, OLD + 1))
        assert world.scan()["removed"] == 0
        assert world.problems() == {locked: "unreadable"}, world.source()
        assert names <= world.names() and "source-problems" in world.ready()
        os.chmod(world.folder.at(locked), 0o755)
        world.scan()
        assert world.problems() == {} and world.ready() is None and names <= world.names()


def test_a_vanished_file_loses_its_entry(world):
    world.folder.fill(10)
    world.start(WATCHED)
    world.becomes({f"many{i}.xml" for i in range(10)})
    world.folder.remove("many3.xml")
    world.becomes({f"many{i}.xml" for i in range(10) if i != 3})
    assert world.ready() is None and world.source()["files"] == 9


# ---- honest lastmod -----------------------------------------------------------------------------


def test_unchanged_content_moves_no_date(world):
    pages = [f"/{i}" for i in range(50)]
    world.folder.put("a.xml", urlset(*pages))
    world.folder.put("b.xml.gz", urlset(*pages))
    world.folder.put("c.txt", "".join(f"{ORIGIN}{p}\n" for p in pages).encode())
    world.start()
    state, copy = world.state(), str(world.tmp_path / "copy")
    assert set(world.entries().values()) == {utc(OLD)}
    later = OLD + 1000

    def touch():
        for name in ("a.xml", "b.xml.gz", "c.txt"):
            os.utime(world.folder.at(name), (later, later))

    def copied():
        shutil.copytree(world.folder.path, copy)
        shutil.rmtree(world.folder.path)
        shutil.copytree(copy, world.folder.path, copy_function=shutil.copyfile)

    changes = [
        touch,
        copied,
        lambda: world.folder.put("b.xml.gz", gzip.compress(urlset(*pages), 1, mtime=7), later + 1),
        lambda: world.folder.put("b.xml.gz", gzip.compress(urlset(*pages)[:100]) + gzip.compress(urlset(*pages)[100:]), later + 1),
        lambda: world.folder.put("a.xml", gzip.compress(urlset(*pages)), later + 2),
        lambda: world.folder.put("a.xml", urlset(*pages, comment="<!-- generated at 12:01 -->"), later + 3),
        lambda: world.folder.put("a.xml", urlset(*pages).replace(b"><", b">\n   <"), later + 4),
        lambda: world.folder.put("a.xml", urlset(*pages), None),
        lambda: world.folder.put("a.xml", urlset(*pages), 0),
    ]
    for change in changes:
        change()
        done = world.scan()
        assert done["created"] == done["updated"] == done["removed"] == 0, (change, done)
        assert world.state() == state, change
        assert world.ready() is None


def test_changed_content_moves_the_date_and_never_backwards(world):
    world.folder.put("a.xml", urlset("/1"))
    world.folder.put("b.xml")
    world.start()
    first = world.state()
    world.folder.put("a.xml", urlset("/1", "/2"), OLD + 100)
    assert world.scan()["updated"] == 1
    assert world.entries() == {"a.xml": utc(OLD + 100), "b.xml": utc(OLD)}
    assert world.state()[0] > first[0] and world.state()[1] != first[1]
    for mtime in (OLD, 315532800, 0, OLD + 100):  # rsync of an older release, an image of 1980
        before, begin = world.entries()["a.xml"], int(time.time())
        world.folder.put("a.xml", urlset(f"/older/{mtime}"), mtime)
        assert world.scan()["updated"] == 1
        after = world.entries()["a.xml"]
        assert before < after and utc(begin) <= after <= utc(time.time()), "the moment of detection"
        if mtime != OLD + 100:
            time.sleep(1.05)  # dates have seconds
    world.folder.put("b.xml", urlset("/back", "/and"), OLD + 1)
    world.folder.put("c.xml", urlset("/image"), 315532800)
    world.scan()
    assert world.entries()["b.xml"] == utc(OLD + 1)
    assert world.entries()["c.xml"] >= utc(time.time() - 60), "1980 is not a date of a sitemap"


def test_content_that_changes_under_the_same_name_size_and_time_is_read(world):
    """cp -p over a file, rsync --inplace -t, a build with SOURCE_DATE_EPOCH: only the ctime shows it."""
    world.folder.put("a.xml", urlset("/1"))
    world.start("serve = yes\n" + NOT_WATCHED)
    before = world.entries()["a.xml"]
    with open(world.folder.at("a.xml"), "r+b") as file:
        file.write(urlset("/2"))
    os.utime(world.folder.at("a.xml"), (OLD, OLD))
    assert world.scan()["updated"] == 1 and world.entries()["a.xml"] > before
    served = eventually(lambda: (lambda r: r if b"/2" in r.body else None)(world.server.get("/a.xml")), "the new content")
    # A change of the ctime alone has the file read again, once, and changes nothing else.
    state = world.state()
    os.chmod(world.folder.at("a.xml"), 0o600)
    moment = os.stat(world.folder.at("a.xml")).st_ctime
    eventually(lambda: time.time() > moment + 0.1, "another change would have another time")
    read = world.metric("source_files_read_total")
    for _ in range(2):
        assert world.scan()["updated"] == 0 and world.state() == state
        assert world.metric("source_files_read_total") == read + 1
    assert world.server.get("/a.xml")["ETag"] == served["ETag"]


def test_a_future_date_is_clamped_and_reported(world):
    future = int(time.time()) + 86400 * 300
    world.folder.put("a.xml", mtime=future)
    world.start()
    assert utc(time.time() - 60) <= world.entries()["a.xml"] <= utc(time.time())
    assert all("source-scanned" in line for line in world.wait_for_log("1 dated in the future"))
    state = world.state()
    world.scan()
    assert world.state() == state and world.ready() is None
    assert world.server.api("GET", "/v1/sitemaps").json()["sitemaps"][0]["warnings"] == []


def test_a_date_survives_quarantine_emptiness_and_restart(world):
    world.folder.put("a.xml", urlset("/1"), OLD + 500)
    world.folder.fill(5)
    world.start()
    world.folder.put("a.xml", EMPTY, OLD + 600)
    world.scan()
    world.server.restart()
    world.scanned()
    world.folder.put("a.xml", urlset("/2"), OLD)
    world.scan()
    assert world.entries()["a.xml"] > utc(OLD + 500), "what crawlers saw last is not gone back behind"


# ---- settling, trees, moves ---------------------------------------------------------------------


def test_rewriting_all_is_one_revision(world):
    world.folder.fill(300)
    world.start(f"settle = {int(seconds(4))}s\n")
    eventually(lambda: len(world.names()) == 300, "all are there")
    world.rests()
    before = world.revision()
    for i in range(300):
        with open(world.folder.at(f"many{i}.xml"), "wb") as file:
            file.write(urlset(f"/rewritten/{i}"))
        time.sleep(0.002)
    assert world.revision() == before, "nothing is published while files come"
    eventually(lambda: all(v > utc(OLD) for v in world.entries().values()), "the rewrite is published")
    assert world.revision() == before + 1
    world.scan()
    assert world.revision() == before + 1


def test_trees_come_move_and_go(world):
    world.folder.fill(20)
    world.start(WATCHED)
    base = {f"many{i}.xml" for i in range(20)}
    world.becomes(base)
    world.folder.put("new/tree/of/folders/a.xml", mtime=None)
    world.folder.put("new/tree/b.xml", mtime=None)
    world.becomes(base | {"new/tree/of/folders/a.xml", "new/tree/b.xml"})
    world.folder.put("new/tree/of/folders/c.xml", mtime=None)
    tree = {"new/tree/of/folders/a.xml", "new/tree/b.xml", "new/tree/of/folders/c.xml"}
    world.becomes(base | tree)
    os.rename(world.folder.at("new/tree"), world.folder.at("moved"))
    moved = {"moved/of/folders/a.xml", "moved/b.xml", "moved/of/folders/c.xml"}
    world.becomes(base | moved)
    world.folder.put("moved/of/folders/d.xml", mtime=None)
    world.becomes(base | moved | {"moved/of/folders/d.xml"})
    aside = str(world.tmp_path / "aside")
    os.rename(world.folder.at("moved"), aside)
    world.becomes(base)
    Folder(aside).put("of/folders/e.xml")
    os.rename(aside, world.folder.at("back"))
    world.becomes(base | {"back/b.xml"} | {f"back/of/folders/{n}.xml" for n in "acde"})
    assert world.ready() is None


def test_renaming_all_files_is_not_a_removal(world):
    world.folder.fill(30)
    world.start()
    os.rename(world.folder.path, world.folder.path + ".aside")
    os.mkdir(world.folder.path)
    os.rename(world.folder.path + ".aside", world.folder.at("sub"))
    done = world.scan()
    assert (done["created"], done["removed"], done["held_removals"]) == (30, 30, 0)
    assert world.names() == {f"sub/many{i}.xml" for i in range(30)}


def test_names_in_upper_case(world):
    """As Windows writes them. Patterns of the configuration are compared as they are."""
    names = {"SITEMAP.XML", "PACKED.XML.GZ", "List.TXT"}
    world.folder.put("SITEMAP.XML", urlset("/a"))
    world.folder.put("PACKED.XML.GZ", gzip.compress(urlset("/b")))
    world.folder.put("List.TXT", f"{ORIGIN}/c\n".encode())
    world.start(NOT_WATCHED + "serve = yes\n")
    assert world.names() == names and world.problems() == {}
    assert {world.server.get("/" + name).status for name in names} == {200}
    config = world.tmp_path / "sitemapd.conf"
    config.write_text(config.read_text().replace("serve = yes\n", "serve = yes\npattern = *.TXT *.xml\n"))
    world.server.restart()
    world.scan("?max_removed=3")
    assert world.names() == {"List.TXT"}


def test_odd_names(world):
    names = {"ü ö.xml": "%C3%BC%20%C3%B6.xml", "a&b<c>.xml": "a&b%3Cc%3E.xml", "100%.xml": "100%25.xml", "q?x#y.xml": "q%3Fx%23y.xml", "it's.xml": "it's.xml"}
    for name in names:
        world.folder.put(name, urlset("/x"))
    world.start(NOT_WATCHED + "serve = yes\n")
    found = {loc[len(ORIGIN) + 1:] for loc in locs(world.index().body)}
    assert found == set(names.values())
    for path in found:
        assert world.server.get("/" + path).status == 200, path
    with open(os.path.join(world.folder.path.encode(), b"bad\xff.xml"), "wb") as file:
        file.write(urlset("/x"))
    world.scan()
    assert len(world.source()["problems"]) == 1 and len(locs(world.index().body)) == len(names)
    os.unlink(os.path.join(world.folder.path.encode(), b"bad\xff.xml"))
    world.scan()
    assert world.ready() is None


def test_a_reported_scan_is_published(world):
    """Nobody waits for the scan itself: once its end is visible, so is what it changed."""
    world.folder.fill(3)
    world.start()
    for i in range(30):
        world.folder.put(f"next{i}.xml")
        asking = threading.Thread(target=world.scan)
        asking.start()
        deadline = time.monotonic() + seconds(30)
        while world.source()["listed"] < 4 + i:  # without a pause: the moment between is short
            assert time.monotonic() < deadline
        assert f"next{i}.xml" in world.names()
        asking.join()


# ---- the shrink guard ---------------------------------------------------------------------------


def test_too_many_removals_are_held(world):
    world.folder.fill(20)
    world.start()
    for i in range(10):
        world.folder.remove(f"many{i}.xml")
    world.folder.put("new.xml")
    done = world.scan()
    assert (done["removed"], done["held_removals"], done["created"]) == (0, 10, 1)
    assert len(world.names()) == 21
    source = world.source()
    assert source["held_removals"] == 10 and source["last_scan_at"]
    assert world.metric("source_held_removals") == 10 and "10 removals" in world.ready()["source-held"]
    assert len(world.wait_for_log("source-removals-held")) == 1
    assert world.scan("?max_removed=9")["held_removals"] == 10 and len(world.names()) == 21
    world.server.restart()
    world.scanned()
    assert len(world.names()) == 21
    assert world.scan("?max_removed=10")["removed"] == 10
    assert world.names() == {f"many{i}.xml" for i in range(10, 20)} | {"new.xml"}
    assert world.ready() is None and world.metric("source_held_removals") == 0


def test_the_log_of_a_restart_counts_what_is_refused(world):
    world.folder.put("a.xml")
    world.folder.put("broken.xml", BROKEN["truncated"])
    world.start()
    world.scanned()
    assert ", 1 with a problem" in world.wait_for_log("source-scanned")[-1]
    world.server.restart()
    world.scanned()
    assert ", 1 with a problem" in world.wait_for_log("source-scanned", 2)[-1]
    assert "1 file is rejected" in world.ready()["source-problems"], "as before the restart, and after its scan"
    # A command on the file, which has no configuration that names the source, says so, too.
    result = world.server.cli("status")
    assert result.code == 1 and f"  {world.ready()['source-problems']} (source-problems)\n" in result.out and "1 of 2 files listed, 1 with a problem" in result.out, result
    (listed,) = world.server.cli("source", "list", "--json").out.splitlines()
    assert json.loads(listed)["name"] == world.source()["name"] and "not declared here" in world.server.cli("source", "list").out


def test_a_start_without_its_section_says_that_a_source_is_not_read(world):
    world.folder.put("a.xml")
    world.start()
    file = world.tmp_path / "sitemapd.conf"
    whole = file.read_text()
    assert "source-not-read" not in world.server.log()
    file.write_text(whole.replace(world.configure(), ""))
    world.server.restart()
    assert world.wait_for_log("source-not-read")[-1].endswith("files: no source has this name any more: its folder is no longer read; its entries stay; `sitemapd source remove files` lets another source take them over")
    assert world.names() == {"a.xml"}
    assert world.ready()["source-orphaned"].startswith("files: no source has this name any more, but its sitemaps are still listed; ")
    for name in world.names():
        assert world.server.cli("remove", "https://www.example.com/" + name).code == 0
    world.server.restart()
    assert "source-orphaned" not in (world.ready() or {}), "it has no entries"


def test_a_folder_that_a_command_registers_once_is_no_source(world):
    world.folder.put("a.xml")
    world.start()
    world.scanned()
    assert world.server.cli("scan", world.folder.path, "--url", "https://www.example.com/again/").code == 0
    world.server.restart()
    assert "source-orphaned" not in (world.ready() or {}) and "source-not-read" not in world.server.log()


def test_a_source_with_another_name_takes_the_entries_over(world):
    """Once the old one is removed; then what its files were dated stays, and it removes what is gone. A source of the configuration that comes back owns what it had."""
    world.folder.put("a.xml")
    world.folder.put("b.xml", urlset("/b"), OLD + 50)
    world.folder.put("c.xml", urlset("/c"), OLD + 60)
    world.start()
    before = world.entries()
    file = world.tmp_path / "sitemapd.conf"
    whole = file.read_text()

    def rename(name):
        file.write_text(whole.replace('[source "files"]', f'[source "{name}"]'))
        if world.server.process:
            world.server.stop()
        world.server.start()
        world.scanned(name)

    rename("new")
    assert {p["code"] for p in world.source("new")["problems"]} == {"owned-by-another"} and "new: 3 files are rejected" in world.ready()["source-problems"]
    assert "`sitemapd source remove files` lets another source take them over" in world.wait_for_log("source-not-read")[-1]
    world.server.stop()
    lost = world.server.cli("status")  # of the file, without a configuration
    assert "  files " in lost.out and "not declared here: --config FILE or --server URL shows whether a server reads it; if none does, remove it with `sitemapd source remove`" in lost.out, lost
    removed = world.server.cli("source", "remove", "files")
    assert (removed.code, removed.out) == (0, "files: removed; its entries stay; sitemaps served for it are 404 until another source serves them\n"), removed
    assert world.server.cli("source", "remove", "files").err == "sitemapd: files: source not found\n"
    assert "  files " not in world.server.cli("status").out
    world.folder.put("a.xml", mtime=OLD + 200)  # touched, and not changed
    world.folder.put("b.xml", urlset("/another"), OLD + 300)
    before["b.xml"] = utc(OLD + 300)
    rename("new")
    world.scan(name="new")
    assert world.source("new")["problems"] == [] and world.ready() is None and world.entries() == before
    assert {s["source"] for s in world.server.api("GET", "/v1/sitemaps").json()["sitemaps"]} == {"new"}
    world.folder.remove("c.xml")
    world.scan("?max_removed=1", name="new")
    assert world.names() == {"a.xml", "b.xml"} and world.server.cli("status").code == 0
    rename("files")  # which no longer owns them
    assert {p["code"] for p in world.source()["problems"]} == {"owned-by-another"} and world.names() == {"a.xml", "b.xml"}
    assert world.server.api("DELETE", "/v1/sources/files").json()["code"] == "managed-by-config"
    assert world.server.api("DELETE", "/v1/sources/new").status == 204
    world.scan()
    assert world.problems() == {} and {s["source"] for s in world.server.api("GET", "/v1/sitemaps").json()["sitemaps"]} == {"files"}
    rename("new")
    world.server.stop()
    assert world.server.cli("check").code == 0
    assert {line.split()[0] for line in world.server.cli("source", "list").out.splitlines()} == {"new", "files"}, "both are known again"


@pytest.mark.faster(20)
@pytest.mark.parametrize("what", ["source", "host"])
def test_what_was_rejected_is_tried_again_when_it_may_be_accepted(world, what):
    """Long before the next scan is due, and although no file has changed."""
    world.folder.put("a.xml", urlset().replace(ORIGIN.encode(), b"https://img.example.org") if what == "host" else None)
    world.start()
    name = "files"
    if what == "source":
        name = "new"
        file = world.tmp_path / "sitemapd.conf"
        world.server.reload(file.read_text().replace('[source "files"]', '[source "new"]'))
        world.scanned(name)
    assert {p["code"] for p in world.source(name)["problems"]} == {"owned-by-another" if what == "source" else "outside-site"}
    change = ("source", "remove", "files") if what == "source" else ("site", "update", ORIGIN, "--add-cross-host", "img.example.org")
    assert world.server.cli(*change).code == 0
    eventually(lambda: world.source(name)["problems"] == [], "it is accepted", 90)
    assert world.names() == {"a.xml"} and world.source(name)["listed"] == 1


def test_a_dry_scan_has_rows(world):
    world.folder.put("a.xml")
    world.folder.put("b.xml")
    world.start()
    world.scan()
    entries, state = world.entries(), world.state()
    world.folder.put("new.xml")
    world.folder.put("a.xml", GOOD.replace(b"/a", b"/another"), OLD + 100)
    world.folder.remove("b.xml")
    dry = world.scan("?dry_run=1&max_removed=1")
    rows = {row["loc"].rpartition("/")[2]: (row["before"] and row["before"]["lastmod"], row["after"] and row["after"]["lastmod"]) for row in dry["rows"]}
    assert (dry["created"], dry["updated"], dry["removed"], dry["rows_total"]) == (1, 1, 1, 3), dry
    assert set(rows) == {"new.xml", "a.xml", "b.xml"} and rows["new.xml"][0] is None and rows["b.xml"][1] is None and rows["a.xml"][0] != rows["a.xml"][1], rows
    assert (world.entries(), world.state()) == (entries, state), "nothing was written"
    assert "rows" not in world.scan("?max_removed=1")


def test_held_files_that_return_end_it(world):
    world.folder.fill(10)
    world.start()
    state = world.state()
    os.mkdir(world.folder.path + ".new")
    os.rename(world.folder.path, world.folder.path + ".old")
    os.rename(world.folder.path + ".new", world.folder.path)
    assert world.scan()["held_removals"] == 10
    assert world.state()[1:] == state[1:] and "source-held" in world.ready()
    world.folder.put("broken.xml", b'<urlset xmlns="%s"><url></loc>' % NAMESPACE.encode())
    assert world.scan()["held_removals"] == 10
    why = world.ready()
    assert "10 removals are" in why["source-held"] and "1 file is rejected" in why["source-problems"], "one does not hide the other"
    assert not any("check" in row for row in world.server.api("GET", "/v1/sitemaps?checks=1").json()["sitemaps"]), "which files are gone is not known"
    world.folder.remove("broken.xml")
    os.rmdir(world.folder.path)
    os.rename(world.folder.path + ".old", world.folder.path)
    assert world.scan()["held_removals"] == 0
    assert world.state()[1:] == state[1:] and world.ready() is None


def test_the_last_entry_is_not_lost_by_accident(world):
    world.folder.put("only.xml")
    world.start()
    world.folder.remove("only.xml")
    assert world.scan()["held_removals"] == 1 and world.names() == {"only.xml"}
    done = world.server.cli("scan", "files", "--config", str(world.tmp_path / "sitemapd.conf"), "--max-removed", "1")
    assert done.code == 0 and "1 removed" in done.out
    eventually(lambda: world.index().status in (404, 410), "it is gone")
    assert world.scan()["held_removals"] == 0
    assert world.ready() is None


# ---- one index, several owners ------------------------------------------------------------------


def test_a_source_never_touches_what_it_did_not_register(world):
    world.folder.put("mine.xml")
    world.start()
    assert world.server.register(f"{ORIGIN}/api.xml", lastmod="2020-01-01").status == 201
    assert world.server.register(f"{ORIGIN}/both.xml", lastmod="2020-01-01").status == 201
    world.folder.put("both.xml")
    world.scan()
    assert world.entries() == {"mine.xml": utc(OLD), "api.xml": "2020-01-01", "both.xml": "2020-01-01"}
    found = world.source()["problems"]
    assert [(p["path"], p["code"]) for p in found] == [("both.xml", "owned-by-another")] and "environment" in found[0]["detail"]
    assert "source-problems" in world.ready() and len(world.wait_for_log("source-file-problem")) == 1
    world.folder.put("both.xml", urlset("/new"), OLD + 100)
    world.scan(), world.scan()
    assert world.entries()["both.xml"] == "2020-01-01" and len(world.wait_for_log("source-file-problem")) == 1
    os.unlink(world.folder.at("both.xml"))
    world.scan()
    assert world.entries()["both.xml"] == "2020-01-01" and world.ready() is None
    world.folder.put("both.xml")
    world.scan()
    assert world.server.api("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/both.xml')}").status == 204
    read = world.metric("source_files_read_total")
    world.scan()
    assert world.entries()["both.xml"] == utc(OLD) and world.ready() is None, "its place is free: taken at the next scan"
    assert world.metric("source_files_read_total") == read, "without reading it again"
    # and a replace of the API leaves the source's alone
    assert world.server.replace([f"{ORIGIN}/api2.xml"], max_removed=100).status == 200
    assert world.names() == {"mine.xml", "both.xml", "api2.xml"}


def test_two_sources_in_one_index(world, start):
    other = Folder(world.tmp_path / "other")
    world.folder.put("a.xml"), other.put("b.xml"), other.put("a.xml")
    world.start(config=world.configure(name="other", directory=other.path))
    world.scanned("other")
    owner = {e["loc"][len(ORIGIN) + 1:]: e["source"] for e in world.server.api("GET", "/v1/sitemaps").json()["sitemaps"]}
    assert owner["b.xml"] == "other" and owner["a.xml"] in ("files", "other") and len(owner) == 2
    loser = "other" if owner["a.xml"] == "files" else "files"
    assert [p["code"] for p in world.source(loser)["problems"]] == ["owned-by-another"]


# ---- starts -------------------------------------------------------------------------------------


def test_a_restart_reads_only_what_changed(world):
    world.folder.fill(100)
    world.folder.put("robots.txt", WEB_ROOT["robots.txt"])
    world.folder.put("broken.xml", BROKEN["truncated"])
    world.folder.put("empty.xml", EMPTY)
    world.start()
    eventually(lambda: world.metric("source_files_read_total") == 103, "all are read")
    state = world.state()
    world.server.restart()
    world.scanned()
    eventually(lambda: world.metric("source_scans_total") >= 1, "scanned")
    assert world.metric("source_files_read_total") == 0 and world.state() == state
    world.server.stop()
    world.folder.put("many7.xml", urlset("/changed"), OLD + 7)
    world.folder.put("new.xml")
    world.folder.remove("many8.xml")
    world.server.start()
    eventually(lambda: world.metric("source_scans_total") >= 1, "scanned")
    assert world.metric("source_files_read_total") == 2
    assert world.names() == {f"many{i}.xml" for i in range(100) if i != 8} | {"new.xml"}
    assert world.entries()["many7.xml"] == utc(OLD + 7)
    assert world.problems() == {"broken.xml": "truncated"}


def test_a_folder_that_is_missing_at_start(world):
    world.folder.fill(3)
    world.start()
    world.server.stop()
    os.rename(world.folder.path, world.folder.path + ".aside")
    world.server.start()
    eventually(lambda: world.source()["failed_at"], "it fails")
    assert "No such file" in world.source()["failure"] and world.folder.path in world.source()["failure"]
    assert len(world.names()) == 3 and "No such file" in world.ready()["source-failing"]
    (tmp := world.tmp_path / "status.conf").write_text(f'[site "a"]\norigin = {ORIGIN}\n' + world.configure())
    result = world.server.cli("status", "--config", tmp)  # of the file, which does not remember that
    assert result.code == 1 and f"  {world.ready()['source-failing']} (source-failing)\n" in result.out, result
    assert world.metric("source_failing") == 1
    reply = world.server.api("POST", "/v1/sources/files/scan")
    result = problem(reply, 503, "scan-failed")["detail"]
    assert result.startswith("files: ") and "No such file" in result and reply["Retry-After"], result
    os.rename(world.folder.path + ".aside", world.folder.path)
    eventually(lambda: world.ready() is None, "it recovers by itself")
    assert len(world.names()) == 3 and world.metric("source_failing") == 0 and world.source()["failure"] is None


def test_a_folder_that_goes_while_it_is_watched(world):
    world.folder.fill(3)
    world.start(WATCHED)
    world.becomes({f"many{i}.xml" for i in range(3)})
    state = world.state()
    os.rename(world.folder.path, world.folder.path + ".aside")
    eventually(lambda: "source-failing" in (world.ready() or {}), "it is noticed")
    assert world.state()[1:] == state[1:]
    Folder(world.folder.path + ".aside").put("new.xml")
    os.rename(world.folder.path + ".aside", world.folder.path)
    world.becomes({"new.xml"} | {f"many{i}.xml" for i in range(3)})
    world.folder.put("newer.xml")
    world.becomes({"new.xml", "newer.xml"} | {f"many{i}.xml" for i in range(3)})
    assert world.ready() is None


def test_a_folder_that_is_replaced_is_read_once_it_settles(world):
    """Another folder does not count as unrest: that would last ten times as long."""
    world.folder.fill(3)
    world.start("settle = 8s\n")
    began = time.monotonic()
    os.rename(world.folder.path, world.folder.path + ".old")
    Folder(world.folder.path).put("new.xml")
    eventually(lambda: "source-held" in (world.ready() or {}), "the new folder is read")
    assert time.monotonic() - began < 70


def test_releases_behind_a_symlink(world):
    """`current -> releases/2`: the top is another folder, and is watched."""
    releases = [Folder(world.tmp_path / f"release{i}") for i in range(2)]
    for release in releases:
        release.fill(3)
    releases[1].put("many0.xml", urlset("/second"), OLD + 50)
    os.rmdir(world.folder.path)
    os.symlink(releases[0].path, world.folder.path)
    world.start(WATCHED)
    world.becomes({f"many{i}.xml" for i in range(3)})
    os.symlink(releases[1].path, world.folder.path + ".new")
    os.rename(world.folder.path + ".new", world.folder.path)
    eventually(lambda: world.entries()["many0.xml"] == utc(OLD + 50), "the new release is read")
    assert world.entries()["many1.xml"] == utc(OLD)
    releases[1].put("later.xml")
    world.becomes({"later.xml"} | {f"many{i}.xml" for i in range(3)})


def test_the_server_ends_in_the_middle_of_a_scan(world):
    big = urlset(count=20000)
    for i in range(40):
        world.folder.put(f"big{i}.xml", big.replace(b"/page/", b"/%d/" % i))
    world.start(wait=False)
    world.server.stop()
    world.server.start()
    eventually(lambda: len(world.names()) == 40, "all are listed")


# ---- serve = yes --------------------------------------------------------------------------------


@pytest.fixture
def served(world):
    world.plain = urlset(count=3000)
    world.packed = gzip.compress(urlset(count=100), mtime=0)
    world.folder.put("plain.xml", world.plain)
    world.folder.put("packed.xml.gz", world.packed)
    world.folder.put("small.txt", f"{ORIGIN}/x\n".encode())
    world.start("serve = yes\n" + WATCHED)
    return world


def test_served_plain(served):
    get = served.server.get
    whole = get("/plain.xml")
    assert whole.status == 200 and whole.body == served.plain and whole["Content-Encoding"] is None
    assert whole["Content-Type"] == "application/xml; charset=utf-8" and whole["Cache-Control"] == PUBLIC_CACHE
    assert whole["Last-Modified"] == time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(OLD))
    assert whole["Vary"] == "Accept-Encoding" and whole["Accept-Ranges"] == "bytes"
    assert whole["X-Content-Type-Options"] == "nosniff" and whole["X-Robots-Tag"] == "noindex"
    small = get("/plain.xml", {"Accept-Encoding": "gzip, br"})
    assert small["Content-Encoding"] == "gzip" and gunzip(small.body) == served.plain and len(small.body) < len(served.plain) / 5
    assert small["ETag"] != whole["ETag"] and small["Vary"] == "Accept-Encoding"
    for accept in ("gzip;q=0", "identity", "br", "", "gzip;q=0.5, identity"):
        assert get("/plain.xml", {"Accept-Encoding": accept})["Content-Encoding"] is None, accept
    text = get("/small.txt")
    assert text["Content-Type"] == "text/plain; charset=utf-8" and text.body == f"{ORIGIN}/x\n".encode()
    for headers, reply in (({}, whole), ({"Accept-Encoding": "gzip"}, small)):
        head = get("/plain.xml", headers, method="HEAD")
        assert head.same_headers() == reply.same_headers()
        for condition in ({"If-None-Match": reply["ETag"]}, {"If-None-Match": "W/" + reply["ETag"]}, {"If-None-Match": "*"},
                          {"If-Modified-Since": reply["Last-Modified"]}):
            same = get("/plain.xml", {**headers, **condition})
            assert same.status == 304 and same["ETag"] == reply["ETag"] and same["Vary"] == "Accept-Encoding", (condition, same)
            assert same["Last-Modified"] == reply["Last-Modified"] and same["Cache-Control"] == PUBLIC_CACHE
        for condition in ({"If-None-Match": '"x"'}, {"If-None-Match": '"x"', "If-Modified-Since": reply["Last-Modified"]},
                          {"If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, {"If-Modified-Since": "yesterday"}):
            assert get("/plain.xml", {**headers, **condition}).status == 200, condition


def test_served_packed(served):
    for accept in ("gzip", "identity", "gzip;q=0"):
        reply = served.server.get("/packed.xml.gz", {"Accept-Encoding": accept})
        assert reply.status == 200 and reply.body == served.packed
        assert reply["Content-Type"] == "application/gzip" and reply["Content-Encoding"] is None
    assert served.server.get("/packed.xml.gz", {"If-None-Match": reply["ETag"]}).status == 304


@pytest.mark.parametrize("path", ["/plain.xml", "/packed.xml.gz"])
def test_served_ranges(served, path):
    get = lambda value, **more: served.server.get(path, {"Range": value, **{k.replace("_", "-"): v for k, v in more.items()}})
    whole = served.server.get(path)
    size = len(whole.body)
    for value, first, last in (("bytes=0-0", 0, 0), ("bytes=10-99", 10, 99), ("bytes=-7", size - 7, size - 1), (f"bytes={size - 1}-", size - 1, size - 1),
                               (f"bytes=5-{size * 2}", 5, size - 1), (f"bytes=-{size * 2}", 0, size - 1)):
        part = get(value)
        assert part.status == 206 and part.body == whole.body[first:last + 1], (value, part)
        assert part["Content-Range"] == f"bytes {first}-{last}/{size}" and part["ETag"] == whole["ETag"]
    for value in ("bytes=5-1", "bytes=x", "bites=0-1", "bytes=0-1,5-6", "bytes=", "0-1"):
        assert get(value).status in (200, 206) and get(value).body in (whole.body, whole.body[:2]), value
    beyond = get(f"bytes={size}-")
    assert beyond.status == 416 and beyond["Content-Range"] == f"bytes */{size}"
    assert get("bytes=0-1", If_Range=whole["ETag"]).status == 206
    assert get("bytes=0-1", If_Range="W/" + whole["ETag"]).status == 200, "weak tags do not do"
    assert get("bytes=0-1", If_Range='"other"').status == 200
    assert get("bytes=0-1", If_Range=whole["Last-Modified"]).status == 206
    assert get("bytes=0-1", If_Range="Mon, 01 Jan 2001 00:00:00 GMT").status == 200
    assert get("bytes=0-1", If_None_Match=whole["ETag"]).status == 304
    head = served.server.get(path, {"Range": "bytes=0-1"}, method="HEAD")
    assert head.status == 200 and head["Content-Length"] == str(size)


def test_served_conditions_come_before_ranges(served):
    whole = served.server.get("/plain.xml")
    get = lambda **conditions: served.server.get("/plain.xml", {k.replace("_", "-"): v for k, v in conditions.items()}).status
    old = "Mon, 01 Jan 2001 00:00:00 GMT"
    assert get(If_Match=whole["ETag"]) == get(If_Match="*") == get(If_Unmodified_Since=whole["Last-Modified"]) == 200
    assert get(If_Match='"x"') == get(If_Match="W/" + whole["ETag"]) == get(If_Unmodified_Since=old) == 412
    assert get(If_Match=whole["ETag"], If_Unmodified_Since=old) == 200
    assert get(If_Match='"x"', Range="bytes=0-1") == get(If_Unmodified_Since=old, Range="bytes=0-1") == 412
    assert get(If_Match=whole["ETag"], Range="bytes=0-1") == get(If_Unmodified_Since=whole["Last-Modified"], Range="bytes=0-1") == 206
    assert get(If_Match=whole["ETag"], If_None_Match=whole["ETag"], Range="bytes=0-1") == 304
    assert get(If_Match=whole["ETag"], Range="bytes=0-1", If_Range='"x"') == 200
    assert get(If_Match='"x"', Range=f"bytes={len(whole.body)}-") == 412


def test_a_served_file_rolled_back_over_a_restart(served):
    served.folder.put("plain.xml", urlset("/new"), OLD + 1000)
    reply = eventually(lambda: (lambda r: r if r.body == urlset("/new") else None)(served.server.get("/plain.xml")), "the new content")
    served.server.stop()
    served.folder.put("plain.xml", served.plain, OLD)
    served.server.start()
    assert served.server.get("/plain.xml", {"If-Modified-Since": reply["Last-Modified"]}).body == served.plain


def test_one_date_for_every_build_over_a_restart(served):
    """SOURCE_DATE_EPOCH: the date alone does not identify the content that an earlier server sent with it."""
    get = served.server.get
    before = get("/plain.xml")
    dated = {"If-Modified-Since": before["Last-Modified"]}
    assert get("/plain.xml", dated).status == 304
    # Else the first scan, which may end before the next request, gives the entry, and so the file, the date of the change.
    assert served.server.cli("freeze", ORIGIN + "/sitemap_index.xml").code == 0
    served.server.stop()
    served.folder.put("plain.xml", urlset("/other"), OLD)
    served.server.start()
    after = get("/plain.xml")
    assert after["Last-Modified"] == before["Last-Modified"] and after.body == urlset("/other")
    assert get("/plain.xml", dated).status == 200
    assert get("/plain.xml", {"Range": "bytes=0-1", "If-Range": before["Last-Modified"]}).status == 200
    assert get("/plain.xml", {"If-None-Match": after["ETag"]}).status == 304
    assert served.server.cli("thaw", ORIGIN + "/sitemap_index.xml").code == 0
    time.sleep(1.1)
    served.folder.put("plain.xml", urlset("/third"), mtime=None)  # what this server sees change it can date
    status_of_date = lambda: get("/plain.xml", {"If-Modified-Since": get("/plain.xml")["Last-Modified"]}).status
    eventually(lambda: get("/plain.xml").body == urlset("/third") and status_of_date() == 304, "its own date")


def test_a_file_where_an_index_was(world):
    """The page's date, and the file's which shows through where it was, may be the same."""
    world.start("serve = yes\n" + WATCHED)
    get, url = world.server.get, f"{ORIGIN}/x/index.xml"
    made = world.server.api("POST", "/v1/indexes", {"url": url})
    assert made.status == 201 and world.server.register(f"{ORIGIN}/x/a.xml", index=url).status == 201
    page = get("/x/index.xml")
    moment = int(email.utils.parsedate_to_datetime(page["Last-Modified"]).timestamp())
    time.sleep(1.1)
    world.folder.put("x/index.xml", mtime=moment)
    assert get("/x/index.xml").body == page.body
    assert world.server.api("DELETE", f"/v1/indexes/{made.json()['id']}?max_removed=1").status == 200
    eventually(lambda: get("/x/index.xml").body == urlset("/x/index.xml"), "the file shows through")
    assert get("/x/index.xml")["Last-Modified"] == page["Last-Modified"]
    assert get("/x/index.xml", {"If-Modified-Since": page["Last-Modified"]}).status == 200


def test_parts_of_one_encoding_are_put_together(served):
    headers = {"Accept-Encoding": "gzip"}
    whole = served.server.get("/plain.xml", headers)
    parts = [served.server.get("/plain.xml", {**headers, "Range": f"bytes={i}-{i + 999}", "If-Range": whole["ETag"]}) for i in range(0, len(whole.body), 1000)]
    assert {p.status for p in parts} == {206} and b"".join(p.body for p in parts) == whole.body


def test_served_files_follow_the_folder(served):
    first = served.server.get("/plain.xml")
    served.folder.put("plain.xml", urlset("/other"), OLD)  # an older or equal date, other content
    reply = eventually(lambda: (lambda r: r if r["ETag"] != first["ETag"] else None)(served.server.get("/plain.xml")), "the new content")
    assert reply.body == urlset("/other") and reply["Last-Modified"] != first["Last-Modified"]
    served.folder.put("plain.xml", served.plain, OLD)
    eventually(lambda: served.server.get("/plain.xml")["ETag"] == first["ETag"], "the tag is that of the bytes")
    served.folder.remove("plain.xml")
    served.scan("?max_removed=1")
    assert served.server.get("/plain.xml").status == 404, "it is gone"
    served.server.restart()
    assert served.server.get("/packed.xml.gz").status == 200


def test_crawlers_get_the_files_whose_removal_is_held(served):
    """An empty release: the index lists the files, and crawlers do not get 404 for them."""
    get = served.server.get
    plain = get("/plain.xml")
    served.folder.remove("plain.xml", "packed.xml.gz", "small.txt")
    eventually(lambda: served.source()["held_removals"] == 3, "the guard holds the removals")
    assert len(served.names()) == 3
    kept = get("/plain.xml")
    assert (kept.status, kept["ETag"], kept.body) == (200, plain["ETag"], plain.body), "the version in memory"
    unread = get("/small.txt")
    assert unread.status == 503 and unread["Retry-After"], "it was never in memory"
    assert get("/none.xml").status == 404
    status = sitemapd("status", "--server", f"http://{served.server.admin}", env={"SITEMAPD_TOKEN": harness.TOKEN})
    for text in (served.ready()["source-held"], status.out):
        assert "crawlers get the last version in memory, else 503" in text, text
    served.server.restart()
    assert get("/plain.xml").status == 503
    served.scan("?max_removed=3")
    assert [get(path).status for path in ("/plain.xml", "/packed.xml.gz", "/small.txt")] == [404] * 3


def test_entries_below_a_former_url_whose_removal_is_held_are_reported(served):
    """The source's URL changes, and most files are missing: nothing serves what the guard keeps, and that is said."""
    served.folder.fill(10)
    served.becomes({"plain.xml", "packed.xml.gz", "small.txt"} | {f"many{i}.xml" for i in range(10)})
    served.server.stop()
    served.folder.remove(*(f"many{i}.xml" for i in range(10)))
    with open(os.path.join(str(served.server.folder), "sitemapd.conf"), "w") as file:
        file.write(served.configure("serve = yes\n" + WATCHED, url=ORIGIN + "/maps/"))
    served.server.start()
    eventually(lambda: served.source()["held_removals"] == 13, "the guard holds the removals")
    assert len(served.names()) == 13 and served.server.get("/many0.xml").status == 404
    ready = eventually(served.ready, "it is degraded")
    for text in (ready["source-held"], served.wait_for_log("source-removals-held")[-1]):
        assert "else 503, and 404 if its URL is not below the source's url" in text, text


@pytest.mark.parametrize("known", [True, False], ids=("in memory", "never served"))
def test_crawlers_do_not_get_404_for_a_file_that_is_listed_and_unreadable(served, known):
    get = served.server.get
    before = get("/plain.xml") if known else None
    os.mkfifo(served.folder.at(".fifo"))
    os.rename(served.folder.at(".fifo"), served.folder.at("plain.xml"))

    def reported():
        reply = get("/plain.xml")
        assert reply.status == 503 if before is None else (reply.status, reply["ETag"]) == (200, before["ETag"])
        return served.problems() == {"plain.xml": "unreadable"}

    eventually(reported, "the scan has found it")
    assert reported() is True and "plain.xml" in served.names()
    served.folder.put("plain.xml", urlset("/back"))
    eventually(lambda: get("/plain.xml").body == urlset("/back"), "it can be read again")


@pytest.mark.parametrize("mtime", [OLD - 1000, 4102444800], ids=("rolled back", "in the future"))
def test_last_modified_never_goes_back_over_a_restart(served, mtime):
    served.folder.put("plain.xml", urlset("/other"), mtime)
    listed = eventually(lambda: (lambda date: date if date > utc(OLD) else None)(served.entries()["plain.xml"]), "the scan has found it")
    date = lambda: utc(email.utils.parsedate_to_datetime(served.server.get("/plain.xml")["Last-Modified"]).timestamp())
    before = date()
    assert utc(OLD) < before <= listed
    for _ in range(2):
        served.server.restart()
        assert date() == listed


def test_methods_and_hosts_of_served_files(served):
    reply = served.server.get("/plain.xml", method="POST")
    assert reply.status == 405 and set(reply["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert served.server.get("/plain.xml?x=1").status == 404
    for path in ("/none.xml", "/", "/plain", "/plain.xml/", "/PLAIN.XML"):
        assert served.server.get(path).status == 404, path


SECRET = b"SECRET-" + hashlib.sha256(b"x").hexdigest().encode()


def lay_traps(world):
    """What must never be served, around the folder and linked from it."""
    outside = Folder(world.tmp_path / "outside")
    outside.put("secret.xml", urlset("/") + b"<!-- %s -->" % SECRET)
    outside.put("files.xml", urlset("/") + b"<!-- %s -->" % SECRET)
    shutil.copy(outside.at("secret.xml"), world.tmp_path / "secret.xml")
    world.folder.put("sub/a.xml")
    world.folder.put(".hidden.xml", SECRET)
    world.folder.put(".git/a.xml", SECRET)
    world.folder.put("notes.md", SECRET)
    os.symlink("../outside/secret.xml", world.folder.at("link.xml"))
    os.symlink(outside.at("secret.xml"), world.folder.at("absolute.xml"))
    os.symlink("../outside", world.folder.at("linked"))
    os.symlink("../../outside/secret.xml", world.folder.at("sub/link.xml"))
    os.symlink("loop.xml", world.folder.at("loop.xml"))
    os.symlink("/proc/self/environ", world.folder.at("environ.xml"))
    os.symlink("a.xml", world.folder.at("sub/inside.xml"))
    os.mkfifo(world.folder.at("fifo.xml"))
    os.mkdir(world.folder.at("folder.xml"))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(world.folder.at("socket.xml"))


TARGETS = """/../secret.xml /%2e%2e/secret.xml /.%2e/secret.xml /sub/../../secret.xml /sub/%2e%2e/%2e%2e/secret.xml /sub/..%2f..%2fsecret.xml
/..%2fsecret.xml /..%5csecret.xml /..\\secret.xml /%252e%252e/secret.xml /sub/../a.xml /sub/./a.xml /sub//a.xml //sub/a.xml /./sub/a.xml /sub%2fa.xml
/sub/%61.xml /sub/a%2exml /sub/a.xml%00 /sub/a.xml%00.xml /sub/a.xml/. /sub/a.xml/.. /%c0%ae%c0%ae/secret.xml /%ff.xml /..;/secret.xml /sub/..;/a.xml
/.hidden.xml /.git/a.xml /notes.md /link.xml /absolute.xml /linked/secret.xml /sub/link.xml /loop.xml /environ.xml /fifo.xml /folder.xml /socket.xml
/linked/../secret.xml /linked /sub /sub/ /proc/self/environ /etc/passwd /%2fetc/passwd //etc/passwd /sub/a.xml%20 /sub/a.xml. /sub/A.xml""".split()


def test_no_path_escapes(world):
    lay_traps(world)
    world.start("serve = yes\n" + WATCHED)
    world.becomes(["sub/a.xml", "sub/inside.xml"])
    for target in TARGETS:
        for full in (target, f"http://{HOST}{target}"):
            reply = ask_raw(world.server.public, request_bytes("GET", full, {"Connection": "close"}))
            assert reply.status in (400, 404), (full, reply)
            assert SECRET not in reply.body
    assert world.server.get("/sub/inside.xml").body == urlset("/sub/a.xml")
    assert world.wait_for_log("source-link-outside")
    assert SECRET.decode() not in world.server.log()


def test_no_race_leads_out(world):
    """Files and folders change places with links that lead out, while they are asked for and scanned."""
    outside = Folder(world.tmp_path / "outside")
    good = urlset("/good")
    secret = urlset(*[f"/{SECRET.decode()}/{i}" for i in range(3)])
    for i in range(20):
        world.folder.put(f"r{i}.xml", good)
        world.folder.put(f"d{i}/x.xml", good)
    outside.put("x.xml", secret)
    world.start("serve = yes\nsettle = 0s\n")
    swaps, over, failed = 6000 if harness.PLAIN else 2000, threading.Event(), []

    def swap():
        for n in range(swaps):
            i = n % 20
            path, folder = world.folder.at(f"r{i}.xml"), world.folder.at(f"d{i}")
            os.symlink(outside.at("x.xml") if n % 3 else "../outside/x.xml", path + ".l")
            os.rename(path + ".l", path)
            os.rename(folder, folder + ".aside")
            os.symlink("../outside", folder)
            with open(path + ".g", "wb") as file:
                file.write(good)
            os.rename(path + ".g", path)
            os.unlink(folder)
            os.rename(folder + ".aside", folder)

    def fetch():
        seen = {200: 0, 404: 0, 503: 0}
        try:
            while not over.is_set():
                for i in range(20):
                    for target in (f"/r{i}.xml", f"/d{i}/x.xml"):
                        reply = world.server.get(target, {"Accept-Encoding": "gzip"} if i % 2 else {})
                        seen[reply.status] += 1
                        assert reply.status != 200 or reply.xml() == good, reply
            assert seen[200] > 0, seen
        except Exception as error:  # the test's thread reports it
            failed.append(error)

    def swap_to_the_end():
        try:
            swap()
        finally:
            over.set()

    threads = [threading.Thread(target=swap_to_the_end)] + [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    eventually(lambda: world.server.api("POST", "/v1/sources/files/scan").status == 200, "it rests")
    assert world.names() == {f"r{i}.xml" for i in range(20)} | {f"d{i}/x.xml" for i in range(20)}
    assert SECRET.decode() not in world.server.log()


# ---- undo --------------------------------------------------------------------------------------


def test_the_undo_of_a_removal_restores_no_entry_whose_file_is_gone(world):
    """Nothing would serve it, and no scan would remove it: it is reported as a conflict. One whose file is there is restored."""
    world.folder.fill(6)
    world.start()
    names = world.names()
    gone, stays = f"{ORIGIN}/many0.xml", f"{ORIGIN}/many1.xml"
    revisions = {}
    for loc in (gone, stays):
        assert world.server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204
        revisions[loc] = world.server.api("GET", "/v1/history?limit=1").json()["changes"][0]["revision"]
    undo = lambda loc, query="": world.server.api("POST", f"/v1/history/{revisions[loc]}/undo{query}").json()
    assert undo(stays)["created"] == 1 and undo(stays)["conflicts"] == []
    world.folder.remove("many0.xml")
    world.scan("?max_removed=1")
    for query in ("", "?on_conflict=overwrite"):
        result = undo(gone, query)
        assert result["created"] == 0 and result["conflicts"] == [{"loc": gone, "code": "changed-since"}], result
    assert world.names() == names - {"many0.xml"}
    world.folder.put("many0.xml")
    world.scan()
    assert world.names() == names


@pytest.mark.parametrize("mended", [True, False], ids=("mended", "as it is"))
def test_a_scan_is_undone_while_the_index_is_frozen(world, mended):
    """A bad deploy: the page is as before at once, and at the thaw the folder is checked again."""
    names = [f"{n}.xml" for n in range(20)]
    for name in names:
        world.folder.put(name)
    world.start()
    server = world.server
    call = lambda target: server.api("POST", target)
    page = lambda: (world.index()["ETag"], world.index().body)
    before, good, good_source = page(), world.entries(), world.source()
    for name in names[:3]:
        world.folder.remove(name)
    for name in names[3:7]:
        world.folder.put(name, urlset("/broken"), mtime=OLD + 1000)
    for name in ("new1.xml", "new2.xml"):
        world.folder.put(name)
    world.scan("?max_removed=3")
    damaged, bad = page(), world.entries()
    revision = server.api("GET", "/v1/history?kind=scan").json()["changes"][0]["revision"]
    undo = lambda revision: call(f"/v1/history/{revision}/undo?max_removed=9")
    problem(undo(revision), 409, "source-decides")
    problem(call(f"/v1/restore?index={q(INDEX)}&to={revision - 1}&max_removed=9"), 409, "source-decides")
    assert page() == damaged

    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    freeze = lambda on: server.api("PATCH", f"/v1/indexes/{index}", {"frozen": on})
    assert freeze(True).status == 200
    done = undo(revision)
    assert done.status == 200, done
    counts = lambda answer: tuple(answer.json()[key] for key in ("created", "updated", "removed"))
    assert counts(done) == (3, 4, 2) and page() == before and world.entries() == good
    source = world.source()
    assert (source["files"], source["listed"]) == (good_source["files"], good_source["listed"])
    # An undo is undone, as any: and its files with it, both ways.
    again = undo(done.json()["revision"])
    assert again.status == 200 and counts(again) == (2, 4, 3) and page() == damaged, again
    assert counts(undo(again.json()["revision"])) == (3, 4, 2) and page() == before
    world.scan("?max_removed=9")
    assert page() == before, "what the scan found is held"

    if mended:
        for name in names[:7]:
            world.folder.put(name, mtime=OLD + 5000)  # deployed again: the content of before
        world.folder.remove("new1.xml", "new2.xml")
    assert freeze(False).status == 200
    world.scan("?max_removed=9")
    if mended:
        assert page() == before, "no date moved, since nothing changed"
    else:
        assert set(world.entries()) == set(bad), "what is there, as the folder says"
        assert {name: date for name, date in world.entries().items() if name not in names[3:7]} == {
            name: date for name, date in bad.items() if name not in names[3:7]}
    source = world.source()
    assert (source["files"], source["listed"]) == (len(world.entries()),) * 2 and source["problems"] == []
    assert server.cli("check").code == 0


def undo_frozen(world, restores=False):
    """The removal of c.xml is undone, or the index restored to before it, while the index is frozen."""
    api = lambda method, target, body=None: world.server.api(method, target, body)
    world.folder.remove("c.xml")
    world.becomes({"a.xml", "b.xml", "d.xml"})
    revision = api("GET", "/v1/history?kind=scan").json()["changes"][0]["revision"]
    index = f"/v1/indexes/{api('GET', '/v1/indexes').json()['indexes'][0]['id']}"
    assert api("PATCH", index, {"frozen": True}).status == 200
    undone = api("POST", f"/v1/restore?index={q(INDEX)}&to={revision - 1}" if restores else f"/v1/history/{revision}/undo")
    assert undone.status == 200 and "c.xml" in world.names(), undone
    assert api("PATCH", index, {"frozen": False}).status == 200
    return {"a.xml", "b.xml", "d.xml"}


def remove_by_api(world):
    assert world.server.api("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/c.xml')}").status == 204
    return {"a.xml", "b.xml", "c.xml", "d.xml"}


def replace_by_api(world):
    rows = [{"loc": f"{ORIGIN}/{name}.xml"} for name in "abd"]
    assert world.server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=*", rows).status == 200
    return {"a.xml", "b.xml", "c.xml", "d.xml"}


@pytest.mark.parametrize("change", [undo_frozen, lambda world: undo_frozen(world, True), remove_by_api, replace_by_api],
                         ids=("undo", "restore", "removal", "replace"))
def test_a_folder_is_scanned_soon_after_another_change_of_its_entries(world, change):
    for name in "abcd":
        world.folder.put(f"{name}.xml")
    world.start(WATCHED)
    world.becomes(change(world))
    assert set(world.entries().values()) == {utc(OLD)}
    eventually(lambda: world.source()["files"] == world.source()["listed"] == len(world.names()), "the files are those of the entries")


def test_an_index_with_a_source_is_restored_while_it_is_frozen(world):
    for name in "abcd":
        world.folder.put(f"{name}.xml")
    world.start()
    server, good = world.server, world.entries()
    before = world.index().body
    revision = server.api("GET", "/v1/history?kind=scan").json()["changes"][0]["revision"]
    for turn in range(1, 4):
        world.folder.put("a.xml", urlset(f"/{turn}"), mtime=OLD + turn)
        world.folder.put(f"new{turn}.xml")
        world.scan()
    world.folder.remove("b.xml")
    world.scan("?max_removed=1")
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    assert server.api("PATCH", f"/v1/indexes/{index}", {"frozen": True}).status == 200
    done = server.api("POST", f"/v1/restore?index={q(INDEX)}&to={revision}&max_removed=9")
    assert done.status == 200 and world.index().body == before and world.entries() == good, done
    # The net of it, not what each step did.
    assert tuple(done.json()[key] for key in ("created", "updated", "removed")) == (1, 1, 3), done
    # A file of before that touched nothing leaves nothing in the history of who comes next.
    assert server.api("PATCH", f"/v1/indexes/{index}", {"frozen": False}).status == 200
    world.scan("?max_removed=9")
    assert world.names() == {"a.xml", "c.xml", "d.xml", "new1.xml", "new2.xml", "new3.xml"}
    assert world.source()["listed"] == 6
