# SPDX-License-Identifier: LicenseRef-Undeclared
"""The undo of a bad replace of 300,000 entries: tests/fault/run undo [--entries N] [--rounds N] [--seed S].

71,000 entries in 300,000 are removed and the others rewritten. One undo brings back the bytes and the tags of every
page, which is timed against the replace; then the same is killed (kill -9) at random instants of the undo: after each
all of it is there or nothing, `check` finds nothing, and the next undo ends it."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from harness import INDEX, ORIGIN, Server, q  # noqa: E402

PAGE = 50_000


def line(number, date):
    return f'{{"loc":"{ORIGIN}/files/{number:07d}.xml","lastmod":"{date}"}}\n'


def put(server, body):
    begun = time.monotonic()
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=*&max_removed=1000000", body=body,
                       content_type="application/x-ndjson")
    assert reply.status == 200, reply
    return reply.json(), time.monotonic() - begun


def pages(server, entries):
    """Each page in both codings: bytes and tags."""
    shown = []
    for number in range(1, (entries - 1) // PAGE + 2):
        target = "/sitemap_index.xml" if number == 1 else f"/sitemap_index-{number}.xml"
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            reply = server.get(target, headers)
            assert reply.status == 200, (target, reply)
            shown.append((target, reply["ETag"], reply.body if not headers else None))
    return shown


def undo(server, revision):
    begun = time.monotonic()
    reply = server.api("POST", f"/v1/history/{revision}/undo?max_removed=1000000")
    assert reply.status == 200 and reply.json()["conflicts_total"] == 0, reply
    return reply.json(), time.monotonic() - begun


def killed(server, revision, after):
    """True where the undo was under way when the server was killed."""
    asked = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    answers = []

    def ask():
        try:
            return server.api("POST", f"/v1/history/{revision}/undo?max_removed=1000000").status
        except Exception:  # noqa: BLE001  it is killed beneath us
            return None

    asked.start()
    time.sleep(after)
    server.kill()
    asked.join(60)
    return answers != [200]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    rng, count = random.Random(options.seed), options.entries
    base = tempfile.mkdtemp(prefix="sitemapd-undo-")
    server = Server(base, config="[limits]\nmax_bulk = 1G\n").start()
    try:
        good = "".join(line(n, "2026-01-01") for n in range(count)).encode()
        kept = [n for n in range(count) if n % 300 >= 71]
        bad = "".join(line(n, "2026-06-06") for n in kept).encode()
        put(server, good)
        before = pages(server, count)
        answer, replaced_s = put(server, bad)
        assert (answer["removed"], answer["updated"]) == (count - len(kept), len(kept)), answer
        damaged = pages(server, count)
        done, undone_s = undo(server, answer["revision"])
        assert (done["created"], done["updated"]) == (count - len(kept), len(kept)), done
        assert pages(server, count) == before, "not the bytes and tags of before"
        print(f"undo: {count:,} entries, {answer['removed']:,} removed, {answer['updated']:,} rewritten: replace {replaced_s:.2f} s,"
              f" undo {undone_s:.2f} s, {undone_s / replaced_s:.2f} of it; all {len(before)} pages and tags as before", flush=True)
        whole = nothing = 0
        for _ in range(options.rounds):
            answer, _ = put(server, bad)
            cut = killed(server, answer["revision"], rng.random() * undone_s * 1.1)
            server.start()
            now = pages(server, count)
            assert now in (before, damaged), "half of an undo"
            assert server.cli("check").code == 0
            whole, nothing = whole + (now == before), nothing + (now == damaged)
            assert cut or now == before, "what was answered is gone"
            if now == damaged:
                undo(server, answer["revision"])
                assert pages(server, count) == before
        print(f"undo: killed {options.rounds} times, seed {options.seed}: {whole} whole, {nothing} not begun, none half")
    finally:
        server.kill()
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
