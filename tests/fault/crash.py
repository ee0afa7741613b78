# SPDX-License-Identifier: LicenseRef-Undeclared
"""Rounds of kill -9, or of power cuts, under load: tests/fault/run crash|power [--rounds N] [--seed S].

In each round the program is started, put under load, and killed at a random instant, some of them while it
starts. Then every answered write is there, of what was under way all or nothing, `check` finds nothing, and
what is served is what a naive renderer makes of an export. A power cut is a kill after which the files are
what a disk may have kept (powercut.py). Every FRESH rounds the catalogue begins again."""

import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib"), os.path.join(os.path.dirname(HERE), "http")]

from harness import BIN, ORIGIN, Server, eventually, gunzip, render_export  # noqa: E402
from load import MANY, CrashLoad, Source  # noqa: E402
from powercut import Disk  # noqa: E402

FRESH = 25
LOAD_MAX_S = 0.9
START_MAX_S = 0.06


class Rounds:
    def __init__(self, power, seed, shim):
        self.power, self.seed, self.shim = power, seed, shim
        self.rng = random.Random(seed)
        self.base = tempfile.mkdtemp(prefix="sitemapd-fault-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.count = collections.Counter()
        self.server, self.clock, self.last_cut = None, 0, ""

    def renew(self):
        """An empty catalogue, and nothing that is known of it."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.data, self.files = os.path.join(self.base, "data"), os.path.join(self.base, "files")
        os.makedirs(self.data)
        os.makedirs(self.files)
        config = (f'[catalogue]\nshrink_guard = 0%\n[source "files"]\ndirectory = {self.files}\nurl = {ORIGIN}/source-0/\nindex = /sitemap_index.xml\n'
                  "watch = no\nsettle = 0s\nrescan = 1h\n")
        self.server = Server(self.base, database=os.path.join(self.data, "catalogue.db"), config=config)
        self.book, self.disk, self.clock = {}, None, 0

    def arm(self):
        """From now on the disk is watched: what is there is durable."""
        if self.power:
            self.disk = Disk(self.data, os.path.join(self.base, "journal"))
            self.server.env.update(self.disk.environment(self.shim, self.rng.choice((0, 0, 2, 20))))

    def cut(self):
        if self.power:
            self.last_cut = self.disk.cut(self.rng)
            self.count[self.last_cut.rsplit(" ", 1)[1]] += 1
            self.arm()

    def actual(self):
        """The catalogue by the commands, and the lines of each index."""
        checked = self.server.cli("check", env=self.server.env)
        assert checked.code == 0, checked
        exported = self.server.cli("export", env=self.server.env)
        indexes = self.server.cli("index", "list", "--json", env=self.server.env)
        assert exported.code == 0 and indexes.code == 0, (exported, indexes)
        found, by_index = {}, {line["url"]: [] for line in indexes.lines()}
        for line in exported.lines():
            assert line["loc"] not in found, f"twice: {line['loc']}"
            found[line["loc"]] = line.get("lastmod")
            by_index[line["index"]].append(line)
        found.update({url: "index" for url in by_index if not url == ORIGIN + "/sitemap_index.xml"})
        return found, by_index

    def verify(self, load):
        found, _ = self.actual()
        for model in load.models():
            if model.doubt is not None:
                self.count["under way"] += 1
                self.count["undone"] += model.verify(found)
            else:
                model.verify(found)
            self.book[model.mark] = model.state
        self.count["entries checked"] += len(found)

    def serves(self):
        """What the started server serves is what its export says, rendered naively."""
        scanned = eventually(lambda: (r := self.server.api("POST", f"/v1/sources/files/scan?{MANY}")).status == 200 and r, "a scan")
        assert scanned, "the source cannot be scanned"
        _, by_index = self.actual()
        for url, lines in by_index.items():
            path = url[len(ORIGIN):]
            for target in (path, path + ".gz"):
                reply = self.server.get(target)
                if not lines:
                    assert reply.status == 404, (target, reply)
                    continue
                assert reply.status == 200, (target, reply)
                body = gunzip(reply.body) if target.endswith(".gz") else reply.xml()
                assert body == render_export(lines), f"{target} is not what the catalogue says"
                self.count["pages compared"] += 1
        return by_index

    def settle_source(self):
        """The scan of the start has handed over what is in the folder, whatever was under way."""
        mark = "source-0"
        found, _ = self.actual()
        mine = {loc: v for loc, v in found.items() if loc.startswith(f"{ORIGIN}/{mark}/")}
        names = [n for n in os.listdir(self.files) if n.endswith(".xml")]
        assert sorted(mine) == sorted(f"{ORIGIN}/{mark}/{n}" for n in names), "the source is not what its folder is"
        self.book[mark] = mine

    def round(self, number):
        if number % FRESH == 0:
            self.renew()
            self.arm()
        self.clock += 1
        if number % FRESH and self.rng.random() < 0.15:  # a crash within the start, or its recovery
            self.server.start(expect_ready=False)
            time.sleep(self.rng.random() * START_MAX_S)
            self.server.kill()
            self.count["killed at start"] += 1
            self.cut()
        self.server.start()
        if number % FRESH:
            self.serves()
            self.settle_source()
        load = CrashLoad(self.server, self.rng.randrange(1 << 30), self.book, self.clock, self.files)
        time.sleep(self.rng.random() * LOAD_MAX_S)
        load.kill()
        self.count["answers"] += sum(client.replies for client in load.clients)
        self.cut()
        if self.rng.random() < 0.5:
            self.verify(load)  # a command recovers the file
        else:
            self.server.start()
            self.verify_running(load)
            self.server.kill()
            self.cut()

    def verify_running(self, load):
        """The server recovers the file; it may have scanned the folder already."""
        for model in load.models():
            if isinstance(model, Source) and model.doubt is None:
                model.doubt = model.there()
        self.verify(load)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("crash", "power"))
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    shim = os.environ.get("FAULT_SHIM", "")
    assert BIN and (shim or options.kind == "crash"), "SITEMAPD_BIN, FAULT_SHIM: run tests/fault/run"
    print(f"{options.kind}: {options.rounds} rounds, seed {options.seed}", flush=True)
    rounds, begun = Rounds(options.kind == "power", options.seed, shim), time.monotonic()
    for number in range(options.rounds):
        try:
            rounds.round(number)
        except BaseException as error:
            print(f"\n{options.kind}: round {number} of seed {options.seed} FAILED ({rounds.last_cut})\n"
                  f"the files are kept in {rounds.base}\n{rounds.server.log()[-3000:] if rounds.server else ''}", file=sys.stderr)
            if rounds.server:
                rounds.server.kill()
            if isinstance(error, Exception) and not isinstance(error, AssertionError):
                raise
            print(f"{type(error).__name__}: {str(error)[:3000]}", file=sys.stderr)
            return 1
        if (number + 1) % 25 == 0:
            print(f"  {number + 1} rounds, {time.monotonic() - begun:.0f} s", flush=True)
    shutil.rmtree(rounds.base, ignore_errors=True)
    result = ", ".join(f"{value} {name}" for name, value in sorted(rounds.count.items()))
    print(f"{options.kind}: {options.rounds} rounds passed in {time.monotonic() - begun:.0f} s, seed {options.seed}: {result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
