# SPDX-License-Identifier: LicenseRef-Undeclared
"""What a person sees: colours on a terminal and nowhere else, help that fits it, completions."""

import contextlib
import fcntl
import functools
import json
import os
import pty
import re
import select
import shlex
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import termios

import pytest

from harness import BIN, environment, seconds, sitemapd

ESCAPE = "\x1b["


def on_terminal(*args, env=None, columns=80):
    """What the program writes where stdout and stderr are a terminal."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # a root of its own without /dev/pts
        pytest.skip(f"needs a terminal: {error}")
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
    for topic in re.findall(r"\n(?!Quick start|Global options)[A-Z][^\n]*:\n((?:  .*\n)+)", whole):
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


def surroundings(**more):
    """Completions ask the program that is typed."""
    return environment({"SITEMAPD_BIN": BIN, "PATH": os.path.dirname(BIN) + os.pathsep + os.environ["PATH"], **more})


def bash_lines(*words):
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", "sitemapd", *words], stdout=subprocess.PIPE, check=True, text=True,
        env=surroundings(),
    )
    return done.stdout.splitlines() if done.stdout != "\n" else []


def bash(*words):
    return " ".join(bash_lines(*words)).split()


def fish(*words):
    script = '"$SITEMAPD_BIN" completion fish | source; complete -C "$LINE"'
    with tempfile.TemporaryDirectory() as home:  # fish makes folders there, without a configuration too
        own = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home}
        done = subprocess.run(
            ["fish", "--no-config", "-c", script], stdout=subprocess.PIPE, check=True, text=True,
            env=surroundings(LINE=" ".join(("sitemapd",) + words), **own),
        )
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


ZSH = r"""
source <("$SITEMAPD_BIN" completion zsh)
compset() { [[ $PREFIX == $~2* ]] && PREFIX=${PREFIX#*=} }
_files() { local -a found; [[ $1 == -/ ]] && found=($PREFIX*(N/)) || found=($PREFIX*(N)); print -l -- $found }
compadd() { print -l -- $names }
words=("$@"); CURRENT=$#; PREFIX=$words[-1]
_sitemapd
"""


def zsh(*words):
    """The script as it is, between stand-ins for the functions that only a completing shell has."""
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH, "zsh", "sitemapd", *words], stdout=subprocess.PIPE, check=True, text=True,
        env=surroundings(),
    )
    return done.stdout.split()


def there(shell):
    if not shutil.which(shell.__name__.partition("_")[0]):
        pytest.skip("no such shell here")


@pytest.mark.parametrize("shell", [bash, fish, zsh], ids=lambda s: s.__name__)
def test_completions(shell, tmp_path):
    there(shell)
    (tmp_path / "one.conf").write_text("")
    (tmp_path / "folder").mkdir()
    assert {"serve", "site", "check-config", "completion"} <= set(shell(""))
    assert shell("che") == ["check", "check-config"] or set(shell("che")) == {"check", "check-config"}
    assert set(shell("site", "")) >= {"add", "list", "update", "remove"}
    assert shell("site", "u") == ["update"]
    assert shell("crawlers", "i") == ["import"]
    assert shell("--database", "x", "tok") == ["token"]
    assert shell("site", "add", "--no-i") == ["--no-index"]
    assert set(shell("completion", "")) == {"bash", "zsh", "fish"}
    assert shell("import", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert shell("check-config", "--config", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert [p.rstrip("/") for p in shell("serve", "--source", f"{tmp_path}/")] == [f"{tmp_path}/folder"]
    assert shell("add", "--lastmod", "") == []
    for name, options in commands():
        assert set(options) <= set(shell(*name.split(), "--")), name


def split(words):
    """As bash does it before a completion sees them: colons and equals signs are words of their own."""
    pieces = [re.findall(r"[:=]|[^:=]+", word) if word else [""] for word in words]
    return sum(([*found[:-1], found[-1]] + ([""] if word.endswith("=") else []) for word, found in zip(words, pieces)), [])


def bash_urls(*words):
    """What the word becomes: bash replaces only what stands behind the last colon."""
    word = words[-1].rpartition("=")[2]
    return [word[: word.rfind(":") + 1] + found for found in bash(*split(words))]


def fish_urls(*words):
    return [found.removeprefix("--index=").removeprefix("--site=") for found in fish(*words)]


def zsh_urls(*words):
    return [found.removeprefix("--index=") for found in zsh(*words)]


@pytest.mark.parametrize("shell", [bash_urls, fish_urls, zsh_urls], ids=lambda s: s.__name__)
def test_sites_and_indexes_of_the_catalogue(shell, tmp_path):
    there(shell)
    database = str(tmp_path / "c.db")
    sites = ["https://shop.example.com:8443", "https://www.example.com"]
    indexes = [site + "/sitemap_index.xml" for site in sites]
    here = ("--database", database)
    assert shell(*here, "site", "remove", "") == [] and not os.path.exists(database), "there is no catalogue"
    for site in sites:
        assert sitemapd("site", "add", site, database=database).code == 0
    assert sorted(shell(*here, "site", "remove", "")) == sites
    assert shell("site", "update", *here, "https://w") == sites[1:]
    assert shell("site", "update", *here, "https://shop.example.com:8") == sites[:1]
    assert sorted(shell(*here, "list", "--index", "")) == indexes
    assert sorted(shell(*here, "list", "--index", "https:")) == indexes
    assert shell(*here, "list", "--index=https://sh") == indexes[:1]
    assert sorted(shell(f"--database={database}", "render", "https://")) == indexes
    assert shell(*here, "index", "remove", "https://sh") == shell(*here, "doctor", "https://sh") == indexes[:1]
    assert shell(*here, "token", "add", "x", "--site", "https://www.") == sites[1:]
    assert shell(*here, "site", "add", "") == [], "a new one is not a name of an old one"
    upstream = ("--upstream", "https://www.example.com/sitemap.xml", "--index", indexes[-1])
    assert sitemapd("source", "add", "old", *upstream, database=database).code == 0
    assert shell(*here, "source", "remove", "") == shell(*here, "source", "set", "o") == ["old"]


def test_bash_completes_behind_an_equals_sign(tmp_path):
    (tmp_path / "one.conf").write_text("")
    assert bash("list", "--config", "=", f"{tmp_path}/o") == [f"{tmp_path}/one.conf"]
    assert bash("--config", "=", "x", "li") == ["list"]


def test_words_that_may_follow():
    """Asked directly: each line is a whole word and what it means, or leaves paths to the shell."""
    assert "update\tchange a site" in sitemapd("complete", "--", "site", "up").out
    assert sitemapd("complete", "--", "import", "").out == ":file\n"
    assert sitemapd("complete", "--", "--config", "").out == ":file\n"
    assert sitemapd("complete", "--", "serve", "--source=/s").out == ":folder\n"
    for command in ("add", "import", "scan"):  # there it is a name
        assert sitemapd("complete", "--", command, "--source", "").out == "", command
    for nothing in (("add", ""), ("add", "--lastmod", ""), ("nonsense",), ("site", "nonsense", "")):
        assert sitemapd("complete", "--", *nothing).out == "", nothing
    assert sitemapd("complete").out == sitemapd("complete", "--", "").out != ""
    assert sitemapd("complete", "--", *["x" * 300] * 300).code == 0


def test_completions_expand_the_home_folder(tmp_path):
    """A shell hands `~/c.db` over as it was typed."""
    database = str(tmp_path / "c.db")
    assert sitemapd("site", "add", "https://www.example.com", database=database).code == 0
    done = subprocess.run([BIN, "complete", "--", "--database", "~/c.db", "site", "remove", ""],
        stdout=subprocess.PIPE, text=True, env=surroundings(HOME=str(tmp_path)))
    assert done.stdout == "https://www.example.com\tsite\n"


# An index may be called so by any token that may add one.
URLS = [f"https://www.example.com/{name}" for name in ("zz$(touch$IFS/{}).xml", "yy';touch$IFS'/{}';.xml", "xx&touch$IFS/{}&.xml")]


def test_bash_quotes_what_it_inserts(tmp_path):
    """The line that a completion made is evaluated by a shell: no URL is code there, and each arrives as it is."""
    there(bash)
    database, pwned = str(tmp_path / "c.db"), tmp_path / "pwned"
    urls = [url.replace("/{}", str(pwned)) for url in URLS]
    assert sitemapd("site", "add", "https://www.example.com", database=database).code == 0
    for url in urls:
        assert sitemapd("index", "add", url, database=database).code == 0
    here = ("--database", database, "render")
    for url in urls:
        for typed in (url[:26], url[:26] + "\\" + url[26], *(quote + url[:26] for quote in "\"'")):
            words = [*here, typed] if typed[0] in "\"'" else split([*here, typed])
            offered = bash_lines(*words)
            if typed[0] in "\"'":
                assert offered == [], "quotes are open: what would have to be quoted is not offered"
                continue
            line = "printf %s https:" + offered[0]
            made = subprocess.run(["bash", "--norc", "-c", line], stdout=subprocess.PIPE, text=True, cwd=tmp_path, timeout=seconds(30))
            assert len(offered) == 1 and made.stdout == url, (typed, line)
    assert bash_lines(*here, '"https://www.example.com/s') == ["https://www.example.com/sitemap_index.xml"]
    assert not pwned.exists()


SHELLS = {
    "bash": ("bash --noprofile --rcfile {}/rc -i", "rc", "PS1='READY>'\nsource <(sitemapd completion bash)\n"),
    "zsh": ("zsh -i", ".zshrc", "autoload -Uz compinit; compinit -u\nsource <(sitemapd completion zsh)\nPS1='READY>'\n"),
    "fish": ("fish --no-config -C source\\ {}/rc -i", "rc", "sitemapd completion fish | source\nfunction fish_prompt; echo 'READY>'; end\n"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completed_line_runs_no_code(shell, tmp_path):
    """Typed into an interactive shell, with a TAB."""
    if not shutil.which(shell):
        pytest.skip("no such shell here")
    command, name, text = SHELLS[shell]
    (tmp_path / name).write_text(text)
    database, pwned = str(tmp_path / "c.db"), tmp_path / "pwned"
    assert sitemapd("site", "add", "https://www.example.com", database=database).code == 0
    assert sitemapd("index", "add", URLS[0].replace("/{}", str(pwned)), database=database).code == 0
    homes = {key: str(tmp_path) for key in ("HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a terminal: {error}")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 400, 0, 0))
    process = subprocess.Popen(
        shlex.split(command.format(tmp_path)), stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env=surroundings(**homes, SITEMAPD_DATABASE=database, TERM="xterm"),
    )  # fmt: skip
    os.close(theirs)
    seen = b""

    def wait_for(what):
        nonlocal seen
        while what not in seen:
            assert select.select([ours], [], [], seconds(30))[0], (what, seen)
            seen += os.read(ours, 65536)
        seen = seen[seen.index(what) + len(what) :]

    try:
        wait_for(b"READY>")
        os.write(ours, b"sitemapd render https://www.example.com/zz\t")
        wait_for(b".xml")
        os.write(ours, b"\r")
        wait_for(b"has no entries")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert not pwned.exists()


def test_json_drives_no_terminal(tmp_path):
    """Controls of C1, what reverses text, and DEL are escaped wherever a command prints JSON; it says the same."""
    database, hostile = tmp_path / "catalogue.db", "# \u202egnp.\u2066\u0085\u009b2J\x7f\ufeff \u00e4\u2603"
    assert sitemapd("site", "add", "https://www.example.com", database=database).code == 0
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("UPDATE site SET robots = ?", (hostile,))
        db.commit()
    printed = sitemapd("site", "list", "--json", database=database).out
    assert hostile in json.loads(printed)["robots"]
    assert "\u00e4\u2603" in printed and not set(hostile) - set("# gnp.2J\u00e4\u2603") & set(printed), printed.encode()
