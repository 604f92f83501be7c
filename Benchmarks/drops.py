#!/usr/bin/env python3
"""Measures drop files of one event with the release binary: CPU for each file, files per CPU-second, memory, and the floor.

waiting: so many files lie in the spool when the agent starts. arriving: they are renamed in at 10,000 a second by a
process of its own, whose CPU does not count. Both with power-loss durability, TLS and acknowledgement, until every event has
arrived and every file is gone: claim, open, read, commit, delivery, unlink, all in.

The floor is what the kernel takes for the bare calls (open, fstat, rename, read, close, unlink) on as many files, made by one
C program in the same directory right after: no reader that claims files and removes them can be below it.

Measure on a file system with a journal, or on a tmpfs. On ext4 without a journal each file that is made looks through the
inodes that were freed in the last seconds, and holds the directory's lock meanwhile: writer and agent then wait, spinning,
for each other, and the figure says nothing about either. When the writer does not keep its rate this says so.

usage: drops.py BINARY [--waiting 100000] [--arriving 10000] [--scratch DIRECTORY]
"""
import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from bench import HERE, Receiver, memory, start_agent, wait_for

EVENT = '{"name": "Video clicked", "properties": {"Category": "Music", "number": %d}}\n'
RATE = 10_000
GOAL = 50


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


def file_system(directory: str) -> tuple:
    """The type of a directory's file system, and whether it can be measured on."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            if line.split()[2] == number:
                kind = line.split(" - ")[1].split()[0]
                name = os.path.basename(os.path.realpath(f"/sys/dev/block/{number}"))
                journals = glob.glob(f"/proc/fs/jbd2/{name}-*")
                if kind == "ext4" and os.path.isdir(f"/proc/fs/ext4/{name}") and not journals:
                    return "ext4 without a journal", False
                return kind, True
    return "unknown", True


def floor(work: str, count: int) -> float:
    program = os.path.join(work, "floor")
    subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "floor", "drops.c")], check=True)
    spool = os.path.join(work, "floor-spool")
    os.makedirs(spool)
    put(spool, range(count), 0)
    result = json.loads(subprocess.run([program, spool], check=True, stdout=subprocess.PIPE).stdout)
    assert result["files"] == count, result
    return result["cpu"]


def take(binary: str, receiver: Receiver, scratch: str, count: int, is_waiting: bool, with_floor: bool = True) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=scratch) as work:
        spool = f"{work}/spool"
        os.makedirs(f"{work}/state")
        os.makedirs(spool)
        if is_waiting:
            put(spool, range(count), 0)
            # Files that were made just now are looked at twice: they may be still being written.
            time.sleep(1.5)
        before = receiver.events()
        agent = start_agent(binary, work, receiver, "1GiB", 3000, "2MiB", "zstd")
        try:
            if not is_waiting:
                wait_for(lambda: os.path.exists(f"{work}/control.sock"), 30, "the agent to start")
                time.sleep(1)
            spent, began = (0.0 if is_waiting else cpu(agent.pid)), time.monotonic()
            writer, written = None, None
            if not is_waiting:
                writer = subprocess.Popen([sys.executable, __file__, "write", spool, str(count)], stdout=subprocess.PIPE)
            # A start of a session is an event more.
            wait_for(lambda: agent.poll() is not None or receiver.events() - before >= count, 600, "the events")
            wall = time.monotonic() - began
            wait_for(lambda: set(os.listdir(spool)) <= {".spoolship"}, 120, "the files to go")
            spent = cpu(agent.pid) - spent
            figures = memory(agent.pid)
            if writer is not None:
                written = float(writer.communicate(timeout=60)[0])
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait(60)
        return {"cpu": spent, "events_per_cpu_second": count / spent, "wall": wall, "peak_rss_mb": figures["VmHWM"],
                "private_mb": figures["RssAnon"], "writer_seconds": written,
                "floor": floor(work, count) if with_floor else None}


def measure(binary: str, receiver: Receiver, scratch: str, count: int, is_waiting: bool) -> None:
    taken = take(binary, receiver, scratch, count, is_waiting)
    spent, bare, written = taken["cpu"], taken["floor"], taken["writer_seconds"]
    print(f"{'waiting' if is_waiting else 'arriving':9} {count:8,} files: {spent / count * 1e6:5.1f} us of CPU a file (goal "
          f"{GOAL}), {count / spent:8,.0f} files per CPU-second; floor {bare / count * 1e6:5.1f} us, {spent / bare:4.2f} "
          f"times; {taken['wall']:6.2f} s until all had arrived, peak RSS {taken['peak_rss_mb']:.1f} MB, private "
          f"{taken['private_mb']:.1f} MB", flush=True)
    if written is not None and written > 1.2 * count / RATE + 0.1:
        print(f"          the writer took {written:.1f} s for {count / RATE:.1f} s of files: file system or machine did not "
              "keep up, so this line says little about the agent", flush=True)


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "write":
        began = time.monotonic()
        put(sys.argv[2], range(int(sys.argv[3])), RATE)
        print(time.monotonic() - began)
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--arriving", type=int, default=10_000)
    parser.add_argument("--scratch", help="a directory; default: /var/tmp, or /dev/shm where /var/tmp cannot be measured on")
    options = parser.parse_args()
    parent = options.scratch or next((path for path in ("/var/tmp", "/dev/shm") if file_system(path)[1]), "/var/tmp")
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=parent) as scratch:
        receiver = Receiver(os.path.abspath(options.binary), scratch)
        try:
            kind, is_fit = file_system(scratch)
            print(f"drop files of one event, on {kind} ({parent}), load {os.getloadavg()[0]:.1f}"
                  + ("" if is_fit else ": files that arrive cannot be measured on it; name another with --scratch"))
            measure(os.path.abspath(options.binary), receiver, scratch, options.waiting, True)
            measure(os.path.abspath(options.binary), receiver, scratch, options.arriving, False)
        finally:
            receiver.stop()


if __name__ == "__main__":
    main()
