# SPDX-License-Identifier: LicenseRef-Undeclared
"""What crawlers notice of writes that go on beside them, and what a connection costs."""
import json
import os
import resource
import subprocess
import time

from harness import (CONNECTIONS, CRAWLER_HEADERS, INDEX_PATH, LOAD_CORE, ORIGIN, ROOT, TOKEN,
                     BenchError, Client, Server, get, lines, median, program, request_bytes,
                     status_of, wrk)
from table import NO_GOAL, at_most

BULK = 1_000_000
RATE = 1000  # GETs a second
IDLE_CONNECTIONS = 10_000
OWN_DESCRIPTORS = 200
RUNS = 5  # one is one moment of the machine


def bulk_loc(number):
    """Under an index of its own: the page that is asked for stays as it is."""
    return f"{ORIGIN}/bulk/sitemap-{number:08d}.xml.gz"


class Crawler:
    """GETs at a fixed rate until it is stopped; it runs before everything else on its core, so that
    what it measures is the server and not the other clients."""

    def __init__(self, server, folder):
        request = request_bytes(INDEX_PATH, CRAWLER_HEADERS)
        client = Client(server.public)
        head, body, _ = client.ask(request)
        client.close()
        if status_of(head) != 200:
            raise BenchError(f"the page: {head[:60]!r}")
        path = os.path.join(folder, "crawler-request")
        with open(path, "wb") as out:
            out.write(request)
        command = ["taskset", "-c", str(LOAD_CORE), program("latency_loop"),
                   server.public.rpartition(":")[2], "0", str(RATE), path,
                   str(len(head) + 4 + len(body))]
        if os.geteuid() == 0:
            command = ["chrt", "-f", "1", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def stop(self):
        out, err = self.process.communicate()
        if self.process.returncode != 0:
            raise BenchError(f"latency_loop: {err.strip()}")
        return json.loads(out)


def while_idle(server, folder, seconds):
    crawler = Crawler(server, folder)
    time.sleep(seconds)
    return crawler.stop()


def while_bulk(server, folder, body):
    crawler = Crawler(server, folder)
    server.post(body)
    return crawler.stop()


def while_registering(server, folder, first, seconds):
    """As many as the server takes of 64 clients."""
    os.environ.update(BENCH_FIRST=str(first), BENCH_TOKEN=TOKEN, BENCH_LOC=f"{ORIGIN}/bulk/single-")
    crawler = Crawler(server, folder)
    rate = wrk(server.admin, "/v1/sitemaps", {"Host": "127.0.0.1"}, seconds, CONNECTIONS,
               os.path.join(ROOT, "tests/bench/register.lua"))[1]
    result = crawler.stop()
    result["registrations_per_s"] = rate
    return result


def quantiles(results):
    return "; p50 {:,.0f}, p99.9 {:,.0f}".format(
        *(median([each[key] for each in results]) for key in ("p50_us", "p999_us")))


def row(report, key, what, results, idle):
    report.rounds(key, f"GETs, {RATE:,} a second, p99 {what}; idle server",
                  *([each["p99_us"] for each in side] for side in (results, idle)), at_most(2), "{:,.0f}", "µs",
                  notes=[quantiles(side) for side in (results, idle)],
                  raw={"ours_all": results, "idle_all": idle})


def add_bulk_index(server):
    body = json.dumps({"url": f"{ORIGIN}/bulk/sitemap_index.xml"}).encode()
    request = request_bytes("/v1/indexes", {
        "Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json"}, method="POST", body=body)
    client = Client(server.admin)
    head, answer, _ = client.ask(request)
    client.close()
    if status_of(head) != 201:
        raise BenchError(f"the index: {head[:60]!r} {answer[:200]!r}")


def measure_beside_writes(report, options, folder):
    idle, bulk, single = [], [], []
    body = lines(0, BULK, bulk_loc)
    seconds = 3 if options.full else 1
    for turn in range(RUNS):
        with Server(options.bin, os.path.join(folder, f"latency-{turn}.db")) as server:
            server.post(lines(0, 10, options.loc))
            add_bulk_index(server)
            idle.append(while_idle(server, folder, seconds))
            bulk.append(while_bulk(server, folder, body))
            server.post(lines(BULK, 1, bulk_loc))  # what the bulk left to do is done
            single.append(while_registering(server, folder, 2 * BULK, seconds))
    row(report, "latency_bulk", f"while {BULK:,} entries are loaded", bulk, idle)
    rate = median([r["registrations_per_s"] for r in single])
    row(report, "latency_single", f"while {rate:,.0f} registrations/s arrive", single, idle)


def connect_many(server, count):
    request = request_bytes(INDEX_PATH, CRAWLER_HEADERS)
    clients = []
    for _ in range(count):
        clients.append(Client(server.public))
        if status_of(clients[-1].ask(request)[0]) != 200:
            raise BenchError("a connection was not answered")
    return clients


def measure_connections(report, options, folder):
    """Kept connections that had one request each, and GETs beside them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(IDLE_CONNECTIONS - OWN_DESCRIPTORS, hard - OWN_DESCRIPTORS)
    seconds = 3 if options.full else 1
    settings = {"SITEMAPD_SERVER_MAX_CONNECTIONS_PER_ADDRESS": "0",
                "SITEMAPD_SERVER_IDLE_TIMEOUT": "10m"}
    idle, beside, each = [], [], 0
    with Server(options.bin, os.path.join(folder, "connections.db"), settings=settings) as server:
        server.post(lines(0, 10, options.loc))
        get(server.public)
        for turn in range(RUNS):
            idle.append(while_idle(server, folder, seconds))
            before = server.resident_bytes()
            clients = connect_many(server, count)
            if turn == 0:  # later ones find the memory that the first left
                each = (server.resident_bytes() - before) / count
            beside.append(while_idle(server, folder, seconds))
            for client in clients:
                client.close()
            time.sleep(0.5)  # the server handles that they ended
    report.row("connection_memory", f"memory of one of {count:,} idle kept connections; its share "
               "of 1 MiB", f"{each / 1024:.1f} KiB", "1,024 KiB", each / (1 << 20), NO_GOAL)
    row(report, "latency_connections", f"beside {count:,} idle connections", beside, idle)


def measure(report, options, folder):
    measure_beside_writes(report, options, folder)
    measure_connections(report, options, folder)
