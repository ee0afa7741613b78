# SPDX-License-Identifier: LicenseRef-Undeclared
"""PostgreSQL of a test's own: a cluster in a folder, on a free port of loopback, as an unprivileged user where root
runs the tests (PostgreSQL refuses root). Standard library, and Debian's `postgresql`. All that is started ends with
the test's process, whatever ends that."""

import atexit
import contextlib
import copy
import ctypes
import functools
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

DATABASE = "sitemapd"
SUPERUSER = "postgres"
STEP_SECONDS = 120  # bounds a hang


def binary(name):
    """The newest release's."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda path: float(path.split("/")[4]))
    assert found, f"Debian's package postgresql is missing: no {name}"
    return found[-1]


def owner():
    """The user of the server: (uid, gid), or None if the tests do not run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
        except KeyError:
            continue
    raise AssertionError("nobody to run PostgreSQL as")


held_ports = []  # sockets that do not listen


def free_port(address="127.0.0.1", ports=range(20000, 32000)):
    """Below the ports that the kernel gives out by itself, so that it is still free after a restart. It is held until this
    process ends: who sets SO_REUSEADDR, as servers do, may listen there, and nobody else finds it free."""
    while True:
        s = socket.socket()
        try:
            s.bind((address, port := random.choice(ports)))
        except OSError:
            s.close()
            continue
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not before, or two would have one port
        held_ports.append(s)
        return port


def dies_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG; it is an immediate shutdown


@functools.cache
def own_memory():
    """Root's tests have System V segments of their own, whatever else on the machine has used up Linux's 4,096."""
    ctypes.CDLL(None).unshare(0x08000000)  # CLONE_NEWIPC; others may not


def run(command, **more):
    who = owner()
    if who:
        more.update(user=who[0], group=who[1], extra_groups=[])
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STEP_SECONDS, cwd="/", **more)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"
    return done.stdout


@functools.cache
def initialised():
    """A cluster's files as initdb makes them, once for all of this process, which takes it as long as ten copies."""
    folder = tempfile.mkdtemp(prefix="initdb.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if owner():
        os.chown(folder, *owner())
    data = os.path.join(folder, "data")
    run([binary("initdb"), "-D", data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
    return data


def stat(pid):
    """A process's state and its parent; None where it has ended, be it that nobody has asked for its status yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            state, parent = file.read().rsplit(") ", 1)[1].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else (state, int(parent))


def processes(parent):
    """All below a process, itself first."""
    children = {}
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        if there := stat(pid):
            children.setdefault(there[1], []).append(pid)
    found = [parent]
    for pid in found:
        found += children.get(pid, [])
    return found


class Server:
    """One PostgreSQL. `settings` are lines of its configuration. Not durable unless asked: a kill -9 of processes loses
    nothing that was written, only a machine's end would."""

    def __init__(self, folder=None, durable=False, address="127.0.0.1", port=None, settings=None, of=None, wrap=()):
        own_memory()
        self.own_folder, self.database = folder is None, DATABASE
        self.folder = folder or tempfile.mkdtemp(prefix="postgres.")
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        self.address, self.port, self.process, self.wrap = address, port or free_port(address), None, tuple(wrap)
        os.makedirs(self.folder, exist_ok=True)
        if owner():
            os.chown(self.folder, *owner())
        os.chmod(self.folder, 0o755)
        if of is None:
            run(["cp", "-a", initialised(), self.data])
            lines = {"fsync": "on" if durable else "off", "max_connections": "60", "shared_buffers": "32MB", "wal_level": "replica", "hot_standby": "on", "max_wal_senders": "8",
                     "dynamic_shared_memory_type": "mmap"}  # in its folder: one that is killed leaves nothing in /dev/shm
            with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="utf-8") as file:
                file.write("host all all all trust\nhost replication all all trust\n")
        else:
            run([*self.wrap, binary("pg_basebackup"), "-D", self.data, "-d", of.url(""), "-R", "-X", "stream", "--no-sync", "-c", "fast"])
            lines = {}
        lines.update({"unix_socket_directories": f"'{self.folder}'", "listen_addresses": f"'{address}'", "port": str(self.port)})
        lines.update(settings or {})
        self.set(reload=False, **lines)

    def set(self, reload=True, **settings):
        """Applies settings at once; of a setting that occurs twice the last one counts."""
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        if reload:
            before = self.sql("SELECT pg_conf_load_time()")
            os.kill(self.process.pid, signal.SIGHUP)
            self.until(lambda: self.sql("SELECT pg_conf_load_time()") != before, "the new settings")
            for _ in range(2):  # whether commits wait for a standby says the checkpointer, which reads settings before its work
                self.sql("CHECKPOINT")

    def start(self, database=True):
        who = owner()
        more = {"user": who[0], "group": who[1], "extra_groups": []} if who else {}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.wrap, binary("postgres"), "-D", self.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True, preexec_fn=dies_with_us, **more)
        self.until(self.answers, "PostgreSQL's start")
        if database and self.sql("SELECT pg_is_in_recovery()", "postgres") == "f" and not self.sql(f"SELECT 1 FROM pg_database WHERE datname = '{self.database}'", "postgres"):
            self.sql(f"CREATE DATABASE {self.database}", "postgres")
        return self

    def answers(self):
        assert self.process.poll() is None, f"PostgreSQL ended: {open(self.log, encoding='utf-8').read()[-2000:]}"
        return subprocess.run([*self.wrap, binary("pg_isready"), "-q", "-h", self.address, "-p", str(self.port)], check=False, timeout=STEP_SECONDS).returncode == 0

    def until(self, check, what):
        end = time.monotonic() + STEP_SECONDS
        while not check():
            assert time.monotonic() < end, f"not within {STEP_SECONDS} s: {what}"
            time.sleep(0.02)

    def beside(self, database):
        """The same PostgreSQL with another database, to be dropped by `drop`. What starts and ends is the first one alone."""
        other = copy.copy(self)
        other.own_folder, other.database, other.process = False, database, None
        self.sql(f"CREATE DATABASE {database}", "postgres")
        return other

    def drop(self):
        """Its database; sessions are ended."""
        self.sql(f"DROP DATABASE {self.database} WITH (FORCE)", "postgres")

    def url(self, database=None, user=SUPERUSER):
        return f"postgresql://{user}@{self.address}:{self.port}/{self.database if database is None else database}"

    def sql(self, text, database=None, user=SUPERUSER):
        return run([*self.wrap, binary("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database, user), "-c", text]).strip()

    def standby(self, synchronous=True, name="standby", **more):
        """Another server that follows this one; the commits of this one wait for it where it is synchronous."""
        other = Server(of=self, settings={"primary_conninfo": f"'{self.url('')}?application_name={name}'"}, **more)
        other.start(database=False)
        self.until(lambda: self.sql(f"SELECT state FROM pg_stat_replication WHERE application_name = '{name}'") == "streaming", "the standby's connection")
        if synchronous:
            self.set(synchronous_standby_names=f"'{name}'")
            self.until(lambda: self.sql(f"SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}'") == "sync", "the synchronous standby")
        return other

    def promote(self):
        assert self.sql("SELECT pg_promote()", "postgres") == "t"
        self.until(lambda: self.sql("SELECT pg_is_in_recovery()", "postgres") == "f", "the promotion")

    def backends(self, application, database=None):
        """The processes that serve sessions of that name."""
        return [int(pid) for pid in self.sql(f"SELECT pid FROM pg_stat_activity WHERE application_name = '{application}' AND datname = '{database or self.database}'", "postgres").split()]

    def waits(self, application, event, database=None):
        """Until a session of that name waits for the event (pg_stat_activity.wait_event)."""
        query = f"SELECT wait_event FROM pg_stat_activity WHERE application_name = '{application}' AND datname = '{database or self.database}'"
        self.until(lambda: event in self.sql(query, "postgres").split(), f"{application} in {event}")

    def pause(self):
        """All of its processes stand still; the kernel still acknowledges what comes."""
        self.send(signal.SIGSTOP)

    def send(self, number):
        """To all of its processes; some may end meanwhile."""
        for pid in processes(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def resume(self):
        self.send(signal.SIGCONT)

    def kill(self):
        """kill -9 of all processes at once. Waits until none is left, or the next start would find their memory in use."""
        self.pause()
        killed = processes(self.process.pid)
        self.send(signal.SIGKILL)
        self.process.wait(STEP_SECONDS)
        self.until(lambda: not any(map(stat, killed)), "the end of all processes")
        self.process = None
        self.remove_memory()

    def remove_memory(self):
        """The System V segment by which PostgreSQL knows that processes of it are left: it is removed by a PostgreSQL that
        ends, but not by one that is killed."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
            if len(lines := file.read().splitlines()) > 6:  # else it was killed before it had one
                subprocess.run(["ipcrm", "-m", lines[6].split()[1]], check=False, stderr=subprocess.DEVNULL, timeout=STEP_SECONDS)

    def stop(self):
        """Sessions are ended."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process = None

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start() if self.process is None else self

    def __exit__(self, *_):
        self.end()
