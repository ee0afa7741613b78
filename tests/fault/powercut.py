# SPDX-License-Identifier: LicenseRef-Undeclared
"""What a power cut leaves on the disk, worked out from the journal that the shim wrote (shim.h).

What was synced is there. Of each file's writes since its last sync any part may be: none, those up to some
instant, any choice of them, or of their sectors (a disk writes 512 bytes or none of them, in any order). A
name that came or went since the last sync of its folder did so or not, in the order in which it was done.
The index of the write-ahead log, which is memory, is gone or garbage."""

import os
import struct

HEAD = struct.Struct("=IIQqQ")
MAGIC = 0x4C4E524A
WRITE, CUT, SYNC, SYNC_FOLDER, MAKE, UNLINK, RENAME = range(1, 8)
SECTOR = 512


class File:
    def __init__(self, data=b""):
        self.durable = bytearray(data)
        self.pending = []  # (offset, data), or (size, None): cut to it


def put(data, offset, piece):
    if piece is None:
        del data[offset:]
        data.extend(bytes(offset - len(data)))
        return
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(piece)] = piece


class Disk:
    """The files of one folder. Made before the program starts; what is there then is durable."""

    def __init__(self, folder, journal):
        self.folder, self.journal = folder, journal
        with open(journal, "wb"):
            pass
        self.files, self.names, self.moves = {}, {}, []
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not name.endswith("-shm"):
                with open(path, "rb") as file:
                    self.names[path] = self.files[os.stat(path).st_ino] = File(file.read())

    def environment(self, shim, sync_ms):
        return {"LD_PRELOAD": shim, "FAULT_FOLDER": self.folder, "FAULT_JOURNAL": self.journal, "FAULT_SYNC_MS": str(sync_ms)}

    def records(self):
        with open(self.journal, "rb") as file:
            journal = file.read()
        at = 0
        while at + HEAD.size <= len(journal):
            magic, kind, inode, offset, size = HEAD.unpack_from(journal, at)
            assert magic == MAGIC, "the journal is broken"
            at += HEAD.size
            if at + size > len(journal):
                return  # killed while it was written
            yield kind, inode, offset, journal[at : at + size]
            at += size

    def replay(self):
        """How many writes, and how many of them not synced at the end."""
        writes = 0
        for kind, inode, offset, data in self.records():
            file = self.files.get(inode)
            if kind in (WRITE, CUT):
                assert file, "a write into an unknown file"
                file.pending.append((offset, data if kind == WRITE else None))
                writes += 1
            elif kind == SYNC and file:
                for offset, piece in file.pending:
                    put(file.durable, offset, piece)
                file.pending = []
            elif kind == SYNC_FOLDER:
                for move in self.moves:
                    self.move(self.names, move)
                self.moves = []
            elif kind == MAKE:
                self.files[inode] = File()
                self.moves.append((MAKE, data.decode(), self.files[inode]))
            elif kind in (UNLINK, RENAME):
                self.moves.append((kind, data.decode(), None))
        return writes, sum(len(f.pending) for f in self.files.values())

    @staticmethod
    def move(names, move):
        kind, name, file = move
        if kind == MAKE:
            names[name] = file
        elif kind == UNLINK:
            names.pop(name, None)
        else:
            old, _, new = name.partition("\0")
            if old in names:
                names[new] = names.pop(old)

    @staticmethod
    def survivors(pending, how, rng):
        """The pieces that reached the disk, in an order that it may have written them in."""
        if how == "none":
            return []
        if how == "all":
            return pending
        if how == "prefix":
            kept = pending[: rng.randrange(len(pending) + 1)]
            if kept and kept[-1][1]:  # the last one torn
                offset, data = kept[-1]
                kept[-1] = (offset, data[: rng.randrange(len(data) // SECTOR + 1) * SECTOR])
            return kept
        if how == "writes":
            return [piece for piece in pending if rng.random() < 0.5]
        kept, share = [], rng.choice((0.1, 0.5, 0.9))
        for offset, data in pending:
            if data is None:
                kept += [(offset, None)] * (rng.random() < share)
                continue
            at = 0
            while at < len(data):  # sectors of the disk, not of the write
                end = min(len(data), at + SECTOR - (offset + at) % SECTOR)
                if rng.random() < share:
                    kept.append((offset + at, data[at:end]))
                at = end
        return kept

    def spoil_pages(self, rng):
        """The kept pages beside the catalogue are written without a sync: any may be gone, torn or zero."""
        for folder, _, names in os.walk(self.folder):
            for path in (os.path.join(folder, name) for name in names if folder != self.folder):
                how, size = rng.randrange(5), os.path.getsize(path)
                if how == 0:
                    os.unlink(path)
                elif how == 1:
                    os.truncate(path, rng.randrange(size + 1))
                elif how == 2:
                    with open(path, "r+b") as file:
                        file.seek(rng.randrange(size + 1))
                        file.write(bytes(SECTOR))

    def cut(self, rng):
        """Leaves in the folder what the disk has after the cut. What was done, for the log."""
        writes, unsynced = self.replay()
        self.spoil_pages(rng)
        how = rng.choice(("none", "all", "prefix", "writes", "sectors"))
        names = dict(self.names)
        for move in self.moves[: rng.randrange(len(self.moves) + 1)]:
            self.move(names, move)
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isfile(path):
                os.unlink(path)
        for path, file in names.items():
            data = bytearray(file.durable)
            for offset, piece in self.survivors(file.pending, how, rng):
                put(data, offset, piece)
            with open(path, "wb") as out:
                out.write(data)
            os.chmod(path, 0o600)
            if path.endswith(".db") and rng.random() < 0.5:
                with open(path + "-shm", "wb") as out:
                    out.write(rng.randbytes(rng.choice((0, 3, 32768))))
        return f"{writes} writes, {unsynced} of them not synced: {how}"
