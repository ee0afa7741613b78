# SPDX-License-Identifier: LicenseRef-Undeclared
"""The public listener's own TLS: the same replies as without, to the byte, through Python's ssl and curl."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import warnings

import pytest

from exposition import Values
from harness import ask as plain_ask
from harness import HOST, ORIGIN, Connection, Reply, eventually, gunzip, locs, request_bytes, seconds, sitemapd

INDEX = "/sitemap_index.xml"
SITE = f'[site "main"]\norigin = {ORIGIN}\n'


def make_pair(folder, name, cn=HOST):
    cert, key = os.path.join(str(folder), name + ".crt"), os.path.join(str(folder), name + ".key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-subj", f"/CN={cn}"]
    subprocess.run(command + ["-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1", "-days", "30"], check=True, capture_output=True)
    return cert, key


def expiry(pair):
    """When it ends, Unix time, as openssl reads it."""
    said = subprocess.run(["openssl", "x509", "-noout", "-enddate", "-in", pair[0]], check=True, capture_output=True, text=True).stdout
    return ssl.cert_time_to_seconds(said.strip().partition("=")[2])


def scrape(server):
    return Values(plain_ask(server.admin, "GET", "/metrics", host=server.admin).body.decode())


def make_expired(folder):
    """`openssl req` makes none; `openssl ca` does, and wants its paperwork."""
    _, key = make_pair(folder, "old")
    path = lambda name: os.path.join(str(folder), name)
    with open(path("ca.cnf"), "w") as file:
        file.write(f"[ca]\ndefault_ca = d\n[d]\ndir = {folder}\ndatabase = {path('index')}\nnew_certs_dir = {folder}\nserial = {path('serial')}\ndefault_md = sha256\npolicy = p\n[p]\ncommonName = supplied\n")
    open(path("index"), "w").close()
    with open(path("serial"), "w") as file:
        file.write("01\n")
    run = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True)
    run("req", "-new", "-key", key, "-subj", f"/CN={HOST}", "-out", path("old.csr"))
    run("ca", "-batch", "-selfsign", "-config", path("ca.cnf"), "-keyfile", key, "-in", path("old.csr"), "-out", path("expired.crt"),
        "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-notext")
    return path("expired.crt"), key


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return [make_pair(folder, name, cn=name) for name in ("first", "second")]


def settings(cert, key, more=""):
    return f"[server]\ntls_cert = {cert}\ntls_key = {key}\n{more}{SITE}"


@pytest.fixture
def secure(start, pairs):
    server = start(sites=(), config=settings(*pairs[0]))
    assert server.ready_line.startswith("sitemapd: ready public=https://127.0.0.1:"), server.ready_line
    return server


class TlsConnection(Connection):
    def __init__(self, address, cert=None, version=None):
        super().__init__(address)
        context = ssl.create_default_context(cafile=cert) if cert else ssl._create_unverified_context()
        if version:
            context.minimum_version = context.maximum_version = version
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)

    def receive(self):
        return self.socket.recv(262144)  # a session that ends without its end is an error here

    def peer(self):
        return self.socket.getpeercert(binary_form=True)


def ask(server, method, target, headers=(), body=b""):
    with TlsConnection(server.public) as connection:
        connection.send(request_bytes(method, target, headers, body))
        return connection.reply(method)


def fill(server, count):
    assert server.bulk([f"{ORIGIN}/{i:06}.xml" for i in range(count)]).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_every_kind_of_reply(secure, pairs, tmp_path, version):
    count = 20000
    fill(secure, count)
    with TlsConnection(secure.public, pairs[0][0], version) as c:
        def get(method, target, headers=()):
            c.send(request_bytes(method, target, headers))
            return c.reply(method)

        packed = get("GET", INDEX, {"Accept-Encoding": "gzip"})
        plain = get("GET", INDEX)
        assert packed.status == plain.status == 200
        assert gunzip(packed.body) == plain.body and len(locs(plain.body)) == count
        assert len(plain.body) == int(plain["Content-Length"]) > 1000000
        file = get("GET", INDEX + ".gz")
        assert file.body == packed.body and file["Content-Encoding"] is None
        head = get("HEAD", INDEX)
        assert head.same_headers() == plain.same_headers()
        same = get("GET", INDEX, {"If-None-Match": plain["ETag"]})
        assert same.status == 304 and same.body == b""
        assert f"Sitemap: {ORIGIN}{INDEX}".encode() in get("GET", "/robots.txt").body
        assert get("GET", "/none").status == 404
        # Pipelined.
        c.send(request_bytes("GET", "/robots.txt") * 5 + request_bytes("GET", INDEX))
        assert [c.reply().status for _ in range(6)] == [200] * 6


def test_old_versions_are_refused(secure):
    with pytest.raises((ssl.SSLError, OSError, ValueError)):
        context = ssl._create_unverified_context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        host, port = secure.public.split(":")
        with socket.create_connection((host, int(port)), seconds(20)) as plain:
            context.wrap_socket(plain)


def test_plain_http_is_answered_and_logged(secure):
    for method, size in (("GET", 0), ("POST", 3000)):
        with Connection(secure.public) as c:
            c.send(request_bytes(method, "/robots.txt") + b"x" * size)
            answer = c.rest()
            assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n") and answer.endswith(b"begin the URL with https://\n"), answer
            assert b"\r\nConnection: close\r\n" in answer and b"\r\nDate: " in answer
    eventually(lambda: secure.log().count("plain-http") == 1, "one line for both")
    assert ask(secure, "GET", "/robots.txt").status == 200


def test_files_and_ranges(start, pairs, tmp_path):
    (tmp_path / "s").mkdir()
    text = "".join(f"{ORIGIN}/s/{i}\n" for i in range(20000)).encode()
    (tmp_path / "s" / "list.txt").write_bytes(text)
    source = f'[source "s"]\ndirectory = {tmp_path}/s\nurl = {ORIGIN}/s/\nserve = yes\n'
    server = start(sites=(), config=settings(*pairs[0]) + source)
    assert ask(server, "GET", "/s/list.txt").body == text
    part = ask(server, "GET", "/s/list.txt", {"Range": "bytes=1000-400999"})
    assert part.status == 206 and part.body == text[1000:401000]
    assert gunzip(ask(server, "GET", "/s/list.txt", {"Accept-Encoding": "gzip"}).body) == text


@pytest.mark.parametrize("size", [100, 60000, 3000000])
def test_bodies_are_refused_within_the_session(secure, size):
    """The reply goes past the HTTP library, while the body still comes in."""
    with TlsConnection(secure.public) as c:
        head = request_bytes("POST", INDEX, {"Content-Length": str(size)}, length=False)
        c.send(head)
        try:
            for _ in range(0, size, 10000):
                c.send(b"x" * min(10000, size))
        except OSError:
            pass
        reply = c.reply()
        assert reply.status == 405 and reply["Connection"] == "close" and reply.body
        assert c.rest() == b"", "a proper end of the session"
    for headers, status in (({"Content-Length": "99999", "Expect": "100-continue"}, 405), ({"Transfer-Encoding": "chunked"}, 405)):
        with TlsConnection(secure.public) as c:
            c.send(request_bytes("PUT", INDEX, headers, length=False))
            assert c.reply().status == status
    for target, headers, status in (("/" + "a" * 16000, {}, 414), ("/", {"Content-Length": "x"}, 400)):
        with TlsConnection(secure.public) as c:
            c.send(request_bytes("GET", target, headers))
            assert c.reply().status == status
            assert c.rest() == b"", "nothing of the library's own"


def test_curl(secure, pairs):
    fill(secure, 3000)
    port = secure.public.rsplit(":", 1)[1]
    url = f"https://{HOST}:{port}"
    base = ["curl", "-sS", "--cacert", pairs[0][0], "--resolve", f"{HOST}:{port}:127.0.0.1", "--max-time", str(int(seconds(20)))]
    page = subprocess.run(base + ["--compressed", url + INDEX], capture_output=True, check=True)
    assert len(locs(page.stdout)) == 3000
    codes = subprocess.run(base + ["-o", "/dev/null", "-w", "%{http_code} ", url + INDEX, "-o", "/dev/null", url + "/none", "-o", "/dev/null", url + "/robots.txt"], capture_output=True, check=True)
    assert codes.stdout == b"200 404 200 "
    refused = subprocess.run(base + ["-w", "%{http_code}", "-o", "/dev/null", "--data-binary", "@" + pairs[0][0], url + INDEX], capture_output=True)
    assert refused.stdout == b"405", refused


def test_slow_handshakes_are_cut(start, pairs):
    server = start(sites=(), config=settings(*pairs[0], more="header_timeout = 500ms\nidle_timeout = 500ms\n"))
    hello = ssl.MemoryBIO()
    client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), hello)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = hello.read()
    silent, half, drip = (Connection(server.public) for _ in range(3))
    half.send(hello[:60])
    cut, dripped = threading.Event(), []

    def drip_on():
        try:
            for byte in hello[:-1]:
                drip.send(bytes([byte]))
                dripped.append(byte)
                if cut.wait(0.2):
                    return
        except OSError:
            return

    thread = threading.Thread(target=drip_on)
    thread.start()
    for c in (silent, half, drip):
        c.rest()
    assert len(dripped) < len(hello) - 1, "cut by the header's deadline: it would have gone on"
    cut.set()
    thread.join()
    for c in (silent, half, drip):
        c.close()
    assert ask(server, "GET", "/robots.txt").status == 200


def reload(server):
    before = len(server.log())
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "reloaded: " in server.log()[before:] or "configuration was rejected" in server.log()[before:], "reloaded")
    return server.log()[before:]


def test_the_certificate_is_reloaded(start, pairs, tmp_path):
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"

    def put(pair, mixed=None):
        cert.write_bytes(open(pair[0], "rb").read())
        key.write_bytes(open((mixed or pair)[1], "rb").read())
        key.chmod(0o600)

    put(pairs[0])
    server = start(sites=(), config=settings(cert, key))
    with TlsConnection(server.public) as kept:
        first = kept.peer()
        for pair in (pairs[1], pairs[0], pairs[1]):
            put(pair)
            reload(server)
            with TlsConnection(server.public, pair[0]) as fresh:
                now = fresh.peer()
                fresh.send(request_bytes("GET", "/robots.txt"))
                assert fresh.reply().status == 200
            assert (now == first) == (pair is pairs[0])
            kept.send(request_bytes("GET", "/robots.txt"))
            assert kept.reply().status == 200, "who is connected stays"
        # What does not fit is refused, and the old pair stays.
        metrics = scrape(server)
        assert metrics.get("sitemapd_config_reloads_total", result="applied") == 3
        assert metrics.get("sitemapd_tls_certificate_expires_seconds") == expiry(pairs[1])
        put(pairs[1], mixed=pairs[0])
        assert "is not the key of the certificate" in reload(server)
        cert.unlink()
        assert "No such file" in reload(server)
        with TlsConnection(server.public) as fresh:
            assert fresh.peer() == now
    server.wait_for_log("reload-refused", 2)
    metrics = scrape(server)
    assert metrics.get("sitemapd_config_reloads_total", result="refused") == 2 and metrics.get("sitemapd_config_refused") == 1
    assert metrics.get("sitemapd_tls_certificate_expires_seconds") == expiry(pairs[1]), "of the one in use"


def test_the_certificate_is_reloaded_under_load(start, pairs, tmp_path):
    """Each handshake meets one pair or the other, whole, and no request is lost."""
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"

    def put(pair):
        for to, of in ((cert, pair[0]), (key, pair[1])):
            to.write_bytes(open(of, "rb").read())
            to.chmod(0o600)

    put(pairs[0])
    server = start(sites=(), config=settings(cert, key))
    trusted = tmp_path / "both.pem"
    trusted.write_bytes(open(pairs[0][0], "rb").read() + open(pairs[1][0], "rb").read())
    met, failures, over = set(), [], threading.Event()

    def client():
        while not over.is_set():
            try:
                with TlsConnection(server.public, str(trusted)) as c:
                    met.add(c.peer())
                    for _ in range(3):
                        c.send(request_bytes("GET", "/robots.txt"))
                        assert c.reply().status == 200
            except Exception as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(10):
        put(pairs[(i + 1) % 2])
        assert "reloaded: " in reload(server)
        met.clear()
        with open(pairs[(i + 1) % 2][0], encoding="ascii") as file:
            now = ssl.PEM_cert_to_DER_cert(file.read())
        eventually(lambda: now in met or failures, "a client met the pair of now")
    over.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]


def test_mistakes(pairs, tmp_path):
    """Each is reported by check-config and by a start."""
    for name, cert, key, word in (
        ("mixed", pairs[0][0], pairs[1][1], "is not the key of the certificate"),
        ("none", str(tmp_path / "none.crt"), pairs[0][1], "none.crt: cannot be read: No such file"),
        ("swapped", pairs[0][1], pairs[0][0], "is not a certificate chain in PEM"),
        ("nokey", pairs[0][0], pairs[0][0], "is not a private key in PEM"),
        ("folder", str(tmp_path), pairs[0][1], "cannot be read"),
    ):
        config = tmp_path / f"{name}.conf"
        config.write_text(settings(cert, key))
        checked = sitemapd("check-config", str(config))
        assert checked.code == 1 and word in checked.err, (name, checked)
        started = sitemapd("serve", "--config", str(config), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", database=tmp_path / "c.db")
        assert started.code == 1 and started.err.startswith("sitemapd: ") and word in started.err, (name, started)
    half = tmp_path / "half.conf"
    half.write_text(f"[server]\ntls_cert = {pairs[0][0]}\n{SITE}")
    checked = sitemapd("check-config", str(half))
    assert checked.code == 1 and f"{half}:2: tls_cert and tls_key must both be set; tls_key is missing" in checked.err, checked


def test_remarks(start, tmp_path):
    """Warnings, not mistakes: a key that other users can read, and an expired certificate."""
    cert, key = make_expired(tmp_path)
    os.chmod(key, 0o644)
    config = tmp_path / "old.conf"
    config.write_text(settings(cert, key))
    checked = sitemapd("check-config", str(config))
    assert checked.code == 0 and "every user of this machine can read" in checked.err and "the certificate expired at 2020-02-01" in checked.err, checked
    server = start(sites=(), config=settings(cert, key))
    eventually(lambda: "warning tls-warning: " in server.log() and "the certificate expired at" in server.log(), "the warning")
    assert "expires at" not in server.log()


def test_a_pipe_in_the_place_of_a_key_is_not_waited_for(start, pairs, tmp_path):
    server = start(sites=(), config=settings(*pairs[0]))
    server.wait_for_log("listener expires at")
    os.mkfifo(tmp_path / "pipe.key")
    (tmp_path / "sitemapd.conf").write_text(settings(pairs[0][0], tmp_path / "pipe.key"))
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("reload-refused", 2)
    assert f"{tmp_path}/pipe.key: cannot be read: it is a pipe" in server.log()
    server.stop()


def test_a_change_of_scheme_needs_a_restart(start, pairs, tmp_path):
    server = start(sites=(), config=SITE)
    (tmp_path / "sitemapd.conf").write_text(settings(*pairs[0]))
    assert "needs a restart: [server] tls_cert" in reload(server)
    assert server.get("/robots.txt").status == 200


def test_a_stop_cuts_no_reply(secure):
    fill(secure, 20000)
    with TlsConnection(secure.public) as c:
        c.send(request_bytes("GET", INDEX))
        reply_head = c.take_to(b"\r\n\r\n")
        secure.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        body = c.take(int(Reply(reply_head, b"")["Content-Length"]))
        assert len(locs(body)) == 20000
    assert secure.process.wait(seconds(60)) == 0


def test_the_admin_listener_has_a_pair_of_its_own(start, pairs, tmp_path):
    """Tokens travel to it. Another pair than the public one's; a reload replaces it; the health check asks by https."""
    def text(public, admin):
        return f"[server]\ntls_cert = {public[0]}\ntls_key = {public[1]}\n[admin]\ntls_cert = {admin[0]}\ntls_key = {admin[1]}\n{SITE}"

    config = tmp_path / "sitemapd.conf"
    server = start(sites=(), config=text(pairs[0], pairs[1]))
    assert " admin=https://127.0.0.1:" in server.ready_line

    def certificate(address):
        with TlsConnection(address) as connection:
            return ssl.DER_cert_to_PEM_cert(connection.peer())

    pem = lambda pair: ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(open(pair[0], encoding="ascii").read()))
    assert certificate(server.public) == pem(pairs[0]) and certificate(server.admin) == pem(pairs[1])
    with TlsConnection(server.admin, pairs[1][0]) as connection:
        connection.send(request_bytes("GET", "/v1/token", [("Authorization", f"Bearer {server.token}")], host=server.admin))
        reply = connection.reply("GET")
        assert reply.status == 200 and reply.json()["role"] == "admin"
        connection.send(request_bytes("GET", "/metrics", [], host=server.admin))
        metrics = Values(connection.reply("GET").body.decode())
    assert metrics.get("sitemapd_admin_tls_certificate_expires_seconds") == expiry(pairs[1])
    asked = sitemapd("healthcheck", env={"SITEMAPD_ADMIN_LISTEN": server.admin, "SITEMAPD_ADMIN_TLS_CERT": pairs[1][0], "SITEMAPD_ADMIN_TLS_KEY": pairs[1][1]})
    assert asked.code == 0 and "https://" in asked.out, asked
    named = ("--server", f"https://{server.admin}")
    for command, trusts, env in (
        (("status", *named), False, {}), (("status", *named), True, {"SITEMAPD_CA_FILE": pairs[1][0]}),
        (("status", *named, "--ca-file", pairs[1][0]), True, {}), (("status", *named, "--ca-file", pairs[0][0]), False, {}),
        (("healthcheck", named[1]), False, {}), (("healthcheck", named[1], "--ca-file", pairs[1][0]), True, {}),
    ):
        outcome = sitemapd(*command, env={"SITEMAPD_TOKEN": server.token, **env})
        assert (outcome.code == 0) == trusts and (trusts or "ertificate" in outcome.err), outcome
    for url, help in ((named[1], "; --ca-file FILE trusts a private CA or a self-signed certificate"), (f"http://{server.admin}", "this port speaks https: begin the URL with https:// (plain-http)")):
        outcome = sitemapd("status", "--server", url, env={"SITEMAPD_TOKEN": server.token})
        assert outcome.code == 1 and help in outcome.err, outcome
    config.write_text(text(pairs[0], pairs[0]), encoding="utf-8")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: certificate(server.admin) == pem(pairs[0]), "handshakes use the new pair")
    assert certificate(server.public) == pem(pairs[0])
