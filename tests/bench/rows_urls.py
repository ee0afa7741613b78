# SPDX-License-Identifier: LicenseRef-Undeclared
"""Page URLs beside entries: one to its fresh bytes, a bulk, GETs of their pages; and files that are split."""
import os
import random
import subprocess
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, ORIGIN, PAGE, SERVER_CORE, TOKEN, BenchError, Client, Server, get,
                     lastmod, lines, load_loop, median, request_bytes, run_pinned, status_of)
from rows_get import add_row, race
from rows_write import remove_catalogue
from table import at_least, at_most

URLSET = "/pages.xml"
CHANGES = 100


def post(server, path, body, content_type):
    """Seconds until the whole answer was here."""
    client = Client(server.admin, timeout=900)
    began = time.perf_counter()
    head, answer, _ = client.ask(request_bytes(path, {
        "Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}, method="POST", body=body))
    took = time.perf_counter() - began
    client.close()
    if status_of(head) not in (200, 201):
        raise BenchError(f"POST {path}: {head[:60]!r} {answer[:200]!r}")
    return took


def make_urlset(server):
    post(server, "/v1/urlsets", f'{{"url":"{ORIGIN}{URLSET}"}}'.encode(), "application/json")


def rows(first, count, loc):
    return "".join(f'{{"loc":"{loc(n)}","lastmod":"{lastmod(n)}","urlset":"{ORIGIN}{URLSET}"}}\n'
                   for n in range(first, first + count)).encode()


def write_and_see(server, api, member, paths, loc, numbers):
    """Milliseconds from sending a row to the first byte of the last page that has it, each in memory before."""
    admin, public = Client(server.admin), Client(server.public)
    times, tags = [], None
    for turn, number in enumerate(numbers):
        body = f'{{"loc":"{loc(number)}","lastmod":"2026-10-{1 + turn % 28:02d}T00:00:00Z"{member}}}'
        request = request_bytes(api, {"Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}",
                                      "Content-Type": "application/json"}, method="POST", body=body.encode())
        time.sleep(1.01)  # an index has a urlset's dates of seconds; and both sides rest as long
        began = time.perf_counter()
        head, answer, _ = admin.ask(request)
        replies = [public.ask(request_bytes(path, CRAWLER_HEADERS)) for path in paths]
        times.append((replies[-1][2] - began) * 1000)
        seen = [line for reply in replies for line in reply[0].split(b"\r\n") if line.lower().startswith(b"etag:")]
        if status_of(head) != 200 or len(seen) != len(paths) or (tags and any(a == b for a, b in zip(seen, tags))):
            raise BenchError(f"a row is not in the next GETs: {head[:40]!r} {answer[:200]!r}")
        tags = seen
    admin.close()
    public.close()
    return times


def cached_gets(server, path, folder):
    head, body = get(server.public, path)
    return lambda seconds: load_loop(server.public, request_bytes(path, CRAWLER_HEADERS), len(head) + 4 + len(body), 200, seconds,
                                     folder, 16)


def measure_one(report, options, folder):
    with Server(options.bin, os.path.join(folder, "urls.db")) as server:
        server.post(lines(0, PAGE - 1, options.loc))
        make_urlset(server)
        post(server, "/v1/urls", rows(PAGE, PAGE, options.loc), "application/x-ndjson")
        ours, theirs = [], []
        for turn in range(options.rounds):
            first = 1000 + turn * 1000
            ours.append(median(write_and_see(server, "/v1/urls", f',"urlset":"{ORIGIN}{URLSET}"', (URLSET, INDEX_PATH), options.loc,
                                             range(PAGE + first, PAGE + first + 500, 100))))
            theirs.append(median(write_and_see(server, "/v1/sitemaps", "", (INDEX_PATH,), options.loc,
                                               range(first, first + 500, 100))))
        report.rounds("urls_one", "one page URL to its fresh bytes in urlset page and index, 50,000 rows each; one registration",
                      ours, theirs, at_most(1.8), unit="ms")
        raced = race([("ours", server, cached_gets(server, URLSET, folder)),
                      ("index", server, cached_gets(server, INDEX_PATH, folder))], options.rounds, options.seconds)
        add_row(report, "urls_get", "cached GET of a urlset page; of an index page", raced, "index", at_most(1.02))


def measure_bulk(report, options, folder, count):
    """Gives the rates of page URLs."""
    body, entries = rows(0, count, options.loc), lines(0, count, options.loc)
    path = os.path.join(folder, "bulk-urls.db")
    ours, theirs = [], []
    for _ in range(3):
        with Server(options.bin, path) as server:
            make_urlset(server)
            ours.append(count / post(server, "/v1/urls", body, "application/x-ndjson"))
        remove_catalogue(path)
        with Server(options.bin, path) as server:
            theirs.append(count / server.post(entries))
        remove_catalogue(path)
    report.rounds("urls_bulk", f"bulk of {count:,} page URLs by HTTP, durable and published; as entries", ours, theirs,
                  at_least(0.8), "{:,.0f}", "rows/s")
    return ours


def write_file(path, loc, days):
    with open(path, "w", encoding="ascii") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n')
        for number, day in enumerate(days):
            file.write(f"<url><loc>{loc(number)}</loc><lastmod>{day}</lastmod></url>\n")
        file.write("</urlset>\n")


def measure_split(report, options, folder, count, bulks):
    """By the command, a process of its own: the first time, and the night after."""
    site, config, path = (os.path.join(folder, name) for name in ("site", "split.conf", "split.db"))
    os.makedirs(site)
    with open(config, "w", encoding="ascii") as file:
        file.write(f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {site}\nurl = {ORIGIN}/\nsplit = yes\n')
    firsts, nights = [], []
    for turn in range(3):
        days = [lastmod(number) for number in range(count)]
        write_file(os.path.join(site, "all.xml"), options.loc, days)
        subprocess.run([options.bin, "site", "add", "--database", path, ORIGIN], check=True, capture_output=True)
        for times in (firsts, nights):
            began = time.perf_counter()
            run_pinned(SERVER_CORE, [options.bin, "scan", "shop", "--config", config, "--database", path])
            times.append(time.perf_counter() - began)
            for number in random.Random(turn).sample(range(count), CHANGES):
                days[number] = "2026-11-02"
            write_file(os.path.join(site, "all.xml"), options.loc, days)
        remove_catalogue(path)
    report.rounds("urls_split", f"a file of {count:,} page URLs is split by sitemapd scan, the first time; bulk by HTTP",
                  [count / seconds for seconds in firsts], bulks, at_least(0.8), "{:,.0f}", "rows/s")
    report.rounds("urls_night", f"again with {CHANGES} changed; the first time", nights, firsts, at_most(0.3), unit="s")


def measure(report, options, folder):
    measure_one(report, options, folder)
    bulks = measure_bulk(report, options, folder, 1_000_000)
    measure_split(report, options, folder, 5_000_000 if options.full else 1_000_000, bulks)
