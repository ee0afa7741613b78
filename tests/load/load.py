# SPDX-License-Identifier: LicenseRef-Undeclared
"""The program of tests/load/run. Each row of ATTACKS is a name, what it does, the processes it needs, and how many
connections it holds at least while it is measured (none: what counts is how many come)."""

import argparse
import collections
import concurrent.futures
import functools
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import attacks  # noqa: E402
import harness  # noqa: E402
import honest  # noqa: E402
from hostile import REFUSED, Generator  # noqa: E402

P99 = 0.050
LATE = 0.010  # where the honest client is woken later than this (p99), its numbers are not the server's
ARRIVAL = 30.0  # seconds that an attack has to be complete
CROWD = 10000
PER_CONNECTION = 40 << 10  # bytes of memory that one may cost while it is open
DURING = 64 << 20  # what else an attack may cost while it lasts
AFTER = 48 << 20  # what may be left of all attacks together
SETTLE = 25.0  # seconds until the connections are gone: the time-outs of the server under test
HOSTILE = 10000
XML = "/sitemap_index.xml"
SOURCES = [f"127.0.0.{n}" for n in range(20, 40)]

small = harness.request_bytes("GET", XML, {"Accept-Encoding": "gzip"})
large = harness.request_bytes("GET", "/large/sitemap_index.xml", {"Accept-Encoding": "identity"})
post = lambda server, extra: harness.request_bytes("POST", "/v1/sitemaps", [("Authorization", f"Bearer {server.token}"), ("Content-Type", "application/x-ndjson")] + extra, host=server.admin)  # noqa: E731


def tool(mode, server, seconds):
    """slowhttptest's own modes. It ends when the server has ended all of its connections, so each of several begins
    again, one after another."""
    options = {"-H": "-i 1", "-B": "-i 1 -s 8000", "-X": "-w 10 -y 20 -n 5 -z 32 -k 3", "-R": "-a 10 -b 3000"}[mode]
    command = f"slowhttptest {mode} -c 1000 -r 1000 -l 60 -x 24 -p 3 -u http://{server.public}{XML} {options}"
    return [["sh", "-c", f"sleep {part * 1.3}; while :; do {command}; done"] for part in range(4)]


def crowd(count, *args, **options):
    """Several processes that keep `count` connections together."""
    parts = 4
    return lambda server, seconds: [functools.partial(attacks.crowd, server.public, SOURCES, count // parts, *args, **options)] * parts


def two(function, **options):
    return lambda server, seconds: [functools.partial(function, server.public, SOURCES, **options)] * 2


def bodies(server, seconds):
    wish = b"Content-Length: 99999999999\r\n"
    plain = harness.request_bytes("POST", XML, [])[:-2] + wish + b"\r\n"
    admin = post(server, [])[:-2]
    piece = b'{"loc": "https://www.example.com/a.xml"}\n' * 1600
    return [
        functools.partial(attacks.pour, server.public, SOURCES, plain, bytes(65536)),
        functools.partial(attacks.pour, server.admin, SOURCES, admin + wish + b"\r\n", piece),
        functools.partial(attacks.pour, server.admin, SOURCES, admin + b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(piece) + piece + b"\r\n"),
    ]


def guesses(server, seconds):
    wrong = harness.request_bytes("GET", "/v1/sites", [("Authorization", "Bearer smd_" + "A" * 43), ("Connection", "close")], host=server.admin)
    return [functools.partial(attacks.flood, server.admin, SOURCES, wrong, reset=False, reads=True)] * 2


half = small[:-2] + b"X-Filler: "
dropped = small[:-2] + b"Content-Length: 8000\r\n\r\n"
many_fields = small[:-2] + b"X: y\r\n" * 20000
ATTACKS = {
    "slow-headers": ("slowhttptest -H", functools.partial(tool, "-H"), 1000),
    "slow-bodies": ("slowhttptest -B, which is refused at once and comes again", functools.partial(tool, "-B"), 0),
    "slow-readers": ("slowhttptest -X", functools.partial(tool, "-X"), 0),
    "ranges": ("slowhttptest -R", functools.partial(tool, "-R"), 0),
    "idle": ("10,000 kept connections", crowd(CROWD - 200, small), CROWD - 200),
    "silent": ("12,000 that say nothing", crowd(CROWD + 2000), CROWD),
    "drip-headers": ("12,000 that send a byte a second", crowd(CROWD + 2000, half, drip=b"x"), CROWD),
    "drip-bodies": ("12,000 with a body that nobody wants", crowd(CROWD + 2000, dropped, drip=b"x"), CROWD),
    "read-nothing": ("2,000 that read nothing of a large page", crowd(2000, large, reads=False, receive_buffer=4096), 1500),
    "pipelines": ("200 that send requests and read no reply", crowd(200, small * 200, reads=False, receive_buffer=4096), 150),
    "pipelines-read": ("40 that send requests without end", crowd(40, small * 20, drip=small * 200, pause=0.1), 30),
    "half-closed": ("8,000 that end their side and do not read", crowd(8000, small, reads=False, half_close=True), 0),
    "connect-reset": ("as many connections as come", two(attacks.flood), 0),
    "connect-ask": ("one request for each connection", two(attacks.flood, data=small, reset=False), 0),
    "header-flood": ("120,000 bytes of header, again and again", two(attacks.flood, data=many_fields), 0),
    "endless-header": ("a header without end", two(attacks.pour, first=small[:-2], piece=b"X: y\r\n" * 5000), 0),
    "huge-bodies": ("bodies without end, on both listeners", bodies, 0),
    "wrong-tokens": ("guesses, on the admin listener", guesses, 0),
}


def memory(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))


def descriptors(server):
    """Counting them costs a millisecond for thousands: newer kernels (6.2) report it."""
    folder = f"/proc/{server.process.pid}/fd"
    return os.stat(folder).st_size or len(os.listdir(folder))


def accepted(server):
    return sum(value for name, value in server.metrics().items() if name.startswith("sitemapd_http_connections_accepted_total"))


def come_last():
    """An attacker has what the server leaves of the processors: else it were a test of the scheduler."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def begin(what):
    """An attacker's process: a command, or a function."""
    if isinstance(what, list):
        return subprocess.Popen(what, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=come_last)

    def run():
        come_last()
        what()

    process = multiprocessing.Process(target=run, daemon=True)
    process.start()
    return process


def end(process):
    if isinstance(process, subprocess.Popen):
        os.killpg(process.pid, signal.SIGKILL)  # with what it started
        process.wait()
    else:
        process.terminate()
        process.join()


class Watched:
    """The honest client and the server's memory, from begin to end of a stretch."""

    def __init__(self, server):
        self.server, self.peak, self.most_descriptors, self.held = server, 0, 0, 0
        self.stop, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.client = multiprocessing.Process(target=honest.measure, args=(server.public, small, self.stop, self.results), daemon=True)
        self.client.start()

    def look(self):
        self.peak = max(self.peak, memory(self.server))
        now = descriptors(self.server)
        self.most_descriptors = max(self.most_descriptors, now)
        time.sleep(0.1)
        return now

    def watch(self, seconds, least):
        """From the attack's begin until it is complete, and `seconds` more. False: it never was."""
        until = time.monotonic() + ARRIVAL * harness.SLOWNESS
        while self.look() < least:
            if time.monotonic() > until:
                return False
        until = time.monotonic() + seconds
        self.held = self.most_descriptors
        while time.monotonic() < until:
            self.held = min(self.held, self.look())
        return True

    def done(self):
        self.stop.set()
        out = self.results.get()
        self.client.join()
        return out


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("inf")


def verify(out, peak, left, base, connections):
    """What is broken."""
    factor = harness.SLOWNESS
    wrong = []
    if percentile(out["late"], 0.99) > LATE * factor:
        wrong.append(f"the machine is busy: the client was woken {percentile(out['late'], 0.99) * 1000:.0f} ms late")
    for kind in ("new", "kept"):
        if percentile(out[kind], 0.99) > P99 * factor:
            wrong.append(f"p99 of {kind} connections")
    count = len(out["new"]) + len(out["kept"])
    if len(out["errors"]) > 0:
        wrong.append(f"{len(out['errors'])} errors, first: {out['errors'][0]}")
    if out["renewed"] > 1 + count // 200:
        wrong.append(f"kept connection ended {out['renewed']} times")
    if peak > base + DURING + connections * PER_CONNECTION:
        wrong.append("memory during")
    if left > base + AFTER:
        wrong.append("memory after")
    return wrong


ROW = "{:<15} {:>6} {:>6} {:>6} {:>6} | {:>7} {:>7} {:>7} | {:>7} {:>7} | {:>5} | {:>6} {:>6}  {}"


def show(name, out, watched, rate, left, wrong):
    ms = lambda value: f"{value * 1000:.1f}"  # noqa: E731
    new, kept = out["new"], out["kept"]
    print(ROW.format(name, watched.most_descriptors, watched.held, f"{rate:.0f}", len(new) + len(kept), ms(percentile(new, 0.5)), ms(percentile(new, 0.99)), ms(max(new, default=float("inf"))), ms(percentile(kept, 0.5)), ms(percentile(kept, 0.99)), ms(percentile(out["late"], 0.99)), watched.peak >> 20, left >> 20, "; ".join(wrong) or "ok"), flush=True)


def settle(server, base_descriptors):
    """Waits until the attack's connections are gone; True where they are."""
    until = time.monotonic() + SETTLE * harness.SLOWNESS
    while descriptors(server) > base_descriptors + 20:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def attack(server, name, seconds, base, base_descriptors):
    _, make, least = ATTACKS.get(name, ("", lambda server, seconds: [], 0))
    limit = server.metrics()['sitemapd_http_connections_limit{listener="public"}']
    before, begun = accepted(server), time.monotonic()
    watched = Watched(server)
    processes = [begin(what) for what in make(server, seconds)]
    try:
        held = watched.watch(seconds, base_descriptors + 0.95 * min(least, limit))
        rate = (accepted(server) - before) / (time.monotonic() - begun)
    finally:
        out = watched.done()
        for process in processes:
            end(process)
    gone = settle(server, base_descriptors)
    left = memory(server)
    until = time.monotonic() + SETTLE * harness.SLOWNESS
    while left > base + AFTER and time.monotonic() < until:
        time.sleep(0.1)
        left = memory(server)
    wrong = verify(out, watched.peak, left, base, watched.most_descriptors)
    if not held or watched.held < base_descriptors + 0.8 * min(least, limit):
        wrong.append(f"the attack did not hold: {watched.held or watched.most_descriptors} of {least}")
    if not gone:
        wrong.append(f"{descriptors(server)} descriptors after")
    show(name, out, watched, rate, left, wrong)
    return not wrong


def hostile(server, base):
    """Malformed requests and calls, HOSTILE of them, on both listeners: none is answered with success."""
    wrong, statuses = [], collections.Counter()
    begun = time.monotonic()

    def one(case):
        address, kind, data = case
        answer = throw(address, data)
        status = answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else ("closed" if not answer else "garbage")
        statuses[status] += 1
        if kind == REFUSED and re.search(rb"HTTP/1\.1 [23]", answer) or status == "garbage" or status.startswith("5") and status not in ("501", "505"):
            wrong.append(f"{status} for {data[:80]!r}")

    cases = []
    for address, token in ((server.public, None), (server.admin, server.token)):
        generator = Generator(random.Random(20261121), harness.HOST if token is None else address, XML if token is None else "/v1/sitemaps", token)
        cases += [(address, *generator.one()) for _ in range(HOSTILE // 2)]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        list(pool.map(one, cases))
    if memory(server) > base + DURING:
        wrong.append("memory")
    if server.get(XML).status != 200:
        wrong.append("the page is not served")
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    print(f"malformed: {HOSTILE} in {time.monotonic() - begun:.0f} s: {told}: {wrong[:3] or 'ok'}", flush=True)
    return not wrong


def throw(address, data):
    with harness.Connection(address) as connection:
        try:
            connection.send(data)
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return connection.rest()


def serve(folder):
    short = {f"SITEMAPD_SERVER_{name}_TIMEOUT": value for name, value in (("HEADER", "5s"), ("BODY", "10s"), ("REPLY", "10s"), ("IDLE", "10s"))}
    server = harness.Server(folder, env=short).start()
    locs = [f"{harness.ORIGIN}/large/{n:05}/{'x' * 200}.xml" for n in range(50000)]
    index = harness.q(harness.ORIGIN + "/large/sitemap_index.xml")
    assert server.api("POST", "/v1/indexes", {"url": harness.ORIGIN + "/large/sitemap_index.xml"}).status == 201
    body = "".join(f'{{"loc": "{loc}"}}\n' for loc in locs).encode()
    reply = server.api("POST", f"/v1/sitemaps?index={index}", body=body, content_type="application/x-ndjson")
    assert reply.status == 200, reply
    assert server.bulk([f"{harness.ORIGIN}/{n}.xml" for n in range(10)]).status == 200
    for target in (XML, "/large/sitemap_index.xml"):
        assert server.get(target, {"Accept-Encoding": "gzip"}).status == 200
    return server


def main():
    parser = argparse.ArgumentParser(prog="tests/load/run", description="Attacks the program over loopback.")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK")
    parser.add_argument("--seconds", type=float, default=12, help="of each attack (12, at most 30)")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    arguments = parser.parse_args()
    known = list(ATTACKS) + ["malformed"]
    if arguments.list:
        for name in known:
            print(f"{name:<15} {ATTACKS[name][0] if name in ATTACKS else '10,000 malformed requests and calls'}")
        return 0
    if not 1 <= arguments.seconds <= 30:
        parser.error("--seconds: 1 to 30")
    for name in arguments.attacks:
        if name not in known:
            parser.error(f"no attack is called {name}; there are: {' '.join(known)}")
    return run(arguments.attacks or known, arguments.seconds)


def run(names, seconds):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    folder = tempfile.mkdtemp()
    server = serve(folder)
    good = True
    try:
        print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}; milliseconds and MiB; server's memory at the start {memory(server) >> 20}")
        print(ROW.format("attack", "fds", "held", "conn/s", "asked", "new p50", "p99", "max", "kept 50", "p99", "late", "peak", "after", ""))
        base, base_descriptors = memory(server), descriptors(server)
        attack(server, "none", min(seconds, 5), base, base_descriptors)
        base = memory(server)
        for name in names:
            good = (hostile(server, base) if name == "malformed" else attack(server, name, seconds, base, base_descriptors)) and good
        server.stop()
        return 0 if good else 1
    finally:
        server.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
