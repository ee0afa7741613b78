"""tests/shared/run: cuts, the day and the figures. See there; the rounds of faults are rounds.py."""

import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from harness import ORIGIN, TOKEN, Server, sitemapd
from postgres import Server as PostgreSQL
from postgres import free_port

SETTLE_SECONDS = 120  # bounds a hang


def until(check, what, within=SETTLE_SECONDS):
    end = time.monotonic() + within
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < end, f"not within {within} s: {what}"
        time.sleep(0.02)


class Relay:
    """A port of loopback that leads to another, until it is cut: then it stands still, as a network that is gone."""

    def __init__(self):
        self.target, self.cut, self.pairs = None, threading.Event(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.cut.is_set() or self.target is None:
                self.pairs.append((client, client))
                if self.target is None:
                    client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            self.pairs.append((client, server))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        try:
            one.settimeout(None)
            while data := one.recv(65536):
                while self.cut.is_set():
                    time.sleep(0.02)
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Pair:
    """A primary with its synchronous standby."""

    def __init__(self):
        self.primary = PostgreSQL(durable=True).start()
        self.standby = self.primary.standby()

    def fail_over(self):
        """-9 for the primary; the standby takes its place, and gets one of its own."""
        self.primary.kill()
        old, self.primary = self.primary, self.standby
        self.primary.promote()
        old.end()

    def mend(self):
        self.standby = self.primary.standby()

    def end(self):
        for server in (self.standby, self.primary):
            server.end()


class Cluster:
    def __init__(self, folder, relayed=True):
        self.folder = pathlib.Path(folder)
        self.pair = Pair()
        self.relays = {name: (Relay(), Relay()) for name in "abc"}
        self.point()
        self.nodes = {}
        first = self.database("a")
        assert sitemapd("site", "add", ORIGIN, database=first).code == 0
        made = sitemapd("share", "init", "--shared", self.pair.primary.url(), database=first)
        assert made.code == 0, made
        for name in "abc":
            self.database(name)
            ports = [relay.port for relay in self.relays[name]] if relayed else [self.pair.primary.port]
            hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
            self.nodes[name] = Server(self.folder / name, sites=(), config=f"[shared]\ndatabase = postgresql://postgres@{hosts}/sitemapd\nnode = {name}\n[admin]\nmax_suspended = 500\n").start()
        for node in self.nodes.values():
            until(lambda node=node: shared(node)["phase"] == "joined", "joined")

    def database(self, name):
        os.makedirs(self.folder / name, exist_ok=True)
        return str(self.folder / name / "catalogue.db")

    def point(self):
        for first, second in self.relays.values():
            first.target, second.target = self.pair.primary.port, self.pair.standby.port

    def fail_over(self):
        self.pair.fail_over()
        self.point()

    def mend(self):
        self.pair.mend()
        self.point()

    def end(self):
        for node in self.nodes.values():
            node.kill()
        self.pair.end()


def shared(node):
    return node.api("GET", "/readyz", token=None).json()["shared"]


def held(node):
    """The locs of a node."""
    out = sitemapd("export", "--server", f"http://{node.admin}", env={"SITEMAPD_TOKEN": node.token})
    assert out.code == 0, out
    return [line["loc"] for line in out.lines()]


def at_the_head(cluster):
    head = lambda: int(cluster.pair.primary.sql("SELECT max(seq) FROM sitemapd.log"))
    until(lambda: {shared(node)["applied"] for node in cluster.nodes.values()} == {head()}, "all nodes at the head")


def same_everywhere(cluster):
    """All nodes at the head of the log: then they hold and serve the same. The locs."""
    nodes = list(cluster.nodes.values())
    at_the_head(cluster)
    found = [held(node) for node in nodes]
    assert found[0] == found[1] == found[2], "nodes hold different entries"
    page = lambda node: node.get("/sitemap_index.xml", {"Accept-Encoding": "gzip"})
    until(lambda: len({(page(node).body, page(node)["ETag"]) for node in nodes}) == 1, "equal pages")
    assert len(found[0]) == len(set(found[0])), "an entry is there twice"
    return set(found[0])


class Writer(threading.Thread):
    """Registers one after another at a node; a call that got no answer, or 504, is asked for again by its key."""

    def __init__(self, cluster, name, tag):
        super().__init__(daemon=True)
        self.cluster, self.name_, self.tag, self.stopping = cluster, name, tag, threading.Event()
        self.acknowledged, self.refused, self.unknown, self.made = [], 0, 0, 0

    def ask(self, loc, key):
        try:
            return self.cluster.nodes[self.name_].api("POST", "/v1/sitemaps", {"loc": loc}, headers={"Idempotency-Key": key}).status
        except (OSError, AssertionError):  # the node was killed beneath it
            return 0

    def run(self):
        while not self.stopping.is_set():
            self.made += 1
            loc = f"{ORIGIN}/{self.tag}-{self.name_}-{self.made}.xml"
            status = self.ask(loc, f"{self.tag}{self.name_}{self.made}")
            if status == 0 or status == 504:
                self.unknown += 1
                time.sleep(0.05)
            elif status in (200, 201):
                self.acknowledged.append(loc)
            else:
                self.refused += 1
                assert status == 503, status
                time.sleep(0.02)


def cut(cluster, number, chance):
    """A node loses its network for a while, under writers on all; what they were acknowledged."""
    writers = [Writer(cluster, name, f"r{number}") for name in "abc"]
    for writer in writers:
        writer.start()
    time.sleep(chance.uniform(0.2, 1.0))
    relays = cluster.relays[chance.choice("abc")]
    for relay in relays:
        relay.cut.set()
    time.sleep(chance.uniform(0.5, 4.0))
    for relay in relays:
        relay.cut.clear()
    before, begun = [len(writer.acknowledged) for writer in writers], time.monotonic()
    until(lambda: all(len(writer.acknowledged) > was for writer, was in zip(writers, before)), "each node takes writes again")
    first = time.monotonic() - begun
    for writer in writers:
        writer.stopping.set()
    for writer in writers:
        writer.join(SETTLE_SECONDS)
        assert not writer.is_alive(), "a call never came back"
    return first, writers


def cuts(folder, count, seed):
    chance, cluster, everything, waits, unknown = random.Random(seed), Cluster(folder), set(), [], 0
    try:
        for number in range(count):
            first, writers = cut(cluster, number, chance)
            waits.append(first)
            for writer in writers:
                everything.update(writer.acknowledged)
                unknown += writer.unknown
            lost = everything - same_everywhere(cluster)
            assert not lost, f"cut {number}: {len(lost)} acknowledged are lost: {sorted(lost)[:5]}"
        print(f"{count} cuts, seed {seed}: {len(everything)} acknowledged, none lost, {unknown} in doubt at first; all nodes take writes again after {max(waits):.2f} s at most")
    finally:
        cluster.end()


# ---- a client's day -------------------------------------------------------------------------------------------

HAPROXY = """
global
    maxconn 2000
defaults
    mode http
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    option redispatch
    retries 3
    retry-on conn-failure empty-response
    default-server check inter 500ms fall 2 rise 1
frontend pages
    bind 127.0.0.1:{pages}
    default_backend pages
frontend api
    bind 127.0.0.1:{api}
    default_backend api
backend pages
    option httpchk GET /readyz
    http-check expect status 200
    {pages_servers}
backend api
    option httpchk GET /readyz
    http-check expect status 200
    retry-on conn-failure
    {api_servers}
"""

SPIDER = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "s"
    handle_httpstatus_all = True
    def start_requests(self):
        self.seen = {}
        for i in range(int(sys.argv[2])):
            for path in ("/sitemap_index.xml", "/sitemap_index-2.xml", "/robots.txt", "/sitemap_index.xml.gz"):
                yield scrapy.Request(sys.argv[1] + path, dont_filter=True, headers={"Host": "www.example.com"})
    def parse(self, response):
        self.seen[response.status] = self.seen.get(response.status, 0) + 1
    def closed(self, reason):
        print(json.dumps(self.seen))

process = CrawlerProcess({"LOG_LEVEL": "CRITICAL", "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False, "DOWNLOAD_DELAY": 0.01,
                          "CONCURRENT_REQUESTS_PER_DOMAIN": 4, "DOWNLOAD_TIMEOUT": 60, "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7"})
process.crawl(Spider)
process.start()
"""


def put(port, body, key):
    """A replace through HAProxy: what was answered; None: nothing came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    try:
        connection.request("PUT", "/v1/sitemaps?index=/sitemap_index.xml&max_removed=1000000", body, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-ndjson", "Idempotency-Key": key, "Host": f"127.0.0.1:{port}"})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def day(folder, entries):
    cluster = Cluster(folder)
    proxy = crawler = None
    try:
        ports = {"pages": free_port(), "api": free_port()}
        servers = lambda side: "\n    ".join(f"server {name} {getattr(node, side)} port {node.admin.rsplit(':', 1)[1]}" for name, node in cluster.nodes.items())
        config = cluster.folder / "haproxy.cfg"
        config.write_text(HAPROXY.format(**ports, pages_servers=servers("public"), api_servers=servers("admin")))
        proxy = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lists = ["".join(json.dumps({"loc": f"{ORIGIN}/{night}/{i}.xml"}) + "\n" for i in range(entries)).encode() for night in range(3)]
        until(lambda: put(ports["api"], lists[0], "night-0") == 200, "the first night")
        for node in cluster.nodes.values():
            until(lambda node=node: node.get("/sitemap_index.xml").status == 200, "served on each")
        crawler = subprocess.Popen([sys.executable, "-c", SPIDER, f"http://127.0.0.1:{ports['pages']}", "400"], stdout=subprocess.PIPE, text=True, env={**os.environ, "no_proxy": "*"})
        for night in (1, 2):
            answers, begun, done = [], time.monotonic(), threading.Event()

            def replace(night=night, answers=answers, done=done):
                while not answers or answers[-1] != 200:
                    answers.append(put(ports["api"], lists[night], f"night-{night}"))
                    time.sleep(0 if answers[-1] == 200 else 0.5)
                done.set()

            threading.Thread(target=replace, daemon=True).start()
            time.sleep(0.7)
            if night == 1:
                cluster.fail_over()
            assert done.wait(SETTLE_SECONDS), answers
            print(f"night {night}: {entries} entries replaced in {time.monotonic() - begun:.1f} s, answers {answers}", flush=True)
            if night == 1:
                cluster.mend()
            assert same_everywhere(cluster) == {json.loads(line)["loc"] for line in lists[night].splitlines()}, f"night {night} is not what was sent"
        out, _ = crawler.communicate(timeout=300)
        seen = json.loads(out)
        print(f"Scrapy saw {seen}")
        assert sum(seen.values()) >= 1600 and not any(status.startswith("5") for status in seen), f"the crawler met {seen}"
    finally:
        for process in (crawler, proxy):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        cluster.end()


# ---- figures --------------------------------------------------------------------------------------------------


def bench(folder, entries):
    cluster = Cluster(folder, relayed=False)
    try:
        a, b, _ = cluster.nodes.values()
        took = []
        for i in range(200):
            loc = f"{ORIGIN}/bench-{i}.xml"
            assert a.register(loc).status == 201
            begun = time.monotonic()
            while loc.encode() not in b.get("/sitemap_index.xml").xml():
                assert time.monotonic() - begun < SETTLE_SECONDS, "served there"
            took.append((time.monotonic() - begun) * 1000)
        took.sort()
        print(f"written on one node, served on another: p50 {statistics.median(took):.1f} ms, p99 {took[197]:.1f} ms")

        def rate(nodes, writers, seconds=5):
            counts, end = [], time.monotonic() + seconds

            def write(node, tag):
                n = 0
                while time.monotonic() < end:
                    n += node.register(f"{ORIGIN}/{tag}-{n}.xml").status == 201
                counts.append(n)

            threads = [threading.Thread(target=write, args=(nodes[i % len(nodes)], f"{time.monotonic_ns()}-{i}")) for i in range(writers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sum(counts) / seconds

        one, three = rate([a], 64), rate(list(cluster.nodes.values()), 64)
        with tempfile.TemporaryDirectory() as alone_folder:
            alone = Server(alone_folder).start()
            single = rate([alone], 64)
            lines = "".join(json.dumps({"loc": f"{ORIGIN}/bulk/{i}.xml"}) + "\n" for i in range(entries)).encode()
            begun = time.monotonic()
            assert alone.api("POST", "/v1/sitemaps", body=lines, content_type="application/x-ndjson").status == 200
            bulk_alone = time.monotonic() - begun
            alone.stop()
        print(f"64 writers: a node alone {single:.0f}/s, one node of three {one:.0f}/s, three together {three:.0f}/s (the client's threads share the processors)")
        begun = time.monotonic()
        assert a.api("POST", "/v1/sitemaps", body=lines, content_type="application/x-ndjson").status == 200
        at_the_head(cluster)
        print(f"{entries} entries as one list: alone {bulk_alone:.1f} s, everywhere {time.monotonic() - begun:.1f} s")
        c = cluster.nodes["c"]
        c.kill()
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(c.database + suffix):
                os.unlink(c.database + suffix)
        shutil.rmtree(c.database + ".pages", ignore_errors=True)
        begun = time.monotonic()
        c.start()
        at_the_head(cluster)
        print(f"an empty node joins in {time.monotonic() - begun:.1f} s")
    finally:
        cluster.end()


def main():
    arguments = argparse.ArgumentParser(add_help=False)
    arguments.add_argument("--cuts", type=int, default=10)
    arguments.add_argument("--entries", type=int, default=100000)
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments.add_argument("--only", choices=("cuts", "day", "bench"))
    chosen, _ = arguments.parse_known_args()  # --rounds is rounds.py's
    for name, run in (("cuts", lambda folder: cuts(folder, chosen.cuts, chosen.seed)), ("day", lambda folder: day(folder, chosen.entries)), ("bench", lambda folder: bench(folder, chosen.entries))):
        if chosen.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                print(f"{name}:", flush=True)
                run(folder)
    print("tests/shared/run: all good")


main()
