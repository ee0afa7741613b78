# SPDX-License-Identifier: LicenseRef-Undeclared
import itertools
import json
import os
import signal
import subprocess

import pytest

import postgres

DRIVER = os.environ.get("LOG_DRIVER") or os.path.join(os.path.dirname(os.environ.get("SITEMAPD_BIN", "")), "tests/shared/log_driver")
EPOCH = "0123456789abcdef0123456789abcdef"
NUMBERS = itertools.count()


class Node:
    """A log's handle in a process of its own (log_driver.c)."""

    def __init__(self, url, name="-", epoch=EPOCH, within=(), schema="-"):
        self.name, self.site = name, next(NUMBERS) % 256
        self.process = subprocess.Popen([*within, DRIVER, url, epoch, name, schema], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def answer(self):
        line = self.process.stdout.readline()
        assert line, f"the driver ended: {self.process.wait(60)}"
        self.last = json.loads(line)
        return self.last

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def __call__(self, *words):
        """The outcome alone."""
        return self.ask(*words)["outcome"]

    def list(self, site=None):
        """Begins a list, of a site that no other node has."""
        return self("begin_list", 1 << 20, 60000, 0, 0, self.site if site is None else site)

    def write(self, text, deadline=30000):
        """A record; the outcome of its commit."""
        outcome = self("begin", 1 << 20, deadline)
        if outcome == "behind":
            self.catch_up()
            outcome = self("begin", 1 << 20, deadline)
        assert outcome == "yes", str(self.last)
        assert self("add", text, deadline) == "yes", str(self.last)
        return self("commit", deadline)

    def catch_up(self):
        """What is newer: the starts of the bodies."""
        found = []
        while True:
            told = self.ask("tail", 1 << 20)
            assert told["outcome"] == "yes", str(told)
            found += [record["start"] for record in told["records"]]
            if told["seq"] == told["head"]:
                return found

    def begin_as(self, other):
        """Goes where another is."""
        return self("at", other.last["seq"], other.last["chain"])

    def interrupt(self):
        self.process.send_signal(signal.SIGUSR1)

    def end(self):
        self.process.stdin.close()
        try:
            assert self.process.wait(60) == 0
        finally:
            self.process.kill()


@pytest.fixture
def nodes():
    """Makes nodes; each ends without a sanitizer's report."""
    made = []

    def make(url, *args, **more):
        made.append(Node(url, *args, **more))
        return made[-1]

    yield make
    failed = None
    for node in made:
        try:
            node.end()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed = failed or error
    if failed:
        raise failed


@pytest.fixture(scope="module")
def server():
    """One for all tests of a file; who breaks it mends it."""
    with postgres.Server() as one:
        yield one


@pytest.fixture
def database(server):
    """A fresh database, by its URL."""
    name = f"shared{next(NUMBERS)}"
    server.sql(f"CREATE DATABASE {name}", "postgres")
    yield server.url(name)
    server.set(synchronous_standby_names="''")


@pytest.fixture
def founder(nodes, database):
    node = nodes(database, "founder")
    assert node("found", EPOCH) == "yes", node.last
    return node
