# SPDX-License-Identifier: LicenseRef-Undeclared
"""The interface to a service manager: readiness, reload, watchdog, socket activation; and the process: user, file modes,
memory."""

import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from harness import BIN, ORIGIN, READY, TOKEN, Connection, environment, environment_of_another, eventually, request_bytes, seconds, sitemapd
from postgres import free_port

NEXT = os.environ.get("SITEMAPD_NEXT_BIN", BIN)
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Manager:
    """The socket that a service manager listens on."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(seconds(60))

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def next_but_alive(self):
        while True:
            result = self.next()
            if result != {"WATCHDOG": "1"}:
                return result


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_notify(start, tmp_path, kind):
    name = str(tmp_path / "notify") if kind == "path" else f"@sitemapd-test-{os.getpid()}"
    manager = Manager(name if kind == "path" else "\0" + name[1:])
    config = tmp_path / "sitemapd.conf"
    server = start(config=f'[site "main"]\norigin = {ORIGIN}\n', sites=(), env={"NOTIFY_SOCKET": name})
    result = manager.next()
    assert result["READY"] == "1" and server.public in result["STATUS"] and server.admin in result["STATUS"]
    for text, word in ((config.read_text() + "[log]\nlevel = debug\n", "reloaded: "), ("nonsense", "reload-refused: ")):
        config.write_text(text)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        server.process.send_signal(signal.SIGHUP)
        result = manager.next()
        assert result["RELOADING"] == "1" and before <= int(result["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        assert manager.next()["READY"] == "1"
        eventually(lambda: word in server.log(), word)
    server.process.send_signal(signal.SIGTERM)
    assert manager.next()["STOPPING"] == "1"
    assert server.process.wait(seconds(60)) == 0


def test_watchdog(start, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    start(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
    assert manager.next_but_alive()["READY"] == "1"
    for _ in range(5):
        assert manager.next() == {"WATCHDOG": "1"}


def test_no_watchdog_unasked(start, tmp_path):
    """Nor where it is another process's."""
    manager = Manager(str(tmp_path / "notify"))
    start(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"})
    assert manager.next()["READY"] == "1"
    manager.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        manager.next()


def test_load_balancers_learn_of_a_stop_before_the_ports_close(start):
    """So that a pod needs no `preStop`."""
    server = start(env={"SITEMAPD_SERVER_SHUTDOWN_DELAY": "60s"})
    assert server.register(f"{ORIGIN}/a.xml").status == 201 and server.api("GET", "/readyz").status == 200
    server.process.send_signal(signal.SIGTERM)
    eventually(lambda: server.api("GET", "/readyz").status == 503, "not ready")
    assert [reason["code"] for reason in server.api("GET", "/readyz").json()["reasons"]] == ["stopping"]
    assert b"\n[-]shutdown: stopping\n" in server.api("GET", "/readyz?verbose").body
    assert server.get("/sitemap_index.xml").status == 200 and server.register(f"{ORIGIN}/b.xml").status == 201, "new connections are answered"
    assert server.api("GET", "/healthz").status == 200
    status = sitemapd("status", "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": TOKEN})
    assert status.code == 1 and ", unavailable\n" in status.out, status
    server.stop()  # the second signal ends it


# ---- sockets that are handed over ----------------------------------------------------------------


def listening():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(1024)
    return s, "127.0.0.1:%d" % s.getsockname()[1]


class Activated:
    """`serve` with sockets of ours, as a service manager starts it: 3, 4, … and LISTEN_*."""

    def __init__(self, folder, sockets, names=None, pid="str(os.getpid())", args=(), binary=BIN):
        numbers = [s.fileno() for s in sockets]
        code = (f"import os, sys\nfor i, fd in enumerate({numbers}): os.dup2(fd, 3 + i)\n"
                f"os.environ['LISTEN_PID'] = {pid}\nos.execv(sys.argv[1], sys.argv[1:])")
        env = environment({"SITEMAPD_TOKEN": TOKEN, "LISTEN_FDS": str(len(sockets)), **({"LISTEN_FDNAMES": names} if names else {})})
        self.log = open(os.path.join(str(folder), "activated.log"), "ab+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, binary, "serve", "--database", os.path.join(str(folder), "c.db"), "--site", ORIGIN, *args],
            pass_fds=numbers, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=env)

    def ready(self):
        line = self.process.stdout.readline().decode()
        found = READY.match(line)
        assert found, (line, self.text())
        return found.groups()

    def text(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def end(self, code=0):
        if self.process.poll() is None and code == 0:
            self.process.terminate()
        found = self.process.wait(seconds(60))
        self.process.stdout.close()
        self.log.close()
        assert found == code


def high(s):
    """The same socket under a number far from 3."""
    fd = fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 50)
    s2 = socket.socket(fileno=fd)
    s.close()
    return s2


@pytest.mark.parametrize("names, order", [("public:admin", (0, 1)), ("admin:public", (1, 0)), (None, (0, 1)), ("sitemapd.socket:sitemapd.socket", (0, 1))])
def test_given_sockets(tmp_path, names, order):
    pairs = [listening(), listening()]
    sockets = [high(s) for s, _ in pairs]
    one = Activated(tmp_path, sockets, names)
    assert one.ready() == (pairs[order[0]][1], pairs[order[1]][1])
    with Connection(pairs[order[0]][1]) as c:
        c.send(request_bytes("GET", "/robots.txt"))
        assert c.reply().status == 200
    one.end()


def test_one_given_socket(tmp_path):
    s, address = listening()
    one = Activated(tmp_path, [high(s)], "public", args=("--admin-listen", "127.0.0.1:0"))
    assert one.ready()[0] == address
    one.end()


def test_sockets_of_another_process(tmp_path):
    s, address = listening()
    one = Activated(tmp_path, [high(s)], "public", pid="'1'", args=("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"))
    assert one.ready()[0] != address
    one.end()


def test_given_sockets_that_cannot_be(tmp_path):
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    local = socket.socket(socket.AF_UNIX)
    local.bind(str(tmp_path / "s"))
    local.listen()
    many = [listening()[0] for _ in range(3)]
    for sockets, names, word in (
        ([deaf], "public", "is not a listening TCP socket"),
        ([datagram], "public", "is not a listening TCP socket"),
        ([local], "admin", "not an IPv4 or IPv6 socket"),
        (many, "public:admin:public", "too many sockets"),
        (many[:2], "public:public", "too many sockets"),
    ):
        one = Activated(tmp_path, [high(socket.socket(fileno=os.dup(s.fileno()))) for s in sockets], names)
        assert one.process.wait(seconds(60)) == 1
        assert word in one.text(), (word, one.text())
        one.end(1)
    for s in (deaf, datagram, local, *many):
        s.close()


def test_a_restart_refuses_nobody(tmp_path):
    """The socket is held by another: who comes while the server restarts waits, and is served."""
    (public, address), (admin, _) = listening(), listening()
    sockets = [high(public), high(admin)]
    go_on, odd, served = threading.Event(), [], [0]
    go_on.set()

    def come():
        while go_on.is_set():
            begun = said = time.monotonic()
            try:
                with Connection(address, seconds(30)) as c:
                    c.send(request_bytes("GET", "/robots.txt", {"Connection": "close"}))
                    said = time.monotonic()
                    assert c.reply().status == 200
                    served[0] += 1
            except (OSError, AssertionError) as error:
                if said - begun < 0.5:  # a stop waits for a second for what who came has to say
                    odd.append(repr(error))

    one = Activated(tmp_path, sockets, "public:admin")
    one.ready()
    threads = [threading.Thread(target=come) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(4):
        before = served[0]
        eventually(lambda: served[0] > before + 20, "they are served")
        one.end()
        time.sleep(0.2)  # nobody is there
        one = Activated(tmp_path, sockets, "public:admin")
        one.ready()
    go_on.clear()
    for t in threads:
        t.join(seconds(60))
    one.end()
    for s in sockets:
        s.close()
    assert not odd, odd[:5]


def test_an_upgrade_under_load(tmp_path):
    """With sockets that the manager holds, clients of both listeners notice nothing: no error, nothing acknowledged is lost."""
    (public, public_address), (admin, admin_address) = listening(), listening()
    sockets = [high(public), high(admin)]
    go_on, odd, read, written = threading.Event(), [], [], []
    go_on.set()

    def ask(address, request):
        with Connection(address, seconds(60)) as c:
            c.send(request)
            return c.reply()

    def reads():
        while go_on.is_set():
            try:
                read.append(ask(public_address, request_bytes("GET", "/robots.txt", [("Connection", "close")])).status)
            except (OSError, AssertionError) as error:
                odd.append(repr(error))

    def writes(name):
        number = 0
        while go_on.is_set():
            loc, number = f"{ORIGIN}/{name}/{number}.xml", number + 1
            headers = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"), ("Connection", "close")]
            try:
                reply = ask(admin_address, request_bytes("POST", "/v1/sitemaps", headers, json.dumps({"loc": loc}).encode(), host=admin_address))
                written.append(loc) if reply.status in (200, 201) else odd.append((reply.status, reply.body))
            except (OSError, AssertionError) as error:
                odd.append(repr(error))

    def serve(binary):
        one = Activated(tmp_path, sockets, "public:admin", binary=binary)
        one.ready()
        return one

    one = serve(BIN)
    threads = [threading.Thread(target=reads) for _ in range(3)] + [threading.Thread(target=writes, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for binary in (BIN, BIN, NEXT):  # the last has a newer schema
        before = len(read), len(written)
        eventually(lambda: len(read) > before[0] + 20 and len(written) > before[1] + 20, "both listeners answer")
        one.end()
        one = serve(binary)
    before = len(written)
    eventually(lambda: len(written) > before + 20, "the new version takes writes")
    go_on.clear()
    for t in threads:
        t.join(seconds(60))
    there = ask(public_address, request_bytes("GET", "/sitemap_index.xml")).body.decode()
    one.end()
    for s in sockets:
        s.close()
    assert not odd, odd[:5]
    assert set(read) == {200}
    lost = [loc for loc in written if f"<loc>{loc}</loc>" not in there]
    assert not lost, lost[:5]


# ---- what the process may do ---------------------------------------------------------------------


@pytest.fixture
def open_folder():
    """A folder that every user may pass, with the program in it."""
    path = tempfile.mkdtemp(prefix="sitemapd-test-")
    os.chmod(path, 0o755)
    shutil.copy(BIN, os.path.join(path, "sitemapd"))
    os.chmod(os.path.join(path, "sitemapd"), 0o755)
    yield path
    shutil.rmtree(path)


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def threads_of(pid):
    return [status_of(f"{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task")]


@ROOT
@pytest.mark.parametrize("how", ["flag", "file", "number"])
def test_root_becomes_the_user(open_folder, start, how):
    nobody = pwd.getpwnam("nobody")
    low = free_port(ports=range(500, 1024))
    database = os.path.join(open_folder, "state", "catalogue.db")
    user = str(nobody.pw_uid) if how == "number" else "nobody"
    args = [] if how == "file" else ["--user", user]
    server = start("--listen", f"127.0.0.1:{low}", *args, folder=open_folder, database=database, config="[server]\nuser = nobody\n" if how == "file" else None)
    assert server.public == f"127.0.0.1:{low}", "bound before the rights went"
    for task in threads_of(server.process.pid):
        assert task["Uid"].split() == [str(nobody.pw_uid)] * 4 and task["Gid"].split() == [str(nobody.pw_gid)] * 4, task
        assert int(task["CapEff"], 16) == int(task["CapPrm"], 16) == 0 and task["NoNewPrivs"] == "1", task
        assert "0" not in task["Groups"].split()
    assert server.register(ORIGIN + "/a.xml").status == 201
    found = os.stat(os.path.dirname(database))
    assert found.st_uid == nobody.pw_uid and stat.S_IMODE(found.st_mode) == 0o700
    # A reload goes on as that user.
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "reloaded: " in server.log(), "reloaded")
    assert "needs a restart" not in server.log() and "runs-as-root" not in server.log()


@ROOT
def test_a_user_has_all_that_it_needs(open_folder, start):
    """What goes over /proc/self is still there: inotify, the metrics of the process, rotated logs."""
    folder = os.path.join(open_folder, "files")
    os.mkdir(folder)
    logs = os.path.join(open_folder, "logs")
    os.mkdir(logs)
    os.chown(logs, 65534, 65534)
    source = f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/files/\nsettle = 100ms\nrescan = 1h\n'
    server = start("--user", "65534", folder=open_folder, database=os.path.join(open_folder, "state", "c.db"),
                   config=source + f"[log]\naccess_log = {logs}/access.log\n")
    eventually(lambda: server.metrics()['sitemapd_source_scans_total{source="files"}'] >= 1, "the first scan")
    os.mkdir(os.path.join(folder, "sub"))
    with open(os.path.join(folder, "sub", "a.txt"), "w") as file:
        file.write(ORIGIN + "/a\n")
    eventually(lambda: b"/files/sub/a.txt" in server.get("/sitemap_index.xml").body, "it is noticed")
    assert server.metrics().get("process_open_fds", 1) > 0
    eventually(lambda: os.path.getsize(f"{logs}/access.log") > 0, "the log is written")
    os.rename(f"{logs}/access.log", f"{logs}/access.log.1")
    server.process.send_signal(signal.SIGUSR1)
    eventually(lambda: os.path.exists(f"{logs}/access.log"), "a new one is begun")


def serve_fails(program, *args, **more):
    done = subprocess.run([program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", *args], capture_output=True, timeout=seconds(60), env=environment_of_another(), cwd="/", **more)
    assert done.returncode == 1 and done.stdout == b"" and done.stderr.startswith(b"sitemapd: "), done
    return done.stderr.decode()


@ROOT
def test_users_that_cannot_be(open_folder, tmp_path):
    program, database = os.path.join(open_folder, "sitemapd"), ("--database", str(tmp_path / "c.db"))
    assert "user not found" in serve_fails(program, *database, "--user", "no-such-user")
    assert "is root;" in serve_fails(program, *database, "--user", "root")
    assert "only root can switch to another" in serve_fails(program, *database, "--user", "daemon", user=65534, group=65534, extra_groups=[])
    # The catalogue of a run as root is not the user's.
    os.chmod(open_folder, 0o777)
    mine = os.path.join(open_folder, "mine.db")
    assert sitemapd("site", "add", ORIGIN, database=mine).code == 0
    assert "mine.db" in serve_fails(program, "--database", mine, "--user", "nobody")


@ROOT
def test_root_is_warned(start):
    server = start()
    eventually(lambda: "warning runs-as-root: the server runs as root: set a user" in server.log(), "the warning")


def test_nobody_else_can_read_the_files(start, tmp_path):
    (tmp_path / "f").mkdir()
    old = os.umask(0)
    try:
        server = start(token=None, config=f"[log]\naccess_log = {tmp_path}/access.log\n")
    finally:
        os.umask(old)
    server.get("/robots.txt")
    for name in os.listdir(tmp_path):
        if name.startswith(("catalogue.db", "access.log")):
            mode = stat.S_IMODE(os.stat(tmp_path / name).st_mode)
            assert mode & (0o027 if name == "access.log" else 0o077) == 0, (name, oct(mode))
    assert {"catalogue.db", "catalogue.db-wal", "catalogue.db.token", "access.log"} <= set(os.listdir(tmp_path))


@ROOT
def test_no_token_stays_around(start):
    """No token in the environment or the title."""
    server = start()
    pid = server.process.pid
    assert server.api("GET", "/v1/sites").status == 200, "the token counts all the same"
    for name in ("environ", "cmdline"):
        with open(f"/proc/{pid}/{name}", "rb") as file:
            assert TOKEN.encode() not in file.read(), name


@ROOT
def test_no_core_is_written(open_folder, start):
    server = start("--user", "nobody", folder=open_folder, database=os.path.join(open_folder, "state", "c.db"))
    pid = server.process.pid
    assert os.stat(f"/proc/{pid}/maps").st_uid == 0, "not dumpable: root's, though the process is nobody's"
    server.process.send_signal(signal.SIGABRT)
    server.process.wait(seconds(60))
    server.kill()
    assert not [name for name in os.listdir(open_folder) if name.startswith("core")]
