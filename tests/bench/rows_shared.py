# SPDX-License-Identifier: LicenseRef-Undeclared
"""A shared catalogue: writes at a node that is far from PostgreSQL. The network is a relay (tests/lib/relay.py) that
delivers each byte DISTANCE_MS / 2 later. PostgreSQL and the node near it are on one core; the far node, the relays and
the clients on the other, so that each core is a place.

Beside a far node are the same clients at the same distance that write to the near node: they wait for the distance
and the near node's commit, and for nothing else."""
import contextlib
import json
import os
import subprocess
import sys
import time

from harness import (CONNECTIONS, LOAD_CORE, ORIGIN, ROOT, SERVER_CORE, TOKEN, BenchError, Client, Server, get, median, register_request,
                     status_of, wrk)
from table import NO_GOAL, at_least, at_most

sys.path.append(os.path.join(ROOT, "tests/lib"))
import postgres  # noqa: E402
from relay import Relay  # noqa: E402

DISTANCE_MS = 20
SINGLES = 15  # a round
WAIT_SECONDS = 60  # bounds a hang


def until(check, what):
    end = time.monotonic() + WAIT_SECONDS
    while not check():
        if time.monotonic() > end:
            raise BenchError(f"not within {WAIT_SECONDS} s: {what}")
        time.sleep(0.02)


class Shared:
    """PostgreSQL, and the nodes of its catalogue in a folder."""

    def __init__(self, options, folder):
        self.options, self.folder, self.ends = options, folder, contextlib.ExitStack()
        self.first = 0  # of the next registrations
        self.secret = os.path.join(folder, "peer-token")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as out:
            out.write("0123456789abcdef" * 4)

    def __enter__(self):
        with self.ends:
            self.postgres = postgres.Server(durable=True, wrap=("taskset", "-c", str(SERVER_CORE)))
            self.ends.callback(self.postgres.end)
            self.postgres.start()
            database = os.path.join(self.folder, "near.db")
            for command in (("site", "add", ORIGIN), ("share", "init", "--shared", self.postgres.url())):
                subprocess.run([self.options.bin, *command, "--database", database], check=True, capture_output=True)
            self.ends = self.ends.pop_all()
        return self

    def __exit__(self, *_):
        self.ends.close()

    def relay(self, port):
        """The port from which it is DISTANCE_MS there and back to this one."""
        relay = Relay(port, DISTANCE_MS / 2)
        self.ends.callback(relay.end)
        return relay.port

    @contextlib.contextmanager
    def node(self, name, core, **settings):
        """A node that has joined. `settings` are of [shared]; a follower has no database."""
        if "follow" not in settings:
            settings.setdefault("database", self.postgres.url())
        words = {f"SITEMAPD_SHARED_{word.upper()}": value for word, value in settings.items()}
        words.update(SITEMAPD_SHARED_NODE=name, SITEMAPD_SHARED_PEER_TOKEN_FILE=self.secret)
        if "database" in settings:
            words["SITEMAPD_SHARED"] = words.pop("SITEMAPD_SHARED_DATABASE")
        with Server(self.options.bin, os.path.join(self.folder, f"{name}.db"), settings=words, core=core) as server:
            until(lambda: has_joined(server), f"{name} has joined")
            yield server

    def numbers(self, count):
        self.first += count
        return range(self.first - count, self.first)


def has_joined(server):
    state = ready(server)
    return state["shared"]["phase"] == "joined" and "joining" not in [reason["code"] for reason in state["reasons"]]


def ready(server):
    return json.loads(get(server.admin, "/readyz", {"Host": "127.0.0.1"})[1])


def port_of(address):
    return int(address.rpartition(":")[2])


# ---- a far node that forwards --------------------------------------------------------------------------------


def one_by_one(shared, address):
    """The median of SINGLES registrations on a kept connection, in milliseconds."""
    client, times = Client(address), []
    for number in shared.numbers(SINGLES):
        request = register_request(f'{{"loc":"{ORIGIN}/one-{number}.xml"}}'.encode())
        began = time.perf_counter()
        head, answer, _ = client.ask(request)
        times.append((time.perf_counter() - began) * 1000)
        if status_of(head) != 201:
            raise BenchError(f"a registration: {head[:60]!r} {answer[:200]!r}")
    client.close()
    return median(times)


def by_many(shared, address, seconds):
    os.environ.update(BENCH_FIRST=str(shared.numbers(1_000_000)[0]), BENCH_TOKEN=TOKEN)
    return wrk(address, "/v1/sitemaps", {"Host": "127.0.0.1"}, seconds, CONNECTIONS, os.path.join(ROOT, "tests/bench/register.lua"))[1]


def far_node(shared, database, forward):
    return shared.node("far", LOAD_CORE, database=database, forward=forward)


def count_forwarded(server):
    return ready(server)["forwarding"]["answered"]


def measure_forwarding(report, options, folder):
    ones, rates = {}, {}

    def note(place, address):
        ones.setdefault(place, []).append(one_by_one(shared, address))
        rates.setdefault(place, []).append(by_many(shared, address, options.seconds))

    with Shared(options, folder) as shared, shared.node("near", SERVER_CORE) as near:
        database = f"postgresql://{postgres.SUPERUSER}@127.0.0.1:{shared.relay(shared.postgres.port)}/{postgres.DATABASE}"
        distant = f"127.0.0.1:{shared.relay(port_of(near.admin))}"
        for _ in range(options.rounds):
            with far_node(shared, database, f"http://{distant}") as far:
                note("near", near.admin)
                note("distant", distant)
                note("forwards", far.admin)
                if count_forwarded(far) < SINGLES + rates["forwards"][-1] * options.seconds / 2:
                    raise BenchError(f"the far node did not forward: {ready(far)}")
            with far_node(shared, database, "no") as far:
                note("direct", far.admin)
    what = f"one registration at a node {DISTANCE_MS} ms from PostgreSQL"
    over = f"sent {DISTANCE_MS} ms far to the node there"
    report.rounds("forward_one", f"{what}, forwarded; {over}", ones["forwards"], ones["distant"], at_most(1.2), unit="ms")
    report.rounds("direct_one", f"{what}, applied by itself; {over}", ones["direct"], ones["distant"], NO_GOAL, unit="ms")
    what = f"{CONNECTIONS} writers at that node"
    limit = f"{DISTANCE_MS} ms limit {CONNECTIONS} writers to {CONNECTIONS * 1000 // DISTANCE_MS:,}"
    for key, side, beside, words, goal in (
            ("forward_rate", "forwards", "near", f"forwarded; at the node near PostgreSQL ({limit})", at_least(0.8)),
            ("forward_rate_distant", "forwards", "distant", f"forwarded; {over}", at_least(0.8)),
            ("direct_rate", "direct", "distant", f"applied by itself; {over}", NO_GOAL)):
        report.rounds(key, f"{what}, {words}", rates[side], rates[beside], goal, "{:,.0f}", "rows/s")


def measure(report, options, folder):
    measure_forwarding(report, options, folder)
