# SPDX-License-Identifier: LicenseRef-Undeclared
"""For all tests in Python: servers to start, and none hangs for ever."""

import faulthandler
import itertools
import os
import signal

import pytest

from harness import Server, faster
from nodes import Cluster, PostgreSQL, until_its_end

numbers = itertools.count()
LIMIT_S = int(300 * float(os.environ.get("SITEMAPD_SLOWNESS", "1")))


@pytest.fixture(autouse=True)
def limit():
    """Fails a test that hangs, shows where each thread waits, and lets fixtures end what they started. A file as a
    whole is ended by ctest (sitemapd_test in CMakeLists.txt)."""

    def end(*_):
        faulthandler.dump_traceback(all_threads=True)
        raise TimeoutError(f"not over after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """The server keeps /proc/PID/fd and /proc/PID/io for root: another user cannot count its descriptors."""
    outcome = yield
    error = outcome.excinfo and outcome.excinfo[1]
    if os.geteuid() != 0 and isinstance(error, PermissionError) and str(error.filename).startswith("/proc/"):
        pytest.skip(f"{error.filename} needs root")


@pytest.fixture
def start(request, tmp_path):
    """Starts servers; each ends by SIGTERM with exit 0 and without a report, unless it was killed."""
    servers = []
    mark = request.node.get_closest_marker("faster")
    hurry = faster(*mark.args) if mark else {}

    def start_one(*args, ready=True, folder=None, env=None, **options):
        server = Server(folder or tmp_path, *args, env=hurry | dict(env or {}), **options)
        servers.append(server)
        return server.start(expect_ready=ready)

    yield start_one
    failed = None
    for server in servers:
        try:
            if server.process is not None:  # one that died by itself is reported as well
                server.stop()
        except AssertionError as error:
            failed = failed or error
        finally:
            server.kill()
    if failed:
        raise failed


@pytest.fixture
def server(start):
    """A server with one site, https://www.example.com, and its empty index at /sitemap_index.xml."""
    return start()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server for all tests of a file that only read, or that write apart from each other."""
    server = Server(tmp_path_factory.mktemp("shared")).start()
    yield server
    try:
        server.stop()
    finally:
        server.kill()


@pytest.fixture(scope="module")
def postgres():
    """One for all tests of a file that leave it running as it is."""
    with PostgreSQL() as started:
        yield started


@pytest.fixture
def cluster(request, tmp_path):
    """Nodes that share a catalogue: in a database of their own, or (own_postgres) in a PostgreSQL of their own."""
    if request.node.get_closest_marker("own_postgres"):
        yield from until_its_end(Cluster(tmp_path))
        return
    database = request.getfixturevalue("postgres").beside(f"of_{next(numbers)}")
    try:
        yield from until_its_end(Cluster(tmp_path, database))
    finally:
        database.drop()
