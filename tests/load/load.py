"""tests/load/run: see there. Each row of ATTACKS is a name, what it does, and the processes it needs."""

import argparse
import collections
import concurrent.futures
import functools
import multiprocessing
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))

import attacks  # noqa: E402
import harness  # noqa: E402
import honest  # noqa: E402
from hostile import REFUSED, Generator  # noqa: E402

P99 = 0.050
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
    """slowhttptest's own modes."""
    options = {"-H": ["-i", "1"], "-B": ["-i", "1", "-s", "8000"], "-X": ["-w", "10", "-y", "20", "-n", "5", "-z", "32", "-k", "3"], "-R": ["-a", "10", "-b", "3000"]}[mode]
    url = f"http://{server.public}{XML}"
    return ["slowhttptest", mode, "-c", "4000", "-r", "1000", "-l", str(int(seconds)), "-x", "24", "-p", "3", "-u", url] + options


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
    "slow-headers": ("slowhttptest -H", lambda server, seconds: [tool("-H", server, seconds)]),
    "slow-bodies": ("slowhttptest -B", lambda server, seconds: [tool("-B", server, seconds)]),
    "slow-readers": ("slowhttptest -X", lambda server, seconds: [tool("-X", server, seconds)]),
    "ranges": ("slowhttptest -R", lambda server, seconds: [tool("-R", server, seconds)]),
    "idle": ("10,000 kept connections", crowd(CROWD - 200, small)),
    "silent": ("12,000 that say nothing", crowd(CROWD + 2000)),
    "drip-headers": ("12,000 that send a byte a second", crowd(CROWD + 2000, half, drip=b"x")),
    "drip-bodies": ("12,000 with a body that nobody wants", crowd(CROWD + 2000, dropped, drip=b"x")),
    "read-nothing": ("2,000 that read nothing of a large page", crowd(2000, large, reads=False, receive_buffer=4096)),
    "pipelines": ("200 that send requests and read no reply", crowd(200, small * 200, reads=False, receive_buffer=4096)),
    "pipelines-read": ("40 that send requests without end", crowd(40, small * 20, drip=small * 200, pause=0.1)),
    "half-closed": ("8,000 that end their side and do not read", crowd(8000, small, reads=False, half_close=True)),
    "connect-reset": ("as many connections as come", two(attacks.flood)),
    "connect-ask": ("one request for each connection", two(attacks.flood, data=small, reset=False)),
    "header-flood": ("120,000 bytes of header, again and again", two(attacks.flood, data=many_fields)),
    "endless-header": ("a header without end", two(attacks.pour, first=small[:-2], piece=b"X: y\r\n" * 5000)),
    "huge-bodies": ("bodies without end, on both listeners", bodies),
    "wrong-tokens": ("guesses, on the admin listener", guesses),
}


def memory(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def begin(what):
    """An attacker's process: a command, or a function. It has less right to the processor than the server."""
    if isinstance(what, list):
        return subprocess.Popen(["nice", "-n", "19"] + what, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run():
        os.nice(19)
        what()

    process = multiprocessing.Process(target=run, daemon=True)
    process.start()
    return process


def end(process):
    process.terminate()
    process.wait() if isinstance(process, subprocess.Popen) else process.join()


class Watched:
    """The honest client and the server's memory, from begin to end of a stretch."""

    def __init__(self, server):
        self.server, self.peak, self.most_descriptors = server, 0, 0
        self.stop, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.client = multiprocessing.Process(target=honest.measure, args=(server.public, small, self.stop, self.results), daemon=True)
        self.client.start()

    def watch(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.peak = max(self.peak, memory(self.server))
            self.most_descriptors = max(self.most_descriptors, descriptors(self.server))
            time.sleep(0.1)

    def done(self):
        self.stop.set()
        out = self.results.get()
        self.client.join()
        return out


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("inf")


def judge(out, peak, left, base, connections):
    """What is broken."""
    factor = harness.SLOWNESS
    wrong = []
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


ROW = "{:<15} {:>6} {:>6} | {:>7} {:>7} {:>7} | {:>7} {:>7} | {:>6} {:>6}  {}"


def show(name, out, most, peak, left, wrong):
    ms = lambda value: f"{value * 1000:.1f}"  # noqa: E731
    new, kept = out["new"], out["kept"]
    print(ROW.format(name, most, len(new) + len(kept), ms(percentile(new, 0.5)), ms(percentile(new, 0.99)), ms(max(new, default=float("inf"))), ms(percentile(kept, 0.5)), ms(percentile(kept, 0.99)), peak >> 20, left >> 20, "; ".join(wrong) or "ok"), flush=True)


def settle(server, base_descriptors):
    """Waits until the attack's connections are gone; True where they are."""
    until = time.monotonic() + SETTLE * harness.SLOWNESS
    while descriptors(server) > base_descriptors + 20:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def attack(server, name, seconds, base, base_descriptors):
    watched = Watched(server)
    processes = [begin(what) for what in ATTACKS[name][1](server, seconds)] if name in ATTACKS else []
    try:
        watched.watch(seconds)
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
    wrong = judge(out, watched.peak, left, base, watched.most_descriptors)
    if not gone:
        wrong.append(f"{descriptors(server)} descriptors after")
    show(name, out, watched.most_descriptors, watched.peak, left, wrong)
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
    parser.add_argument("--list", action="store_true", help="tell the attacks")
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
    folder = tempfile.mkdtemp()
    server = serve(folder)
    good = True
    try:
        print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}; milliseconds and MiB; server's memory at the start {memory(server) >> 20}")
        print(ROW.format("attack", "fds", "asked", "new p50", "p99", "max", "kept 50", "p99", "peak", "after", ""))
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
