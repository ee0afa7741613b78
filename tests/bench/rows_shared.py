# SPDX-License-Identifier: LicenseRef-Undeclared
"""A shared catalogue: writes at a node that is far from PostgreSQL, followers, and a node that joins. The network is a
relay (tests/lib/relay.py) that delivers each byte DISTANCE_MS / 2 later. PostgreSQL and the node near it are on one core;
the other nodes, the relays and the clients on the other, so that each core is a place.

Beside a far node are the same clients at the same distance that write to the near node: they wait for the distance
and the near node's commit, and for nothing else. Beside followers are nodes, which read the log from PostgreSQL."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

from harness import (CONNECTIONS, HOST, INDEX_PATH, LOAD_CORE, ORIGIN, ROOT, SERVER_CORE, TOKEN, BenchError, Client,
                     Server, cpu_seconds, get, lines, median, register_request, request_bytes, status_of, wrk)
from rows_write import remove_catalogue
from table import NO_GOAL, at_least, at_most

sys.path.append(os.path.join(ROOT, "tests/lib"))
import postgres  # noqa: E402
from relay import Relay  # noqa: E402

DISTANCE_MS = 20
SINGLES, SEEN = 10, 5  # a round
FOLLOWERS = 8
PACED, PACE_SECONDS = 50, 0.01  # registrations of a round whose cost is counted
FEW_ROUNDS = 3
JOIN_ENTRIES = 1_000_000
WAIT_SECONDS = 300  # bounds a hang


def until(check, what):
    end = time.monotonic() + WAIT_SECONDS
    while not check():
        if time.monotonic() > end:
            raise BenchError(f"not within {WAIT_SECONDS} s: {what}")
        time.sleep(0.02)


def ready(server):
    return json.loads(get(server.admin, "/readyz", {"Host": "127.0.0.1"})[1])


def has_joined(server):
    state = ready(server)
    return state["shared"]["phase"] == "joined" and "joining" not in [reason["code"] for reason in state["reasons"]]


def port_of(address):
    return int(address.rpartition(":")[2])


class Shared:
    """PostgreSQL and the node near it, with other nodes and followers as they are needed."""

    def __init__(self, options, folder):
        self.options, self.folder, self.ends = options, folder, contextlib.ExitStack()
        self.first = 0  # of the next registrations
        self.secret = os.path.join(folder, "peer-token")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as out:
            out.write("0123456789abcdef" * 4)

    def __enter__(self):
        with self.ends:
            self.postgres = postgres.Server(durable=True, wrap=("taskset", "-c", str(SERVER_CORE)),
                                            settings={"shared_preload_libraries": "pg_stat_statements"})
            self.ends.callback(self.postgres.end)
            self.postgres.start()
            self.postgres.sql("CREATE EXTENSION pg_stat_statements")
            for command in (("site", "add", ORIGIN), ("share", "init", "--shared", self.postgres.url())):
                subprocess.run([self.options.bin, *command, "--database", self.file_of("near")], check=True, capture_output=True)
            self.near_admin = f"127.0.0.1:{postgres.free_port()}"
            self.near_ends = self.ends.enter_context(contextlib.ExitStack())
            self.start_near()
            self.ends = self.ends.pop_all()
        return self

    def __exit__(self, *_):
        self.ends.close()

    def start_near(self):
        """Also again."""
        self.near_ends.close()
        self.near = self.near_ends.enter_context(self.node("near", SERVER_CORE, self.near_admin,
                                                           advertise=f"http://{self.near_admin}"))

    def file_of(self, name):
        return os.path.join(self.folder, f"shared-{name}.db")

    @contextlib.contextmanager
    def node(self, name, core=LOAD_CORE, admin="127.0.0.1:0", **settings):
        """A node that has joined. `settings` are of [shared]; a follower has no database."""
        words = {f"SITEMAPD_SHARED_{word.upper()}": value for word, value in settings.items()}
        words.update(SITEMAPD_SHARED_NODE=name, SITEMAPD_SHARED_PEER_TOKEN_FILE=self.secret)
        if "follow" not in settings:
            words["SITEMAPD_SHARED"] = words.pop("SITEMAPD_SHARED_DATABASE", self.postgres.url())
        with Server(self.options.bin, self.file_of(name), settings=words, core=core, admin=admin) as server:
            until(lambda: has_joined(server), f"{name} has joined")
            yield server

    @contextlib.contextmanager
    def distant(self, port):
        """The port from which it is DISTANCE_MS there and back to this one."""
        relay = Relay(port, DISTANCE_MS / 2)
        try:
            yield relay.port
        finally:
            relay.end()

    def numbers(self, count):
        self.first += count
        return range(self.first - count, self.first)

    def one(self, client):
        """Milliseconds of one registration."""
        request = register_request(f'{{"loc":"{ORIGIN}/one-{self.numbers(1)[0]}.xml"}}'.encode())
        began = time.perf_counter()
        head, answer, _ = client.ask(request)
        if status_of(head) != 201:
            raise BenchError(f"a registration: {head[:60]!r} {answer[:200]!r}")
        return (time.perf_counter() - began) * 1000


# ---- a far node that forwards --------------------------------------------------------------------------------


def one_by_one(shared, address):
    client = Client(address)
    times = [shared.one(client) for _ in range(SINGLES)]
    client.close()
    return median(times)


def by_many(shared, address, seconds):
    os.environ.update(BENCH_FIRST=str(shared.numbers(1_000_000)[0]), BENCH_TOKEN=TOKEN)
    return wrk(address, "/v1/sitemaps", {"Host": "127.0.0.1"}, seconds, CONNECTIONS, os.path.join(ROOT, "tests/bench/register.lua"))[1]


def forwarding_rounds(shared, options):
    """Registrations one by one, and by many, by where they are sent; of "direct" fewer rounds."""
    ones, rates = {}, {}

    def note(place, address):
        ones.setdefault(place, []).append(one_by_one(shared, address))
        rates.setdefault(place, []).append(by_many(shared, address, options.seconds))

    with shared.distant(shared.postgres.port) as database, shared.distant(port_of(shared.near.admin)) as near:
        database = f"postgresql://{postgres.SUPERUSER}@127.0.0.1:{database}/{postgres.DATABASE}"
        for turn in range(options.rounds):
            with shared.node("far", database=database, forward=f"http://127.0.0.1:{near}") as far:
                note("near", shared.near.admin)
                note("distant", f"127.0.0.1:{near}")
                note("forwards", far.admin)
                if ready(far)["forwarding"]["answered"] < SINGLES + rates["forwards"][-1] * options.seconds / 2:
                    raise BenchError(f"the far node did not forward: {ready(far)}")
            if turn < FEW_ROUNDS:
                with shared.node("far", database=database, forward="no") as far:
                    note("direct", far.admin)
    return ones, rates


def measure_forwarding(report, options, shared):
    ones, rates = forwarding_rounds(shared, options)
    what = f"one registration at a node {DISTANCE_MS} ms from PostgreSQL"
    over = f"sent {DISTANCE_MS} ms far to the node there"
    report.rounds("forward_one", f"{what}, forwarded; {over}", ones["forwards"], ones["distant"], at_most(1.2), unit="ms")
    report.rounds("direct_one", f"{what}, applied by itself; {over}", ones["direct"], ones["distant"][:FEW_ROUNDS], NO_GOAL, unit="ms")
    what = f"{CONNECTIONS} writers at that node"
    limit = f"{DISTANCE_MS} ms limit {CONNECTIONS} writers to {CONNECTIONS * 1000 // DISTANCE_MS:,}"
    for key, side, beside, words, goal in (
            ("forward_rate", "forwards", "near", f"forwarded; at the node near PostgreSQL ({limit})", at_least(0.8)),
            ("forward_rate_distant", "forwards", "distant", f"forwarded; {over}", at_least(0.8)),
            ("direct_rate", "direct", "distant", f"applied by itself; {over}", NO_GOAL)):
        report.rounds(key, f"{what}, {words}", rates[side], rates[beside][:len(rates[side])], goal, "{:,.0f}", "rows/s")


# ---- followers -----------------------------------------------------------------------------------------------


def write_and_delay(shared, writer, server, rest_ms):
    """Milliseconds of a write at the near node, and from its answer until another server serves it. Before each write a
    follower has time to ask for what comes after the last one."""
    client, writes, delays = Client(server.public), [], []
    for _ in range(SEEN):
        time.sleep(rest_ms / 1000)
        writes.append(shared.one(writer))
        began = time.perf_counter()
        loc = f"/one-{shared.first - 1}.xml<".encode()
        while loc not in (answer := client.ask(request_bytes(INDEX_PATH, {"Host": HOST})))[1]:
            if answer[2] > began + WAIT_SECONDS:
                raise BenchError(f"not within {WAIT_SECONDS} s: another server serves a write")
        delays.append((answer[2] - began) * 1000)
    client.close()
    return median(writes), median(delays)


def measure_delays(report, options, shared):
    with contextlib.ExitStack() as ends:
        def follower(name, server, distant=False):
            port = port_of(server.admin)
            if distant:
                port = ends.enter_context(shared.distant(port))
            return ends.enter_context(shared.node(name, follow=f"http://127.0.0.1:{port}"))

        follows, distant = follower("follows", shared.near), follower("distant", shared.near, distant=True)
        servers = {"node": ends.enter_context(shared.node("node")), "follower": follows, "second": follower("second", follows),
                   "distant": distant, "distant_second": follower("distant-second", distant, distant=True)}
        writer = Client(shared.near.admin)
        writes, delays = ({name: [] for name in servers} for _ in range(2))
        for _ in range(options.rounds):
            for name, server in servers.items():
                write, delay = write_and_delay(shared, writer, server, 2 * DISTANCE_MS if "distant" in name else 2)
                writes[name].append(write)
                delays[name].append(delay)
        writer.close()
    what = "from a write's answer until"
    for key, who in (("node", "another node"), ("follower", "a follower"), ("second", "its follower")):
        report.rounds(f"delay_{key}", f"{what} {who} serves it; the write", delays[key], writes[key], NO_GOAL, unit="ms")
    for key, who, hops in (("distant", "a follower", 1), ("distant_second", "its follower", 2)):
        report.rounds(f"delay_{key}", f"{what} {who} serves it, each {DISTANCE_MS} ms from the one that it follows; the way there",
                      delays[key], [hops * DISTANCE_MS / 2] * options.rounds, NO_GOAL, unit="ms")


def postgres_costs(shared):
    """Bytes that PostgreSQL has sent, queries, and the CPU seconds of each of its processes."""
    sockets = subprocess.run(["ss", "-tinOH", f"sport = :{shared.postgres.port}"], capture_output=True, text=True, check=True).stdout
    queries = shared.postgres.sql("SELECT sum(calls) FROM pg_stat_statements")
    seconds = {}
    for pid in postgres.processes(shared.postgres.process.pid):
        with contextlib.suppress(OSError):  # it has ended, as that of the query before
            seconds[pid] = cpu_seconds(pid)
    return sum(map(int, re.findall(r" bytes_sent:(\d+)", sockets))), int(queries), seconds


def costs_of_rounds(shared):
    """For each of PACED registrations."""
    writer, costs = Client(shared.near.admin), []
    for _ in range(FEW_ROUNDS):
        before = postgres_costs(shared)
        for _ in range(PACED):
            shared.one(writer)
            time.sleep(PACE_SECONDS)
        after = postgres_costs(shared)
        micros = sum(after[2][pid] - seconds for pid, seconds in before[2].items() if pid in after[2]) * 1e6
        costs.append([(after[0] - before[0]) / PACED, (after[1] - before[1]) / PACED, micros / PACED])
    writer.close()
    return list(zip(*costs))


def measure_costs(report, shared):
    def beside(settings):
        with contextlib.ExitStack() as ends:
            for number in range(FOLLOWERS):
                ends.enter_context(shared.node(f"{'f' if settings else 'n'}{number}", **settings))
            return costs_of_rounds(shared)

    alone = costs_of_rounds(shared)
    followers, nodes = beside({"follow": f"http://{shared.near.admin}"}), beside({})
    for key, what, show, unit, *sides in zip(("bytes", "queries", "cpu"), ("bytes sent", "queries", "CPU"), ("{:,.0f}", "{:,.2f}", "{:,.0f}"),
                                             ("bytes", "queries", "µs"), followers, nodes, alone):
        report.rounds(f"followers_{key}", f"PostgreSQL for a registration at a node with {FOLLOWERS} followers, {what}; with {FOLLOWERS} nodes",
                      list(sides[0]), list(sides[1]), NO_GOAL, show, unit, notes=(f"; alone {show.format(median(sides[2]))}", ""))


# ---- a node that joins ---------------------------------------------------------------------------------------


def write_seconds(path, size):
    """Of a plain sequential write, synced at the end."""
    block, began = os.urandom(1 << 20), time.perf_counter()
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    for at in range(0, size, len(block)):
        os.write(fd, block[:size - at])
    os.fdatasync(fd)
    os.close(fd)
    seconds = time.perf_counter() - began
    os.unlink(path)
    return seconds


def measure_join(report, options, shared):
    shared.near.post(lines(0, JOIN_ENTRIES, options.loc, "2026-11-01"))
    joins, disk = [], []
    for _ in range(FEW_ROUNDS):
        shared.start_near()  # or it would give the copy that it has
        began = time.perf_counter()
        with shared.node("joins"):
            seconds = time.perf_counter() - began
        size = os.path.getsize(shared.file_of("joins"))
        remove_catalogue(shared.file_of("joins"))
        joins.append(size / seconds / 1e6)
        disk.append(size / write_seconds(shared.file_of("disk"), size) / 1e6)
    report.rounds("join", f"an empty node joins by a peer's file of {size / 1e6:,.0f} MB, from its start; a file of that size, written and synced",
                  joins, disk, at_least(0.7), "{:,.0f}", "MB/s")


def measure(report, options, folder):
    with Shared(options, folder) as shared:
        measure_delays(report, options, shared)
        measure_costs(report, shared)
        measure_forwarding(report, options, shared)
        measure_join(report, options, shared)
