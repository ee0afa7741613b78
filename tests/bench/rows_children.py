# SPDX-License-Identifier: LicenseRef-Undeclared
"""Mirrored sitemaps that are served from copies: beside a folder's file, what a host map costs, and
what 300,000 copies take of memory."""
import os
import subprocess
import sys
import time

from harness import LOAD_CORE, ROOT, Client, Server, get, json_lines, on_core, program, request_bytes, run_pinned
from rows_get import add_row, conditional_gets, full_gets, race
from rows_remote import FAST_RATE, MIB, SETTLE_SECONDS, Origin, config_of, until
from rows_write import remove_catalogue
from table import at_most

URLS = 200
MAPPED_URLS = 50_000
COPIES = 300_000


def measure_gets(report, options, folder):
    """The same bytes, once a file of a folder and once the copy of a remote sitemap."""
    origin = on_core(LOAD_CORE, [sys.executable, os.path.join(ROOT, "tests/bench/remote_origin.py"), "1", "1", str(URLS)],
                     stdout=subprocess.PIPE, text=True)
    base = origin.stdout.readline().strip()
    files = os.path.join(folder, "files")
    os.makedirs(files)
    config = os.path.join(folder, "children.conf")
    with open(config, "w", encoding="ascii") as out:
        out.write(f'[fetch]\nallow_address = 127.0.0.2\n[site "remote"]\norigin = {base}\nindex = /sitemap_index.xml\n'
                  f'[source "remote"]\nupstream = {base}/list-1.xml\nserve = yes\n'
                  f'[source "files"]\ndirectory = {files}\nurl = {base}/files/\nserve = yes\nsettle = 0s\n')
    database = os.path.join(folder, "children.db")
    host = {"Host": base.removeprefix("http://")}
    child, file = "/sitemap-1-000000.xml", "/files/a.xml"
    try:
        with Server(options.bin, database, settings={"SITEMAPD_CONFIG": config}) as server:
            until(lambda: get(server.public, child, host)[0].split()[1] == b"200", "the copy is served")
            with open(os.path.join(files, "a.xml"), "wb") as out:
                out.write(get(server.public, child, host)[1])
            until(lambda: get(server.public, file, host)[0].split()[1] == b"200", "the file is served")
            for key, what, load in (("children_get", "GETs of a mirrored sitemap; of a folder's file", full_gets),
                                    ("children_304", "304s of a mirrored sitemap; of a folder's file",
                                     lambda address, path, headers: conditional_gets(address, path, folder, headers))):
                raced = race([("ours", server, load(server.public, child, headers=host)),
                              ("file", server, load(server.public, file, headers=host))], options.rounds, options.seconds)
                add_row(report, key, what, raced, "file", at_most(1.05))
    finally:
        origin.kill()
        origin.wait()
        origin.stdout.close()
        remove_catalogue(database)


def measure_map(report, options):
    rounds = json_lines(run_pinned(LOAD_CORE, [program("map_parse"), str(MAPPED_URLS), str(options.rounds)]))
    plain = [each["plain_ms"] for each in rounds]
    more = [each["mapped_ms"] - each["plain_ms"] for each in rounds]
    report.rounds("children_map", f"what a host map adds to checking {MAPPED_URLS:,} URLs; checking them", more, plain, at_most(0.3), unit="ms CPU")


def measure_resident(report, options, folder):
    """All are fetched, as fast as a host may be asked: five minutes."""
    if not options.full:
        report.missing("children_resident", f"resident with {COPIES:,} copies", "only with --full")
        return
    origin = Origin()
    database = os.path.join(folder, "copies.db")
    config = config_of(folder, origin, FAST_RATE)
    with open(config, encoding="ascii") as file:
        text = file.read().replace("poll = 24h", "poll = 24h\nserve = yes")
    with open(config, "w", encoding="ascii") as out:
        out.write(text)
    try:
        with Server(options.bin, database, settings={"SITEMAPD_CONFIG": config}) as server:
            metrics = lambda: Client(server.admin).ask(request_bytes("/metrics", {"Host": "127.0.0.1"}))[1].decode()
            copies = lambda: next((float(line.split()[1]) for line in metrics().splitlines() if line.startswith("sitemapd_child_copies ")), 0)
            most = [0]

            def done():
                most[0] = max(most[0], server.resident_bytes())
                return copies() >= COPIES

            until(done, f"{COPIES:,} copies", 1800, 1)
            time.sleep(SETTLE_SECONDS)
            settled = server.resident_bytes()
            report.row("children_resident", f"resident with {COPIES:,} copies, {most[0] / MIB:.1f} MiB at most while they were made; goal",
                       f"{settled / MIB:.1f} MiB", "60 MiB", settled / MIB / 60, at_most(1))
    finally:
        origin.stop()
        remove_catalogue(database)


def measure(report, options, folder):
    measure_map(report, options)
    measure_gets(report, options, folder)
    measure_resident(report, options, folder)
