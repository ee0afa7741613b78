# SPDX-License-Identifier: LicenseRef-Undeclared
"""Rounds of what breaks (tests/shared/run): clients write through all three nodes, and in each round something is killed,
promoted, cut off, frozen, full or lost. After each round all is compared: what was acknowledged is there, with the
value that was last acknowledged, once; what was refused is not; all nodes hold the same rows and serve the same bytes; no
GET of a node that ran has failed; the log has no gap. test_rounds.py is the short form."""

import collections
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import postgres
from cluster import SMALL, Cluster
from harness import ORIGIN, eventually

WRITERS = 2  # for each node


class Writer(threading.Thread):
    """Registers locs of its own through one node, and changes them: only it knows which value was acknowledged last."""

    def __init__(self, node, number, seed, forgets):
        super().__init__(daemon=True)
        self.node, self.random, self.name, self.forgets = node, random.Random(seed), f"{node.name}{number}", forgets
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
        before, forgets = self.may_be.get(loc, {None}), self.forgets.is_set()
        try:
            reply = self.node.register(loc, lastmod=value)
            status, code = reply.status, reply.json().get("code")
        except (OSError, AssertionError):
            status, code = 0, "no answer"
        if status in (200, 201):
            lasts = not forgets and not self.forgets.is_set()
            self.may_be[loc] = {value} if lasts else before | {value}
            self.acknowledged_at.append(time.monotonic())
        elif status == 503:
            self.may_be[loc] = before  # not applied
        elif status in (0, 504):
            self.may_be[loc] = before | {value}
        else:
            raise AssertionError(f"{loc}: {reply}")
        self.outcomes[str(code or status)] += 1
        self.stops.wait(0.05 if status == 0 or status >= 500 else 0.01)


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


class Rounds:
    def __init__(self, folder, seed, delay_ms=0):
        self.random = random.Random(seed)
        self.cluster = Cluster(folder, delay_ms, small=True, peers=True)
        self.pair, self.nodes = self.cluster.pair, self.cluster.nodes
        self.forgets = threading.Event()  # no standby is synchronous: what is acknowledged may be lost
        self.follower = self.cluster.follow(self.nodes[0])
        self.readers = [Reader(node) for node in [*self.nodes, self.follower]]
        self.writers = [Writer(node, n, self.random.random(), self.forgets) for node in self.nodes for n in range(WRITERS)]
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
        node.process.send_signal(signal.SIGKILL)
        node.kill()
        node.start()
        eventually(node.serves, f"{node.name} serves again", within=60)
        self.readers[at].runs.set()

    def peer_dies(self):
        """A node has lost its file, and one of those that it may copy another from dies meanwhile, or stands still."""
        at, other = self.random.sample(range(len(self.nodes)), 2)
        for place in (at, other):
            self.readers[place].runs.clear()
        node, peer = self.nodes[at], self.nodes[other]
        node.process.send_signal(signal.SIGKILL)
        node.kill()
        for path in pathlib.Path(node.database).parent.glob("catalogue.db*"):
            path.unlink() if path.is_file() else shutil.rmtree(path)
        node.start()
        copy = pathlib.Path(node.database + ".joining")
        eventually(lambda: copy.exists() or node.serves(), f"{node.name} copies", within=60)
        peer.process.send_signal(self.random.choice((signal.SIGKILL, signal.SIGSTOP)))
        eventually(node.serves, f"{node.name} has joined", within=120)
        peer.kill()
        peer.start()
        eventually(peer.serves, f"{peer.name} serves again", within=60)
        for place in (at, other):
            self.readers[place].runs.set()
        told = node.log().rsplit(" start: ", 1)[-1]
        self.told = f" ({told.count('shared-peer-copied')} copied from a peer, {told.count('shared-peer-failed')} failed)"

    def leader_dies(self):
        """A node forwards its writes to another one, which dies, or stands still for a while, with some of them under way."""
        at, other = self.random.sample(range(len(self.nodes)), 2)
        node, leader = self.nodes[at], self.nodes[other]
        self.forward(at, f"http://{leader.admin}")

        def count(outcome):
            return node.metrics()[f'sitemapd_forwarded_writes_total{{outcome="{outcome}"}}']

        eventually(lambda: count("answered") > 5, "writes are forwarded", within=60)
        self.readers[other].runs.clear()
        dies = self.random.random() < 0.7
        leader.process.send_signal(signal.SIGKILL if dies else signal.SIGSTOP)
        eventually(lambda: count("direct") > 5, "writes are applied by the node itself", within=60)
        if dies:
            leader.kill()
            leader.start()
        else:
            leader.process.send_signal(signal.SIGCONT)
        eventually(leader.serves, f"{leader.name} serves again", within=60)
        self.readers[other].runs.set()
        before = count("answered")
        eventually(lambda: count("answered") > before + 5, "writes are forwarded again", within=60)
        self.told = " (" + ", ".join(f"{count(outcome):.0f} {outcome}" for outcome in ("answered", "direct", "unknown")) + ")"
        self.forward(at, "auto")

    def forward(self, at, to):
        """Restarts a node, whose writes go there from now on."""
        node = self.nodes[at]
        self.readers[at].runs.clear()
        node.env["SITEMAPD_SHARED_FORWARD"] = to
        node.stop()
        node.start()
        eventually(node.serves, f"{node.name} serves again", within=60)
        self.readers[at].runs.set()

    def node_stands_still(self):
        at = self.random.randrange(len(self.nodes))
        self.readers[at].runs.clear()
        self.nodes[at].process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.5, 4))
        self.nodes[at].process.send_signal(signal.SIGCONT)
        self.nodes[at].serves()
        self.readers[at].runs.set()

    def node_is_cut(self):
        """Off the network, and what it sent arrives late."""
        node = self.random.choice(self.nodes)
        for relay in node.relays:
            relay.cut()
        time.sleep(self.random.uniform(0.5, 4))
        for relay in node.relays:
            relay.mend()

    def follower_is_cut(self):
        """It says so and serves what it has, also after it died."""
        self.follower.relays[0].cut()
        eventually(self.follower.is_cut_off, "the follower is cut off", within=60)
        if self.random.random() < 0.7:
            self.readers[-1].runs.clear()
            self.follower.process.send_signal(signal.SIGKILL)
            self.follower.kill()
            self.follower.start()
            assert self.follower.serves(), "it serves what it had"
            self.readers[-1].runs.set()
        time.sleep(self.random.uniform(0.5, 4))
        self.follower.relays[0].mend()

    def tail_is_lost(self):
        """The primary dies while a commit waits for the standby, comes back, shows that commit, and is gone for good."""
        self.pair.standby.kill()
        # Not one that the standby has and that only has not gone on yet.
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND clock_timestamp() - query_start > '2 s'"
        eventually(lambda: self.pair.primary.sql(waiting) != "0", "a commit waits for the standby")
        before = self.applied()
        self.pair.primary.kill()
        self.pair.primary.start(database=False)
        eventually(lambda: max(self.applied()) > max(before), "a node shows what waited", within=60)
        self.pair.primary.kill()
        self.lose()

    def failover_loses(self):
        """No standby is synchronous, and the one there is lags: what was acknowledged may be lost, and every node knows."""
        self.forgets.set()
        self.pair.primary.set(synchronous_standby_names="''")
        self.pair.standby.kill()
        before = self.applied()
        eventually(lambda: all(now > was + 5 for now, was in zip(self.applied(), before)), "writes go on", within=60)
        self.pair.primary.kill()
        self.lose()
        self.forgets.clear()

    def lose(self):
        """The primary and its standby are dead; the standby comes back without what came last, and is promoted. Every node
        that has more notices and replaces itself (contract C5)."""
        self.pair.standby.start(database=False)
        # It answers once it is consistent, and then has more to replay: until nothing is left but to wait for a primary.
        waits = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event IN ('RecoveryRetrieveRetryInterval', 'RecoveryWalStream')"
        eventually(lambda: self.pair.standby.sql(waits) == "1", "the standby has replayed what it has", within=60)
        kept = int(self.pair.standby.sql("SELECT max(seq) FROM sitemapd.log"))
        ahead = [(node, node.replaced()) for node, applied in zip(self.nodes, self.applied()) if applied > kept]
        assert ahead, "no node has more than the log"
        old = self.pair.promote()

        def then():
            self.pair.replace(old)
            for node, before in ahead:
                assert node.replaced() == before + 1, f"{node.name} has a past of its own"

        self.then, self.told = then, f" ({len(ahead)} nodes were ahead of record {kept})"

    def applied(self):
        return [node.shared()["applied"] for node in self.nodes]

    def disk_is_full(self):
        """One node has no room for what comes; it says so, and the others go on. What it had sent already when it met the full
        disk is in the log, and it cannot know."""
        at = next(at for at, node in enumerate(self.nodes) if node.name == SMALL)
        node, writers = self.nodes[at], [w for w in self.writers if w.node.name == SMALL]
        filler = node.small / "filler"

        def told():
            return sum(w.outcomes["no-space"] + w.outcomes["outcome-unknown"] for w in writers)

        full = told()
        with open(filler, "wb", buffering=0) as file:
            def no_space():
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:
                    return told() > full

            eventually(no_space, f"{node.name} says that its disk is full", within=60)
            others = [w for w in self.writers if w not in writers]
            begun = time.monotonic()
            eventually(lambda: all(w.acknowledged_at[-1] > begun for w in others), "the other nodes take writes", within=60)
        filler.unlink()

    def rows_differ(self):
        """Somebody changes a row of one node behind its back. The digest finds it: that node replaces itself, alone. A digest
        takes 2,000 rows of a table by turns: only of a small table is each row in each."""
        node = self.random.choice(self.nodes)
        before = [n.replaced() for n in self.nodes]
        with sqlite3.connect(node.database, timeout=60) as db:
            assert db.execute("UPDATE site SET robots_revision = robots_revision + 1").rowcount == 1
        db.close()
        eventually(lambda: node.replaced() > before[self.nodes.index(node)], f"{node.name} replaces itself", within=180)
        assert sum(n.replaced() for n in self.nodes) == sum(before) + 1, "others replaced themselves, too"

    def queue_is_full(self):
        """A session listens and sits in a transaction, and PostgreSQL's queue of notifications (8 GB) is full behind it."""
        url = self.pair.primary.url()
        listener = subprocess.Popen([postgres.binary("psql"), "-XAtq", "-d", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            listener.stdin.write("LISTEN filler;\nBEGIN;\nSELECT 'listens';\n")
            listener.stdin.flush()
            assert listener.stdout.readline() == "listens\n"
            began = time.monotonic()
            self.fill_queue()
            full = time.monotonic()
            eventually(lambda: all(w.acknowledged_at[-1] > full for w in self.writers), "writes go on", within=60)
            self.told = f" (full after {full - began:.0f} s; until then at most {self.longest(began, full):.1f} s without a write, then {self.longest(full, time.monotonic()):.1f})"
        finally:
            listener.stdin.close()
            listener.wait(60)
        eventually(lambda: self.pair.primary.sql("SELECT pg_notification_queue_usage() < 0.01") == "t", "the queue is empty again", within=60)

    def longest(self, began, end):
        """Without a write anywhere."""
        times = sorted(at for w in self.writers for at in list(w.acknowledged_at) if began < at < end)
        return max(b - a for a, b in zip([began, *times], [*times, end]))

    def fill_queue(self):
        once = "SELECT count(pg_notify('filler', i || repeat('x', 7900))) FROM generate_series(1, 20000) i"
        while True:
            done = subprocess.run([postgres.binary("psql"), "-XAtq", "-d", self.pair.primary.url(), "-c", once], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                assert "too many notifications" in done.stdout, done.stdout
                return

    QUICK = (primary_dies, node_dies, leader_dies, peer_dies, primary_stands_still, sessions_end, waits_are_cut, node_stands_still, node_is_cut, follower_is_cut, tail_is_lost, failover_loses, disk_is_full)
    SLOW = (rows_differ, queue_is_full)
    FAULTS = QUICK + SLOW

    # ---- a round

    def can(self, fault):
        return fault.__name__ != "disk_is_full" or any(node.is_small for node in self.nodes)

    def round(self, fault):
        """What breaks under load; then the load stops and all is compared. A line of what was seen."""
        self.then, self.told, began = lambda: None, "", time.monotonic()
        time.sleep(self.random.uniform(0.3, 1))
        well = time.monotonic()
        try:
            fault(self)
            well = time.monotonic()  # every writer comes through again
            eventually(lambda: all(w.acknowledged_at and w.acknowledged_at[-1] > well for w in self.writers), f"writes after {fault.__name__}", within=60)
            longest = self.longest(began, time.monotonic())
            self.then()
            self.compare()
        except AssertionError:
            for node in [*self.nodes, self.follower]:
                print(*(f"{path.name}: {path.stat().st_size}" for path in sorted(node.small.iterdir()) if path.is_file()), file=sys.stderr)
                print(node.name, node.api("GET", "/readyz", token=None).body.decode(), node.log()[-3000:], file=sys.stderr)
            print([(w.name, well - w.acknowledged_at[-1], w.is_alive()) for w in self.writers], self.outcomes(), file=sys.stderr)
            raise
        return f"{fault.__name__}{self.told}: at most {longest:.2f} s without a write; in all {dict(self.outcomes())}"

    def outcomes(self):
        return sum((w.outcomes for w in self.writers), collections.Counter())

    def compare(self):
        for writer in self.writers:
            writer.stops.set()
        for writer in self.writers:
            writer.join(120)
            assert not writer.is_alive(), "a write has no end"
        there = {entry["loc"]: entry.get("lastmod") for entry in self.cluster.all_agree()}
        for writer in self.writers:
            for loc, values in writer.may_be.items():
                assert there.get(loc) in values, f"{loc} is {there.get(loc)}, and may be {values}"
                writer.may_be[loc] = {there.get(loc)}
        for reader in self.readers:
            assert not reader.failed, f"GETs of {reader.node.name} failed: {reader.failed[:5]}"
        self.go_on()

    def go_on(self):
        fresh = []
        for old in self.writers:
            writer = Writer(old.node, 0, self.random.random(), self.forgets)
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
        self.cluster.end()


def run(folder, count, seed, delay_ms, only):
    """So many rounds, each fault in turn, then the slow ones once; or those of one fault."""
    faults = [fault for fault in Rounds.FAULTS if fault.__name__ == only] if only else Rounds.QUICK
    print(f"seed {seed}", flush=True)
    rounds = Rounds(folder, seed, delay_ms)
    try:
        faults = [fault for fault in faults if rounds.can(fault)]
        turns = [faults[n % len(faults)] for n in range(count)]
        for number, fault in enumerate(turns if only else turns + list(Rounds.SLOW)):
            print(f"{number + 1}: {rounds.round(fault)}", flush=True)
    finally:
        rounds.end()
