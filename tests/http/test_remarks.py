# SPDX-License-Identifier: LicenseRef-Undeclared
"""Page URLs in a folder's sitemap files that crawlers cannot use: reported by rule, line and column, in the
API, the log, the metrics and by `scan`. A file without a usable page URL is left out of the index."""

import gzip
import os

from harness import ORIGIN, eventually, sitemapd
from test_sources import NOT_WATCHED, OLD, URLSET, World, urlset, world  # noqa: F401 (a fixture)

OTHER = "https://other.example.net"


def pages(*urls):
    return "\n".join([URLSET, *urls, "</urlset>"]).encode()


def page(loc, more=""):
    return f"<url><loc>{loc}</loc>{more}</url>"


def dated(path, lastmod):
    return page(f"{ORIGIN}/{path}", f"<lastmod>{lastmod}</lastmod>")


GOOD = page(f"{ORIGIN}/good")

# name: content, {code: (line, column, count)}
REMARKED = {
    "no-loc.xml": (pages(GOOD, "<url><priority>1</priority></url>", " <url/>"), {"loc-missing": (4, 1, 2)}),
    "empty-loc.xml": (pages(GOOD, page(""), page(" ")), {"loc-missing": (4, 6, 2)}),
    "relative.xml": (pages(page("/a"), GOOD), {"loc-relative": (3, 6, 1)}),
    "ftp.xml": (pages(GOOD, page("ftp://www.example.com/a")), {"loc-scheme": (4, 6, 1)}),
    "space.xml": (pages(page(f"{ORIGIN}/a b")), {"loc-space": (3, 6, 1)}),
    "foreign.xml": (pages(page(OTHER + "/a"), page(OTHER + "/b"), GOOD), {"outside-site": (3, 6, 2)}),
    "twin.xml": (pages(page(ORIGIN.replace("www.", "") + "/a")), {"outside-site": (3, 6, 1)}),
    "scheme.xml": (pages(page(ORIGIN.replace("https", "http") + "/a")), {"scheme-differs": (3, 6, 1)}),
    "deep/er.xml": (pages(page(ORIGIN + "/a"), page(ORIGIN + "/deep/a")), {"outside-directory": (3, 6, 1)}),
    "dates.xml": (pages(dated("a", "yesterday"), dated("b", "2131-01-01"), dated("c", "2026-01-01T10:00:00")),
                  {"lastmod-invalid": (3, 42, 1), "lastmod-in-future": (4, 42, 1), "lastmod-no-zone": (5, 42, 1)}),
    "stamp.xml": (pages(dated("a", "2026-01-01"), dated("b", "2026-01-01"), dated("c", "2026-01-01")), {"one-lastmod": (0, 0, 1)}),
    "space-of-names.xml": (b"<urlset>" + GOOD.encode() + b"</urlset>", {"namespace": (1, 1, 1)}),
    "hidden.xml": (gzip.compress(urlset("/a")), {"gzip-unmarked": (0, 0, 1)}),
    "text.txt": (f"{ORIGIN}/a\nnot a url\n".encode(), {"loc-space": (2, 1, 1)}),
    "list.txt": (f"{ORIGIN}/a\n\n  b\n".encode(), {"loc-relative": (3, 3, 1)}),
}
# name: content, code, line, column
REFUSED = {
    "plain.xml.gz": (urlset("/a"), "not-gzip", 0, 0),
    "plain.txt.gz": (f"{ORIGIN}/a\n".encode(), "not-gzip", 0, 0),
    "none.xml": (pages("<url/>", page("")), "no-usable-url", 3, 1),
    "all-relative.xml": (pages(page("/a"), page("/b")), "no-usable-url", 3, 6),
    "all-ftp.xml": (pages(page("ftp://www.example.com/")), "no-usable-url", 3, 6),
    "all-foreign.xml": (pages(page(OTHER + "/a"), page("/b"), page(OTHER + "/b")), "outside-site", 3, 6),
    "foreign.txt": (f"{OTHER}/a\n".encode(), "outside-site", 1, 1),
    "begun.xml": (b"<urlset", "truncated", 1, 1),
    "cut.xml": (b'<!-- x -->\n<urlset xmlns="http://www.si', "truncated", 2, 1),
}


def lay(folder, files):
    for name, (content, *_) in files.items():
        path = folder.at(name)
        folder.put(name + ".raw", content)  # as it is, whatever its name says
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.rename(path + ".raw", path)


def remarks(world):
    found = {}
    for r in world.source()["remarks"]:
        found.setdefault(r["path"], {})[r["code"]] = (r["line"], r["column"], r["count"])
    return found


def test_each_is_reported_and_stays_listed(world):
    lay(world.folder, REMARKED)
    world.folder.put("good.xml", urlset("/fine"))
    world.start(NOT_WATCHED)
    world.scan()  # the first one may still be under way
    assert world.names() == {*REMARKED, "good.xml"} and world.problems() == {}
    assert remarks(world) == {name: expected for name, (_, expected) in REMARKED.items()}
    details = {(r["path"], r["code"]): r["detail"] for r in world.source()["remarks"]}
    assert details["relative.xml", "loc-relative"] == '"/a" must be an absolute URL (https://host/path)'
    assert details["text.txt", "loc-space"].startswith('"not a url" is text, not a URL'), details
    assert details["space.xml", "loc-space"].endswith("has a raw space; write %20"), details
    assert details["foreign.xml", "outside-site"].endswith("; 2 in all, also line 4")
    assert world.source()["remarked"] == len(REMARKED) == world.metric("source_remarked")
    assert world.ready() is None, "remarks degrade nothing"
    result = world.wait_for_log("source-file-remark", len(REMARKED))
    assert len(result) == len(REMARKED)
    (line,) = (t for t in result if "dates.xml" in t)
    assert "lastmod-invalid, line 3, column 42" in line and "also lastmod-in-future, lastmod-no-zone" in line, line

    state = world.state()
    world.scan()
    assert world.state() == state and len(world.wait_for_log("source-file-remark")) == len(REMARKED), "reported once"
    for name in REMARKED:
        world.folder.put(name, urlset(f"/deep/{name}"), OLD + 100)
    world.scan()
    assert remarks(world) == {} and world.metric("source_remarked") == 0


def test_what_is_of_no_use_is_left_out(world):
    lay(world.folder, REFUSED)
    world.folder.put("good.xml", urlset("/fine"))
    world.start(NOT_WATCHED + "serve = yes\n")
    world.scan()
    assert world.names() == {"good.xml"}
    found = {p["path"]: (p["code"], p["line"], p["column"]) for p in world.source()["problems"]}
    assert found == {name: tuple(expected) for name, (_, *expected) in REFUSED.items()}
    assert all(p["detail"] and not p["listed"] for p in world.source()["problems"])
    assert world.metric("source_problems") == len(REFUSED)


def test_what_was_good_keeps_its_entry(world):
    world.folder.put("a.xml.gz", urlset("/a"))
    world.folder.put("b.xml", urlset("/b"))
    world.start(NOT_WATCHED)
    before = world.entries()
    lay(world.folder, {"a.xml.gz": (urlset("/a"),), "b.xml": (pages(page("/b")),)})
    world.scan()
    assert world.problems() == {"a.xml.gz": "not-gzip", "b.xml": "no-usable-url"} and world.entries() == before
    world.folder.put("a.xml.gz", urlset("/a"), OLD + 100)
    world.folder.put("b.xml", urlset("/b"), OLD + 100)
    world.scan()
    assert world.problems() == {} and world.entries() == before


def test_pages_of_a_cross_host(world):
    """What was remarked for the host is read again, once the site has it; what was not, once it has it no more."""
    lay(world.folder, {"a.xml": REMARKED["foreign.xml"], "b.xml": REMARKED["relative.xml"]})
    world.start(NOT_WATCHED)
    assert set(remarks(world)) == {"a.xml", "b.xml"}
    state = world.state()
    site = world.server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    assert world.server.api("PATCH", f"/v1/sites/{site}", {"cross_hosts": ["other.example.net"]}).status == 200
    world.scan()
    assert set(remarks(world)) == {"b.xml"} and world.state()[1:] == state[1:]
    read = world.metric("source_files_read_total")
    world.scan()
    assert world.metric("source_files_read_total") == read, "once is enough"
    world.server.stop()
    assert world.server.cli("site", "update", ORIGIN, "--no-cross-hosts").code == 0
    world.server.start()
    eventually(lambda: set(remarks(world)) == {"a.xml", "b.xml"}, "the host is another's again")
    assert world.state()[1:] == state[1:]


def test_pages_of_other_hosts_alone(world):
    """No crawler can use them, until the site has the host."""
    lay(world.folder, {"a.xml": REFUSED["all-foreign.xml"]})
    world.folder.put("good.xml", urlset("/fine"))
    world.start(NOT_WATCHED)
    assert world.problems() == {"a.xml": "outside-site"} and world.names() == {"good.xml"} and world.ready() is not None
    (problem,) = world.source()["problems"]
    assert problem["detail"].startswith(f'none of its 3 URLs can be used: "{OTHER}/a" is on another host than the sitemap and its site; 2 in all'), problem
    assert world.server.cli("site", "update", ORIGIN, "--add-cross-host", OTHER.removeprefix("https://")).code == 0
    world.scan()
    assert world.problems() == {} and world.names() == {"a.xml", "good.xml"} and world.ready() is None


def test_scan_reports_remarks_with_each_pass(tmp_path):
    world = World(None, tmp_path)
    database = tmp_path / "c.db"
    run = lambda *more: sitemapd("scan", world.folder.path, "--url", ORIGIN + "/", *more, database=database)
    assert sitemapd("site", "add", ORIGIN, database=database).code == 0
    lay(world.folder, {"relative.xml": REMARKED["relative.xml"]})
    remark = 'remark    relative.xml:3:6: loc-relative: "/a" must be an absolute URL (https://host/path)'
    first = run().out.splitlines()
    assert first[0].startswith("new       relative.xml ") and first[1] == remark
    assert first[2] == "1 added, 0 updated, 0 removed, 0 files with a problem, 1 with remarks"
    assert run().out.splitlines() == [remark, "0 added, 0 updated, 0 removed, 0 files with a problem, 1 with remarks"]
    lay(world.folder, {f"{n:02}.xml": REMARKED["relative.xml"] for n in range(30)})
    lines = run().out.splitlines()
    assert len([line for line in lines if "/a" in line]) == 20 and "remark    31 files in all: loc-relative" in lines


def test_fifty_thousand_bad_urls_are_one_remark(world):
    lay(world.folder, {"a.xml": (pages(GOOD, *(page(f"/{n}") for n in range(49999))),)})
    world.start(NOT_WATCHED)
    (remark,) = world.source()["remarks"]
    assert remark["count"] == 49999 and remark["line"] == 4 and len(remark["detail"]) < 300, remark
    assert len(world.wait_for_log("source-file-remark")[0]) < 600
