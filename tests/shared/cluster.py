# SPDX-License-Identifier: LicenseRef-Undeclared
"""Three nodes that share one catalogue over a pair of PostgreSQLs, the standby synchronous, each node behind relays of its
own (tests/lib/relay.py): what rounds, soak, day and figures all start. And what all nodes have to agree on."""

import os
import pathlib
import re
import sqlite3
import subprocess

import postgres
from harness import ORIGIN, Server, eventually, locs, sitemapd
from relay import Relay

NAMES = ("a", "b", "c")
SMALL = "c"  # whose disk is small, where root runs this
SMALL_BYTES = 128 << 20


class Pair:
    """A primary and its synchronous standby; who is which changes, their ports stay."""

    def __init__(self):
        self.primary = postgres.Server().start()
        self.standby = self.primary.standby()
        self.ports = (self.primary.port, self.standby.port)

    def url(self, ports=None):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports or self.ports)
        return f"postgresql://postgres@{hosts}/{postgres.DATABASE}"

    def promote(self):
        """The standby takes the place of the primary, which is dead; that, whose place another is to take."""
        old, self.primary = self.primary, self.standby
        self.primary.promote()
        return old

    def fail_over(self):
        self.primary.kill()
        return self.promote()

    def replace(self, old):
        port = old.port
        old.end()
        self.standby = self.primary.standby(port=port)

    def end(self):
        self.primary.end()
        self.standby.end()


class Node(Server):
    def __init__(self, cluster, name, config):
        self.name, self.small = name, cluster.folder / name
        self.small.mkdir()
        self.is_small = name == SMALL and cluster.with_small and os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(self.small)], stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.relays = [Relay(port, cluster.delay_ms) for port in cluster.pair.ports if cluster.delay_ms is not None]
        config = f"[shared]\ndatabase = {cluster.pair.url([r.port for r in self.relays])}\nnode = {name}\n{config}"
        # Of its own also while it is down, when others are given free ones: its clients look for it there.
        public, admin = (f"127.0.0.1:{postgres.free_port()}" for _ in range(2))
        config += f"\n[shared]\nadvertise = http://{admin}\npeer_token_file = {cluster.secret}\n" if cluster.secret else ""
        super().__init__(cluster.folder / name, "--listen", public, "--admin-listen", admin, sites=(), config=config,
                         env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "10s", **cluster.env})
        self.log_path = str(cluster.folder / f"{name}.log")

    def shared(self):
        return self.api("GET", "/readyz", token=None).json()["shared"]

    def serves(self):
        return self.get("/sitemap_index.xml").status == 200

    def replaced(self):
        return self.metrics()["sitemapd_shared_replaced_total"]

    def export(self):
        done = sitemapd("export", "--server", f"http://{self.admin}", env={"SITEMAPD_TOKEN": self.token})
        assert done.code == 0, done
        return done.lines()

    def pages(self):
        """All that robots.txt names, and what these name of the node's own: bytes and tags."""
        found = {}
        for line in self.get("/robots.txt").body.decode().splitlines():
            url = line.removeprefix("Sitemap: ")
            if not url.startswith(ORIGIN):
                continue
            self.take(url, found)
            for loc in locs(found[url][3]):
                if "/urls" in loc:  # a urlset's, by these tests' names
                    self.take(loc, found)
        return found

    def take(self, url, found):
        reply = self.get(url.removeprefix(ORIGIN), {"Accept-Encoding": "gzip"})
        found[url] = reply.status, reply.body, reply["ETag"], reply.xml() if reply.status == 200 else b""

    def dump(self):
        """The log's record at which the file is, and all rows of what nodes share."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60) as db:
            db.execute("BEGIN")
            seq = db.execute("SELECT seq FROM local_shared").fetchone()[0]
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1") if not re.match("local_|sqlite_", name)]
            rows = {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables}
        db.close()
        return seq, rows

    def end(self):
        self.kill()
        for relay in self.relays:
            relay.end()
        if self.is_small:
            subprocess.run(["umount", "-l", str(self.small)], check=True)


class Follower(Node):
    """Follows a node, over a relay of its own."""

    def __init__(self, cluster, node):
        self.name, self.small, self.is_small = "f", cluster.folder / "f", False
        self.small.mkdir()
        self.relays = [Relay(int(node.admin.rsplit(":", 1)[1]), cluster.delay_ms or 0)]
        config = f"[shared]\nfollow = http://127.0.0.1:{self.relays[0].port}\npeer_token_file = {cluster.secret}\nnode = f\n"
        Server.__init__(self, self.small, *(word for door in ("--listen", "--admin-listen") for word in (door, f"127.0.0.1:{postgres.free_port()}")),
                        sites=(), config=config, env=cluster.env)
        self.log_path = str(cluster.folder / "f.log")

    def is_cut_off(self):
        return any(reason["code"] == "shared-unavailable" for reason in self.api("GET", "/readyz", token=None).json()["reasons"])


class Cluster:
    """`delay_ms`: of each direction between a node and PostgreSQL; None: no relay. `small`: the disk of one node is a small
    one. `config`: more lines for all nodes. `peers`: the nodes copy each other's files."""

    def __init__(self, folder, delay_ms=0, small=False, config="", env=None, peers=False):
        self.folder, self.delay_ms, self.with_small, self.env = pathlib.Path(folder), delay_ms, small, env or {}
        self.secret = self.folder / "peer-token" if peers else None
        if peers:
            self.secret.touch(0o600)
            self.secret.write_text("0123456789abcdef" * 4)
        self.pair, self.nodes, self.followers = Pair(), [], []
        try:
            self.found(config)
        except BaseException:
            self.end()
            raise

    def found(self, config):
        first = str(self.folder / "first.db")
        for command in (("site", "add", ORIGIN), ("add", f"{ORIGIN}/first.xml"), ("share", "init", "--shared", self.pair.url())):
            done = sitemapd(*command, database=first)
            assert done.code == 0, done
        for name in NAMES:
            self.nodes.append(Node(self, name, config))
            self.nodes[-1].start()
        for node in self.nodes:
            eventually(node.serves, f"{node.name} has joined", within=60)

    def follow(self, node):
        self.followers.append(Follower(self, node))
        self.followers[-1].start()
        eventually(self.followers[-1].serves, "the follower has the catalogue", within=60)
        return self.followers[-1]

    def head(self):
        return int(self.pair.primary.sql("SELECT max(seq) FROM sitemapd.log"))

    def at_the_head(self):
        eventually(lambda: {node.shared()["applied"] for node in self.nodes + self.followers} == {self.head()}, "all nodes are at the head", within=120)

    def all_agree(self):
        """While nobody writes: all nodes, and those that follow one, hold the same rows, and serve the same bytes by the same tags. What a node does by
        itself, a purge for one, may come in between. What is held: the entries."""
        everyone = self.nodes + self.followers

        def equal_dumps():
            self.at_the_head()
            found = [node.dump() for node in everyone]
            if len({seq for seq, _ in found}) > 1:
                return False
            for node, (seq, rows) in zip(everyone[1:], found[1:]):
                for table in rows:
                    assert rows[table] == found[0][1][table], f"a and {node.name} differ at {seq} in {table}: {[r for r in rows[table] if r not in found[0][1][table]][:3]}"
            return True

        def equal_pages():
            first, *others = [node.pages() for node in everyone]
            return all(other == first for other in others) and all(page[0] == 200 for page in first.values())

        eventually(equal_dumps, "equal dumps", within=120)
        eventually(equal_pages, "equal bytes and tags", within=120)
        entries = self.nodes[0].export()
        held = {entry["loc"] for entry in entries}
        assert len(held) == len(entries), "an entry is there twice"
        gaps = self.pair.primary.sql("SELECT max(seq) - min(seq) + 1 - count(*) FROM sitemapd.log")
        assert gaps == "0", "the log has gaps"
        return entries

    def end(self):
        for node in self.nodes + self.followers:
            node.end()
        self.pair.end()
