# SPDX-License-Identifier: LicenseRef-Undeclared
"""Pages: where one ends and the next begins, what a change touches, what a site may have."""

import json
import re

import pytest

from harness import (
    HEAD, INDEX, ORIGIN, PAGE_ENTRIES, PLAIN, TAIL, escape, gunzip, locs, problem, q, render, sitemapd,
)

XML = "/sitemap_index.xml"
LIMIT_BYTES = 52428800
LONGEST_DATE = "2026-01-31T10:20:30.123456789+01:00"
GZIP = {"Accept-Encoding": "gzip"}
# Full pages by bytes are 52 MB of XML each; under a sanitizer one of them is enough.


def path_of(number, gz=""):
    return f"/sitemap_index-{number}.xml{gz}" if number > 1 else XML + gz


def weight(loc):
    """What an entry counts for: its line with the longest date, whether it has one or not."""
    return len(f"<sitemap><loc>{escape(loc)}</loc><lastmod>{LONGEST_DATE}</lastmod></sitemap>\n")


def lines(entries):
    return "".join(json.dumps(e) + "\n" for e in entries)


def tags(server, *numbers):
    found = {}
    for number in numbers:
        for gz in ("", ".gz"):
            reply = server.get(path_of(number, gz), GZIP)
            found[number, gz] = reply["ETag"] if reply.status == 200 else reply.status
    return found


def changed(before, after):
    return sorted({number for number, _ in before if any(before[number, gz] != after[number, gz] for gz in ("", ".gz"))})


def remove(server, loc):
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204


def sitemaps_of(server, **more):
    return re.findall(r"^Sitemap: (\S+)$", server.get("/robots.txt", **more).body.decode(), re.M)


def at_positions(server, positions, name="p"):
    """Entries at these positions, by `import` beside the running server; the loc shows which."""
    rows = [{"loc": f"{ORIGIN}/{name}/{p}.xml", "position": p} for p in positions]
    done = server.cli("import", "--index", INDEX, "-", input=lines(rows))
    assert done.code == 0, done
    # A write of our own is answered only after what was before it is published.
    last = server.register(rows[-1]["loc"])
    assert last.status == 200, last
    return [r["loc"] for r in rows]


def cap(server, count):
    site = server.api("GET", "/v1/sites").json()["sites"][0]
    reply = server.api("PATCH", f"/v1/sites/{site['id']}", {"max_indexes": count})
    assert reply.status == 200 and reply.json()["max_indexes"] == count, reply


# ---- where a page ends --------------------------------------------------------------------------


@pytest.mark.masses
def test_both_limits_met_by_the_same_entry(server):
    """50,000 entries that fill the page to its last byte; one byte more, and it holds 49,999."""
    loc = lambda i, length: f"{ORIGIN}/{i:05d}/".ljust(length, "a")
    room = LIMIT_BYTES - len(HEAD) - len(TAIL)
    length = (room - PAGE_ENTRIES * weight("")) // PAGE_ENTRIES
    names = [loc(i, length) for i in range(PAGE_ENTRIES)]
    rest = room - sum(map(weight, names))
    assert 0 <= rest < PAGE_ENTRIES
    names = [n + "b" if i < rest else n for i, n in enumerate(names)]
    assert sum(map(weight, names)) == room
    entries = [{"loc": n, "lastmod": LONGEST_DATE} for n in names]
    assert server.bulk(entries).json()["created"] == PAGE_ENTRIES
    page = server.get(XML).body
    assert len(page) == LIMIT_BYTES and page.count(b"<loc>") == PAGE_ENTRIES
    assert page == render([(n, LONGEST_DATE) for n in names])
    assert server.get(path_of(2)).status == 404
    assert server.register(f"{ORIGIN}/x.xml").json()["sitemap"]["page"] == 2

    # Free one place, and come back with one byte more than left: there is a position, but no room.
    before = tags(server, 1, 2)
    remove(server, names[77])
    fat, fits = names[77] + "c", f"{ORIGIN}/77.xml"
    assert server.register(fat).json()["sitemap"]["page"] == 2
    assert changed(before, tags(server, 1, 2)) == [1, 2]
    assert server.register(fits).json()["sitemap"]["page"] == 1
    page = locs(server.get(XML, GZIP).xml())
    assert page[77] == fits and len(page) == PAGE_ENTRIES
    assert locs(server.get(path_of(2)).body) == [f"{ORIGIN}/x.xml", fat]


@pytest.mark.masses
def test_the_byte_limit_with_the_longest_locs_full_of_ampersands(server):
    """2,047 characters, nearly all of them `&`: each counts for five in the page."""
    make = lambda i: f"{ORIGIN}/{i:05d}?".ljust(2047, "&")
    per_page = (LIMIT_BYTES - len(HEAD) - len(TAIL)) // weight(make(0))
    pages = 3 if PLAIN else 2
    names = [make(i) for i in range((pages - 1) * per_page + 3)]
    answer = server.bulk(names).json()
    assert answer["created"] == len(names), answer
    for number in range(1, pages + 1):
        mine = names[(number - 1) * per_page : number * per_page]
        xml = gunzip(server.get(path_of(number, ".gz")).body)
        assert len(xml) <= LIMIT_BYTES and locs(xml) == mine, number
    # Room for a short one is left behind the long ones; and the long one that goes is replaced.
    short = f"{ORIGIN}/short.xml"
    assert server.register(short).json()["sitemap"]["page"] == 1
    assert locs(server.get(XML, GZIP).xml()) == names[:per_page] + [short]
    remove(server, names[5])
    again = server.register(make(99999)).json()["sitemap"]
    assert again["page"] == (1 if per_page * weight(make(0)) + weight(short) + len(HEAD) + len(TAIL) <= LIMIT_BYTES else pages)


def test_page_names_and_the_page_beyond_the_last(server):
    names = [f"{ORIGIN}/s/{i:06d}.xml" for i in range(2 * PAGE_ENTRIES + 1)]
    assert server.bulk(names).json()["created"] == len(names)
    for number in (1, 2, 3):
        mine = names[(number - 1) * PAGE_ENTRIES : number * PAGE_ENTRIES]
        plain, packed = server.get(path_of(number)), server.get(path_of(number, ".gz"))
        assert plain.status == packed.status == 200
        assert plain.body == gunzip(packed.body) == render([(n, None) for n in mine]), number
        assert packed["Content-Type"] == "application/gzip" and packed["Content-Encoding"] is None
    for path in (path_of(4), path_of(4, ".gz"), path_of(500), "/sitemap_index-0.xml", "/sitemap_index-1.xml",
                 "/sitemap_index-02.xml", "/sitemap_index-+2.xml", "/sitemap_index-2.XML", "/sitemap_index-2.xml.gz.gz",
                 "/sitemap_index-4294967298.xml", "/sitemap_index-.xml",
                 "//sitemap_index-2.xml", "/sitemap_index-2.xml/"):
        assert server.get(path).status == 404, path
    assert server.get(path_of(2) + "?page=1").body == server.get(path_of(2)).body
    assert sitemaps_of(server) == [ORIGIN + path_of(n) for n in (1, 2, 3)]

    # Each change touches exactly the page that it is in; nothing else moves.
    one = tags(server, 1, 2, 3)
    remove(server, names[PAGE_ENTRIES + 17])
    two = tags(server, 1, 2, 3)
    assert changed(one, two) == [2]
    remove(server, names[400])
    remove(server, names[30])
    three = tags(server, 1, 2, 3)
    assert changed(two, three) == [1]
    # Free positions are taken lowest first, over all pages.
    for expected in (30, 400, PAGE_ENTRIES + 17):
        before = tags(server, 1, 2, 3)
        loc = f"{ORIGIN}/new/{expected}.xml"
        assert server.register(loc).json()["sitemap"]["page"] == expected // PAGE_ENTRIES + 1
        assert changed(before, tags(server, 1, 2, 3)) == [expected // PAGE_ENTRIES + 1]
        names[expected] = loc
    for number in (1, 2, 3):
        assert locs(server.get(path_of(number), GZIP).xml()) == names[(number - 1) * PAGE_ENTRIES : number * PAGE_ENTRIES], number
    # A change that is undone gets its old tags back, on its page.
    before = tags(server, 1, 2, 3)
    assert server.register(names[0], lastmod="2026-01-31").status == 200
    assert changed(before, tags(server, 1, 2, 3)) == [1]
    assert server.register(names[0], lastmod=None).status == 200
    assert tags(server, 1, 2, 3) == before


def test_an_emptied_middle_page_keeps_its_place(server):
    names = at_positions(server, [0, PAGE_ENTRIES, PAGE_ENTRIES + 1, 2 * PAGE_ENTRIES])
    before = tags(server, 1, 2, 3)
    assert sitemaps_of(server) == [ORIGIN + path_of(n) for n in (1, 2, 3)]
    remove(server, names[1])
    assert changed(before, tags(server, 1, 2, 3)) == [2]
    remove(server, names[2])
    after = tags(server, 1, 2, 3)
    assert after[2, ""] == after[2, ".gz"] == 404 and server.get(path_of(2))["Cache-Control"] == "no-store"
    assert changed(before, after) == [2], "page 3 is not renamed"
    assert sitemaps_of(server) == [ORIGIN + path_of(n) for n in (1, 3)]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]
    assert [p["number"] for p in index["pages"]] == [1, 3] and index["entries"] == 2
    server.restart()
    assert tags(server, 1, 2, 3) == after and sitemaps_of(server) == [ORIGIN + path_of(n) for n in (1, 3)]
    back = at_positions(server, [PAGE_ENTRIES], "p")
    assert locs(server.get(path_of(2)).body) == back and sitemaps_of(server) == [ORIGIN + path_of(n) for n in (1, 2, 3)]
    # The first page may empty, too.
    remove(server, names[0])
    assert server.get(XML).status == 404 and server.get(path_of(3)).status == 200
    assert sitemaps_of(server) == [ORIGIN + path_of(n) for n in (2, 3)]
    assert server.register(f"{ORIGIN}/first.xml").json()["sitemap"]["page"] == 1


# ---- how many pages a site may have -------------------------------------------------------------


def test_the_cap_of_a_site_counts_all_its_indexes(server):
    cap(server, 3)
    for name in "abcd":
        assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/{name}/index.xml"}).status == 201
    for name in "ab":
        reply = server.register(f"{ORIGIN}/{name}/1.xml")
        assert reply.status == 201 and reply.json()["sitemap"]["warnings"] == []
    third = server.register(f"{ORIGIN}/c/1.xml")
    assert third.status == 201 and third.json()["sitemap"]["warnings"] == ["pages-nearly-used-up"], "from 90 % on"
    assert server.register(f"{ORIGIN}/c/2.xml").status == 201, "a page that is there takes more"
    state = server.cli("export").out, server.metrics()["sitemapd_catalogue_revision"]

    problem(server.register(f"{ORIGIN}/d/1.xml"), 422, "too-many-pages")
    # A list goes whole or not at all, also what would have had room.
    rows = [f"{ORIGIN}/a/2.xml", f"{ORIGIN}/d/1.xml", f"{ORIGIN}/a/3.xml", f"{ORIGIN}/d/2.xml"]
    reply = server.bulk(rows)
    found = problem(reply, 422)
    assert [(r["line"], r["code"]) for r in found["rejected"]] == [(2, "too-many-pages"), (4, "too-many-pages")], found
    problem(server.replace([f"{ORIGIN}/d/1.xml"], index="/d/index.xml"), 422)
    refused = server.cli("add", f"{ORIGIN}/d/1.xml")
    assert refused.code == 1 and "too-many-pages" in refused.err + refused.out, refused
    assert (server.cli("export").out, server.metrics()["sitemapd_catalogue_revision"]) == state, "nothing lost, nothing done"
    skipped = server.bulk(rows, "/v1/sitemaps?on_error=skip").json()
    assert skipped["created"] == 2 and [r["line"] for r in skipped["rejected"]] == [2, 4]

    # A page that empties makes room; a move may empty the page it comes from.
    reply = server.register(f"{ORIGIN}/b/1.xml", index=INDEX)
    assert reply.status == 200, reply
    assert server.get("/b/index.xml").status == 404 and server.get(XML).status == 200
    problem(server.register(f"{ORIGIN}/d/1.xml"), 422, "too-many-pages")
    remove(server, f"{ORIGIN}/b/1.xml")
    assert server.register(f"{ORIGIN}/d/1.xml").status == 201
    # A higher cap opens it; a lower one takes nothing away.
    cap(server, 4)
    assert server.register(f"{ORIGIN}/1.xml").status == 201
    cap(server, 2)
    assert len(sitemaps_of(server)) == 4 and server.register(f"{ORIGIN}/2.xml").status == 201
    problem(server.register(f"{ORIGIN}/b/1.xml"), 422, "too-many-pages")


def test_the_501st_index_file_is_refused(server):
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/shop/index.xml"}).status == 201
    at_positions(server, [n * PAGE_ENTRIES for n in range(448)])
    assert server.register(f"{ORIGIN}/a.xml").json()["sitemap"]["warnings"] == []
    # Who registers in lists hears of it as well, once for the site.
    result = lambda rows: server.bulk(rows).json()["warnings"]
    assert result([f"{ORIGIN}/l/1.xml"]) == []
    at_positions(server, [448 * PAGE_ENTRIES])
    assert server.register(f"{ORIGIN}/b.xml").json()["sitemap"]["warnings"] == []
    at_positions(server, [449 * PAGE_ENTRIES])
    assert server.register(f"{ORIGIN}/c.xml").json()["sitemap"]["warnings"] == ["pages-nearly-used-up"]
    assert result([f"{ORIGIN}/l/2.xml", f"{ORIGIN}/l/3.xml"]) == [{"line": 0, "loc": None, "codes": ["pages-nearly-used-up"]}]
    assert result([f"{ORIGIN}/l/2.xml"]) == [], "nothing was changed"
    warned = server.cli("add", f"{ORIGIN}/l/4.xml"), server.cli("import", "--index", INDEX, "-", input=f"{ORIGIN}/l/5.xml\n")
    assert all(done.code == 0 and done.err.count("pages-nearly-used-up") == 1 for done in warned), warned
    at_positions(server, [n * PAGE_ENTRIES for n in range(450, 500)])
    assert len(sitemaps_of(server)) == 500
    assert locs(server.get(path_of(500)).body) == [f"{ORIGIN}/p/{499 * PAGE_ENTRIES}.xml"]
    problem(server.register(f"{ORIGIN}/shop/a.xml"), 422, "too-many-pages")
    done = server.cli("import", "--index", INDEX, "-", input=lines([{"loc": f"{ORIGIN}/x.xml", "position": 500 * PAGE_ENTRIES}]))
    assert done.code == 1 and "position" in done.err + done.out, done
    assert len(sitemaps_of(server)) == 500 and server.get(path_of(501)).status == 404
    assert server.cli("check").code == 0


# ---- names that two things would have -----------------------------------------------------------


def test_a_page_name_cannot_be_registered(server):
    cap(server, 7)
    for loc in (path_of(1), path_of(2), path_of(7), path_of(1, ".gz"), path_of(7, ".gz"), "/./sitemap_index-3.xml"):
        problem(server.register(ORIGIN + loc), 422, "loc-is-index-page")
    for loc in (path_of(8), "/sitemap_index-1.xml", "/sitemap_index-02.xml", path_of(2) + "?page=1", "/Sitemap_index-2.xml"):
        assert server.register(ORIGIN + loc).status == 201, loc
    # The cap decides which names are taken: raised, it would cover /sitemap_index-8.xml.
    site = server.api("GET", "/v1/sites").json()["sites"][0]
    problem(server.api("PATCH", f"/v1/sites/{site['id']}", {"max_indexes": 8}), 422, "index-covers-loc")
    remove(server, ORIGIN + path_of(8))
    cap(server, 8)
    problem(server.register(ORIGIN + path_of(8)), 422, "loc-is-index-page")
    # Lists and the command line see the same.
    found = problem(server.bulk([f"{ORIGIN}/ok.xml", ORIGIN + path_of(4)]), 422)
    assert [(r["line"], r["code"]) for r in found["rejected"]] == [(2, "loc-is-index-page")]
    assert "loc-is-index-page" in server.cli("add", ORIGIN + path_of(4)).err


@pytest.mark.parametrize("by", ["api", "cli"])
def test_an_index_whose_pages_would_cover_a_child_needs_a_pattern(server, by):
    def add(url, pattern=None):
        if by == "api":
            reply = server.api("POST", "/v1/indexes", {"url": url, **({"page_pattern": pattern} if pattern else {})})
            if reply.status == 201:
                assert reply.json()["page_pattern"] == (pattern or "{stem}-{n}{suffix}")
                return None
            return problem(reply, 422)["code"]
        done = server.cli("index", "add", url, *(["--pattern", pattern] if pattern else []))
        return None if done.code == 0 else done.err

    # Real sites have children of such names.
    for child in ("/news/sitemap-2.xml", "/news/sitemap-9.xml.gz", "/news/sitemap-501.xml"):
        assert server.register(ORIGIN + child).status == 201
    assert "index-covers-loc" in add(f"{ORIGIN}/news/sitemap.xml")
    for bad in ("x", "{stem}{suffix}", "{stem}{n}{suffix}", "{n}-{stem}{suffix}", "{stem}/{n}{suffix}", "{stem}?{n}{suffix}", "{stem}-{n}", "{stem}%2d{n}{suffix}"):
        assert "index-pattern" in add(f"{ORIGIN}/news/sitemap.xml", bad), bad
    assert add(f"{ORIGIN}/news/sitemap.xml", "{stem}_page{n}.index{suffix}") is None
    # Another index whose pages would be this one's.
    assert "index-covers-index" in add(f"{ORIGIN}/news/sitemap_page7.index.xml")
    assert add(f"{ORIGIN}/news/sitemap_page7.xml") is None
    loc = f"{ORIGIN}/news/sitemap-2.xml"
    moved = server.register(loc, index=f"{ORIGIN}/news/sitemap.xml")
    assert moved.status == 200 and moved.json()["sitemap"]["index"] == f"{ORIGIN}/news/sitemap.xml"
    problem(server.register(f"{ORIGIN}/news/sitemap_page2.index.xml"), 422, "loc-is-index-page")
    # The pattern names the second page.
    rows = [{"loc": f"{ORIGIN}/news/{p}.xml", "position": p} for p in (1, PAGE_ENTRIES)]
    assert server.cli("import", "--index", f"{ORIGIN}/news/sitemap.xml", "-", input=lines(rows)).code == 0
    assert server.register(loc).status == 200
    assert locs(server.get("/news/sitemap_page2.index.xml").body) == [rows[1]["loc"]]
    assert gunzip(server.get("/news/sitemap_page2.index.xml.gz").body) == server.get("/news/sitemap_page2.index.xml").body
    assert server.get("/news/sitemap-2.xml").status == 404, "a child is not ours to serve"
    assert f"{ORIGIN}/news/sitemap_page2.index.xml" in sitemaps_of(server)
    listed = [json.loads(l) for l in sitemapd("index", "list", "--json", database=server.database).out.splitlines()]
    assert {i["url"]: i["page_pattern"] for i in listed}[f"{ORIGIN}/news/sitemap.xml"] == "{stem}_page{n}.index{suffix}"
