# SPDX-License-Identifier: LicenseRef-Undeclared
"""tests/soak/run: see there. Prints a line for each minute and the verdict."""

import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from harness import INDEX, ORIGIN, Server, gunzip  # noqa: E402

SAMPLE = 5.0  # seconds
WARM_UP = 0.25  # of the whole: caches fill, the allocator finds its shape
GROWTH = 2.0  # MiB an hour that count as none
MINUTES_NEEDED = 10  # minutes: of a shorter run the slope says nothing
LOG_BOUND = 64 << 20  # bytes of the database's log, whatever happens
LIST = 20000
URLSET = ('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
          "<url><loc>{}/page/{}</loc></url></urlset>\n")


class Soak:
    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.over = threading.Event()
        self.faults = []
        self.counts = {}
        self.lock = threading.Lock()
        self.samples = []

    def expect(self, what, reply, *statuses):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1
        if reply.status not in statuses:
            self.faults.append(f"{what}: {reply.status} {reply.body[:200]!r}")
            self.over.set()
        return reply

    def every(self, seconds, step):
        """Calls `step` with 0, 1, … at that pace."""
        turn = 0
        try:
            while not self.over.wait(seconds):
                step(turn)
                turn += 1
        except Exception as error:  # noqa: BLE001 a thread that dies is a fault
            self.faults.append(f"{step.__name__}: {error!r}")
            self.over.set()

    def crawl(self, turn):
        server = self.server
        page = self.expect("page", server.get(INDEX, {"Accept-Encoding": "gzip"}), 200)
        if b"</sitemapindex>" not in gunzip(page.body)[-20:]:
            self.faults.append("a page is cut short")
            self.over.set()
        self.expect("again", server.get(INDEX, {"Accept-Encoding": "gzip", "If-None-Match": page["ETag"]}), 200, 304)
        self.expect("plain", server.get("/bulk/sitemap_index.xml"), 200, 404)
        self.expect("file", server.get("/sitemap_index.xml.gz"), 200)
        self.expect("robots", server.get("/robots.txt"), 200)
        self.expect("served", server.get(f"/files/part-{turn % 20}.xml"), 200, 404)
        self.expect("missing", server.get("/nothing.xml"), 404)

    def register(self, turn):
        number = random.randrange(5000)
        self.expect("register", self.server.register(f"{ORIGIN}/single/{number}.xml", lastmod=f"2026-01-{1 + turn % 28:02d}"), 200, 201)
        if turn % 3 == 0:
            self.expect("remove", self.server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/single/{random.randrange(5000)}.xml"), 204, 404)
        self.expect("list", self.server.api("GET", "/v1/sitemaps?limit=100"), 200)
        self.expect("refused", self.server.register("ftp://nowhere/"), 422, 400)

    def replace(self, turn):
        entries = [{"loc": f"{ORIGIN}/bulk/{n}.xml", "lastmod": f"2026-02-{1 + turn % 28:02d}"} for n in range(LIST - turn % 7)]
        self.expect("replace", self.server.replace(entries, index="/bulk/sitemap_index.xml"), 200)

    def poll(self, turn):
        reply = self.expect("changes", self.server.api("GET", f"/v1/changes?since={getattr(self, 'token', 0)}&wait=5"), 200, 410)
        self.token = reply.json()["next"] if reply.status == 200 else 0

    def edit(self, turn):
        path = os.path.join(self.folder, f"part-{turn % 20}.xml")
        with open(path + ".new", "w") as out:
            out.write(URLSET.format(ORIGIN, turn))
        os.rename(path + ".new", path)

    def sample(self, turn):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
        log = self.server.database + "-wal"
        size = os.path.getsize(log) if os.path.exists(log) else 0
        if size > LOG_BOUND:
            self.faults.append(f"the database's log has {size:,} bytes")
        self.samples.append((time.monotonic(), resident, len(os.listdir(f"/proc/{pid}/fd")), size))
        if turn % 12 == 0:
            done = sum(self.counts.values())
            print(f"{len(self.samples) * SAMPLE / 60:6.1f} min  {resident:7.1f} MiB  {self.samples[-1][2]:4d} descriptors  {done:9,d} requests", flush=True)

    def run(self, seconds):
        jobs = [(0.05, self.crawl), (0.07, self.crawl), (0.1, self.register), (20, self.replace), (0.1, self.poll), (3, self.edit), (SAMPLE, self.sample)]
        threads = [threading.Thread(target=self.every, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in threads:
            thread.join()

    def slope(self):
        """MiB an hour, by Theil and Sen: the median of what lies between pairs of samples."""
        kept = self.samples[int(len(self.samples) * WARM_UP):]
        half = len(kept) // 2
        return statistics.median((b[1] - a[1]) / (b[0] - a[0]) * 3600 for a, b in zip(kept, kept[half:]))


    def verify(self, minutes):
        """Prints what was done and how memory went; adds what is wrong with that to the faults."""
        print(f"requests: {sum(self.counts.values()):,}  " + "  ".join(f"{name} {count:,}" for name, count in sorted(self.counts.items())))
        if len(self.samples) < 4:
            print(f"memory and descriptors: {len(self.samples)} samples show nothing")
            return
        slope = self.slope()
        descriptors = [s[2] for s in self.samples[int(len(self.samples) * WARM_UP):]]
        resident = [s[1] for s in self.samples]
        print(f"memory: {resident[len(resident) // 4]:.1f} MiB after the warm-up, {resident[-1]:.1f} at the end, at most {max(resident):.1f}; slope {slope:+.2f} MiB an hour"
              + ("" if minutes >= MINUTES_NEEDED else f" (checked from {MINUTES_NEEDED} minutes on)"))
        print(f"descriptors: {min(descriptors)} to {max(descriptors)}; the database's log: at most {max(s[3] for s in self.samples):,} bytes")
        if minutes >= MINUTES_NEEDED and slope > GROWTH:
            self.faults.append(f"memory grows by {slope:.2f} MiB an hour")
        if max(descriptors) > min(descriptors) + 40:
            self.faults.append("descriptors pile up")


def live(server, soak, minutes):
    server.start()
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/bulk/sitemap_index.xml"}).status == 201
    assert server.bulk([f"{ORIGIN}/single/{n}.xml" for n in range(2000)]).status == 200
    soak.run(minutes * 60)
    try:
        server.stop()
    except AssertionError as error:
        soak.faults.append(f"stop: {error}")
    problems = server.cli("check")
    if problems.code != 0:
        soak.faults.append(f"check: {problems.out}{problems.err}")


def main():
    minutes = float(sys.argv[1])
    base = tempfile.mkdtemp(prefix="sitemapd-soak-")
    files = os.path.join(base, "files")
    os.mkdir(files)
    config = f'[source "files"]\ndirectory = {files}\nurl = {ORIGIN}/files/\nsettle = 1s\nserve = yes\n'
    server = Server(base, config=config, env={"SITEMAPD_LOG_LEVEL": "error"})
    soak = Soak(server, files)
    kept = f"its files and log are kept in {base}"
    try:
        live(server, soak, minutes)
    except BaseException:
        print(f"tests/soak/run: ended early; {kept}", file=sys.stderr)
        raise
    finally:
        soak.over.set()
        server.kill()
    soak.verify(minutes)
    for fault in soak.faults[:20]:
        print("fault:", fault)
    if soak.faults:
        print(f"tests/soak/run: {len(soak.faults)} faults; {kept}", file=sys.stderr)
        return 1
    shutil.rmtree(base)
    print(f"tests/soak/run: no fault in {minutes:g} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
