#!/usr/bin/python3
# SPDX-License-Identifier: LicenseRef-Undeclared
"""filter.py UNIT TRACE: of the system calls in TRACE (of strace), those that UNIT's SystemCallFilter
lines deny. Exit 1 where the program needs one of them."""

import re
import subprocess
import sys

# Denied, and done without: there are no capabilities left to drop under the unit.
DISPENSABLE = {"capset"}


def expand(name):
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    members = [line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*(expand(member) for member in members))


def main():
    allowed = set()
    with open(sys.argv[1]) as unit:
        for line in unit:
            if not line.startswith("SystemCallFilter="):
                continue
            value = line.split("=", 1)[1].strip()
            for name in value.lstrip("~").split():
                allowed = allowed - expand(name) if value.startswith("~") else allowed | expand(name)
    with open(sys.argv[2]) as trace:
        made = {m.group(1) for m in (re.match(r"\d+ +(?:<\.\.\. )?(\w+)[( ]", line) for line in trace) if m}
    denied = made - allowed
    needed, spared = sorted(denied - DISPENSABLE), sorted(denied & DISPENSABLE)
    print(f"system calls made: {len(made)}; denied, and done without: {' '.join(spared) or 'none'}; denied, and needed: {' '.join(needed) or 'none'}")
    if len(made) <= 40:
        sys.exit("tests/systemd/run: the trace is not whole")
    if needed:
        sys.exit(f"tests/systemd/run: {sys.argv[1]} denies what the program needs: {' '.join(needed)}")
    print("tests/systemd/run: all good")


main()
