# SPDX-License-Identifier: LicenseRef-Undeclared
"""One catalogue on three machines: three servers with a file each, and a PostgreSQL that the test starts. The short
form of tests/shared/run."""

import contextlib
import os
import signal
import sqlite3
import threading
from concurrent import futures

import pytest

from harness import ORIGIN, PLAIN, eventually, locs, problem, sitemapd
from nodes import applied, equal, in_line, joined, loc, no_list_begins, page, ready, reasons, served


def test_a_write_on_one_node_is_served_by_all(cluster):
    a, b, c = cluster.three()
    assert a.register(loc("one")).status == 201
    assert loc("one") in served(a)  # there in the very next GET
    for node in (b, c):
        eventually(lambda node=node: loc("one") in served(node), "followed")
    assert b.register(loc("two"), lastmod="2026-11-20").status == 201
    assert c.bulk([loc(f"many-{i}") for i in range(300)]).status == 200
    assert a.api("DELETE", f"/v1/sitemaps?loc={loc('one')}").status in (204, 404)
    equal([a, b, c])
    assert b.replace([loc("three")], max_removed=1000).status == 200
    equal([a, b, c])
    assert served(c) == {loc("three")}
    revision = c.api("GET", "/v1/history?limit=1").json()["changes"][0]["revision"]
    assert c.api("POST", f"/v1/history/{revision}/undo").status == 200
    equal([a, b, c])
    assert loc("two") in served(a)


def test_robots_txt_follows_the_pages_of_urlsets_on_all_nodes(cluster):
    nodes = cluster.three()
    line = f"Sitemap: {ORIGIN}/p.xml\n".encode()
    assert nodes[0].register(loc("first")).status == 201  # the index has its page
    site = nodes[0].api("GET", "/v1/sites").json()["sites"][0]["id"]
    assert nodes[0].api("PATCH", f"/v1/sites/{site}", {"robots": line.decode()}).status == 200
    assert nodes[0].api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/p.xml"}).status == 201
    for node in nodes:
        eventually(lambda node=node: line in node.get("/robots.txt").body, "the site's own line")
    equal(nodes)
    since = [node.api("GET", "/v1/changes?since=0").json()["next"] for node in nodes]
    assert nodes[0].api("POST", f"/v1/urls?urlset={ORIGIN}/p.xml", {"loc": f"{ORIGIN}/x"}).status == 201
    for node, at in zip(nodes, since):
        eventually(lambda node=node: line not in node.get("/robots.txt").body, "the page replaces it")
        listed = {page["url"]: page["etag"] for page in node.api("GET", f"/v1/changes?since={at}&wait=60").json()["pages"]}
        assert listed[f"{ORIGIN}/robots.txt"] == node.get("/robots.txt")["ETag"]


def test_a_list_does_not_outlast_who_waits_on_another_node(cluster):
    """The lock reaches over all nodes, and so does the bound of what a site's token may keep others waiting."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    b = cluster.node("b")
    joined(a), joined(b)
    shop = "https://shop.example.net"
    eventually(lambda: a.api("POST", "/v1/sites", {"origin": shop}).status in (201, 409), "its site")  # two seconds may not be enough
    token = cluster.token("shop", "--site", shop)
    body = "".join(f'{{"loc":"{shop}/{i:0500}.xml"}}\n' for i in range(400_000 if PLAIN else 100_000)).encode()
    replies = []

    def send():
        """Until it was its turn."""
        reply = a.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson", token=token)
        replies[:] = [reply]
        return reply.status != 503

    sender = threading.Thread(target=eventually, args=(send, "its turn", 240))
    sender.start()
    i = 0
    while sender.is_alive():  # one of them waits behind the list
        i += 1
        assert b.register(loc(i)).status == 201
    sender.join()
    problem(replies[0], 413, "list-too-long")
    equal([a, b])


def test_lists_of_a_site_leave_others_their_turn_on_other_nodes(cluster):
    """One site's lists at every node, four at each; another's at one of them, behind one of those: it is the second."""
    a, b, c = cluster.three(env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "300s"})
    sites = ["https://loud.example.org", "https://shop.example.net"]
    for site in sites:
        assert a.api("POST", "/v1/sites", {"origin": site}).status == 201
    tokens = {site: cluster.token(site.split("/")[2], "--site", site) for site in sites}
    equal([a, b, c])

    def put(node, site, name):
        body = "".join(f'{{"loc":"{site}/{name}/{i}.xml"}}\n' for i in range(20)).encode()
        reply = node.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson", token=tokens[site])
        assert reply.status == 200, reply
        return reply.json()["revision"]

    loud, shop = sites
    put(c, shop, "had-one")
    for turn in range(2):
        with futures.ThreadPoolExecutor(16) as pool:
            with no_list_begins(cluster):
                others = [pool.submit(put, node, loud, f"{turn}-{i}") for i, node in enumerate((a, b) * 4)]
                eventually(lambda: [place for _, place in in_line(cluster)] == [False, True], "in line on two nodes, with one place", within=120)
                others += [pool.submit(put, c, loud, f"{turn}-c{i}") for i in range(4)]
                eventually(lambda: len(in_line(cluster)) == 3, "in line on three nodes", within=120)
                mine = pool.submit(put, c, shop, f"{turn}")
                eventually(lambda: len({site for site, _ in in_line(cluster)}) == 2, "two sites in line", within=120)
            order = sorted([(each.result(), "loud") for each in others] + [(mine.result(), "shop")])
        assert [who for _, who in order].index("shop") <= 1, order
    equal([a, b, c])


def test_who_holds_the_lock_is_reported(cluster):
    """It may be another node's: no process of this machine need have the file."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "4s"})
    joined(a)
    with no_list_begins(cluster, "write", "pg_advisory_lock"):
        def outcome():
            assert a.register(loc("one")).status == 503
            return reasons(a).get("catalogue-not-writable")
        assert "another node holds the shared lock" in eventually(outcome, "reported")
    eventually(lambda: "catalogue-not-writable" not in reasons(a), "over")


@pytest.mark.own_postgres
def test_an_empty_node_joins_once_it_can(cluster):
    a = cluster.node("a")
    assert a.register(loc("one")).status == 201
    cluster.postgres.stop()
    b = cluster.node("b")  # its ready line does not wait
    status, outcome = ready(b)
    assert status == 503 and outcome["status"] == "unavailable" and "joining" in reasons(b)
    assert "no-site" not in reasons(b), "its sites come when it joins"
    eventually(lambda: "connection to PostgreSQL has failed" in reasons(b).get("joining", ""), "why it does not join")
    assert b.register(loc("two")).status == 503
    eventually(lambda: "request-failed: POST" in b.log(), "what failed is reported")
    assert "/readyz" not in b.log()
    cluster.postgres.start()
    joined(b)
    eventually(lambda: loc("one") in served(b), "joined and caught up", within=60)
    assert ready(b)[0] == 200


@contextlib.contextmanager
def watched(nodes):
    """What a crawler gets of the index meanwhile, again and again: (status, locs)."""
    done, seen = threading.Event(), []

    def crawl(node):
        while not done.is_set():
            reply = node.get("/sitemap_index.xml")
            seen.append((reply.status, set(locs(reply.xml())) if reply.status == 200 else set()))

    crawlers = [threading.Thread(target=crawl, args=(node,)) for node in nodes]
    for crawler in crawlers:
        crawler.start()
    try:
        yield seen
    finally:
        done.set()
        for crawler in crawlers:
            crawler.join()


def test_a_log_that_lost_its_tail_shows_no_state_in_between_and_lets_no_stale_writer_through(cluster):
    """As PostgreSQL restored from an older copy: all nodes are ahead of it, and its only snapshot is of an empty catalogue."""
    a, b, c = nodes = cluster.three()
    for i in range(40):
        assert a.register(loc(f"kept-{i}")).status == 201
    equal(nodes)
    kept, head = served(a), cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log")
    revision = lambda: a.api("GET", "/v1/changes?since=0").json()["revision"]
    for i in range(3):
        assert a.register(loc(f"lost-{i}")).status == 201
    equal(nodes)
    target = f"/v1/sitemaps?index={ORIGIN}/sitemap_index.xml"
    stale, lost = b.api("GET", target)["ETag"], revision()
    cursor = b.api("GET", "/v1/changes?since=0").json()["next"]
    with watched(nodes) as seen:
        cluster.postgres.sql(f"DELETE FROM sitemapd.part WHERE seq > {head}; DELETE FROM sitemapd.log WHERE seq > {head}")
        for node in nodes:
            eventually(lambda node=node: node.metrics()["sitemapd_shared_replaced_total"] == 1, "replaced", within=60)
            joined(node)
        equal(nodes)
    for node in nodes:  # however short it was
        eventually(lambda node=node: "shared-diverged: " in node.log(), "logged")
    assert {status for status, _ in seen} <= {200, 503}, "no 421 and no 404"
    assert all(kept <= entries for status, entries in seen if status == 200)
    i = 0
    while revision() < lost:
        i += 1
        assert a.register(loc(f"other-{i}")).status == 201
    for node in nodes:
        problem(node.api("PUT", f"{target}&max_removed=100", [{"loc": loc("stale")}], headers=[("If-Match", stale)]), 412, "precondition-failed")
        problem(node.api("GET", f"/v1/changes?since={cursor}"), 410, "revision-unknown")
    equal(nodes)
    assert kept < served(b)


def test_a_stale_writer_does_not_get_through_while_the_node_with_the_lost_records_is_away(cluster):
    """Nobody knows of a loss then, and the revision of the lost write is given again."""
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("kept")).status == 201
    equal([a, b])
    b.stop()
    head = cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log")
    target = f"/v1/sitemaps?index={ORIGIN}/sitemap_index.xml"
    revision = lambda node: node.api("GET", "/v1/changes?since=0").json()["revision"]
    assert a.register(loc("lost")).status == 201
    stale, lost = a.api("GET", target)["ETag"], revision(a)
    a.stop()
    cluster.postgres.sql(f"DELETE FROM sitemapd.part WHERE seq > {head}; DELETE FROM sitemapd.log WHERE seq > {head}")
    b.start()
    joined(b)
    assert b.register(loc("other")).status == 201
    assert revision(b) == lost
    problem(b.api("PUT", f"{target}&max_removed=100", [{"loc": loc("stale")}], headers=[("If-Match", stale)]), 412, "precondition-failed")
    a.start()
    eventually(lambda: a.metrics()["sitemapd_shared_replaced_total"] == 1, "replaced", within=60)
    equal([a, b])
    assert served(a) == {loc("kept"), loc("other")}


def test_a_node_of_another_cluster_says_how_it_joins(cluster):
    a = cluster.node("a")
    joined(a)
    assert a.register(loc("old")).status == 201
    a.stop()
    cluster.postgres.sql("DROP SCHEMA sitemapd CASCADE")
    again = cluster.database("again")
    for words in (["site", "add", ORIGIN], ["add", loc("new")], ["share", "init", "--shared", cluster.postgres.url()]):
        assert sitemapd(*words, database=again).code == 0
    a.start()
    eventually(lambda: "is not this node's: correct `database` or `schema`; or, to join it, stop this node and delete its file" in reasons(a).get("shared-unavailable", ""), "reported")
    assert served(a) == {loc("old")}
    a.stop()
    os.unlink(a.database)
    a.start()
    joined(a)
    eventually(lambda: served(a) == {loc("new")}, "it serves theirs")


def test_a_killed_node_is_as_the_others_again(cluster):
    a, b, c = cluster.three()
    for i in range(20):
        assert (a, b)[i % 2].register(loc(f"before-{i}")).status == 201
    b.process.send_signal(signal.SIGKILL)
    b.kill()
    for i in range(20):
        assert (a, c)[i % 2].register(loc(f"after-{i}")).status == 201
    b.start()
    equal([a, b, c])
    assert len(served(b)) == 40


@pytest.mark.skipif(not PLAIN, reason="it looks within five seconds of a start, behind which any lag is degraded")
def test_a_node_that_starts_far_behind_says_so_at_once(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    b.stop()
    for i in range(1001):
        assert a.register(loc("moves"), lastmod=f"2026-01-{1 + i % 28:02}").status in (200, 201)
    with contextlib.closing(sqlite3.connect(b.database, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")  # as a disk that lets it follow slowly

        def said():
            """What it said while that was all that it could know."""
            b.start()
            eventually(lambda: "shared-behind" in reasons(b), "reported")
            status, outcome = ready(b)
            if outcome["shared"]["behind_seconds"] < 5:
                return status, outcome
            b.stop()  # this machine was too busy for a look within them
            return None

        status, outcome = eventually(said, "a look within five seconds of a start")
        assert status == 200 and outcome["status"] == "degraded", outcome
        db.execute("ROLLBACK")
    equal([a, b])
    assert "shared-behind" not in reasons(b)


def test_postgresql_that_lost_the_catalogue(cluster):
    """The state of a node is shared again, as the command says."""
    a = cluster.node("a")
    assert a.register(loc("one")).status == 201
    before = page(a)
    a.stop()
    cluster.postgres.sql("DROP SCHEMA sitemapd CASCADE")
    shared, database = ("--shared", cluster.postgres.url()), cluster.database("a")
    rejected = sitemapd("share", "init", *shared, database=database)
    assert rejected.code == 1 and "`sitemapd backup` it and `sitemapd restore --replace` that copy" in rejected.err, rejected
    alone = str(cluster.folder / "alone.db")
    assert sitemapd("backup", alone, *shared, database=database).code == 0
    assert sitemapd("restore", "--replace", alone, *shared, database=database).code == 0
    assert sitemapd("share", "init", *shared, database=database).code == 0
    a.start()
    joined(a)
    b = cluster.node("b")
    joined(b)
    equal([a, b])
    assert page(b) == before


def test_a_key_is_answered_on_any_node(cluster):
    a, b, _ = cluster.three()
    call = ("POST", "/v1/sitemaps", {"loc": loc("one")})
    first = a.api(*call, headers={"Idempotency-Key": "k1"})
    assert first.status == 201
    eventually(lambda: applied(b) >= applied(a), "followed")
    again = b.api(*call, headers={"Idempotency-Key": "k1"})
    assert again.status == 201 and again["Idempotency-Replayed"] == "true" and again.body == first.body


def test_commands_write_as_a_node_does(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    alone = sitemapd("add", loc("x"), database=b.database)
    assert alone.code == 1 and "shared" in alone.err, alone
    done = sitemapd("add", loc("x"), "--shared", cluster.postgres.url(), database=b.database)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: served(node) == {loc("x")}, "a command's entry is served")
    outcome = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url())
    eventually(lambda: "  a  " in outcome().out and "  b  " in outcome().out, "both are reported")
    done = outcome()
    assert done.code == 0 and "warning" in done.out and "silent" not in done.out, done
    a.stop()
    cluster.postgres.sql("UPDATE sitemapd.node SET seen = now() - interval '2 minutes' WHERE name = 'a'")
    assert [line.split()[0] for line in outcome().out.splitlines() if "silent" in line] == ["a"], outcome()
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert again.code == 1 and "to join it, start the server, which copies it to " in again.err, again
    assert not os.path.exists(cluster.database("d"))  # it would be a catalogue of its own
    d = cluster.node("d")
    joined(d)
    own = cluster.database("e")
    assert sitemapd("site", "add", ORIGIN, database=own).code == 0
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), database=own)
    assert again.code == 1 and "to join it, start a node without `share init`, on a path where there is no file yet" in again.err, again


def test_a_backup_beside_a_node_is_read_alone(cluster, tmp_path):
    """docs/several-machines.md, "Restore the entries of a backup", with the configuration of a node."""
    a = cluster.node("a")
    assert a.register(loc("old")).status == 201
    config, copy, then = (str(tmp_path / name) for name in ("node.conf", "copy.db", "then.db"))
    with open(config, "w") as out:
        out.write(f"[catalogue]\ndatabase = {a.database}\n[shared]\ndatabase = {cluster.postgres.url()}\n")
    of_node = lambda *args, **more: sitemapd(*args, "--config", config, **more)
    assert of_node("backup", copy).code == 0
    assert a.replace([loc("new")], max_removed=10).status == 200
    assert of_node("restore", copy, database=then).code == 0
    for args in (("check",), ("list",), ("history",), ("site", "list"), ("export",), ("add", loc("more"))):
        done = of_node(*args, database=then)
        assert done.code == 0, done
    lines = of_node("export", database=then).out
    assert loc("old") in lines and loc("more") in lines and loc("new") not in lines
    done = sitemapd("import", "--replace", "--source", "*", "--max-removed", "10", "--server", f"http://{a.admin}", "-", input=lines, env={"SITEMAPD_TOKEN": a.token})
    assert done.code == 0, done
    assert served(a) == {loc("old"), loc("more")}
    # The node's own file by another name is that of the node; with --shared, a file must be a node's.
    os.symlink(a.database, tmp_path / "link.db")
    assert of_node("add", loc("by-link"), database=tmp_path / "link.db").code == 0
    eventually(lambda: loc("by-link") in served(a), "the node's file is written as a node does")
    refused = of_node("list", "--shared", cluster.postgres.url(), database=then)
    assert refused.code == 1 and "is not shared" in refused.err and "move it away" in refused.err, refused


def test_metrics_report_the_log(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    eventually(lambda: b.metrics()["sitemapd_shared_applied_total"] >= 1, "followed")
    at_head = lambda values: values["sitemapd_shared_applied_record"] == values["sitemapd_shared_head_record"] and values["sitemapd_shared_away_seconds"] == 0
    eventually(lambda: at_head(a.metrics()), "all is applied, also what the other wrote of itself")
    values = a.metrics()
    assert values["sitemapd_shared_joined"] == 1 and values["sitemapd_shared_appended_total"] >= 1


def test_a_reader_of_changes_that_is_ahead_of_a_node_waits_for_it(cluster):
    """A reader behind a proxy asks one node after another. The catalogue was not replaced: nothing is to be purged."""
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("seen")).status == 201
    equal([a, b])
    with contextlib.closing(sqlite3.connect(b.database, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")  # it cannot follow
        assert a.register(loc("one")).status == 201
        ahead = a.api("GET", "/v1/changes?since=0").json()["next"]
        early = b.api("GET", f"/v1/changes?since={ahead}")
        assert early.status == 200 and early.json()["pages"] == [] and early.json()["next"] == ahead, early
        with futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(b.api, "GET", f"/v1/changes?since={ahead}&wait=20")
            db.execute("ROLLBACK")
            assert a.register(loc("two")).status == 201
            late = waiting.result()
    assert late.status == 200 and [p["url"] for p in late.json()["pages"]] == [f"{ORIGIN}/sitemap_index.xml", f"{ORIGIN}/sitemap_index.xml.gz"], late
    assert late.json()["next"] == a.api("GET", "/v1/changes?since=0").json()["next"]


@pytest.mark.skipif(not PLAIN, reason="a digest is taken each 1,024 changes")
def test_two_nodes_with_different_rows_say_so(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("moves")).status == 201
    equal([a, b])
    b.stop()
    with contextlib.closing(sqlite3.connect(b.database)) as db, db:
        db.execute("UPDATE sitemap SET digest = 'other'")
    b.start()
    joined(b)
    assert "shared-rows-differ" not in reasons(a)
    for i in range(1024):
        assert a.register(loc("others"), lastmod=f"2026-01-{1 + i % 28:02}").status in (200, 201)
    for node, other in ((a, "b"), (b, "a")):
        eventually(lambda node=node: f"differ from those of {other}" in reasons(node).get("shared-rows-differ", ""), "said", within=60)
        assert ready(node)[1]["status"] == "degraded"
        eventually(lambda node=node: f"differ from those of {other}" in node.log(), "logged")
    b.stop()
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(b.database + end)
    b.start()
    joined(b)
    eventually(lambda: "shared-rows-differ" not in {**reasons(a), **reasons(b)}, "all is well once the wrong one was copied again", within=60)
    equal([a, b])
