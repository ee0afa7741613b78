# SPDX-License-Identifier: LicenseRef-Undeclared
"""Writes: one registration until it is seen, bulks and small commits beside bare SQLite, and the
npm package that writes an index whole."""
import os
import shutil
import subprocess
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, LEVEL, ROOT, SERVER_CORE, BenchError,
                     Client, PAGE, Server, json_lines, lines, median, program,
                     register_request, request_bytes, run_pinned, status_of, wrk, TOKEN)
from table import NO_GOAL, at_least, at_most, best_of

BULK = 1_000_000


def register_and_see(server, path, loc, numbers):
    """Milliseconds from sending a registration to the first byte of the next GET, for each number:
    each changes the date of an entry that is on the page of `path`, which is in memory."""
    admin, public = Client(server.admin), Client(server.public)
    ask = request_bytes(path, CRAWLER_HEADERS)
    etag = None
    times = []
    for turn, number in enumerate(numbers):
        body = f'{{"loc":"{loc(number)}","lastmod":"2026-10-{1 + turn % 28:02d}T00:00:00Z"}}'
        request = register_request(body.encode())
        began = time.perf_counter()
        head, answer, _ = admin.ask(request)
        reply, _, first = public.ask(ask)
        times.append((first - began) * 1000)
        tag = [line for line in reply.split(b"\r\n") if line.lower().startswith(b"etag:")]
        if status_of(head) != 200 or status_of(reply) != 200 or tag == etag:
            raise BenchError(f"a registration is not in the next GET: {head[:40]!r} {answer[:200]!r}")
        etag = tag
    admin.close()
    public.close()
    return times


FSYNC_BYTES = 4 * 4120  # what the log of one small commit has: four pages with their headers


def fsync_ms(folder, count):
    """Milliseconds of writing and syncing as much as one commit does, into blocks that the file has
    already, as the log has them: the disk's own, in the moment of the round."""
    block = b"\1" * FSYNC_BYTES
    fd = os.open(os.path.join(folder, "fsync"), os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.pwrite(fd, block * count, 0)
        os.fsync(fd)
        times = []
        for number in range(count):
            began = time.perf_counter()
            os.pwrite(fd, block, number * FSYNC_BYTES)
            os.fdatasync(fd)
            times.append((time.perf_counter() - began) * 1000)
        return times
    finally:
        os.close(fd)


def measure_registration(report, options, folder, server, database):
    """One registration against rendering and compressing the whole page again, and against the
    disk. A round is 20 registrations, 20 syncs and a page by each of zlib's two memory levels."""
    register_and_see(server, INDEX_PATH, options.loc, range(100, 105))
    ours, disk, whole = [], [], {8: [], 9: []}
    for turn in range(options.rounds):
        first = 1000 + turn * 1000
        ours.append(median(register_and_see(server, INDEX_PATH, options.loc, range(first, first + 700, 35))))
        disk.append(median(fsync_ms(folder, 20)))
        for memory, times in whole.items():
            times += [each["ms"] for each in json_lines(run_pinned(
                SERVER_CORE, [program("page_build"), database, "whole", str(LEVEL), "1", str(memory)]))]
    best = best_of(whole)
    report.rounds("register", "one registration to its first fresh byte, 50,000 entries; full re-render and "
                  f"one-shot gzip (memLevel {best})", ours, whole[best], at_most(1 / 75, "≤ 1/75"), unit="ms")
    report.rounds("register_fsync", "the same; the disk's own fsync", ours, disk, at_most(2), unit="ms")
    return ours


def make_catalogue(options, path):
    """An empty catalogue with one site, as `sitemapd` makes it."""
    subprocess.run([options.bin, "site", "add", "--database", path, "https://www.example.com"],
                   check=True, capture_output=True)


def remove_catalogue(path):
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


TUNINGS = ("cache", "exclusive", "pages-of-8k")  # sqlite_insert.c


def bare_sqlite(options, path, kind, count, first, tuning):
    """Seconds of bare SQLite with a fresh catalogue."""
    remove_catalogue(path)
    make_catalogue(options, path)
    done = json_lines(run_pinned(SERVER_CORE, [program("sqlite_insert"), path, kind, str(count), str(first), tuning]))
    remove_catalogue(path)
    return done[0]["ms"] / 1000


def measure_bulk(report, options, folder):
    """Leaves the last catalogue of ours, of a million entries, and gives its path."""
    body = lines(0, BULK, options.loc)
    ours, theirs = [], {tuning: [] for tuning in TUNINGS}
    mine, bare = os.path.join(folder, "million.db"), os.path.join(folder, "bare.db")
    for _ in range(options.rounds if options.full else 3):
        remove_catalogue(mine)
        with Server(options.bin, mine) as server:
            ours.append(BULK / server.post(body))
        for tuning, rates in theirs.items():
            rates.append(BULK / bare_sqlite(options, bare, "bulk", BULK, 0, tuning))
    best = best_of(theirs, lowest=False)
    report.rounds("bulk", "bulk of 1,000,000 entries by HTTP, durable and published; bare SQLite in its best setup "
                  f"({best}), same rows, one transaction", ours, theirs[best], at_least(0.7), "{:,.0f}", "rows/s",
                  raw={"all": theirs})
    return mine


def measure_group_commit(report, options, folder):
    ours, theirs = [], {tuning: [] for tuning in TUNINGS}
    path = os.path.join(folder, "bare-single.db")
    script = os.path.join(ROOT, "tests/bench/register.lua")
    count = 2000 if options.seconds > 1 else 500
    with Server(options.bin, os.path.join(folder, "singles.db")) as server:
        for turn in range(options.rounds):
            os.environ.update(BENCH_FIRST=str(turn * 10_000_000), BENCH_TOKEN=TOKEN)
            ours.append(wrk(server.admin, "/v1/sitemaps", {"Host": "127.0.0.1"},
                            options.seconds, 64, script)[1])
            for tuning, rates in theirs.items():
                rates.append(count / bare_sqlite(options, path, "single", count, 0, tuning))
    best = best_of(theirs, lowest=False)
    report.rounds("group_commit", "64 clients registering one each, durable; bare SQLite in its best setup "
                  f"({best}), one commit a row", ours, theirs[best], at_least(4), "{:,.0f}", "rows/s",
                  raw={"all": theirs})


def npm_package(place):
    """The package, installed once. False: it cannot be."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return False
    os.makedirs(place, exist_ok=True)
    if os.path.exists(os.path.join(place, "node_modules/sitemap/package.json")):
        return True
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", place, "sitemap@9"],
                          capture_output=True, text=True)
    return done.returncode == 0


def measure_npm(report, options, folder, ours):
    """What a user does without us: the popular package writes the index again."""
    key, what = "npm_sitemap", "one change in 50,000 entries; npm `sitemap` writes the index again"
    place = os.path.join(ROOT, "build/bench/npm")
    if not npm_package(place):
        report.missing(key, what, "npm is not installed, or could not install `sitemap`")
        return
    # An import is looked up from where the program lies.
    shutil.copy(os.path.join(ROOT, "tests/bench/npm_sitemap.mjs"), place)
    theirs = {}
    for each in json_lines(run_pinned(
            SERVER_CORE, ["node", os.path.join(place, "npm_sitemap.mjs"),
                          os.path.join(folder, "npm.xml.gz"), str(PAGE), str(len(ours))])):
        theirs.setdefault(each["way"], []).append(each["ms"])
    best = best_of(theirs)
    report.rounds(key, f"{what}, in its best setup ({best})", ours, theirs[best], NO_GOAL, unit="ms",
                  raw={"all": theirs})
