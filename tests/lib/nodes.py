# SPDX-License-Identifier: LicenseRef-Undeclared
"""Servers that share a catalogue through a PostgreSQL of the test's own, and their states."""

import contextlib
import hashlib
import os
import threading

from harness import ORIGIN, Server, eventually, locs, sitemapd
from postgres import Server as PostgreSQL


def loc(name):
    return f"{ORIGIN}/{name}.xml"


ended_transactions = {}  # by the path of PostgreSQL's log, up to the last refused write


def has_ended_transactions(nodes):
    """True if PostgreSQL ended a transaction that stood still since the last call."""
    known = dict(ended_transactions)
    for path in {node.postgres.log for node in nodes}:
        with open(path, encoding="utf-8", errors="replace") as log:
            ended_transactions[path] = log.read().count("due to idle-in-transaction timeout")
    return any(count != known.get(path, 0) for path, count in ended_transactions.items())


def until_applied(nodes, write, refused):
    """The result of `write()`, which is sent again, as clients do, if it is refused since PostgreSQL ended its transaction:
    a node that stands still for two seconds in one, as on a machine with much to do, is rolled back (503, nothing applied)."""
    while refused(result := write()) and has_ended_transactions(nodes):
        for node in nodes:
            joined(node)
    return result


class Node(Server):
    """A server that shares. Its writes go through until_applied()."""

    postgres = None

    def api(self, method, *args, **more):
        send = lambda: super(Node, self).api(method, *args, **more)
        if method == "GET":
            return send()
        return until_applied([self], send, lambda reply: reply.status == 503 and reply.json()["code"] == "shared-unavailable")


class Cluster:
    """A PostgreSQL (of its own, or one that is given, perhaps with a schema), and nodes by name, each with a folder of its own."""

    def __init__(self, folder, postgres=None, schema=None):
        self.folder = folder
        self.postgres = postgres or PostgreSQL().start()
        self.owns_postgres = postgres is None
        self.schema = schema
        self.nodes = {}
        first = self.database("a")
        assert sitemapd("site", "add", ORIGIN, database=first).code == 0
        made = sitemapd("share", "init", "--shared", self.postgres.url(), *(("--schema", schema) if schema else ()), database=first)
        assert made.code == 0, made

    def database(self, name):
        os.makedirs(self.folder / name, exist_ok=True)
        return str(self.folder / name / "catalogue.db")

    def node(self, name, *args, config="", env=None, binary=None, **more):
        """A server that shares; its file is empty but for that of "a"."""
        config += f"\n[shared]\ndatabase = {self.postgres.url()}\nnode = {name}\n" + (f"schema = {self.schema}\n" if self.schema else "")
        self.database(name)
        node = Node(self.folder / name, *args, sites=(), config=config, env=env, **more)
        node.postgres = self.postgres
        node.binary = binary or node.binary
        self.nodes[name] = node
        return node.start()

    def token(self, name, *options):
        """One of the catalogue, added on the file of "a"; all nodes know it."""
        made = sitemapd("token", "add", name, *options, "--shared", self.postgres.url(), database=self.database("a"))
        assert made.code == 0, made
        token = made.out.strip()
        for node in self.nodes.values():
            eventually(lambda node=node: node.api("GET", "/v1/token", token=token).status == 200, f"the token {name} is known")
        return token

    def three(self, *args, **more):
        nodes = [self.node(name, *args, **more) for name in "abc"]
        for node in nodes:
            joined(node)
        return nodes

    def end(self):
        for node in self.nodes.values():
            node.kill()
        if self.owns_postgres:
            self.postgres.end()


def until_its_end(made):
    """For a fixture: the cluster, whose nodes are stopped after a test that passed, and whatever is left ended."""
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


def in_line(cluster):
    """The sites with waiting lists, over all nodes: each as often as nodes have lists of it."""
    line = int.from_bytes(hashlib.sha256(b"sitemapd line ").digest()[:4], "big")
    found = cluster.postgres.sql(f"SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND objsubid = 1 AND classid::bigint = {line}")
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
