# SPDX-License-Identifier: LicenseRef-Undeclared
"""A program whose disk fails as configured (shim.h)."""

import errno
import mmap
import os
import struct

import pytest

OPS = ("none", "open", "read", "write", "sync", "cut", "unlink", "statfs")
RULE = struct.Struct("=IiIIIII36s")
RULES, SHORT, EVER = 16, -1, 0xFFFFFFFF


class Disk:
    """The shared page of rules. A fault lasts until `heal`."""

    def __init__(self, folder):
        self.path, self.folder, self.used = os.path.join(folder, "rules"), folder, 0
        with open(self.path, "wb") as file:
            file.write(bytes(RULE.size * RULES))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), RULE.size * RULES)

    def environment(self, watched):
        return {"LD_PRELOAD": os.environ["FAULT_SHIM"], "FAULT_FOLDER": str(watched), "FAULT_RULES": self.path}

    def fail(self, op, error, ends="", first=1, every=1, most=EVER):
        """`error`: an errno's name, "HANG" (of a sync, until `heal`), SHORT, or a number."""
        number = -2 if error == "HANG" else getattr(errno, error) if isinstance(error, str) else error
        at = RULE.size * self.used
        RULE.pack_into(self.page, at, 0, number, first, every, most, 0, 0, ends.encode())
        struct.pack_into("=I", self.page, at, OPS.index(op))  # it holds from now on
        self.used += 1
        return at

    def hits(self, at):
        return RULE.unpack_from(self.page, at)[6]

    def heal(self):
        for i in range(RULES):
            struct.pack_into("=I", self.page, i * RULE.size, 0)
        self.used = 0


@pytest.fixture
def disk(tmp_path):
    return Disk(str(tmp_path))


@pytest.fixture
def data(tmp_path):
    """The folder of the catalogue, apart from the log and the rules."""
    os.makedirs(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def faulty(start, disk, data):
    """A server with the shim between it and its catalogue."""
    return start(database=data / "catalogue.db", env=disk.environment(data))
