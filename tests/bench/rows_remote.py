# SPDX-License-Identifier: LicenseRef-Undeclared
"""What 300,000 sitemaps cost that lie on one host elsewhere: CPU of their polls and of a day, memory,
room on the disk, starting and stopping, and what crawlers notice.

Six sources of 50,000 are added from a host on this machine. That all were read before is then
written into the catalogue, as the first that was read says it, since reading them would take ten minutes;
each copy of the catalogue says otherwise when they are due, and whether they are read whole. Due at random
times of a day they are polled as in earnest for a while, which gives a day's CPU, what wakes by the
clock included; and at the highest rate for some seconds, which gives what a poll takes by itself.
"""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from harness import (LOAD_CORE, ROOT, BenchError, Client, Server, cpu_seconds, lines,
                     on_core, request_bytes)
from rows_latency import RATE, while_idle
from rows_write import remove_catalogue
from table import NO_GOAL, at_most

LISTS, MEMBERS = 6, 50_000
SITEMAPS = LISTS * MEMBERS
URLS = 100
DAY = 86_400
MIB = 1 << 20
PACED_SECONDS = 100  # a look at all that is to be watched comes once a minute at most
SETTLE_SECONDS = 15  # the first of a batch come, and what the start left
FAST_SECONDS, FAST_RATE, FAST_DUE = 10, 1000, SITEMAPS // 15
DEFAULT_RATE = 8
TURNS, TURN_SECONDS = 15, 2
MAX_WAIT = 300

GOOD = 1  # enum check_state
READ = ("state, status, marks, failures, checked_at, good_ago, changed_at, full_ago, since_ago, etag, last_modified, hash, dateless, "
        "urls, bytes, newest_lastmod, one_lastmod, remarks, problem, detail, line")
IN_A_DAY = f"next_at = unixepoch() + 5 + abs(random()) % {DAY}"
NOT_DUE = "next_at = unixepoch() + 3600"
OVERDUE = "next_at = unixepoch() - 1"
UNREAD = "full_ago = checked_at"
# What a poll finds: nothing new; the same content, read whole; other content.
KINDS = {"304": ("a 304", "marks = marks"), "200": (f"a 200 of {URLS} URLs, as they were", UNREAD),
         "changed": (f"a 200 of {URLS} URLs, changed", f"{UNREAD}, hash = randomblob(length(hash)), dateless = hash")}
DAY_GOALS = {"304": 60, "200": 600, "changed": 600}


class Origin:
    def __init__(self):
        self.process = on_core(LOAD_CORE, [sys.executable, os.path.join(ROOT, "tests/bench/remote_origin.py"),
                                           str(LISTS), str(MEMBERS), str(URLS)], stdout=subprocess.PIPE, text=True)
        self.base = self.process.stdout.readline().strip()
        self.client = Client(self.base.removeprefix("http://"))

    def counts(self):
        """How often it was asked: by what it answered."""
        return json.loads(self.client.ask(request_bytes("/counts", {"Host": "127.0.0.2"}))[1])

    def polls(self):
        return sum(count for what, count in self.counts().items() if what != "list")

    def stop(self):
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def config_of(folder, origin, rate):
    path = os.path.join(folder, f"remote-{rate}.conf")
    text = (f"[fetch]\nallow_address = 127.0.0.2\nrate = {rate}\n[site \"remote\"]\norigin = {origin.base}\n"
            "index = /sitemap_index.xml\n")
    for number in range(1, LISTS + 1):
        text += f'[source "list-{number}"]\nupstream = {origin.base}/list-{number}.xml\npoll = 24h\n'
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return path


def until(holds, what, seconds=MAX_WAIT, pause=0.05):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise BenchError(f"not within {seconds} s: {what}")
        time.sleep(pause)


@contextlib.contextmanager
def opened(database):
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def watched(database):
    """How many sitemaps are, and whether one was read."""
    with opened(database) as db:
        return db.execute("SELECT count(*), coalesce(max(state = ?), 0) FROM fetch WHERE list = 0", (GOOD,)).fetchone()


def take_in(options, folder, origin, database):
    """All are listed, and as if read; gives the server's CPU."""
    settings = {"SITEMAPD_CONFIG": config_of(folder, origin, DEFAULT_RATE)}
    with Server(options.bin, database, settings=settings) as server:
        server.post(lines(0, 10, options.loc))
        until(lambda: watched(database) == (SITEMAPS, 1), "all sitemaps are watched", pause=1)
        spent = cpu_seconds(server.pid)
    with opened(database) as db:
        db.execute(f"UPDATE fetch SET ({READ}) = (SELECT {READ} FROM fetch WHERE list = 0 AND state = ? LIMIT 1), interval_s = ?, "
                   f"{NOT_DUE} WHERE list = 0", (GOOD, DAY))
    return spent


class Site:
    """A copy of the catalogue, and a server of it."""

    def __init__(self, options, folder, origin, whole, name, statements, rate=DEFAULT_RATE):
        self.database = os.path.join(folder, f"remote-{name}.db")
        shutil.copyfile(whole, self.database)
        with opened(self.database) as db:
            for assignments in statements:
                db.execute(f"UPDATE fetch SET {assignments}")
        self.server = Server(options.bin, self.database, settings={"SITEMAPD_CONFIG": config_of(folder, origin, rate)})
        self.ready_s = time.perf_counter() - self.server.began

    def fetched(self):
        """Polls that were done, by the server's own count."""
        client = Client(self.server.admin)
        body = client.ask(request_bytes("/metrics", {"Host": "127.0.0.1"}))[1].decode()
        client.close()
        return sum(float(line.rpartition(" ")[2]) for line in body.splitlines()
                   if line.startswith("sitemapd_fetches_total{"))

    def now(self):
        return cpu_seconds(self.server.pid), self.fetched(), time.monotonic()

    def stop(self):
        began = time.perf_counter()
        self.server.stop()
        took = time.perf_counter() - began
        remove_catalogue(self.database)
        return took


# ---- CPU


def spent_a_second(begun, ended):
    """CPU seconds, and polls, of each second."""
    seconds = ended[2] - begun[2]
    return (ended[0] - begun[0]) / seconds, (ended[1] - begun[1]) / seconds


def measure_paced(options, folder, origin, whole):
    """What the sitemaps add to a day of the server, by kind; and to one in which none is due. All at once:
    together they use some hundredths of the core."""
    sites = {"quiet": Site(options, folder, origin, whole, "quiet", [])}
    try:
        for kind, (_, found) in KINDS.items():
            sites[kind] = Site(options, folder, origin, whole, kind, [f"{found}, {IN_A_DAY} WHERE list = 0"])
        with Server(options.bin, os.path.join(folder, "without.db")) as without:
            time.sleep(SETTLE_SECONDS)
            begun = {name: site.now() for name, site in sites.items()}
            alone = cpu_seconds(without.pid), time.monotonic()
            time.sleep(PACED_SECONDS)
            rates = {name: spent_a_second(begun[name], site.now()) for name, site in sites.items()}
            alone = (cpu_seconds(without.pid) - alone[0]) / (time.monotonic() - alone[1])
        resident = sites["304"].server.resident_bytes()
    finally:
        for site in sites.values():
            site.stop()
    idle = rates["quiet"][0]
    # As many as are polled in a day, whatever chance had fall into the window.
    days = {kind: (idle - alone) * DAY + (rates[kind][0] - idle) / rates[kind][1] * SITEMAPS for kind in KINDS}
    return days, alone * DAY, (idle - alone) * DAY, resident


def measure_fast(options, folder, origin, whole, kind):
    """CPU of one poll, where they follow each other, and how many a second there were."""
    site = Site(options, folder, origin, whole, "fast", [
        f"{KINDS[kind][1]} WHERE list = 0", f"{OVERDUE} WHERE list = 0 AND abs(random()) % {SITEMAPS // FAST_DUE} = 0"], FAST_RATE)
    try:
        until(lambda: site.fetched() > FAST_RATE, "polls are made")
        begun = site.now()
        time.sleep(FAST_SECONDS)
        cpu, polls = spent_a_second(begun, site.now())
    finally:
        site.stop()
    return cpu / polls, polls


def report_cpu(report, options, folder, origin, whole):
    days, alone, waiting, resident = measure_paced(options, folder, origin, whole)
    report.row("remote_waiting", f"CPU of a day of a server with {SITEMAPS:,} of which none is due; without them",
               f"{alone + waiting:.1f} s", f"{alone:.1f} s", (alone + waiting) / alone, NO_GOAL)
    for kind, (what, _) in KINDS.items():
        poll, rate = measure_fast(options, folder, origin, whole, kind)
        limit = DAY_GOALS[kind]
        report.row(f"remote_day_{kind}", f"CPU that they add to a day in which each has {what}; goal",
                   f"{days[kind]:,.0f} s; one poll {days[kind] / SITEMAPS * 1e6:,.0f} µs, {poll * 1e6:,.0f} of {rate:,.0f} a second",
                   f"{limit} s", days[kind] / limit, at_most(1), {"day_s": days[kind], "fast_poll_s": poll})
    return resident


# ---- what stays, and what crawlers notice


def report_room(report, database, resident):
    with opened(database) as db:
        rows = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name IN ('fetch', 'fetch_loc', 'fetch_state', 'fetch_site')").fetchone()[0]
    size = os.path.getsize(database)
    report.row("remote_resident", "resident while they are polled; goal", f"{resident / MIB:.1f} MiB", "40 MiB", resident / MIB / 40,
               at_most(1))
    report.row("remote_catalogue", "catalogue; goal", f"{size / MIB:.1f} MiB, {rows / MIB:.1f} of it what polls found", "100 MiB",
               size / MIB / 100, at_most(1))


def report_restart(report, options, folder, origin, whole):
    """Exactly those are polled that are due, and none of the lists."""
    due = 20
    before = origin.counts()
    site = Site(options, folder, origin, whole, "restart", [f"{OVERDUE} WHERE list = 0 AND id % {SITEMAPS // due} = 0"])
    until(lambda: origin.polls() > sum(before.values()) - before["list"], "one that is due is polled", pause=0.005)
    first_s = time.perf_counter() - site.server.began
    time.sleep(2 * due / DEFAULT_RATE)
    after = origin.counts()
    asked = {what: after[what] - before.get(what, 0) for what in after}
    site.stop()
    report.row("remote_ready", f"restart: ready, first poll of one that is due after {first_s:.2f} s; goal", f"{site.ready_s:.3f} s",
               "1 s", site.ready_s, at_most(1), {"first_poll_s": first_s})
    report.row("remote_asked", f"asked of the host by a restart, {asked['list']} lists; what was due", f"{sum(asked.values()):,}",
               f"{due}", sum(asked.values()) / due, at_most(1), asked)


def report_stop(report, options, folder, origin, whole):
    site = Site(options, folder, origin, whole, "stop", [f"{OVERDUE} WHERE list = 0"], FAST_RATE)
    until(lambda: site.fetched() > FAST_RATE, "polls are made")
    stop_s = site.stop()
    report.row("remote_stop", f"stop, amidst {FAST_RATE} polls a second; goal", f"{stop_s:.3f} s", "1 s", stop_s, at_most(1))


def report_crawlers(report, options, folder, origin, whole):
    """GETs of a server that polls as fast as it may by default, and of one to which nothing is due; who is
    not asked stands still meanwhile."""
    sites = {"polling": Site(options, folder, origin, whole, "polling", [f"{OVERDUE} WHERE list = 0"]),
             "quiet": Site(options, folder, origin, whole, "quiet", [])}
    results = {name: [] for name in sites}
    try:
        for site in sites.values():
            os.kill(site.server.pid, signal.SIGSTOP)
        for turn in range(TURNS):
            for name in list(sites)[:: -1 if turn % 2 else 1]:
                os.kill(sites[name].server.pid, signal.SIGCONT)
                time.sleep(0.2)
                results[name].append(while_idle(sites[name].server, folder, TURN_SECONDS)["p99_us"])
                os.kill(sites[name].server.pid, signal.SIGSTOP)
    finally:
        for site in sites.values():
            os.kill(site.server.pid, signal.SIGCONT)
            site.stop()
    report.rounds("remote_latency", f"cached GETs, {RATE:,} a second, p99 beside {DEFAULT_RATE} polls a second; nothing due",
                  results["polling"], results["quiet"], at_most(1.05), "{:,.0f}", "µs")


def measure(report, options, folder):
    whole = os.path.join(folder, "remote.db")
    origin = Origin()
    try:
        spent = take_in(options, folder, origin, whole)
        report.row("remote_taken_in", f"CPU of adding {SITEMAPS:,} of {LISTS} lists; each", f"{spent:.1f} s",
                   f"{spent / SITEMAPS * 1e6:.0f} µs", spent, NO_GOAL)
        resident = report_cpu(report, options, folder, origin, whole)
        report_room(report, whole, resident)
        report_restart(report, options, folder, origin, whole)
        report_stop(report, options, folder, origin, whole)
        report_crawlers(report, options, folder, origin, whole)
    finally:
        origin.stop()
        remove_catalogue(whole)
