# SPDX-License-Identifier: LicenseRef-Undeclared
"""Both listeners over IPv6: addresses as they are printed, asked, logged, trusted and counted."""

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct

import pytest

from harness import HOST, ORIGIN, ask, eventually, request_bytes, seconds, sitemapd

LISTEN = ("--listen", "[::1]:0", "--admin-listen", "[::1]:0")


def has_ipv6():
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(("::1", 0))
            return True
        except OSError:
            return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def port_of(address):
    return address.rpartition(":")[2]


def remotes(path, count):
    """Who asked, by listener and target, once there are so many lines; sorted, since threads do not wait for each other."""
    read = lambda: [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
    lines = eventually(lambda: len(found := read()) >= count and found, f"{count} lines")
    return sorted((line["listener"], line["target"], line["remote"]) for line in lines)


def logged(tmp_path):
    path = tmp_path / "access.log"
    return path, {"SITEMAPD_LOG_ACCESS_LOG": str(path), "SITEMAPD_LOG_ACCESS_FORMAT": "json"}


def test_loopback(start, tmp_path):
    path, env = logged(tmp_path)
    server = start(*LISTEN, env=env)
    assert server.public.startswith("[::1]:") and server.admin.startswith("[::1]:"), server.ready_line
    assert server.register(f"{ORIGIN}/a.xml").status == 201, "its own address is a name that the API takes"
    page = server.get("/sitemap_index.xml")
    assert page.status == 200 and f"{ORIGIN}/a.xml".encode() in page.body
    assert server.get("/sitemap_index.xml", {"If-None-Match": page["ETag"]}).status == 304
    assert remotes(path, 3) == [("admin", "/v1/sitemaps", "::1")] + [("public", "/sitemap_index.xml", "::1")] * 2
    # Nothing of it listens over IPv4, where the port may be another program's.
    own = {os.readlink(f"/proc/{server.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{server.process.pid}/fd")}
    with open("/proc/net/tcp", encoding="ascii") as file:
        assert not [line for line in list(file)[1:] if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in own]


def test_commands_ask_it(start):
    server = start(*LISTEN)
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    port = port_of(server.admin)
    for url in (f"http://{server.admin}", f"{server.admin}/readyz", f"[::]:{port}"):
        assert sitemapd("healthcheck", url).code == 0, url
    for address in (server.admin, f"[::]:{port}"):
        assert sitemapd("healthcheck", env={"SITEMAPD_ADMIN_LISTEN": address}).code == 0, address
    wrong = sitemapd("healthcheck", f"::1:{port}")
    assert wrong.code == 2 and "must be a URL" in wrong.err
    page = f"http://{HOST}/sitemap_index.xml"
    found = sitemapd("doctor", page, "--connect", server.public, "--sample", "0")
    assert "reach" in found.out and "answers" in found.out and "304" in found.out, found
    refused = sitemapd("doctor", page, "--connect", "[::1]:1", "--sample", "0")
    assert refused.code == 1 and "refused" in refused.out, refused


def test_every_address(start, tmp_path):
    """One socket for both families: IPv4 is reported as IPv4."""
    path, env = logged(tmp_path)
    server = start("--listen", "[::]:0", "--admin-listen", "[::]:0", env=env)
    assert server.public.startswith("[::1]:"), "a wildcard is printed as what works on this machine"
    for host in ("[::1]", "127.0.0.1"):
        assert ask(f"{host}:{port_of(server.public)}", "GET", f"/?{host[0]}").status == 404
    assert remotes(path, 2) == [("public", "/?1", "127.0.0.1"), ("public", "/?[", "::1")]


@pytest.mark.parametrize("proxy, status", [("::1", 200), ("::2", 421), ("::/127", 200), ("fd00::/8 127.0.0.0/8", 421), ("fd00::/8 ::/126", 200)])
def test_a_trusted_proxy(start, proxy, status):
    server = start(*LISTEN, config=f"[server]\nstrict_host = yes\ntrusted_proxies = {proxy}\n")
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get("/sitemap_index.xml", {"X-Forwarded-Host": HOST}, host="backend").status == status


# ---- the limit by /64 ---------------------------------------------------------------------------

CLONE_NEWNET = 0x40000000
SIOCGIFINDEX, SIOCSIFFLAGS, SIOCSIFADDR = 0x8933, 0x8914, 0x8916
IFF_UP, IFF_RUNNING = 0x1, 0x40


def is_usable(address):
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def network_of_our_own(*addresses):
    """A network of this thread and of what it starts, with nothing but a loopback of these addresses."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            pytest.skip(f"no network of our own: {os.strerror(ctypes.get_errno())}")
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
                index = struct.unpack("16xi", fcntl.ioctl(six, SIOCGIFINDEX, struct.pack("16s4x", b"lo")))[0]
                fcntl.ioctl(six, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
                for address in addresses:
                    fcntl.ioctl(six, SIOCSIFADDR, struct.pack("16sIi", socket.inet_pton(socket.AF_INET6, address), 128, index))
            eventually(lambda: all(map(is_usable, addresses)), "the kernel has made sure that nobody else has them")
            yield
        finally:
            assert libc.setns(before, CLONE_NEWNET) == 0
    finally:
        os.close(before)


def test_the_limit_is_of_a_64(start):
    """Who has a /64 has 2^64 addresses: they count as one client."""
    mine, other = [f"fd00:0:0:1::{n}" for n in (1, 2, 3)], "fd00:0:0:2::1"
    limits = "[server]\nmax_connections_per_address = 2\n"
    with network_of_our_own(*mine, other), contextlib.ExitStack() as opened:
        server = start("--listen", "[::]:0", "--admin-listen", "127.0.0.1:0", config=limits)

        def come(source):
            one = socket.create_connection(("::1", int(port_of(server.public))), seconds(60), source_address=(source, 0))
            opened.callback(one.close)
            try:
                one.sendall(request_bytes("GET", "/robots.txt"))
                return one.recv(12)
            except (BrokenPipeError, ConnectionResetError):
                return b""

        assert [come(address) for address in mine] == [b"HTTP/1.1 200", b"HTTP/1.1 200", b""]
        assert come(other) == b"HTTP/1.1 200", "another /64 is another client"
        assert come("::1") == b"HTTP/1.1 200"
        cut = 'sitemapd_http_connections_cut_total{listener="public",reason="address-limit"}'
        assert server.metrics()[cut] == 1
        server.stop()
