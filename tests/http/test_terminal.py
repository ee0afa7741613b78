"""What a person sees: colours on a terminal and nowhere else, help that fits it, completions."""

import fcntl
import functools
import os
import pty
import re
import shutil
import struct
import subprocess
import termios

import pytest

from harness import BIN, environment, sitemapd

ESCAPE = "\x1b["


def on_terminal(*args, env=None, columns=80):
    """What the program writes where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [BIN, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=environment({"TERM": "xterm", **(env or {})})
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not more:
            break
        seen += more
    os.close(ours)
    process.wait()
    return seen.decode()


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_colours_on_a_terminal_alone():
    assert ESCAPE in on_terminal("--help")
    assert ESCAPE in on_terminal("nonsense")
    assert ESCAPE not in sitemapd("--help").out
    assert ESCAPE not in sitemapd("nonsense").err
    assert plain(on_terminal("--help")).replace("\r\n", "\n") == sitemapd("--help").out


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}], ids=str)
def test_no_colours_where_they_are_not_wanted(env):
    assert ESCAPE not in on_terminal("--help", env=env)
    assert ESCAPE not in on_terminal("nonsense", env=env)


@pytest.mark.parametrize("columns", [40, 72, 100, 200])
def test_help_fits(columns):
    text = plain(on_terminal("import", "--help", columns=columns))
    prose = [line for line in text.splitlines() if not line.startswith("    ")]
    longest = max(len(line) for line in prose)
    assert longest <= max(60, min(columns, 100)), prose


@functools.lru_cache(maxsize=None)
def commands():
    """Each command with its options, as the help has them."""
    return tuple(read_commands())


def read_commands():
    whole = sitemapd("--help").out
    for topic in re.findall(r"\n(?!A first|Options)[A-Z][^\n]*:\n((?:  .*\n)+)", whole):
        for line in topic.splitlines():
            words = line.strip().split("  ")[0].split()
            name = " ".join(word for word in words if word.islower())
            help = sitemapd(*name.split(), "--help").out
            yield name, re.findall(r"^  (--[a-z-]+)", help, re.M)


def test_the_help_lists_commands():
    found = dict(commands())
    assert len(found) >= 22 and "--cross-host" in found["site add"] and "--config" in found["list"]


BASH = r"""
source <("$SITEMAPD_BIN" completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sitemapd 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"""


def bash(*words):
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", "sitemapd", *words], stdout=subprocess.PIPE, check=True, text=True,
        env=environment({"SITEMAPD_BIN": BIN}),
    )
    return done.stdout.split()


def fish(*words):
    script = '"$SITEMAPD_BIN" completion fish | source; complete -C "$LINE"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], stdout=subprocess.PIPE, check=True, text=True,
        env=environment({"SITEMAPD_BIN": BIN, "LINE": " ".join(("sitemapd",) + words)}),
    )
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", [bash, fish], ids=lambda s: s.__name__)
def test_completions(shell, tmp_path):
    if shell is fish and not shutil.which("fish"):
        pytest.skip("no fish here")
    (tmp_path / "one.conf").write_text("")
    (tmp_path / "folder").mkdir()
    assert {"serve", "site", "check-config", "completion"} <= set(shell(""))
    assert shell("che") == ["check", "check-config"] or set(shell("che")) == {"check", "check-config"}
    assert set(shell("site", "")) >= {"add", "list", "update", "remove"}
    assert shell("site", "u") == ["update"]
    assert shell("--database", "x", "tok") == ["token"]
    assert shell("site", "add", "--no-i") == ["--no-index"]
    assert set(shell("completion", "")) == {"bash", "zsh", "fish"}
    assert shell("import", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert shell("check-config", "--config", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert [p.rstrip("/") for p in shell("serve", "--source", f"{tmp_path}/")] == [f"{tmp_path}/folder"]
    assert shell("add", "--lastmod", "") == []
    for name, options in commands():
        assert set(options) <= set(shell(*name.split(), "--")), name


def test_bash_completes_behind_an_equals_sign(tmp_path):
    (tmp_path / "one.conf").write_text("")
    assert bash("list", "--config", "=", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert bash("--config", "=", "x", "li") == ["list"]


def test_zsh_completions(tmp_path):
    script = sitemapd("completion", "zsh").out
    assert script.startswith("#compdef sitemapd\n")
    for name, options in commands():
        section = re.search(rf"\n        '{name}'\) (.*?) ;;\n", script, re.S)
        assert section, name
        for option in options:
            assert re.search(rf"'\*?{option}[=\[]", section.group(1) + script.split("commands=(")[0]), (name, option)
    if not shutil.which("zsh"):
        pytest.skip("no zsh here to read it")
    path = tmp_path / "_sitemapd"
    path.write_text(script)
    subprocess.run(["zsh", "-f", "-n", str(path)], check=True)
