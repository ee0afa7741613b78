# SPDX-License-Identifier: LicenseRef-Undeclared
"""All kinds of requests at once, and SIGTERM in the middle: acknowledged writes are there afterwards, writes
rejected with 503 are not, and each list without an answer is there whole or not at all."""

import json
import random
import threading
import time

import pytest

from harness import ORIGIN, TOKEN, Connection, eventually, locs, request_bytes, seconds

XML = "/sitemap_index.xml"
AUTHORISED = [("Authorization", f"Bearer {TOKEN}")]


class Client(threading.Thread):
    """Works on a connection of its own until it is stopped, or the server has gone."""

    def __init__(self, load, number):
        super().__init__(daemon=True)
        self.load, self.server, self.rng = load, load.server, random.Random(number)
        self.mark = f"{type(self).__name__.lower()}-{number}"
        self.address = self.server.admin
        self.replies, self.error = 0, None

    def run(self):
        connection = None
        try:
            while self.load.going:
                connection = connection or Connection(self.address, seconds(90))
                if not self.step(connection):
                    connection.close()
                    connection = None
        except OSError:
            pass  # the server ended, or was about to
        except AssertionError as error:
            if not str(error).startswith("closed"):
                self.error = error
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        finally:
            if connection:
                connection.close()

    def ask(self, connection, method, target, body=None, kind="application/json", headers=()):
        headers = list(headers) + (AUTHORISED if self.address == self.server.admin else [])
        if body is not None:
            headers.append(("Content-Type", kind))
        host = self.server.admin if self.address == self.server.admin else "www.example.com"
        connection.send(request_bytes(method, target, headers, body or b"", host=host))
        reply = connection.reply(method)
        self.replies += 1
        return reply


class Writer(Client):
    """Registers and removes; knows of each loc whether it is there (None: nobody knows)."""

    def __init__(self, load, number):
        super().__init__(load, number)
        self.there = {}

    def change(self, connection, names, present, *request):
        before = [self.there.get(name, False) for name in names]
        self.there.update(dict.fromkeys(names))
        reply = self.ask(connection, *request)
        done = reply.status in (200, 201, 204)
        assert done or reply.status == 503, reply
        self.there.update(dict.fromkeys(names, present) if done else dict(zip(names, before)))
        return reply.get("Connection") != "close"

    def step(self, connection):
        name = f"{ORIGIN}/{self.mark}/{self.rng.randrange(40)}.xml"
        if self.there.get(name):
            return self.change(connection, [name], False, "DELETE", f"/v1/sitemaps?loc={name}")
        return self.change(connection, [name], True, "POST", "/v1/sitemaps", json.dumps({"loc": name}).encode())


class Bulk(Writer):
    lists = 0

    def step(self, connection):
        self.lists += 1
        names = [f"{ORIGIN}/{self.mark}/{self.lists}/{n}{'x' * 60}.xml" for n in range(self.rng.choice((3, 100, 900)))]
        body = "".join(json.dumps({"loc": name}) + "\n" for name in names).encode()
        return self.change(connection, names, True, "POST", "/v1/sitemaps", body, "application/x-ndjson")


class Poll(Client):
    next = "0"

    def step(self, connection):
        reply = self.ask(connection, "GET", f"/v1/changes?since={self.next}&wait={self.rng.randrange(3)}")
        assert reply.status in (200, 503), reply
        if reply.status == 200:
            self.next = reply.json()["next"]
        return reply.get("Connection") != "close"


class Crawler(Client):
    etag = None

    def __init__(self, load, number):
        super().__init__(load, number)
        self.address = self.server.public

    def step(self, connection):
        headers = [("Accept-Encoding", self.rng.choice(("gzip", "identity", "br")))]
        if self.etag and self.rng.random() < 0.5:
            headers.append(("If-None-Match", self.etag))
        reply = self.ask(connection, self.rng.choice(("GET", "HEAD")), self.rng.choice((XML, XML + ".gz", "/robots.txt")), headers=headers)
        assert reply.status in (200, 304, 404, 503), reply
        self.etag = reply.get("ETag", self.etag)
        return reply.get("Connection") != "close"


class Leaver(Client):
    """Asks and goes, before, while or after it is answered."""

    def step(self, connection):
        if self.rng.random() < 0.3:
            with Connection(self.server.public, seconds(90)) as other:
                other.send(request_bytes("GET", XML)[: self.rng.randrange(20, 60)])
        target, body = self.rng.choice((("/v1/changes?since=0&wait=9", b""), ("/v1/sitemaps?limit=100", b""), ("/v1/sitemaps", b"[" * 70000)))
        headers = AUTHORISED + [("Content-Type", "application/json")]
        connection.send(request_bytes("POST" if body else "GET", target, headers, body, host=self.server.admin))
        time.sleep(seconds(self.rng.random() * 0.05))
        return False


class Reader(Client):
    def step(self, connection):
        target = self.rng.choice(("/v1/sitemaps?limit=50", "/v1/sites", "/v1/indexes", "/metrics", "/readyz", f"/v1/sitemaps?prefix={ORIGIN}/w&limit=5"))
        reply = self.ask(connection, "GET", target)
        assert reply.status in (200, 503), reply
        return reply.get("Connection") != "close"


class Builder(Client):
    """Makes and removes indexes, so that the routing table is ever another one."""

    def step(self, connection):
        url = f"{ORIGIN}/{self.mark}/index.xml"
        reply = self.ask(connection, "POST", "/v1/indexes", json.dumps({"url": url}).encode())
        if reply.status == 201:
            reply = self.ask(connection, "DELETE", reply["Location"])
            assert reply.status in (200, 503), reply
        else:
            assert reply.status in (409, 503), reply  # its removal was not applied
        return reply.get("Connection") != "close"


class Load:
    CLIENTS = ((Writer, 8), (Bulk, 3), (Poll, 6), (Crawler, 6), (Leaver, 3), (Reader, 3), (Builder, 1))

    def __init__(self, server, seed):
        self.server, self.going = server, True
        self.clients = [kind(self, seed + n) for kind, count in self.CLIENTS for n in range(count)]
        for client in self.clients:
            client.start()

    def end(self):
        self.going = False
        for client in self.clients:
            client.join(seconds(60))
            assert not client.is_alive(), client.mark
            if client.error:
                raise client.error
            assert client.replies > 0 or isinstance(client, Leaver), f"{client.mark} was never answered"

    def writers(self):
        return [client for client in self.clients if isinstance(client, Writer)]


def everything(server):
    """The locs of every page that robots.txt names."""
    pages = [line.split(ORIGIN)[1] for line in server.get("/robots.txt").body.decode().splitlines()]
    found = [loc for page in pages for loc in locs(server.get(page).body)]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("seed", [100, 200])
def test_a_stop_under_mixed_load(server, seed):
    load = Load(server, seed)
    for number in range(6):  # another process writes as well
        done = server.cli("add", f"{ORIGIN}/command-{number}.xml", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "60s"})
        assert done.code == 0, done
        time.sleep(0.3)
    writers = load.writers()
    eventually(lambda: all(client.replies > (5 if client in writers else 0) or isinstance(client, Leaver) for client in load.clients), "all are answered", within=90)
    server.stop()
    load.end()
    server.start()
    there = everything(server)
    assert {f"{ORIGIN}/command-{n}.xml" for n in range(6)} <= there
    for writer in writers:
        lists = {}
        for name, present in writer.there.items():
            if present is not None:
                assert (name in there) == present, (name, present)
            else:
                lists.setdefault(name.rsplit("/", 1)[0], set()).add(name in there)
        if isinstance(writer, Bulk):
            assert all(len(states) == 1 for states in lists.values()), "a list was applied in part"
    done = server.cli("check")
    assert done.code == 0, done
