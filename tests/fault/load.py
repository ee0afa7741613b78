# SPDX-License-Identifier: LicenseRef-Undeclared
"""Clients that know what must be in the catalogue after a crash.

Each works alone on locs of its own, one transaction at a time, over the clients of tests/http/test_mixed.py. So
its entries are exactly `state`, what the last answer said; or, where a transaction was under way when the
program died, that or `doubt`, what it would have made of it: the whole of the one or the whole of the other."""

import json
import os
import subprocess
import time

from harness import BIN, ORIGIN, environment
from test_mixed import Client, Crawler, Load, Poll, Reader
from test_sources import OLD, Folder, urlset, utc

MANY = "max_removed=100000"
INDEX = "/sitemap_index.xml"


class Modelled(Client):
    def __init__(self, load, number):
        super().__init__(load, f"{load.seed}-{number}")
        self.mark = f"{type(self).__name__.lower()}-{number - load.seed}"
        self.state = load.book.get(self.mark, {})  # loc: lastmod; the URL of an index: "index"
        self.doubt = None
        self.stamp = OLD + load.clock * 100000

    def loc(self, n):
        return f"{ORIGIN}/{self.mark}/{n}.xml"

    def time(self):
        """A lastmod that was never used before."""
        self.stamp += 1
        return utc(self.stamp)

    def transact(self, connection, after, *request):
        self.doubt = after
        reply = self.ask(connection, *request)
        if reply.status in (200, 201, 204):
            self.state = after
        else:
            assert reply.status == 503, (request[:2], reply)
        self.doubt = None
        return reply.get("Connection") != "close"

    def verify(self, actual):
        """Asserts that the catalogue has one of the two expected states, and makes it the current one."""
        mine = {loc: value for loc, value in actual.items() if loc.startswith(f"{ORIGIN}/{self.mark}/")}
        if mine != self.state and (self.doubt is None or mine != self.doubt):
            differs = {k: (self.state.get(k), (self.doubt or {}).get(k), mine.get(k)) for k in mine.keys() | self.state.keys() | (self.doubt or {}).keys()}
            wrong = [(k, v) for k, v in sorted(differs.items()) if v[2] != v[0] or (self.doubt is not None and v[2] != v[1])]
            raise AssertionError(f"{self.mark}: (answered, under way: {self.doubt is not None}, found): {len(wrong)} differ: {wrong[:6]}")
        undone = self.doubt is not None and mine != self.doubt
        self.state, self.doubt = mine, None
        return undone


class One(Modelled):
    """Registers, updates and removes single entries."""

    def step(self, connection):
        name = self.loc(self.rng.randrange(60))
        if name in self.state and self.rng.random() < 0.4:
            after = {k: v for k, v in self.state.items() if k != name}
            return self.transact(connection, after, "DELETE", f"/v1/sitemaps?loc={name}")
        entry = {"loc": name, "lastmod": self.time()}
        return self.transact(connection, {**self.state, name: entry["lastmod"]}, "POST", "/v1/sitemaps", json.dumps(entry).encode())


def ndjson(entries):
    return "".join(json.dumps({"loc": k, "lastmod": v}) + "\n" for k, v in entries.items()).encode()


class Bulk(Modelled):
    """Upserts lists, each entry of one with the same date."""

    def step(self, connection):
        count, stamp = self.rng.choice((2, 50, 700, 2500)), self.time()
        first = self.rng.randrange(2500)
        part = {self.loc(n % 2500): stamp for n in range(first, first + count)}
        return self.transact(connection, {**self.state, **part}, "POST", "/v1/sitemaps", ndjson(part), "application/x-ndjson")


class Replace(Modelled):
    """Makes its part of the index exactly another list."""

    def step(self, connection):
        stamp = self.time()
        part = {self.loc(n): stamp if self.rng.random() < 0.5 else self.state.get(self.loc(n), stamp) for n in self.rng.sample(range(900), self.rng.choice((1, 40, 600)))}
        target = f"/v1/sitemaps?index={INDEX}&prefix={ORIGIN}/{self.mark}/&{MANY}"
        return self.transact(connection, part, "PUT", target, ndjson(part), "application/x-ndjson")


class Index(Modelled):
    """Makes an index, fills it, and removes it with all that it holds."""

    def find(self, connection, url):
        reply = self.ask(connection, "GET", "/v1/indexes?limit=1000")
        return next((i["id"] for i in reply.json().get("indexes", []) if i["url"] == url), None)

    def step(self, connection):
        url = f"{ORIGIN}/{self.mark}{INDEX}"
        if url not in self.state:
            return self.transact(connection, {url: "index"}, "POST", "/v1/indexes", json.dumps({"url": url}).encode())
        if self.rng.random() < 0.5:
            stamp = self.time()
            part = {self.loc(n): stamp for n in range(self.rng.choice((1, 800)))}
            return self.transact(connection, {**self.state, **part}, "POST", "/v1/sitemaps", ndjson(part), "application/x-ndjson")
        found = self.find(connection, url)
        return found is None or self.transact(connection, {}, "DELETE", f"/v1/indexes/{found}?{MANY}")


class Source(Modelled):
    """Writes a folder again, other files with other content, and has it scanned."""

    FILES = 12

    def __init__(self, load, number):
        super().__init__(load, number)
        self.folder = Folder(load.sources)
        load.source = self

    def step(self, connection):
        self.stamp += 60
        chosen = sorted(self.rng.sample(range(self.FILES), self.rng.randrange(1, self.FILES)))
        # In doubt from the first file on: a restart scans what is there. It does so before we come back.
        for n in range(self.FILES):
            if n in chosen:
                self.folder.put(f"{n}.xml", urlset(f"/p/{n}/{self.stamp}"), self.stamp)
            elif os.path.exists(self.folder.at(f"{n}.xml")):
                self.folder.remove(f"{n}.xml")
        return self.transact(connection, self.there(), "POST", f"/v1/sources/files/scan?{MANY}")

    def there(self):
        """What a scan makes of the folder as it is."""
        stamps = {n: os.stat(self.folder.at(n)).st_mtime for n in os.listdir(self.folder.path)}
        return {f"{ORIGIN}/{self.mark}/{n}": utc(int(t)) for n, t in stamps.items() if not n.endswith(".part")}


class Command(Modelled):
    """Another process on the same file; it dies with the server."""

    def step(self, connection):
        stamp = self.time()
        part = {self.loc(n): stamp for n in range(self.rng.choice((1, 300)))}
        self.doubt = {**self.state, **part}
        run = subprocess.Popen([BIN, "import", "-", "--database", self.server.database], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment(self.server.env))
        self.load.commands.append(run)
        if not self.load.going:
            run.kill()
        error = run.communicate(ndjson(part))[1]
        if run.returncode >= 0:
            assert run.returncode in (0, 1), error
            if run.returncode == 0:
                self.state = self.doubt
            self.doubt = None
        time.sleep(0.05)
        return True


class CrashLoad(Load):
    CLIENTS = ((One, 6), (Bulk, 2), (Replace, 2), (Index, 2), (Source, 1), (Command, 1), (Poll, 2), (Crawler, 3), (Reader, 1))

    def __init__(self, server, seed, book, clock, sources):
        self.book, self.clock, self.seed, self.sources = book, clock, seed, sources
        self.commands = []
        super().__init__(server, seed)

    def kill(self):
        """kill -9 of all that writes; then the clients find out."""
        self.going = False
        self.server.process.kill()
        for run in list(self.commands):
            run.kill()
        self.server.kill()
        for client in self.clients:
            client.join(60)
            assert not client.is_alive(), client.mark
            if client.error:
                raise client.error

    def models(self):
        return [client for client in self.clients if isinstance(client, Modelled)]
