#!/usr/bin/env python3
"""Measures what a steady stream of lines costs an agent, by thread: ms of CPU and wake-ups a second, start and end not counted.

The lines come while the agent runs with the defaults: gzip, TLS, a queue that survives a power cut. CPU time is the kernel's count
in nanoseconds (/proc/PID/task/TID/schedstat), wake-ups are voluntary context switches. With several binaries each round runs them in
turns: only they compare, because a machine's speed changes from minute to minute.

usage: steady.py BINARY... [--seconds 60] [--rate 1000] [--rounds 1] [--only WORDS] [--scratch /var/tmp]
"""
import argparse
import glob
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import bench

# name → event profile, writes a second (0: one for each line), and for a log that is read in place the settings of its app
CASES = {
    "events, 50 writes a second": ("standard", 50, None),
    "events, a write for each": ("standard", 0, None),
    "nginx's access log, parsed": ("nginx", 0, 'parse = "nginx"'),
    "lines of text": ("nginx", 0, 'text = "lines"'),
}
# Seconds in which the stream flows before anything is measured.
WARM = 4


class Threads:
    """What each thread of a process has taken so far."""

    def __init__(self, pid: int):
        self.time = time.monotonic()
        self.taken = {}
        for task in glob.glob(f"/proc/{pid}/task/*"):
            with open(f"{task}/schedstat") as count, open(f"{task}/status") as status, open(f"{task}/comm") as name:
                switches = next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))
                self.taken[name.read().strip()] = (int(count.read().split()[0]) / 1e6, switches)

    def since(self, before: "Threads") -> dict:
        """Milliseconds of CPU and wake-ups a second, by thread."""
        seconds = self.time - before.time
        return {name: tuple((now - then) / seconds for now, then in zip(taken, before.taken.get(name, (0, 0))))
                for name, taken in self.taken.items()}


def stream(binary: str, receiver: bench.Receiver, sources: str, scratch: str, case: str, rate: int, seconds: int) -> dict:
    """Runs an agent, writes lines, and measures the seconds after the first few."""
    _, writes, more = CASES[case]
    writes = min(writes or rate, rate)
    together = rate // writes
    lines = bench.read_lines(sources)
    with tempfile.TemporaryDirectory(prefix="spoolship-steady-", dir=scratch) as work:
        for directory in ("state", "spool", "logs"):
            os.makedirs(f"{work}/{directory}")
        path = f"{work}/spool/app.jsonl" if more is None else f"{work}/logs/access.log"
        extra = "" if more is None else f'[apps.web]\nread = ["{work}/logs/*.log"]\n{more}\n'
        arrived = receiver.events()
        agent = bench.start_agent(binary, work, receiver, "", 0, "", "gzip", extra, interval="")
        try:
            bench.wait_for(lambda: agent.poll() is not None or os.path.exists(f"{work}/control.sock"), 30, "the agent")
            before = None
            began = time.monotonic()
            with open(path, "ab", buffering=0) as file:
                for number in range(writes * (WARM + seconds)):
                    time.sleep(max(0.0, began + number / writes - time.monotonic()))
                    if number == writes * WARM:
                        before = Threads(agent.pid), receiver.stats()
                    first = number * together % (len(lines) - together)
                    file.write(b"".join(lines[first:first + together]))
            threads = Threads(agent.pid).since(before[0])
            requests = (receiver.stats()["requests"] - before[1]["requests"]) / seconds
            # Nothing may be lost for speed.
            wanted = writes * (WARM + seconds) * together
            bench.wait_for(lambda: agent.poll() is not None or receiver.events() - arrived == wanted, 60,
                           f"{wanted} events to arrive")
        finally:
            bench.end(agent)
    return {"threads": threads, "requests": requests}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="only cases whose name holds these words")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spoolship-steady-", dir=options.scratch) as scratch:
        sources = {}
        for profile in {profile for name, (profile, _, _) in CASES.items() if options.only in name}:
            sources[profile] = f"{scratch}/{profile}"
            subprocess.run([sys.executable, os.path.join(bench.HERE, "generate.py"), sources[profile], "--events", "60000",
                            "--profile", profile], check=True)
        receiver = bench.Receiver(os.path.abspath(options.binaries[0]), scratch)
        try:
            for name in [name for name in CASES if options.only in name]:
                for binary in options.binaries * options.rounds:
                    found = stream(os.path.abspath(binary), receiver, sources[CASES[name][0]], scratch, name, options.rate,
                                   options.seconds)
                    threads = {thread: taken for thread, taken in found["threads"].items() if taken[1] >= 1}
                    parts = ", ".join(f"{thread} {cpu:.1f} ms {wakes:.0f}" for thread, (cpu, wakes) in sorted(threads.items()))
                    total = sum(cpu for cpu, _ in found["threads"].values())
                    print(f"{name:28} {os.path.basename(binary):12} {total:5.1f} ms of CPU a second ({parts} wake-ups), "
                          f"{found['requests']:.1f} requests, load {os.getloadavg()[0]:.0f}", flush=True)
        finally:
            receiver.stop()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
