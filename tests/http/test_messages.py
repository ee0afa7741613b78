# SPDX-License-Identifier: LicenseRef-Undeclared
"""Mistakes of newcomers, and the program's messages: what is wrong and what to do."""

import json

import pytest

from harness import INDEX, ORIGIN, ask, sitemapd

NBSP, BOM = "\u00a0", "\ufeff"
CDN = "https://cdn.example.net"


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "own.db")
    assert sitemapd("site", "add", ORIGIN, database=path).code == 0
    return path


WRONG = [
    ("http://www.example.com/a.xml", "outside-site", "is http, but its site is https: write https"),
    (f"{ORIGIN}:8443/a.xml", "outside-site", "is on another port than its site"),
    (f"{CDN}/a.xml", "site-unknown", "a site's file on another host (a CDN), add that host to the site's cross hosts"),
    (f"Sitemap: {ORIGIN}/a.xml", "loc-space", "is a line of a robots.txt; give its URL alone"),
    (f"sitemap:{ORIGIN}/a.xml", "loc-scheme", "is a line of a robots.txt; give its URL alone"),
    ("https://www.example.com./x.xml", "loc-host", "has a dot after its host; remove the dot"),
    ("https://www.example.com../x.xml", "loc-host", "has no valid host"),
    ("ask by mail", "loc-space", "is text, not a URL; it must be an absolute URL (https://host/path)"),
    (f"{ORIGIN}/my file.xml", "loc-space", "has a raw space; write %20"),
    (f" {ORIGIN}/a.xml", "loc-space", "has white space around it"),
    (f"{NBSP}{ORIGIN}/a.xml", "loc-malformed", "maybe invisible (U+00A0); remove it"),
    (f"{ORIGIN}/a.xml{NBSP}", "loc-space", "maybe invisible (U+00A0); remove it"),
    (f"{ORIGIN}/a.xml\u200b", "loc-space", "white space around it"),
    (f"{ORIGIN}/a\u2003b.xml", "loc-space", "has the character U+2003 em space in it, which is invisible"),
    (f"{ORIGIN}/a\u200cb.xml", "loc-space", "has the character U+200C zero width non-joiner in it"),
    (f"{ORIGIN}/a\u00adb.xml", "loc-space", "has the character U+00AD soft hyphen in it"),
    (f"{ORIGIN}/a\u202eb.xml", "loc-space", "has the character U+202E right-to-left override in it"),
    ("/a.xml", "loc-relative", "must be an absolute URL"),
]


@pytest.mark.parametrize("body, sentence", [
    ({"loc": 123}, "loc must be a string"),
    ({"loc": f"{ORIGIN}/a.xml", "lastmod": 20260131}, "lastmod must be a string, or null"),
    ({"loc": f"{ORIGIN}/a.xml", "digest": True}, "digest must be a string, or null"),
    ({"loc": f"{ORIGIN}/a.xml", "index": {}}, "index must be a string"),
], ids=lambda value: json.dumps(value)[:40])
def test_the_supported_content_types_are_named(server, body, sentence):
    reply = server.api("POST", "/v1/sitemaps", body)
    assert (reply.status, reply.json()["code"], reply.json()["detail"]) == (422, "wrong-type", sentence), reply
    reply = server.bulk([body])
    assert reply.json()["rejected"][0]["detail"] == sentence, reply


def test_a_parameter_that_is_yes_or_no(server):
    reply = server.api("POST", "/v1/sitemaps?dry_run=true", {"loc": f"{ORIGIN}/a.xml"})
    assert (reply.status, reply.json()["field"], reply.json()["detail"]) == (400, "dry_run", "must be 0 or 1"), reply


@pytest.mark.parametrize("loc, code, words", WRONG, ids=[repr(w[0]) for w in WRONG])
def test_an_invalid_loc(server, database, tmp_path, loc, code, words):
    result = sitemapd("add", loc, database=database)
    assert result.code == 1 and words in result.err and f"({code})" in result.err, result
    reply = server.register(loc)
    assert reply.status == 422 and reply.json()["code"] == code and words in reply.json()["detail"], reply
    reply = server.bulk([loc])
    assert reply.status == 422 and words in reply.json()["rejected"][0]["detail"], reply
    reply = server.replace([loc])
    words = "is on another host than its index or urlset" if code == "site-unknown" else words  # one is named
    assert reply.status == 422 and words in reply.json()["rejected"][0]["detail"], reply
    words = next(w for l, c, w in WRONG if l == loc)
    if "white space" in words or "U+00A0" in words:
        return
    path = tmp_path / "list"
    path.write_text(f"{ORIGIN}/good.xml\n{loc}\n")
    for replace in ((), ("--replace",)):
        result = sitemapd("import", *replace, path, database=database)
        assert result.code == 1 and words in result.err and f"({code})" in result.err, result


# White_Space and format characters (Cf): one rule for all of them.
HIDDEN = ["\u1680", *map(chr, range(0x2000, 0x2010)), "\u2028", "\u2029", "\u202a", "\u202e", "\u202f", "\u205f", "\u2060", "\u2069", "\u00ad", "\u061c", "\u180e", "\ufff9", "\U000e0020", "\U0001d173", "\u0085"]


@pytest.mark.parametrize("pad", [NBSP, BOM + " ", "\u200b", "\u3000\t", *HIDDEN, "".join(HIDDEN)], ids=ascii)
def test_invisible_padding_is_padding(database, tmp_path, pad):
    path = tmp_path / "list"
    path.write_text(f"{ORIGIN}/a.xml\n{pad}{ORIGIN}/b.xml{pad}\n{pad}\n")
    result = sitemapd("import", path, database=database)
    assert result.code == 0 and "(loc-padded): 1 in all, first in line 2" in result.err, result
    path.write_text(f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>{pad}{ORIGIN}/c.xml{pad}</loc></sitemap></sitemapindex>')
    result = sitemapd("import", path, database=database)
    assert result.code == 0 and "(loc-padded)" in result.err, result
    assert [e["loc"] for e in sitemapd("export", database=database).lines()] == [f"{ORIGIN}/{n}.xml" for n in "abc"]


def test_without_a_site_each_way_says_how_to_make_one(start, tmp_path):
    server = start(sites=())
    loc, make = ORIGIN + "/a.xml", f"`sitemapd site add {ORIGIN}`"
    detail = "belongs to no site: the catalogue has no sites; create one first (`sitemapd site add ORIGIN`, or POST /v1/sites)"
    assert detail in server.register(loc).json()["detail"]
    assert server.bulk([loc]).json()["rejected"][0]["detail"] == detail
    for result in (server.cli("add", loc), server.cli("import", "-", input=loc + "\n"), server.cli("import", "--replace", "-", input=loc + "\n")):
        assert result.code == 1 and "no site: the catalogue has no sites" in result.err and make in result.err and "cross-host" not in result.err, result
    assert "no site yet; create one with `sitemapd site add ORIGIN`" in server.cli("list").err
    ready = lambda: ask(server.admin, "GET", "/readyz", host=server.admin).json()
    assert ready()["status"] == "degraded" and [r["code"] for r in ready()["reasons"]] == ["no-site"]
    verbose = server.api("GET", "/readyz?verbose", token=None)
    lines = ["[+]catalogue ok", "[+]shared ok", "[-]sites: no-site", "[+]clock ok", "[+]sources ok", "[+]engines ok", "[+]frozen ok", "[+]configuration ok", "[+]shutdown ok", "readyz check passed (degraded)"]
    assert (verbose.status, verbose.body.decode().splitlines(), verbose["Content-Type"].split(";")[0]) == (200, lines, "text/plain")
    assert server.api("POST", "/v1/sites", {"origin": ORIGIN}).status == 201
    assert ready()["status"] == "ok"
    assert "register one with" in server.cli("list").err


def test_a_child_on_a_cdn_needs_a_cross_host_and_not_a_site(database, tmp_path):
    hint = f"`sitemapd site update ORIGIN --add-cross-host cdn.example.net`, then --index URL"
    assert hint in sitemapd("add", f"{CDN}/a.xml", database=database).err
    assert hint in sitemapd("import", "-", input=f"{CDN}/a.xml\n", database=database).err
    result = sitemapd("add", f"{CDN}/a.xml", "--index", INDEX, database=database)
    assert result.code == 1 and "--add-cross-host" in result.err
    # As it says, it works.
    assert sitemapd("site", "update", ORIGIN, "--add-cross-host", "cdn.example.net", database=database).code == 0
    assert sitemapd("add", f"{CDN}/a.xml", "--index", INDEX, database=database).code == 0


@pytest.mark.parametrize(
    "lastmod, code, words",
    [
        ("yesterday", "lastmod-invalid", "such as 2026-11-21 or 2026-11-21T08:30:00Z"),
        ("21.11.2026", "lastmod-invalid", "such as 2026-11-21"),
        ("2026-11-21T08:30:00", "lastmod-no-zone", "2026-11-21T08:30:00+01:00"),
        ("2096-11-21", "lastmod-in-future", "more than a day in the future"),
    ],
)
def test_a_dropped_lastmod_says_so(database, tmp_path, lastmod, code, words):
    path = tmp_path / "x"
    path.write_text(f'{{"loc": "{ORIGIN}/a.xml", "lastmod": "{lastmod}"}}\n')
    result = sitemapd("import", path, database=database)
    assert result.code == 0 and f"({code})" in result.err and "the lastmod was dropped: " in result.err and words in result.err, result
    assert sitemapd("export", database=database).lines()[0]["lastmod"] is None


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_body_whose_line_ends_curl_took_away(server, kind):
    body = "".join(f'{{"loc": "{ORIGIN}/{i}.xml"}}' for i in range(3)).encode()
    reply = server.api("POST", "/v1/sitemaps", body=body, content_type=kind)
    assert reply.status in (400, 422) and b"--data-binary" in reply.body, reply


def test_types_and_lines_that_the_api_does_not_take(server):
    body = f"{ORIGIN}/a.xml\n".encode()
    reply = server.api("POST", "/v1/sitemaps", body=body, content_type="application/x-www-form-urlencoded")
    assert reply.status == 415 and "-H 'Content-Type: application/json' --data-binary @FILE" in reply.json()["detail"]
    reply = server.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson")
    assert reply.status == 422 and '{"loc": "https://..."}' in reply.json()["rejected"][0]["detail"]


def test_a_server_without_a_site_says_so(start):
    server = start(sites=())
    for target in ("/", "/sitemap_index.xml", "/robots.txt"):
        reply = server.get(target)
        assert reply.status == 421 and b"no site here yet; `sitemapd site add ORIGIN` creates one" in reply.body, reply
    server.wait_for_log("no-site: there is no site yet")
    assert server.api("POST", "/v1/sites", {"origin": ORIGIN}).status == 201
    assert server.get("/robots.txt").status == 200
    server.restart()
    assert server.log().count("no-site") == 1, "once there is one, nothing is said"


def test_what_import_cannot_reach(database):
    result = sitemapd("import", "http://127.0.0.1:9/sitemap_index.xml", database=database)
    assert result.code == 1 and "127.0.0.1 is not a public internet address; only [fetch] allow_address of the configuration can allow it" in result.err
    sitemapd("site", "add", "https://shop.example.org", database=database)
    result = sitemapd("import", "--index", "/sitemap_index.xml", "-", input="", database=database)
    assert result.code == 1 and "a path is only valid with exactly one site; give the URL of an index" in result.err
