"""What something that runs beside each request costs: CPU time of the server's process for each
request (utime + stime, threads of its own included), with it off and in each of its forms.

The servers are on one core, one after the other in each round, the load on another core: cached GETs
of a 10-entry index, and conditional ones answered 304, on 64 kept connections. A round gives one
ratio of each form to "off" of the same round; medians count, so that a busy machine weighs little.
"""
import argparse
import os
import shutil
import tempfile

import harness

OFF = "off"


def measure(options, servers, folder, status):
    """CPU microseconds a request, by form, one for each round."""
    loads = {}
    for form, server in servers.items():
        headers = dict(harness.CRAWLER_HEADERS)
        head, body = harness.get(server.public)
        if status == 304:
            headers["If-None-Match"] = harness.header_of(head, "ETag")
            head, body = harness.get(server.public, headers=headers)
        assert harness.status_of(head) == status, head
        loads[form] = (harness.request_bytes(harness.INDEX_PATH, headers), len(head) + 4 + len(body))
    micros = {form: [] for form in servers}
    forms = list(servers)
    for number in range(options.rounds):
        at = number % len(forms)
        for form in forms[at:] + forms[:at]:
            before = harness.cpu_seconds(servers[form].pid)
            request, reply_len = loads[form]
            done, _ = harness.load_loop(servers[form].public, request, reply_len, status,
                                        options.seconds, folder)
            micros[form].append((harness.cpu_seconds(servers[form].pid) - before) / done * 1e6)
    return micros


def report(what, micros, goal):
    off = harness.median(micros[OFF])
    print(f"| {what} | off | {off:.2f} µs | | |")
    for form in list(micros)[1:]:
        ratio = harness.median([with_it / without for with_it, without in zip(micros[form], micros[OFF])])
        met = "yes" if ratio <= goal else "**no**"
        print(f"| {what} | {form} | {harness.median(micros[form]):.2f} µs | {ratio:.3f} | {met} |", flush=True)


def value(server, name):
    """A metric of the server."""
    head, body = harness.get(server.admin, "/metrics", {"Host": "127.0.0.1"})
    return float(next(line for line in body.splitlines() if line.startswith(name.encode() + b" ")).split()[1])


def run(doc, column, goal, forms, settings, behind, rounds=9):
    """`forms`: "off" first; settings(form, folder): those of its server; behind(form, server) is told
    at the end."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    parser.add_argument("--bin", default=harness.RELEASE)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--folder", help="where the servers write; by default the temporary folder's disk")
    options = parser.parse_args()
    harness.build_release(options.bin)
    harness.build_peers("load_loop")
    os.sched_setaffinity(0, {harness.LOAD_CORE})
    folder = tempfile.mkdtemp(prefix="sitemapd-bench-", dir=options.folder)
    servers = {}
    try:
        for form in forms:
            servers[form] = harness.Server(options.bin, os.path.join(folder, form + ".db"), settings=settings(form, folder))
            servers[form].post(harness.lines(0, 10, lambda n: f"{harness.ORIGIN}/sitemaps/{n:05}.xml"))
        print(f"load {os.getloadavg()[0]:.1f}, {options.rounds} rounds of {options.seconds} s\n\n"
              f"| what | {column} | CPU a request | of off | ≤ {goal}× |\n| --- | --- | ---: | ---: | --- |")
        report("cached GET, 10 entries", measure(options, servers, folder, 200), goal)
        report("conditional GET, 304", measure(options, servers, folder, 304), goal)
        for form in forms[1:]:
            print(f"\n{form}: {behind(servers[form])}", end="")
        print()
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder)
