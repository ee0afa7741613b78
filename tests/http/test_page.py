# SPDX-License-Identifier: LicenseRef-Undeclared
"""The public listener: index pages and robots.txt, byte for byte and header for header."""

import email.utils
import os
import random
import re
import subprocess
import time

import pytest

from harness import (
    DATA, ETAG, HOST, INDEX, ORIGIN, PAGE_ENTRIES, PUBLIC_CACHE, PLAIN, Connection, ask, ask_raw, eventually, gunzip, locs,
    render, request_bytes, q,
)

XML = "/sitemap_index.xml"
GZ = "/sitemap_index.xml.gz"
SHARED_SCHEMA = os.path.join(
    os.environ.get("SITEMAPD_SAMPLES", os.path.join(DATA, "../../../../shared")), "data", "siteindex.xsd"
)


@pytest.fixture(scope="module")
def filled(shared):
    """Three entries, the last change a while ago, so that no second is shared with an earlier one."""
    for name in ("a", "b", "c"):
        assert shared.register(f"{ORIGIN}/{name}.xml", lastmod="2026-01-01T00:00:00Z").status == 201
    time.sleep(1.1)
    assert shared.register(f"{ORIGIN}/d.xml").status == 201
    time.sleep(1.1)
    return shared


def valid(xml):
    schemas = [os.path.join(DATA, "siteindex.xsd")] + [SHARED_SCHEMA] * os.path.exists(SHARED_SCHEMA)
    for schema in schemas:
        done = subprocess.run(["xmllint", "--noout", "--schema", schema, "-"], input=xml, capture_output=True)
        assert done.returncode == 0, done.stderr[-500:]


# ---- the document -------------------------------------------------------------------------------


def test_golden_xml(server):
    for loc, lastmod in (
        ("/plain.xml", None),
        ("/dated.xml", "2026-01-31"),
        ("/minutes.xml", "2026-01-31T10:20+02:00"),
        ("/seconds.xml.gz", "2026-01-31T10:20:30Z"),
        ("/fraction.xml", "2026-01-31T10:20:30.1234567891-14:00"),
        ("/year.xml", "2020"),
        ("/month.xml", "2020-05"),
        ("/s?a=1&b='2'&c=(3)", None),
        ("/grüße.xml", None),
        ("/deep/./x/../er/%7Etilde.xml", None),
    ):
        assert server.register(ORIGIN + loc, **({"lastmod": lastmod} if lastmod else {})).status == 201
    with open(os.path.join(DATA, "golden.xml"), "rb") as file:
        golden = file.read()
    assert server.get(XML).body == golden
    assert gunzip(server.get(XML, {"Accept-Encoding": "gzip"}).body) == golden
    assert gunzip(server.get(GZ).body) == golden
    valid(golden)


def test_valid_with_2000_entries_after_random_adds_and_removals(server):
    chance = random.Random(20260131)
    names = [f"{ORIGIN}/s/{i:05d}.xml?a=1&b={i}" for i in range(2000)]
    assert server.bulk([{"loc": n, "lastmod": "2026-01-31T10:20:30+01:00"} for n in names]).status == 200
    valid(server.get(XML).body)
    for name in chance.sample(names, 120):
        reply = server.api("DELETE", "/v1/sitemaps?loc=" + name.replace("&", "%26").replace("?", "%3F"))
        assert reply.status == 204, reply
    assert server.bulk([f"{ORIGIN}/t/{i}.xml" for i in range(50)]).status == 200
    xml = server.get(XML).body
    valid(xml)
    assert len(locs(xml)) == 2000 - 120 + 50
    # A free position is taken again, lowest first; what stays does not move.
    stay = [loc for loc in locs(xml) if "/s/" in loc]
    assert stay == sorted(stay)


def test_valid_with_50000_entries_and_the_next_page(server):
    names = [f"{ORIGIN}/s/{i:05d}.xml" for i in range(PAGE_ENTRIES)]
    assert server.bulk([{"loc": n, "lastmod": "2026-01-31"} for n in names]).status == 200
    full = server.get(XML).body
    assert full == render([(n, "2026-01-31") for n in names])
    valid(full)
    assert gunzip(server.get(XML, {"Accept-Encoding": "gzip"}).body) == full
    assert server.get("/sitemap_index-2.xml").status == 404

    tag = server.get(XML)["ETag"]
    assert server.register(f"{ORIGIN}/one-more.xml").status == 201
    assert server.get(XML)["ETag"] == tag, "a registration touches one page"
    second = server.get("/sitemap_index-2.xml")
    assert second.status == 200 and second.body == render([(f"{ORIGIN}/one-more.xml", None)])
    assert gunzip(server.get("/sitemap_index-2.xml.gz").body) == second.body
    robots = server.get("/robots.txt").body.decode()
    assert f"Sitemap: {INDEX}\n" in robots and f"Sitemap: {ORIGIN}/sitemap_index-2.xml\n" in robots
    for path in ("/sitemap_index-1.xml", "/sitemap_index-02.xml", "/sitemap_index-3.xml", "/sitemap_index-2.xml?"):
        if path.endswith("?"):
            continue
        assert server.get(path).status == 404, path
    # A removal from page 1 leaves page 2 alone; the next entry takes the place that became free.
    assert server.api("DELETE", f"/v1/sitemaps?loc={names[7]}").status == 204
    assert server.get("/sitemap_index-2.xml")["ETag"] == second["ETag"]
    names.remove(names[7])
    assert locs(server.get(XML).body) == names
    assert server.register(f"{ORIGIN}/again.xml").status == 201
    assert locs(server.get(XML).body) == names[:7] + [f"{ORIGIN}/again.xml"] + names[7:]
    assert server.get("/sitemap_index-2.xml")["ETag"] == second["ETag"]


def test_the_byte_limit_starts_a_page_too(server):
    # 29,000 locs of 2,000 characters would be 58 MB: over 52,428,800 bytes before 50,000 entries. With
    # sanitizers they have as many in the page, where an ampersand takes five, and a fifth to be read.
    names = [f"{ORIGIN}/{i:06d}/" + ("x" * 1960 if PLAIN else "&" * 392) for i in range(27000)]
    for first in range(0, len(names), 9000):
        assert server.bulk(names[first : first + 9000]).status == 200
    one = server.get(GZ).xml()
    two = server.get("/sitemap_index-2.xml.gz").xml()
    assert len(one) <= 52428800 and len(locs(one)) + len(locs(two)) == len(names)
    assert len(locs(one)) > 24000
    assert sorted(locs(one) + locs(two)) == names


# ---- headers ------------------------------------------------------------------------------------


def test_headers_of_the_plain_page(filled):
    reply = filled.get(XML)
    assert (reply.version, reply.status) == ("HTTP/1.1", 200)
    assert reply["Content-Type"] == "application/xml; charset=utf-8"
    assert reply["Content-Encoding"] is None
    assert reply["Content-Length"] == str(len(reply.body))
    assert reply["Vary"] == "Accept-Encoding"
    assert reply["Cache-Control"] == PUBLIC_CACHE
    assert reply["X-Content-Type-Options"] == "nosniff"
    assert reply["X-Robots-Tag"] == "noindex"
    assert reply["Accept-Ranges"] == "none"
    assert ETAG.match(reply["ETag"])
    assert email.utils.parsedate_to_datetime(reply["Last-Modified"]).timestamp() <= time.time()
    assert re.match(r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$", reply["Last-Modified"])
    assert abs(email.utils.parsedate_to_datetime(reply["Date"]).timestamp() - time.time()) < 30
    assert reply["Set-Cookie"] is None


def test_headers_of_the_encoded_page(filled):
    plain, reply = filled.get(XML), filled.get(XML, {"Accept-Encoding": "gzip"})
    assert reply.status == 200
    assert reply["Content-Encoding"] == "gzip"
    assert reply["Content-Length"] == str(len(reply.body))
    assert ETAG.match(reply["ETag"]) and reply["ETag"] != plain["ETag"]
    same = ("Content-Type", "Vary", "Cache-Control", "X-Content-Type-Options", "X-Robots-Tag", "Last-Modified", "Accept-Ranges")
    for name in same:
        assert reply[name] == plain[name], name
    assert gunzip(reply.body) == plain.body


def test_headers_of_the_gz_file(filled):
    tags = {filled.get(XML)["ETag"], filled.get(XML, {"Accept-Encoding": "gzip"})["ETag"]}
    for accept in (None, "gzip", "identity", "gzip;q=0"):
        reply = filled.get(GZ, {"Accept-Encoding": accept} if accept else {})
        assert reply.status == 200
        assert reply["Content-Type"] == "application/gzip"
        assert reply["Content-Encoding"] is None, "it is a file, not an encoding"
        assert reply["Content-Length"] == str(len(reply.body))
        assert reply["Vary"] is None, "the file does not vary"
        assert reply["Cache-Control"] == PUBLIC_CACHE
        assert reply["X-Robots-Tag"] == "noindex" and reply["X-Content-Type-Options"] == "nosniff"
        assert ETAG.match(reply["ETag"]) and reply["ETag"] not in tags
        assert reply.xml() == filled.get(XML).body
        # RFC 1952: no time, a fixed system, so that the bytes depend on the entries alone.
        assert reply.body[:4] == b"\x1f\x8b\x08\x00" and reply.body[4:8] == b"\0\0\0\0"


def test_accept_is_ignored(filled):
    wanted = filled.get(XML).same_headers()
    for accept in ("*/*", "text/html", "application/json;q=1", "image/avif", "nonsense", ""):
        reply = filled.get(XML, {"Accept": accept})
        assert reply.status == 200 and reply.same_headers() == wanted, accept


@pytest.mark.parametrize(
    "accept, encoded",
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("X-GZip", True),
        ("gzip;q=1", True),
        ("gzip;q=1.000", True),
        ("gzip ; q=0.5", True),
        ("gzip;Q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0", False),
        ("gzip;q=0.000", False),
        ("x-gzip;q=0", False),
        ("*", True),
        ("*;q=0.5", True),
        ("*;q=0", False),
        ("identity", False),
        ("identity;q=0", False),
        ("identity;q=0, *", True),
        ("identity, gzip", True),
        ("gzip, identity", True),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("identity;q=0.5, gzip;q=0.4", False),
        ("identity;q=0.4, gzip;q=0.5", True),
        ("identity;q=1, gzip;q=0.999", False),
        ("gzip;q=0, *", False),
        ("gzip;q=0, *;q=1", False),
        ("gzip, *;q=0", True),
        ("*;q=0, gzip", True),
        ("gzip;q=0, identity;q=0", False),
        ("*;q=0, identity;q=0", False),
        ("br", False),
        ("deflate, br, zstd", False),
        ("gzip, deflate, br", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("deflate,gzip", True),
        ("deflate\t,\tgzip", True),
        (",gzip,", True),
        ("gzipped", False),
        ("notgzip", False),
        ("gzip;q=2", False),
        ("gzip;q=abc", False),
        ("gzip;q=-1", False),
        ("gzip;q=0.1234", False),
    ],
)
def test_negotiation(filled, accept, encoded):
    reply = filled.get(XML, {"Accept-Encoding": accept} if accept is not None else {})
    assert reply.status == 200
    assert reply["Content-Encoding"] == ("gzip" if encoded else None)
    assert reply["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("target, headers", [(XML, {}), (XML, {"Accept-Encoding": "gzip"}), (GZ, {}), ("/robots.txt", {})])
def test_head_is_get_without_the_body(filled, target, headers):
    get, head = filled.get(target, headers), filled.get(target, headers, method="HEAD")
    assert head.status == get.status == 200
    assert head.same_headers() == get.same_headers()
    assert head["Content-Length"] == str(len(get.body))
    assert head.body == b""


# ---- validators ---------------------------------------------------------------------------------


def representations(server):
    return [
        (XML, {}, server.get(XML)["ETag"]),
        (XML, {"Accept-Encoding": "gzip"}, server.get(XML, {"Accept-Encoding": "gzip"})["ETag"]),
        (GZ, {}, server.get(GZ)["ETag"]),
    ]


def test_if_none_match(filled):
    for target, headers, tag in representations(filled):
        others = [t for _, _, t in representations(filled) if t != tag]
        inner = tag[1:-1]
        for value, matches in (
            (tag, True),
            ("W/" + tag, True),
            ("*", True),
            (f'"x", {tag}', True),
            (f'{tag}, "x"', True),
            (f'W/"x" , W/{tag}', True),
            (f',, {tag}', True),
            (f'"{inner}-gzip"', True),
            (f'W/"{inner}-gzip"', True),
            ('"x"', False),
            ('""', False),
            (f'"{inner}x"', False),
            (f'"x{inner}"', False),
            (inner, False),
            (f'"{inner}', False),
            (f'"{inner}-br"', False),
            ("", False),
            (f'"a,{inner}"', False),
        ):
            reply = filled.get(target, {**headers, "If-None-Match": value})
            assert reply.status == (304 if matches else 200), (target, value)
        for other in others:
            assert filled.get(target, {**headers, "If-None-Match": other}).status == 200, "each representation has its own"


CONTENT_FIELDS = {"content-type", "content-encoding", "content-range", "accept-ranges", "x-content-type-options", "x-robots-tag"}


def test_304_repeats_what_a_cache_needs_and_has_no_body(filled):
    for target, headers, tag in representations(filled):
        full = filled.get(target, headers)
        for method in ("GET", "HEAD"):
            reply = filled.get(target, {**headers, "If-None-Match": tag}, method=method)
            assert reply.status == 304 and reply.body == b""
            for name in ("ETag", "Vary", "Cache-Control", "Last-Modified"):
                assert reply[name] == full[name], name
            assert reply["Date"]
            # RFC 9110 15.4.5: no other header that describes the content.
            assert not CONTENT_FIELDS & {name.lower() for name, _ in reply.headers}, reply.headers
            # RFC 9110 8.6: a length, where one is sent, is the one that a 200 had had.
            assert reply["Content-Length"] in (None, full["Content-Length"])


def http_date(moment):
    return email.utils.formatdate(moment, usegmt=True)


def test_if_modified_since(filled):
    stamp = filled.get(XML)["Last-Modified"]
    moment = email.utils.parsedate_to_datetime(stamp).timestamp()
    utc = time.gmtime(moment)
    for value, status in (
        (stamp, 304),
        (http_date(moment + 1), 200),  # of a version that is there no more
        (http_date(moment - 1), 200),
        (http_date(0), 200),
        (time.strftime("%A, %d-%b-%y %H:%M:%S GMT", utc), 304),
        (time.asctime(utc), 304),
        ("yesterday", 200),
        ("", 200),
        ("Mon, 30 Feb 2026 00:00:00 GMT", 200),
        (stamp.replace("GMT", "CET"), 200),
        (stamp.replace("GMT", "+0000"), 200),
        (f"{stamp}, {stamp}", 200),
    ):
        for target, headers, _ in representations(filled):
            reply = filled.get(target, {**headers, "If-Modified-Since": value})
            assert reply.status == status, (target, value)


def test_if_none_match_decides_alone(filled):
    reply = filled.get(XML)
    tag, stamp = reply["ETag"], reply["Last-Modified"]
    assert filled.get(XML, {"If-None-Match": '"x"', "If-Modified-Since": stamp}).status == 200
    assert filled.get(XML, {"If-None-Match": tag, "If-Modified-Since": http_date(0)}).status == 304


def test_a_second_version_in_one_second_is_never_hidden_by_its_date(server):
    for attempt in range(10):
        time.sleep(1.05 - time.time() % 1)  # the beginning of a second
        assert server.register(f"{ORIGIN}/first-{attempt}.xml").status == 201
        first = server.get(XML)
        assert server.register(f"{ORIGIN}/second-{attempt}.xml").status == 201
        second = server.get(XML)
        if first["Last-Modified"] == second["Last-Modified"]:
            break
    else:
        pytest.skip("too slow a machine to change a page twice in a second")
    stamp = second["Last-Modified"]
    assert server.get(XML, {"If-Modified-Since": stamp}).status == 200, "the client may hold the first version"
    assert server.get(XML, {"If-None-Match": second["ETag"]}).status == 304
    time.sleep(1.1)
    assert server.get(XML, {"If-Modified-Since": stamp}).status == 200, "for good, not just for that second"
    assert server.register(f"{ORIGIN}/third.xml").status == 201
    stamp = server.get(XML)["Last-Modified"]
    time.sleep(1.1)
    assert server.get(XML, {"If-Modified-Since": stamp}).status == 304


def test_no_304_by_date_while_its_second_lasts(server):
    for attempt in range(10):
        time.sleep(1.05 - time.time() % 1)
        assert server.register(f"{ORIGIN}/{attempt}.xml").status == 201
        stamp = server.get(XML)["Last-Modified"]
        reply = server.get(XML, {"If-Modified-Since": stamp})
        if reply["Date"] == stamp:
            break
    else:
        pytest.skip("too slow a machine to ask within the second")
    assert reply.status == 200, "another version may yet come with that date"
    time.sleep(1.1)
    assert server.get(XML, {"If-Modified-Since": stamp}).status == 304


def test_an_index_made_again_within_a_second(server):
    """Another index at the same address, whose page is of the same second."""
    for attempt in range(10):
        time.sleep(1.05 - time.time() % 1)
        assert server.register(f"{ORIGIN}/first.xml").status in (200, 201)
        first = server.get(XML)
        index = server.api("GET", "/v1/indexes").json()["indexes"][0]
        assert server.api("DELETE", f"/v1/indexes/{index['id']}?max_removed=9").status == 200
        assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}{XML}"}).status == 201
        assert server.register(f"{ORIGIN}/second.xml").status == 201
        second = server.get(XML)
        if first["Last-Modified"] == second["Last-Modified"]:
            break
    else:
        pytest.skip("too slow a machine for all of that in a second")
    assert first.body != second.body
    for wait in (0, 1.1):
        time.sleep(wait)
        assert server.get(XML, {"If-Modified-Since": second["Last-Modified"]}).status == 200
    assert server.get(XML, {"If-None-Match": second["ETag"]}).status == 304


# ---- conditions that come first (RFC 9110 13.2.2) -----------------------------------------------


def test_if_match(filled):
    for target, headers, tag in representations(filled) + [("/robots.txt", {}, filled.get("/robots.txt")["ETag"])]:
        full = filled.get(target, headers)
        for method in ("GET", "HEAD"):
            for value, status in (
                (tag, 200), ("*", 200), (f'"x", {tag}', 200), (f"W/{tag}", 412), ('"x"', 412), ("x", 412), ("", 412),
                (tag[:-1] + '-gzip"', 412),
            ):
                reply = filled.get(target, {**headers, "If-Match": value}, method=method)
                assert reply.status == status, (target, value)
                if status == 412:
                    assert reply["Cache-Control"] == "no-store" and reply["Content-Type"] == "text/plain; charset=utf-8"
                    assert reply["ETag"] is None and reply["Last-Modified"] is None and reply["Content-Encoding"] is None
                    assert reply.body == (b"" if method == "HEAD" else b"Precondition Failed\n")
        right, wrong = {**headers, "If-Match": tag}, {**headers, "If-Match": '"x"'}
        assert filled.get(target, {**right, "If-None-Match": tag}).status == 304
        assert filled.get(target, {**wrong, "If-None-Match": tag}).status == 412, "it comes first"
        assert filled.get(target, {**right, "If-Unmodified-Since": http_date(0)}).status == 200, "the tag decides"
        assert filled.get(target, {**wrong, "If-Unmodified-Since": http_date(time.time())}).status == 412
        if full["Last-Modified"]:
            assert filled.get(target, {**right, "If-Modified-Since": full["Last-Modified"]}).status == 304
    # Only of what would be answered with 200 (RFC 9110 13.2.1).
    assert filled.get("/none.xml", {"If-Match": '"x"'}).status == 404


def test_if_unmodified_since(filled):
    stamp = filled.get(XML)["Last-Modified"]
    moment = email.utils.parsedate_to_datetime(stamp).timestamp()
    for value, status in (
        (stamp, 200), (http_date(moment + 1), 200), (http_date(moment - 1), 412), (http_date(0), 412),
        (time.asctime(time.gmtime(moment - 1)), 412), ("yesterday", 200), ("", 200), (f"{http_date(0)}, {http_date(0)}", 200),
    ):
        for target, headers, tag in representations(filled):
            asked = {**headers, "If-Unmodified-Since": value}
            assert filled.get(target, asked).status == status, (target, value)
            assert filled.get(target, asked, method="HEAD").status == status
            assert filled.get(target, {**asked, "If-None-Match": tag}).status == (412 if status == 412 else 304)
    # robots.txt has no date, so there is nothing to compare with (RFC 9110 13.1.4).
    assert filled.get("/robots.txt", {"If-Unmodified-Since": http_date(0)}).status == 200


def test_validators_outlive_a_restart(server):
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(1200)]).status == 200
    before = [server.get(target, headers).same_headers() for target, headers, _ in representations(server)]
    robots = server.get("/robots.txt").same_headers()
    server.restart()
    assert [server.get(target, headers).same_headers() for target, headers, _ in representations(server)] == before
    assert server.get("/robots.txt").same_headers() == robots


def test_an_undone_change_gets_its_old_tag_back(server):
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(700)]).status == 200
    before = representations(server)
    assert server.register(f"{ORIGIN}/3.xml", lastmod="2026-01-31").status == 200
    changed = representations(server)
    assert all(a[2] != b[2] for a, b in zip(before, changed))
    assert server.register(f"{ORIGIN}/3.xml", lastmod=None).status == 200
    assert representations(server) == before
    assert server.register(f"{ORIGIN}/last.xml").status == 201
    assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/last.xml").status == 204
    assert representations(server) == before


def test_a_removal_moves_last_modified(server):
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(3)]).status == 200
    before = server.get(XML)
    time.sleep(1.1)
    assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/1.xml").status == 204
    after = server.get(XML)
    parse = email.utils.parsedate_to_datetime
    assert parse(after["Last-Modified"]) > parse(before["Last-Modified"])
    assert after["ETag"] != before["ETag"]


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [XML, GZ, "/robots.txt"])
def test_methods(filled, target):
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        reply = filled.get(target, method=method)
        assert reply.status == 405, (method, reply)
        assert {m.strip() for m in reply["Allow"].split(",")} == {"GET", "HEAD", "OPTIONS"}
        assert reply["Cache-Control"] == "no-store"
    reply = filled.get(target, method="OPTIONS")
    assert reply.status == 204 and reply.body == b""
    assert {m.strip() for m in reply["Allow"].split(",")} == {"GET", "HEAD", "OPTIONS"}
    for method in ("BREW", "PROPFIND", "get", "TRACE"):
        assert filled.get(target, method=method).status == 501, method


@pytest.mark.parametrize(
    "target",
    [
        "/", "/index.html", "/sitemap.xml", "/sitemap_index", "/sitemap_index.xml/", "//sitemap_index.xml",
        "/sitemap_index.xml.gz.gz", "/sitemap_index.xml.br", "/sitemap_index-1.xml", "/sitemap_index-2.xml",
        "/sitemap_index-02.xml", "/sitemap_index-501.xml", "/SITEMAP_INDEX.XML", "/robots.txt/", "/robots.txt.gz",
        "/v1/sitemaps", "/healthz", "/readyz", "/metrics", "/openapi.json", "/a.xml", "/../etc/passwd",
        "/sitemap.xml?x=1", "/sitemap_index-2.xml?x=1", "/%00", "/sitemap_index.xml%00",
    ],
)
def test_unknown_paths(filled, target):
    reply = filled.get(target)
    assert reply.status == 404, reply
    assert reply["Cache-Control"] == "no-store"
    assert reply["ETag"] is None and reply["Last-Modified"] is None


def test_a_browser_is_shown_a_table_by_default(start):
    env = {"SITEMAPD_SERVER_PAGE_STYLE": ""}
    server = start(env=env)
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    page = server.get(XML)
    declaration, style, rest = page.body.split(b"\n", 2)
    assert style.startswith(b'<?xml-stylesheet type="text/css" href="data:text/css,') and style.endswith(b'"?>')
    assert declaration + b"\n" + rest == render([(f"{ORIGIN}/a.xml", None)])
    assert gunzip(server.get(GZ).body) == page.body
    assert server.cli("render", INDEX, env=env).out.encode() == page.body, "the command prints what is served"


def test_a_query_that_no_child_has(filled):
    """Tracking parameters and cache busters: the page, with its own ETag, by a path and a query."""
    for path in (XML, GZ):
        page = filled.get(path)
        for query in ("?", "?x=1", "?utm_source=a&page=2", "?" + "y" * 1000):
            reply = filled.get(path + query)
            assert (reply.status, reply["ETag"], reply.body) == (200, page["ETag"], page.body), (path, query, reply)
            assert filled.get(path + query, {"If-None-Match": page["ETag"]}).status == 304
    assert "?" not in filled.get("/robots.txt").body.decode()


def test_a_query_of_a_page_that_a_child_has(server):
    """A child such as /sitemap_index.xml?page=1 is made by another program: the index never answers for it."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get(XML + "?page=1").status == 200
    child = f"{ORIGIN}{XML}?page=1"
    assert server.register(child).status == 201
    for query in ("?page=1", "?page=2", "?x"):
        assert server.get(XML + query).status == 404, query
    assert server.get(GZ + "?page=1").status == 404 and child in locs(server.get(XML).body)
    server.restart()
    assert server.get(XML + "?page=1").status == 404, "nor after a restart"
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(child)}").status == 204
    assert server.get(XML + "?page=1").status == 200


@pytest.mark.parametrize("rows, status", [(10, 200), (2500, 404)])
def test_a_query_of_a_page_that_rows_of_a_removed_index_have(server, rows, status):
    """A pass steps over the rows of a removed index, but not over many: then the page answers no query."""
    old = server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/old.xml"}).json()
    assert server.bulk([f"{ORIGIN}{XML}?i={i}" for i in range(rows)], f"/v1/sitemaps?index={q(old['url'])}").status == 200
    assert server.register(f"{ORIGIN}/a.xml", index=INDEX).status == 201
    assert server.get(XML + "?x").status == 404
    assert server.api("DELETE", f"/v1/indexes/{old['id']}?max_removed={rows}").status == 200
    assert server.get(XML + "?x").status == status
    assert server.get(XML).status == 200


def test_an_index_that_never_had_an_entry_is_404(server):
    for target in (XML, GZ):
        reply = server.get(target)
        assert reply.status == 404 and reply["Cache-Control"] == "no-store"
    assert b"Sitemap:" not in server.get("/robots.txt").body


def test_a_page_that_becomes_empty_is_404_and_leaves_robots(server):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get(XML).status == 200
    assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/a.xml").status == 204
    assert server.get(XML).status == 404 and server.get(GZ).status == 404
    assert b"Sitemap:" not in server.get("/robots.txt").body


def test_what_is_too_long(filled):
    assert filled.get("/" + "a" * 100000).status == 414
    assert filled.get(XML, {"X-Long": "a" * 200000}).status == 431
    reply = filled.get(XML, {"Content-Length": "1000000"}, length=False)
    assert reply.status == 413, reply
    assert filled.get(XML).status == 200


def test_requests_that_two_readers_would_read_differently(filled):
    for lines in (
        ["Host: www.example.com", "Host: other.example.com"],
        ["Host: www.example.com", "Content-Length: 5", "Content-Length: 6"],
        ["Host: www.example.com", "Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Host: www.example.com", "Transfer-Encoding: gzip, chunked"],
        [],
    ):
        head = "\r\n".join([f"GET {XML} HTTP/1.1"] + lines) + "\r\n\r\n"
        with Connection(filled.public) as connection:
            connection.send(head.encode() + b"5\r\nhello\r\n0\r\n\r\n")
            reply = connection.reply()
            assert reply.status == 400, (lines, reply)
            connection.rest()  # and closes, lest the rest be read as another request


def test_absolute_form(filled):
    raw = lambda target, host: ask_raw(filled.public, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert raw(f"http://{HOST}{XML}", HOST).status == 200
    assert raw(f"http://other.example.com{XML}", HOST).status == 400


def test_invalid_hosts_and_targets(filled):
    """RFC 9112 3.2: 400 whatever host is requested; what is well-formed may be another's (421)."""
    for host in ("%zz", "a%", "www.example.com:65536", ":80", "[www.example.com]", "[::1", "[v1.a]", "[fe80::1%25eth0]", "a#b", "www.example.com/", "u@www.example.com"):
        assert filled.get(XML, host=host).status == 400, host
        assert ask(filled.admin, "GET", "/readyz", host=host).status == 400, host
        assert ask_raw(filled.public, f"GET http://{host}{XML} HTTP/1.0\r\n\r\n".encode()).status in (400, 404), host
    for target in (XML + "#b", "/#", XML + "?a#b", f"http://{HOST}{XML}#b"):
        assert filled.get(target).status == 400, target
        assert ask(filled.admin, "GET", target, host="localhost").status == 400, target
    assert filled.get(XML, host="%77ww.example.com").status == filled.get(XML, host="other.example").status
    assert filled.get(XML).status == 200


def test_http_1_0(filled):
    reply = filled.get(XML, version="HTTP/1.0", host=None)
    assert reply.status == 200 and reply.body == filled.get(XML).body


def test_a_connection_is_kept_and_pipelined(filled):
    wanted = filled.get(XML)
    with Connection(filled.public) as connection:
        for _ in range(3):
            connection.send(request_bytes("GET", XML))
            assert connection.reply().body == wanted.body
        connection.send(request_bytes("GET", XML) + request_bytes("HEAD", XML) + request_bytes("GET", "/none") + request_bytes("GET", XML, {"If-None-Match": "*"}) + request_bytes("GET", GZ))
        assert connection.reply().body == wanted.body
        assert connection.reply("HEAD").status == 200
        assert connection.reply().status == 404
        assert connection.reply().status == 304
        assert connection.reply().xml() == wanted.body


def test_a_body_with_a_get_is_not_the_next_request(filled):
    with Connection(filled.public) as connection:
        connection.send(request_bytes("GET", XML, body=b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n"))
        first = connection.reply()
        assert first.status in (200, 413, 400)
        rest = connection.rest() if first.get("Connection") == "close" else b""
        assert b"HTTP/1.1" not in rest


# ---- sites and hosts ----------------------------------------------------------------------------


def test_with_one_site_any_host_does(filled):
    wanted = filled.get(XML).body
    for host in ("www.example.com", "WWW.Example.COM", "www.example.com:8080", "127.0.0.1", "localhost:1", "other.org"):
        assert filled.get(XML, host=host).body == wanted, host
    assert b"<loc>https://www.example.com/" in wanted, "the origin is the catalogue's, never the header's"


def test_with_several_sites_the_host_selects(start):
    server = start(sites=(ORIGIN, "https://shop.example.org"))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register("https://shop.example.org/b.xml").status == 201
    assert locs(server.get(XML, host="www.example.com").body) == [f"{ORIGIN}/a.xml"]
    assert locs(server.get(XML, host="Shop.Example.Org:8080").body) == ["https://shop.example.org/b.xml"]
    for host in ("example.com", "unknown.example", "127.0.0.1", "www.example.com.evil.org"):
        for target in (XML, "/robots.txt", "/none"):
            reply = server.get(target, host=host)
            assert reply.status == 421, (host, target, reply)
            assert reply["Cache-Control"] == "no-store"
    assert server.get(XML, {"X-Forwarded-Host": "shop.example.org"}).body == server.get(XML).body, "no listed proxy"
    assert b"shop.example.org/sitemap_index.xml" in server.get("/robots.txt", host="shop.example.org").body
    assert b"shop.example.org" not in server.get("/robots.txt").body


@pytest.mark.parametrize("tag, separator", [("Cache-Tag", ","), ("Surrogate-Key", " "), ("Edge-Cache-Tag", ",")])
def test_fields_for_cdns(start, tmp_path, tag, separator):
    """Every reply that a CDN keeps has them: 200, 304, HEAD, .gz, a file of a folder and robots.txt; an error has none."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.xml").write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{ORIGIN}/x</loc></url></urlset>')
    server = start(config=f'[server]\ncdn_cache_control = max-age=86400\ncache_tag = {tag}\n[source "files"]\ndirectory = {tmp_path}/files\nurl = {ORIGIN}/\nsettle = 50ms\nserve = yes\n')
    eventually(lambda: server.get(XML).status == 200, "it is listed")
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    of_site = f"sitemap-site-{site}"
    page = server.get(XML)
    replies = [(page, True), (server.get(XML + ".gz"), True), (server.get(XML, {"Accept-Encoding": "gzip"}), True), (server.get(XML, method="HEAD"), True),
               (server.get(XML, {"If-None-Match": page["ETag"]}), True), (server.get("/a.xml"), False), (server.get("/robots.txt"), False)]
    assert [reply.status for reply, _ in replies] == [200, 200, 200, 200, 304, 200, 200]
    for reply, is_page in replies:
        assert reply["CDN-Cache-Control"] == "max-age=86400" and reply["Cache-Control"] == PUBLIC_CACHE, reply
        assert reply[tag] == (f"{of_site}{separator}sitemap-index-{index}" if is_page else of_site), reply
    missing = server.get("/none.xml")
    assert missing.status == 404 and missing.get("CDN-Cache-Control") is None and missing.get(tag) is None
    # Pages that are read from disk at a start have them, too.
    server.restart()
    assert server.get(XML)[tag] == f"{of_site}{separator}sitemap-index-{index}"


CONFIG = """
[server]
strict_host = yes
cache_control = public, max-age=60
trusted_proxies = 127.0.0.1

[site "main"]
origin = https://www.example.com
index = /sitemap_index.xml
index = /shop/sitemap_index.xml
host_alias = origin.internal:8080
alias = /sitemap.xml -> /sitemap_index.xml
robots_file = {robots}
"""


def test_a_site_of_the_configuration(start, tmp_path):
    robots = tmp_path / "robots.in"
    robots.write_text("User-agent: *\nDisallow: /cart")
    server = start(sites=(), config=CONFIG.format(robots=robots))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{ORIGIN}/shop/b.xml").status == 201
    assert locs(server.get("/shop/sitemap_index.xml").body) == [f"{ORIGIN}/shop/b.xml"], "the deepest index holds it"
    reply = server.get(XML)
    assert locs(reply.body) == [f"{ORIGIN}/a.xml"] and reply["Cache-Control"] == "public, max-age=60"
    assert server.get(XML, host="other.org").status == 421
    assert server.get(XML, host="origin.internal:8080").status == 200
    assert server.get(XML, {"X-Forwarded-Host": "www.example.com"}, host="lb.internal").status == 200, "a listed proxy"
    moved = server.get("/sitemap.xml")
    assert moved.status == 301 and moved["Location"] == INDEX
    body = server.get("/robots.txt").body.decode()
    assert body.startswith("User-agent: *\nDisallow: /cart\n")
    assert f"\nSitemap: {INDEX}\n" in body and f"\nSitemap: {ORIGIN}/shop/sitemap_index.xml\n" in body
    sites = server.api("GET", "/v1/sites").json()["sites"]
    reply = server.api("PATCH", f"/v1/sites/{sites[0]['id']}", {"cross_hosts": ["cdn.example.net"]})
    assert reply.status == 409 and reply.json()["code"] == "managed-by-config"
    reply = server.api("DELETE", f"/v1/sites/{sites[0]['id']}")
    assert reply.status == 409 and reply.json()["code"] == "managed-by-config"


def test_robots(server):
    empty = server.get("/robots.txt")
    assert empty.status == 200
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    reply = server.get("/robots.txt")
    assert reply.status == 200 and reply["Content-Type"].replace(" ", "").lower() == "text/plain;charset=utf-8"
    assert f"Sitemap: {INDEX}\n" in reply.body.decode()
    assert ETAG.match(reply["ETag"]) and reply["ETag"] != empty["ETag"]
    assert reply["Content-Length"] == str(len(reply.body))
    again = server.get("/robots.txt", {"If-None-Match": reply["ETag"]})
    assert again.status == 304 and again.body == b"" and again["ETag"] == reply["ETag"]


def test_robots_off_leaves_the_path_to_others(start):
    server = start(sites=(), config='[site "main"]\norigin = https://www.example.com\nrobots = off\n')
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get("/robots.txt").status == 404
    assert server.get(XML).status == 200


def test_pages_and_robots_outlive_the_catalogue(server):
    """Stale is better than gone: what is in memory is served when the file is not there any more."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    page, robots = server.get(XML), server.get("/robots.txt")
    aside = server.database + ".aside"
    os.rename(server.database, aside)
    try:
        degraded = lambda: server.api("GET", "/readyz").json().get("status") == "degraded"
        eventually(degraded, "/readyz reports the lost file")
        assert server.get(XML).body == page.body
        assert server.get("/robots.txt").body == robots.body
        reply = server.register(f"{ORIGIN}/b.xml")
        assert reply.status == 503 and reply["Retry-After"] and reply["Cache-Control"] == "no-store"
    finally:
        os.rename(aside, server.database)
    eventually(lambda: server.register(f"{ORIGIN}/b.xml").status in (200, 201), "writes again")
    assert f"{ORIGIN}/b.xml" in locs(server.get(XML).body)
