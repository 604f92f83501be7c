#!/usr/bin/env python3
"""Measures rsyslog and syslog-ng, and a Fluent Bit of yours, on the work that Spoolship is measured on, in the same run.

Debian's packages are unpacked beside the results, not installed: the two exclude each other. Their configurations stand in
`peers/`, with what they cannot do: neither compresses, adds members to events or validates them here, and neither's buffer
survives a power cut at this rate. Only the agents' own CPU counts, from start until all events arrived and they ended. An agent that fails or does not come to
its end in time has a line that says so, and the next one is measured; the exit code is 1 then.

Each round runs every agent once, so that what the machine does meanwhile meets them all. Debian has no Fluent Bit:
PEER_FLUENT_BIT=/path/to/fluent-bit measures one, with chunks in files. What is wrong with that path is said before anything is measured.
With --svg it draws what is kept, with --page it writes the table; without BINARY it does nothing else.

usage: [PEER_FLUENT_BIT=PATH] peers.py [BINARY] [--events 200000] [--runs 3] [--deadline 180] [--only WORDS]
                                                [--scratch /var/tmp] [--keep build/peers.json] [--svg FILE] [--page FILE]
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import picture

HERE = os.path.dirname(os.path.abspath(__file__))
# Events a second of those that come while the agent runs, and for how many seconds.
RATES = {1000: 30, 20_000: 10}
# Around the table in a page.
BEGINNING, END = "<!-- written by Benchmarks/peers.py -->\n", "<!-- end of the table -->\n"
PACKAGES = ["rsyslog", "rsyslog-relp", "libestr0", "libfastjson4", "liblognorm5", "librelp0", "syslog-ng-core",
            "syslog-ng-mod-http", "libivykis0", "libpcre3"]


def unpack(directory: str) -> str:
    """Debian's packages of the peers, unpacked into a directory; the root of the tree."""
    root = os.path.join(directory, "root")
    if not os.path.exists(root):
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for package in glob.glob(f"{directory}/*.deb"):
            subprocess.run(["dpkg", "-x", package, root + ".new"], check=True)
        os.rename(root + ".new", root)
    return root


def environment(root: str) -> dict:
    libraries = [f"{root}/usr/lib/x86_64-linux-gnu", f"{root}/lib/x86_64-linux-gnu", f"{root}/usr/lib/syslog-ng"]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(libraries))


def certificates(directory: str) -> str:
    """An authority and a certificate for localhost, for both ends of rsyslog."""
    os.makedirs(directory)
    for line in [
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=peers",
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    ]:
        with open(f"{directory}/names", "w") as names:
            names.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        subprocess.run(["openssl", *line.split()], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return directory


def configuration(name: str, path: str, **values: object) -> str:
    """A configuration of `peers/`, filled in."""
    with open(f"{HERE}/peers/{name}") as file:
        text = file.read()
    for key, value in values.items():
        text = text.replace("{" + key + "}", str(value))
    with open(path, "w") as file:
        file.write(text)
    return path


class Unfinished(Exception):
    """An agent that ended by itself, or whose events were not all there in time."""


def timed(command: list, variables: dict, arrived, expected: int, deadline: float, log: str,
          feed=lambda: None) -> dict:
    """Runs an agent until all events arrived, ends it, and tells what it took. `feed` writes what was not there before."""
    name = os.path.basename(command[0])
    with open(log, "wb") as output:
        began = time.monotonic()
        agent = subprocess.Popen(command, env=variables, stdout=output, stderr=output)
        usage = None
        try:
            feed()
            while (count := arrived()) < expected:
                if agent.poll() is not None:
                    with open(log, errors="replace") as said:
                        raise Unfinished(f"{name} ended by itself, exit code {agent.returncode}: {said.read()[-500:]}")
                if time.monotonic() - began > deadline:
                    raise Unfinished(f"{count} of {expected} events arrived in {deadline:.0f} s")
                time.sleep(0.05)
            wall = time.monotonic() - began
            figures = bench.memory(agent.pid)
            written = bench.written_bytes(agent.pid)
        finally:
            usage = bench.end(agent)
    if usage is None:
        raise Unfinished(f"{name} ended by itself when all events had arrived, exit code {agent.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return {"events_per_cpu_second": expected / cpu, "cpu": cpu, "wall": wall, "peak_rss_mb": figures["VmHWM"],
            "written": written}


class Lines:
    """The lines of a file that grows: each call counts what came since the last."""

    def __init__(self, path: str):
        self.path = path
        self.offset = 0
        self.count = 0

    def __call__(self) -> int:
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                while piece := file.read(1 << 20):
                    self.offset += len(piece)
                    self.count += piece.count(b"\n")
        return self.count


def rsyslog(root: str, sources: str, events: int, deadline: float, scratch: str) -> dict:
    variables = environment(root)
    modules = f"{root}/usr/lib/x86_64-linux-gnu/rsyslog"
    with tempfile.TemporaryDirectory(prefix="spoolship-peers-", dir=scratch) as work:
        shutil.copytree(sources, f"{work}/spool")
        os.makedirs(f"{work}/receiver")
        values = dict(work=work, spool=f"{work}/spool", port=bench.free_port(),
                      certificates=certificates(f"{work}/certificates"))
        def command(conf: str, pid: str) -> list:
            return [f"{root}/usr/sbin/rsyslogd", "-n", "-M", modules, "-i", f"{work}/{pid}", "-f",
                    configuration(conf, f"{work}/{conf}", **values)]
        with open(f"{work}/receiver.log", "wb") as log:
            receiver = subprocess.Popen(command("rsyslog-receiver.conf", "receiver.pid"), env=variables, stdout=log, stderr=log)
        try:
            return timed(command("rsyslog.conf", "agent.pid"), variables, Lines(f"{work}/received"), events, deadline,
                         f"{work}/agent.log")
        finally:
            bench.end(receiver)


def syslog_ng(root: str, receiver: bench.Receiver, sources: str, events: int, deadline: float, scratch: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-peers-", dir=scratch) as work:
        shutil.copytree(sources, f"{work}/spool")
        path = configuration("syslog-ng.conf", f"{work}/syslog-ng.conf", work=work, spool=f"{work}/spool", url=receiver.url,
                             ca=receiver.ca)
        before = receiver.events()
        command = [f"{root}/usr/sbin/syslog-ng", "-F", "--no-caps", "-f", path, "-R", f"{work}/persist", "-c",
                   f"{work}/control", "-p", f"{work}/pid", f"--module-path={root}/usr/lib/syslog-ng/3.38"]
        return timed(command, environment(root), lambda: receiver.events() - before, events, deadline,
                     f"{work}/agent.log")


def own_fluent_bit() -> tuple:
    """The binary that PEER_FLUENT_BIT names and its version; (None, None) without one."""
    path = os.environ.get("PEER_FLUENT_BIT")
    if not path:
        return None, None
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise SystemExit(f"peers: PEER_FLUENT_BIT={path} is no program that can be run here; give the path of the binary "
                         "fluent-bit, or unset it")
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise SystemExit(f"peers: PEER_FLUENT_BIT={path} does not tell its version: {failure}")
    first = said.stdout.strip().splitlines()[:1]
    if said.returncode != 0 or not first or "Fluent Bit" not in first[0]:
        raise SystemExit(f"peers: PEER_FLUENT_BIT={path} is no Fluent Bit: `--version` said "
                         f"{first[0] if first else 'nothing'!r}, exit code {said.returncode}")
    return os.path.abspath(path), first[0]


def fluent_bit(binary: str, compression: str, is_large: bool, receiver: bench.Receiver, sources: str, events: int,
               deadline: float, scratch: str, rate: int = 0, parser: str = "lines") -> dict:
    """Files that are there, or with a rate lines that come."""
    with tempfile.TemporaryDirectory(prefix="spoolship-peers-", dir=scratch) as work:
        feed = lambda: None
        if rate:
            lines, file = bench.read_lines(sources)[:rate * RATES[rate]], f"{work}/spool/app.jsonl"
            events = len(lines)
            os.makedirs(f"{work}/spool")
            # It looks for new files once a minute.
            open(file, "w").close()
            feed = lambda: bench.drip(lines, file, rate)
        else:
            shutil.copytree(sources, f"{work}/spool")
        configuration("fluent-bit-parsers.conf", f"{work}/fluent-bit-parsers.conf")
        path = configuration("fluent-bit.conf", f"{work}/fluent-bit.conf", work=work, spool=f"{work}/spool",
                             port=receiver.port, ca=receiver.ca, compression=compression,
                             parser=f"parser {parser}" if parser else "",
                             buffer="2M" if is_large else "32k", most="16M" if is_large else "32k")
        before = receiver.events()
        return timed([binary, "-c", path], dict(os.environ), lambda: receiver.events() - before, events, deadline,
                     f"{work}/agent.log", feed)


def cases(options: argparse.Namespace, receiver: bench.Receiver, scratch: str) -> list:
    """What is measured: a group of the picture, whose bar it is, its label, and what runs it once."""
    binary, deadline = os.path.abspath(options.binary), options.deadline
    own, version = own_fluent_bit()
    root = unpack(os.path.join(options.scratch, "spoolship-peers"))
    directories = {profile: os.path.join(scratch, profile) for profile in ("standard", "pino", "nginx", "logfmt")}
    for profile, directory in directories.items():
        subprocess.run([sys.executable, f"{HERE}/generate.py", directory, "--events", str(options.events), "--profile", profile],
                       check=True)
    sources = directories["standard"]

    def ours(compression: str, profile: str = "standard"):
        return lambda: bench.measure(binary, receiver, directories[bench.LINES.get(profile, profile)], options.events,
                                     ("", 0, "", compression, profile))

    def floor(compression: str):
        def run() -> dict:
            result = bench.floor(receiver, sources, scratch, compression, 5000, 1 << 20)
            return {"events_per_cpu_second": result["events"] / result["total"], "cpu": result["total"]}
        return run

    def theirs(compression: str, is_large: bool = False, rate: int = 0):
        return lambda: fluent_bit(own, compression, is_large, receiver, sources, options.events, deadline, scratch, rate)

    all_cases = []
    for compression in ["gzip", "zstd"]:
        group = f"a backlog, {compression}" + (" (the default)" if compression == "gzip" else "")
        all_cases += [(group, "ours", "Spoolship", ours(compression)), (group, "floor", "the floor, bare C++", floor(compression))]
        if own:
            all_cases.append((group, "peer", version, theirs(compression)))
    if own:
        all_cases.append((group, "peer", f"{version}, buffers of 2 MB", theirs("zstd", is_large=True)))
    for group, profile, parser in [
        ("lines of pino, their time and level found, gzip", "pino", "pino"),
        ("nginx's access log, parsed, gzip", "nginx", "nginx"),
        ("nginx's access log, a pattern of ten groups, gzip", "pattern", "nginx"),
        ("logfmt, parsed, gzip", "logfmt", "logfmt"),
        ("lines of text as messages, gzip", "text", ""),
    ]:
        all_cases.append((group, "ours", "Spoolship", ours("gzip", profile)))
        if own:
            all_cases.append((group, "peer", version, lambda profile=profile, parser=parser: fluent_bit(
                own, "gzip", False, receiver, directories[bench.LINES.get(profile, profile)], options.events, deadline, scratch,
                parser=parser)))
    group = "a backlog, not compressed"
    all_cases += [
        (group, "ours", "Spoolship", ours("none")),
        (group, "peer", "rsyslog, RELP over TLS, disk queue", lambda: rsyslog(root, sources, options.events, deadline, scratch)),
        (group, "peer", "syslog-ng, HTTPS, 3,000 a batch",
         lambda: syslog_ng(root, receiver, sources, options.events, deadline, scratch)),
    ]
    for rate, seconds in RATES.items():
        group = f"a steady {rate:,} events a second, gzip"
        all_cases.append((group, "ours", "Spoolship",
                          lambda rate=rate, seconds=seconds: bench.steady(binary, receiver, sources, scratch, rate, seconds, "gzip")))
        if own:
            all_cases.append((group, "peer", version, theirs("gzip", rate=rate)))
    words = options.only.split("|")
    return [case for case in all_cases if any(word in f"{case[0]}: {case[2]}" for word in words)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3, help="rounds, in each of which every agent runs once")
    parser.add_argument("--deadline", type=float, default=180, help="seconds a run may take until all events arrived")
    parser.add_argument("--only", default="", help="only cases whose title and label hold these words, or one of several texts with | between")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--keep", default="build/peers.json", help="where results are kept, for the picture")
    parser.add_argument("--svg", help="where to draw what is kept")
    parser.add_argument("--page", help="the page whose table of figures is written anew from what is kept")
    options = parser.parse_args()
    if not options.binary and not options.svg and not options.page:
        parser.error("say which BINARY to measure, or what to write with --svg or --page")
    failed = options.binary is not None and not run(options)
    if options.svg or options.page:
        with open(options.keep) as file:
            groups = json.load(file)["groups"]
    if options.svg:
        with open(options.svg, "w") as file:
            file.write(picture.draw(groups))
    if options.page:
        with open(options.page) as file:
            before, rest = file.read().split(BEGINNING)
        with open(options.page, "w") as file:
            file.write(before + BEGINNING + table(groups) + END + rest.split(END)[1])
    sys.exit(1 if failed else 0)


def table(groups: dict) -> str:
    """The figures as rows of a page."""
    lines = ["| case | | thousand events per CPU-second (lowest and highest) | Spoolship ships | peak RSS MB |",
             "| --- | --- | --- | --- | --- |"]
    for group, bars in groups.items():
        ours = next(bar for bar in bars if bar["kind"] == "ours")["events_per_cpu_second"]
        for bar in bars:
            rate, low, high = (round(bar[key] / 1000) for key in ("events_per_cpu_second", "lowest", "highest"))
            ratio = "" if bar["kind"] == "ours" else f"{ours / bar['events_per_cpu_second']:.1f} times"
            memory = f"{bar['peak_rss_mb']:.0f}" if "peak_rss_mb" in bar else ""
            title = group if bar is bars[0] else ""
            lines.append(f"| {title} | {bar['label']} | {rate} ({low} to {high}) | {ratio} | {memory} |")
    return "\n".join(lines) + "\n"


def run(options: argparse.Namespace) -> bool:
    """Measures all in turns, and keeps it; whether every run came to its end."""
    is_whole = True
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as scratch:
        receiver = bench.Receiver(os.path.abspath(options.binary), scratch)
        try:
            measured = cases(options, receiver, scratch)
            taken: list = [[] for _ in measured]
            for _ in range(options.runs):
                for (group, _, label, once), results in zip(measured, taken):
                    try:
                        results.append(once())
                    # What bench.py gives up on ends it, but not the comparison.
                    except (Unfinished, SystemExit, OSError) as failure:
                        print(f"{group}: {label}: {failure}", flush=True)
                        is_whole = False
        finally:
            receiver.stop()
    groups: dict = {}
    print(f"{options.events} events, median of {options.runs} in turns")
    print(f"{'':72}{'events/CPU-s':>13}{'lowest':>10}{'highest':>10}{'CPU s':>8}{'RSS MB':>8}")
    for (group, kind, label, _), results in zip(measured, taken):
        if not results:
            continue
        median = {key: statistics.median(one[key] for one in results) for key in results[0]}
        rates = [one["events_per_cpu_second"] for one in results]
        groups.setdefault(group, []).append({"kind": kind, "label": label, **median, "lowest": min(rates), "highest": max(rates)})
        print(f"{group + ': ' + label:72}{median['events_per_cpu_second']:13,.0f}{min(rates):10,.0f}{max(rates):10,.0f}"
              f"{median['cpu']:8.2f}{median.get('peak_rss_mb', 0):8.1f}", flush=True)
    os.makedirs(os.path.dirname(os.path.abspath(options.keep)), exist_ok=True)
    with open(options.keep, "w") as file:
        json.dump({"events": options.events, "runs": options.runs, "groups": groups}, file, indent=2)
    return is_whole


if __name__ == "__main__":
    main()
