#!/usr/bin/python3
# SPDX-License-Identifier: LicenseRef-Undeclared
"""Checks who includes whom (ARCHITECTURE.md), and a few other rules of the tree that no compiler
knows. Usage: include_rules.py ROOT. Prints `file:line: message` for each breach; exit 1 if any."""

import os
import re
import sys

# Libraries by the header that brings them. What is in neither table is not a known library.
LIBRARIES = {
    "curl/curl.h": "curl",
    "expat.h": "expat",
    "gnutls/abstract.h": "gnutls",
    "gnutls/crypto.h": "gnutls",
    "gnutls/gnutls.h": "gnutls",
    "gnutls/x509.h": "gnutls",
    "idn2.h": "idn2",
    "jansson.h": "jansson",
    "libpq-fe.h": "libpq",
    "microhttpd.h": "microhttpd",
    "sqlite3.h": "sqlite3",
    "xxhash.h": "xxhash",
    "zlib.h": "zlib",
    "cmocka.h": "cmocka",
}
LIBC = set(
    """assert ctype dirent endian errno fcntl fenv float fnmatch getopt glob grp ifaddrs inttypes iso646
    langinfo libgen limits locale math malloc mntent netdb poll pthread pwd regex sched search
    semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdio_ext
    stdlib stdnoreturn string strings dlfcn sysexits syslog termios threads time uchar ucontext unistd
    utime wchar wctype byteswap execinfo fts ftw paths""".split()
)
LIBC_FOLDERS = ("sys", "arpa", "netinet", "net", "linux", "asm", "bits")

# Folder: (folders of this tree, libraries) it may include, itself aside. The longest prefix counts.
RULES = {
    "config": (("server/base", "server/rules"), ()),
    "db": (("server/base", "server/rules"), ("sqlite3",)),
    "db/shared": (("db", "server/base", "server/rules"), ("gnutls", "sqlite3", "zlib")),
    "db/shared/pg": (("db/shared", "server/base"), ("gnutls", "libpq")),
    "db/history": (("db", "server/base", "server/rules"), ("sqlite3", "zlib")),
    "server/base": ((), ()),
    "server/rules": (("server/base",), ("idn2",)),
    "server/input": (("server/base", "server/rules"), ("expat", "jansson", "xxhash", "zlib")),
    "server/pages": (("db", "server/base", "server/rules"), ("zlib", "xxhash")),
    "server/http": (("server/pages", "server/base", "server/rules", "server/crypto/tls"), ("microhttpd", "zlib")),
    "server/sources": (("db", "server/input", "server/base", "server/rules"), ("xxhash", "zlib")),
    "server/sources/remote": (("server/sources", "server/client", "server/trace", "db", "server/input", "server/base", "server/rules"), ("xxhash",)),
    "server/crypto": (("server/base",), ("gnutls",)),
    "server/log": (("server/base",), ()),
    "server/trace": (("server/client", "server/log", "server/base", "server/rules"), ("jansson",)),
    "server/crawlers": (("db", "server/base"), ("jansson", "xxhash")),
    "server/client": (("server/base", "server/rules"), ("curl",)),
    "server/doctor": (("server/client", "server/input", "server/base", "server/rules"), ()),
    "server/api": (
        ("server/http", "server/pages", "server/input", "server/sources", "server/crawlers", "server/engines/report", "db", "server/base", "server/rules", "server/log", "server/crypto/token", "server/trace"),
        (),
    ),
    "server/engines/report": (("db", "server/base", "server/rules"), ()),
    "server/engines": (
        ("server/engines/report", "config", "db", "server/api/routes", "server/client", "server/log", "server/base", "server/rules"),
        ("gnutls", "jansson"),
    ),
    "server/notify": (("config", "db", "server/api/routes", "server/sources", "server/client", "server/log", "server/trace", "server/base", "server/rules"), ()),
    "deploy/man": (("server/cli", "config"), ()),
    "server/cli": (
        ("db", "server/input", "server/sources", "server/base", "server/rules", "config", "server/pages", "server/crypto/tls", "server/crypto/token", "server/client", "server/doctor", "server/crawlers", "server/engines/report", "server/api/inside"),
        ("jansson", "xxhash", "zlib"),
    ),
}
# The files in server/ itself are the assembly, which sees every part, but no library behind them;
# main() only starts.
ALL_PARTS = tuple(RULES)
ASSEMBLY = "server"
MAIN = ("server/main", ("server/cli", "server/serve"), ())
# Tests may include every part; what stays with one folder in the tree stays with its tests too.
TEST_LIBRARIES = {
    "tests/unit/db": ("sqlite3",),
    "tests/unit/lib": ("sqlite3",),
    "tests/unit/alloc": ("sqlite3",),
    "tests/unit/pages": ("zlib", "xxhash"),
    "tests/unit/http": ("microhttpd", "zlib"),
    "tests/unit/engines": ("gnutls", "jansson"),
    "tests/unit/input": ("zlib",),
    "tests/bench": ("microhttpd", "sqlite3", "zlib"),
    "tests/fuzz": ("xxhash", "zlib"),
}
SOURCE_FOLDERS = ("config", "db", "deploy", "server", "tests")
MAIN_MAX_LINES = 100
# What others see of the catalogue: any engine could be behind it.
ENGINE_NEUTRAL = {f"db/{name}.h" for name in ("catalogue", "change", "check", "crawler", "day", "engine", "entry", "history", "registry", "shared", "source", "spool", "status", "urlset", "view")}
ENGINE_WORDS = {
    "sql", "sqlite", "sqlite3", "stmt", "statement", "pragma", "rowid", "transaction",
    "transactions", "savepoint", "savepoints", "rollback", "table", "select",
}

# The layers of the catalogue, from the bottom: a file includes none of a layer above its own. The doors
# (db/*.h) are words that all use; what is behind them (db/*.c) stands above all layers.
LAYERS = ("db/file", "db/read", "db/tx", "db/history", "db/shared", "db/write")

INCLUDE = re.compile(r"^\s*#\s*include\b\s*(.*?)\s*$")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)


def sources(root):
    for top in SOURCE_FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def inside(path, folder):
    return path == folder or path.startswith(folder + "/") or path.startswith(folder + ".")


def rule_of(path):
    """What the file may include: (folder of its own, folders, libraries), or None."""
    if path.startswith("tests/"):
        libraries = ["cmocka"]
        for folder, more in TEST_LIBRARIES.items():
            if inside(path, folder):
                libraries += more
        return "tests", ALL_PARTS + (ASSEMBLY,), tuple(libraries)
    if path == "server/main.c":
        return MAIN
    if os.path.dirname(path) == ASSEMBLY:
        return ASSEMBLY, ALL_PARTS, ()
    fitting = [folder for folder in RULES if path.startswith(folder + "/")]
    if not fitting:
        return None
    folder = max(fitting, key=len)
    return (folder,) + RULES[folder]


def check_system(name, libraries):
    if name.split("/")[0] in LIBC_FOLDERS or (name.endswith(".h") and name[:-2] in LIBC):
        return None
    library = LIBRARIES.get(name)
    if library is None:
        return f"<{name}> is not a known library"
    if library not in libraries:
        return f"may not use {library} (<{name}>)"
    return None


def layer_of(path):
    return next((at for at, layer in enumerate(LAYERS) if path.startswith(layer + "/")), None)


def check_layers(path, name):
    own, other = layer_of(path), layer_of(name)
    if own is not None and other is not None and other > own:
        return f'may not include "{name}": {LAYERS[other]} is a layer above'
    return None


def check_project(root, name, own, folders):
    if name.startswith((".", "/")) or not os.path.isfile(os.path.join(root, name)):
        return f'"{name}" is not a path from the root of the tree'
    if name.startswith("db/") and own.split("/")[0] not in ("db", "tests") and name not in ENGINE_NEUTRAL:
        return f'may not include "{name}": it is internal to db/'
    if any(inside(name, folder) for folder in (own,) + folders):
        return None
    return f'may not include "{name}"'


def without_comments(text):
    """The text with comments blanked, line numbers kept."""
    blank = lambda m: m.group(0) if m.group(0).startswith('"') else re.sub(r"[^\n]", " ", m.group(0))
    return COMMENT_OR_STRING.sub(blank, text)


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    rule = rule_of(path)
    if rule is None:
        yield 1, "is in a folder that tests/include_rules.py has no rule for"
        return
    own, folders, libraries = rule
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        what = found.group(1)
        if re.fullmatch(r"<[^<>]+>", what):
            problem = check_system(what[1:-1], libraries)
        elif re.fullmatch(r'"[^"]+"', what):
            name = what[1:-1]
            # A library's header in quotes is that library's all the same.
            problem = check_system(name, libraries) if name in LIBRARIES else check_project(root, name, own, folders) or check_layers(path, name)
        else:
            problem = f"includes by a macro ({what})"
        if problem:
            yield number, problem
    if path == "server/main.c" and text.count("\n") >= MAIN_MAX_LINES:
        yield MAIN_MAX_LINES, f"has {text.count(chr(10))} lines; fewer than {MAIN_MAX_LINES} are allowed"
    if path in ENGINE_NEUTRAL:
        code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
        for number, line in enumerate(code.replace("#pragma once", "").split("\n"), 1):
            for name in re.findall(r"[A-Za-z_]\w*", line):
                words = set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_"))
                if words & ENGINE_WORDS:
                    yield number, f"names the engine: {name}"


def unit_of(path):
    """A header and the .c of its name are one unit."""
    return os.path.splitext(path)[0]


def check_circles(root):
    """No units include each other in a circle: each can be read, and tested, with what is below it alone."""
    below = {}
    for path in sources(root):
        if path.startswith("tests/"):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            names = re.findall(r'^#include "([^"]+)"', without_comments(file.read()), re.M)
        below.setdefault(unit_of(path), {}).update({unit_of(name): path for name in names if unit_of(name) != unit_of(path)})
    done, way = set(), []

    def descend(unit):
        if unit in way:
            yield way[way.index(unit):] + [unit]
        elif unit not in done:
            way.append(unit)
            for other in sorted(below.get(unit, ())):
                yield from descend(other)
            way.pop()
            done.add(unit)

    for unit in sorted(below):
        for circle in descend(unit):
            yield f"{below[circle[0]][circle[1]]}:1: includes itself in a circle: {' -> '.join(circle)}"


FILE_NAME = re.compile(r"(?<![\w/.<>-])(?:[\w-]+/)*\w[\w-]*\.[ch]\b(?![\w(])")


def check_comments(root):
    """A comment sends readers only to files that exist, by their name or by the end of their path."""
    known = {tail for path in sources(root) for tail in ("/".join(path.split("/")[at:]) for at in range(path.count("/") + 1))}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for comment in COMMENT_OR_STRING.finditer(text):
            for name in () if comment.group(0).startswith('"') else FILE_NAME.finditer(comment.group(0)):
                if name.group(0) not in known and name.group(0) not in LIBRARIES:
                    line = text.count("\n", 0, comment.start() + name.start()) + 1
                    yield f"{path}:{line}: a comment names {name.group(0)}, which does not exist"


# The console: one file asks the server, text never becomes markup or code, and nothing is from elsewhere.
CONSOLE = "server/console"
CONSOLE_ASKS = f"{CONSOLE}/api.js"
CONSOLE_NEVER = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|document\.write|DOMParser|createContextualFragment|eval|Function)\b|https?:/" + "/"
)
CONSOLE_ASKING = re.compile(r"\b(?:fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|localStorage|cookie)\b")


def check_console(root):
    folder = os.path.join(root, CONSOLE)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = f"{CONSOLE}/{name}"
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for found in CONSOLE_NEVER.findall(line):
                    yield f"{path}:{number}: the console may not say {found}"
                if path != CONSOLE_ASKS and CONSOLE_ASKING.search(line) and name.endswith((".js", ".html")):
                    yield f"{path}:{number}: only {CONSOLE_ASKS} asks the server and keeps anything"


def check_tests(root):
    """A test that no CMakeLists.txt names is run by nobody."""
    files, text = [], ""
    for folder, folders, names in os.walk(os.path.join(root, "tests")):
        folders.sort()
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name == "CMakeLists.txt":
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text += file.read()
            elif re.fullmatch(r"tests/(?:unit/.*/test_\w+\.c|fuzz/fuzz_\w+\.c|http/test_\w+\.py)", path):
                files.append((path, os.path.splitext(name)[0]))
    http = {f"test_{name}" for name in re.findall(r"sitemapd_http_test\((\w+)", text)}
    words = set(re.findall(r"\w+", text))
    for path, name in files:
        told = {name, name.removeprefix("test_"), name.removeprefix("test_routes_"), name.removeprefix("test_alloc_")}
        if not (name in http if path.startswith("tests/http/") else told & words):
            yield f"{path}:1: no CMakeLists.txt names it"


def check(root):
    found = [f"{path}:{line}: {message}" for path in sources(root) for line, message in check_file(root, path)]
    return found + list(check_circles(root)) + list(check_comments(root)) + list(check_console(root)) + list(check_tests(root))


def main():
    if len(sys.argv) != 2:
        print("usage: include_rules.py ROOT", file=sys.stderr)
        return 2
    problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
