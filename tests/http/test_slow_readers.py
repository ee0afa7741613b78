# SPDX-License-Identifier: LicenseRef-Undeclared
"""Clients that read slowly, from one address or many: all other clients are answered."""

import base64
import contextlib
import gzip
import random
import time

import pytest
from harness import ORIGIN, Connection, eventually, request_bytes, slow_reader

LARGE = "/sitemap_index.xml"
SMALL = "/small.xml"
SLOW = 2.0  # READERS_SLOW_MS
PLACES = 64


def noise(size, seed):
    """Text that gzip makes little of."""
    return base64.urlsafe_b64encode(random.Random(seed).randbytes(size)).decode()[:size]


def locs(count, seed=1):
    text = noise(1000 * count, seed)
    return [f"{ORIGIN}/{text[n * 1000 : n * 1000 + 1000]}" for n in range(count)]


def begin(address, target, headers=(), source=None):
    """Asks for what is more than the system takes into a socket's buffer."""
    return slow_reader(address, request_bytes("GET", target, list(headers)), source)


def all_begun(crowd):
    """Each has its place, or was refused."""
    return {reader.recv(12) for reader in crowd} <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}


def status(server, target, headers=(), source=None):
    with Connection(server.public, source=source) as connection:
        connection.send(request_bytes("GET", target, list(headers) + [("Connection", "close")]))
        reply = connection.reply()
        return reply.status


@pytest.fixture
def readers():
    with contextlib.ExitStack() as stack:
        yield lambda *given, **named: stack.enter_context(contextlib.closing(begin(*given, **named)))


@pytest.fixture
def filled(start):
    """A page of 12 MB, and one of a few entries."""
    def start_filled(**options):
        server = start(**options)
        assert server.bulk(locs(12000)).status == 200
        assert server.api("POST", "/v1/indexes", {"url": ORIGIN + SMALL}).status == 201
        assert server.register(f"{ORIGIN}/one.xml", index=SMALL).status == 201
        return server

    return start_filled


def cut(server):
    return server.metrics()['sitemapd_http_connections_cut_total{listener="public",reason="slow-readers"}']


def test_a_crowd_of_one_address_that_reads_a_page_uncompressed(filled, readers):
    server = filled()
    crowd = [readers(server.public, LARGE) for _ in range(PLACES)]
    assert all_begun(crowd)
    for _ in range(3):
        assert status(server, SMALL) == 200, "a small page needs no place"
        assert status(server, LARGE, source="127.0.0.2") == 200, "the address keeps no more than half"
        assert status(server, LARGE, [("Accept-Encoding", "gzip")]) == 200
    # What fills the sockets is inflated first, which takes the machine a while.
    eventually(lambda: status(server, LARGE) == 200, "the longest of the same address is cut")
    time.sleep(SLOW)
    for _ in range(3):
        assert status(server, LARGE) == 200
    assert cut(server) >= 1


def test_crowds_of_many_addresses(filled, readers):
    """Who comes gets a place of those who keep more than one."""
    server = filled()
    assert all_begun([readers(server.public, LARGE, source=f"127.0.1.{1 + number % 16}") for number in range(PLACES)])
    for number in range(4):
        assert status(server, LARGE, source=f"127.0.2.{number + 1}") == 200
    assert cut(server) >= 1


def test_behind_a_proxy_its_clients_count(filled, readers):
    server = filled(config="[server]\ntrusted_proxies = 127.0.0.1\n")
    assert all_begun([readers(server.public, LARGE, [("X-Forwarded-For", "192.0.2.1")]) for _ in range(PLACES)])
    assert status(server, LARGE, [("X-Forwarded-For", "192.0.2.2")]) == 200
    assert status(server, LARGE) == 200, "the proxy itself has no bound"


def sitemap(count, seed):
    urls = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs(count, seed))
    return gzip.compress(f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode(), 1)


def test_crowds_that_read_served_files(start, readers, tmp_path):
    """They hold all of the files' memory: another file is served all the same, and what nobody else reads stays."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(8):
        (folder / f"large{number}.xml.gz").write_bytes(sitemap(11000, number))
    (folder / "small.xml").write_bytes(gzip.decompress(sitemap(2, 99)))
    size = (folder / "large0.xml.gz").stat().st_size
    assert size > 8 << 20
    server = start("--source", folder, env={"SITEMAPD_CACHE_SNAPSHOT_BUDGET": str(4 * 5 * size)})
    eventually(lambda: status(server, "/small.xml") == 200, "the files are served")
    for number in range(60):
        readers(server.public, f"/large{number % 4}.xml.gz", source=f"127.0.1.{1 + number % 30}")
        if number < 4:
            time.sleep(0.2)
    for number in (4, 5, 6, 7):
        assert status(server, f"/large{number}.xml.gz", source="127.0.2.1") == 200
        assert status(server, "/small.xml") == 200
    assert server.metrics()['sitemapd_http_connections_cut_total{listener="public",reason="snapshot-budget"}'] >= 1
