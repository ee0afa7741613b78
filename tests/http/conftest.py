# SPDX-License-Identifier: LicenseRef-Undeclared
import pytest

from harness import Server


@pytest.fixture
def start(tmp_path):
    """Starts servers; each ends by SIGTERM with exit 0 and without a report, unless it was killed."""
    servers = []

    def start_one(*args, ready=True, folder=None, **options):
        server = Server(folder or tmp_path, *args, **options)
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
