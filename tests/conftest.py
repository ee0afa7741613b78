# SPDX-License-Identifier: LicenseRef-Undeclared
"""For all tests in Python: none hangs for ever."""

import faulthandler
import os
import signal

import pytest

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
