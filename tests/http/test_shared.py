"""One catalogue on three machines: three servers with a file each, and a PostgreSQL that the test starts. The short
form of tests/shared/run."""

import os
import signal
import sqlite3
import sys
import threading

import pytest

from harness import ORIGIN, Server, ask, eventually, locs, problem, sitemapd, write_gzip

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer, index, urlset  # noqa: E402
from postgres import Server as PostgreSQL  # noqa: E402

URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.example.com/%s</loc></url></urlset>'
NEXT = os.environ.get("SITEMAPD_NEXT_BIN", "")  # the program as if its catalogue had a newer form


def loc(name):
    return f"{ORIGIN}/{name}.xml"


class Cluster:
    """A PostgreSQL, and nodes by name, each with a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.postgres = PostgreSQL().start()
        self.nodes = {}
        first = self.database("a")
        assert sitemapd("site", "add", ORIGIN, database=first).code == 0
        made = sitemapd("share", "init", "--shared", self.postgres.url(), database=first)
        assert made.code == 0, made

    def database(self, name):
        os.makedirs(self.folder / name, exist_ok=True)
        return str(self.folder / name / "catalogue.db")

    def node(self, name, *args, config="", env=None, binary=None, **more):
        """A server that shares; its file is empty but for that of "a"."""
        config += f"\n[shared]\ndatabase = {self.postgres.url()}\nnode = {name}\n"
        self.database(name)
        node = Server(self.folder / name, *args, sites=(), config=config, env=env, **more)
        node.binary = binary or node.binary
        self.nodes[name] = node
        return node.start()

    def three(self, *args, **more):
        nodes = [self.node(name, *args, **more) for name in "abc"]
        for node in nodes:
            joined(node)
        return nodes

    def end(self):
        for node in self.nodes.values():
            node.kill()
        self.postgres.end()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    try:
        yield made
        for node in made.nodes.values():
            if node.process is not None:
                node.stop()
    finally:
        made.end()


def ready(node):
    reply = node.api("GET", "/readyz", token=None)
    return reply.status, reply.json()


def reasons(node):
    return {reason["code"]: reason["detail"] for reason in ready(node)[1]["reasons"]}


def joined(node):
    eventually(lambda: ready(node)[1].get("shared", {}).get("phase") == "joined", "joined", within=60)


def page(node):
    reply = node.get("/sitemap_index.xml", {"Accept-Encoding": "gzip"})
    return reply.body, reply["ETag"]


def served(node):
    reply = node.get("/sitemap_index.xml")
    return set(locs(reply.xml())) if reply.status == 200 else set()


def applied(node):
    return ready(node)[1]["shared"]["applied"]


def equal(nodes):
    """All at the same record; then what they hold and serve is the same, to the byte."""
    eventually(lambda: len({applied(node) for node in nodes}) == 1, "all nodes at one record", within=60)
    exports = {sitemapd("export", "--server", f"http://{node.admin}", env={"SITEMAPD_TOKEN": node.token}).out for node in nodes}
    assert len(exports) == 1
    eventually(lambda: len({page(node) for node in nodes}) == 1, "equal bytes and tags")


def test_what_one_takes_all_serve(cluster):
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


def test_a_list_does_not_outlast_who_waits_on_another_node(cluster):
    """The lock reaches over all nodes, and so does the bound of what a site's token may keep others waiting."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    b = cluster.node("b")
    joined(a), joined(b)
    shop = "https://shop.example.net"
    assert a.api("POST", "/v1/sites", {"origin": shop}).status == 201
    made = sitemapd("token", "add", "shop", "--site", shop, "--shared", cluster.postgres.url(), database=a.database)
    assert made.code == 0, made
    body = "".join(f'{{"loc":"{shop}/{i:0500}.xml"}}\n' for i in range(400_000)).encode()
    replies = []
    sender = threading.Thread(target=lambda: replies.append(
        a.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson", token=made.out.strip())))
    sender.start()
    i = 0
    while sender.is_alive():  # one of them waits behind the list
        i += 1
        assert b.register(loc(i)).status == 201
    sender.join()
    problem(replies[0], 413, "list-too-long")
    equal([a, b])


def test_without_postgresql_all_is_served_and_nothing_taken(cluster):
    a, b = cluster.node("a"), cluster.node("b", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    joined(b)
    assert b.register(loc("one")).status == 201
    eventually(lambda: loc("one") in served(a), "followed")
    cluster.postgres.kill()
    reply = b.register(loc("two"))
    problem(reply, 503, "shared-unavailable")
    assert int(reply["Retry-After"]) > 0
    eventually(lambda: "shared-unavailable" in reasons(b), "told")
    status, told = ready(b)
    assert status == 200 and told["status"] == "degraded"
    assert served(b) == {loc("one")}
    b.kill()
    b.start()  # a restart needs no PostgreSQL
    assert served(b) == {loc("one")} and ready(b)[0] == 200
    cluster.postgres.start()
    eventually(lambda: b.register(loc("two")).status in (200, 201), "writes again", within=60)
    eventually(lambda: served(a) == {loc("one"), loc("two")}, "followed")
    equal([a, b])


def test_an_empty_node_joins_once_it_can(cluster):
    a = cluster.node("a")
    assert a.register(loc("one")).status == 201
    cluster.postgres.stop()
    b = cluster.node("b")  # its ready line does not wait
    status, told = ready(b)
    assert status == 503 and told["status"] == "unavailable" and "joining" in reasons(b)
    assert b.register(loc("two")).status == 503
    cluster.postgres.start()
    joined(b)
    eventually(lambda: loc("one") in served(b), "joined and caught up", within=60)
    assert ready(b)[0] == 200


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


def test_a_key_is_answered_on_any_node(cluster):
    a, b, _ = cluster.three()
    call = ("POST", "/v1/sitemaps", {"loc": loc("one")})
    first = a.api(*call, headers={"Idempotency-Key": "k1"})
    assert first.status == 201
    eventually(lambda: applied(b) >= applied(a), "followed")
    again = b.api(*call, headers={"Idempotency-Key": "k1"})
    assert again.status == 201 and again["Idempotency-Replayed"] == "true" and again.body == first.body


def test_configurations_that_differ_are_told_and_undo_nothing(cluster):
    site = "[site \"{}\"]\norigin = https://{}.example\n"
    both = site.format("one", "one") + site.format("two", "two")
    a = cluster.node("a", config=both)
    managed = lambda node: {s["origin"] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}
    eventually(lambda: managed(a) == {"https://one.example", "https://two.example"}, "declared")
    eventually(lambda: "a" in {n["name"] for n in ready(a)[1]["shared"]["nodes"]}, "told", within=60)
    b = cluster.node("b", config=site.format("one", "one"))
    joined(b)
    eventually(lambda: "configuration-differs" in reasons(b) and "configuration-differs" in reasons(a), "both tell of it", within=60)
    assert managed(b) == managed(a) == {"https://one.example", "https://two.example"}
    problem(b.api("PATCH", f"/v1/sites/{next(s['id'] for s in b.api('GET', '/v1/sites').json()['sites'] if s['managed'])}", {"cross_hosts": []}), 409, "managed-by-config")


def test_what_a_node_declared_stays_before_it_tells_of_it(cluster):
    site = "[site \"{}\"]\norigin = https://{}.example\n"
    managed = lambda node: {s["origin"] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}
    a = cluster.node("a", config=site.format("one", "one"))
    eventually(lambda: managed(a) == {"https://one.example"}, "declared")
    a.stop()
    cluster.postgres.sql("UPDATE sitemapd.node SET state = '' WHERE name = 'a'")
    b = cluster.node("b", config=site.format("two", "two"))
    joined(b)
    eventually(lambda: "https://two.example" in managed(b), "declared")
    assert managed(b) == {"https://one.example", "https://two.example"}


def test_a_folder_is_led_by_a_node_that_has_it(cluster):
    folder, missing = cluster.folder / "files", cluster.folder / "none"
    folder.mkdir()
    write_gzip(folder / "a.xml.gz", URLSET % b"a")
    config = f'[source "files"]\ndirectory = {{}}\nurl = {ORIGIN}/files/\nsettle = 100ms\n'
    a = cluster.node("a", config=config.format(missing))
    b = cluster.node("b", config=config.format(folder))
    c = cluster.node("c", config=config.format(folder))
    everywhere = lambda name: all(f"{ORIGIN}/files/{name}.xml.gz" in served(node) for node in (a, b, c) if node.process)
    eventually(lambda: everywhere("a"), "one that has it scans", within=60)
    eventually(lambda: "a has no folder of files" in reasons(b).get("folder-missing", ""), "named", within=60)
    scans = [node for node in (b, c) if "source-scan" in node.log() and "1 file" in node.log()]
    leader = scans[0] if scans else b
    leader.kill()
    write_gzip(folder / "b.xml.gz", URLSET % b"b")
    eventually(lambda: everywhere("b"), "another leads", within=60)


def test_one_node_tells_search_engines(cluster):
    """Refused twice, which is half a minute apart, by one node alone; killed, another begins with what was not taken."""
    told, taken = [], []
    with Origin() as endpoint:

        def take(connection, _head):
            told.append(1)
            taken.extend([1] if len(told) > 2 else [])
            connection.sendall(answer(200 if len(told) > 2 else 429, Connection="close"))

        endpoint.answers["/indexnow"] = take
        nodes = cluster.three(config=(
            f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
            f"indexnow_key = 5f1c6a0e7d2b49c8\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
        begun = lambda: sqlite3.connect(f"file:{nodes[0].database}?mode=ro", uri=True).execute("SELECT 1 FROM indexnow").fetchone()
        eventually(begun, "it begins with what comes next", within=60)
        assert nodes[1].api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/shop.xml"}).status == 201
        assert nodes[1].api("POST", "/v1/urls", {"urlset": f"{ORIGIN}/shop.xml", "loc": f"{ORIGIN}/p/1"}).status == 201
        eventually(lambda: len(told) == 2, "it is told again", within=120)
        leaders = [node for node in nodes if "indexnow-failed" in node.log()]
        assert len(leaders) == 1
        leaders[0].kill()
        eventually(lambda: taken, "another node tells", within=120)


def test_commands_write_as_a_node_does(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    alone = sitemapd("add", loc("x"), database=b.database)
    assert alone.code == 1 and "shared" in alone.err, alone
    done = sitemapd("add", loc("x"), "--shared", cluster.postgres.url(), database=b.database)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: served(node) == {loc("x")}, "a command's entry is served")
    told = sitemapd("share", "status", "--shared", cluster.postgres.url())
    assert told.code == 0 and "warning" in told.out and "  a  " in told.out, told
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert again.code == 1, again


def test_metrics_tell_of_the_log(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    eventually(lambda: b.metrics()["sitemapd_shared_applied_total"] >= 1, "followed")
    values = a.metrics()
    assert values["sitemapd_shared_joined"] == 1 and values["sitemapd_shared_appended_total"] >= 1
    assert values["sitemapd_shared_applied_record"] == values["sitemapd_shared_head_record"]
    assert values["sitemapd_shared_away_seconds"] == 0


def test_what_nobody_knew_a_key_answers_on_any_node(cluster):
    """A commit that waits for a standby which is not there: applied or not, nobody can say."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    b = cluster.node("b")
    joined(b)
    call = ("POST", "/v1/sitemaps", {"loc": loc("one")})
    key = {"Idempotency-Key": "k1"}
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    problem(a.api(*call, headers=key), 504, "outcome-unknown")
    cluster.postgres.set(synchronous_standby_names="''")
    for node in (b, a):  # it was applied, once
        eventually(lambda node=node: loc("one") in served(node), "applied", within=60)
        again = node.api(*call, headers=key)
        assert again.status == 201 and again["Idempotency-Replayed"] == "true", again.body
    equal([a, b])


def test_upstreams_are_polled_by_a_node_that_has_them(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        shop.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        site = f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n'
        a = cluster.node("a", config=site)  # leads first
        b = cluster.node("b", config=f'{site}[source "shop"]\nupstream = {base}/list.xml\n')
        joined(b)
        listed = lambda node: base.encode() + b"/a.xml" in ask(node.public, "GET", "/sitemap_index.xml", host=f"{shop.address}:{shop.port}").body
        eventually(lambda: listed(b) and listed(a), "polled", within=90)


def test_what_init_is_refused_for_is_told(cluster):
    database = cluster.database("d")
    cluster.postgres.sql("CREATE ROLE lesser LOGIN", "postgres")
    cluster.postgres.sql("CREATE DATABASE other", "postgres")
    lesser = sitemapd("share", "init", "--shared", cluster.postgres.url("other", "lesser"), database=database)
    assert lesser.code == 1 and "permission denied" in lesser.err, lesser
    nobody = sitemapd("share", "init", "--shared", cluster.postgres.url("other"), "--grant-to", "nobody-there", database=database)
    assert nobody.code == 1 and "nobody-there" in nobody.err, nobody
    assert sitemapd("share", "init", "--shared", cluster.postgres.url("other"), "--grant-to", "lesser", database=database).code == 0
    told = sitemapd("share", "status", "--shared", cluster.postgres.url("other", "lesser"))
    assert told.code == 0 and "no node has served it yet" in told.out, told


def schema(node):
    with sqlite3.connect(f"file:{node.database}?mode=ro", uri=True) as db:
        return db.execute("PRAGMA user_version").fetchone()[0] % 1_000_000


def chance(node):
    with sqlite3.connect(f"file:{node.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT chance FROM next").fetchone()


def renewed(node):
    """The node, stopped, and started as the next release."""
    node.stop()
    node.binary = NEXT
    return node.start()


def newer_on_older(cluster, node, writer):
    """It follows and serves, and takes no write."""
    joined(node)
    eventually(lambda: "upgrade-pending" in reasons(node), "told", within=60)
    assert ready(node)[0] == 200
    problem(node.register(loc("refused")), 503, "upgrade-pending")
    assert writer.register(loc("older-writes")).status in (200, 201)
    eventually(lambda: loc("older-writes") in served(node), "followed", within=60)
    for path in ("/v1/sites", "/v1/sitemaps", "/v1/history", "/v1/indexes", "/v1/sources", "/v1/crawlers"):
        assert node.api("GET", path).status == 200, path


def test_nodes_are_upgraded_one_after_another(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    before = schema(a)
    newer_on_older(cluster, renewed(b), a)
    c = cluster.node("c", binary=NEXT)  # a newer one joins the older ones
    newer_on_older(cluster, c, a)
    renewed(a)  # the last: the catalogue gets its form by itself
    for node in (a, b, c):
        eventually(lambda node=node: node.register(loc(f"by-{id(node)}")).status in (200, 201), "writes", within=60)
        eventually(lambda node=node: "upgrade-pending" not in reasons(node), "told no more", within=60)
    equal([a, b, c])
    assert [schema(node) for node in (a, b, c)] == [before + 1] * 3
    assert len({chance(node) for node in (a, b, c)}) == 1  # one node's, not each one's own
    late = cluster.node("d")  # an older release comes too late
    eventually(lambda: "upgrade-needed" in reasons(late), "it is told to be upgraded", within=60)


def test_an_upgrade_by_hand(cluster):
    by_hand = {"SITEMAPD_SHARED_UPGRADE": "manual"}
    a, b = cluster.node("a", env=by_hand), cluster.node("b", env=by_hand)
    joined(b)
    newer_on_older(cluster, renewed(b), a)
    refused = sitemapd("share", "upgrade", "--shared", cluster.postgres.url(), database=b.database, binary=NEXT)
    assert refused.code == 1 and "older release" in refused.err, refused
    renewed(a)
    eventually(lambda: "upgrade-pending" in reasons(a), "told", within=60)
    problem(a.register(loc("two")), 503, "upgrade-pending")
    done = sitemapd("share", "upgrade", "--shared", cluster.postgres.url(), database=b.database, binary=NEXT)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: node.register(loc("two")).status in (200, 201), "writes", within=60)
    equal([a, b])
    assert schema(a) == schema(b) and chance(a) == chance(b)
