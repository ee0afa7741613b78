# SPDX-License-Identifier: LicenseRef-Undeclared
"""Containers of the image under test, on the host's network. Docker's command line and the standard
library only."""

import datetime
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from harness import HOST, ORIGIN, TOKEN, ask  # noqa: E402

IMAGE = os.environ["IMAGE"]  # of Debian 13
OLD_IMAGE = os.environ["OLD_IMAGE"]  # of Debian 12
PATIENCE = 120  # seconds that a busy machine may take
FOLDER = "/srv/sitemaps"

# All that the image can do without.
LOCKED = [
    "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--memory", "128m", "--memory-swap", "128m",
    "--pids-limit", "64",
]


def docker(*args, check=True):
    done = subprocess.run(["docker", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert not check or done.returncode == 0, (args, done.stderr.decode())
    return done


def inspect(name, kind="container"):
    return json.loads(docker(kind, "inspect", name).stdout)[0]


def until(check, what):
    end = time.monotonic() + PATIENCE
    while not (value := check()):
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)
    return value


def moment(text):
    """Docker's RFC 3339 with nanoseconds, as Unix time."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return seconds + float("0." + (fraction or "0"))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Container:
    """One that serves ORIGIN. Its catalogue is in a volume that outlives it."""

    count = 0

    def __init__(self, folder=None, state=None, env=()):
        Container.count += 1
        self.name = f"sitemapd-test-{os.getpid()}-{Container.count}"
        self.state = state or self.name  # a volume's name, or a folder
        self.public = f"127.0.0.1:{free_port()}"
        self.admin = f"127.0.0.1:{free_port()}"
        self.env = {
            "SITEMAPD_LISTEN": self.public, "SITEMAPD_ADMIN_LISTEN": self.admin, "SITEMAPD_SITE": ORIGIN, "SITEMAPD_TOKEN": TOKEN, **dict(env),
        }
        self.mounts = ["-v", f"{self.state}:/var/lib/sitemapd"]
        if folder:
            self.mounts += ["-v", f"{folder}:{FOLDER}:ro"]
            self.env["SITEMAPD_SOURCE"] = f"{FOLDER}={ORIGIN}/"

    def run(self, image=IMAGE):
        settings = [word for item in self.env.items() for word in ("-e", "=".join(item))]
        self.starts = 1
        docker("run", "-d", "--name", self.name, "--network", "host", "--health-interval", "1s", *LOCKED, *settings, *self.mounts, image)
        return self.wait()

    def wait(self):
        def ready():
            assert self.running(), self.log()
            return self.ready_line()

        until(ready, "ready")
        return self

    def running(self):
        return inspect(self.name)["State"]["Running"]

    def log(self, *args):
        done = docker("logs", *args, self.name)
        return done.stdout.decode() + done.stderr.decode()

    def ready_line(self):
        """With the time at which the engine read it; the last start's. Not told from an earlier one's by
        that time: a busy engine notes a start later than the program, ready at once, says so."""
        lines = [line for line in docker("logs", "-t", self.name).stdout.decode().splitlines() if "sitemapd: ready" in line]
        return lines[self.starts - 1] if len(lines) >= self.starts else None

    def ready_after(self):
        """Seconds from the start, as the engine notes it, to being ready; below 0 where it noted it late."""
        return moment(self.ready_line().split()[0]) - moment(inspect(self.name)["State"]["StartedAt"])

    def stop(self):
        docker("stop", "-t", "60", self.name)
        state = inspect(self.name)["State"]
        assert state["ExitCode"] == 0 and not state["OOMKilled"], (state, self.log())

    def start(self):
        self.starts += 1
        docker("start", self.name)
        return self.wait()

    def replace(self, image):
        """As an upgrade does: another image on the same state."""
        self.stop()
        docker("rm", self.name)
        return self.run(image)

    def remove(self):
        docker("rm", "-f", "-v", self.name, check=False)
        if "/" not in self.state:
            docker("volume", "rm", "-f", self.state, check=False)

    def pid(self):
        return inspect(self.name)["State"]["Pid"]

    def health(self):
        return inspect(self.name)["State"]["Health"]["Status"]

    def exec(self, *args):
        """The program as an operator runs it in the container."""
        return docker("exec", self.name, "sitemapd", *args, check=False)

    def get(self, path, headers=()):
        return ask(self.public, "GET", path, headers, host=HOST)

    def register(self, loc):
        headers = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")]
        return ask(self.admin, "POST", "/v1/sitemaps", headers, json.dumps({"loc": loc}).encode(), host=self.admin)
