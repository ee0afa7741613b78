# SPDX-License-Identifier: LicenseRef-Undeclared
"""tests/shared/run: see there. What breaks is in rounds.py, the soak in soak.py; here are the day and the figures."""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import rounds
import soak
from cluster import Cluster
from harness import ORIGIN, TOKEN, Connection, Server, eventually, request_bytes
from postgres import free_port

SETTLE_SECONDS = 120  # bounds a hang

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


def day(folder, entries, delay_ms):
    cluster = Cluster(folder, delay_ms, config="[admin]\nmax_suspended = 500\n")
    proxy = crawler = None
    try:
        ports = {"pages": free_port(), "api": free_port()}
        servers = lambda side: "\n    ".join(f"server {node.name} {getattr(node, side)} port {node.admin.rsplit(':', 1)[1]}" for node in cluster.nodes)
        config = cluster.folder / "haproxy.cfg"
        config.write_text(HAPROXY.format(**ports, pages_servers=servers("public"), api_servers=servers("admin")))
        proxy = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lists = ["".join(json.dumps({"loc": f"{ORIGIN}/{night}/{i}.xml"}) + "\n" for i in range(entries)).encode() for night in range(3)]
        eventually(lambda: put(ports["api"], lists[0], "night-0") == 200, "the first night", SETTLE_SECONDS)
        for node in cluster.nodes:
            eventually(node.serves, "served on each", SETTLE_SECONDS)
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
                old = cluster.pair.fail_over()
            assert done.wait(SETTLE_SECONDS), answers
            print(f"night {night}: {entries} entries replaced in {time.monotonic() - begun:.1f} s, answers {answers}", flush=True)
            if night == 1:
                cluster.pair.replace(old)
            held = {entry["loc"] for entry in cluster.all_agree()} - {f"{ORIGIN}/first.xml"}  # another's
            assert held == {json.loads(line)["loc"] for line in lists[night].splitlines()}, f"night {night} is not what was sent"
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


def soon(a, b, count):
    """Milliseconds from the answer of one node until another serves it; those of the write itself."""
    writes, took = [], []
    for i in range(count):
        loc, begun = f"{ORIGIN}/soon-{i}.xml", time.monotonic()
        assert a.register(loc).status == 201
        written = time.monotonic()
        while loc.encode() not in b.get("/sitemap_index.xml").xml():
            assert time.monotonic() - begun < SETTLE_SECONDS, "served there"
        writes.append((written - begun) * 1000)
        took.append((time.monotonic() - written) * 1000)
    return sorted(writes), sorted(took)


def rate(nodes, writers, seconds=5):
    """Registrations a second."""
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


def cpu_ns(node):
    """Of all its threads, to the nanosecond."""
    total = 0
    for task in os.listdir(f"/proc/{node.process.pid}/task"):
        with open(f"/proc/{node.process.pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def get_cost(node, count=4000):
    """What a GET costs the node's processor, in microseconds: on a kept connection, half of them answered by 304."""
    plain = {"Accept-Encoding": "gzip"}
    with Connection(node.public) as connection:
        connection.send(request_bytes("GET", "/sitemap_index.xml", plain))
        tag = connection.reply()["ETag"]
        asked = [request_bytes("GET", "/sitemap_index.xml", headers) for headers in (plain, {**plain, "If-None-Match": tag})]
        before = cpu_ns(node)
        for i in range(count):
            connection.send(asked[i % 2])
            assert connection.reply().status == (200, 304)[i % 2]
        return (cpu_ns(node) - before) / count / 1000


def write_cost(node, count=500):
    """What a registration costs its processor, in microseconds."""
    before, mark = cpu_ns(node), time.monotonic_ns()
    for i in range(count):
        assert node.register(f"{ORIGIN}/cost-{mark}-{i}.xml").status == 201
    return (cpu_ns(node) - before) / count / 1000


def beside(what, cost, one, other, rounds_=21):
    """Turn by turn, each first in every other one: the ratio of the two, its median and the middle half."""
    ratios, costs = [], []
    for turn in range(rounds_):
        pair = [cost(node) for node in ((one, other) if turn % 2 else (other, one))]
        first, second = pair if turn % 2 else reversed(pair)
        ratios.append(first / second)
        costs.append(second)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{what}: {middle:.3f}x ({low:.3f} to {high:.3f} in the middle half of {rounds_} turns; {statistics.median(costs):.1f} us)", flush=True)


def alone_and_beside(folder, member, older):
    """What being one of three costs a client; and, beside an earlier program, what this one costs without it."""
    entries = [f"{ORIGIN}/{i}.xml" for i in range(1000)]
    made = []
    try:
        for name, binary in (("alone", None), ("older", older)):
            if name == "older" and not older:
                continue
            os.mkdir(os.path.join(folder, name))
            node = Server(os.path.join(folder, name))
            node.binary = binary or node.binary
            made.append(node.start())
        for node in [member, *made]:
            assert node.replace(entries, max_removed=10**6).status == 200
        beside("GETs of one of three beside a node alone", get_cost, member, made[0])
        if older:
            beside("GETs of a node alone beside the earlier program", get_cost, *made)
            beside("registrations of a node alone beside the earlier program", write_cost, *made)
    finally:
        for node in made:
            node.kill()


def bench(folder, entries, delay_ms, older):
    cluster = Cluster(folder, delay_ms)
    try:
        a, b, c = cluster.nodes
        writes, took = soon(a, b, 200)
        print(f"a registration: p50 {statistics.median(writes):.1f} ms, p99 {writes[197]:.1f} ms; from its answer until another node serves it: p50 {statistics.median(took):.1f} ms, p99 {took[197]:.1f} ms", flush=True)
        one, three = rate([a], 64), rate(cluster.nodes, 64)
        with tempfile.TemporaryDirectory() as alone_folder:
            alone = Server(alone_folder).start()
            single = rate([alone], 64)
            lines = "".join(json.dumps({"loc": f"{ORIGIN}/bulk/{i}.xml"}) + "\n" for i in range(entries)).encode()
            begun = time.monotonic()
            assert alone.api("POST", "/v1/sitemaps", body=lines, content_type="application/x-ndjson").status == 200
            bulk_alone = time.monotonic() - begun
            alone.stop()
        print(f"64 writers: a node alone {single:.0f}/s, one node of three {one:.0f}/s, three together {three:.0f}/s (the client's threads share the processors)", flush=True)
        begun = time.monotonic()
        assert a.api("POST", "/v1/sitemaps", body=lines, content_type="application/x-ndjson").status == 200
        cluster.at_the_head()
        print(f"{entries} entries as one list: alone {bulk_alone:.1f} s, everywhere {time.monotonic() - begun:.1f} s", flush=True)
        c.kill()
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(c.database + suffix):
                os.unlink(c.database + suffix)
        shutil.rmtree(c.database + ".pages", ignore_errors=True)
        begun = time.monotonic()
        c.start()
        cluster.at_the_head()
        print(f"an empty node joins in {time.monotonic() - begun:.1f} s", flush=True)
        alone_and_beside(folder, a, older)
    finally:
        cluster.end()


def main():
    arguments = argparse.ArgumentParser(add_help=False)
    arguments.add_argument("--only", choices=("rounds", "day", "bench", "soak"))
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--fault", choices=[fault.__name__ for fault in rounds.Rounds.FAULTS])
    arguments.add_argument("--entries", type=int, default=100000)
    arguments.add_argument("--minutes", type=float, default=60)
    arguments.add_argument("--delay", type=float)
    arguments.add_argument("--beside")
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started and mounted is ended, too
    delay = chosen.delay or 0
    parts = {"rounds": lambda folder: rounds.run(folder, chosen.rounds, chosen.seed, delay, chosen.fault),
             "day": lambda folder: day(folder, chosen.entries, delay),
             "bench": lambda folder: bench(folder, chosen.entries, chosen.delay, chosen.beside),
             "soak": lambda folder: soak.run(folder, chosen.minutes, chosen.seed, 10 if chosen.delay is None else chosen.delay)}
    for name, run in parts.items():
        if chosen.only == name or (chosen.only is None and name != "soak"):
            with tempfile.TemporaryDirectory(prefix=f"shared-{name}.") as folder:
                print(f"{name}:", flush=True)
                run(folder)
    print("tests/shared/run: all good")


main()
