# SPDX-License-Identifier: LicenseRef-Undeclared
import itertools

import pytest

from harness import Server, faster
from nodes import Cluster, PostgreSQL, until_its_end

numbers = itertools.count()


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
