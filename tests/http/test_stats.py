# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sums of days: GET /v1/stats, and how large sites were."""
import datetime
import sqlite3

from harness import ORIGIN, eventually, problem, q

SHOP = "https://shop.example.org"


def stats(server, query="", **more):
    reply = server.api("GET", "/v1/stats" + query, **more)
    assert reply.status == 200, reply
    return reply.json()


def days_of(server):
    """day(ago) of the server's today."""
    today = datetime.date.fromisoformat(stats(server)["to"])
    return lambda ago: (today - datetime.timedelta(days=ago)).isoformat()


def fetch(server, host="www.example.com", agent="Googlebot/2.1"):
    assert server.get("/sitemap_index.xml", [("User-Agent", agent)], host=host).status == 200


def stop(server):
    server.stop()
    return sqlite3.connect(server.database)


def test_a_day_has_what_there_was_when_it_was_last_seen(start):
    server = start(sites=(ORIGIN, SHOP))
    for n in range(3):
        assert server.register(f"{ORIGIN}/{n}.xml").status == 201
    assert server.register(f"{SHOP}/a.xml").status == 201
    fetch(server)
    eventually(lambda: stats(server)["crawlers"], "the fetch is counted")
    server.stop()
    server.start()
    answer, day = stats(server), days_of(server)
    assert (answer["site"], answer["from"], answer["to"], answer["step"]) == (None, day(89), day(0), "1d")
    assert answer["days"] == [{"day": day(0), "entries": 4, "urls": 0}]
    assert stats(server, "?site=" + q(SHOP))["days"] == [{"day": day(0), "entries": 1, "urls": 0}]
    [crawler] = answer["crawlers"]
    assert crawler["name"] == "googlebot" and crawler["days"] == [{"day": day(0), "ok": 1, "not_modified": 0, "other": 0, "impostors": 0, "lag": crawler["days"][0]["lag"]}]
    assert stats(server, "?site=" + q(SHOP))["crawlers"] == [] and answer["engines"] == []
    # A later start sees less, and the day's last state stays.
    assert server.api("DELETE", "/v1/sitemaps?loc=" + q(f"{SHOP}/a.xml")).status == 204
    server.stop()
    server.start()
    assert stats(server, "?site=" + q(SHOP))["days"] == [{"day": day(0), "entries": 0, "urls": 0}]


def test_urlsets_count_page_urls(start):
    server = start(sites=(ORIGIN,))
    made = server.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/pages.xml"})
    assert made.status == 201, made
    for n in range(5):
        assert server.api("POST", "/v1/urls", {"loc": f"{ORIGIN}/page/{n}", "urlset": f"{ORIGIN}/pages.xml"}).status in (200, 201)
    server.stop()
    server.start()
    day = days_of(server)
    assert stats(server)["days"] == [{"day": day(0), "entries": 1, "urls": 5}], "the index lists the urlset's page"


def test_steps_and_ranges(start):
    server = start(sites=(ORIGIN,))
    site_id = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    with stop(server) as db:
        today = db.execute("SELECT max(day) FROM local_site_day").fetchone()[0]
        db.execute("DELETE FROM local_site_day")
        for ago in range(0, 200):
            for site in (0, int(site_id)):
                db.execute("INSERT INTO local_site_day VALUES (?, ?, ?, ?)", (site, today - ago, 1000 - ago, ago))
        db.execute("INSERT INTO local_site_day VALUES (99, ?, 7, 7)", (today,))
    server.start()
    server.restart()
    assert stats(server)["days"][-1]["entries"] == 0, "today's is what there is"
    day = days_of(server)
    answer = stats(server, f"?from={day(20)}&to={day(7)}&step=7d")
    assert (answer["from"], answer["to"], answer["step"]) == (day(20), day(7), "7d")
    assert answer["days"] == [{"day": day(20), "entries": 986, "urls": 14}, {"day": day(13), "entries": 993, "urls": 7}]
    assert [one["day"] for one in stats(server, "?step=90d")["days"]] == [day(89)]
    assert len(stats(server)["days"]) == 90 and len(stats(server, "?from=2001-01-01&to=2999-12-31")["days"]) == 90
    assert [one["day"] for one in stats(server, f"?from={day(3)}&to={day(3)}")["days"]] == [day(3)]
    for query in ("step=0d", "step=91d", "step=7", "step=-1d", "step=1.5d", "step=7dd", "from=yesterday", "from=2026-11", "to=2026-11-31", "to=2026-11-21T00:00:00Z",
                  f"from={day(1)}&to={day(2)}", "from=2001-01-01&to=2001-02-01", "from=2998-01-01"):
        problem(server.api("GET", "/v1/stats?" + query), 400, "malformed-parameter", field=query.partition("=")[0])
    problem(server.api("GET", "/v1/stats?days=7"), 400, "unknown-parameter")
    with stop(server) as db:
        kept = db.execute("SELECT site, count(*), min(day) FROM local_site_day GROUP BY site ORDER BY site").fetchall()
    assert kept == [(0, 90, today - 89), (int(site_id), 90, today - 89)], "old days go, and those of sites that are gone"


def lags(**cells):
    """A histogram (db/crawler.h) with these numbers of changes: c9=3."""
    numbers = [0] * 48
    for name, count in cells.items():
        numbers[int(name[1:])] = count
    return b"".join(n.to_bytes(4, "little") for n in numbers)


def test_fetches_are_summed_and_delays_are_percentiles_of_the_sum(start):
    server = start(sites=(ORIGIN, SHOP))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    fetch(server)
    eventually(lambda: stats(server)["crawlers"], "counting has begun")
    ids = {one["origin"]: int(one["id"]) for one in server.api("GET", "/v1/sites").json()["sites"]}
    day = days_of(server)
    with stop(server) as db:
        today = db.execute("SELECT max(day) FROM local_site_day").fetchone()[0]
        put = lambda crawler, origin, ago, ok, same, other, impostors, histogram: db.execute(
            "INSERT OR REPLACE INTO local_crawler_day SELECT node, ?, ?, ?, ?, ?, ?, ?, 1, 1, 90, ?, 0 FROM local_crawler",
            (crawler, ids[origin], today - ago, ok, same, other, impostors, histogram))
        db.execute("DELETE FROM local_crawler_day")
        put("googlebot", ORIGIN, 8, 1, 2, 3, 4, lags(c5=9, c20=1))
        put("googlebot", SHOP, 8, 10, 20, 30, 40, lags())
        put("googlebot", ORIGIN, 7, 5, 6, 7, 8, lags(c20=30))
        put("bingbot", SHOP, 2, 1, 0, 0, 0, lags())
    server.start()

    def crawlers(query):
        return {one["name"]: one["days"] for one in stats(server, query)["crawlers"]}

    row = lambda ago, ok, same, other, impostors, lag: {"day": day(ago), "ok": ok, "not_modified": same, "other": other, "impostors": impostors, "lag": lag}
    each = crawlers(f"?from={day(8)}&to={day(0)}")
    short, long = each["googlebot"][0]["lag"]["p50_s"], each["googlebot"][1]["lag"]["p50_s"]
    assert 0 < short < long, "cells are of growing times"
    assert each == {"googlebot": [row(8, 11, 22, 33, 44, {"p50_s": short, "p90_s": short, "changes": 10}), row(7, 5, 6, 7, 8, {"p50_s": long, "p90_s": long, "changes": 30})],
                    "bingbot": [row(2, 1, 0, 0, 0, None)]}
    assert crawlers(f"?from={day(8)}&to={day(0)}&step=7d") == {"googlebot": [row(8, 16, 28, 40, 52, {"p50_s": long, "p90_s": long, "changes": 40})], "bingbot": [row(8, 1, 0, 0, 0, None)]}
    assert crawlers(f"?from={day(8)}&to={day(8)}&site={q(ORIGIN)}") == {"googlebot": [row(8, 1, 2, 3, 4, {"p50_s": short, "p90_s": short, "changes": 10})]}
    assert crawlers(f"?from={day(1)}") == {}


def test_a_token_sees_its_site(start):
    server = start(sites=(ORIGIN, SHOP))
    for origin in (ORIGIN, ORIGIN + "/x", SHOP):
        assert server.register(f"{origin}/a.xml").status == 201
    fetch(server)
    fetch(server, host="shop.example.org", agent="bingbot/2.0")
    eventually(lambda: len(stats(server)["crawlers"]) == 2, "both are counted")
    token = server.make_token("shop", "--site", SHOP, "--role", "read")
    server.stop()
    server.start()
    answer = stats(server, token=token)
    assert answer["site"] == SHOP and answer["days"][0]["entries"] == 1 and [one["name"] for one in answer["crawlers"]] == ["bingbot"]
    problem(server.api("GET", "/v1/stats?site=" + q(ORIGIN), token=token), 404, "site-unknown")


def test_many_sites_are_written_in_parts(start):
    origins = [f"https://s{n}.example.org" for n in range(601)]
    server = start(sites=(ORIGIN,))
    server.stop()
    with sqlite3.connect(server.database) as db:
        db.executemany("INSERT INTO site(origin, managed, max_pages) VALUES (?, 0, 500)", [(origin,) for origin in origins])
        db.executemany("INSERT INTO local_site_day VALUES (?, 20000, 1, 1)", [(n,) for n in range(5000, 5700)])  # of sites that are gone
    server.start()
    with stop(server) as db:
        assert db.execute("SELECT count(*), count(DISTINCT day) FROM local_site_day").fetchone() == (603, 1)
