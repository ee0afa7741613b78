# SPDX-License-Identifier: LicenseRef-Undeclared
"""What the commands under tests/ have in common: `--help` shows what they are, wrong usage is refused in a
line with exit 2 before anything is installed or built, and a program that does not build is reported."""

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_ARGUMENT = ("kubernetes/run", "openapi-lint/run", "coverage")
WITH_HELP = (
    "buckets/run", "coverage", "console/run", "container/run", "debian13/run", "fault/run", "kubernetes/run", "lint/run", "metrics/run", "mutate/run",
    "openapi-lint/run", "package/run", "proxies/run", "release/run", "run", "soak/run", "stress/sources", "systemd/run", "valgrind/run",
)
WRONG = [
    *((name, ["surplus"]) for name in NO_ARGUMENT),
    ("console/run", ["surplus"]), ("console/run", ["--full", "surplus"]),
    ("debian13/run", ["--surplus"]), ("debian13/run", ["one", "two"]),
    ("fault/run", ["surplus"]),
    ("fuzz/run", ["--surplus"]), ("fuzz/run", ["surplus"]), ("fuzz/run", ["--executions", "many"]),
    ("lint/run", ["surplus.c"]), ("lint/run", ["server"]), ("lint/run", ["server/serve.h"]), ("lint/run", ["README.md"]), ("lint/run", ["--surplus"]), ("lint/run", ["--scripts", "surplus"]),
    ("metrics/run", ["surplus"]), ("metrics/run", ["--bin"]), ("metrics/run", ["--bin", "surplus"]), ("metrics/run", ["--bin", "server"]),
    ("package/run", ["buster"]), ("package/run", ["--surplus"]),
    ("release/run", ["buster"]), ("release/run", ["bookworm", "trixie"]),
    ("run", ["--surplus"]), ("run", ["--repeat"]), ("run", ["--repeat", "0"]), ("run", ["--repeat", "many"]), ("run", ["--failed", "surplus"]),
    ("soak/run", ["an hour"]), ("soak/run", ["0"]), ("soak/run", ["1", "2"]), ("soak/run", ["-5"]),
    ("stress/sources", ["long"]), ("stress/sources", ["5", "seed"]), ("stress/sources", ["5", "6", "7"]),
    ("systemd/run", ["surplus"]), ("systemd/run", ["one", "two"]),
    ("valgrind/run", ["test_surplus"]),
]
BUILD = [("metrics/run", []), ("systemd/run", []), ("soak/run", ["1"]), ("stress/sources", ["1"]), ("proxies/run", []), ("buckets/run", []), ("fault/run", ["disk"]), ("load/run", [])]


@pytest.fixture
def run(tmp_path):
    """Runs a command where every package is there, and what would install, build or enter another root
    says that it was called and fails."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("apt-get", "cmake", "ninja", "mmdebstrap", "dockerd", "unshare", "npm", "sudo"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} was called, and fails\nexit 9\n")
    (tools / "dpkg-query").write_text("#!/bin/sh\necho installed all\n")
    for name in ("nginx", "apache2", "haproxy", "caddy", "rclone", "strace", "systemd-analyze", "curl", "openssl", "promtool"):
        (tools / name).write_text("#!/bin/sh\nexit 9\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)

    def run(name, args, **env):
        clean = {key: value for key, value in os.environ.items() if key not in ("SITEMAPD_BIN", "JOBS")}
        clean.update(env, PATH=f"{tools}:{os.environ['PATH']}", TMPDIR=str(tmp_path))
        return subprocess.run(
            [os.path.join(ROOT, "tests", name), *args], cwd=str(tmp_path), env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )

    return run


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("name", WITH_HELP)
def test_help(run, name, option):
    done = run(name, [option])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"tests/{name}") and done.stdout.count("\n") >= 2
    assert "set -eu" not in done.stdout and "#" not in done.stdout


@pytest.mark.parametrize("name, args", WRONG)
def test_wrong_usage(run, name, args):
    done = run(name, args)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and f"tests/{name}" in done.stderr, done.stderr


@pytest.mark.parametrize("name, wrong", [("bench/nights", "many"), ("bench/run", "--surplus"), ("bench/scale", "--surplus")])
def test_benchmarks(run, name, wrong):
    told, refused = run(name, ["--help"]), run(name, [wrong])
    assert (told.returncode, told.stderr) == (0, "") and told.stdout.startswith(f"usage: {name[6:]} ")
    assert (refused.returncode, refused.stdout) == (2, "") and f"{name[6:]}: error: " in refused.stderr


@pytest.mark.parametrize("name, args", BUILD)
def test_a_build_that_fails(run, name, args):
    """It is tried though a program of an earlier build may be there, and its words are shown."""
    done = run(name, args)
    assert done.returncode == 1, done
    assert "cmake was called" in done.stderr and f"tests/{name}: does not build" in done.stderr, done.stderr


@pytest.mark.parametrize("name, args", BUILD)
def test_no_such_program(run, name, args):
    done = run(name, args, SITEMAPD_BIN="/nowhere/sitemapd")
    assert done.returncode == 2 and done.stderr == f"tests/{name}: no such program: /nowhere/sitemapd\n", done


LONG = """#!/bin/sh
[ "$1" = --preset ] && exit 0
{hold}
sleep 600 &
echo $$ $! >>"$PIDS"
wait
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return False


@pytest.mark.parametrize(
    "number, long, hold",
    [
        (signal.SIGTERM, "cmake", ""), (signal.SIGTERM, "ctest", ""), (signal.SIGINT, "ctest", ""), (signal.SIGHUP, "ctest", ""),
        (signal.SIGTERM, "ctest", "trap '' TERM"),
    ],
)
def test_a_signal_to_run_alone(run, tmp_path, number, long, hold):
    """It acts at once, while a build or the tests go on for long, and leaves no process."""
    tree = tmp_path / "tree"
    for name in ("tests/run", "deploy/lib/packages.sh", "tests/lib/usage.sh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), tree / name)
    for name in ("cmake", "ctest"):
        (tmp_path / "tools" / name).write_text(LONG.format(hold=hold) if name == long else "#!/bin/sh\n")
        (tmp_path / "tools" / name).chmod(0o755)
    pids = tmp_path / "pids"
    process = subprocess.Popen(
        ["env", "--default-signal=HUP,INT,TERM", tree / "tests" / "run", "--load"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{tmp_path}/tools:{os.environ['PATH']}", "PIDS": str(pids)},
    )
    started = []
    try:
        end = time.monotonic() + 300
        while len(started) < 2 and time.monotonic() < end:
            time.sleep(0.02)
            started = pids.read_text().split() if pids.exists() else []
        assert len(started) == 2 and all(alive(pid) for pid in started)
        process.send_signal(number)
        assert process.wait(300) == 128 + number  # it looks for what it started twice five seconds, and a busy machine takes its time
        assert [pid for pid in started if alive(pid)] == []
    finally:
        process.kill()
        process.wait()
        for pid in filter(alive, started):
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def quickstart(run, tmp_path):
    """deploy/quickstart in a tree whose program is a shell: it runs what `serve` says."""
    tree = tmp_path / "tree"
    shutil.copytree(os.path.join(ROOT, "deploy", "lib"), tree / "deploy" / "lib")
    shutil.copy(os.path.join(ROOT, "deploy", "quickstart"), tree / "deploy")
    (tree / "build" / "release").mkdir(parents=True)
    shutil.copy(os.path.realpath("/bin/sh"), tree / "build" / "release" / "sitemapd")
    os.mkfifo(tree / "never")
    (tmp_path / "tools" / "cmake").write_text("#!/bin/sh\n")
    readlink = tmp_path / "tools" / "readlink"  # as of a server's /proc/PID/exe for its own user
    readlink.write_text("#!/bin/sh\necho Permission denied >&2\nexit 1\n")
    readlink.chmod(0o755)

    def start(serve, *args, **streams):
        (start.tree / "serve").write_text(serve)
        env = {**os.environ, "PATH": f"{tmp_path}/tools:{os.environ['PATH']}"}
        streams = streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.run([start.tree / "deploy" / "quickstart", *args], env=env, stdin=subprocess.DEVNULL, text=True, timeout=300, **streams)

    start.tree = tree
    yield start
    start("", "stop")


SERVE = 'echo "$*" >asked; echo sitemapd: ready public=http://127.0.0.1:8080 admin=http://127.0.0.1:8081\nexec 3<>never\nread line <&3\n'


BUILDING = "building, with all output in build/quickstart/build.log\n"


def test_quickstart_of_a_tree_that_was_moved(quickstart, tmp_path):
    """CMake is configured again, and the server of the old place is replaced."""
    (tmp_path / "tools" / "cmake").write_text(f'#!/bin/sh\nls build/release >>"{tmp_path}/seen"\n')
    cache, old = quickstart.tree / "build" / "release" / "CMakeCache.txt", quickstart.tree
    cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={old}\n")
    first = quickstart(SERVE).stdout
    assert first.startswith(BUILDING) and cache.exists()
    quickstart.tree = old.rename(tmp_path / "moved")
    second = quickstart(SERVE)
    assert second.returncode == 0 and second.stdout.startswith(BUILDING), second
    assert first.split("(pid ")[1].split(")")[0] != second.stdout.split("(pid ")[1].split(")")[0]
    assert (tmp_path / "seen").read_text().split() == 2 * ["CMakeCache.txt", "sitemapd"] + 2 * ["sitemapd"]
    assert quickstart("", "stop").stdout == "stopped\n"


def test_quickstart_shows_on_a_terminal_how_far_the_build_is(quickstart, tmp_path):
    os.mkfifo(tmp_path / "release")
    (tmp_path / "tools" / "cmake").write_text(f'#!/bin/sh\n[ "$1" = --preset ] || {{ echo 7 of 9 steps done; read line <"{tmp_path}/release"; }}\n')
    screen, terminal = os.openpty()
    shown = b""

    def watch():
        nonlocal shown
        while b"building, 1 s: 7 of 9 steps done" not in shown:
            shown += os.read(screen, 4096)
        (tmp_path / "release").write_text("\n")

    watcher = threading.Thread(target=watch)
    watcher.start()
    done = quickstart(SERVE, stdout=terminal)
    watcher.join(300)
    os.close(terminal)
    os.close(screen)
    assert done.returncode == 0 and shown.startswith(BUILDING.replace("\n", "\r\n").encode()), shown


def test_quickstart_with_a_slow_start(quickstart, tmp_path):
    """Until nohup has become the program, what runs is another one: that is not a server that ended."""
    nohup = tmp_path / "tools" / "nohup"
    nohup.write_text('#!/bin/sh\nsleep 2\nexec "$@"\n')
    nohup.chmod(0o755)
    first = quickstart(SERVE)
    assert first.returncode == 0 and "sitemapd is running (pid " in first.stdout, first
    assert " --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081" in (quickstart.tree / "asked").read_text()
    assert "http://127.0.0.1:8080/sitemap_index.xml" in first.stdout and first.stderr == ""
    assert quickstart(SERVE).stdout == first.stdout, "the one that runs is found again"
    assert quickstart(SERVE, "stop").stdout == "stopped\n"
    assert quickstart(SERVE, "stop").stdout == "not running\n"


def test_two_quickstarts_at_once(quickstart, tmp_path):
    """The second waits for the first, and finds its server."""
    os.mkfifo(tmp_path / "release")
    (tmp_path / "tools" / "cmake").write_text(f'#!/bin/sh\n[ "$1" = --preset ] || [ -e "{tmp_path}/built" ] || read line <"{tmp_path}/release"\n')
    found = {}

    def first():
        found["first"] = quickstart(SERVE)

    def second():
        with open(tmp_path / "second", "w") as out:
            found["second"] = quickstart(SERVE, stdout=out, stderr=out)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    with open(tmp_path / "release", "w") as release:  # opens once the first one builds
        threads[1].start()
        while "waiting for another deploy/quickstart in this tree\n" not in ((tmp_path / "second").read_text() if (tmp_path / "second").exists() else ""):
            assert threads[1].is_alive(), (tmp_path / "second").read_text()
            time.sleep(0.05)
        (tmp_path / "built").touch()
        release.write("\n")
    for thread in threads:
        thread.join(300)
    said = (tmp_path / "second").read_text()
    assert (found["first"].returncode, found["second"].returncode) == (0, 0), (found, said)
    assert said == "waiting for another deploy/quickstart in this tree\n" + found["first"].stdout


def test_quickstart_of_a_server_that_ends(quickstart):
    done = quickstart("echo sitemapd: no such thing >&2\nexit 1\n")
    assert done.returncode == 1 and done.stdout == BUILDING, done
    assert done.stderr == "sitemapd: no such thing\ndeploy/quickstart: the server did not start\n", done
