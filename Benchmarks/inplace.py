#!/usr/bin/env python3
"""The memory and the inotify instances of an agent with many apps that read in place.

    python3 Benchmarks/inplace.py build/spoolship [--apps N] [--lines N] [--most-mb N]

Each app has a directory with a log, of which it gets its share of the lines, one after the other. The process's private memory
is printed after the start, after the lines, and when it has been idle: what the kernel calls anonymous, as in the other benchmarks.
Pages of the program's file are not in it, since whether they count as private depends on who else runs the file. Ends with 1 if a line
did not arrive, if more than two inotify instances are open, or if the private memory is above --most-mb at the end.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 180


def private(process):
    """MB of private memory."""
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) / 1000


def parts(process):
    """The largest private mappings, in MB, by what they map."""
    found, name = {}, ""
    with open(f"/proc/{process}/smaps") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                name = " ".join(words[5:]) or "no name"
            elif words[0] == "Anonymous:":
                found[name] = found.get(name, 0) + int(words[1]) / 1000
    return sorted(found.items(), key=lambda part: -part[1])[:8]


def instances(process):
    directory = f"/proc/{process}/fd"
    return sum(1 for name in os.listdir(directory) if "inotify" in os.readlink(f"{directory}/{name}"))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary")
    options.add_argument("--apps", type=int, default=150)
    options.add_argument("--lines", type=int, default=30_000)
    options.add_argument("--most-mb", type=float, default=24)
    options.add_argument("--keep", action="store_true", help="do not end: print the process and wait")
    options = options.parse_args()
    path = tempfile.mkdtemp(prefix="spoolship-inplace-", dir="/var/tmp")
    for name in ("state", "run", "spool/.spoolship"):
        os.makedirs(f"{path}/{name}")
    text = f"""
[agent]
state_directory = "{path}/state"
runtime_directory = "{path}/run"
[spool]
directory = "{path}/spool"
[dispatch]
interval = "1s"
[stats]
listen = "off"
[control]
socket = "{path}/control.sock"
[[destination]]
name = "main"
type = "file"
path = "{path}/out.ndjson"
"""
    for number in range(options.apps):
        os.makedirs(f"{path}/log/{number}")
        text += f'[apps.app{number}]\nread = ["{path}/log/{number}/*.log"]\n'
    with open(f"{path}/spoolship.toml", "w") as file:
        file.write(text)
    log = open(f"{path}/agent.log", "w")
    agent = subprocess.Popen([options.binary, "run", "--config", f"{path}/spoolship.toml"], stderr=log, stdout=log)

    def until(what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                sys.exit(f"{what}: not within {PATIENCE} s; {path}")
            time.sleep(0.2)

    def arrived():
        try:
            with open(f"{path}/out.ndjson", "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def say(when):
        whole = private(agent.pid)
        print(f"{when}: {whole:.1f} MB private, {instances(agent.pid)} inotify instances", flush=True)
        return whole

    until("the start", lambda: "agent started" in open(f"{path}/agent.log").read() or os.path.exists(f"{path}/control.sock"))
    time.sleep(3)
    say("after the start")
    for turn in range(options.lines // options.apps):
        for number in range(options.apps):
            with open(f"{path}/log/{number}/app.log", "a") as file:
                file.write(json.dumps({
                    "time": "2026-11-29T10:00:00Z", "level": "info", "msg": "order shipped", "order": turn * options.apps + number,
                    "customer": f"c{number}", "amount": 12.5}) + "\n")
    wanted = options.lines // options.apps * options.apps
    until("the lines", lambda: arrived() >= wanted)
    whole = say(f"after {wanted} lines")
    time.sleep(30)
    whole = say("30 s later")
    for name, size in parts(agent.pid):
        print(f"    {size:6.1f} MB {name}")
    bad = whole > options.most_mb or instances(agent.pid) > 2 or arrived() != wanted
    if options.keep:
        print(agent.pid, path, flush=True)
        signal.pause()
    agent.terminate()
    agent.wait()
    shutil.rmtree(path)
    sys.exit(1 if bad else 0)


main()
