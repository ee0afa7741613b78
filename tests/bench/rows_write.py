"""Writes: one registration until it is seen, bulks and small commits beside bare SQLite, and the
npm package that writes an index whole."""
import os
import shutil
import subprocess
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, LEVEL, ROOT, SERVER_CORE, BenchError,
                     Client, PAGE, Server, json_lines, lines, median, program,
                     register_request, request_bytes, run_pinned, status_of, wrk, TOKEN)
from table import NO_GOAL, at_least, at_most

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


def measure_registration(report, options, server, database):
    """One registration against rendering and compressing the whole page again."""
    register_and_see(server, INDEX_PATH, options.loc, range(100, 105))
    ours, theirs = [], []
    for turn in range(options.rounds):
        first = 1000 + turn * 1000
        ours += register_and_see(server, INDEX_PATH, options.loc, range(first, first + 700, 35))
        theirs += [each["ms"] for each in json_lines(run_pinned(
            SERVER_CORE, [program("page_build"), database, "whole", str(LEVEL), "1"]))]
    report.row("register", "one registration to its first fresh byte, 50,000 entries; full "
               "re-render and one-shot gzip", f"{median(ours):.2f} ms", f"{median(theirs):.1f} ms",
               median(ours) / median(theirs), at_most(0.02), {"ours_ms": ours, "theirs_ms": theirs})
    return median(ours)


def make_catalogue(options, path):
    """An empty catalogue with one site, as `sitemapd` makes it."""
    subprocess.run([options.bin, "site", "add", "--database", path, "https://www.example.com"],
                   check=True, capture_output=True)


def remove_catalogue(path):
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


def measure_bulk(report, options, folder):
    """Leaves the last catalogue of ours, of a million entries, and gives its path."""
    body = lines(0, BULK, options.loc)
    ours, theirs = [], []
    mine, bare = os.path.join(folder, "million.db"), os.path.join(folder, "bare.db")
    for _ in range(options.rounds if options.full else 3):
        remove_catalogue(mine)
        with Server(options.bin, mine) as server:
            ours.append(server.post(body))
        remove_catalogue(bare)
        make_catalogue(options, bare)
        theirs += [each["ms"] / 1000 for each in json_lines(run_pinned(
            SERVER_CORE, [program("sqlite_insert"), bare, "bulk", str(BULK)]))]
    remove_catalogue(bare)
    rate, bare_rate = BULK / median(ours), BULK / median(theirs)
    report.row("bulk", "bulk of 1,000,000 entries by HTTP, durable and published; bare SQLite, same "
               "rows, one transaction", f"{rate:,.0f} rows/s", f"{bare_rate:,.0f} rows/s",
               rate / bare_rate, at_least(0.6), {"ours_s": ours, "theirs_s": theirs})
    return mine


def measure_group_commit(report, options, folder):
    ours, theirs = [], []
    path = os.path.join(folder, "bare-single.db")
    make_catalogue(options, path)
    script = os.path.join(ROOT, "tests/bench/register.lua")
    with Server(options.bin, os.path.join(folder, "singles.db")) as server:
        for turn in range(options.rounds):
            os.environ.update(BENCH_FIRST=str(turn * 10_000_000), BENCH_TOKEN=TOKEN)
            ours.append(wrk(server.admin, "/v1/sitemaps", {"Host": "127.0.0.1"},
                            options.seconds, 64, script)[1])
            count = 2000 if options.seconds > 1 else 500
            theirs += [each["rows"] / each["ms"] * 1000 for each in json_lines(run_pinned(
                SERVER_CORE, [program("sqlite_insert"), path, "single", str(count),
                              str(turn * 100_000)]))]
    report.row("group_commit", "64 clients registering one each, durable; bare SQLite, one commit a "
               "row", f"{median(ours):,.0f}/s", f"{median(theirs):,.0f}/s",
               median(ours) / median(theirs), at_least(4), {"ours": ours, "theirs": theirs})


def measure_npm(report, options, folder, ours_ms):
    """What a user does without us: the popular package writes the index again."""
    key, what = "npm_sitemap", "one change in 50,000 entries; npm `sitemap` writes the index again"
    if shutil.which("npm") is None or shutil.which("node") is None:
        report.missing(key, what, "npm is not installed")
        return
    place = os.path.join(ROOT, "build/bench/npm")
    os.makedirs(place, exist_ok=True)
    if not os.path.exists(os.path.join(place, "node_modules/sitemap/package.json")):
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", place,
                               "sitemap@9"], capture_output=True, text=True)
        if done.returncode != 0:
            report.missing(key, what, "npm could not install `sitemap`")
            return
    # An import is looked up from where the program lies.
    shutil.copy(os.path.join(ROOT, "tests/bench/npm_sitemap.mjs"), place)
    theirs = [each["ms"] for each in json_lines(run_pinned(
        SERVER_CORE, ["node", os.path.join(place, "npm_sitemap.mjs"),
                      os.path.join(folder, "npm.xml.gz"), str(PAGE), str(options.rounds)]))]
    report.row(key, what, f"{ours_ms:.2f} ms", f"{median(theirs):.0f} ms", ours_ms / median(theirs),
               NO_GOAL, {"theirs_ms": theirs})
