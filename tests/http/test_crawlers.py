# SPDX-License-Identifier: LicenseRef-Undeclared
"""/v1/crawlers: which version of each page every crawler holds, and since when it lacks a newer one."""

import gzip
import json
import os
import socket
import sqlite3
import struct
import subprocess
import time

import pytest

from harness import BIN, HOST, INDEX, ORIGIN, RFC3339, TOKEN, Connection, Server, ask, eventually, problem, q, request_bytes, seconds, sitemapd, slow_reader

GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BING = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"
PAGE = "/sitemap_index.xml"
SHOP = "https://shop.example.org"
RANGES = json.dumps({"prefixes": [{"ipv4Prefix": "66.249.64.0/19"}, {"ipv6Prefix": "2001:4860:4801::/48"}]})


def fetch(server, agent=GOOGLE, target=PAGE, headers=(), method="GET", **more):
    return server.get(target, [("User-Agent", agent), *headers], method=method, **more)


def crawlers(server, query="", **more):
    reply = server.api("GET", "/v1/crawlers" + query, **more)
    assert reply.status == 200, reply
    return reply.json()


def crawler(server, name="googlebot", **more):
    found = [c for c in crawlers(server, **more)["crawlers"] if c["name"] == name]
    return found[0] if found else None


def pages(server, name="googlebot", query="", **more):
    reply = server.api("GET", f"/v1/crawlers/{name}/pages{query}", **more)
    assert reply.status == 200, reply
    return reply.json()


def sums(server, name="googlebot"):
    """The results of its requests, of all days."""
    of = crawler(server, name) or {"days": []}
    return tuple(sum(d[k] for d in of["days"]) for k in ("ok", "not_modified", "other", "impostors"))


def counted(server, wanted, name="googlebot"):
    """A request counts once its last byte has left, which its client may see first."""
    eventually(lambda: sums(server, name) == wanted, f"{name} counts {wanted}")


@pytest.fixture
def filled(server):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    return server


def test_a_change_is_lacked_until_it_is_fetched(filled):
    before = crawlers(filled)
    assert before["observed"] == "origin" and RFC3339.match(before["since"]) and before["crawlers"] == []
    first = fetch(filled)
    assert first.status == 200
    counted(filled, (1, 0, 0, 0))
    google = crawler(filled)
    assert (google["verified"], google["pages"], google["current"], google["stale"], google["never"]) == (None, 1, 1, 0, 0)
    assert google["stale_since"] is None and google["seen_up_to"] >= google["last_fetch_at"]
    assert google["lag"] == {"p50_s": None, "p90_s": None, "max_s": None, "changes": 0}
    page = pages(filled)["pages"]
    assert len(page) == 1 and page[0]["url"] == INDEX and page[0]["status"] == 200
    assert page[0]["held_changed_at"] == page[0]["changed_at"] and page[0]["stale_since"] is None
    assert fetch(filled, headers=[("If-None-Match", first["ETag"])]).status == 304
    counted(filled, (1, 1, 0, 0))

    assert filled.register(f"{ORIGIN}/b.xml").status == 201
    google = crawler(filled)
    assert (google["current"], google["stale"]) == (0, 1), "it is reported before the write is answered"
    stale = pages(filled, query="?stale=1")["pages"]
    assert len(stale) == 1 and stale[0]["stale_since"] == stale[0]["changed_at"] == google["stale_since"]
    assert google["seen_up_to"] < google["stale_since"]
    assert filled.register(f"{ORIGIN}/c.xml").status == 201
    assert crawler(filled)["stale_since"] == google["stale_since"], "since the first change that it has not seen"

    assert fetch(filled, headers=[("If-None-Match", first["ETag"])]).status == 200
    counted(filled, (2, 1, 0, 0))
    google = crawler(filled)
    assert (google["current"], google["stale"], google["lag"]["changes"]) == (1, 0, 1)
    assert google["lag"]["max_s"] is not None and pages(filled, query="?stale=1")["pages"] == []
    metrics = filled.metrics()
    assert metrics['sitemapd_crawler_fetches_total{crawler="googlebot",status="200"}'] == 2
    assert metrics['sitemapd_crawler_fetches_total{crawler="googlebot",status="304"}'] == 1
    assert metrics['sitemapd_crawler_stale_pages{crawler="googlebot"}'] == 0
    assert metrics['sitemapd_crawler_lag_seconds_count{crawler="googlebot"}'] == 1
    assert metrics["sitemapd_crawler_rows"] == 1 and metrics["sitemapd_crawler_untracked_total"] == 0


def test_head_and_errors_move_nothing(filled):
    assert fetch(filled, method="HEAD").status == 200
    counted(filled, (0, 0, 1, 0))
    google = crawler(filled)
    assert (google["pages"], google["never"], google["seen_up_to"]) == (0, 1, None)
    assert pages(filled)["pages"][0]["held_changed_at"] is None
    assert fetch(filled, target="/none.xml").status == 404
    counted(filled, (0, 0, 2, 0))
    assert fetch(filled).status == 200
    counted(filled, (1, 0, 2, 0))
    assert filled.register(f"{ORIGIN}/b.xml").status == 201
    assert fetch(filled, method="HEAD").status == 200
    counted(filled, (1, 0, 3, 0))
    assert crawler(filled)["stale"] == 1
    assert fetch(filled, target="/sitemap_index.xml.gz").status == 200, "either form is the page"
    counted(filled, (2, 0, 3, 0))
    assert crawler(filled)["stale"] == 0


def test_robots_and_browsers(filled):
    assert fetch(filled, target="/robots.txt").status == 200
    counted(filled, (1, 0, 0, 0))
    assert pages(filled)["pages"] == [], "in the sums of days alone"
    assert fetch(filled, agent="curl/8.5").status == 200
    key = 'sitemapd_crawler_fetches_total{crawler="other",status="200"}'
    eventually(lambda: filled.metrics().get(key) == 1, "it is counted")
    assert [c["name"] for c in crawlers(filled)["crawlers"]] == ["googlebot"]
    problem(filled.api("GET", "/v1/crawlers/other/pages"), 404, "not-found")
    problem(filled.api("GET", "/v1/crawlers/nobody/pages"), 404, "not-found")


def test_codings_that_are_offered(filled):
    for field, agent in (("gzip, deflate, br", GOOGLE), ("gzip, br;q=0.1", GOOGLE), ("zstd, gzip", BING), ("gzip", GOOGLE), ("br;q=0", "curl/8.5")):
        assert fetch(filled, agent, headers=[("Accept-Encoding", field)]).status == 200
    assert fetch(filled, "curl/8.5", "/none.xml", [("Accept-Encoding", "br")]).status == 404, "nothing looks at it"
    key = 'sitemapd_crawler_fetches_total{crawler="other",status="other"}'
    eventually(lambda: filled.metrics().get(key) == 1, "the last is counted")

    def assert_counted(name, labels, wanted):
        of = lambda metrics: {b: metrics.get(f'{name}{{{labels},best="{b}"}}') for b in ("br", "zstd", "gzip", "identity")}
        eventually(lambda: of(filled.metrics()) == wanted, f"all are counted, not {of(filled.metrics())}")  # another thread's may come after it

    assert_counted("sitemapd_http_accept_coding_total", 'listener="public"', {"br": 2, "zstd": 1, "gzip": 1, "identity": 1})
    assert_counted("sitemapd_crawler_accept_coding_total", 'crawler="googlebot"', {"br": 2, "zstd": 0, "gzip": 1, "identity": 0})
    assert_counted("sitemapd_crawler_accept_coding_total", 'crawler="bingbot"', {"br": 0, "zstd": 1, "gzip": 0, "identity": 0})


# ---- what ends late, or not at all --------------------------------------------------------------


class SlowReader:
    """Asks for the page as it is uncompressed, and takes no more than a little of it."""

    def __init__(self, server):
        self.socket = slow_reader(server.public, request_bytes("GET", PAGE, [("User-Agent", GOOGLE), ("Connection", "close")], host=HOST))
        assert self.socket.recv(1000).startswith(b"HTTP/1.1 200")

    def rest(self):
        while self.socket.recv(1 << 20):
            pass
        self.socket.close()

    def abort(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@pytest.fixture
def large(server):
    """One page of more than sockets hold."""
    locs = [{"loc": f"{ORIGIN}/{n:06}{'x' * 200}.xml"} for n in range(40000)]
    assert server.bulk(locs).status == 200
    return server


def test_an_old_version_that_arrives_late_stays_stale(large):
    reader = SlowReader(large)
    assert large.register(f"{ORIGIN}/new.xml").status == 201
    assert crawler(large) is None, "its last byte has not left"
    reader.rest()
    counted(large, (1, 0, 0, 0))
    google = crawler(large)
    assert (google["pages"], google["stale"], google["lag"]["changes"]) == (1, 1, 0)
    page = pages(large)["pages"][0]
    assert page["stale_since"] == page["changed_at"] and page["held_changed_at"] <= page["changed_at"]
    assert fetch(large).status == 200
    counted(large, (2, 0, 0, 0))
    assert crawler(large)["stale"] == 0


def test_a_fetch_that_is_broken_off_moves_nothing(large):
    assert fetch(large, headers=[("Accept-Encoding", "gzip")]).status == 200
    counted(large, (1, 0, 0, 0))
    assert large.register(f"{ORIGIN}/new.xml").status == 201
    SlowReader(large).abort()
    counted(large, (1, 0, 1, 0))
    assert crawler(large)["stale"] == 1


# ---- who it is ----------------------------------------------------------------------------------


def configured(tmp_path, ranges=RANGES, more=""):
    path = tmp_path / "google.json"
    path.write_text(ranges, encoding="utf-8")
    return f'[server]\ntrusted_proxies = 127.0.0.1\n{more}\n[crawler "googlebot"]\nranges = {path}\n'


def from_address(*addresses):
    return [("X-Forwarded-For", ", ".join(addresses))]


def test_an_impostor_moves_nothing(start, tmp_path):
    server = start(config=configured(tmp_path))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert fetch(server).status == 200  # from 127.0.0.1
    counted(server, (0, 0, 0, 1))
    google = crawler(server)
    assert (google["verified"], google["pages"], google["last_fetch_at"]) == (True, 0, None)
    assert fetch(server, headers=from_address("203.0.113.9")).status == 200
    counted(server, (0, 0, 0, 2))
    # What the client wrote itself, before the address that the proxy adds.
    assert fetch(server, headers=from_address("66.249.66.1", "203.0.113.9")).status == 200
    counted(server, (0, 0, 0, 3))
    assert fetch(server, headers=from_address("203.0.113.9", "66.249.66.1")).status == 200
    counted(server, (1, 0, 0, 3))
    assert fetch(server, headers=from_address("2001:4860:4801:10::7")).status == 200
    counted(server, (2, 0, 0, 3))
    assert crawler(server)["current"] == 1
    assert server.metrics()['sitemapd_crawler_impostors_total{crawler="googlebot"}'] == 3
    assert fetch(server, agent=BING).status == 200
    counted(server, (1, 0, 0, 0), "bingbot")
    assert crawler(server, "bingbot")["verified"] is None


def test_nobody_forges_an_address_without_a_proxy(start, tmp_path):
    config = configured(tmp_path).replace("trusted_proxies = 127.0.0.1", "")
    server = start(config=config)
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert fetch(server, headers=from_address("66.249.66.1")).status == 200
    counted(server, (0, 0, 0, 1))


def test_a_name_of_our_own_and_a_reload(start, tmp_path):
    server = start(config=configured(tmp_path) + '[crawler "ours"]\nmatch = Ourbot Our-Checker\n')
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert fetch(server, agent="Our-Checker/2 (x)").status == 200
    counted(server, (1, 0, 0, 0), "ours")
    assert fetch(server, headers=from_address("66.249.66.1")).status == 200
    counted(server, (1, 0, 0, 0))

    def reload(event, count):
        server.process.send_signal(1)
        eventually(lambda: server.wait_for_log(event, count), f"{event} is reported")

    ranges = tmp_path / "google.json"
    ranges.write_text("192.0.2.0/24\n<html>", encoding="utf-8")
    reload("reload-refused", 1)
    assert "is not an address or range" in server.log()
    assert fetch(server, headers=from_address("66.249.66.1")).status == 200
    counted(server, (2, 0, 0, 0))  # the list before stays
    ranges.write_text("192.0.2.0/24\n", encoding="utf-8")
    reload("reloaded", 1)
    assert fetch(server, headers=from_address("66.249.66.1")).status == 200
    counted(server, (2, 0, 0, 1))
    assert fetch(server, headers=from_address("192.0.2.3")).status == 200
    counted(server, (3, 0, 0, 1))
    assert crawler(server)["current"] == 1 and crawler(server, "ours")["current"] == 1


def test_a_start_with_a_bad_list_is_refused(tmp_path):
    config = configured(tmp_path, ranges='{"prefixes": []}')
    (tmp_path / "bad.conf").write_text(config, encoding="utf-8")
    checked = sitemapd("check-config", str(tmp_path / "bad.conf"))
    place = f'{tmp_path}/%s.conf:4: [crawler "googlebot"]: ranges {tmp_path}/google.json: contains no range'
    assert checked.code == 1 and checked.err.startswith(place % "bad") and checked.out == ""
    server = Server(tmp_path, config=config)
    server.start(expect_ready=False)
    try:
        assert server.process.wait(timeout=seconds(60)) == 1
        assert place % "sitemapd" in server.log()
    finally:
        server.kill()


def test_lists_are_fetched(tmp_path):
    """deploy/crawlers/refresh, with stand-ins for the network and the service manager."""
    tools, folder, lists = tmp_path / "bin", tmp_path / "lists.d", tmp_path / "lists"
    tools.mkdir()
    for name, text in (("curl", 'while [ $# -gt 2 ]; do shift; done\ncp "%s/web/${2##*/}" "$1" 2>/dev/null || exit 22\ncat "%s/moved" 2>/dev/null || printf %%s "$2"' % (tmp_path, tmp_path)), ("reload", 'echo >>"%s/reloads"' % tmp_path)):
        (tools / name).write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    os.symlink(BIN, tools / "sitemapd")
    (tmp_path / "web").mkdir()
    lists.write_text("# a comment\n\ngooglebot https://g.example/g.json\nours https://o.example/o.txt\n", encoding="utf-8")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/crawlers/refresh")

    def refresh(web):
        for name, text in web.items():
            (tmp_path / "web" / name).write_text(text, encoding="utf-8")
        env = {"PATH": f"{tools}:/usr/bin:/bin", "RELOAD": "reload"}
        done = subprocess.run([script, str(folder), str(lists)], env=env, capture_output=True, text=True, timeout=seconds(60))
        reloads = (tmp_path / "reloads").read_text(encoding="utf-8").count("\n") if (tmp_path / "reloads").exists() else 0
        assert sorted(name for name in os.listdir(folder) if not name.endswith(".json")) == [], "nothing is left behind"
        return done.returncode, reloads, {name: (folder / name).read_text(encoding="utf-8") for name in os.listdir(folder)}, done.stderr

    assert refresh({"g.json": RANGES})[:3] == (1, 1, {"googlebot.json": RANGES}), "one list cannot be fetched; the other is there"
    assert refresh({"o.txt": "192.0.2.0/24\n"})[:3] == (0, 2, {"googlebot.json": RANGES, "ours.json": "192.0.2.0/24\n"})
    assert refresh({})[:2] == (0, 2), "nothing is new: no reload"
    code, reloads, kept, result = refresh({"g.json": "<html>", "o.txt": "192.0.2.0/25\n"})
    assert (code, reloads, kept) == (1, 3, {"googlebot.json": RANGES, "ours.json": "192.0.2.0/25\n"}) and "googlebot: " in result and "the previous list is kept" in result
    # Google moved its lists, and answered 200 with a JSON text at the old address.
    code, reloads, kept, result = refresh({"g.json": '{"Action needed": "update the location"}'})
    assert (code, reloads, kept["googlebot.json"]) == (1, 3, RANGES) and "googlebot: " in result
    # One that moved, and old ones: by the date that it has, or else by the last good fetch.
    old = '{"creationTime": "2025-02-03T04:05:06.000000", ' + RANGES.lstrip()[1:]
    (tmp_path / "moved").write_text("https://elsewhere.example/", encoding="utf-8")
    code, reloads, kept, result = refresh({"g.json": old})
    assert (code, reloads, kept["googlebot.json"]) == (0, 4, old)
    assert result.count("moved to https://elsewhere.example/") == 2 and result.count("days old") == 1 and "googlebot: the list is " in result, result
    (tmp_path / "moved").unlink()
    os.utime(folder / "ours.json", (0, 0))
    assert "ours: the list is" not in refresh({"g.json": RANGES})[3], "the fetch is recent"
    os.utime(folder / "ours.json", (0, 0))
    (tmp_path / "web" / "o.txt").unlink()
    code, reloads, _, result = refresh({})
    assert (code, reloads) == (1, 5) and "ours: the list is" in result and "moved" not in result and "googlebot" not in result


def test_the_published_lists_are_of_built_in_crawlers(tmp_path):
    """Each name in deploy/crawlers/lists is one that the server knows without `match`, and its URL is https."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/crawlers/lists")
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and line[0] != "#"]
    (tmp_path / "list").write_text("192.0.2.0/24\n")
    (tmp_path / "site.conf").write_text("".join(f'[crawler "{name}"]\nranges = {tmp_path}/list\n' for name, _ in rows))
    checked = sitemapd("check-config", "--config", tmp_path / "site.conf")
    assert checked.code == 0 and len({name for name, _ in rows}) == len(rows) > 10, checked
    assert all(url.startswith("https://") for _, url in rows)


def test_forty_crawlers_beside_the_built_in_ones(tmp_path):
    (tmp_path / "site.conf").write_text("".join(f'[crawler "own{n}"]\nmatch = ownbot{n}\n' for n in range(40)))
    checked = sitemapd("check-config", "--config", tmp_path / "site.conf")
    assert checked.code == 0, checked


def test_files_of_a_folder_are_followed(start, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()

    def write(*pages):
        """Whole: a scan that comes between the file's end and its bytes finds it empty."""
        (tmp_path / "new").write_text('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">' + "".join(f"<url><loc>{ORIGIN}/{page}</loc></url>" for page in pages) + "</urlset>")
        (tmp_path / "new").rename(folder / "a.xml")

    write("x")
    server = start(config=f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 50ms\nserve = yes\n')
    entry = lambda: server.api("GET", "/v1/sitemaps?checks=1").json()["sitemaps"][0]
    eventually(lambda: server.api("GET", "/v1/sitemaps").json()["sitemaps"], "it is listed")

    def current():
        assert fetch(server, target="/a.xml").status == 200
        return entry().get("crawlers", [{"current": False}])[0]["current"]

    assert "crawlers" not in entry()
    eventually(lambda: fetch(server, target="/a.xml", method="HEAD").status == 200, "it is served")
    eventually(lambda: entry().get("crawlers"), "a HEAD is a visit")
    assert entry()["crawlers"][0]["current"] is False, "and brings nothing"
    eventually(current, "it has it")
    revision = entry()["changed_at"]
    write("x", "y")
    eventually(lambda: entry()["changed_at"] != revision, "another version is found")
    assert entry()["crawlers"][0]["current"] is False
    eventually(current, "it has it again")
    assert fetch(server, target="/robots.txt").status == 200
    with sqlite3.connect(server.database) as db:
        server.stop()
        assert db.execute("SELECT count(*), max(crawler) FROM local_crawler_child").fetchone() == (1, "googlebot")
    server.start()
    assert entry()["crawlers"][0]["current"] is True


def test_it_can_be_off(start):
    server = start(config="[server]\ncrawlers = no\n")
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert fetch(server).status == 200
    assert crawlers(server) == {"observed": "origin", "since": None, "crawlers": []}
    problem(server.api("GET", "/v1/crawlers/googlebot/pages"), 404, "not-found")
    assert not [name for name in server.metrics() if name.startswith("sitemapd_crawler")]


# ---- sites, lists, time -------------------------------------------------------------------------


def test_a_token_sees_its_site(start):
    server = start(sites=(ORIGIN, SHOP))
    for origin in (ORIGIN, SHOP):
        assert server.register(f"{origin}/a.xml").status == 201
    assert fetch(server).status == 200
    assert fetch(server, agent=BING, host="shop.example.org").status == 200
    counted(server, (1, 0, 0, 0))
    counted(server, (1, 0, 0, 0), "bingbot")
    token = server.make_token("shop", "--site", SHOP, "--role", "read")
    assert [c["name"] for c in crawlers(server)["crawlers"]] == ["googlebot", "bingbot"]
    assert [c["name"] for c in crawlers(server, "?site=" + q(ORIGIN))["crawlers"]] == ["googlebot"]
    assert [c["name"] for c in crawlers(server, token=token)["crawlers"]] == ["bingbot"]
    problem(server.api("GET", "/v1/crawlers?site=" + q(ORIGIN), token=token), 404, "site-unknown")
    assert pages(server, token=token)["pages"] == []
    assert len(pages(server, "bingbot", token=token)["pages"]) == 1
    problem(server.api("GET", f"/v1/crawlers/googlebot/pages?index={q(INDEX)}", token=token), 404, "not-found")


def test_the_list_of_pages(start):
    """Pages of an index that it reads, which it has never fetched, are reported; those of another are not."""
    server = start()
    names = [f"/i{n}.xml" for n in range(5)]
    for name in names:
        assert server.api("POST", "/v1/indexes", {"url": ORIGIN + name}).status == 201
        assert server.register(f"{ORIGIN}/of{name}", index=ORIGIN + name).status == 201
    for name in names[:4]:
        assert fetch(server, target=name).status == 200
    counted(server, (4, 0, 0, 0))
    urls = [ORIGIN + name for name in names[:4]]
    assert [p["url"] for p in pages(server)["pages"]] == urls
    found, query = [], "?limit=1"
    while query:
        part = pages(server, query=query)
        assert len(part["pages"]) == 1
        found += [p["url"] for p in part["pages"]]
        query = part["next"] and "?limit=1&after=" + q(part["next"])
    assert found == urls
    assert [p["url"] for p in pages(server, query="?index=" + q(urls[2]))["pages"]] == [urls[2]]
    problem(server.api("GET", "/v1/crawlers/googlebot/pages?after=nonsense"), 400, "malformed-cursor")
    problem(server.api("GET", "/v1/crawlers/googlebot/pages?stale=2"), 400, "malformed-parameter")
    # The rows of a removed index are removed.
    ids = {i["url"]: i["id"] for i in server.api("GET", "/v1/indexes").json()["indexes"]}
    assert server.api("DELETE", f"/v1/indexes/{ids[urls[0]]}?max_removed=1").status == 200
    assert [p["url"] for p in pages(server)["pages"]] == urls[1:]
    assert server.metrics()["sitemapd_crawler_rows"] == 3


NEWS = f"{ORIGIN}/news.xml"


def fill_urlset(server, url=NEWS, first=0, count=1001):
    """A urlset of news has 1,000 rows a page."""
    rows = [{"loc": f"{ORIGIN}/n/{n:05}"} for n in range(first, first + count)]
    reply = server.api("POST", "/v1/urls?urlset=" + q(url), body="".join(json.dumps(r) + "\n" for r in rows).encode(), content_type="application/x-ndjson")
    assert reply.status == 200 and reply.json()["created"] == count, reply


@pytest.fixture
def news(filled):
    """An index of a.xml and the two pages of a urlset."""
    made = filled.api("POST", "/v1/urlsets", {"url": NEWS, "with": ["news"], "expires": None})
    assert made.status == 201, made
    filled.urlset_id = made.json()["id"]
    fill_urlset(filled)
    return filled


def test_pages_of_urlsets_are_pages(news):
    """What holds for pages of an index: the version that is held, 304, the lag, what was never fetched; forms of the address are one page."""
    first = fetch(news, target="/news.xml")
    assert first.status == 200
    counted(news, (1, 0, 0, 0))
    google = crawler(news)
    assert (google["pages"], google["current"], google["stale"], google["never"]) == (1, 1, 0, 1), "the index it does not read yet"
    result = pages(news)["pages"]
    assert [(p["url"], p["status"], p["held_changed_at"] is not None) for p in result] == [(NEWS, 200, True), (f"{ORIGIN}/news-2.xml", None, False)]
    assert RFC3339.match(result[1]["changed_at"]) and result[1]["fetched_at"] is None
    assert fetch(news, target="/news.xml", headers=[("If-None-Match", first["ETag"])]).status == 304
    assert fetch(news, target="/news-2.xml.gz").status == 200
    counted(news, (2, 1, 0, 0))
    # The next page URL is in page 2, and page 1 does not change.
    fill_urlset(news, first=2000, count=1)
    google = crawler(news)
    assert (google["current"], google["stale"], google["never"]) == (1, 1, 0)
    stale = pages(news, query="?stale=1")["pages"]
    assert [p["url"] for p in stale] == [f"{ORIGIN}/news-2.xml"] and stale[0]["stale_since"] == stale[0]["changed_at"] == google["stale_since"]
    result = sitemapd("crawlers", "googlebot", "--stale", "--json", env={"SITEMAPD_SERVER": f"http://{news.admin}", "SITEMAPD_TOKEN": TOKEN})
    assert [json.loads(line) for line in result.out.splitlines()] == stale, result
    assert fetch(news, target="/news-2.xml").status == 200 and fetch(news).status == 200
    counted(news, (4, 1, 0, 0))
    google = crawler(news)
    assert (google["current"], google["stale"], google["lag"]["changes"]) == (3, 0, 1)
    found, query = [], "?limit=1"
    while query:
        part = pages(news, query=query)
        found += [p["url"] for p in part["pages"]]
        query = part["next"] and "?limit=1&after=" + q(part["next"])
    assert found == [NEWS, f"{ORIGIN}/news-2.xml", INDEX], "by path, whatever they are"
    assert news.metrics()["sitemapd_crawler_rows"] == 3


def test_pages_of_one_urlset(news):
    for target in (PAGE, "/news.xml"):
        assert fetch(news, target=target).status == 200
    counted(news, (2, 0, 0, 0))
    both = [NEWS, f"{ORIGIN}/news-2.xml"]
    for name in (NEWS, "/news.xml", news.urlset_id):
        assert [p["url"] for p in pages(news, query="?urlset=" + q(str(name)))["pages"]] == both, name
    assert [p["url"] for p in pages(news, query="?index=" + q(INDEX))["pages"]] == [INDEX]
    for query in (f"?index={q(NEWS)}", f"?index={news.urlset_id}", f"?urlset={q(INDEX)}", "?urlset=/none.xml"):
        problem(news.api("GET", "/v1/crawlers/googlebot/pages" + query), 404, "not-found")
    problem(news.api("GET", f"/v1/crawlers/googlebot/pages?index={q(INDEX)}&urlset={q(NEWS)}"), 400, "malformed-parameter", "urlset")


def test_pages_of_urlsets_are_kept(news):
    """Across a restart, and shown by the command on the file; the rows of a removed urlset are removed."""
    assert fetch(news, target="/news.xml").status == 200
    assert fetch(news, target="/news-2.xml").status == 200
    counted(news, (2, 0, 0, 0))
    rows = pages(news)
    news.restart()
    assert pages(news) == rows and crawler(news)["current"] == 2
    fill_urlset(news, first=2000, count=1)
    result = [json.loads(line) for line in news.cli("crawlers", "googlebot", "--json").out.splitlines()]
    assert [(p["url"], p["stale_since"] is None) for p in result] == [(NEWS, True), (f"{ORIGIN}/news-2.xml", False)]
    summary = json.loads(news.cli("crawlers", "--json").out)
    assert (summary["current"], summary["stale"], summary["never"]) == (1, 1, 0)
    assert news.api("DELETE", f"/v1/urlsets/{news.urlset_id}?max_removed=2000").status == 200
    assert pages(news)["pages"] == [] and news.metrics()["sitemapd_crawler_rows"] == 0
    news.restart()
    assert pages(news)["pages"] == [] and sums(news) == (2, 0, 0, 0)


def test_a_cold_page_is_reported_too(start):
    """A change of a page that is not in memory: nobody has fetched it since the bulk dropped it."""
    server = start()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert fetch(server).status == 200
    counted(server, (1, 0, 0, 0))
    locs = [{"loc": f"{ORIGIN}/{n:06}.xml"} for n in range(20000)]  # more segments than a pass renders
    assert server.bulk(locs).status == 200
    assert crawler(server)["stale"] == 1
    assert server.register(f"{ORIGIN}/b.xml").status == 201
    assert crawler(server)["stale"] == 1


def test_it_is_kept_over_a_restart(filled):
    """Written at the stop, and no change of the catalogue: revision and tags stay."""
    assert fetch(filled).status == 200
    assert fetch(filled, agent=BING).status == 200
    counted(filled, (1, 0, 0, 0))
    counted(filled, (1, 0, 0, 0), "bingbot")
    assert filled.register(f"{ORIGIN}/b.xml").status == 201
    assert fetch(filled).status == 200
    counted(filled, (2, 0, 0, 0))
    before, rows = crawlers(filled), pages(filled)
    changes = filled.api("GET", "/v1/changes?since=0").json()
    filled.restart()
    after = crawlers(filled)
    for result in (before, after):
        for one in result["crawlers"]:
            if one["stale"] == 0:
                one.pop("seen_up_to")  # now
    assert after == before and pages(filled) == rows
    assert filled.api("GET", "/v1/changes?since=0").json()["revision"] == changes["revision"]
    assert filled.metrics()['sitemapd_crawler_stale_pages{crawler="bingbot"}'] == 1
    # What changes while no server runs, and after it.
    filled.stop()
    assert filled.cli("add", f"{ORIGIN}/c.xml").code == 0
    filled.start()
    google = crawler(filled)
    assert (google["current"], google["stale"]) == (0, 1)
    assert fetch(filled).status == 200
    counted(filled, (3, 0, 0, 0))
    filled.restart()
    assert crawler(filled)["current"] == 1 and sums(filled) == (3, 0, 0, 0)
    assert crawler(filled)["lag"]["changes"] == 2


def test_a_kill_loses_no_more_than_visits(filled):
    assert fetch(filled).status == 200
    counted(filled, (1, 0, 0, 0))
    filled.restart()
    assert fetch(filled, target="/robots.txt").status == 200
    counted(filled, (2, 0, 0, 0))
    assert filled.register(f"{ORIGIN}/kept.xml").status == 201
    filled.kill()
    filled.start()
    assert crawler(filled)["stale"] == 1 and sums(filled) in ((1, 0, 0, 0), (2, 0, 0, 0))


def test_another_catalogue_has_other_rows(filled, tmp_path):
    """A restored copy has another epoch."""
    assert fetch(filled).status == 200
    counted(filled, (1, 0, 0, 0))
    filled.restart()
    assert filled.cli("backup", str(tmp_path / "copy.db")).code == 0
    filled.stop()
    assert filled.cli("restore", str(tmp_path / "copy.db"), "--replace").code == 0
    filled.start()
    assert crawlers(filled)["crawlers"] == []
    assert fetch(filled, agent=BING).status == 200
    counted(filled, (1, 0, 0, 0), "bingbot")
    filled.restart()
    assert [c["name"] for c in crawlers(filled)["crawlers"]] == ["bingbot"]


def test_rows_of_pages_that_are_gone_are_dropped(start):
    server = start()
    made = server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/i.xml"}).json()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{ORIGIN}/b.xml", index=f"{ORIGIN}/i.xml").status == 201
    assert fetch(server).status == 200 and fetch(server, target="/i.xml").status == 200
    counted(server, (2, 0, 0, 0))
    server.restart()
    assert len(pages(server)["pages"]) == 2
    assert server.api("DELETE", f"/v1/indexes/{made['id']}?max_removed=1").status == 200
    assert fetch(server).status == 200
    counted(server, (3, 0, 0, 0))
    server.restart()
    assert len(pages(server)["pages"]) == 1
    server.stop()
    with sqlite3.connect(server.database) as db:
        assert db.execute("SELECT count(*) FROM local_crawler_page").fetchone() == (1,)
    db.close()


def test_an_undo_is_a_change_that_a_304_ends(filled):
    """The page has its old bytes and tag again; that the crawler has just these it shows itself, when it asks next."""
    first = fetch(filled)
    counted(filled, (1, 0, 0, 0))
    made = filled.register(f"{ORIGIN}/b.xml").json()
    since = crawler(filled)["stale_since"]
    assert since is not None
    assert filled.api("POST", f"/v1/history/{made['revision']}/undo").status == 200
    assert crawler(filled)["stale_since"] == since
    assert fetch(filled, headers=[("If-None-Match", first["ETag"])]).status == 304
    counted(filled, (1, 1, 0, 0))
    assert (crawler(filled)["current"], crawler(filled)["stale"], crawler(filled)["lag"]["changes"]) == (1, 0, 1)


def test_pages_are_the_same_with_and_without(start, tmp_path):
    tags = []
    for answer in ("yes", "no"):
        folder = tmp_path / answer
        folder.mkdir()
        server = start(folder=folder, config=f"[server]\ncrawlers = {answer}\n")
        assert server.register(f"{ORIGIN}/a.xml", lastmod="2026-01-01").status == 201
        reply = fetch(server)
        tags.append((reply["ETag"], reply.body))
    assert tags[0] == tags[1]


def test_requests_behind_one_another(filled):
    """Of one connection each counts for itself: nothing of the one before is left."""
    with Connection(filled.public) as c:
        c.send(request_bytes("GET", PAGE, [("User-Agent", GOOGLE)], host=HOST))
        assert c.reply().status == 200
        c.send(request_bytes("GET", "/none.xml", [("User-Agent", GOOGLE)], host=HOST))
        assert c.reply().status == 404
        c.send(request_bytes("GET", PAGE, host=HOST))
        assert c.reply().status == 200
    counted(filled, (1, 0, 1, 0))
    assert ask(filled.public, "GET", PAGE).status == 200
    assert crawler(filled)["current"] == 1


# ---- logs of others -----------------------------------------------------------------------------


def utc(form, at):
    return time.strftime(form, time.gmtime(at))


def combined(at, agent=GOOGLE, target=PAGE, status=200, address="66.249.66.1", method="GET"):
    return f'{address} - - [{utc("%d/%b/%Y:%H:%M:%S +0000", at)}] "{method} {target} HTTP/1.1" {status} 512 "-" "{agent}"'


def cloudflare(at, **more):
    return json.dumps({"ClientIP": "66.249.66.1", "ClientRequestHost": "www.example.com", "ClientRequestMethod": "GET", "ClientRequestURI": PAGE + "?x=1",
                       "EdgeStartTimestamp": at * 10**9, "EdgeResponseStatus": 200, "EdgeResponseBytes": 77, "ClientRequestUserAgent": GOOGLE, **more})


def cloudfront(at):
    return json.dumps({"date": utc("%Y-%m-%d", at), "time": utc("%H:%M:%S", at), "cs-method": "GET", "cs-uri-stem": "/robots.txt", "sc-status": "200",
                       "sc-bytes": "300", "c-ip": "66.249.66.1", "cs(User-Agent)": GOOGLE.replace(" ", "%20"), "x-host-header": "www.example.com"})


def fastly(at, **more):
    return json.dumps({"timestamp": utc("%Y-%m-%dT%H:%M:%S+0000", at), "client_ip": "203.0.113.9", "host": "WWW.example.com", "url": PAGE + ".gz",
                       "request_method": "GET", "response_status": 304, "request_user_agent": BING, "response_body_size": 0, **more})


class Logs:
    """A catalogue with one page, whose changes lie before the lines of the logs."""

    def __init__(self, folder, config=""):
        self.folder, self.database = folder, str(folder / "c.db")
        self.options = {"database": self.database}
        self.done("site", "add", ORIGIN)
        self.done("add", f"{ORIGIN}/a.xml")
        (folder / "conf").write_text(config, encoding="utf-8")

    def run(self, *args):
        return sitemapd(*args, "--config", str(self.folder / "conf"), database=self.database)

    def done(self, *args):
        command = sitemapd(*args, database=self.database)
        assert command.code == 0, command
        return command

    def take(self, *lines, name="log", more=(), end="\n"):
        path = self.folder / name
        data = ("\n".join(lines) + end).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return self.run("crawlers", "import", str(path), *more)

    def report(self):
        lines = self.run("crawlers", "--json").out.splitlines()
        return {c["name"]: c for c in map(json.loads, lines)}

    def sums(self, name="googlebot"):
        c = self.report().get(name)
        return c and tuple(sum(day[k] for day in c["days"]) for k in ("ok", "not_modified", "other", "impostors"))


def test_a_log_is_imported_once(tmp_path):
    logs, now = Logs(tmp_path), int(time.time())
    lines = [
        combined(now - 7000), cloudflare(now - 6000), cloudfront(now - 5000), fastly(now - 4000), combined(now, status=503), combined(now, method="HEAD"),
        "", "#Fields: x", "nonsense", "{}", combined(now, agent="curl/8"), combined(now, target="/shop"), combined(now - 100 * 86400), combined(now + 4000),
        combined(now)[:-20], combined(now, agent='Evil \\"Googlebot/2.1\\" x'), cloudflare(now, ClientRequestHost="other.example"),
    ]
    dry = logs.take(*lines, more=["--dry-run"])
    first = logs.take(*lines)
    summary = "11 requests: 7 visits of crawlers, 0 of impostors; skipped: 1 of other clients, 2 for other paths, 1 too old; 4 unreadable lines\n"
    assert first.code == 0 and first.out == dry.out == f"{tmp_path}/log: {summary}", first
    assert f"{tmp_path}/log: line 9 is neither JSON nor the combined format" in first.err
    assert logs.sums() == (4, 0, 2, 0) and logs.sums("bingbot") == (0, 1, 0, 0)
    assert logs.report()["googlebot"]["current"] == 0, "what was fetched before the change, or within an hour of it, is not proof"
    # The same bytes, whatever the file is called, and packed or not.
    for name in ("log", "copy", "packed.gz"):
        again = logs.take(*lines, name=name)
        assert again.code == 0 and again.out == f"{tmp_path}/{name}: nothing new\n" and "were imported on" in again.err, again
    grown = logs.take(*lines, combined(now), "66.249.66.1 - - [half", end="")
    assert "1 requests: 1 visits" in grown.out and "line 19 is incomplete (it has no line end yet)" in grown.err, grown
    assert logs.sums() == (5, 0, 2, 0)


def test_what_a_log_says_of_the_version(tmp_path):
    logs, now = Logs(tmp_path), int(time.time())
    with sqlite3.connect(logs.database) as db:  # the change is an hour ago
        db.execute("UPDATE page SET changed_at = changed_at - 3600")
    db.close()
    assert logs.take(combined(now - 600), combined(now - 3599), name="early", more=["--max-age", "1h"]).out.count("\n") == 1
    assert logs.report()["googlebot"]["current"] == 0
    found = logs.take(combined(now - 1200, status=404), combined(now - 1200), combined(now - 900, agent=BING, status=304), name="late", more=["--max-age", "30m"])
    assert found.out.endswith("late: 2 deliveries of the current version of a page to a crawler\n"), found
    result = logs.report()
    assert result["googlebot"]["current"] == result["bingbot"]["current"] == 1 and result["googlebot"]["stale"] == 0
    # The next change is one that it lacks; what it got before is not proof of it.
    logs.done("add", f"{ORIGIN}/b.xml")
    logs.take(combined(now), name="later", more=["--max-age", "30m"])
    assert (logs.report()["googlebot"]["current"], logs.report()["googlebot"]["stale"]) == (0, 1)


def test_a_log_of_pages_of_urlsets(tmp_path):
    logs, now = Logs(tmp_path), int(time.time())
    logs.done("urlset", "add", NEWS)
    logs.done("url", "add", f"{ORIGIN}/n/1", "--urlset", NEWS)
    with sqlite3.connect(logs.database) as db:  # the change is two hours ago
        db.execute("UPDATE page SET changed_at = changed_at - 7200")
    db.close()
    found = logs.take(combined(now, target="/news.xml"), combined(now, target="/news.xml.gz?x=1", agent=BING), combined(now, target="/news-2.xml"))
    assert "3 requests: 2 visits of crawlers, 0 of impostors; skipped: 0 of other clients, 1 for other paths" in found.out, found
    assert "2 deliveries of the current version of a page to a crawler\n" in found.out
    assert logs.report()["googlebot"]["current"] == logs.report()["bingbot"]["current"] == 1
    assert json.loads(logs.run("crawlers", "googlebot", "--json").out)["url"] == NEWS


def test_a_log_of_registered_sitemaps(start, tmp_path):
    """Also of those that another server serves: a CDN's log says who fetched them, and what a fetch surely brought."""
    server, now = start(), int(time.time())
    for path in ("/a.xml", "/shop/list.php?page=2", "/b.xml"):
        assert server.register(ORIGIN + path).status == 201
    server.stop()
    with sqlite3.connect(server.database) as db:  # the last change is two hours ago
        db.execute("UPDATE sitemap SET changed_at = changed_at - 7200")
    db.close()
    server.start()
    log = tmp_path / "log"
    log.write_text("\n".join([
        combined(now - 60, target="/a.xml"), combined(now - 6900, target="/a.xml", agent=BING), combined(now - 30, target="/a.xml", agent=BING, status=503),
        combined(now - 60, target="/shop/list.php?page=2"), combined(now, target="/shop/list.php?page=3"), combined(now, target="/shop/list.php"),
    ]) + "\n")
    done = server.cli("crawlers", "import", log, "--max-age", "1h")
    assert done.code == 0 and "6 requests: 4 visits of crawlers" in done.out and "2 for other paths" in done.out, done
    server.restart()

    def rows(path):
        one = server.api("GET", "/v1/sitemaps?checks=1&loc=" + q(ORIGIN + path)).json()["sitemaps"][0]
        return {row["name"]: (row["status"], row["current"]) for row in one.get("crawlers", [])}

    assert rows("/a.xml") == {"googlebot": (200, True), "bingbot": (503, False)}
    assert rows("/shop/list.php?page=2") == {"googlebot": (200, True)} and rows("/b.xml") == {}
    entry = server.api("GET", "/v1/sitemaps?loc=" + q(f"{ORIGIN}/a.xml")).json()["sitemaps"][0]
    one = server.api("GET", "/v1/sitemaps/" + entry["id"])
    assert len(one.json()["crawlers"]) == 2 and server.api("GET", "/v1/sitemaps/" + entry["id"], headers=[("If-None-Match", one["ETag"])]).status == 200
    # More than one import may have of them: the rest are in the sums of their days.
    assert server.api("POST", "/v1/sitemaps", [{"loc": f"{ORIGIN}/many/{n}.xml"} for n in range(20100)]).status == 200
    log.write_text("".join(combined(now, target=f"/many/{n}.xml") + "\n" for n in range(20100)))
    done = server.cli("crawlers", "import", log)
    assert done.code == 0 and "20100 visits of crawlers" in done.out, done


def test_invalid_logs(tmp_path):
    logs, now = Logs(tmp_path), int(time.time())
    refused = lambda command, text: command.code == 1 and text in command.err and command.out == ""
    assert refused(logs.take("root:x:0:0", "x"), "malformed: no line is a request; line 1 is neither JSON nor the combined format")
    assert refused(logs.take("x" * 70000), "line 1 is longer than 64 KiB")
    whole = gzip.compress("".join(combined(now - n) + "\n" for n in range(2000)).encode())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    assert refused(logs.run("crawlers", "import", str(tmp_path / "cut.gz")), "corrupt there; nothing was imported")
    assert refused(logs.run("crawlers", "import", str(tmp_path / "none")), "No such file")
    assert logs.run("crawlers", "import", str(tmp_path / "cut.gz"), "--max-age", "soon").code == 2
    assert logs.run("crawlers", "import", str(tmp_path / "cut.gz"), "--server", "http://127.0.0.1:1").code == 2
    assert logs.report() == {}
    many = [cloudflare(now - n % 80 * 86400, ClientRequestURI=PAGE) for n in range(3000)]
    assert logs.take(*many).code == 0 and logs.sums() == (3000, 0, 0, 0)


def test_a_log_whose_site_is_not_known_is_not_spent(tmp_path):
    logs, now = Logs(tmp_path), int(time.time())
    logs.done("site", "add", "https://blog.example.org")
    lines = [combined(now, agent="curl/8"), combined(now)]
    for more in ([], ["--dry-run"]):
        refused = logs.take(*lines, more=more)
        assert refused.code == 1 and "line 2 has no host, and there is more than one site: name it with --site ORIGIN; nothing was imported" in refused.err, refused
    assert "0 visits of crawlers" in logs.take(cloudflare(now, ClientRequestHost="other.example"), name="foreign").out
    assert "0 visits of crawlers" in logs.run("crawlers", "import", str(tmp_path / "foreign")).out, "nothing of it was accepted"
    assert "2 requests: 1 visits of crawlers" in logs.take(*lines, more=["--site", ORIGIN]).out
    assert logs.sums() == (1, 0, 0, 0)


def test_impostors_of_a_log(tmp_path):
    logs, now = Logs(tmp_path, configured(tmp_path)), int(time.time())
    result = logs.take(combined(now), combined(now, address="203.0.113.9"), fastly(now))
    assert "2 visits of crawlers, 1 of impostors" in result.out and logs.sums() == (1, 0, 0, 1)


def test_a_server_imports_a_log(filled):
    """While it runs within a minute, which nobody waits for here; at the next start at the latest, once."""
    assert fetch(filled).status == 200
    counted(filled, (1, 0, 0, 0))
    log = os.path.join(os.path.dirname(filled.database), "log")
    with open(log, "w", encoding="utf-8") as file:
        file.write(combined(int(time.time())) + "\n")
    revision = filled.api("GET", "/v1/changes?since=0").json()["revision"]
    assert filled.cli("crawlers", "import", log).code == 0
    assert filled.api("GET", "/v1/changes?since=0").json()["revision"] == revision
    for _ in range(2):
        filled.restart()
        assert sums(filled) == (2, 0, 0, 0) and crawler(filled)["current"] == 1
    filled.kill()
    filled.start()
    assert sums(filled) == (2, 0, 0, 0)
    filled.stop()
    with sqlite3.connect(filled.database) as db:
        assert db.execute("SELECT count(*) FROM local_crawler_visits").fetchone() == (0,)
    db.close()
