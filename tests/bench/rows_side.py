# SPDX-License-Identifier: LicenseRef-Undeclared
"""What something that runs beside each request costs: the ledger of crawlers, the access log. CPU time
of the server's process for each request (utime + stime, threads of its own included), with it off and
in each of its forms. And what the server costs that has no request at all.

The servers are on one core, one after the other in each round, the load on another core: cached GETs
of a 10-entry index, and conditional ones answered 304, on 64 kept connections, all of them Googlebot's.
"""
import os
import time

import harness
from table import Goal, at_most, spread

OFF = "off"
ROUNDS = 24  # a few percent have to be distinguished
KINDS = ((200, "cached GET, 10 entries"), (304, "conditional GET, 304"))


def one_load(server, status):
    """The request, and how long its reply is."""
    headers = dict(harness.CRAWLER_HEADERS)
    head, body = harness.get(server.public)
    if status == 304:
        headers["If-None-Match"] = harness.header_of(head, "ETag")
        head, body = harness.get(server.public, headers=headers)
    if harness.status_of(head) != status:
        raise harness.BenchError(f"{status} was expected: {head[:60]!r}")
    return harness.request_bytes(harness.INDEX_PATH, headers), len(head) + 4 + len(body)


def micros_of_forms(options, servers, folder, status):
    """CPU microseconds a request, by form, one for each round."""
    loads = {form: one_load(server, status) for form, server in servers.items()}
    micros = {form: [] for form in servers}
    forms = list(servers)
    for number in range(ROUNDS):
        at = number % len(forms)  # none is always the first one
        for form in forms[at:] + forms[:at]:
            before = harness.cpu_seconds(servers[form].pid)
            done, _ = harness.load_loop(servers[form].public, *loads[form], status, options.seconds, folder)
            micros[form].append((harness.cpu_seconds(servers[form].pid) - before) / done * 1e6)
    return micros


def metric(server, name):
    head, body = harness.get(server.admin, "/metrics", {"Host": "127.0.0.1"})
    return float(next(line for line in body.splitlines() if line.startswith(name.encode() + b" ")).split()[1])


def measure(report, options, folder, key, forms, settings, limit, done_beside):
    """`forms`: what each is called, by its word; settings(form, folder): those of its server.
    done_beside(form, server): reports, at the end, that it did its work; "" is nothing to report."""
    servers = {}
    try:
        for form in (OFF, *forms):
            servers[form] = harness.Server(options.bin, os.path.join(folder, f"{key}-{form}.db"),
                                           settings=settings(form, folder))
            servers[form].post(harness.lines(0, 10, lambda n: f"{harness.ORIGIN}/sitemaps/{n:05}.xml"))
        micros = {status: micros_of_forms(options, servers, folder, status) for status, _ in KINDS}
        for form, name in forms.items():
            notes = (done_beside(form, servers[form]), "")
            for status, what in KINDS:
                report.rounds(f"{key}_{form}_{status}", f"{what}, {name}; without", micros[status][form],
                              micros[status][OFF], at_most(limit), unit="µs CPU", notes=notes)
    finally:
        for server in servers.values():
            server.stop()


# ---- the ledger of crawlers


def ledger_settings(form, folder):
    if form != "ranges":
        return {"SITEMAPD_SERVER_CRAWLERS": "no" if form == OFF else "yes"}
    ranges, config = os.path.join(folder, "ranges"), os.path.join(folder, "ranges.conf")
    with open(ranges, "w", encoding="ascii") as file:
        file.writelines(f"{10 + n // 250}.{n % 250}.0.0/17\n" for n in range(1999))
        file.write("127.0.0.0/8\n")
    with open(config, "w", encoding="ascii") as file:
        file.write(f'[crawler "googlebot"]\nranges = {ranges}\n')
    return {"SITEMAPD_CONFIG": config}


def ledger_counted(form, server):
    name = 'sitemapd_crawler_fetches_total{crawler="googlebot",status="%s"}'
    if min(metric(server, name % status) for status, _ in KINDS) == 0:
        raise harness.BenchError(f"{form}: the ledger counted nothing")
    return ""


def measure_crawlers(report, options, folder):
    measure(report, options, folder, "crawlers",
            {"on": "with the ledger", "ranges": "with the ledger and 2,000 address ranges"},
            ledger_settings, 1.03, ledger_counted)


# ---- the access log


def log_settings(form, folder):
    if form == OFF:
        return {}
    return {"SITEMAPD_LOG_ACCESS_LOG": os.path.join(folder, form + ".log"), "SITEMAPD_LOG_ACCESS_FORMAT": form}


def log_dropped(_, server):
    dropped = metric(server, "sitemapd_access_log_dropped_total")
    return f"; {dropped:.0f} lines dropped" if dropped else ""


def measure_access_log(report, options, folder):
    measure(report, options, folder, "access_log",
            {form: f"with an access log, {form}" for form in ("combined", "json")}, log_settings, 1.10, log_dropped)


# ---- nothing

IDLE_SECONDS = 10
SETTLE_SECONDS = 5  # the server still looks often for changes


def idle_settings(folder):
    """One folder as a source."""
    files, config = os.path.join(folder, "idle"), os.path.join(folder, "idle.conf")
    os.mkdir(files)
    with open(os.path.join(files, "a.xml"), "w", encoding="ascii") as file:
        file.write('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
                   f"<url><loc>{harness.ORIGIN}/</loc></url></urlset>")
    with open(config, "w", encoding="ascii") as file:
        file.write(f'[source "idle"]\ndirectory = {files}\nurl = {harness.ORIGIN}/\n')
    return {"SITEMAPD_CONFIG": config}


def measure_idle(report, options, folder):
    """CPU of a server that nobody asks."""
    ms = []
    with harness.Server(options.bin, os.path.join(folder, "idle.db"), settings=idle_settings(folder)) as server:
        harness.get(server.public)
        time.sleep(SETTLE_SECONDS)
        for _ in range(options.rounds):
            before, began = harness.cpu_seconds(server.pid), time.monotonic()
            time.sleep(IDLE_SECONDS)
            used = harness.cpu_seconds(server.pid) - before
            ms.append(used * 1000 / (time.monotonic() - began))
    report.row("idle", "an idle server with one folder, ms of CPU a second",
               spread(ms, "{:.3f}".format, "ms"), "", harness.median(ms), Goal("≤ 0.1 ms", lambda each: each <= 0.1),
               {"ours": ms}, ms)
