#!/usr/bin/env python3
"""Measures the release binary: events per CPU-second, memory, bytes, idle cost, and the floor in the same run.

The agent reads files that lie in its spool, keeps its queue on disk with power-loss durability, and sends over TLS to the
development receiver, which runs beside it and does not count. CPU seconds are user and system time of the agent's
process, from start to exit. The machine's noise goes into every figure of a run alike: compare ratios.

usage: bench.py BINARY [--events 200000] [--files 10] [--runs 3] [--short] [--only WORDS] [--keep FILE]
"""
import argparse
import glob
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import ssl

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "scripts"))
from ports import free_port

# name → cap, events a batch, bytes a batch, compression, event profile; nothing where the default holds
PROFILES = {
    "cap 1GiB, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "standard"),
    "cap 1GiB, 3000 a batch, gzip": ("1GiB", 3000, "2MiB", "gzip", "standard"),
    "the defaults": ("", 0, "", "gzip", "standard"),
    "zstd, the defaults else": ("", 0, "", "zstd", "standard"),
    "cap 10MiB, 3000 a batch, zstd": ("10MiB", 3000, "2MiB", "zstd", "standard"),
    "cap 10MiB, gzip": ("10MiB", 0, "", "gzip", "standard"),
    "tiny events, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "tiny"),
    "large events, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "large"),
    "critical mix, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "critical"),
    "all additions, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "additions"),
    "a drop file an event, 3000 a batch, zstd": ("1GiB", 3000, "2MiB", "zstd", "drop"),
    "lines of pino where they lie": ("", 0, "", "gzip", "pino"),
    "nginx's access log, parsed": ("", 0, "", "gzip", "nginx"),
    "nginx's access log, a pattern of ten groups": ("", 0, "", "gzip", "pattern"),
    "logfmt, parsed": ("", 0, "", "gzip", "logfmt"),
    "lines of text": ("", 0, "", "gzip", "text"),
}
# The lines of a profile, where they are not called like it.
LINES = {"pattern": "nginx", "text": "nginx"}

SHORT = ["cap 1GiB, 3000 a batch, zstd", "the defaults"]

CONFIGURATION = """
{sizes}[agent]
state_directory = "{work}/state"
[spool]
directory = "{work}/spool"
after_read = "delete"
[stats]
listen = "127.0.0.1:{port}"
[control]
socket = "{work}/control.sock"
[[destination]]
name = "bench"
type = "http"
url = "{url}"
compression = "{compression}"
[destination.tls]
ca_file = "{ca}"
{more}"""

# What a profile turns on beside the defaults.
MORE = {
    "additions": """[country]
code = "IT"
[device]
overrides = { model = "rack 12", locale = "it-IT" }
[[priorities.rule]]
event = "Order placed"
priority = "critical"
""",
}
# Profiles of logs that are read in place, and how.
IN_PLACE = {
    "pino": "",
    "nginx": 'parse = "nginx"',
    "pattern": r"""pattern = '^(?P<client>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<method>\S+) (?P<path>\S+) (?P<protocol>[^"]*)" (?P<status>\d+) (?P<size>\d+) "(?P<referer>[^"]*)" "(?P<agent>[^"]*)"$'
numbers = ["status", "size"]""",
    "logfmt": 'parse = "logfmt"',
    "text": 'text = "lines"',
}
MORE |= {kind: '[apps.web]\nread = ["{work}/logs/*.jsonl"]\n' + more + "\n" for kind, more in IN_PLACE.items()}


class Receiver:
    """The development receiver, as a process of its own."""

    def __init__(self, binary: str, work: str, output: str = ""):
        """Counts what arrives, or with `output` keeps it in that file."""
        self.directory = os.path.join(work, "receiver")
        os.makedirs(self.directory)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}/"
        self.log = open(os.path.join(work, "receiver.log"), "wb")
        self.process = subprocess.Popen(
            [binary, "receive", "--listen", f"127.0.0.1:{self.port}", "--certificates", self.directory]
            + (["--output", output] if output else ["--quiet"]),
            stdout=self.log, stderr=self.log)
        self.ca = os.path.join(self.directory, "ca.pem")
        wait_for(lambda: os.path.exists(self.ca) and self.stats() is not None, 20, "the receiver to start")

    def stats(self):
        try:
            context = ssl.create_default_context(cafile=self.ca)
            with urllib.request.urlopen(self.url + "stats", context=context, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return None

    def events(self) -> int:
        stats = self.stats()
        return stats["events"] if stats else 0

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: gave up waiting for {what} after {seconds} s")
        time.sleep(0.05)


def end(agent, seconds: float = 60):
    """Asks an agent to end, kills it when it does not within the time, and tells what it took; None if it was gone before."""
    if agent.poll() is not None:
        return None
    agent.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(agent.pid, os.WNOHANG)
        if pid:
            agent.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > deadline:
            agent.send_signal(signal.SIGKILL)
        time.sleep(0.02)


def written_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/io") as io:
        return int(next(line for line in io if line.startswith("write_bytes")).split()[1])


def memory(pid: int) -> dict:
    with open(f"/proc/{pid}/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return {key: int(lines[key].split()[0]) / 1024 for key in ("VmHWM", "VmRSS", "RssAnon")}


def switches(pid: int) -> int:
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path) as status:
            total += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return total


def start_agent(binary, work: str, receiver: Receiver, cap: str, events: int, size: str, compression: str,
                more: str = "", interval: str = "1s", environment=None):
    """`binary` is a path, or a command whose end it is."""
    port = free_port()
    path = os.path.join(work, "spoolship.toml")
    sizes = "".join(f"{key} = {json.dumps(value)}\n" for key, value in (
        ("dispatch.interval", interval), ("queue.max_size", cap), ("dispatch.batch_events", events),
        ("dispatch.batch_size", size)) if value)
    with open(path, "w") as file:
        file.write(CONFIGURATION.format(work=work, sizes=sizes, port=port, url=receiver.url,
                                        compression=compression, ca=receiver.ca, more=more))
    log = open(os.path.join(work, "agent.log"), "wb")
    command = [binary] if isinstance(binary, str) else binary
    return subprocess.Popen([*command, "run", "--config", path], stdout=log, stderr=log, env=environment)


def measure(binary: str, receiver: Receiver, sources: str, events: int, profile: tuple) -> dict:
    cap, batch, size, compression, kind = profile
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=os.path.dirname(sources)) as work:
        os.makedirs(f"{work}/state")
        files = f"{work}/{'logs' if kind in IN_PLACE else 'spool'}"
        os.makedirs(f"{work}/spool")
        shutil.copytree(sources, files, dirs_exist_ok=True)
        # These events say no session: each file begins one, whose start is an event more.
        expected = events + (len(glob.glob(f"{files}/*")) if kind in ("tiny", "additions") else 0)
        spooled = sum(os.path.getsize(path) for path in glob.glob(f"{files}/*"))
        before = receiver.stats()
        began = time.monotonic()
        agent = start_agent(binary, work, receiver, cap, batch, size, compression,
                            MORE.get(kind, "").replace("{work}", work))
        try:
            wait_for(lambda: agent.poll() is not None or receiver.events() - before["events"] >= expected, 180,
                     "the events to arrive")
            wall = time.monotonic() - began
            if agent.poll() is not None:
                raise SystemExit("bench: the agent ended by itself:\n" + open(f"{work}/agent.log").read()[-2000:])
            figures = memory(agent.pid)
            written = written_bytes(agent.pid)
        finally:
            usage = end(agent)
        after = receiver.stats()
        if after["events"] - before["events"] != expected or agent.returncode != 0:
            raise SystemExit(f"bench: {after['events'] - before['events']} of {expected} events arrived, exit code "
                             f"{agent.returncode}\n" + open(f"{work}/agent.log").read()[-2000:])
        cpu = usage.ru_utime + usage.ru_stime
        return {"events_per_cpu_second": events / cpu, "mb_per_cpu_second": spooled / cpu / 1e6, "cpu": cpu, "wall": wall,
                "peak_rss_mb": figures["VmHWM"], "disk_bytes_per_byte": written / spooled,
                "wire_bytes_per_byte": (after["wire_bytes"] - before["wire_bytes"]) / spooled,
                "requests": after["requests"] - before["requests"]}


def idle(binary: str, receiver: Receiver, scratch: str, seconds: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
        os.makedirs(f"{work}/state")
        os.makedirs(f"{work}/spool")
        agent = start_agent(binary, work, receiver, "", 0, "", "gzip")
        try:
            # One event first, so that TLS is set up and the connection stays open, as in an agent that has worked.
            before = receiver.events()
            # A drop file, which goes at once: an append file is looked at again a minute later, to be removed.
            with open(f"{work}/spool/.one.tmp", "w") as file:
                file.write('{"name":"one"}\n')
            os.rename(f"{work}/spool/.one.tmp", f"{work}/spool/one.json")
            wait_for(lambda: agent.poll() is not None or receiver.events() > before, 30, "the first event")
            time.sleep(3)
            first, began = switches(agent.pid), time.monotonic()
            time.sleep(seconds)
            woken = switches(agent.pid) - first
            figures = memory(agent.pid)
            return {"rss_mb": figures["VmRSS"], "private_mb": figures["RssAnon"],
                    "context_switches_per_minute": woken * 60 / (time.monotonic() - began)}
        finally:
            end(agent)


def drip(lines: list, path: str, rate: int) -> tuple:
    """Appends lines at a steady rate, 50 times a second; how many bytes, and by how much the latest write was late."""
    spooled, began, late = 0, time.monotonic(), 0.0
    with open(path, "ab", buffering=0) as file:
        for first in range(0, len(lines), rate // 50):
            time.sleep(max(0.0, began + first / rate - time.monotonic()))
            late = max(late, time.monotonic() - began - first / rate)
            spooled += file.write(b"".join(lines[first:first + rate // 50]))
    return spooled, late


def read_lines(sources: str) -> list:
    lines: list = []
    for path in sorted(glob.glob(f"{sources}/*")):
        with open(path, "rb") as file:
            lines += file.readlines()
    return lines


def steady(binary: str, receiver: Receiver, sources: str, scratch: str, rate: int, seconds: int,
           compression: str = "zstd") -> dict:
    """Lines that come at a steady rate into one file, 50 times a second, with the default interval and batches."""
    lines = read_lines(sources)
    count = min(rate * seconds, len(lines))
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
        os.makedirs(f"{work}/state")
        os.makedirs(f"{work}/spool")
        before = receiver.events()
        agent = start_agent(binary, work, receiver, "", 0, "", compression, interval="6s")
        try:
            wait_for(lambda: agent.poll() is not None or os.path.exists(f"{work}/control.sock"), 30, "the agent")
            written, began = written_bytes(agent.pid), time.monotonic()
            spooled, late = drip(lines[:count], f"{work}/spool/app.jsonl", rate)
            wait_for(lambda: agent.poll() is not None or receiver.events() - before >= count, 60, "the events to arrive")
            wall = time.monotonic() - began
            figures, written = memory(agent.pid), written_bytes(agent.pid) - written
        finally:
            usage = end(agent)
        cpu = usage.ru_utime + usage.ru_stime
        return {"rate": rate, "events_per_cpu_second": count / cpu, "cpu": cpu, "wall": wall,
                "disk_bytes_per_byte": written / spooled, "cpu_percent": 100 * cpu * rate / count, "peak_rss_mb": figures["VmHWM"], "writer_late_ms": late * 1000}


def floor(receiver: Receiver, sources: str, scratch: str, compression: str, batch: int, size: int) -> dict:
    program = os.path.join(scratch, "floor")
    if not os.path.exists(program):
        # gzip by the agent's own call of ISA-L: what it costs beyond that is what counts here.
        gzip = os.path.join(HERE, "..", "Sources", "CShims", "CGzip")
        subprocess.run(["gcc", "-O2", "-c", "-I", f"{gzip}/include", "-o", f"{scratch}/cgzip.o", f"{gzip}/cgzip.c"], check=True)
        subprocess.run(["g++", "-O2", "-std=c++17", "-I", f"{gzip}/include", "-o", program,
                        os.path.join(HERE, "floor", "floor.cpp"), f"{scratch}/cgzip.o", "-lsimdjson", "-lzstd", "-lisal", "-lsqlite3", "-lcrypto", "-lcurl"], check=True)
    with tempfile.TemporaryDirectory(dir=scratch) as work:
        output = subprocess.run([program, compression, str(size), str(batch), f"{work}/floor.sqlite", receiver.url,
                                 receiver.ca, *sorted(glob.glob(f"{sources}/*"))], check=True, stdout=subprocess.PIPE)
    return json.loads(output.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="two profiles, one run each: what CI does")
    parser.add_argument("--only", default="", help="only profiles whose name holds these words")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--keep", default="build/bench.json", help="where results are kept and compared with")
    options = parser.parse_args()
    run(options)


def load(path: str) -> dict:
    """Results that were kept; without any of them, none."""
    if not os.path.exists(path):
        return {"profiles": {}}
    with open(path) as file:
        return json.load(file)


def run(options: argparse.Namespace) -> None:
    binary = os.path.abspath(options.binary)
    runs = 1 if options.short else options.runs
    names = SHORT if options.short else [name for name in PROFILES if options.only in name]
    results: dict = {"binary_mb": os.path.getsize(binary) / 1e6, "events": options.events, "profiles": {}}
    last = load(options.keep)

    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as scratch:
        receiver = Receiver(binary, scratch)
        try:
            print(f"binary {results['binary_mb']:.1f} MB, {options.events} events, median of {runs}")
            print(f"{'':44}{'events/CPU-s':>13}{'MB/CPU-s':>9}{'CPU s':>7}{'wall s':>7}{'RSS MB':>7}{'disk':>6}{'wire':>6}"
                  f"{'floor':>7}{'spread':>7}{'last':>6}")
            for name in names:
                profile = PROFILES[name]
                sources = os.path.join(scratch, f"events-{profile[4]}")
                events = options.events // {"large": 20, "drop": 10}.get(profile[4], 1)
                if not os.path.exists(sources):
                    subprocess.run([sys.executable, os.path.join(HERE, "generate.py"), sources, "--events", str(events),
                                    "--files", str(options.files), "--profile", LINES.get(profile[4], profile[4])], check=True)
                taken = [measure(binary, receiver, sources, events, profile) for _ in range(runs)]
                result = {key: statistics.median(one[key] for one in taken) for key in taken[0]}
                rates = [one["events_per_cpu_second"] for one in taken]
                result["spread"] = max(rates) / min(rates) - 1
                size = (2 << 20) if profile[2] == "2MiB" else (1 << 20)
                result["floor"] = floor(receiver, sources, scratch, profile[3], profile[1] or 5000, size)
                result["times_floor"] = result["cpu"] / result["floor"]["total"]
                before = last["profiles"].get(name, {}).get("events_per_cpu_second")
                change = f"{result['events_per_cpu_second'] / before:6.2f}" if before else ""
                results["profiles"][name] = result
                print(f"{name:44}{result['events_per_cpu_second']:13,.0f}{result['mb_per_cpu_second']:9.0f}"
                      f"{result['cpu']:7.2f}{result['wall']:7.2f}{result['peak_rss_mb']:7.1f}"
                      f"{result['disk_bytes_per_byte']:6.2f}{result['wire_bytes_per_byte']:6.2f}"
                      f"{result['times_floor']:7.2f}{100 * result['spread']:6.0f}%{change}", flush=True)
            results["steady"] = []
            # With --only there may be no such events.
            for rate in [rate for rate in ([5000] if options.short else [1000, 5000, 20_000])
                         if os.path.exists(os.path.join(scratch, "events-standard"))]:
                result = steady(binary, receiver, os.path.join(scratch, "events-standard"), scratch, rate,
                                2 if options.short else 10)
                results["steady"].append(result)
                print("{rate} events a second, the default interval and batches, zstd: {cpu_percent:.1f} % of a core, "
                      "{events_per_cpu_second:,.0f} events/CPU-s, {disk_bytes_per_byte:.2f} disk bytes a spool byte, RSS "
                      "{peak_rss_mb:.1f} MB (writer late by {writer_late_ms:.0f} ms at most)".format(**result), flush=True)
            results["idle"] = idle(binary, receiver, scratch, 5 if options.short else 60)
            print("idle: RSS {rss_mb:.1f} MB, private {private_mb:.1f} MB, {context_switches_per_minute:.0f} context "
                  "switches a minute".format(**results["idle"]))
        finally:
            receiver.stop()
    os.makedirs(os.path.dirname(os.path.abspath(options.keep)), exist_ok=True)
    with open(options.keep, "w") as file:
        json.dump(results, file, indent=2)
    print(f"kept in {options.keep}; floor = the agent's CPU over that of the same work in one C++ program; last = against "
          "the results kept before")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
