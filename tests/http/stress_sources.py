# SPDX-License-Identifier: LicenseRef-Undeclared
"""A folder that changes all the time while crawlers fetch: tests/stress/sources [SECONDS] [SEED].

Files are written at once and in pieces, broken, renamed, deleted and touched at random. No index reply may be
invalid. No lastmod may move if the file's content did not (some files only get the same content in other bytes), and
none may move backwards. Once it is quiet again, the index equals that of a scan of the folder into an empty catalogue.
Exit 0 if all that held."""

import gzip
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as tree

from harness import BIN, ORIGIN, Server, gunzip, seconds, sitemapd

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
TAG = "{%s}" % NAMESPACE
FILES = 120
KINDS = ("xml", "xml.gz", "txt")
ROAMING, STAYING, STEADY = "roaming", "staying", "steady"


def lot(name):
    """STEADY: its content never changes. STAYING: it does, but the file never goes. Both at the top."""
    n = int(re.search(r"f(\d+)\.", name).group(1)) % 8
    return STEADY if n == 0 else STAYING if n == 4 else ROAMING


def urls(content):
    """The pages of content number `content`, which no other number has."""
    return [f"{ORIGIN}/page/{content}/{i}" for i in range(1 + content % 40)]


def render(name, content, rng):
    """The file's bytes: the same content in one of several dresses."""
    if name.endswith(".txt"):
        return "".join(u + rng.choice(("\n", "\r\n")) for u in urls(content)).encode()
    space = rng.choice(("", "\n", "\n  "))
    comment = rng.choice(("", f"<!-- made {rng.random()} -->"))
    body = "".join(f"<url>{space}<loc>{u}</loc></url>{space}" for u in urls(content))
    data = f'<?xml version="1.0" encoding="UTF-8"?>{comment}<urlset xmlns="{NAMESPACE}">{body}</urlset>'.encode()
    return gzip.compress(data, rng.choice((1, 6, 9)), mtime=rng.randrange(1 << 30)) if name.endswith(".gz") else data


class Turmoil:
    """Works on the folder alone; knows when each name may have changed its content."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.contents = {}  # name: number of its good content, None: broken
        self.edits = {}  # name: how many times it may have come to say something else
        self.lock = threading.Lock()
        self.next_content = 0
        self.done = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def name(self):
        return self.name_of(self.rng.randrange(FILES))

    def name_of(self, n):
        return f"{('', 'a/', 'a/b/', 'c/')[n % 4]}f{n}.{KINDS[n % 3]}"

    def edited(self, *names):
        with self.lock:
            for name in names:
                self.edits[name] = self.edits.get(name, 0) + 1

    def write(self, name, data, beside):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        path = self.path(name) + (".part" if beside else "")
        with open(path, "wb", buffering=0) as file:
            for i in range(0, len(data), max(1, len(data) // 3)):
                file.write(data[i:i + max(1, len(data) // 3)])
                if not beside and self.rng.random() < 0.3:
                    time.sleep(0.003)
        if beside:
            os.rename(path, self.path(name))

    # Each takes a name. `edited` comes before the act: a lastmod that moves earlier is a lie.

    def do_write(self, name):
        self.edited(name)
        self.next_content += 1
        self.contents[name] = self.next_content
        self.write(name, render(name, self.next_content, self.rng), self.rng.random() < 0.5)
        if self.rng.random() < 0.3:  # rsync: of any date
            stamp = time.time() - self.rng.randrange(0, 10**self.rng.randrange(1, 9))
            os.utime(self.path(name), (stamp, stamp))

    def do_dress(self, name):
        """The same content again, as other bytes. Half a list would be a whole one."""
        if self.contents.get(name):
            beside = name.endswith(".txt") or self.rng.random() < 0.5
            self.write(name, render(name, self.contents[name], self.rng), beside)

    def do_touch(self, name):
        if name in self.contents:
            stamp = time.time() - self.rng.randrange(-100, 10**6)
            os.utime(self.path(name), (stamp, stamp))

    def do_truncate(self, name):
        if name in self.contents:
            self.edited(name)
            size = os.path.getsize(self.path(name))
            os.truncate(self.path(name), self.rng.choice((0, size // 2, max(0, size - 5))))
            self.contents[name] = None

    def do_garbage(self, name):
        self.edited(name)
        self.contents[name] = None
        self.write(name, self.rng.choice((b"<html>", b"<urlset", b"\x1f\x8b\x08garbage", b"", b"\xff\xfe")), True)

    def do_delete(self, name):
        if name in self.contents:
            self.edited(name)
            del self.contents[name]
            os.unlink(self.path(name))

    def do_rename(self, name):
        other = self.name()
        if name in self.contents and other != name and lot(other) == ROAMING and other.split(".", 1)[1] == name.split(".", 1)[1]:
            self.edited(name, other)
            os.makedirs(os.path.dirname(self.path(other)), exist_ok=True)
            os.rename(self.path(name), self.path(other))
            self.contents[other] = self.contents.pop(name)

    def do_folder(self, name):
        """A whole folder goes aside and comes back."""
        folder = self.path(self.rng.choice(("a", "c", "a/b")))
        if os.path.isdir(folder):
            self.edited(*self.contents)
            os.rename(folder, self.folder + ".aside")
            time.sleep(self.rng.choice((0, 0.01, 0.3)))
            os.rename(self.folder + ".aside", folder)

    def run(self, until):
        acts = ["write"] * 8 + ["dress"] * 4 + ["touch"] * 4 + ["truncate"] * 2 + ["garbage"] * 2 + ["delete"] * 2 + ["rename"] * 3 + ["folder"] * 1
        while time.monotonic() < until:
            act, name = self.rng.choice(acts), self.name()
            if act not in {STEADY: ("dress", "touch"), STAYING: ("write", "dress", "touch", "truncate", "garbage")}.get(lot(name), acts):
                continue
            getattr(self, "do_" + act)(name)
            self.done[act] = self.done.get(act, 0) + 1
            time.sleep(self.rng.choice((0, 0, 0.001, 0.01, 0.3 * self.rng.random() ** 8)))


def parse(reply):
    """{name: lastmod} of an index reply, which must be valid."""
    body = reply.xml()
    root = tree.fromstring(body)
    assert root.tag == TAG + "sitemapindex" and body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    found = {}
    for sitemap in root:
        assert sitemap.tag == TAG + "sitemap" and [e.tag for e in sitemap] in ([TAG + "loc"], [TAG + "loc", TAG + "lastmod"])
        name = sitemap[0].text[len(ORIGIN) + 1:]
        assert name not in found, name
        found[name] = sitemap[1].text if len(sitemap) > 1 else None
        assert found[name] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found[name]), (name, found[name])
    return found


class Crawler:
    """Fetches; remembers the last date of each loc and how often it moved."""

    def __init__(self, server, turmoil, rng):
        self.server, self.turmoil, self.rng = server, turmoil, rng
        self.seen = {}
        self.fetched = {"index": 0, "304": 0, "file": 0, "moved": 0}
        self.error = None

    def run(self, stop):
        try:
            while not stop.is_set():
                self.fetch_index()
                self.fetch_file()
        except BaseException as error:
            self.error = error

    def fetch_index(self):
        target, headers = self.rng.choice((("/sitemap_index.xml", {}), ("/sitemap_index.xml", {"Accept-Encoding": "gzip"}), ("/sitemap_index.xml.gz", {})))
        reply = self.server.get(target, headers)
        if reply.status == 404:
            return
        assert reply.status == 200, reply
        self.fetched["index"] += 1
        again = self.server.get(target, {**headers, "If-None-Match": reply["ETag"]})
        assert again.status in (200, 304), again
        self.fetched["304"] += again.status == 304
        with self.turmoil.lock:
            after = dict(self.turmoil.edits)
        for name, lastmod in parse(reply).items():
            old, moves = self.seen.get(name, (lastmod, 0))
            if lastmod != old:
                moves += 1
                self.fetched["moved"] += 1
                what = f"{name}, {lot(name)}: {old} became {lastmod}"
                assert moves < after[name], f"{what}, move {moves} of {after[name]} edits"
                assert lot(name) != STEADY, what
                assert lot(name) == ROAMING or lastmod > old, what
            self.seen[name] = (lastmod, moves)

    def fetch_file(self):
        reply = self.server.get("/" + self.turmoil.name(), {"Accept-Encoding": "gzip"})
        assert reply.status in (200, 404, 503), reply
        if reply.get("Content-Encoding") == "gzip":
            gunzip(reply.body)
        self.fetched["file"] += reply.status == 200


def settled(server, turmoil):
    """Makes what is left broken good, lets the source find it by itself, and waits until it rests."""
    for name, content in sorted(turmoil.contents.items()):
        if content is None:
            turmoil.do_write(name)
    end = time.monotonic() + seconds(30)
    expected = set(turmoil.contents)
    while True:
        held = server.api("GET", "/v1/sources").json()["sources"][0]["held_removals"]
        if held:
            reply = server.api("POST", f"/v1/sources/files/scan?max_removed={10 * FILES}")
            assert reply.status == 200, reply
        source = server.api("GET", "/v1/sources").json()["sources"][0]
        index = parse(server.get("/sitemap_index.xml"))
        if set(index) == expected and not source["scanning"] and not source["problems"]:
            return index
        assert time.monotonic() < end, (set(index) ^ expected, source)
        time.sleep(0.05)


def compare(folder, server, index, where):
    """Against a scan of the same folder into an empty catalogue, and what the source kept of each file."""
    fresh = os.path.join(where, "fresh.db")
    assert sitemapd("site", "add", ORIGIN, database=fresh).code == 0
    done = sitemapd("scan", folder, "--url", ORIGIN + "/", database=fresh)
    assert done.code == 0, done
    rows = {}
    for path in (fresh, server.database):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            rows[path] = set(db.execute("SELECT path, urls, bytes, hash FROM source_file"))
            db_locs = {loc[len(ORIGIN) + 1:] for (loc,) in db.execute("SELECT loc FROM sitemap")}
        assert db_locs == set(index), db_locs ^ set(index)
    assert rows[fresh] == rows[server.database], rows[fresh] ^ rows[server.database]
    again = sitemapd("scan", folder, "--url", ORIGIN + "/", "--source", "files", "--dry-run", database=server.database)
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        problems = db.execute("SELECT count(*) FROM source_file WHERE problem IS NOT NULL").fetchone()[0]
    result = [line for line in again.out.splitlines() if not line.startswith("remark ")]  # pages lie above the folders of some
    assert again.code == 0 and all(line.startswith("problem ") for line in result[:-1]) and len(result) == problems + 1, again
    assert re.sub(r", \d+ with remarks$", "", result[-1]) == f"would be: 0 added, 0 updated, 0 removed, {problems} file{'s' * (problems != 1)} with a problem", again
    for db in (fresh, server.database):
        assert sitemapd("check", database=db).code == 0


def stress(duration, seed, where):
    folder = os.path.join(where, "files")
    os.makedirs(folder)
    config = f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 50ms\nserve = yes\n'
    server = Server(where, config=config)
    turmoil = Turmoil(folder, random.Random(seed))
    for n in range(0, FILES, 4):
        turmoil.do_write(turmoil.name_of(n))
    server.start()
    crawlers = [Crawler(server, turmoil, random.Random(seed + 1 + i)) for i in range(2)]
    stop = threading.Event()
    threads = [threading.Thread(target=c.run, args=(stop,)) for c in crawlers]
    try:
        for thread in threads:
            thread.start()
        turmoil.run(time.monotonic() + duration)
        index = settled(server, turmoil)
        dates_before = dict(index)
        # What was read while its time was fresh is read again: two seconds later, in any build.
        time.sleep(min(seconds(3), 5))
        index = parse(server.get("/sitemap_index.xml"))
        assert index == dates_before, "moved although nothing was edited"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    try:
        for crawler in crawlers:
            if crawler.error:
                raise crawler.error
        compare(folder, server, index, where)
        fetched = {k: sum(c.fetched[k] for c in crawlers) for k in crawlers[0].fetched}
        metrics = server.metrics()
        counts = {"revisions": int(metrics["sitemapd_catalogue_revision"]), "scans": int(metrics['sitemapd_source_scans_total{source="files"}'])}
        server.stop()
    finally:
        server.kill()
    assert fetched["index"] > 0 and fetched["304"] > 0 and fetched["file"] > 0 and fetched["moved"] > 0, fetched
    return {"acts": turmoil.done, "fetched": fetched, **counts, "listed": len(index)}


def test_sources_under_turmoil(tmp_path):
    seed = int(os.environ.get("SITEMAPD_SEED", random.SystemRandom().randrange(1 << 32)))
    print("seed", seed)  # pytest shows it where the test fails
    stress(8, seed, str(tmp_path))


def main(arguments):
    duration = float(arguments[0]) if arguments else 60
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(1 << 32)
    assert BIN, "SITEMAPD_BIN is not set"
    where = tempfile.mkdtemp(prefix="sitemapd-stress-")
    print(f"{duration:g} s, seed {seed}", flush=True)
    try:
        result = stress(duration, seed, where)
    except BaseException:
        print(f"tests/stress/sources: failed; the folder, the catalogue and the log are kept in {where}", file=sys.stderr)
        raise
    shutil.rmtree(where)
    print("held:", result)


if __name__ == "__main__":
    main(sys.argv[1:])
