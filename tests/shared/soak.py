# SPDX-License-Identifier: LicenseRef-Undeclared
"""tests/shared/run --only soak: three nodes, the standby synchronous, 20 ms of network between nodes and PostgreSQL, and mild
load of all kinds, restarts among it, for as long as is asked. Watched: what is answered; memory, descriptors and files of
each node; the log and its snapshots in PostgreSQL. In the end all nodes hold and serve the same. Prints a line a minute."""

import collections
import os
import random
import statistics
import threading
import time

import postgres
from cluster import Cluster
from harness import ORIGIN, gunzip

SAMPLE = 5.0  # seconds
WARM_UP = 0.25  # of the whole: caches fill, the allocator finds its shape
GROWTH = 2.0  # MiB an hour that count as none
MINUTES_NEEDED = 20  # minutes: of a shorter run the slope says nothing
WAL_BOUND = 64 << 20  # bytes of a node's log, whatever happens
DESCRIPTORS = 40  # more than at the least that count as none
BROWSER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
URLSETS = [f"{ORIGIN}/urls-{n}.xml" for n in range(2)]
SHORT = f"{ORIGIN}/urls-short.xml"  # whose URLs leave by themselves
LIST = 3000
PAGE = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}/page/{}</loc></url></urlset>\n'


class Soak:
    def __init__(self, folder, seed, delay_ms):
        self.random, self.over = random.Random(seed), threading.Event()
        self.faults, self.counts, self.samples, self.lock = [], collections.Counter(), [], threading.Lock()
        self.used, self.asked_at = {}, time.monotonic()  # of processors
        self.stopped = None  # the node that is being restarted
        self.files = os.path.join(folder, "files")
        os.mkdir(self.files)
        config = (f'[source "files"]\ndirectory = {self.files}\nurl = {ORIGIN}/files/\nsettle = 1s\nserve = yes\n'
                  "[history]\nkeep = 10m\n")
        self.cluster = Cluster(folder, delay_ms, config=config, env={"SITEMAPD_LOG_LEVEL": "error"})
        self.nodes = self.cluster.nodes
        try:
            for url in URLSETS:
                self.expect("urlset", self.nodes[0].api("POST", "/v1/urlsets", {"url": url}), 201)
            self.expect("urlset", self.nodes[0].api("POST", "/v1/urlsets", {"url": SHORT, "expires": "1h"}), 201)
            for path in ("/bulk/sitemap_index.xml", "/comes/sitemap_index.xml"):
                self.expect("index", self.nodes[0].api("POST", "/v1/indexes", {"url": ORIGIN + path}), 201)
        except BaseException:
            self.end()
            raise

    def fault(self, what):
        self.faults.append(what)
        self.over.set()

    def expect(self, what, reply, *statuses):
        """503 is an answer while a node or PostgreSQL's session comes back; how many there were is reported."""
        with self.lock:
            self.counts[what] += 1
            self.counts["503"] += reply.status == 503
        if reply.status not in statuses:
            self.fault(f"{what}: {reply.status} {reply.body[:200]!r}")
        return reply

    def node(self):
        """One that runs. A client whose node goes away goes to another: see `turn`."""
        return self.random.choice([node for node in self.nodes if node is not self.stopped])

    def every(self, seconds, step):
        """Calls `step` with a node and 0, 1, … at about that pace."""
        turn = 0
        while not self.over.wait(seconds * random.uniform(0.5, 1.5)):
            node = self.node()
            try:
                step(node, turn)
            except (OSError, AssertionError) as error:
                if self.stopped is not node and not getattr(node, "came_back", 0) > time.monotonic() - 10:
                    self.fault(f"{step.__name__}: {error!r}")
            except Exception as error:  # noqa: BLE001 a thread that dies is a fault
                self.fault(f"{step.__name__}: {error!r}")
            turn += 1

    # ---- what is done

    def crawl(self, node, turn):
        agent = {"User-Agent": BROWSER, "Accept-Encoding": "gzip"}
        page = self.expect("page", node.get("/sitemap_index.xml", agent), 200)
        if page.status == 200 and b"</sitemapindex>" not in gunzip(page.body)[-20:]:
            self.fault("a page is cut short")
        self.expect("again", node.get("/sitemap_index.xml", {**agent, "If-None-Match": page["ETag"] or '"-"'}), 200, 304)
        self.expect("robots", node.get("/robots.txt"), 200)
        self.expect("page", node.get(("/bulk/sitemap_index.xml", "/urls-0.xml", "/urls-1.xml", f"/files/part-{turn % 20}.xml")[turn % 4]), 200, 404)

    def register(self, node, turn):
        loc = f"{ORIGIN}/single/{self.random.randrange(2000)}.xml"
        self.expect("register", node.register(loc, lastmod=f"2026-01-{1 + turn % 28:02}"), 200, 201, 503)
        if turn % 3 == 0:
            self.expect("remove", node.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/single/{self.random.randrange(2000)}.xml"), 204, 404, 503)
        if turn % 7 == 0:
            self.expect("refused", node.register("ftp://nowhere/"), 422, 400, 503)

    def lists(self, node, turn):
        entries = [{"loc": f"{ORIGIN}/bulk/{n}.xml", "lastmod": f"2026-02-{1 + turn % 28:02}"} for n in range(LIST - turn % 7)]
        if turn % 2:
            self.expect("replace", node.replace(entries, index="/bulk/sitemap_index.xml", max_removed=LIST), 200, 503)
        else:
            self.expect("list", node.bulk(entries[:500], "/v1/sitemaps?index=/bulk/sitemap_index.xml"), 200, 503)

    def urls(self, node, turn):
        url = (*URLSETS, SHORT)[turn % 3]
        dated = {"lastmod": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600 + 30))} if url == SHORT else {}
        row = {"urlset": url, "loc": f"{ORIGIN}/p/{self.random.randrange(300)}", **dated}
        if turn % 20 == 19:
            rows = [{"loc": f"{ORIGIN}/p/{n}"} for n in range(turn % 7, 300)]
            self.expect("urls", node.bulk(rows, f"/v1/urls?urlset={URLSETS[1]}&source=night&max_removed=1000", "PUT"), 200, 503)
        elif turn % 5 == 4:
            self.expect("url removed", node.api("DELETE", f"/v1/urls?urlset={url}&loc={row['loc']}"), 204, 404, 503)
        else:
            self.expect("url", node.api("POST", "/v1/urls", row), 200, 201, 503)

    def undo(self, node, _turn):
        changes = self.expect("history", node.api("GET", "/v1/history?limit=5"), 200, 503).json().get("changes") or []
        if changes:
            revision = self.random.choice(changes)["revision"]
            self.expect("undo", node.api("POST", f"/v1/history/{revision}/undo?on_conflict=overwrite&max_removed=10000"), 200, 404, 409, 410, 422, 503)

    def come_and_go(self, node, _turn):
        """An index with rows is removed, which a purge follows, and made again."""
        reply = self.expect("indexes", node.api("GET", "/v1/indexes"), 200, 503)
        found = [i["id"] for i in reply.json().get("indexes", []) if i["url"].startswith(f"{ORIGIN}/comes/")]
        if found:
            self.expect("index removed", node.api("DELETE", f"/v1/indexes/{found[0]}?max_removed=10000"), 200, 204, 404, 503)
        elif reply.status == 200:
            self.expect("index", node.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/comes/sitemap_index.xml"}), 201, 409, 503)
            self.expect("list", node.bulk([f"{ORIGIN}/comes/{n}.xml" for n in range(500)], "/v1/sitemaps?index=/comes/sitemap_index.xml"), 200, 404, 422, 503)

    def edit(self, _node, turn):
        path = os.path.join(self.files, f"part-{turn % 20}.xml")
        if turn % 10 == 9 and os.path.exists(path):
            os.unlink(path)
            return
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write(PAGE.format(ORIGIN, turn))
        os.rename(path + ".new", path)

    def restart(self, _node, turn):
        """The first is never restarted: its memory is what is checked."""
        node = self.nodes[1 if turn % 4 == 3 else 2]
        self.stopped = node
        time.sleep(0.5)
        if turn % 2:
            node.kill()
        else:
            node.stop()
        node.start()
        while not node.serves():
            time.sleep(0.1)
        node.came_back = time.monotonic()
        self.stopped = None
        self.counts["restart"] += 1

    # ---- what is watched

    def sample(self, _node, turn):
        now = time.monotonic()
        for node in self.nodes:
            if node is self.stopped or not node.running():
                continue
            pid = node.process.pid
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
            wal = node.database + "-wal"
            wal_bytes = os.path.getsize(wal) if os.path.exists(wal) else 0
            if wal_bytes > WAL_BOUND:
                self.fault(f"the database's log of {node.name} has {wal_bytes:,} bytes")
            self.samples.append((now, node.name, pid, resident, len(os.listdir(f"/proc/{pid}/fd")), os.path.getsize(node.database)))
        if turn % 12 == 0:
            latest = {s[1]: s for s in self.samples}
            print(f"{(now - self.began) / 60:6.1f} min  " + "  ".join(f"{name} {s[3]:.1f} MiB, {s[4]} descriptors, file {s[5] >> 10:,} KiB" for name, s in sorted(latest.items()))
                  + f"  log: {self.log_now()}  {sum(self.counts.values()):,} requests, {self.load(now):.0f} % of a core", flush=True)

    def load(self, now):
        """What all that was started takes, and this process, since it was asked last."""
        used = {}
        for pid in postgres.processes(os.getpid()):
            try:
                with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                    fields = file.read().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            used[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        spent = sum(seconds - self.used.get(pid, 0.0) for pid, seconds in used.items())
        since, self.used, self.asked_at = self.asked_at, used, now
        return 100 * spent / max(now - since, SAMPLE)

    def log_now(self):
        return self.cluster.pair.primary.sql(
            "SELECT count(*) || ' records from ' || min(seq) || ', ' || (pg_total_relation_size('sitemapd.log') + pg_total_relation_size('sitemapd.part')) / 1024"
            " || ' KiB, snapshots at ' || (SELECT string_agg(DISTINCT seq::text, ', ') FROM sitemapd.snapshot) FROM sitemapd.log")

    def run(self, minutes):
        self.began = time.monotonic()
        jobs = [(0.5, self.crawl), (0.3, self.register), (20, self.lists), (0.7, self.urls), (15, self.undo), (30, self.come_and_go), (3, self.edit), (150, self.restart), (SAMPLE, self.sample)]
        threads = [threading.Thread(target=self.every, args=job, name=job[1].__name__) for job in jobs]
        for thread in threads:
            thread.start()
        self.over.wait(minutes * 60)
        self.over.set()
        for thread in threads:
            thread.join()

    def slope(self):
        """MiB an hour, by Theil and Sen: the median of what lies between pairs of samples."""
        samples = [s for s in self.samples if s[1] == "a"]
        kept = samples[int(len(samples) * WARM_UP):]
        half = len(kept) // 2
        return statistics.median((b[3] - a[3]) / (b[0] - a[0]) * 3600 for a, b in zip(kept, kept[half:])) if half else 0.0

    def verify(self, minutes):
        print("  ".join(f"{name} {count:,}" for name, count in sorted(self.counts.items())))
        for node in self.nodes:
            of_node = [s for s in self.samples if s[1] == node.name]
            resident, descriptors = [s[3] for s in of_node], [s[4] for s in of_node]
            print(f"{node.name}: {len({s[2] for s in of_node})} processes; memory {resident[len(resident) // 4]:.1f} MiB after the warm-up, {resident[-1]:.1f} at the end, at most {max(resident):.1f}; "
                  f"descriptors {min(descriptors)} to {max(descriptors)}; file {of_node[len(of_node) // 4][5] >> 10:,} to {of_node[-1][5] >> 10:,} KiB")
            if max(descriptors) > min(descriptors) + DESCRIPTORS:
                self.faults.append(f"{node.name}: descriptors pile up")
        slope = self.slope()
        print(f"a, which ran all the time: {slope:+.2f} MiB an hour" + ("" if minutes >= MINUTES_NEEDED else f" (checked from {MINUTES_NEEDED} minutes on)"))
        if minutes >= MINUTES_NEEDED and slope > GROWTH:
            self.faults.append(f"memory grows by {slope:.2f} MiB an hour")
        print(f"log: {self.log_now()}")
        return self.faults

    def end(self):
        self.over.set()
        self.cluster.end()


def run(folder, minutes, seed, delay_ms):
    print(f"{minutes:g} minutes, seed {seed}, {2 * delay_ms:g} ms of network:", flush=True)
    soak = Soak(folder, seed, delay_ms)
    try:
        soak.run(minutes)
        faults = soak.verify(minutes)
        for fault in faults[:20]:
            print("fault:", fault)
        assert not faults, f"{len(faults)} faults"
        entries = soak.cluster.all_agree()
        print(f"{len(entries):,} entries, equal on all nodes, rows and bytes")
    finally:
        soak.end()
