# SPDX-License-Identifier: LicenseRef-Undeclared
"""What a page costs to make and to keep."""
import gzip
import os
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, LEVEL, ONE_SHOT_LEVEL, PAGE, SERVER_CORE, BenchError, Client,
                     Server, get, json_lines, lines, median, program, request_bytes, run_pinned,
                     status_of)
from rows_write import register_and_see
from table import NO_GOAL, Goal, at_most, best_of


def page_path(number):
    return INDEX_PATH if number == 1 else f"/sitemap_index-{number}.xml"


def cpu_ms(name, *arguments):
    return median([each["cpu_ms"] for each in json_lines(run_pinned(SERVER_CORE, [program(name), *arguments]))])


def measure_cold(report, options, folder, page, database):
    """Render and gzip of a full page, by the code that the server runs, against zlib alone; and
    what the pieces cost in size."""
    xml = os.path.join(folder, "page.xml")
    with open(xml, "wb") as out:
        out.write(gzip.decompress(page))
    ours, theirs = [], {memory: [] for memory in (8, 9)}
    for _ in range(options.rounds):
        ours.append(cpu_ms("page_build", database, "segments", str(LEVEL), "3"))
        for memory, times in theirs.items():
            times.append(cpu_ms("zlib_only", xml, str(LEVEL), "3", str(memory)))
    best = best_of(theirs)
    report.rounds("cold", f"reading, rendering and gzip of a full page, level {LEVEL}; zlib alone in its best setup "
                  f"(memLevel {best})", ours, theirs[best], at_most(1.3), unit="ms CPU", raw={"all": theirs})
    bytes_ours, bytes_theirs = len(page), json_lines(run_pinned(SERVER_CORE, [
        program("zlib_only"), xml, str(ONE_SHOT_LEVEL), "1"]))[0]["bytes"]
    report.row("size", f"gzip size of a full page; one-shot zlib, level {ONE_SHOT_LEVEL}", f"{bytes_ours:,} bytes",
               f"{bytes_theirs:,} bytes", bytes_ours / bytes_theirs, at_most(1.1))


def start(options, database):
    """Milliseconds from starting the program until it is ready, and until the first byte of page 1
    is here."""
    with Server(options.bin, database) as server:
        ready = time.perf_counter()
        client = Client(server.public)
        head, _, first = client.ask(request_bytes(INDEX_PATH, CRAWLER_HEADERS))
        client.close()
        if status_of(head) != 200:
            raise BenchError(f"the first page: {head[:60]!r}")
        return (ready - server.began) * 1000, (first - server.began) * 1000


def measure_grown(report, options, folder, database, entries):
    """The rows about a catalogue of `entries` beside one of 1,000, and memory with all pages hot."""
    size = f"{entries:,}"
    small = os.path.join(folder, f"thousand-{entries}.db")
    with Server(options.bin, small) as server:
        server.post(lines(0, 1000, options.loc))

    starts = {small: [], database: []}
    for _ in range(options.rounds):
        for path in starts:
            starts[path].append(start(options, path))
    for key, what, column, goal in (
            ("start", "start to first page", 1, at_most(2)),
            ("ready", "of it, until it is ready", 0, NO_GOAL)):
        report.rounds(f"{key}_{entries}", f"{what} at {size} entries; at 1,000",
                      [each[column] for each in starts[database]], [each[column] for each in starts[small]],
                      goal, "{:.1f}", "ms")

    pages = (entries + PAGE - 1) // PAGE
    with Server(options.bin, database) as big, Server(options.bin, small) as one:
        held = sum(len(get(big.public, page_path(number))[1]) for number in range(1, pages + 1))
        resident = big.resident_bytes()
        bound = 1.5 * held + 16 * 1048576
        report.row(f"memory_{entries}", f"resident, {pages} pages hot; gzip bytes held",
                   f"{resident / 1048576:.1f} MiB", f"{held / 1048576:.1f} MiB", resident / held,
                   Goal("≤ 1.5× + 16 MiB", lambda _: resident <= bound))
        get(one.public)
        middle = entries // 2
        path = page_path(middle // PAGE + 1)
        grown, base = [], []
        for turn in range(options.rounds):
            grown.append(median(register_and_see(
                big, path, options.loc, range(middle + turn * 997, middle + turn * 997 + 700, 35))))
            base.append(median(register_and_see(one, INDEX_PATH, options.loc, range(turn * 7, turn * 7 + 700, 35))))
        report.rounds(f"growth_{entries}", f"one registration to its first fresh byte at {size} entries; at 1,000",
                      grown, base, at_most(1.5), unit="ms")


def load(options, database, entries, bulk=1_000_000):
    with Server(options.bin, database) as server:
        for first in range(0, entries, bulk):
            server.post(lines(first, min(bulk, entries - first), options.loc))
