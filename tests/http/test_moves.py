# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sites as programs make them, taken over by the documented steps: `migrate --serve` against the old server, its output as the configuration,
the web server's rules. All sitemaps are then served here, word for word, also once the old server is gone."""

import re
from urllib.parse import quote

import pytest

from harness import ask, eventually, locs, sitemapd
from origin import Origin, answer, index, urlset

HOST = "www.shop.example"
SITE = f"http://{HOST}"
TEXT = b"User-agent: *\nDisallow: /private/\n"


def sitemap(path, date="2026-01-02", site=SITE):
    return urlset(f"{site}/of{re.sub('[^a-z0-9]', '-', path)}", f"{site}/more", lastmod=date)


class Old:
    """The old server of a site: what robots.txt names, its sitemaps, and how the index dates them (None: not at all)."""

    def __init__(self, named, paths, date="2026-02-03T04:05:06Z", robots=True, kind="application/xml"):
        self.named, self.paths, self.date, self.robots, self.kind = named, paths, date, robots, kind

    def fill(self, origin, site=SITE):
        headers = {"Content_Type": self.kind}
        if self.robots:
            origin.answers["/robots.txt"] = answer(200, TEXT + f"Sitemap: {site}{self.named}\n".encode())
        if self.paths:
            members = [site + path.replace("&", "&amp;") for path in self.paths]
            origin.answers[self.named] = answer(200, index(*((loc, self.date) if self.date else loc for loc in members)), **headers)
        for path in self.children():
            origin.answers[path] = answer(200, sitemap(path, site=site), **headers)
        origin.answers["/about"] = answer(200, b"a page")

    def children(self):
        return self.paths or [self.named]


KINDS = {
    "WordPress": Old("/wp-sitemap.xml", ["/wp-sitemap-posts-post-1.xml", "/wp-sitemap-posts-post-2.xml", "/wp-sitemap-users-1.xml"], date=None),
    "Yoast": Old("/sitemap_index.xml", ["/post-sitemap.xml", "/post-sitemap2.xml", "/page-sitemap.xml"], kind="text/xml; charset=UTF-8"),
    "Rank Math": Old("/sitemap_index.xml", ["/post-sitemap1.xml", "/category-sitemap.xml"], kind="text/xml; charset=UTF-8"),
    "Shopify": Old("/sitemap.xml", ["/sitemap_products_1.xml?from=1&to=9", "/sitemap_pages_1.xml?from=2&to=8", "/sitemap_blogs_1.xml"]),
    "Magento": Old("/sitemap.xml", [], robots=False),
    "PrestaShop": Old("/1_index_sitemap.xml", ["/1_en_0_sitemap.xml", "/1_fr_0_sitemap.xml"]),
    "Drupal": Old("/sitemap.xml", ["/sitemap.xml?page=1", "/sitemap.xml?page=2"]),
    "next-sitemap": Old("/sitemap.xml", ["/sitemap-0.xml", "/sitemap-1.xml"]),
    "Hugo": Old("/sitemap.xml", ["/en/sitemap.xml", "/de/sitemap.xml"]),
    "Astro": Old("/sitemap-index.xml", ["/sitemap-0.xml"], date=None),
    "Wix": Old("/sitemap.xml", ["/pages-sitemap.xml", "/blog-posts-sitemap.xml", "/store-products-sitemap.xml"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_site_moves(start, tmp_path, kind):
    old = KINDS[kind]
    with Origin() as origin:
        old.fill(origin)
        connect = f"{origin.address}:{origin.port}"
        migrate = lambda *more: sitemapd("migrate", SITE, "--serve", "--connect", connect, *more)
        printed = migrate()
        assert printed.code == 0, printed
        rules = migrate("--proxy", "nginx").out
        server = start(sites=(), config=printed.out)
        get = lambda path, headers=(): ask(server.public, "GET", path, headers, host=HOST)
        ours = re.search(r"^index = (\S+)$", printed.out, re.M)[1]
        for path in old.children():
            eventually(lambda: get(path).body == sitemap(path), f"{path} is served")
        listed = eventually(lambda: set(locs(get(ours).body)) == {SITE + path for path in old.children()}, "the index lists them")
        assert listed and f"Sitemap: {SITE}{ours}".encode() in get("/robots.txt").body
        # The rules pass on all of that, and no page.
        paths, uris = re.findall(r'location ~ "(.*)" \{', rules), re.findall(r'request_uri ~ "(.*)"\) \{\n    rewrite', rules)
        passes = lambda uri: any(re.search(rule, uri.partition("?")[0]) for rule in paths) or any(re.search(rule, uri) for rule in uris)
        assert all(passes(uri) for uri in [*old.children(), ours, "/robots.txt"]) and not passes("/about") and not passes("/"), rules
        # What changes there changes here, and its date with it.
        first = old.children()[0]
        more = urlset(f"{SITE}/new", f"{SITE}/more", lastmod="2026-03-04")
        origin.answers[first] = answer(200, more)
        assert server.api("POST", f"/v1/checks?loc={quote(SITE + first, safe='')}").status == 200
        eventually(lambda: get(first).body == more, "its new content")
        eventually(lambda: b"2026-03-04" in get(ours).body, "and its date")
        # The old server goes; a restart later all is as it was.
        before = {path: (reply.body, reply["ETag"], reply["Last-Modified"]) for path in old.children() if (reply := get(path)).status == 200}
        assert len(before) == len(old.children())
        origin.answers.clear()
        server.restart()
        assert {path: (reply.body, reply["ETag"], reply["Last-Modified"]) for path in old.children() if (reply := get(path))} == before
        assert all(get(path, {"If-None-Match": before[path][1]}).status == 304 for path in before)
        assert get("/about").status == 404 and get(first + ("&" if "?" in first else "?") + "x=1").status in (200, 404)


def test_a_site_that_is_broken_moves(start):
    """What is printed for it works, says what is broken, and what is good is served; what is not is reported and costs the rest nothing."""
    paths = ["/good.xml", "/gone.xml", "/cut.xml", "/page.xml", "/refused.xml", "/gone.xml?page=2"]
    old = Old("/sitemap_index.xml", paths)
    with Origin() as origin:
        old.fill(origin)
        origin.answers["/gone.xml"] = origin.answers["/gone.xml?page=2"] = answer(404, b"no")
        origin.answers["/cut.xml"] = answer(200, sitemap("/cut.xml")[:-40])
        origin.answers["/page.xml"] = answer(200, b"<!doctype html><html><body>Not found</body></html>", Content_Type="text/html")
        origin.answers["/refused.xml"] = answer(403, b"no")
        printed = sitemapd("migrate", SITE, "--serve", "--sample", "10", "--connect", f"{origin.address}:{origin.port}")
        assert printed.code in (0, 1), printed
        result = printed.out + printed.err
        assert all(re.search(rf"^; - {SITE}{re.escape(path)}: ", result, re.M) for path in ("/gone.xml", "/cut.xml", "/page.xml", "/refused.xml")), result
        server = start(sites=(), config=printed.out)
        get = lambda path: ask(server.public, "GET", path, host=HOST)
        eventually(lambda: get("/good.xml").body == sitemap("/good.xml"), "what is good is served")
        ours = re.search(r"^index = (\S+)$", printed.out, re.M)[1]
        eventually(lambda: len(locs(get(ours).body)) == len(paths), "all are listed: crawlers may get what polls do not")
        states = lambda: {c["loc"].removeprefix(SITE): c["check"]["state"] for c in server.api("GET", "/v1/checks").json()["checks"]}
        wanted = {"/good.xml": "good", "/gone.xml": "gone", "/gone.xml?page=2": "gone", "/cut.xml": "broken", "/page.xml": "not-a-sitemap", "/refused.xml": "refused"}
        eventually(lambda: states() == wanted, "each is reported")
        assert "source-checks" in {r["code"] for r in server.api("GET", "/readyz").json()["reasons"]}
        for path in set(paths) - {"/good.xml"}:
            assert get(path).status == 503, path
        # Each is served once it is mended, and stays when it breaks again.
        origin.answers["/cut.xml"] = answer(200, sitemap("/cut.xml"))
        assert server.api("POST", f"/v1/checks?loc={SITE}/cut.xml").json()["check"]["state"] == "good"
        origin.answers.clear()
        assert get("/cut.xml").body == sitemap("/cut.xml") and get("/good.xml").status == 200
