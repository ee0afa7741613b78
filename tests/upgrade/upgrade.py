# SPDX-License-Identifier: LicenseRef-Undeclared
"""Upgrades under load: see tests/upgrade/run."""

import http.client
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import BIN, HOST, ORIGIN, TOKEN, eventually
from proxies import example, free_port

WRITERS, READERS = 2, 3


class Load:
    """Clients with connections of their own, which they keep. `answers` of each kind by status; `kept`: what was acknowledged.
    `retries`: what a client may do where a server alone is restarted: ask again, with the same Idempotency-Key."""

    def __init__(self, public, admin, retries=False):
        self.public, self.admin, self.retries = public, admin, retries
        self.answers, self.kept, self.lock = {}, set(), threading.Lock()
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(self.write, i)) for i in range(WRITERS)]
        self.threads += [threading.Thread(target=self.run, args=(self.read, i)) for i in range(READERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def run(self, ask, number):
        count, connection = 0, None
        while not self.ended.is_set():
            try:
                if connection is None:
                    connection = http.client.HTTPConnection(self.public if ask == self.read else self.admin, timeout=60)
                answer, done = ask(connection, f"{number}-{count}")
            except (OSError, http.client.HTTPException) as error:
                answer, done, connection = f"{ask.__name__}: {type(error).__name__}", False, None
            with self.lock:
                self.answers[answer] = self.answers.get(answer, 0) + 1
            count += done or not self.retries
            if not done:
                time.sleep(0.05)

    def write(self, connection, name):
        loc = f"{ORIGIN}/{name}.xml"
        # Without a key where no retry is needed: the proxy, too, has to do without.
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **({"Idempotency-Key": name} if self.retries else {})}
        connection.request("POST", "/v1/sitemaps", f'{{"loc": "{loc}"}}', headers)
        reply = connection.getresponse()
        reply.read()
        if reply.status in (200, 201):
            with self.lock:
                self.kept.add(loc)
        return reply.status, reply.status in (200, 201)

    def read(self, connection, _):
        connection.request("GET", "/sitemap_index.xml", headers={"Host": HOST})
        reply = connection.getresponse()
        reply.read()
        return reply.status, reply.status == 200

    def more(self, count=50):
        """Waits until so many more are acknowledged."""
        seen = len(self.kept)
        try:
            eventually(lambda: len(self.kept) >= seen + count, "writes go on", within=60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {len(self.kept) - seen} of {count}; answers {self.answers}") from None

    def bad(self):
        return {answer: count for answer, count in self.answers.items() if answer not in (200, 201)}


def get(address):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/sitemap_index.xml", headers={"Host": HOST, "Accept-Encoding": "gzip"})
    reply = connection.getresponse()
    found = reply.status, reply.headers["ETag"], reply.read()
    connection.close()
    return found


def listed(address):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/sitemap_index.xml", headers={"Host": HOST})
    found = set(re.findall(r"<loc>([^<]*)</loc>", connection.getresponse().read().decode()))
    connection.close()
    return found


def nodes(folder, following):
    from cluster import Cluster

    cluster = Cluster(pathlib.Path(folder), delay_ms=None)
    proxy = None
    try:
        ports, changes = {"8080": free_port(), "8081": free_port()}, {}
        for port, own in ports.items():
            changes[f"bind :{port}"] = f"bind 127.0.0.1:{own}"
        for node in cluster.nodes:
            checked = f"port {node.admin.rsplit(':', 1)[1]}"
            changes[f"server {node.name} {node.name}:8080 port 8081"] = f"server {node.name} {node.public} {checked}"
            changes[f"server {node.name} {node.name}:8081"] = f"server {node.name} {node.admin}"
        config = cluster.folder / "haproxy.cfg"
        config.write_text(example("haproxy-shared.cfg", changes))
        proxy = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        public, admin = (f"127.0.0.1:{ports[port]}" for port in ("8080", "8081"))
        eventually(lambda: get_or_none(public) == 200, "the proxy answers", within=60)
        with Load(public, admin) as load:
            load.more()
            for node in cluster.nodes:
                node.stop()
                load.more()
                node.binary = following
                for file in pathlib.Path(node.database).parent.glob(pathlib.Path(node.database).name + "*"):  # as a pod, which has no volume
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
                node.start()
                eventually(lambda node=node: node.api("GET", "/readyz", token=None).status == 200, f"{node.name} is ready", within=60)
                load.more()
        print(f"answers {load.answers}, {len(load.kept)} acknowledged", flush=True)
        cluster.all_agree()
        for node in cluster.nodes:
            assert load.kept <= listed(node.public), f"{node.name} lost what was acknowledged"
        assert not load.bad(), f"clients saw {load.bad()}"
    finally:
        if proxy is not None:
            proxy.kill()
            proxy.wait()
        cluster.end()


def get_or_none(address):
    try:
        return get(address)[0]
    except OSError:
        return None


class Rooted:
    """The program in another root, as the user of the image or of the package, on the same ports each time."""

    def __init__(self, root, user, database, log):
        self.root, self.user, self.database, self.log = root, user, database, log
        self.public, self.admin = (f"127.0.0.1:{free_port()}" for _ in range(2))

    def start(self):
        settings = {"DATABASE": self.database, "LISTEN": self.public, "ADMIN_LISTEN": self.admin, "SITE": ORIGIN, "TOKEN": TOKEN}
        command = ["/usr/sbin/chroot", f"--userspec={self.user}:{self.user}", "--groups=", self.root, "/usr/bin/sitemapd", "serve"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env={f"SITEMAPD_{name}": value for name, value in settings.items()})
        eventually(lambda: get_or_none(self.public) is not None or self.process.poll() is not None, "it listens", within=60)
        assert self.process.poll() is None, "it does not start"

    def stop(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0
        assert time.monotonic() - began < 10, "a stop takes longer than 10 s"


def one_server(server, upgrade):
    """Clients retry while it is away, with the same key: nothing is lost, no answer is a 5xx, and bytes and tags stay."""
    server.start()
    try:
        with Load(server.public, server.admin, retries=True) as load:
            load.more()
            server.stop()
            upgrade()
            server.start()
            load.more()
        print(f"answers {load.answers}, {len(load.kept)} acknowledged", flush=True)
        assert load.kept <= listed(server.public), "what was acknowledged is lost"
        assert not [answer for answer in load.bad() if isinstance(answer, int) and answer >= 500], f"clients saw {load.bad()}"
        page = get(server.public)
        server.stop()
        server.start()
        assert get(server.public) == page, "another ETag, or other bytes, after a restart"
    finally:
        server.process.kill()
        server.process.wait()


def image(folder, old, following):
    """The volume is a folder that moves from the old root into the next one."""
    with open(f"{folder}/image.log", "wb") as log:
        server = Rooted(old, "65532", "/var/lib/sitemapd/catalogue.db", log)

        def upgrade():
            os.rmdir(f"{following}/var/lib/sitemapd")
            os.rename(f"{old}/var/lib/sitemapd", f"{following}/var/lib/sitemapd")
            server.root = following

        one_server(server, upgrade)


def package(folder, root):
    def in_root(*command):
        done = subprocess.run(["/usr/sbin/chroot", root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with open("/etc/resolv.conf", "rb") as here, open(f"{root}/etc/resolv.conf", "wb") as there:
        there.write(here.read())
    in_root("sh", "-c", "printf 'Acquire::Check-Valid-Until \"false\";\\nAcquire::Check-Date \"false\";\\n' >/etc/apt/apt.conf.d/99try; apt-get update -q && apt-get install -y -q /old.deb")
    before = in_root("dpkg-query", "-W", "-f", "${Version}", "sitemapd")
    with open(f"{folder}/package.log", "wb") as log:
        server = Rooted(root, "sitemapd", "/var/lib/sitemapd/catalogue.db", log)
        stop = server.stop

        def replace_and_stop():  # dpkg replaces the files while the old program runs; then systemd restarts it
            in_root("dpkg", "-i", "/next.deb")
            server.stop = stop
            stop()

        server.stop = replace_and_stop
        one_server(server, lambda: None)
    assert in_root("dpkg-query", "-W", "-f", "${Version}", "sitemapd") != before


if __name__ == "__main__":
    part, *arguments = sys.argv[1:]
    {"nodes": nodes, "image": image, "package": package}[part](*arguments)
    print(f"{part}: from {BIN}", flush=True)
