"""One catalogue on three machines: three servers with a file each, and a PostgreSQL that the test starts. The short
form of tests/shared/run."""

import contextlib
import hashlib
import os
import pathlib
import signal
import sqlite3
import sys
import threading
from concurrent import futures

import pytest

from harness import ORIGIN, PLAIN, Server, ask, eventually, locs, problem, seconds, sitemapd, write_gzip

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer, index, urlset  # noqa: E402
from pooler import Pooler  # noqa: E402
from postgres import DATABASE, Server as PostgreSQL  # noqa: E402

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
    eventually(lambda: ready(node)[1].get("shared", {}).get("phase") == "joined" and "joining" not in reasons(node), "joined", within=60)


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
    eventually(lambda: a.api("POST", "/v1/sites", {"origin": shop}).status in (201, 409), "its site")  # two seconds may not be enough
    made = sitemapd("token", "add", "shop", "--site", shop, "--shared", cluster.postgres.url(), database=a.database)
    assert made.code == 0, made
    body = "".join(f'{{"loc":"{shop}/{i:0500}.xml"}}\n' for i in range(400_000 if PLAIN else 100_000)).encode()
    replies = []

    def send():
        """Until it was its turn."""
        reply = a.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson", token=made.out.strip())
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


@pytest.mark.skipif(not PLAIN, reason="a figure of a dozen long lists on three nodes: dear, and each of them is written as any")
def test_of_lists_on_several_nodes_a_small_write_waits_for_one(cluster):
    """Two nodes are sent one list after another, each longer than others take over while they hold the lock."""
    nodes = cluster.three()
    writes_each = 6
    done = threading.Event()
    lists, problems = [0], []

    def send_lists(node, name):
        while not done.is_set():
            lists[0] += 1
            body = "".join(f'{{"loc":"{loc(f"{name}-{i}-{i * 7919 % 104729}")}","lastmod":"2026-01-{1 + lists[0] % 28:02}"}}\n' for i in range(120_000))
            with contextlib.suppress(OSError):  # no answer came in time: another list goes on
                reply = node.api("POST", "/v1/sitemaps", body=body.encode(), content_type="application/x-ndjson")
                if reply.status not in (200, 503):
                    problems.append((name, reply.status, reply.body))

    senders = [threading.Thread(target=send_lists, args=(node, name)) for node, name in zip(nodes, "ab")]
    for sender in senders:
        sender.start()
    waited = []
    try:
        eventually(lambda: int(cluster.postgres.sql("SELECT count(*) FROM sitemapd.log WHERE parts > 0")) > 1, "lists", within=120)
        for i in range(writes_each):
            for node, name in ((nodes[2], "c"), (nodes[0], "a")):
                head = cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log")
                assert node.register(loc(f"small-{name}-{i}")).status == 201
                waited.append(int(cluster.postgres.sql(
                    f"SELECT count(*) FROM sitemapd.log WHERE parts > 0 AND seq > {head} AND seq <"
                    f" (SELECT max(seq) FROM sitemapd.log WHERE node = '{name}' AND parts = 0)")))
    finally:
        done.set()
        for sender in senders:
            sender.join()
    assert not problems
    # Another may end between our look and the write, or begin while a node is at the one before.
    assert sum(waited) <= 1.5 * len(waited), waited
    equal(nodes)


def in_line(cluster):
    """The sites of lists that wait for their turn, over all nodes: each as often as nodes have lists of it. Whether that is its place, too."""
    line = int.from_bytes(hashlib.sha256(b"sitemapd line ").digest()[:4], "big")
    found = cluster.postgres.sql(f"SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint = {line}")
    return sorted((int(key) >> 24, int(key) & 0xffffff != 0xffffff) for key in found.split())


@contextlib.contextmanager
def no_list_begins(cluster, lock="list", how="pg_advisory_lock_shared"):
    """As while a node takes over what another's list wrote."""
    key = int.from_bytes(hashlib.sha256(f"sitemapd {lock} ".encode()).digest()[:8], "big", signed=True)
    keeps = threading.Thread(target=lambda: cluster.postgres.sql(
        f"SET application_name = 'keeps lists out'; SELECT {how}({key}); DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'enough') LOOP PERFORM pg_sleep(0.01); END LOOP; END $$"))
    keeps.start()
    try:
        eventually(lambda: cluster.postgres.sql(f"SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'keeps lists out' AND locktype = 'advisory' AND granted") == "1", "lists are kept out")
        yield
    finally:
        cluster.postgres.sql("CREATE TABLE public.enough()")
        keeps.join()
        cluster.postgres.sql("DROP TABLE public.enough")


def test_lists_of_a_site_leave_others_their_turn_on_other_nodes(cluster):
    """One site's lists at every node, four at each; another's at one of them, behind one of those: it is the second."""
    a, b, c = cluster.three(env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "300s"})
    sites = ["https://loud.example.org", "https://shop.example.net"]
    for site in sites:
        assert a.api("POST", "/v1/sites", {"origin": site}).status == 201
    tokens = {}
    for site in sites:
        made = sitemapd("token", "add", site.split("/")[2], "--site", site, "--shared", cluster.postgres.url(), database=a.database)
        assert made.code == 0, made
        tokens[site] = made.out.strip()
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


def test_who_holds_the_lock_is_told(cluster):
    """It may be another node's: no process of this machine need have the file."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "4s"})
    joined(a)
    with no_list_begins(cluster, "write", "pg_advisory_lock"):
        def told():
            assert a.register(loc("one")).status == 503
            return reasons(a).get("catalogue-not-writable")
        assert "another node holds the lock" in eventually(told, "told")
    eventually(lambda: "catalogue-not-writable" not in reasons(a), "over")


@pytest.mark.waits
def test_two_nodes_of_one_name_are_told(cluster):
    """A copied configuration: all is written and served, and one of them says what is wrong until it has another name."""
    a, b = cluster.node("a"), cluster.node("b")
    joined(a), joined(b)
    cluster.database("twin")
    twin = Server(cluster.folder / "twin", sites=(), config=f"\n[shared]\ndatabase = {cluster.postgres.url()}\nnode = b\n")
    cluster.nodes["twin"] = twin
    twin.start()
    joined(twin)
    named = lambda node: "shared-name-taken" in reasons(node)
    # The second, unless the first lost its connection meanwhile, and with it the name.
    told = eventually(lambda: [node for node in (b, twin) if named(node)], "one of them says so", within=120)
    assert len(told) == 1 and not named(a)
    eventually(lambda: "shared-name-taken: conflict: another node has the same name, b" in told[0].log(), "and in its log")
    assert twin.register(loc("one")).status == 201 and b.register(loc("two")).status == 201
    equal([a, b, twin])
    b.stop()
    eventually(lambda: not named(twin), "the only one of its name", within=60)
    assert not named(a)


def test_without_postgresql_all_is_served_and_nothing_taken(cluster):
    a, b = cluster.node("a"), cluster.node("b", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    joined(b)
    eventually(lambda: b.register(loc("one")).status in (200, 201), "written, though it may wait for two seconds only")
    eventually(lambda: loc("one") in served(a), "followed")
    cluster.postgres.kill()
    status = sitemapd("status", "--shared", cluster.postgres.url(), database=b.database)
    assert status.code == 1 and "(shared-unavailable)" in status.out, status
    refused = lambda reply: reply if reply.json().get("code") == "shared-unavailable" else None
    reply = eventually(lambda: refused(b.register(loc("two"))), "refused")
    assert reply.status == 503 and int(reply["Retry-After"]) > 0
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
    eventually(lambda: "request-failed: POST" in b.log(), "what failed is told")
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


def test_a_node_of_another_cluster_says_how_it_joins(cluster):
    a = cluster.node("a")
    joined(a)
    assert a.register(loc("old")).status == 201
    a.stop()
    cluster.postgres.sql("DROP SCHEMA sitemapd CASCADE")
    anew = cluster.database("anew")
    for words in (["site", "add", ORIGIN], ["add", loc("new")], ["share", "init", "--shared", cluster.postgres.url()]):
        assert sitemapd(*words, database=anew).code == 0
    a.start()
    eventually(lambda: "another one than this node's: to join it, stop this node and delete its file" in reasons(a).get("shared-unavailable", ""), "told")
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
        b.start()
        eventually(lambda: "shared-behind" in reasons(b), "told")
        status, told = ready(b)
        assert status == 200 and told["status"] == "degraded" and told["shared"]["behind_seconds"] < 5, told
        db.execute("ROLLBACK")
    equal([a, b])
    assert "shared-behind" not in reasons(b)


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


def test_a_node_that_reloads_knows_what_another_has_just_declared(cluster):
    """Nodes say what they declare every ten seconds: who has not said so yet is not taken for a node that does not."""
    site = "[site \"{0}\"]\norigin = https://{0}.example\n"
    managed = lambda node: {s["origin"][8:-8] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}

    def reload(node, *names):
        before = node.log().count(" reloaded:")
        config = pathlib.Path(node.folder) / "sitemapd.conf"
        config.write_text(config.read_text() + "".join(map(site.format, names)))
        node.process.send_signal(signal.SIGHUP)
        eventually(lambda: node.log().count(" reloaded:") > before, "reloaded", within=60)

    a, b = (cluster.node(name, config=site.format("one")) for name in "ab")
    for node in (a, b):
        eventually(lambda node=node: managed(node) == {"one"} and len(ready(node)[1]["shared"]["nodes"]) == 2, "each knows of the other", within=60)
    reload(a, "two")
    reload(b, "three")
    for node in (a, b):
        eventually(lambda node=node: managed(node) == {"one", "two", "three"}, "neither is undone", within=60)
    assert "site-no-longer-configured" not in a.log() + b.log()


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
    told = sitemapd("doctor", f"{ORIGIN}/sitemap_index.xml", "--connect", b.public, "--sample", "0", "--json", "--server", f"http://{b.admin}", env={"SITEMAPD_TOKEN": b.token})
    assert [line["level"] for line in told.lines() if line["check"] == "server" and "a has no folder of files" in line["what"]] == ["warning"], told
    scans = eventually(lambda: [node for node in (b, c) if "source-scanned" in node.log()], "who scans says so")
    assert len(scans) == 1
    scans[0].kill()
    write_gzip(folder / "b.xml.gz", URLSET % b"b")
    eventually(lambda: everywhere("b"), "another leads", within=60)


@pytest.mark.waits
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
        leaders = eventually(lambda: [node for node in nodes if "indexnow-failed" in node.log()], "it says so")
        assert len(leaders) == 1
        leaders[0].kill()
        eventually(lambda: taken, "another node tells", within=120)


def test_what_was_taken_is_told_once_though_nothing_can_be_written(cluster):
    """The position cannot be moved behind it while another has the lock: that alone is tried again."""
    told = []
    with Origin() as endpoint:

        def take(connection, _head):
            told.append(1)
            holding.wait(60)  # what cannot be written then is its position
            connection.sendall(answer(200, Connection="close"))

        holding = threading.Event()
        endpoint.answers["/indexnow"] = take
        a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "1s"}, config=(
            f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
            f"indexnow_key = 5f1c6a0e7d2b49c8\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
        joined(a)
        position = lambda: sqlite3.connect(f"file:{a.database}?mode=ro", uri=True).execute("SELECT revision FROM indexnow").fetchone()
        begun = eventually(position, "it begins with what comes next", within=60)
        assert a.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/shop.xml"}).status == 201
        assert a.api("POST", "/v1/urls", {"urlset": f"{ORIGIN}/shop.xml", "loc": f"{ORIGIN}/p/1"}).status == 201
        eventually(lambda: told, "it is told", within=60)
        with no_list_begins(cluster, "write", "pg_advisory_lock"):
            before = a.metrics()['sitemapd_catalogue_failed_writes_total{reason="busy"}']
            holding.set()
            eventually(lambda: a.metrics()['sitemapd_catalogue_failed_writes_total{reason="busy"}'] >= before + 3, "its position is refused", within=120)
        eventually(lambda: position() > begun, "its position moves", within=60)
        assert len(told) == 1


def test_commands_write_as_a_node_does(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    alone = sitemapd("add", loc("x"), database=b.database)
    assert alone.code == 1 and "shared" in alone.err, alone
    done = sitemapd("add", loc("x"), "--shared", cluster.postgres.url(), database=b.database)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: served(node) == {loc("x")}, "a command's entry is served")
    told = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url())
    eventually(lambda: "  a  " in told().out and "  b  " in told().out, "both have told")
    done = told()
    assert done.code == 0 and "warning" in done.out and "silent" not in done.out, done
    a.stop()
    cluster.postgres.sql("UPDATE sitemapd.node SET seen = now() - interval '2 minutes' WHERE name = 'a'")
    assert [line.split()[0] for line in told().out.splitlines() if "silent" in line] == ["a"], told()
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert again.code == 1 and "; start the server, which copies it to " in again.err, again
    assert not os.path.exists(cluster.database("d"))  # it would be a catalogue of its own
    d = cluster.node("d")
    joined(d)
    own = cluster.database("e")
    assert sitemapd("site", "add", ORIGIN, database=own).code == 0
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), database=own)
    assert again.code == 1 and "to join it, start a node without `share init`, on a path where there is no file yet" in again.err, again


def test_metrics_tell_of_the_log(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    eventually(lambda: b.metrics()["sitemapd_shared_applied_total"] >= 1, "followed")
    at_head = lambda values: values["sitemapd_shared_applied_record"] == values["sitemapd_shared_head_record"] and values["sitemapd_shared_away_seconds"] == 0
    eventually(lambda: at_head(a.metrics()), "all is applied, also what the other wrote of itself")
    values = a.metrics()
    assert values["sitemapd_shared_joined"] == 1 and values["sitemapd_shared_appended_total"] >= 1


def test_what_nobody_knew_a_key_answers_on_any_node(cluster):
    """A commit that waits for a standby which is not there: applied or not, nobody can say."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": f"{int(seconds(4))}s"})
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


def test_a_stop_does_not_wait_for_postgresql(cluster):
    """It stands still, as a machine that is gone, with a commit under way: Docker kills after ten seconds."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "600s"})
    joined(a)
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    said = []
    sender = threading.Thread(target=lambda: said.append(a.register(loc("one"))))
    sender.start()
    cluster.postgres.until(lambda: cluster.postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "1", "the commit waits")
    cluster.postgres.pause()
    try:
        a.stop(within=15)
    finally:
        cluster.postgres.resume()
    sender.join()
    problem(said[0], 504, "outcome-unknown")
    cluster.postgres.set(synchronous_standby_names="''")


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


def test_what_is_watched_for_another_nodes_upstream_stays(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/theirs.xml"] = answer(200, index(base + "/kept.xml"))
        stay = [f"{number}.xml" for number in range(4)]
        own = lambda names: answer(200, index(*(f"{base}/{name}" for name in names)))
        shop.answers["/own.xml"] = own(stay + ["goes.xml"])
        for name in ("kept.xml", "goes.xml", *stay):
            shop.answers["/" + name] = answer(200, urlset(base + "/page"))
        site = f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n'
        checks = lambda node: {check["loc"].rpartition("/")[2]: check["check"]["state"] for check in node.api("GET", "/v1/checks").json()["checks"]}
        b = cluster.node("b", config=f'{site}[source "theirs"]\nupstream = {base}/theirs.xml\n')
        joined(b)
        eventually(lambda: checks(b) == {"kept.xml": "good"}, "polled by the one that has it", within=90)
        a = cluster.node("a", config=f'{site}[source "own"]\nupstream = {base}/own.xml\n')
        joined(a)
        eventually(lambda: "configuration-differs" in reasons(a), "each knows what the other has", within=60)
        b.kill()
        kept = dict.fromkeys(["kept.xml", *stay], "good")
        eventually(lambda: checks(a) == {**kept, "goes.xml": "good"}, "another polls, and what it has not stays", within=90)
        shop.answers["/own.xml"] = own(stay)
        assert a.api("POST", "/v1/sources/own/scan").status < 300
        eventually(lambda: "goes.xml" not in checks(a), "it looked at all that is watched", within=90)
        assert checks(a) == kept


def test_an_upstream_is_polled_once_its_site_is_there(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        shop.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        a = cluster.node("a", config=f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\n[source "shop"]\nupstream = {base}/list.xml\n')
        b = cluster.node("b")
        joined(b)
        listed = lambda: base.encode() + b"/a.xml" in ask(a.public, "GET", "/sitemap_index.xml", host=f"{shop.address}:{shop.port}").body
        eventually(lambda: listed() or "source-scan-failed" in a.log(), "polled", within=90)
        assert "source-scan-failed" not in a.log() and "check-not-kept" not in a.log() + b.log(), a.log() + b.log()


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


def test_a_role_that_was_forgotten_is_granted_later(cluster):
    cluster.postgres.sql("CREATE ROLE forgotten LOGIN", "postgres")
    lesser = cluster.postgres.url(user="forgotten")
    told = sitemapd("share", "status", "--shared", lesser)
    assert told.code == 1 and "share init --if-absent --grant-to" in told.err, told
    granted = sitemapd("share", "init", "--if-absent", "--grant-to", "forgotten", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert granted.code == 0 and "granted to forgotten" in granted.out, granted
    assert sitemapd("share", "status", "--shared", lesser).code == 0
    refused = sitemapd("share", "init", "--if-absent", "--grant-to", "nobody-there", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert refused.code == 1 and "nobody-there" in refused.err, refused


@pytest.mark.parametrize("what, words", [
    ({"mode": "transaction"}, "a connection pooler in transaction mode is in front of PostgreSQL"),
    ({"release": "14.20"}, "this server is older than PostgreSQL 15"),
])
def test_what_locks_do_not_hold_on_is_refused(cluster, what, words):
    """At the start, in a sentence that says what works; by a node and by commands."""
    with Pooler(cluster.postgres, **what) as between:
        refused = sitemapd("share", "status", "--shared", between.url(DATABASE))
        assert refused.code == 1 and words in refused.err, refused
        refused = sitemapd("share", "init", "--shared", between.url("postgres"), database=cluster.database("d"))
        assert refused.code == 1 and words in refused.err, refused
        a = cluster.node("a", env={"SITEMAPD_SHARED": between.url(DATABASE)})
        eventually(lambda: words in reasons(a).get("shared-unavailable", ""), "told")
        eventually(lambda: f"shared-away: connection to PostgreSQL failed: {words}" in a.log(), "logged")
        assert a.register(loc("one")).status == 503
        assert ready(a)[0] == 200


def test_a_pooler_in_session_mode_is_used(cluster):
    with Pooler(cluster.postgres) as between:
        a = cluster.node("a", env={"SITEMAPD_SHARED": between.url(DATABASE)})
        b = cluster.node("b")
        joined(b)
        assert a.register(loc("one")).status == 201
        equal([a, b])
        a.stop()


def test_commits_that_wait_for_a_standby_are_told(cluster):
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    joined(a)
    cluster.postgres.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "postgres")
    cluster.postgres.sql("SELECT pg_reload_conf()", "postgres")
    eventually(lambda: a.register(loc("waits")).status in (503, 504), "it waits")
    status = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url()).out
    eventually(lambda: "commits wait for a synchronous standby" in status(), "told")
    eventually(lambda: "shared-standby-missing" in reasons(a), "and by the node", within=60)
    assert a.metrics()["sitemapd_shared_standby_wait_seconds"] >= 5
    eventually(lambda: "shared-standby-missing: timeout: commits of PostgreSQL wait" in a.log(), "and in its log")
    assert "silent" not in status()  # nodes tell without the standby
    cluster.postgres.sql("ALTER SYSTEM RESET synchronous_standby_names", "postgres")
    cluster.postgres.sql("SELECT pg_reload_conf()", "postgres")
    eventually(lambda: a.register(loc("after")).status in (200, 201), "writes again", within=60)
    eventually(lambda: "commits wait" not in status(), "over")
    eventually(lambda: "shared-standby-missing" not in reasons(a), "told no more", within=60)


def test_what_postgresql_refuses_is_told(cluster):
    """In its own words in the log; in /readyz, which anybody may read, by no name, address or port."""
    cluster.postgres.sql("CREATE ROLE guest LOGIN", "postgres")
    assert sitemapd("share", "init", "--if-absent", "--grant-to", "guest", "--shared", cluster.postgres.url(), database=cluster.database("d")).code == 0
    a = cluster.node("a", env={"SITEMAPD_SHARED": cluster.postgres.url(user="guest")})
    assert a.register(loc("one")).status == 201

    def told(code, words):
        eventually(lambda: words in reasons(a).get(code, ""), f"{code} is told", within=60)
        body = a.api("GET", "/readyz", token=None).body.decode()
        assert not [word for word in ("guest", cluster.postgres.address, str(cluster.postgres.port)) if word in body], body

    cluster.postgres.sql("ALTER ROLE guest NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'")
    told("shared-unavailable", "does not let this node in")
    eventually(lambda: 'role "guest" is not permitted to log in' in a.log(), "in the log", within=60)
    cluster.postgres.stop()
    eventually(lambda: "does not let" not in reasons(a).get("shared-unavailable", ""), "another reason", within=60)
    told("shared-unavailable", "connection to PostgreSQL has failed")
    cluster.postgres.start()
    cluster.postgres.sql("ALTER ROLE guest LOGIN; REVOKE INSERT ON sitemapd.log FROM guest")
    eventually(lambda: "shared-unavailable" not in reasons(a), "back", within=60)
    problem(a.register(loc("two")), 503, "shared-unavailable")
    told("shared-refused", "denies this node's role")
    eventually(lambda: "shared-refused" in a.log() and "permission denied for table log" in a.log(), "in the log")
    cluster.postgres.sql("GRANT INSERT ON sitemapd.log TO guest")
    eventually(lambda: a.register(loc("two")).status in (200, 201), "writes again", within=60)
    eventually(lambda: "shared-refused" not in reasons(a), "told no more")


def test_a_list_that_postgresql_leaves_is_told_by_its_name(cluster):
    """Whatever the list does when PostgreSQL goes: no file of this node is to blame."""
    a = cluster.node("a")
    joined(a)
    assert a.bulk([loc(f"old-{i}") for i in range(60_000)]).status == 200
    entries, said = [loc(f"new-{i}") for i in range(60_000)], []
    sender = threading.Thread(target=lambda: said.append(a.replace(entries, max_removed=60_000)))
    sender.start()
    writing = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND pid IN (SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND clock_timestamp() - xact_start > '200 ms')"
    eventually(lambda: cluster.postgres.sql(writing) != "0" or not sender.is_alive(), "it is being written", longest_pause=0.01)
    cluster.postgres.kill()
    sender.join()
    assert said[0].status == 200 or said[0].json()["code"] in ("shared-unavailable", "outcome-unknown"), said[0].json()


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
    checked = sitemapd("check", "--shared", cluster.postgres.url(), database=a.database, binary=NEXT)
    assert checked.code == 0 and checked.err == "" and checked.out.count("upgrade pending") == 1, checked
    done = sitemapd("share", "upgrade", "--shared", cluster.postgres.url(), database=b.database, binary=NEXT)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: node.register(loc("two")).status in (200, 201), "writes", within=60)
    equal([a, b])
    assert schema(a) == schema(b) and chance(a) == chance(b)
