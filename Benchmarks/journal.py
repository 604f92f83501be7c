#!/usr/bin/env python3
"""Measures how the journal is read: entries per CPU-second, and a Fluent Bit of yours (PEER_FLUENT_BIT) on the same journal and receiver.

The journal is made by systemd's own writer (systemd-journal-remote), so that both find the same entries. With --rate a journald
of its own, in a namespace (root), takes so many entries a second for ten seconds while the agent reads: all must arrive, once.

usage: [PEER_FLUENT_BIT=PATH] journal.py BINARY [--entries 200000] [--journald] [--runs 3] [--rate 20000] [--scratch /var/tmp]
"""
import argparse
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import bench
import peers

UNITS = ["nginx", "postgresql@15-main", "ssh", "cron", "shop", "systemd-networkd"]
JOURNAL = """[apps.system]
journal.directory = "{directory}"
journal.since = "beginning"
"""
FLUENT_BIT = """[SERVICE]
    flush               1
    log_level           error
    storage.path        {work}/storage
    storage.sync        normal
    storage.max_chunks_up 512
[INPUT]
    name                systemd
    path                {directory}
    db                  {work}/journal.db
    read_from_tail      off
    max_entries         5000
    storage.type        filesystem
[OUTPUT]
    name                http
    match               *
    host                127.0.0.1
    port                {port}
    uri                 /
    format              json_lines
    compress            gzip
    tls                 on
    tls.verify          on
    tls.ca_file         {ca}
"""


def make(directory: str, entries: int, has_all: bool = False) -> None:
    """A journal of one file, of what services log: twelve fields an entry, or 24, as journald writes them."""
    os.makedirs(directory)
    export = f"{directory}.export"
    with open(export, "w") as file:
        for number in range(entries):
            unit = UNITS[number % len(UNITS)]
            more = (f"_SOURCE_REALTIME_TIMESTAMP={1_760_000_000_000_000 + number * 500 - 37}\n_GID=0\n_CMDLINE=/usr/sbin/{unit} --daemon\n"
                    f"_CAP_EFFECTIVE=1ffffffffff\n_SYSTEMD_CGROUP=/system.slice/{unit}.service\n_SYSTEMD_SLICE=system.slice\n"
                    f"_SYSTEMD_INVOCATION_ID={'4d' * 15}{number % 6:02x}\n_SELINUX_CONTEXT=unconfined\n_RUNTIME_SCOPE=system\n"
                    f"SYSLOG_FACILITY=3\nSYSLOG_PID={700 + number % 6}\n"
                    f"SYSLOG_TIMESTAMP=Nov 25 22:{number // 12_000 % 60:02}:{number // 200 % 60:02} \n") if has_all else ""
            file.write(
                f"__REALTIME_TIMESTAMP={1_760_000_000_000_000 + number * 500}\n__MONOTONIC_TIMESTAMP={1_000_000 + number * 500}\n"
                f"_BOOT_ID={'2b' * 16}\n_MACHINE_ID={'3c' * 16}\n_HOSTNAME=web-17\nPRIORITY={(6, 6, 6, 4, 3, 5)[number % 6]}\n"
                f"_SYSTEMD_UNIT={unit}.service\nSYSLOG_IDENTIFIER={unit}\n_PID={700 + number % 6}\n_UID=0\n_COMM={unit}\n"
                f"_EXE=/usr/sbin/{unit}\n_TRANSPORT=journal\n{more}MESSAGE=request {number} of /orders/{number % 977} by 10.0.{number % 7}.{number % 251} "
                f"took {number % 1993} ms, answered 200 with {number % 50_021} bytes\n\n")
    subprocess.run(["/lib/systemd/systemd-journal-remote", f"--output={directory}/a.journal", export], check=True,
                   stderr=subprocess.DEVNULL)
    os.unlink(export)


def ours(binary: str, receiver: bench.Receiver, directory: str, entries: int, scratch: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
        for name in ("state", "spool"):
            os.makedirs(f"{work}/{name}")
        before, began = receiver.events(), time.monotonic()
        agent = bench.start_agent(binary, work, receiver, "", 0, "", "gzip", JOURNAL.format(directory=directory))
        bench.wait_for(lambda: agent.poll() is not None or receiver.events() - before >= entries, 120, "the entries to arrive")
        wall, figures = time.monotonic() - began, bench.memory(agent.pid)
        usage = bench.end(agent)
        if agent.returncode != 0:
            raise SystemExit(open(f"{work}/agent.log").read()[-2000:])
        cpu = usage.ru_utime + usage.ru_stime
        return {"events_per_cpu_second": entries / cpu, "cpu": cpu, "wall": wall, "peak_rss_mb": figures["VmHWM"]}


def fluent_bit(binary: str, receiver: bench.Receiver, directory: str, entries: int, scratch: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-peers-", dir=scratch) as work:
        path = f"{work}/fluent-bit.conf"
        with open(path, "w") as file:
            file.write(FLUENT_BIT.format(work=work, directory=directory, port=receiver.port, ca=receiver.ca))
        before = receiver.events()
        return peers.timed([binary, "-c", path], dict(os.environ), lambda: receiver.events() - before, entries, 180,
                           f"{work}/agent.log")


def at_a_rate(binary: str, scratch: str, rate: int, seconds: int = 10) -> str:
    """Entries written to a journald as fast as that, while the agent reads."""
    name = f"bench{os.getpid()}"
    with open("/etc/machine-id") as file:
        directory = f"/run/log/journal/{file.read().strip()}.{name}"
    settings, sockets = f"/etc/systemd/journald@{name}.conf", f"/run/systemd/journal.{name}"
    with open(settings, "w") as file:
        file.write("[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\nRuntimeMaxUse=2G\n")
    daemon = subprocess.Popen(["/lib/systemd/systemd-journald", name], stderr=subprocess.DEVNULL)
    try:
        bench.wait_for(lambda: os.path.exists(f"{directory}/system.journal"), 30, "journald")
        with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
            for part in ("state", "spool", "receiver"):
                os.makedirs(f"{work}/{part}")
            receiver = bench.Receiver(binary, f"{work}/receiver", output=f"{work}/events")
            agent = bench.start_agent(binary, work, receiver, "", 0, "", "gzip", JOURNAL.format(directory=directory))
            count, began = rate * seconds, time.monotonic()
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
                to.connect(f"{sockets}/socket")
                for number in range(count):
                    if number % 200 == 0:
                        time.sleep(max(0.0, began + number / rate - time.monotonic()))
                    text = json.dumps({"n": number}).encode()
                    to.send(b"MESSAGE\n" + struct.pack("<Q", len(text)) + text + b"\nPRIORITY=6\n")
            wrote = time.monotonic() - began
            bench.wait_for(lambda: receiver.events() >= count, 120, "the entries to arrive")
            arrived = time.monotonic() - began
            bench.end(agent)
            receiver.stop()
            seen: dict = {}
            with open(f"{work}/events") as file:
                for line in file:
                    number = json.loads(line).get("n")
                    if number is not None:
                        seen[number] = seen.get(number, 0) + 1
            repeated = sum(times - 1 for times in seen.values())
            return (f"{count:,} entries written in {wrote:.1f} s ({count / wrote:,.0f} a second): {len(seen):,} arrived, "
                    f"{repeated} repeated, all there {arrived - wrote:.1f} s after the last was written")
    finally:
        daemon.terminate()
        daemon.wait()
        os.unlink(settings)
        subprocess.run(["rm", "-r", directory, sockets], check=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--journald", action="store_true", help="entries have twelve fields more, as journald adds them")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    if options.rate:
        return print(at_a_rate(binary, options.scratch, options.rate))
    own, version = peers.own_fluent_bit()
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as scratch:
        directory = f"{scratch}/journal"
        make(directory, options.entries, options.journald)
        receiver = bench.Receiver(binary, scratch)
        agents = {"Spoolship, the defaults": lambda: ours(binary, receiver, directory, options.entries, scratch)}
        if own:
            agents[f"{version}, systemd input, files, gzip"] = lambda: fluent_bit(
                own, receiver, directory, options.entries, scratch)
        try:
            print(f"{options.entries} entries, median of {options.runs}")
            print(f"{'':50}{'entries/CPU-s':>14}{'CPU s':>8}{'wall s':>8}{'RSS MB':>8}")
            # In turns: the machine's speed changes.
            rounds = [{name: run() for name, run in agents.items()} for _ in range(options.runs)]
            for name in agents:
                result = {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
                print(f"{name:50}{result['events_per_cpu_second']:14,.0f}{result['cpu']:8.2f}{result['wall']:8.2f}"
                      f"{result['peak_rss_mb']:8.1f}", flush=True)
        finally:
            receiver.stop()


if __name__ == "__main__":
    main()
