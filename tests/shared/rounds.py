#!/usr/bin/python3
"""tests/shared/rounds.py [ROUNDS [SEED [FAULT]]]: three nodes on a pair of PostgreSQLs whose commits are synchronous, clients that
write through all of them, and in each round something that breaks: the primary is killed and its standby promoted, or
stands still, or ends all sessions; a node is killed, or stands still. Behind each round all is compared: what was
acknowledged is there, with the value that was last acknowledged, on all nodes, once; what was refused is not; no GET of a
node that ran has failed; the log has no gap. Prints a line for each round. Imported by test_rounds.py, the short form."""

import collections
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("lib", "http"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import postgres  # noqa: E402
from harness import ORIGIN, Server, eventually, sitemapd  # noqa: E402

NODES = ("a", "b", "c")
WRITERS = 2  # for each node


class Pair:
    """A primary and its synchronous standby; who is which changes."""

    def __init__(self):
        self.primary = postgres.Server().start()
        self.standby = self.primary.standby()
        self.ports = (self.primary.port, self.standby.port)

    def url(self):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgresql://postgres@{hosts}/{postgres.DATABASE}"

    def fail_over(self):
        """kill -9, promote; the old one, whose place another standby is to take."""
        old, self.primary = self.primary, self.standby
        old.kill()
        self.primary.promote()
        return old

    def replace(self, old):
        port = old.port
        old.end()
        self.standby = self.primary.standby(port=port)

    def end(self):
        self.primary.end()
        self.standby.end()


class Writer(threading.Thread):
    """Registers locs of its own through one node, and changes them: only it knows which value was acknowledged last."""

    def __init__(self, node, number, seed):
        super().__init__(daemon=True)
        self.node, self.random, self.name = node, random.Random(seed), f"{node.name}{number}"
        self.may_be = {}  # loc: the values that it may have, None where it may be absent
        self.outcomes = collections.Counter()
        self.stops, self.acknowledged_at, self.count = threading.Event(), [], 0

    def run(self):
        while not self.stops.is_set():
            if self.may_be and self.random.random() < 0.4:
                loc = self.random.choice(sorted(self.may_be))
            else:
                self.count += 1
                loc = f"{ORIGIN}/{self.name}-{self.count}.xml"
            value = f"2026-{self.random.randrange(1, 11):02}-{self.random.randrange(1, 29):02}T{self.random.randrange(24):02}:00:00Z"
            self.write(loc, value)

    def write(self, loc, value):
        before = self.may_be.get(loc, {None})
        try:
            reply = self.node.register(loc, lastmod=value)
            status, code = reply.status, reply.json().get("code")
        except (OSError, AssertionError):
            status, code = 0, "no answer"
        if status in (200, 201):
            self.may_be[loc] = {value}
            self.acknowledged_at.append(time.monotonic())
        elif status == 503:
            self.may_be[loc] = before  # not applied
        elif status in (0, 504):
            self.may_be[loc] = before | {value}
        else:
            raise AssertionError(f"{loc}: {reply}")
        self.outcomes[str(code or status)] += 1
        if status == 0 or status >= 500:
            self.stops.wait(0.05)


class Reader(threading.Thread):
    """Asks for the index all the time; counts what fails while the node is said to run."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.stops, self.runs, self.count, self.failed = node, threading.Event(), threading.Event(), 0, []
        self.runs.set()

    def run(self):
        while not self.stops.is_set():
            ran = self.runs.is_set()
            try:
                reply = self.node.get("/sitemap_index.xml")
                self.count += 1
                if ran and self.runs.is_set() and reply.status != 200:
                    self.failed.append(reply.status)
            except (OSError, AssertionError) as error:
                if ran and self.runs.is_set():
                    self.failed.append(error)
            self.stops.wait(0.02)


class Cluster:
    def __init__(self, folder, seed):
        self.random, self.pair, self.folder = random.Random(seed), Pair(), folder
        self.nodes, self.readers, self.writers = [], [], []
        for name in NODES:
            os.mkdir(os.path.join(folder, name))
        first = os.path.join(folder, NODES[0], "catalogue.db")
        for command in (("site", "add", ORIGIN), ("add", f"{ORIGIN}/first.xml"), ("share", "init", "--shared", self.pair.url())):
            done = sitemapd(*command, database=first)
            assert done.code == 0, done
        for name in NODES:
            node = Server(os.path.join(folder, name), sites=(), config=f"[shared]\ndatabase = {self.pair.url()}\nnode = {name}\n", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "10s"})
            node.name = name
            self.nodes.append(node.start())
        for node in self.nodes:
            eventually(lambda node=node: node.get("/sitemap_index.xml").status == 200, f"{node.name} has joined", within=60)
        self.readers = [Reader(node) for node in self.nodes]
        self.writers = [Writer(node, n, self.random.random()) for node in self.nodes for n in range(WRITERS)]
        for thread in self.readers + self.writers:
            thread.start()

    # ---- what breaks; behind each all could be well again

    def primary_dies(self):
        old = self.pair.fail_over()
        self.then = lambda: self.pair.replace(old)

    def primary_stands_still(self):
        self.pair.primary.pause()
        time.sleep(self.random.uniform(0.5, 4))
        self.pair.primary.resume()

    def sessions_end(self):
        self.pair.primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'sitemapd%'")

    def waits_are_cut(self):
        """An operator cancels what waits for the standby, again and again."""
        self.pair.standby.pause()
        for _ in range(10):
            self.pair.primary.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            time.sleep(0.1)
        self.pair.standby.resume()

    def node_dies(self):
        at = self.random.randrange(len(self.nodes))
        self.readers[at].runs.clear()
        node = self.nodes[at]
        addresses = node.public, node.admin
        node.process.send_signal(signal.SIGKILL)
        node.kill()
        for name, address in zip(("--listen", "--admin-listen"), addresses):
            node.args[node.args.index(name) + 1] = address  # where its clients look for it
        node.start()
        eventually(lambda: node.get("/sitemap_index.xml").status == 200, f"{node.name} serves again", within=60)
        self.readers[at].runs.set()

    def node_stands_still(self):
        at = self.random.randrange(len(self.nodes))
        self.readers[at].runs.clear()
        self.nodes[at].process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.5, 4))
        self.nodes[at].process.send_signal(signal.SIGCONT)
        self.nodes[at].get("/sitemap_index.xml")
        self.readers[at].runs.set()

    FAULTS = (primary_dies, node_dies, primary_stands_still, sessions_end, waits_are_cut, node_stands_still)

    # ---- a round

    def round(self, fault):
        """What breaks under load; then the load stops and all is compared. A line of what was seen."""
        self.then, began = lambda: None, time.monotonic()
        time.sleep(self.random.uniform(0.3, 1))
        fault(self)
        well = time.monotonic()
        try:  # every writer comes through again
            eventually(lambda: all(w.acknowledged_at and w.acknowledged_at[-1] > well for w in self.writers), f"writes after {fault.__name__}", within=60)
        except AssertionError:
            for node in self.nodes:
                print(node.name, node.api("GET", "/readyz", token=None).body.decode(), node.log()[-3000:], file=sys.stderr)
            print([(w.name, well - w.acknowledged_at[-1], w.is_alive()) for w in self.writers], self.outcomes(), file=sys.stderr)
            raise
        times = sorted(at for w in self.writers for at in w.acknowledged_at if at > began)
        longest = max(b - a for a, b in zip([began] + times, times))
        self.then()
        self.compare()
        return f"{fault.__name__}: at most {longest:.2f} s without a write; in all {dict(self.outcomes())}"

    def outcomes(self):
        return sum((w.outcomes for w in self.writers), collections.Counter())

    def export(self, node):
        done = sitemapd("export", "--server", f"http://{node.admin}", env={"SITEMAPD_TOKEN": node.token})
        assert done.code == 0, done
        return done.out

    def compare(self):
        for writer in self.writers:
            writer.stops.set()
        for writer in self.writers:
            writer.join(120)
            assert not writer.is_alive(), "a write has no end"
        self.all_agree()
        there = {}
        for line in self.export(self.nodes[0]).splitlines():
            entry = json.loads(line)
            assert entry["loc"] not in there, "twice"
            there[entry["loc"]] = entry.get("lastmod")
        for writer in self.writers:
            for loc, values in writer.may_be.items():
                assert there.get(loc) in values, f"{loc} is {there.get(loc)}, and may be {values}"
                writer.may_be[loc] = {there.get(loc)}
        for reader in self.readers:
            assert not reader.failed, f"GETs of {reader.node.name} failed: {reader.failed[:5]}"
        gaps = self.pair.primary.sql("SELECT max(seq) - min(seq) + 1 - count(*) FROM sitemapd.log")
        assert gaps == "0", "the log has gaps"
        self.go_on()

    def all_agree(self):
        """All nodes hold and serve the same, to the byte."""
        def same():
            head = self.pair.primary.sql("SELECT max(seq) FROM sitemapd.log")
            return all(str(node.api("GET", "/readyz", token=None).json()["shared"]["applied"]) == head for node in self.nodes)

        eventually(same, "all nodes are at the head", within=60)
        assert len({self.export(node) for node in self.nodes}) == 1, "nodes differ"
        eventually(lambda: len({(r.body, r["ETag"]) for r in (n.get("/sitemap_index.xml", {"Accept-Encoding": "gzip"}) for n in self.nodes)}) == 1, "equal bytes and tags")

    def go_on(self):
        fresh = []
        for old in self.writers:
            writer = Writer(old.node, 0, self.random.random())
            writer.name, writer.may_be, writer.outcomes, writer.count = old.name, old.may_be, old.outcomes, old.count
            writer.acknowledged_at = old.acknowledged_at
            fresh.append(writer)
        self.writers = fresh
        for writer in self.writers:
            writer.start()

    def end(self):
        for thread in self.writers + self.readers:
            thread.stops.set()
        for thread in self.writers + self.readers:
            thread.join(60)
        for node in self.nodes:
            node.kill()
        self.pair.end()


def main():
    if len(sys.argv) > 4 or any(arg.startswith("-") for arg in sys.argv[1:]):
        print("usage: tests/shared/rounds.py [ROUNDS [SEED [FAULT]]]", file=sys.stderr)
        return 2
    faults = [fault for fault in Cluster.FAULTS if len(sys.argv) < 4 or fault.__name__ == sys.argv[3]]
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else len(Cluster.FAULTS)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rounds.") as folder:
        cluster = Cluster(folder, seed)
        try:
            for number in range(rounds):
                print(f"{number + 1}: {cluster.round(faults[number % len(faults)])}", flush=True)
        finally:
            cluster.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
