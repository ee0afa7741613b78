# SPDX-License-Identifier: LicenseRef-Undeclared
"""The logs as an operator meets them: the access log in both formats, whole when the server has stopped and after a
logrotate; request ids from the request to every line that it causes; what the journal gets; a full disk."""
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

import pytest

from harness import BIN, HOST, ORIGIN, Connection, ask, eventually, problem, request_bytes, seconds

XML = "/sitemap_index.xml"
COMBINED = re.compile(
    r'^(?P<remote>[0-9a-f.:]+) - (?P<user>\S+) \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000)\] '
    r'"(?P<method>[A-Z]+) (?P<target>\S*) (?P<protocol>HTTP/1\.[01])" (?P<status>\d{3}) (?P<bytes>\d+) '
    r'"(?P<referer>[^"]*)" "(?P<agent>[^"]*)"$')
REQUEST_ID = re.compile(r"[0-9a-f]{16}")
NASTY = 'x"y\\z\t\u00e9'


def access(path, form="combined"):
    return {"SITEMAPD_LOG_ACCESS_LOG": str(path), "SITEMAPD_LOG_ACCESS_FORMAT": form}


def lines(path):
    text = path.read_bytes().decode("ascii")
    assert text == "" or text.endswith("\n")
    return text.splitlines()


def objects(path):
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def log_has(server, text):
    return eventually(lambda: [line for line in server.log().splitlines() if text in line], text)


# ---- the access log -----------------------------------------------------------------------------


def test_combined(start, tmp_path):
    path = tmp_path / "access.log"
    server = start(env=access(path))
    page = server.get(XML, {"Referer": "https://example.com/?a=b", "User-Agent": NASTY})
    server.get("/none?x=%20y", method="HEAD")
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert problem(server.api("GET", "/v1/sites", token="wrong"), 401)
    server.stop()
    found = [COMBINED.match(line) for line in lines(path)]
    assert all(found), lines(path)
    by = {(line["method"], line["status"]): line for line in found}
    first, head, post, refused = by["GET", "404"], by["HEAD", "404"], by["POST", "201"], by["GET", "401"]
    assert first["method"] == "GET" and first["target"] == XML and first["status"] == str(page.status)
    assert first["bytes"] == str(len(page.body)) and first["referer"] == "https://example.com/?a=b"
    assert first["agent"] == r"x\x22y\x5Cz\x09\xC3\xA9" and first["remote"] == "127.0.0.1" and first["user"] == "-"
    assert head["method"] == "HEAD" and head["target"] == "/none?x=%20y" and head["bytes"] == "0"
    assert post["user"] == "environment" and refused["user"] == "-" and refused["status"] == "401"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "a log shipper in the group may read it"
    assert server.token not in path.read_text()


def test_json(start, tmp_path):
    path = tmp_path / "access.log"
    server = start(env=access(path, "json"))
    server.get(XML + "?q=1", {"X-Request-Id": "from-the-proxy", "User-Agent": NASTY})
    server.get(XML, {"X-Request-Id": 'no "id"'})
    made = server.register(ORIGIN + "/a.xml")
    ask(server.public, "PROPFIND", "/none", host=HOST)
    for target, status in (("/" + "x" * 9000, 414), ("no-path", 400), ("http://other.example/", 400)):
        assert server.get(target, {"X-Request-Id": f"refused-{status}-{target[:3].strip('/')}"}).status == status
    server.stop()
    # Threads do not wait for each other: by what they ask for, not by their order.
    by = {(o["method"], o["request_id"]): o for o in objects(path)}
    first, second = by["GET", "from-the-proxy"], by["GET", None]
    third, fourth = by["POST", made["X-Request-Id"]], by["PROPFIND", None]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("ts"))
    assert 0 < first.pop("micros") < 60e6
    assert first.pop("bytes") > 0
    assert first == {
        "listener": "public", "remote": "127.0.0.1", "user": None, "host": HOST, "method": "GET", "target": XML + "?q=1",
        "protocol": "HTTP/1.1", "route": "public", "status": 404, "request_id": "from-the-proxy", "referer": None,
        "user_agent": NASTY,
    }
    assert second["target"] == XML
    assert (third["listener"], third["route"], third["user"]) == ("admin", "sitemaps", "environment")
    assert third["status"] == 201 and third["bytes"] == len(made.body)
    assert by["GET", "refused-414-xx"]["target"] == "-" and by["GET", "refused-400-no-"]["target"] == "no-path"
    assert by["GET", "refused-400-htt"]["status"] == 400
    assert (fourth["method"], fourth["status"], fourth["target"], fourth["route"]) == ("PROPFIND", 501, "/none", "none")


@pytest.mark.parametrize("form", ["combined", "json"])
def test_every_line_is_there_after_a_stop(start, tmp_path, form):
    """Also those of requests that came just before it, on many connections at once."""
    path = tmp_path / "access.log"
    server = start(env=access(path, form))
    connections = [Connection(server.public) for _ in range(20)]
    for number in range(20):
        for index, connection in enumerate(connections):
            connection.send(request_bytes("GET", f"/none?c={index}&n={number}"))
        for connection in connections:
            assert connection.reply().status == 404
    server.stop()
    for connection in connections:
        connection.close()
    targets = [COMBINED.match(line)["target"] for line in lines(path)] if form == "combined" else [
        o["target"] for o in objects(path)]
    assert sorted(targets) == sorted(f"/none?c={c}&n={n}" for c in range(20) for n in range(20))
    for index in range(20):  # each connection's in its order
        own = [t for t in targets if f"c={index}&" in t]
        assert own == [f"/none?c={index}&n={n}" for n in range(20)]


@pytest.mark.parametrize("trusted, result, remote", [
    ("127.0.0.1", ["192.0.2.7"], "192.0.2.7"),
    ("127.0.0.0/8", ["198.51.100.1, 2001:db8::7", "127.0.0.9"], "2001:db8::7"),
    ("127.0.0.1", ["not an address"], "127.0.0.1"),
    ("127.0.0.1", [], "127.0.0.1"),
    ("10.0.0.0/8", ["192.0.2.7"], "127.0.0.1"),
])
def test_the_client_behind_a_proxy(start, tmp_path, trusted, result, remote):
    path = tmp_path / "access.log"
    server = start(config=f"[server]\ntrusted_proxies = {trusted}\n", env=access(path))
    server.get("/one", [("X-Forwarded-For", value) for value in result])
    server.get("/two")
    server.stop()
    assert {(line["target"], line["remote"]) for line in map(COMBINED.match, lines(path))} == {("/one", remote), ("/two", "127.0.0.1")}


def test_a_line_comes_by_itself(start, tmp_path):
    path = tmp_path / "access.log"
    server = start(env=access(path))
    server.get("/alone")
    assert eventually(lambda: lines(path), "written without a stop")


def test_logrotate(start, tmp_path):
    """While requests go on: the file is moved away, SIGUSR1; what came before is in the old one, what comes after in the
    new one, nothing is lost or twice."""
    path, old = tmp_path / "access.log", tmp_path / "access.log.1"
    server = start(env=access(path))
    with Connection(server.public) as connection:
        for number in range(300):
            connection.send(request_bytes("GET", f"/none?n={number}"))
            assert connection.reply().status == 404
            if number == 100:
                path.rename(old)
            if number == 200:
                server.process.send_signal(signal.SIGUSR1)
                log_has(server, "access-log-reopened")
    server.stop()
    numbers = [[int(COMBINED.match(line)["target"].partition("=")[2]) for line in lines(file)] for file in (old, path)]
    assert numbers[0] == list(range(len(numbers[0]))) and 200 <= len(numbers[0]) <= 201
    assert numbers[1] == list(range(len(numbers[0]), 300))


def test_a_reopen_that_fails(start, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    server = start(env=access(folder / "access.log"))
    folder.rename(tmp_path / "moved")
    server.process.send_signal(signal.SIGUSR1)
    result = log_has(server, "access-log-not-reopened")[0]
    assert str(folder) in result and "No such file" in result and "SIGUSR1" in result
    server.get("/kept")
    server.stop()
    assert "/kept" in (tmp_path / "moved" / "access.log").read_text()


def test_sigusr1_without_an_access_log(start):
    server = start()
    server.process.send_signal(signal.SIGUSR1)
    assert server.get(XML).status == 404
    server.stop()


def test_a_full_disk_costs_lines_and_no_reply(start, tmp_path):
    os.symlink("/dev/full", tmp_path / "access.log")
    server = start(env=access(tmp_path / "access.log"))
    with Connection(server.public) as connection:
        while server.metrics()["sitemapd_access_log_dropped_total"] == 0:
            for _ in range(500):
                connection.send(request_bytes("GET", "/none", {"User-Agent": "x" * 450, "Referer": "y" * 450}))
                assert connection.reply().status == 404
    assert "No space left" in log_has(server, "access-log-failed")[0]
    log_has(server, "access-log-dropped")
    server.stop()
    assert server.log().count("access-log-dropped") == 1 and server.log().count("access-log-failed") == 1


def test_on_stderr_lines_stay_whole(start):
    """Events and requests share a pipe; no line is cut by another."""
    server = start(env=access("-", "json") | {"SITEMAPD_LOG_FORMAT": "json"})
    for number in range(50):
        assert server.register(f"{ORIGIN}/{number}.xml").status == 201
        server.get(XML)
    server.stop()
    found = [json.loads(line) for line in server.log().splitlines()]
    assert sum(o.get("event") == "sitemap-put" for o in found) == 50
    assert sum("target" in o for o in found) == 100


def test_where_it_cannot_be_opened(start, tmp_path):
    server = start(ready=False, env=access(tmp_path / "none" / "access.log"))
    assert server.process.wait(seconds(60)) == 1
    server.kill()
    result = server.log().splitlines()[-1]
    assert result.startswith("sitemapd: ") and str(tmp_path / "none") in result and "No such file" in result
    assert "access_log" in result


# ---- the log ------------------------------------------------------------------------------------


def test_request_ids(start):
    server = start()
    made = server.register(ORIGIN + "/a.xml")["X-Request-Id"]
    assert REQUEST_ID.fullmatch(made)
    assert f"{ORIGIN}/a.xml" in log_has(server, f"(request {made})")[0]
    body = json.dumps({"loc": ORIGIN + "/b.xml"}).encode()
    own = server.api("POST", "/v1/sitemaps", body=body, content_type="application/json", headers={"X-Request-Id": "ci-42:7/x"})
    assert own["X-Request-Id"] == "ci-42:7/x"
    assert f"{ORIGIN}/b.xml" in log_has(server, "(request ci-42:7/x)")[0]
    wrong = server.api("GET", "/v1/sites", token="wrong")
    assert "auth-failed" in log_has(server, f"(request {wrong['X-Request-Id']})")[0]
    for bad in ("", "a b", 'a"b', "a" * 129, "\u00e9"):
        reply = server.api("GET", "/v1/sites", headers={"X-Request-Id": bad})
        assert REQUEST_ID.fullmatch(reply["X-Request-Id"]), bad
    seen = {server.api("GET", "/v1/sites")["X-Request-Id"] for _ in range(20)}
    assert len(seen) == 20
    assert "X-Request-Id" not in dict(server.get(XML, {"X-Request-Id": "abc"}).headers), "pages are the same for all"


def test_early_refusals_have_an_id(start):
    """Also those that do not go through the library."""
    server = start(config="[limits]\nmax_body = 1K\n")
    head = [("Authorization", f"Bearer {server.token}"), ("Content-Type", "application/json"), ("X-Request-Id", "early-1")]
    reply = ask(server.admin, "POST", "/v1/sites", head, b"x" * 5000, host=server.admin)
    assert reply.status == 413 and reply["X-Request-Id"] == "early-1"


def test_a_request_that_the_server_failed_is_reported(start, tmp_path):
    server = start().restart(write_timeout="100ms")
    holder = subprocess.Popen(
        ["/usr/bin/python3", "-c", "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
         "c.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()", server.database],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        ids = [server.register(ORIGIN + "/a.xml")["X-Request-Id"] for _ in range(3)]
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
    for one in ids:
        result = log_has(server, f"(request {one})")[0]
        assert "request-failed: POST /v1/sitemaps was answered 503 busy: " in result and "another process" in result


def test_levels_and_json(start):
    server = start(env={"SITEMAPD_LOG_LEVEL": "warning", "SITEMAPD_LOG_FORMAT": "json"})
    server.register(ORIGIN + "/a.xml")
    one = server.api("GET", "/v1/sites", token="wrong")["X-Request-Id"]
    server.stop()
    found = [json.loads(text) for text in server.log().splitlines()]
    assert all(line["level"] in ("error", "warning") for line in found)
    (line,) = [line for line in found if line["event"] != "runs-as-root"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert "127.0.0.1" in line.pop("message")
    assert line == {"level": "warning", "event": "auth-failed", "request_id": one}


def test_the_journal(tmp_path):
    """stderr is a socket whose device and inode JOURNAL_STREAM names, as systemd sets it up."""
    ours, theirs = socket.socketpair()
    about = os.fstat(theirs.fileno())
    env = {k: v for k, v in os.environ.items() if not k.startswith("SITEMAPD_")}
    env.update(JOURNAL_STREAM=f"{about.st_dev}:{about.st_ino}", SITEMAPD_TOKEN="t" * 32, SITEMAPD_LOG_ACCESS_LOG="-")
    process = subprocess.Popen(
        [BIN, "serve", "--database", str(tmp_path / "c.db"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=env)
    theirs.close()
    try:
        admin = process.stdout.readline().decode().split("admin=http://")[1].strip()
        ask(admin, "GET", "/v1/sites", {"Authorization": "Bearer wrong"}, host=admin)
        process.send_signal(signal.SIGTERM)
        text = b""
        ours.settimeout(seconds(60))
        while piece := ours.recv(65536):
            text += piece
        assert process.wait(seconds(60)) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        ours.close()
    found = text.decode().splitlines()
    assert any(line.startswith("<6>info start: ") for line in found), found
    assert any(line.startswith("<4>warning auth-failed: 127.0.0.1 ") for line in found), found
    assert any(COMBINED.match(line) for line in found), found
    assert all(re.match(r"<[3467]>(error|warning|info|debug) [a-z-]+: ", l) or COMBINED.match(l) for l in found), found


def test_a_log_that_nobody_reads_blocks_nothing(tmp_path, start):
    """stderr is a full pipe: writes are acknowledged and the server stops all the same."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SITEMAPD_")}
    process = subprocess.Popen(
        [BIN, "serve", "--database", str(tmp_path / "c.db"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
         "--site", ORIGIN], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writing,
        env=env | {"SITEMAPD_TOKEN": "t" * 32, "SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "60s"})
    os.close(writing)
    try:
        admin = process.stdout.readline().decode().split("admin=http://")[1].strip()
        head = {"Authorization": "Bearer " + "t" * 32, "Content-Type": "application/json"}
        for number in range(20):
            body = json.dumps({"loc": f"{ORIGIN}/{number}.xml"}).encode()
            assert ask(admin, "POST", "/v1/sitemaps", head, body, host=admin).status == 201
        process.send_signal(signal.SIGTERM)
        assert process.wait(seconds(60)) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reading)


# ---- commands beside the server -------------------------------------------------------------------


def test_a_command_that_writes_is_in_the_log(start):
    """What another process changes is reported once, with the index; what the server does itself is not."""
    server = start()
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert server.cli("add", ORIGIN + "/b.xml").code == 0
    (line,) = log_has(server, "catalogue-changed")
    assert re.search(r" info catalogue-changed: another process wrote revision \d+: pages of " + re.escape(ORIGIN + XML) + "$", line), line
    assert server.cli("token", "add", "pipeline").code == 0
    assert len(log_has(server, "no page changed, only a site, an index or a token")) == 1
    for command in (["list"], ["render", XML], ["export"], ["check"], ["token", "list"], ["add", ORIGIN + "/b.xml"]):
        assert server.cli(*command).code == 0, command
    assert server.register(ORIGIN + "/c.xml").status == 201
    time.sleep(2.5)
    assert server.log().count("catalogue-changed") == 2, server.log()
