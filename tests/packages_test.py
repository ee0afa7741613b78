# SPDX-License-Identifier: LicenseRef-Undeclared
"""What deploy/lib/packages.sh takes for installed, and what it has apt-get install: with Debian's own dpkg-query
on a database of our making, and an apt-get that only shows what it was asked."""

import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NATIVE = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
FOREIGN = "i386" if NATIVE != "i386" else "amd64"
# What the scripts call besides: nothing else is on the PATH, so that no tool is there by chance.
BASE = ("awk", "cat", "cut", "dirname", "dpkg", "dpkg-query", "env", "flock", "grep", "id", "ls", "mkdir", "mktemp", "nproc", "rm", "sed", "seq", "setsid", "sh", "sleep", "stat", "stty", "tail")
BY_STATUS = [
    ("unknown ok not-installed", False), ("install ok not-installed", False), ("purge ok not-installed", False),
    ("deinstall ok config-files", False), ("install ok half-installed", False), ("install reinstreq half-installed", False),
    ("install ok unpacked", False), ("install ok half-configured", False),
    ("install ok installed", True), ("hold ok installed", True),
    ("install ok triggers-awaited", True), ("install ok triggers-pending", True),
]


def stanza(name, status, architecture=NATIVE):
    text = f"Package: {name}\nStatus: {status}\n"
    if not status.endswith(" not-installed"):
        text += f"Version: 1\nArchitecture: {architecture}\nMulti-Arch: same\nMaintainer: nobody <nobody@example.com>\nDescription: none\n"
        if status.endswith("config-files"):
            text += "Config-Version: 1\n"
        if status.endswith("triggers-awaited"):
            text += "Triggers-Awaited: other\n"
        if status.endswith("triggers-pending"):
            text += "Triggers-Pending: something\n"
    elif architecture != NATIVE:
        text += f"Architecture: {architecture}\nMulti-Arch: same\n"
    return text + "\n"


class Machine:
    """One that has these packages, as dpkg sees it, and no tools but the base system's."""

    def __init__(self, folder):
        self.folder, self.dpkg, self.tools, self.asked = folder, folder / "dpkg", folder / "tools", folder / "asked"
        self.dpkg.mkdir()
        (self.dpkg / "arch").write_text(f"{NATIVE}\n{FOREIGN}\n")
        self.know("")
        self.tools.mkdir()
        for name in BASE:
            (self.tools / name).symlink_to(shutil.which(name))
        self.tool("apt-get", 'echo "apt-get $*" >>"$ASKED"')
        self.tool("id", "echo 0")

    def know(self, *stanzas):
        (self.dpkg / "status").write_text("".join(stanzas))

    def tool(self, name, script):
        (self.tools / name).unlink(missing_ok=True)
        (self.tools / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (self.tools / name).chmod(0o755)

    def run(self, *command):
        env = {"PATH": str(self.tools), "DPKG_ADMINDIR": str(self.dpkg), "TMPDIR": str(self.folder), "ASKED": str(self.asked)}
        self.asked.write_text("")
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done, self.asked.read_text().splitlines()

    def install(self, *names):
        return self.run(str(self.tools / "sh"), "-euc", '. deploy/lib/packages.sh; install_packages "$@"', "sh", *names)


def words(asked):
    """What apt-get was to install, which must be all that it was asked."""
    (line,) = asked
    before, _, names = line.partition(" --no-install-recommends ")
    assert before == "apt-get install -y -q", line
    return names.split()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("status, present", BY_STATUS)
def test_status(machine, status, present):
    machine.know(stanza("wanted", status), stanza("wanted-too", "install ok installed"))
    done, asked = machine.install("wanted", "wanted-too")
    assert done.returncode == 0, done.stdout
    assert asked == [] if present else words(asked) == ["wanted"], done.stdout


def test_a_name_that_dpkg_never_heard_of(machine):
    _, asked = machine.install("wanted")
    assert words(asked) == ["wanted"]


@pytest.mark.parametrize(
    "own, foreign, present",
    [
        ("install ok installed", "unknown ok not-installed", True), ("install ok installed", "install ok installed", True),
        ("unknown ok not-installed", "install ok installed", False), ("deinstall ok config-files", "install ok installed", False),
    ],
)
def test_another_architecture(machine, own, foreign, present):
    """dpkg answers a line for each architecture, and the compiler links with the machine's own."""
    machine.know(stanza("wanted", own), stanza("wanted", foreign, FOREIGN))
    _, asked = machine.install("wanted")
    assert asked == [] if present else words(asked) == ["wanted"]


def test_of_all_architectures(machine):
    machine.know(stanza("wanted", "install ok installed", "all").replace("Multi-Arch: same\n", ""))
    assert machine.install("wanted")[1] == []


def test_a_command(machine):
    """package/command asks for the command, whatever package it is from."""
    machine.know(stanza("wanted", "install ok installed"))
    assert words(machine.install("wanted/of-wanted")[1]) == ["wanted"]
    machine.tool("of-wanted", "")
    machine.know(stanza("wanted", "unknown ok not-installed"))
    assert machine.install("wanted/of-wanted")[1] == []


def test_lists_that_are_old(machine):
    machine.tool("apt-get", 'echo "apt-get $*" >>"$ASKED"; [ "$1" = update ] || grep -q update "$ASKED"')
    done, asked = machine.install("wanted")
    assert done.returncode == 0 and [line.split()[1] for line in asked] == ["install", "update", "install"], asked


def test_nobody_who_may_install(machine):
    machine.tool("id", "echo 1000")
    machine.know(stanza("wanted", "unknown ok not-installed"))
    done, asked = machine.install("wanted", "other")
    assert done.returncode == 1 and asked == []
    assert "missing packages: wanted other" in done.stdout and "apt-get install wanted other" in done.stdout


def needs(*scripts):
    """The packages that these install for a plain build, read from them: (name, command or "")."""
    text = "".join(open(os.path.join(ROOT, name), encoding="utf-8").read() for name in ("deploy/lib/packages.sh", *scripts)).replace("\\\n", " ")
    lists = re.findall(r'^build_packages="([^"]*)"|^ *install_packages (\$.*)', text, re.MULTILINE)
    found = {word for pair in lists for word in " ".join(pair).split() if not word.startswith("$")}
    return sorted(tuple((word + "/").split("/")[:2]) for word in found)


@pytest.mark.parametrize(
    "command, absent", [(name, package) for name in ("deploy/quickstart", "tests/run") for package, _ in needs(name)],
)
def test_each_needed_package_known_but_absent(machine, command, absent):
    """deploy/quickstart and tests/run, on a machine that has all that they need but one."""
    tree = machine.folder / "tree"
    for name in (command, "deploy/lib/packages.sh", "tests/lib/usage.sh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), tree / name)
    machine.tool("cmake", "exit 9")
    machine.know(*(stanza(name, "unknown ok not-installed" if name == absent else "install ok installed") for name, _ in needs(command)))
    for package, tool in needs(command):
        if tool and package != absent:
            machine.tool(tool, "")
    _, asked = machine.run(str(tree / command))
    assert words(asked) == [absent]
