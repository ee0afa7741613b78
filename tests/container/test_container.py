# SPDX-License-Identifier: LicenseRef-Undeclared
"""The image, built and run for real: what is in it, what it needs, and that nothing is lost when it is
restarted, upgraded, stopped under load or killed."""

import io
import os
import re
import subprocess
import tarfile
import threading

import pytest

from container import IMAGE, OLD_IMAGE, Container, docker, inspect, until
from harness import ORIGIN, locs

XML = "/sitemap_index.xml"
MAX_BYTES = 30 << 20  # beyond what the C library needs
MAX_START = 0.1  # seconds from start to ready
C_LIBRARY = re.compile(r"(^|/)(ld-linux[^/]*|lib(c|m|resolv|dl|pthread|rt)\.so[^/]*)$|/libc6(/|$)")
URLSET = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>\n'


@pytest.fixture
def folder(tmp_path):
    """Two sitemap files, for everybody to read."""
    path = tmp_path / "sitemaps"
    path.mkdir()
    for name in ("a", "b"):
        (path / f"{name}.xml").write_text(URLSET.format(f"{ORIGIN}/{name}/1"))
    for one in (tmp_path, path, *path.iterdir(), *tmp_path.parents):
        if one.stat().st_uid == os.getuid() and str(one).startswith("/tmp/"):
            one.chmod(one.stat().st_mode | 0o055 if one.is_dir() else 0o644)
    return path


@pytest.fixture
def new():
    """Makes containers; all are removed."""
    made = []

    def make(**options):
        made.append(Container(**options))
        return made[-1]

    yield make
    for one in made:
        one.remove()


def unpacked(image):
    name = docker("create", image).stdout.decode().strip()
    data = docker("export", name).stdout
    docker("rm", "-v", name)
    # What the engine lays over every container is not the image's.
    over = ("dev", "proc", "sys", ".dockerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")
    return [member for member in tarfile.open(fileobj=io.BytesIO(data)) if not member.name.rstrip("/").startswith(over)]


# ---- the image ----------------------------------------------------------------------------------


@pytest.mark.parametrize("image", [IMAGE, OLD_IMAGE])
def test_what_is_in_it(image):
    """The program, its libraries, and nothing to log in with."""
    members = unpacked(image)
    programs = [m.name for m in members if m.isfile() and m.mode & 0o111]
    assert programs.count("usr/bin/sitemapd") == 1
    assert [name for name in programs if not re.search(r"\.so(\.|$)", name)] == ["usr/bin/sitemapd"]
    for member in members:
        assert member.mode & 0o6000 == 0, f"{member.name} is set-uid"
        mine = member.name.rstrip("/") == "var/lib/sitemapd"
        assert (member.uid, member.gid) == ((65532, 65532) if mine else (0, 0)), member.name
        assert mine or member.issym() or member.mode & 0o022 == 0, f"{member.name} can be written"
    everything = sum(m.size for m in members)
    beyond = sum(m.size for m in members if not C_LIBRARY.search(m.name))
    print(f"\n{image}: {everything / 1e6:.1f} MB unpacked, {beyond / 1e6:.1f} MB beyond the C library; {len(members)} files")
    assert beyond <= MAX_BYTES


@pytest.mark.parametrize("image", [IMAGE, OLD_IMAGE])
def test_what_it_says_of_itself(image):
    config = inspect(image, "image")["Config"]
    assert config["User"] == "65532:65532"
    assert set(config["ExposedPorts"]) == {"8080/tcp", "8081/tcp"}
    assert set(config["Volumes"]) == {"/var/lib/sitemapd"}
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/sitemapd", "healthcheck"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == "sitemapd"
    assert re.fullmatch(r"[0-9a-f]{40}", labels["org.opencontainers.image.revision"])
    version = docker("run", "--rm", "--network", "none", image, "--version").stdout.decode()
    assert version == f"sitemapd {labels['org.opencontainers.image.version']}\n"


@pytest.mark.parametrize("image", [IMAGE, OLD_IMAGE])
def test_what_is_loaded_late_is_there(image):
    """The C library loads it when a thread that looked up PostgreSQL's host ends, or ends the process."""
    found = docker("run", "--rm", "--network", "none", "-e", "LD_PRELOAD=libgcc_s.so.1", image, "--version")
    assert found.stderr == b""


def test_no_way_in():
    for command in ("sh", "/bin/sh", "bash", "/bin/busybox", "ls", "/usr/bin/env"):
        assert docker("run", "--rm", "--network", "none", "--entrypoint", command, IMAGE, check=False).returncode == 127, command


def test_it_gives_up_all_that_it_can(new, folder):
    one = new(folder=folder).run()
    with open(f"/proc/{one.pid()}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert status["Uid"] == "\t".join(["65532"] * 4) and status["Gid"] == "\t".join(["65532"] * 4)
    for kind in ("Prm", "Eff", "Bnd", "Amb"):
        assert int(status["Cap" + kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    kept = os.listdir(f"/proc/{one.pid()}/root/var/lib/sitemapd")
    assert all(name.startswith("catalogue.db") for name in kept) and "catalogue.db.token" not in kept, kept


def test_start_to_ready(new, folder):
    """The best of several: what else the machine does is not a fault of the image."""
    one = new(folder=folder).run()
    took = [one.ready_after()]
    for _ in range(9):
        one.stop()
        took.append(one.start().ready_after())
    took = [seconds for seconds in took if seconds >= 0]
    print(f"\nstart to ready: best {min(took) * 1000:.0f} ms, median {sorted(took)[len(took) // 2] * 1000:.0f} ms of {len(took)}")
    assert min(took) <= MAX_START


# ---- what an operator does with it --------------------------------------------------------------


def test_health(new):
    one = new().run()
    until(lambda: one.health() == "healthy", "the engine finds it healthy by itself")
    assert one.exec("healthcheck").returncode == 0
    elsewhere = docker("exec", "-e", "SITEMAPD_ADMIN_LISTEN=127.0.0.1:1", one.name, "sitemapd", "healthcheck", check=False)
    assert elsewhere.returncode == 1 and b"refused" in elsewhere.stderr
    # A name is looked up, though the image has no files for that.
    port = one.admin.rpartition(":")[2]
    assert one.exec("healthcheck", f"http://localhost:{port}/healthz").returncode == 0


def test_a_token_made_inside(new):
    """Without a token in the environment, and without a shell to read the file with."""
    one = new(env={"SITEMAPD_TOKEN": ""}).run()
    made = one.exec("token", "add", "pipeline")
    assert made.returncode == 0, made.stderr
    token = made.stdout.decode().strip()
    listed = one.exec("token", "list").stdout.decode()
    assert "pipeline" in listed and token not in listed + one.log()


def test_a_state_that_it_may_not_write(new, tmp_path):
    """It says so in a line and ends; it does not hang or loop."""
    tmp_path.chmod(0o755)
    one = new(state=str(tmp_path))
    with pytest.raises(AssertionError) as failed:
        one.run()
    assert inspect(one.name)["State"]["ExitCode"] == 1
    assert re.search(r"^sitemapd: /var/lib/sitemapd/catalogue\.db: .*\n\Z", one.log(), re.M), failed


def test_process_1_buries_orphans(new):
    one = new().run()
    # No shell inside: the machine's own, in the container's process space.
    subprocess.run(["nsenter", "-t", str(one.pid()), "-p", "sh", "-c", "sleep 5 & sleep 5 &"], check=True)

    def children():
        with open(f"/proc/{one.pid()}/task/{one.pid()}/children", encoding="ascii") as file:
            return file.read().split()

    assert len(children()) == 2, "they are its own now"
    until(lambda: not children(), "they are gone, not kept as zombies")


def test_the_life_of_a_folder(new, folder):
    """Served, registered into, restarted, upgraded and taken back: equal bytes, equal tags."""
    one = new(folder=folder).run(OLD_IMAGE)
    until(lambda: one.get(XML).status == 200, "the folder is read")
    assert locs(one.get(XML).body) == [f"{ORIGIN}/a.xml", f"{ORIGIN}/b.xml"]
    assert one.get("/a.xml").body == (folder / "a.xml").read_bytes()
    assert one.register(ORIGIN + "/elsewhere/c.xml").status == 201
    assert one.register("https://www.example.org/x.xml").status == 422
    before = one.get(XML)
    assert len(locs(before.body)) == 3
    gzipped = one.get(XML, {"Accept-Encoding": "gzip"})

    def same():
        now = one.get(XML)
        assert (now.body, now["ETag"], now["Last-Modified"]) == (before.body, before["ETag"], before["Last-Modified"])
        assert one.get(XML, {"If-None-Match": before["ETag"]}).status == 304
        assert one.get(XML, {"Accept-Encoding": "gzip"}).xml() == gzipped.xml()

    docker("restart", "-t", "60", one.name)
    one.wait()
    same()
    assert one.get(XML, {"Accept-Encoding": "gzip"})["ETag"] == gzipped["ETag"]
    one.replace(IMAGE)
    same()
    # A file that comes while it runs is noticed through the mount.
    (folder / "c.xml.new").write_text(URLSET.format(f"{ORIGIN}/c/1"))
    os.rename(folder / "c.xml.new", folder / "c.xml")
    until(lambda: f"{ORIGIN}/c.xml" in locs(one.get(XML).body), "the new file is listed")
    before, gzipped = one.get(XML), one.get(XML, {"Accept-Encoding": "gzip"})
    one.replace(OLD_IMAGE)
    same()
    assert one.exec("check").returncode == 0
    one.stop()


class Load:
    """Four who register and two who fetch, until the server is gone. What was acknowledged is noted."""

    def __init__(self, one):
        self.one, self.acknowledged, self.wrong, self.fetched = one, [], [], 0
        self.threads = [threading.Thread(target=self.register, args=(n,)) for n in range(4)]
        self.threads += [threading.Thread(target=self.fetch) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        until(lambda: len(self.acknowledged) > 50 and self.fetched > 50, "the load is on")

    def repeat(self, ask):
        n = 0
        while True:
            try:
                n += 1
                if not ask(n):
                    return
            except (OSError, AssertionError):  # refused, or cut off before the reply's end
                return

    def register(self, writer):
        def ask(n):
            loc = f"{ORIGIN}/load/{writer}/{n}.xml"
            reply = self.one.register(loc)
            if reply.status == 201:
                self.acknowledged.append(loc)
            elif reply.status != 503:  # a stopping server takes nothing more
                self.wrong.append(reply)
            return reply.status == 201

        self.repeat(ask)

    def fetch(self):
        def ask(_):
            reply = self.one.get(XML, {"Accept-Encoding": "gzip"})
            if reply.status not in (200, 404, 503):
                self.wrong.append(reply)
            if reply.status == 200:
                locs(reply.xml())  # whole
            self.fetched += 1
            return True

        self.repeat(ask)

    def end(self):
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not self.wrong
        return self.acknowledged


@pytest.mark.parametrize("how", ["stop", "kill", "upgrade"])
def test_nothing_acknowledged_is_lost(new, how):
    one = new().run(OLD_IMAGE if how == "upgrade" else IMAGE)
    load = Load(one)
    if how == "kill":
        docker("kill", one.name)
        acknowledged = load.end()
        one.start()
    elif how == "stop":
        one.stop()
        acknowledged = load.end()
        one.start()
    else:
        one.replace(IMAGE)
        acknowledged = load.end()
    kept = set(locs(one.get(XML).body))
    assert kept >= set(acknowledged), f"{len(set(acknowledged) - kept)} of {len(acknowledged)} lost"
    assert one.exec("check").returncode == 0
    print(f"\n{how} under load: {len(acknowledged)} acknowledged, all kept")
