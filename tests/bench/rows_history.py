# SPDX-License-Identifier: LicenseRef-Undeclared
"""What the history costs: the server's CPU with and without it, for the same writes."""
import os

from harness import BenchError, Client, Server, cpu_seconds, lines, register_request, status_of
from rows_write import remove_catalogue
from table import at_most

ENTRIES = 1_000_000
SINGLES = 5_000
KINDS = (("bulk", "1,000,000 new entries", 1.05), ("updates", "1,000,000 updated entries", 1.25),
         ("registrations", f"{SINGLES:,} registrations, one at a time", 1.05))


def spent(server, work):
    before = cpu_seconds(server.pid)
    work()
    return cpu_seconds(server.pid) - before


def register_some(server, options):
    client = Client(server.admin)
    for number in range(SINGLES):
        body = f'{{"loc":"{options.loc(number)}","lastmod":"2026-11-01T00:00:00Z"}}'
        head, answer, _ = client.ask(register_request(body.encode()))
        if status_of(head) != 200:
            raise BenchError(f"a registration: {head[:40]!r} {answer[:200]!r}")
    client.close()


def one_round(options, database, keep, new, updated):
    """CPU seconds of each kind."""
    remove_catalogue(database)
    with Server(options.bin, database, settings={"SITEMAPD_HISTORY_KEEP": keep}) as server:
        return (spent(server, lambda: server.post(new)), spent(server, lambda: server.post(updated)),
                spent(server, lambda: register_some(server, options)))


def measure(report, options, folder):
    database = os.path.join(folder, "history.db")
    new, updated = lines(0, ENTRIES, options.loc), lines(0, ENTRIES, options.loc, "2026-10-10T10:10:10Z")
    with_it, without = [], []
    for number in range(options.rounds):
        # Neither is always the first one, whatever the machine does beside.
        for keep, rounds in (("30d", with_it), ("0", without))[:: -1 if number % 2 else 1]:
            rounds.append(one_round(options, database, keep, new, updated))
    remove_catalogue(database)
    for at, (key, what, goal) in enumerate(KINDS):
        report.rounds(f"history_{key}", f"CPU of {what}, with the history; without", [each[at] for each in with_it],
                      [each[at] for each in without], at_most(goal, f"≤ {goal}"), unit="s")
