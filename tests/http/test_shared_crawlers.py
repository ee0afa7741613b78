# SPDX-License-Identifier: LicenseRef-Undeclared
"""/v1/crawlers of a catalogue on several machines: each node shows what crawlers fetched from all of them."""

import contextlib
import json
import shutil
import sqlite3

import pytest

from harness import eventually, faster, sitemapd
from test_crawlers import BING, crawler, crawlers, fetch, pages, sums
from nodes import joined, loc, reasons, served

MINUTES = 200  # a node reports each minute, and bounds a hang


def got(node, agent="", times=1):
    """So often the node answers the page to the crawler."""
    for _ in range(times):
        assert fetch(node, **({"agent": agent} if agent else {})).status == 200


def shows(node, wanted, name="googlebot", within=MINUTES):
    eventually(lambda: sums(node, name) == wanted, f"{name} counts {wanted} everywhere, not {sums(node, name)}", within=within)


def stop_and_report(node, others, wanted):
    """The node stops, and the others have what it counted. It sends that at the stop, unless it cannot reach PostgreSQL
    at that moment: then it is in its file, and the next stop sends it."""
    for last in (False, False, True):
        node.stop()
        try:
            for other in others:
                shows(other, wanted, within=MINUTES if last else 10)
            return
        except AssertionError:
            print(node.log())
            if last:
                raise
        node.start()
        joined(node)


def reported_by_commands(cluster, node, wanted):
    """The file beside its server, and the server, say the same of Googlebot's sums."""
    of_server = sitemapd("crawlers", "--json", "--server", f"http://{node.admin}", env={"SITEMAPD_TOKEN": node.token})
    of_file = sitemapd("crawlers", "--json", "--shared", cluster.postgres.url(), database=node.database)
    for result in (of_server, of_file):
        google = [line for line in result.lines() if line["name"] == "googlebot"][0]
        assert tuple(sum(day[kind] for day in google["days"]) for kind in ("ok", "not_modified", "other", "impostors")) == wanted, result


def head(cluster):
    return int(cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log"))


def kept(node):
    """How many fetches the node's own rows count."""
    with contextlib.closing(sqlite3.connect(f"file:{node.database}?mode=ro", uri=True)) as db:
        return db.execute("SELECT coalesce(sum(ok), 0) FROM local_crawler_day").fetchone()[0]


def known_to(node, name):
    return name in [c["name"] for c in crawlers(node)["crawlers"]]


def all_serve(nodes, what):
    for node in nodes:
        eventually(lambda node=node: loc(what) in served(node), "followed")


def test_each_node_reports_fetches_from_all_nodes(cluster):
    a, b, c = nodes = cluster.three(env=faster(10))
    assert a.register(loc("one")).status == 201
    all_serve(nodes, "one")
    got(a)
    got(b, times=2)
    got(c, BING)
    for node in nodes:
        shows(node, (3, 0, 0, 0))
        shows(node, (1, 0, 0, 0), "bingbot")
        assert (crawler(node)["current"], crawler(node)["stale"], crawler(node)["never"]) == (1, 0, 0)
    assert {crawlers(node)["since"] for node in nodes} == {min(crawlers(node)["since"] for node in nodes)}
    assert c.register(loc("two")).status == 201
    all_serve(nodes, "two")
    for node in nodes:  # what was got from another node is lacked here, too
        assert (crawler(node)["current"], crawler(node)["stale"]) == (0, 1)
    got(c)  # one fetch, from any node, and all know
    for node in nodes:
        shows(node, (4, 0, 0, 0))
        assert (crawler(node)["current"], crawler(node)["stale"]) == (1, 0)
        page = pages(node)["pages"][0]
        assert page["status"] == 200 and page["held_changed_at"] == page["changed_at"] and page["stale_since"] is None
        assert crawler(node)["lag"]["changes"] == 1
    reported_by_commands(cluster, a, (4, 0, 0, 0))
    b.kill()  # -9
    for node in (a, c):
        shows(node, (4, 0, 0, 0))
    b.start()
    got(b)
    shows(b, (5, 0, 0, 0))
    stop_and_report(b, (a, c), (5, 0, 0, 0))
    before = head(cluster)
    a.stop(), c.stop()  # nothing is new
    assert head(cluster) == before
    for node in nodes:
        node.start()
    for node in nodes:
        shows(node, (5, 0, 0, 0))
        assert known_to(node, "bingbot")


@pytest.mark.own_postgres
def test_what_is_counted_while_postgresql_is_away_is_reported_later(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    all_serve((a, b), "one")
    got(b)
    cluster.postgres.kill()
    eventually(lambda: "shared-unavailable" in reasons(b), "reported")
    got(b, times=2)
    b.stop()  # what it counted is in its file
    b.start()
    shows(b, (3, 0, 0, 0))
    cluster.postgres.start()
    eventually(lambda: not reasons(b).get("shared-unavailable"), "it is back")
    for _ in range(2):  # the second time it has nothing to report
        stop_and_report(b, [a], (3, 0, 0, 0))
        b.start()


def test_a_node_whose_disk_is_lost_goes_on_counting(cluster):
    a, b = cluster.node("a", env=faster(10)), cluster.node("b", env=faster(10))
    joined(b)
    assert a.register(loc("one")).status == 201
    all_serve((a, b), "one")
    got(b, times=3)
    stop_and_report(b, [a], (3, 0, 0, 0))
    shutil.rmtree(cluster.folder / "b")
    b = cluster.node("b", env=faster(10))  # an empty disk, the same name
    joined(b)
    shows(b, (3, 0, 0, 0))
    eventually(lambda: kept(b) == 3, "it has its sums again: what it counts before that is lost", within=MINUTES)
    got(b)
    shows(b, (4, 0, 0, 0))
    stop_and_report(b, [a], (4, 0, 0, 0))
    d = cluster.node("d", env=faster(10))  # another name
    joined(d)
    shows(d, (4, 0, 0, 0))


def test_what_was_counted_alone_is_reported(cluster):
    first = cluster.database("a")
    with sqlite3.connect(first) as db:
        epoch = db.execute("SELECT epoch FROM catalogue").fetchone()[0]
        day = db.execute("SELECT CAST(strftime('%s', 'now') / 86400 AS INTEGER)").fetchone()[0]
        site = db.execute("SELECT id FROM site").fetchone()[0]
        db.execute("INSERT INTO local_crawler(node, epoch, since) VALUES ('', ?, 1700000000)", (epoch,))
        db.execute("INSERT INTO local_crawler_day(node, crawler, site, day, ok, not_modified, other, impostors, bytes, last_fetch_at, lag_max, lags)"
                   " VALUES ('', 'googlebot', ?, ?, 7, 5, 0, 0, 100, ?, 0, zeroblob(192))", (site, day, day * 86400))
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    shows(a, (7, 5, 0, 0))
    stop_and_report(a, [b], (7, 5, 0, 0))
    assert crawlers(b)["since"] == "2023-11-14T22:13:20Z"
    a.start()
    shows(a, (7, 5, 0, 0))


def test_a_sites_token_sees_its_site_alone(cluster):
    shop = "https://shop.example.net"
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.api("POST", "/v1/sites", {"origin": shop}).status == 201
    assert a.register(loc("one")).status == 201
    token = cluster.token("shop", "--site", shop)
    all_serve((a, b), "one")
    got(b)
    stop_and_report(b, [a], (1, 0, 0, 0))
    result = a.api("GET", "/v1/crawlers", token=token)
    assert result.status == 200 and result.json()["crawlers"] == [], result
    assert json.loads(a.api("GET", "/v1/crawlers/googlebot/pages", token=token).body)["pages"] == []
