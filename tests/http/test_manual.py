# SPDX-License-Identifier: LicenseRef-Undeclared
"""The manual pages hold every command, option and setting, and tools find no fault in them."""

import os
import re
import shutil
import subprocess

import pytest

from harness import BIN, environment
from test_terminal import commands

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(os.path.dirname(BIN), "deploy", "man")
needs_mandoc = pytest.mark.skipif(not shutil.which("mandoc"), reason="no mandoc here")


def page(name):
    return os.path.join(PAGES, name)


def rendered(name):
    done = subprocess.run(["mandoc", "-Tutf8", "-O", "width=200", page(name)], stdout=subprocess.PIPE, check=True)
    return re.sub(".\b", "", done.stdout.decode()).replace("\u2010", "-")


@needs_mandoc
@pytest.mark.parametrize("name", ["sitemapd.1", "sitemapd.conf.5"])
def test_no_faults(name):
    done = subprocess.run(["mandoc", "-Tlint", page(name)], stdout=subprocess.PIPE, text=True)
    # The other page is not installed where it is built.
    faults = [line for line in done.stdout.splitlines() if "referenced manual not found: Xr sitemapd" not in line]
    assert faults == []
    if shutil.which("man") and shutil.which("groff"):
        env = environment({"LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        done = subprocess.run(["man", "--warnings", "-P", "cat", "-l", page(name)], capture_output=True, text=True, env=env)
        assert done.returncode == 0 and done.stderr == ""


@needs_mandoc
def test_every_command_and_option():
    text = rendered("sitemapd.1").split("\nCOMMANDS\n")[1].split("\nENVIRONMENT\n")[0]
    assert len(commands()) >= 22
    for name, options in commands():
        section = re.search(rf"\n     {name}( .*)?\n((?:      .*\n|\n)+)", text)
        assert section, name
        for option in set(options) - {"--config", "--database", "--shared", "--server", "--token-file", "--ca-file", "--help"}:
            assert re.search(rf"^ +{option}( \S+)?( .*)?$", section.group(2), re.M), (name, option)


def settings():
    section = None
    with open(os.path.join(ROOT, "config", "sitemapd.conf"), encoding="utf-8") as file:
        for line in file:
            found = re.match(r";?\[(\w+)", line)
            section = found.group(1) if found else section
            found = re.match(r";?(\w+) = ", line)
            if found:
                yield section, found.group(1)


@needs_mandoc
def test_every_setting():
    text = rendered("sitemapd.conf.5")
    known = list(settings())
    assert ("server", "listen") in known and ("source", "serve") in known
    for name, key in known:
        section = re.search(rf'\n   \[{name}(?: "name")?\]\n((?:     .*\n|\n)+)', text)
        assert section, name
        assert re.search(rf"^     {key}( = .*)?(  .*)?$", section.group(1), re.M), (name, key)


@needs_mandoc
def test_every_variable():
    text = rendered("sitemapd.1").split("\nENVIRONMENT\n")[1].split("\nFILES\n")[0]
    variables = set(re.findall(r"^     (SITEMAPD_\w+)", text, re.M))
    with open(os.path.join(ROOT, "config", "settings.c"), encoding="utf-8") as file:
        assert variables - {"SITEMAPD_CONFIG"} == set(re.findall(r'"(SITEMAPD_\w+)"', file.read()))
