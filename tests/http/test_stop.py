# SPDX-License-Identifier: LicenseRef-Undeclared
"""Stops and kills: acknowledged writes are there afterwards. And starts that fail."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

import pytest

from engines import BING_KEY
from harness import BIN, ORIGIN, TOKEN, Connection, Server, environment_of_another, eventually, locs, request_bytes, seconds, sitemapd
from origin import Origin

XML = "/sitemap_index.xml"


def register_until_gone(server, mark, acknowledged, odd, go_on):
    """One client that registers as fast as it can on one connection, and notes what was promised."""
    number = 0
    try:
        with Connection(server.admin) as connection:
            while go_on.is_set():
                loc = f"{ORIGIN}/{mark}/{number}.xml"
                body = json.dumps({"loc": loc}).encode()
                headers = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")]
                connection.send(request_bytes("POST", "/v1/sitemaps", headers, body, host=server.admin))
                reply = connection.reply()
                if reply.status in (200, 201):
                    acknowledged.append(loc)
                elif reply.status == 503:
                    return  # stopping: not applied
                else:
                    odd.append(reply)
                    return
                number += 1
    except (OSError, AssertionError):
        return  # the connection was cut: no promise


def load(server, clients, mark):
    acknowledged, odd, go_on = [], [], threading.Event()
    go_on.set()
    threads = [
        threading.Thread(target=register_until_gone, args=(server, f"{mark}-{i}", acknowledged, odd, go_on)) for i in range(clients)
    ]
    for thread in threads:
        thread.start()

    def finish():
        go_on.clear()
        for thread in threads:
            thread.join(seconds(30))
            assert not thread.is_alive()
        assert not odd, odd[:3]
        return acknowledged

    return acknowledged, finish


def test_sigterm_under_load(server):
    kept = []
    for round_number, sig in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGTERM)):
        acknowledged, finish = load(server, 8, f"r{round_number}")
        eventually(lambda: len(acknowledged) > 20, "the load runs")
        # A reader that stays, and one that holds a long poll, do not keep the server alive.
        with Connection(server.public) as idle, Connection(server.admin) as held:
            idle.send(request_bytes("GET", XML))
            idle.reply()
            held.send(request_bytes("GET", "/v1/changes?since=0&wait=60", [("Authorization", f"Bearer {TOKEN}")], host=server.admin))
            server.stop(sig)
        kept += finish()
        assert not os.path.exists(server.database + "-wal") or os.path.getsize(server.database + "-wal") == 0, "checkpointed"
        server.start()
        there = set(locs(server.get(XML).body))
        assert set(kept) <= there, "an acknowledged write is lost"
    assert server.cli("check").code == 0


def test_kill_9_loses_nothing_acknowledged(server):
    kept = []
    for round_number in range(10):
        acknowledged, finish = load(server, 8, f"k{round_number}")
        eventually(lambda: len(acknowledged) > 10, "the load runs")
        time.sleep(0.03 * round_number)
        server.kill()
        kept += finish()
        server.start()
        there = locs(server.get(XML).body)
        assert set(kept) <= set(there), "an acknowledged write is lost"
        assert len(there) == len(set(there))
    assert server.cli("check").code == 0


def test_a_stop_in_the_middle_of_a_body(start):
    """The body does not get its usual timeout."""
    server = start(env={"SITEMAPD_SERVER_BODY_TIMEOUT": "24h"})
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/x-ndjson"), ("Content-Length", "100000")]
    with Connection(server.admin) as connection:
        connection.send(request_bytes("POST", "/v1/sitemaps", headers, b'{"loc": "https://www.example.com/a.xml"}\n', host=server.admin))
        time.sleep(0.2)
        server.stop()
    server.start()
    assert server.get(XML).status == 404, "a half-sent bulk is nothing"


def freeze(server):
    """It stands still: what is done meanwhile has come all at once when it goes on."""
    server.process.send_signal(signal.SIGSTOP)
    eventually(lambda: open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T", "stopped")


def test_requests_that_have_come_are_answered(start):
    """In the sockets of kept connections, of several requests each, and of new ones."""
    server = start(env={"SITEMAPD_SERVER_HEADER_TIMEOUT": "1h"})  # all are open before the last of them asks
    locs_before = [f"{ORIGIN}/{i}.xml" for i in range(3000)]
    assert server.bulk(locs_before).status == 200
    assert server.get(XML).status == 200, "in memory from here on: what must wait is answered 503"
    kept = [Connection(server.public) for _ in range(20)] + [Connection(server.admin) for _ in range(10)]
    for connection in kept:
        connection.send(request_bytes("GET", "/robots.txt"))
        assert connection.reply().status in (200, 404, 421)
    time.sleep(0.1)
    freeze(server)
    for connection in kept[:20]:
        connection.send(request_bytes("GET", XML) * 3)
    writes = [json.dumps({"loc": f"{ORIGIN}/late/{i}.xml"}).encode() for i in range(10)]
    for connection, body in zip(kept[20:], writes):
        headers = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")]
        connection.send(request_bytes("POST", "/v1/sitemaps", headers, body, host=server.admin))
    fresh = [Connection(server.public) for _ in range(20)]
    for connection in fresh:
        connection.send(request_bytes("GET", XML))
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGCONT)
    acknowledged = []
    for connection in kept[:20]:
        for _ in range(3):
            assert len(locs(connection.reply().body)) >= 3000
        assert connection.rest() == b""
    for i, connection in enumerate(kept[20:]):
        reply = connection.reply()
        assert reply.status in (201, 503), reply
        if reply.status == 201:
            acknowledged.append(f"{ORIGIN}/late/{i}.xml")
    for connection in fresh:
        assert len(locs(connection.reply().body)) >= 3000
    assert server.process.wait(seconds(60)) == 0
    server.kill()
    for connection in kept + fresh:
        connection.close()
    server.start()
    assert set(acknowledged) <= set(locs(server.get(XML).body))


def test_idle_connections_hold_no_stop_up(start):
    server = start(env={f"SITEMAPD_SERVER_{name}_TIMEOUT": "24h" for name in ("HEADER", "IDLE")})
    idle = [Connection(server.public) for _ in range(30)] + [Connection(server.admin)]
    for connection in idle[:-5]:
        connection.send(request_bytes("GET", "/robots.txt"))
        connection.reply()
    time.sleep(0.1)
    server.stop()
    for connection in idle:
        assert connection.rest() == b""
        connection.close()


def test_a_stop_waits_for_no_other_server(start, tmp_path):
    """Each takes the request and answers nothing: an upstream, a sitemap that is polled, IndexNow, the receivers of notifications and of
    traces, a search engine. (What is waited for of other nodes and of PostgreSQL: test_shared_peers.py, test_shared_postgresql.py.)"""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers = type("All", (), {"get": lambda *_: origin.silent()})()
        (tmp_path / "key").write_text(BING_KEY)
        (tmp_path / "key").chmod(0o600)
        server = start(sites=(), config=(
            f"[fetch]\nallow_address = {origin.address}\n[notify]\nurl = {base}/notify\n[trace]\nendpoint = {base}\n"
            f'[engine "bing"]\napi_key_file = {tmp_path}/key\nendpoint = {base}/\n'
            f'[site "a"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n'
            f'[site "b"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\nindexnow_key = 0123456789abcdef\nindexnow_endpoint = {base}/indexnow\n'
            f'[source "shop"]\nupstream = {base}/list.xml\n[source "gone"]\ndirectory = {tmp_path}/none\nurl = {ORIGIN}/\n'
        ))
        assert server.register(base + "/polled.xml").status == 201
        assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/urls.xml"}).status == 201
        asked = lambda: {path.split("?")[0] for path in origin.paths()}
        numbers = iter(range(10**6))

        def all_wait():
            assert server.api("POST", f"/v1/urls?urlset={ORIGIN}/urls.xml", {"loc": f"{ORIGIN}/{next(numbers)}"}).status == 201
            return {"/list.xml", "/polled.xml", "/indexnow", "/notify", "/v1/traces", "/webmaster/api.svc/json/GetFeeds"} <= asked()

        eventually(all_wait, "all are asked", longest_pause=1)
        server.stop()


@pytest.mark.parametrize("path", ["/v1/backup", "/v1/sitemaps"])
def test_a_stop_waits_for_no_reader(start, path):
    """One that reads the beginning of a backup or an export, and then nothing. (Of a page: test_hostile.py.)"""
    server = start(env={"SITEMAPD_SERVER_REPLY_TIMEOUT": "24h"})
    assert server.bulk([f"{ORIGIN}/{os.urandom(450).hex()}.xml" for _ in range(12000)]).status == 200
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Accept", "application/x-ndjson, */*")]
    with Connection(server.admin) as reader:
        reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.send(request_bytes("GET", path, headers, host=server.admin))
        assert reader.socket.recv(15).startswith(b"HTTP/1.1 200 OK")
        server.stop()


def test_a_stop_while_a_list_is_applied(start):
    """All of it is there afterwards, or nothing, as its answer says."""
    server = start()
    rows = [f'{{"loc": "{ORIGIN}/{n}.xml"}}\n'.encode() for n in range(200_000)]
    said = []
    sender = threading.Thread(target=lambda: said.append(server.api("PUT", f"/v1/sitemaps?index={XML}", body=b"".join(rows), content_type="application/x-ndjson")))
    sender.start()
    eventually(lambda: os.path.getsize(server.database + "-wal") > 1 << 20, "it is being written", longest_pause=0.01)
    server.stop()
    sender.join()
    server.start()
    there = server.api("GET", "/v1/indexes").json()["indexes"][0]["entries"]
    assert (said[0].status, there) in ((200, len(rows)), (503, 0)), said[0]


# ---- what cannot be started ---------------------------------------------------------------------


def fails(folder, *args, words=(), database=None, env=None, codes=(1,)):
    server = Server(folder, *args, database=database, env=env).start(expect_ready=False)
    try:
        code = server.process.wait(seconds(60))
        out = server.process.stdout.read()
    finally:
        server.kill()
    log = server.log()
    assert code in codes and out == b"", (code, out, log)
    result = [line for line in log.splitlines() if line.startswith("sitemapd: ")]
    assert result, log
    last = result[-1]
    for word in words:
        assert word in last, log
    return last


def test_a_taken_port(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        fails(tmp_path, "--listen", address, words=[address, "another process listens there"])
        fails(tmp_path, "--admin-listen", address, words=[address, "another process listens there"])


def test_an_address_of_another_machine(tmp_path):
    fails(tmp_path, "--listen", "192.0.2.1:0", words=["192.0.2.1:0", "no interface of this machine"])


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "127.0.0.1", "192.0.2.1:0", ":"])
def test_an_invalid_address(tmp_path, address):
    fails(tmp_path, "--listen", address, codes=(1, 2))


def test_a_file_that_is_not_ours(tmp_path):
    path = tmp_path / "c.db"
    path.write_bytes(b"this is not a database at all, but long enough to be looked at " * 100)
    before = path.read_bytes()
    last = fails(tmp_path, words=[str(path), "restore a backup", "name another path"], database=path)
    assert last.count(str(path)) == 1, "the file is named once"
    for command in (["list"], ["site", "add", ORIGIN], ["check"]):
        done = sitemapd(*command, database=path)
        assert done.code == 1 and str(path) in done.err and done.err.count("\n") == 1, done
    assert path.read_bytes() == before

    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE precious (x)")
        db.execute("INSERT INTO precious VALUES (1)")
    fails(tmp_path, words=[str(other)], database=other)
    with sqlite3.connect(other) as db:
        assert [r[0] for r in db.execute("SELECT name FROM sqlite_master")] == ["precious"]


def test_a_newer_schema(tmp_path):
    path = tmp_path / "c.db"
    assert sitemapd("site", "add", ORIGIN, database=path).code == 0
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    fails(tmp_path, words=[str(path), "newer", "run that version"], database=path)
    done = sitemapd("list", database=path)
    assert done.code == 1 and "newer" in done.err


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    fails(tmp_path, words=["file"], database=tmp_path / "file" / "c.db")
    fails(tmp_path, words=[str(tmp_path)], database=tmp_path)


@pytest.fixture
def open_folder():
    """A folder that every user may pass, which pytest's own are not."""
    path = tempfile.mkdtemp(prefix="sitemapd-test-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file that is another's")
def test_a_database_that_may_not_be_written(open_folder):
    """As another user than root, whom no mode stops."""
    data = os.path.join(open_folder, "data")
    os.mkdir(data)
    path = os.path.join(data, "c.db")
    assert sitemapd("site", "add", ORIGIN, database=path).code == 0
    os.chmod(path, 0o444)
    os.chmod(data, 0o555)
    program = shutil.copy(BIN, open_folder)
    os.chmod(program, 0o755)
    done = subprocess.run(
        [program, "serve", "--database", path, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"],
        capture_output=True, timeout=seconds(60), user=65534, group=65534, extra_groups=[], cwd="/",
        env=environment_of_another({"SITEMAPD_TOKEN": TOKEN}),
    )
    assert done.returncode == 1 and done.stdout == b"", done
    assert path.encode() in done.stderr and b"sitemapd: " in done.stderr, done
    assert b"this user needs write permission" in done.stderr, done
