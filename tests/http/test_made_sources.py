# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sources made by API and command line: what they may read, whose they are, and that they run at once."""

import contextlib
import json
import os
import sqlite3
import threading

import pytest

from harness import ORIGIN, eventually, locs, problem, sitemapd
from test_sources import Folder

OTHER = "https://other.example"
UPSTREAM = ORIGIN + "/old_index.xml"


class World:
    """A server of two sites, a folder opened to each, a source of the configuration; and tokens of the first site."""

    def __init__(self, start, tmp_path):
        self.tmp = tmp_path
        self.shop, self.rest = Folder(tmp_path / "open" / "shop"), Folder(tmp_path / "rest")
        self.fixed, self.secret = Folder(tmp_path / "fixed"), Folder(tmp_path / "secret")
        self.shop.put("a.xml")
        self.rest.put("r.xml")
        self.secret.put("s.xml")
        self.config = tmp_path / "sitemapd.conf"
        self.write()
        self.server = start("--config", str(self.config), sites=())
        self.site = self.token("site", "--site", ORIGIN, "--role", "admin")
        self.other = self.token("other", "--site", OTHER, "--role", "admin")

    def write(self, roots=None, all_sites=None):
        roots = roots if roots is not None else f"source_root = {self.tmp}/open\n"
        self.config.write_text(
            f"[fetch]\nsource_root = {all_sites or self.rest.path}\n[site \"main\"]\norigin = {ORIGIN}\n{roots}"
            f"[site \"other\"]\norigin = {OTHER}\n"
            f"[source \"fixed\"]\ndirectory = {self.fixed.path}\nurl = {ORIGIN}/fixed/\nwatch = no\n")

    def token(self, name, *options):
        made = self.server.cli("token", "add", name, *options)
        eventually(lambda: self.server.api("GET", "/v1/token", token=made.out.strip()).status == 200, "the token is known")
        return made.out.strip()

    def post(self, name="shop", token="", **fields):
        if "upstream" not in fields:
            fields = {"directory": self.shop.path, "url": ORIGIN + "/shop/", "settle": 0, **fields}
        return self.server.api("POST", "/v1/sources", {"name": name, **fields}, token=token)

    def patch(self, name, token="", **fields):
        return self.server.api("PATCH", "/v1/sources/" + name, fields, token=token)

    def names(self, token=""):
        return sorted(s["name"] for s in self.server.api("GET", "/v1/sources", token=token).json()["sources"])

    def scan(self, name, token="", query=""):
        return self.server.api("POST", f"/v1/sources/{name}/scan{query}", token=token)

    def listed(self):
        return locs(self.server.get("/sitemap_index.xml").body)


@pytest.fixture
def w(start, tmp_path):
    return World(start, tmp_path)


def test_one_is_made_changed_and_removed_while_all_else_goes_on(w):
    reply = w.post(token=w.site)
    assert (reply.status, reply.get("location")) == (201, "/v1/sources/shop"), reply
    assert reply.json() == {
        "name": "shop", "kind": "folder", "managed": False, "site": ORIGIN, "directory": w.shop.path,
        "url": ORIGIN + "/shop/", "index": None, "patterns": None, "excludes": None, "watch": True, "rescan": 3600,
        "settle": 0, "serve": False, "split": False}
    assert w.names() == ["fixed", "shop"]  # it runs when it is answered
    assert w.scan("shop", token=w.site).status == 200
    assert w.listed() == [ORIGIN + "/shop/a.xml"]

    def revision():
        return w.server.api("GET", "/v1/changes?since=0").json()["revision"]

    before = revision()
    w.shop.put("b.xml")
    dry = w.scan("shop", query="?dry_run=1").json()
    assert before <= dry["revision"] <= revision()  # the watch may find it meanwhile
    fixed = eventually(lambda: w.server.api("GET", "/v1/sources/fixed").json()["last_scan_at"], "the scan of a start is over")
    reply = w.patch("shop", token=w.site, patterns=["b.*"], rescan=7200, index=ORIGIN + "/sitemap_index.xml")
    assert reply.status == 200, reply
    assert (reply.json()["patterns"], reply.json()["rescan"], reply.json()["index"]) == (["b.*"], 7200, ORIGIN + "/sitemap_index.xml")
    one = w.server.api("GET", "/v1/sources/shop").json()
    assert (one["patterns"], one["watch"]) == (["b.*"], True)
    assert w.patch("shop", token=w.site, index=None, patterns=[]).json()["patterns"] is None
    assert w.server.api("GET", "/v1/sources/fixed").json()["last_scan_at"] == fixed

    w.server.restart()
    assert w.names() == ["fixed", "shop"]
    assert w.server.api("DELETE", "/v1/sources/shop", token=w.site).status == 204
    assert w.names() == ["fixed"]
    problem(w.scan("shop"), 404, "not-found")
    assert ORIGIN + "/shop/a.xml" in w.listed()  # its entries stay
    kinds = [c["kind"] for c in w.server.api("GET", "/v1/history?limit=20").json()["changes"]]
    assert [k for k in kinds if k.startswith("source-")] == ["source-remove", "source-update", "source-update", "source-add"]
    assert w.post(token=w.site).status == 201  # and who made it may make it again


def test_the_configuration_goes_first(w):
    problem(w.post("fixed"), 409, "source-exists", "name")
    problem(w.patch("fixed", settle=3), 409, "managed-by-config")
    problem(w.server.api("DELETE", "/v1/sources/fixed"), 409, "managed-by-config")
    assert w.post().status == 201
    problem(w.post(), 409, "source-exists", "name")
    w.config.write_text(w.config.read_text() + f"[source \"shop\"]\ndirectory = {w.fixed.path}\nurl = {ORIGIN}/x/\n")
    os.kill(w.server.process.pid, 1)
    w.server.wait_for_log("reloaded")
    assert w.server.api("GET", "/v1/sources/shop").json()["managed"] is True
    assert w.server.wait_for_log("source-put-aside")
    listed = w.server.cli("source", "list", "--json", "--config", str(w.config)).out.splitlines()
    assert [(s["name"], s["managed"]) for s in map(json.loads, listed)] == [("fixed", True), ("shop", True)]


MALFORMED = [
    ({"upstream": UPSTREAM, "directory": "/srv"}, 403, "folder-not-opened", "directory"),
    ({"directory": None}, 422, "wrong-type", "directory"),
    ({"url": None}, 422, "wrong-type", "url"),
    ({"url": ORIGIN + "/shop"}, 422, "source-malformed", "url"),
    ({"index": "/nowhere.xml"}, 422, "index-unknown", "index"),
    ({"url": ORIGIN + "/" + "é" * 337 + "/"}, 422, "source-malformed", "url"),  # its normal form is what is too long
    ({"rescan": 1}, 422, "source-malformed", "rescan"),
    ({"poll": 60}, 422, "source-malformed", "upstream"),
    ({"patterns": ["a\nb"]}, 422, "source-malformed", "patterns"),
    ({"patterns": ["x" * 5000]}, 422, "source-malformed", "patterns"),
    ({"name": "a/b"}, 422, "name-malformed", "name"),
    ({"colour": "red"}, 422, "unknown-field", "colour"),
    ({"upstream": "ftp://a/i.xml"}, 422, "loc-scheme", "upstream"),
    ({"upstream": UPSTREAM, "watch": True}, 422, "source-malformed", "directory"),
    ({"upstream": UPSTREAM, "serve": True, "check": False}, 422, "source-malformed", "serve"),
    ({"upstream": UPSTREAM, "poll": 1}, 422, "source-malformed", "poll"),
    ({"upstream": "https://nobody.example/i.xml"}, 422, "site-unknown", "upstream"),
    ({"upstream": UPSTREAM, "site": "https://nobody.example"}, 422, "site-unknown", "site"),
    ({"upstream": UPSTREAM, "connect": "127.0.0.1:80"}, 403, "only-by-configuration", "connect"),
    ({"upstream": UPSTREAM, "ca_file": "/etc/passwd"}, 403, "only-by-configuration", "ca_file"),
    ({"upstream": UPSTREAM, "credentials_file": "/etc/passwd"}, 403, "only-by-configuration", "credentials_file"),
]


def test_what_is_malformed_is_refused_by_its_field_and_nothing_is_made(w):
    for fields, status, code, field in MALFORMED:
        problem(w.post(**fields), status, code, field)
    assert w.names() == ["fixed"]


def test_folders_are_read_only_beneath_what_is_opened(w):
    escapes = [w.secret.path, "/", "/etc", str(w.tmp), w.rest.path, w.shop.path + "/../../secret", w.tmp.as_posix() + "/openx",
               str(w.tmp) + "//open/shop/../../secret", "open/shop"]
    for path in escapes:
        reply = w.post("x", token=w.site, directory=path)
        assert reply.status in (403, 422), (path, reply)
    problem(w.post("x", directory=w.secret.path), 403, "folder-not-opened", "directory")
    assert w.post("rest", directory=w.rest.path, url=ORIGIN + "/rest/").status == 201  # [fetch] opens it to tokens for all sites
    assert w.post(token=w.site).status == 201
    assert w.patch("shop", token=w.site, directory=w.shop.path + "/").status == 200  # as a shell completes it
    assert w.scan("shop", token=w.site).status == 200
    problem(w.patch("shop", token=w.site, directory=w.secret.path), 403, "folder-not-opened", "directory")
    problem(w.patch("shop", token=w.site, directory=w.rest.path), 403, "folder-not-opened", "directory")

    # A symlink leads out, before or after: nothing of it is read, listed or served.
    os.symlink(w.secret.path, w.tmp / "open" / "out")
    assert w.post("out", token=w.site, directory=str(w.tmp / "open" / "out"), url=ORIGIN + "/out/", serve=True).status == 201
    problem(w.scan("out", token=w.site), 503, "scan-failed")
    assert w.server.get("/out/s.xml").status == 404
    assert not [loc for loc in w.listed() if "/out/" in loc]

    # A folder that was never opened to the site: its token changes nothing of the operator's source.
    assert w.patch("rest", serve=False, patterns=["r.*"]).status == 200
    problem(w.patch("rest", token=w.site, serve=True, patterns=["*"]), 403, "folder-not-opened", "directory")
    problem(w.patch("rest", token=w.other, serve=True), 404, "not-found")
    assert w.server.get("/rest/r.xml").status == 404
    assert w.server.api("DELETE", "/v1/sources/rest").status == 204

    # What is closed later is read no more.
    assert w.scan("shop").status == 200
    w.write(roots="")
    os.kill(w.server.process.pid, 1)
    w.server.wait_for_log("reloaded")
    reply = w.scan("shop")
    assert "source_root" in problem(reply, 503, "scan-failed")["detail"]
    assert ORIGIN + "/shop/a.xml" in w.listed()
    reasons = w.server.api("GET", "/readyz").json()["reasons"]
    assert any(r["code"] == "source-failing" and "source_root" in r["detail"] for r in reasons)


def reload(w, **written):
    w.write(**written)
    count = lambda: w.server.log().count("sources and crawlers were reloaded")
    before = count()
    os.kill(w.server.process.pid, 1)
    eventually(lambda: count() > before, "the configuration is in force")


def test_no_symlink_leads_to_the_folder(w):
    """A tenant can write above a folder that an operator opened: a link there leads to nobody else's, also below the root."""
    reload(w, all_sites=w.tmp)
    folders = {"last": w.tmp / "open" / "last", "above": w.tmp / "open" / "above" / "deep"}
    for name, path in folders.items():
        Folder(path).put("s.xml")
        assert w.post(name, directory=str(path), url=f"{ORIGIN}/{name}/", serve=True).status == 201
        assert w.server.get(f"/{name}/s.xml").status == 200
    w.secret.put("t.xml")
    Folder(w.tmp / "secret" / "deep").put("t.xml")
    for name in folders:
        os.rename(w.tmp / "open" / name, w.tmp / "open" / (name + ".old"))
        os.symlink(w.secret.path, w.tmp / "open" / name)
    for name in folders:
        assert "symlink" in problem(w.scan(name), 503, "scan-failed")["detail"]
        assert w.server.get(f"/{name}/t.xml").status == 404
        scanned = w.server.cli("scan", name, "--config", str(w.config))
        assert scanned.code == 1 and "symlink" in scanned.err, scanned
    assert not [loc for loc in w.listed() if "t.xml" in loc]


def test_a_closed_root_opens_no_wider_one(w):
    """Without its site's source_root, a source that the site's token made reads nothing, whatever [fetch] opens to operators."""
    reload(w, all_sites=w.tmp)
    assert w.post(token=w.site, serve=True).status == 201
    assert w.post("op", directory=w.shop.path, url=ORIGIN + "/op/").status == 201
    assert w.server.get("/shop/a.xml").status == 200
    reload(w, all_sites=w.tmp, roots="")
    assert "source_root" in problem(w.scan("shop"), 503, "scan-failed")["detail"]
    w.shop.put("b.xml")
    assert w.server.get("/shop/b.xml").status == 404
    scanned = w.server.cli("scan", "shop", "--config", str(w.config))
    assert scanned.code == 1 and "source_root" in scanned.err, scanned
    assert w.scan("op").status == 200
    # It stays so, unless an operator names the folder.
    assert w.patch("shop", settle=1).status == 200
    problem(w.scan("shop"), 503, "scan-failed")
    assert w.patch("shop", directory=w.shop.path).status == 200
    assert w.scan("shop").status == 200
    # What a site's token changed is the site's.
    reload(w, all_sites=w.tmp)
    assert w.patch("op", token=w.site, settle=1).status == 200
    reload(w, all_sites=w.tmp, roots="")
    problem(w.scan("op"), 503, "scan-failed")


def test_a_source_that_cannot_run_stops_no_other(w):
    """A URL that no rule accepts any more, such as of an older catalogue: its own scans fail, all else starts."""
    assert w.post(token=w.site).status == 201
    w.server.stop()
    with sqlite3.connect(w.server.database) as catalogue:
        catalogue.execute("UPDATE source_made SET url = ?", (ORIGIN + "/" + "é" * 337 + "/",))
    catalogue.close()
    w.server.start()
    assert "is longer than" in problem(w.scan("shop", token=w.site), 503, "scan-failed")["detail"]
    assert w.server.api("GET", "/v1/sources/shop", token=w.site).json()["url"].endswith("é/")
    assert w.post("rest", directory=w.rest.path, url=ORIGIN + "/rest/").status == 201
    assert w.scan("rest").status == 200
    assert ORIGIN + "/rest/r.xml" in w.listed()
    os.kill(w.server.process.pid, 1)
    w.server.wait_for_log("reloaded")
    assert w.patch("shop", token=w.site, url=ORIGIN + "/shop/").status == 200
    assert w.scan("shop", token=w.site).status == 200


@pytest.mark.parametrize("how", ["entry", "list", "undo"])
def test_changes_of_another_site_under_its_name_do_not_wake_it(w, how):
    """Each would be a scan, and an unconditional request of an upstream."""
    assert w.post(token=w.site).status == 201 and w.scan("shop").status == 200
    def touched():
        with contextlib.closing(sqlite3.connect(w.server.database)) as db:
            return db.execute("SELECT touched FROM source_state JOIN source ON id = source WHERE name = 'shop'").fetchone()[0]

    before, loc, lists = touched(), OTHER + "/x.xml", f"/v1/sitemaps?index={OTHER}/sitemap_index.xml&max_removed=9"
    api = lambda *args: w.server.api(*args, token=w.other)
    assert api("POST", "/v1/sitemaps?source=shop", {"loc": loc}).status == 201
    if how == "entry":
        assert api("DELETE", "/v1/sitemaps?loc=" + loc).status == 204
    elif how == "list":
        assert api("PUT", lists + "&source=*", [{"loc": OTHER + "/y.xml"}]).status == 200
    else:
        revision = api("GET", "/v1/history?limit=1").json()["changes"][0]["revision"]
        assert api("POST", f"/v1/history/{revision}/undo?max_removed=9").status == 200
    assert touched() == before


def test_a_token_of_one_site_keeps_to_it(w):
    assert w.post(token=w.site).status == 201
    assert w.scan("shop").status == 200
    w.token("boss")  # for all sites: entries of a source of this name would be that token's
    problem(w.post("boss", token=w.site), 403, "needs-token-of-all-sites", "name")
    # Of the other site: neither seen nor touched.
    assert w.names(w.other) == []
    problem(w.server.api("GET", "/v1/sources/shop", token=w.other), 404, "not-found")
    problem(w.patch("shop", token=w.other, settle=1), 404, "not-found")
    problem(w.server.api("DELETE", "/v1/sources/shop", token=w.other), 404, "not-found")
    assert w.scan("shop", token=w.other).status in (403, 404)
    problem(w.post("theirs", token=w.other, url=ORIGIN + "/shop/"), 403)
    # Its own URL, the other's index; an upstream of another's host, or of anybody's.
    problem(w.post("x", token=w.other, upstream=OTHER + "/i.xml", index=ORIGIN + "/sitemap_index.xml"), 422, "index-unknown", "index")
    problem(w.post("x", token=w.other, upstream=ORIGIN + "/i.xml"), 403)
    problem(w.post("x", token=w.other, upstream=ORIGIN + "/i.xml", site=OTHER), 422, "outside-site", "upstream")
    problem(w.post("x", token=w.other, upstream="http://169.254.169.254/latest", site=OTHER), 422, "outside-site", "upstream")
    problem(w.post("x", token=w.other, upstream=OTHER + "/i.xml", site=ORIGIN), 422, "site-unknown", "site")
    made = w.post("up", token=w.other, upstream=OTHER + "/i.xml")
    assert (made.status, made.json()["site"], made.json()["kind"]) == (201, OTHER, "remote"), made
    problem(w.patch("up", token=w.other, upstream=ORIGIN + "/i.xml"), 422, "outside-site", "upstream")

    # A name under which another site's files are known: a scan of its own would find all of them gone.
    assert w.server.api("DELETE", "/v1/sources/shop", token=w.site).status == 204
    problem(w.post("shop", token=w.other, upstream=OTHER + "/i.xml"), 409, "source-exists", "name")
    assert w.listed() == [ORIGIN + "/shop/a.xml"]
    problem(w.post("fixed", token=w.other, upstream=OTHER + "/i.xml"), 409, "source-exists", "name")

    # There is a bound, and it is the site's own.
    for i in range(19):
        assert w.post(f"n{i}", token=w.other, upstream=OTHER + "/i.xml").status == 201
    reply = w.post("more", token=w.other, upstream=OTHER + "/i.xml")
    assert "at most 20" in problem(reply, reply.status)["detail"] and reply.status in (409, 422, 507), reply
    assert w.post(token=w.site).status == 201


def test_names_of_removed_sources_are_bounded(w):
    """Each keeps rows, so a token that makes and removes sources under ever new names would fill the catalogue."""
    assert w.post(token=w.site).status == 201 and w.scan("shop").status == 200
    assert w.server.api("DELETE", "/v1/sources/shop", token=w.site).status == 204
    w.server.stop()
    with sqlite3.connect(w.server.database) as catalogue:
        for number in range(999):
            catalogue.execute(
                "INSERT INTO source_made(name, site, watch, serve, checked, rescan_ms, settle_ms, poll_ms, drop_after_ms, removed)"
                " SELECT ?, site, 0, 0, 0, 0, 0, 0, 0, 1 FROM source_made WHERE name = 'shop'", (f"old{number}",))
    catalogue.close()
    w.server.start()
    reply = w.post("new", token=w.site)
    assert "reuse one of their names" in problem(reply, reply.status)["detail"] and reply.status in (409, 422, 507), reply
    assert w.post("rest", directory=w.rest.path).status == 201  # an operator
    assert w.post(token=w.site).status == 201


def test_roles_prefixes_and_frozen_sites(w):
    read, write = w.token("read", "--site", ORIGIN, "--role", "read"), w.token("write", "--site", ORIGIN)
    part = w.token("part", "--prefix", ORIGIN + "/shop/blog/")
    for token in (read, write):
        problem(w.post(token=token), 403, "token-role")
        problem(w.patch("fixed", token=token, settle=1), 403, "token-role")
        problem(w.server.api("DELETE", "/v1/sources/fixed", token=token), 403, "token-role")
    problem(w.scan("fixed", token=read), 403, "token-role")
    assert w.names(read) == ["fixed"]
    assert w.scan("fixed", token=write).status == 200
    # A prefix: none is made with it, and it sees those whose folder lies under it; an upstream names what it likes.
    problem(w.post("up", token=part, upstream=UPSTREAM), 403, "token-role")
    assert w.post("blog", token=w.site, url=ORIGIN + "/shop/blog/").status == 201
    assert w.post("up", token=w.site, upstream=UPSTREAM).status == 201
    assert w.names(part) == ["blog"]
    problem(w.scan("up", token=part), 403)
    assert w.post(token=w.site).status == 201
    # Frozen: nothing changes, sources neither.
    site = [s["id"] for s in w.server.api("GET", "/v1/sites").json()["sites"] if s["origin"] == ORIGIN][0]
    assert w.server.api("PATCH", f"/v1/sites/{site}", {"frozen": True}).status == 200
    problem(w.post("x", token=w.site), 409, "frozen")
    problem(w.patch("shop", settle=1), 409, "frozen")
    problem(w.server.api("DELETE", "/v1/sources/shop"), 409, "frozen")


def test_what_another_process_makes_runs_within_moments(w):
    gone = w.server.cli("source", "add", "rest", "--directory", "not/there", "--url", ORIGIN + "/rest/")
    assert gone.code == 1 and gone.err.endswith("not/there: folder not found\n"), gone
    made = w.server.cli("source", "add", "rest", "--directory", os.path.relpath(w.rest.path), "--url", ORIGIN + "/rest/", "--settle", "0s")
    assert (made.code, made.out) == (0, "rest: added\n"), made
    eventually(lambda: "rest" in w.names(), "the source of another process runs")
    eventually(lambda: ORIGIN + "/rest/r.xml" in w.listed(), "and its files are listed")


def test_a_site_is_checked_by_a_word(server):
    made = server.api("POST", "/v1/sites", {"origin": OTHER, "check": True})
    assert made.json()["check"] is True
    assert server.api("GET", "/v1/sites").json()["sites"][1]["check"] is False
    assert server.api("PATCH", f"/v1/sites/{made.json()['id']}", {"check": False}).json()["check"] is False
    entry = server.register(ORIGIN + "/a.xml").json()["sitemap"]
    assert "check" not in server.api("GET", "/v1/sitemaps/" + entry["id"]).json(), "nobody looks at it"
    assert server.api("GET", "/v1/checks").json() == {"checks": [], "next": None}
    problem(server.api("GET", "/v1/checks?state=odd"), 400, "malformed-parameter", "state")
    problem(server.api("POST", "/v1/checks?loc=" + ORIGIN + "/a.xml"), 404, "not-found", "loc")
    problem(server.api("POST", "/v1/checks"), 400, "missing-parameter", "loc")


def test_the_commands_know_them_on_the_machine_and_from_afar(w):
    assert w.post(patterns=["a.*"], watch=False, rescan=2592000).status == 201
    w.scan("shop")
    w.shop.put("ab.xml")
    w.shop.put("a.more.xml")
    afar = {"env": {"SITEMAPD_SERVER": "http://" + w.server.admin, "SITEMAPD_TOKEN": w.server.token}}
    dry = sitemapd("scan", "shop", "--dry-run", **afar)
    assert dry.code == 0 and "would be: 1 added" in dry.out, dry
    assert w.listed() == [ORIGIN + "/shop/a.xml"]
    assert w.server.cli("scan", "shop", "--config", str(w.config)).code == 0
    eventually(lambda: sorted(w.listed()) == [ORIGIN + "/shop/a.more.xml", ORIGIN + "/shop/a.xml"], "its patterns hold")
    assert "shop" in w.server.cli("status").out
    for listing in (w.server.cli("source", "list", "--config", str(w.config)).out, sitemapd("source", "list", **afar).out):
        assert f"{w.shop.path} as {ORIGIN}/shop/\n" in listing and f"{w.fixed.path} as {ORIGIN}/fixed/, managed by the configuration file\n" in listing
    assert w.post("up", upstream=UPSTREAM).status == 201
    assert w.server.cli("scan", "up", "--config", str(w.config)).err.startswith("sitemapd: up: ")
    problem(w.scan("up", query="?dry_run=1"), 503, "scan-failed")


def test_scans_that_wait_are_bounded(w):
    """While the catalogue cannot be written, a few wait; the rest leaves room for other calls."""
    assert w.post().status == 201 and w.scan("shop").status == 200
    held = sqlite3.connect(w.server.database, timeout=60, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    w.shop.put("more.xml")
    replies = []
    asking = [threading.Thread(target=lambda: replies.append(w.scan("shop")), daemon=True) for _ in range(20)]
    for thread in asking:
        thread.start()
    eventually(lambda: len(replies) >= 3, "some are too many")
    held.execute("ROLLBACK")
    held.close()
    for thread in asking:
        thread.join()
    refused = [reply for reply in replies if reply.status != 200]
    assert 0 < len(refused) <= 4 and all("too many scans" in problem(reply, 503, "scan-failed")["detail"] for reply in refused), refused
    assert ORIGIN + "/shop/more.xml" in w.listed()


def test_folders_give_way_to_crawlers_and_writers(w):
    """Each has a thread of its own, and what lies in 20 of them may change all the time."""
    assert w.post().status == 201 and w.scan("shop").status == 200
    tasks = f"/proc/{w.server.process.pid}/task"

    def priorities():
        of = [task for task in os.listdir(tasks) if open(f"{tasks}/{task}/comm", encoding="ascii").read() == "folder\n"]
        return [os.getpriority(os.PRIO_PROCESS, int(task)) for task in of]

    eventually(lambda: priorities() == [10, 10], "both have a lower priority")
