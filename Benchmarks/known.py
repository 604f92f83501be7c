#!/usr/bin/env python3
"""Measures what append files cost that stay (after_read = "keep") and are read to their ends: memory for each, CPU of reading
them, of sleeping, of starting again, and how soon a line in one of them arrives.

usage: known.py BINARY [--files 1000000] [--scratch /var/tmp]
"""
import argparse
import os
import signal
import tempfile
import time

from bench import CONFIGURATION, Receiver, free_port, memory, wait_for
from drops import cpu
import subprocess

EVENT = '{"name": "Video clicked", "properties": {"Category": "Music", "number": %d}}\n'
FOLDER = 1000


def start(binary: str, work: str, receiver: Receiver):
    text = CONFIGURATION.format(work=work, cap="1GiB", events=3000, bytes="2MiB", port=free_port(), url=receiver.url,
                                compression="zstd", ca=receiver.ca, more="[session]\nmode = \"off\"\n")
    with open(f"{work}/spoolship.toml", "w") as file:
        file.write(text.replace("after_read = \"delete\"", "after_read = \"keep\""))
    log = open(f"{work}/agent.log", "ab")
    return subprocess.Popen([binary, "run", "--config", f"{work}/spoolship.toml"], stdout=log, stderr=log)


def append(spool: str, number: int) -> None:
    with open(f"{spool}/app{number // FOLDER}/{number}.jsonl", "a") as file:
        file.write(EVENT % number)


def told(name: str, agent, began: float, count: int) -> None:
    figures = memory(agent.pid)
    print(f"{name:22} {time.monotonic() - began:7.1f} s, {cpu(agent.pid):7.2f} s CPU so far, RSS {figures['VmRSS']:.0f} MB "
          f"(peak {figures['VmHWM']:.0f}), private {figures['RssAnon']:.0f} MB, "
          f"{figures['RssAnon'] * 1048576 / count:.0f} bytes a file", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--scratch", default="/var/tmp")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as work:
        receiver = Receiver(binary, work)
        spool = f"{work}/spool"
        os.makedirs(f"{work}/state")
        for number in range(options.files):
            if number % FOLDER == 0:
                os.makedirs(f"{spool}/app{number // FOLDER}")
            append(spool, number)
        print(f"{options.files:,} append files of one event, load {os.getloadavg()[0]:.1f}", flush=True)
        before = receiver.events()

        def one_more(name: str, agent, numbers: list, expected: int) -> None:
            for number in numbers:
                spent, began = cpu(agent.pid), time.monotonic()
                append(spool, number)
                expected += 1
                wait_for(lambda: receiver.events() - before >= expected, 900, "the line")
                print(f"{name:22} {time.monotonic() - began:7.2f} s until it had arrived (1 s is the interval), "
                      f"{(cpu(agent.pid) - spent) * 1000:.0f} ms CPU", flush=True)

        agent, began = start(binary, work, receiver), time.monotonic()
        try:
            wait_for(lambda: receiver.events() - before >= options.files, 1800, "the events")
            told("first start, all read", agent, began, options.files)
            time.sleep(5)
            spent = cpu(agent.pid)
            time.sleep(20)
            print(f"{'asleep for 20 s':22} {(cpu(agent.pid) - spent) * 1000:.0f} ms CPU", flush=True)
            told("then", agent, began, options.files)
            one_more("a line in one of them", agent, [options.files // 2], options.files)
            agent.send_signal(signal.SIGTERM)
            agent.wait(120)
            began = time.monotonic()
            agent = start(binary, work, receiver)
            # It is behind the others: read when all are known again.
            one_more("the next start, a line", agent, [options.files - 1], options.files + 1)
            told("the next start", agent, began, options.files)
            one_more("a line in one of them", agent, [options.files // 3], options.files + 2)
        finally:
            if agent.poll() is None:
                agent.send_signal(signal.SIGTERM)
                agent.wait(120)
            receiver.stop()


if __name__ == "__main__":
    main()
