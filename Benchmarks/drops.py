#!/usr/bin/env python3
"""Measures drop files of one event with the release binary: CPU for each file, files per CPU-second, memory, bytes.

waiting: so many files lie in the spool when the agent starts. arriving: they are renamed in at 10,000 a second by a
process of its own, whose CPU does not count. Both with power-loss durability, TLS and acknowledgement, until every event has
arrived and every file is gone.

usage: drops.py BINARY [--waiting 100000] [--arriving 10000] [--scratch /var/tmp]
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

from bench import Receiver, memory, start_agent, wait_for

EVENT = '{"name": "Video clicked", "properties": {"Category": "Music", "number": %d}}\n'


def put(spool: str, numbers: range, rate: int) -> None:
    began = time.monotonic()
    for count, number in enumerate(numbers):
        hidden, name = f"{spool}/.{number}", f"{spool}/{number}.json"
        with open(hidden, "w") as file:
            file.write(EVENT % number)
        os.rename(hidden, name)
        ahead = count / rate - (time.monotonic() - began) if rate else 0
        if ahead > 0.005:
            time.sleep(ahead)


def cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(binary: str, receiver: Receiver, scratch: str, count: int, is_waiting: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
        spool = f"{work}/spool"
        os.makedirs(f"{work}/state")
        os.makedirs(spool)
        if is_waiting:
            put(spool, range(count), 0)
        before = receiver.events()
        agent = start_agent(binary, work, receiver, "1GiB", 3000, "2MiB", "zstd")
        try:
            if not is_waiting:
                wait_for(lambda: os.path.exists(f"{work}/control.sock"), 30, "the agent to start")
                time.sleep(1)
            spent, began = (0.0 if is_waiting else cpu(agent.pid)), time.monotonic()
            writer = None
            if not is_waiting:
                writer = subprocess.Popen([sys.executable, __file__, "write", spool, str(count)])
            # A start of a session is an event more.
            wait_for(lambda: agent.poll() is not None or receiver.events() - before >= count, 600, "the events")
            wall = time.monotonic() - began
            wait_for(lambda: not os.listdir(spool) or set(os.listdir(spool)) <= {".spoolship"}, 120, "the files to go")
            spent = cpu(agent.pid) - spent
            figures = memory(agent.pid)
            if writer is not None:
                writer.wait(60)
            print(f"{'waiting' if is_waiting else 'arriving':9} {count:8,} files: {spent:6.2f} s CPU, "
                  f"{spent / count * 1e6:5.1f} us a file, {count / spent:8,.0f} files per CPU-second, {wall:6.2f} s until all "
                  f"had arrived, peak RSS {figures['VmHWM']:.1f} MB, private {figures['RssAnon']:.1f} MB", flush=True)
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait(60)


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "write":
        return put(sys.argv[2], range(int(sys.argv[3])), 10_000)
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--arriving", type=int, default=10_000)
    parser.add_argument("--scratch", default="/var/tmp", help="a directory; on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as scratch:
        receiver = Receiver(os.path.abspath(options.binary), scratch)
        try:
            print(f"load {os.getloadavg()[0]:.1f}")
            measure(os.path.abspath(options.binary), receiver, scratch, options.waiting, True)
            measure(os.path.abspath(options.binary), receiver, scratch, options.arriving, False)
        finally:
            receiver.stop()


if __name__ == "__main__":
    main()
