# SPDX-License-Identifier: LicenseRef-Undeclared
"""Mirrors with a host map: a CMS lists its own host, and the site has another."""

import gzip
import re
import time
from urllib.parse import quote

from harness import ask, eventually, sitemapd
from origin import Origin, answer, index, urlset

FETCH = "[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n"
HOST = "www.shop.example"
SITE = f"https://{HOST}"
RICH = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc>@/a?next=@/b</loc><lastmod>2025-02-03</lastmod>
<xhtml:link rel="alternate" hreflang="de" href="@/de/a"/>
<image:image><image:loc>@/a.png</image:loc></image:image></url>
<url><loc><![CDATA[@/c]]></loc><!-- @/d --></url>
</urlset>
"""


class World:
    def __init__(self, start, cms):
        self.start, self.cms = start, cms
        self.base = f"http://{cms.address}:{cms.port}"
        self.map = f"map = {self.base} {SITE}\n"
        self.settings = "serve = yes\n"

    def config(self):
        return (f'{FETCH}[site "m"]\norigin = {SITE}\nindex = /sitemap_index.xml\n'
                f'[source "cms"]\nupstream = {self.base}/list.xml\n{self.map}{self.settings}')

    def serve(self):
        self.server = self.start(sites=(), config=self.config())
        return self.server

    def put(self, path, body, **headers):
        self.cms.answers[path] = answer(200, body.replace("@", self.base).encode() if isinstance(body, str) else body, **headers)

    def list(self, *members):
        self.cms.answers["/list.xml"] = answer(200, index(*((self.base + path.replace("&", "&amp;")) for path in members)))

    def get(self, path, **headers):
        return ask(self.server.public, "GET", path, headers, host=HOST)

    def index(self):
        return self.get("/sitemap_index.xml").body.decode()

    def poll(self, path):
        reply = self.server.api("POST", f"/v1/checks?loc={quote(SITE + path, safe='')}")
        assert reply.status == 200, reply
        return reply.json()["check"]["state"]


def test_all_that_a_cms_lists_is_served_at_the_site(start):
    with Origin() as cms:
        w = World(start, cms)
        w.put("/posts.xml?page=1&x=2", RICH)
        w.put("/packed.xml.gz", gzip.compress(RICH.replace("@", w.base).encode()))
        w.put("/coded.xml", gzip.compress(RICH.replace("@", w.base).encode()), Content_Encoding="gzip")
        w.put("/list.txt", "@/a\n@/b\n", Content_Type="text/plain")
        paths = ("/posts.xml?page=1&x=2", "/packed.xml.gz", "/coded.xml", "/list.txt")
        w.list(*paths)
        server = w.serve()
        served = RICH.replace(">@", ">" + SITE).replace('"@', '"' + SITE).replace("[@", "[" + SITE).replace("@", w.base).encode()
        bodies = dict.fromkeys(paths, served) | {"/list.txt": f"{SITE}/a\n{SITE}/b\n".encode()}
        for path, body in bodies.items():
            reply = eventually(lambda: (r := w.get(path)).status == 200 and r, f"{path} is served")
            assert (gzip.decompress(reply.body) if path.endswith(".gz") else reply.body) == body, path
            assert w.get(path, **{"If-None-Match": reply["ETag"]}).status == 304
        text = eventually(lambda: (t := w.index()).count("<lastmod>2025-02-03</lastmod>") == 3 and t, "dates are those of the pages")
        assert all(f"<loc>{SITE}{path.replace('&', '&amp;')}</loc>" in text for path in paths) and w.base not in text
        # Nothing is remarked: the pages are the site's.
        eventually(lambda: {item["check"]["state"] for item in server.api("GET", "/v1/checks").json()["checks"]} == {"good"}, "all are kept")
        assert all(not item["check"].get("remarks") for item in server.api("GET", "/v1/checks").json()["checks"]), server.api("GET", "/v1/checks").json()
        # The CMS is gone: all of it is still there, also after a restart.
        cms.answers.clear()
        server.restart()
        assert all(w.get(path).status == 200 for path in paths)


def test_the_date_moves_only_where_the_mapped_content_does(start):
    with Origin() as cms:
        w = World(start, cms)
        w.map += f"map = https://old.example {SITE}\n"
        w.put("/a.xml", urlset(w.base + "/page"))
        w.list("/a.xml")
        w.serve()
        before = eventually(lambda: (r := w.get("/a.xml")).status == 200 and r, "it is served")
        time.sleep(1.1)
        w.put("/a.xml", urlset("https://old.example/page"))
        assert w.poll("/a.xml") == "good"
        after = w.get("/a.xml")
        assert (after.body, after["ETag"], after["Last-Modified"]) == (urlset(SITE + "/page"), before["ETag"], before["Last-Modified"])
        assert "<lastmod>" not in w.index()
        # Nor does the date of the copy, which was written again in another second.
        w.server.restart()
        assert (w.get("/a.xml")["ETag"], w.get("/a.xml")["Last-Modified"]) == (before["ETag"], before["Last-Modified"])
        w.put("/a.xml", urlset(w.base + "/other"))
        assert w.poll("/a.xml") == "good"
        eventually(lambda: w.get("/a.xml").body == urlset(SITE + "/other") and "<lastmod>" in w.index(), "it moved")


def test_another_map_counts_at_once(start):
    """Though the origin answers 304: what is kept of it was read through the map before."""
    with Origin() as cms:
        w = World(start, cms)
        body = urlset(w.base + "/page")

        def tagged(connection, head):
            has = 'If-None-Match: "1"' in head
            connection.sendall(answer(304, b"", ETag='"1"') if has else answer(200, body, ETag='"1"'))

        cms.answers["/a.xml"] = tagged
        cms.answers["/list.xml"] = answer(200, index(SITE + "/a.xml"), ETag='"list"')
        w.map = f"map = https://other.example {SITE}\n"
        server = w.serve()
        eventually(lambda: w.get("/a.xml").body == body, "its pages are not mapped")
        assert w.poll("/a.xml") == "good" and cms.asked[-1].count("If-None-Match") == 1
        w.map = f"map = {w.base} {SITE}\n"
        for restarts in (False, True):
            server.reload(w.config())
            if restarts:
                server.restart()
            assert eventually(lambda: w.poll("/a.xml"), "it is polled") == "good"
            eventually(lambda: w.get("/a.xml").body == urlset(SITE + "/page"), "its pages are")


def test_a_sitemap_that_is_the_list_itself_is_mapped(start):
    with Origin() as cms:
        w = World(start, cms)
        cms.answers["/list.xml"] = answer(200, urlset(w.base + "/page"))
        w.serve()
        eventually(lambda: w.get("/list.xml").body == urlset(SITE + "/page"), "it is served")
        eventually(lambda: f"<loc>{SITE}/list.xml</loc>" in w.index(), "it is listed")


def test_what_is_split_is_mapped(start):
    with Origin() as cms:
        w = World(start, cms)
        w.settings = f"split = {SITE}/all.xml\n"
        pages = [f"{w.base}/page/{i}" for i in range(50001)]
        w.put("/all.xml", urlset(*pages))
        w.list("/all.xml")
        server = w.serve()
        named = lambda: re.findall(f"<loc>{SITE}(/all.*?)</loc>", w.index())
        eventually(lambda: len(named()) > 1, "it is split")
        locs = [loc for path in named() for loc in re.findall("<loc>(.*?)</loc>", w.get(path).body.decode())]
        assert sorted(locs) == sorted(f"{SITE}/page/{i}" for i in range(50001)), server.log()


def test_bad_maps_are_refused(start, tmp_path):
    with Origin() as cms:
        w = World(start, cms)
        for text, why in (
            ("map = https://a.example\n", "must be pairs of origins"),
            ("map = https://a.example https://a.example\n", "maps an origin to itself"),
            ("map = https://a.example/x https://b.example\n", "must be pairs of origins"),
            ("map = https://a.example https://b.example\nmap = https://a.example https://c.example\n", "same first origin twice"),
        ):
            w.map = text
            path = tmp_path / "bad.conf"
            path.write_text(w.config())
            done = sitemapd("check-config", "--config", str(path))
            assert done.code == 1 and why in done.err, done
        # A source with an index is of that index's site; without one its sitemaps are listed in the site of each.
        other = '[site "o"]\norigin = https://o.example\n'
        w.map = f"map = {w.base} https://o.example\n"
        for more, mistake in (("", False), (f"index = {SITE}/sitemap_index.xml\n", True), ("index = https://o.example/sitemap_index.xml\n", False)):
            w.settings = more
            path.write_text(w.config() + other)
            done = sitemapd("check-config", "--config", str(path))
            assert done.code == mistake and ("map leads to https://o.example, which belongs to another site than its index" in done.err) == mistake, done


def test_what_is_broken_at_the_cms_is_reported_with_its_address(start):
    with Origin() as cms:
        w = World(start, cms)
        w.put("/a.xml", urlset(w.base + "/page"))
        w.list("/a.xml")
        server = w.serve()
        before = eventually(lambda: (r := w.get("/a.xml")).status == 200 and r, "it is served")
        cms.answers["/a.xml"] = answer(404)
        assert w.poll("/a.xml") == "gone"
        check = server.api("GET", "/v1/checks").json()["checks"][0]
        assert check["loc"] == SITE + "/a.xml" and check["check"]["detail"].endswith(f"fetched from {w.base}"), check
        assert w.get("/a.xml").body == before.body
        # `probe` shows both forms.
        cms.answers["/a.xml"] = answer(200, urlset(w.base + "/page"))
        done = sitemapd("probe", "cms", "--config", str(server.folder / "sitemapd.conf"))
        assert done.code == 0 and f"{w.base} -> {SITE}" in done.out and f"{w.base}/a.xml is served as {SITE}/a.xml" in done.out, done


def test_a_tenant_maps_nobody_elses_host(start):
    """A one-site token's map leads to its own site alone, is asked at its own upstream alone, and lists nothing of another's."""
    other = "https://www.other.example"
    with Origin() as cms:
        w = World(start, cms)
        config = f'{FETCH}[site "m"]\norigin = {SITE}\nindex = /sitemap_index.xml\ncross_host = {cms.address}:{cms.port}\n[site "o"]\norigin = {other}\nhost_alias = alias.other.example\nindex = /sitemap_index.xml\n'
        w.server = server = w.start(sites=(), config=config)
        token = server.make_token("shop", "--site", SITE, "--role", "admin")
        make = lambda **fields: server.api("POST", "/v1/sources", {"name": "cms", "upstream": w.base + "/list.xml", **fields}, token=token)
        for bad, field in ((["https://a.example"], "map"), ([f"{SITE} {SITE}"], "map"), (["x" * 5000], "map"), (["a\nb"], "map"),
                           ([f"https://a{i}.example {SITE}" for i in range(33)], "map")):
            reply = make(map=bad)
            assert (reply.status, reply.json()["code"], reply.json()["field"]) == (422, "source-malformed", field), reply
        # Not to another site's origin or alias, by any token; not to anybody's host, by a token for one site.
        nobody, www = "https://nobody.example", "http://alias.other.example"
        for to in (other, other.replace("https", "http"), www, nobody):
            reply = make(map=[f"{w.base} {to}"])
            assert (reply.status, reply.json()["code"], reply.json()["field"]) == (422, "outside-site", "map"), reply
        make_any = lambda to: server.api("POST", "/v1/sources", {"name": "all", "upstream": w.base + "/none.xml", "site": SITE, "check": False, "map": [f"{w.base} {to}"]})
        assert [make_any(to).status for to in (other, www, nobody)] == [422, 422, 201]
        assert server.api("DELETE", "/v1/sources/all").status == 204
        cms.answers["/list.xml"] = answer(200, index("https://victim.example/b.xml"))
        w.put("/b.xml", urlset(w.base + "/page"))
        reply = make(map=[f"https://victim.example {SITE}"], serve=True)
        assert reply.status == 201 and reply.json()["map"] == [f"https://victim.example {SITE}"], reply
        reply = server.api("PATCH", "/v1/sources/cms", {"map": [f"{w.base} {other}"]}, token=token)
        assert (reply.status, reply.json()["field"]) == (422, "map"), reply
        # What leads here is fetched from the upstream, whatever it names.
        eventually(lambda: w.get("/b.xml").status == 200, "what leads here is served")
        assert "/b.xml" in cms.paths() and set(cms.paths()) <= {"/list.xml", "/none.xml", "/b.xml"}
        assert b"<loc>" not in ask(server.public, "GET", "/sitemap_index.xml", host="www.other.example").body
        assert ask(server.public, "GET", "/a.xml", host="www.other.example").status == 404
        assert server.api("PATCH", "/v1/sources/cms", {"map": []}, token=token).json()["map"] is None


def test_migrate_says_how_a_headless_cms_is_mirrored(start):
    """The site's index, which its front end passes through, has the CMS's host in it."""
    with Origin() as cms, Origin("127.0.0.3") as front:
        w = World(start, cms)
        site = f"http://{front.address}:{front.port}"
        front.answers["/robots.txt"] = answer(200, f"User-agent: *\nSitemap: {site}/sitemap.xml\n".encode())
        w.put("/a.xml", urlset(w.base + "/page"))
        w.put("/b.xml", urlset(w.base + "/more"))
        cms.answers["/sitemap.xml"] = front.answers["/sitemap.xml"] = answer(200, index(w.base + "/a.xml", w.base + "/b.xml"))
        printed = sitemapd("migrate", site, "--serve", env={"SITEMAPD_FETCH_ALLOW_ADDRESS": "127.0.0.0/8"})
        assert printed.code == 0 and f";map = {w.base} {site}\n" in printed.out, printed
        lines = [line for line in printed.out.splitlines() if not line.startswith("upstream") and not line.startswith("connect")]
        config = "\n".join(line.removeprefix(";") if line.startswith((";upstream", ";map")) else line for line in lines)
        w.server = w.start(sites=(), config=FETCH + config)
        get = lambda path: ask(w.server.public, "GET", path, host=site.removeprefix("http://"))
        eventually(lambda: (get("/a.xml").body, get("/b.xml").body) == (urlset(site + "/page"), urlset(site + "/more")), "both are served")
        assert w.base.encode() not in get("/sitemap.xml").body
