#!/usr/bin/env python3
"""A storm: the agent lives with the world, all of it at once, and at each quiet moment everything is counted.

Twelve writers rotate their files in every way and drop files. Three destinations: two HTTPS servers, one of which rejects single
events for good, and a file. The storm kills and stops the agent, reloads it with other settings, pauses and resumes, takes the network
away, fills its disk, reads its database from outside, and puts the servers into every mood: errors, 429, answers that are lost
after the batch was taken, slow and torn connections, 413. After some of these comes a quiet moment. Then

* each line has arrived at each server once, or is a rejected event's dead letter; at the file at least once,
* a batch that came again under its id had the same content,
* the ledger balances, for each destination and priority, and nothing is counted as evicted, expired or lost,
* nothing is left in the spool but the writers' current files and the archives that rotation packed,
* memory and descriptors are what they were.

It prints its seed and each decision with its time; the same seed makes the same decisions in the same order. Needs root, for a
file system of a size of its own. Not in it: steps of the clock, which the machine's other programs would share.

usage: python3 Benchmarks/storm BINARY [--seconds 180] [--seed N] [--calm 12] [--keep]
"""
import argparse
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from agent import Agent
from server import MOODS, Server


def module(name, path):
    loader = importlib.machinery.SourceFileLoader(name, path)
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(made)
    return made


# The ways of rotating are those of scripts/storm.
Rotating = module("rotating", os.path.join(HERE, "../../scripts/storm")).Writer


class Writer(Rotating):
    """Writes and rotates until it is told to hold; then it says how many lines it has written."""

    def line(self):
        line = super().line()
        # One event in some thousands is one that the picky server rejects.
        return line.replace(b'"name":"e"', b'"name":"e","poison":true') if self.count % 3001 == 1500 else line

    def live(self, hold, stop, counts, held, pause):
        while not stop.is_set():
            if hold.is_set():
                counts[self.mode] = self.count
                held[self.mode] = True
                while hold.is_set() and not stop.is_set():
                    time.sleep(0.02)
                held[self.mode] = False
                continue
            for _ in range(self.chance.randint(1, 12)):
                self.write()
                time.sleep(self.chance.random() * pause)
            if os.path.exists(self.name):
                self.rotations += 1
                getattr(self, self.mode)()
                time.sleep(self.chance.random() * pause * 10)


class Storm:
    """What happens, in an order that the seed decides."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.random = random.Random(f"storm-{options.seed}")
        for name in ["spool", "tls"] + [f"spool/{mode}" for mode in Rotating.MODES]:
            os.mkdir(f"{work}/{name}", 0o755)
        self.server = Server(f"{work}/tls", ["plain", "picky"], options.seed)
        self.agent = Agent(options.binary, work, self.server)
        self.began, self.faults, self.sizes, self.done = time.monotonic(), [], [], {}
        manager = multiprocessing.Manager()
        self.counts, self.held = manager.dict(), manager.dict()
        self.hold, self.stop = multiprocessing.Event(), multiprocessing.Event()
        self.writers = [
            multiprocessing.Process(
                target=Writer(f"{work}/spool", mode, options.seed).live, daemon=True,
                args=(self.hold, self.stop, self.counts, self.held, options.pause))
            for mode in Rotating.MODES]

    def say(self, text):
        print(f"storm: {time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    # What can happen.

    def killed(self):
        self.agent.kill()
        time.sleep(self.random.choice([0, 0.1, 1]))
        self.agent.start()

    def killed_twice(self):
        """Again, before the start has come to its end."""
        for pause in (self.random.random() * 0.3, 0):
            self.agent.kill()
            self.agent.start()
            time.sleep(pause)

    def restarted(self):
        took = self.agent.terminate()
        self.agent.start()
        return f"ended in {took:.1f} s"

    def reloaded(self):
        change = self.random.choice([
            {"interval": self.random.choice(["1s", "2s", "5s"])},
            {"events": self.random.choice([1, 20, 50, 500])},
            {"compression": self.random.choice(["none", "gzip"])},
            {"cap": self.random.choice(["4MiB", "8MiB", "32MiB"])},
        ])
        self.agent.configure(**change)
        return f"{change}, exit {self.agent.say('reload')}"

    def reloaded_wrongly(self):
        with open(self.agent.path, "a") as file:
            file.write("[queue]\nmax_sise = 1\n")
        code = self.agent.say("reload")
        self.agent.configure()
        if code == 0:
            self.faults.append("a reload with a mistake was taken")
        return f"exit {code}"

    def paused(self):
        token, ttl = f"storm{self.random.randrange(3)}", self.random.choice(["2s", "5s", "60s"])
        where = self.random.choice([[], ["--destination", "picky"]])
        return f"{ttl} {where}, exit {self.agent.say('pause', '--token', token, '--ttl', ttl, *where)}"

    def resumed(self):
        return f"exit {self.agent.say('resume')}"

    def offline(self):
        first = self.agent.say("network", "off")
        time.sleep(self.random.random() * 4)
        return f"exit {first}, {self.agent.say('network', 'on')}"

    def dispatched(self):
        return f"exit {self.agent.say('dispatch')}"

    def moody(self):
        destination = self.server.destinations[self.random.choice(["plain", "picky"])]
        destination.mood = self.random.choice(sorted(MOODS))
        return f"{destination.name} is {destination.mood}"

    def full_disk(self):
        """Nothing more fits on the state directory's file system for some seconds."""
        path, length = f"{self.work}/state/in-the-way", 0
        wait = self.random.uniform(1, 8)
        with open(path, "wb", buffering=0) as file:
            try:
                while True:
                    length += file.write(bytes(1 << 16))
            except OSError:
                pass
            time.sleep(wait)
        os.unlink(path)
        return f"{length >> 20} MiB in the way for {wait:.1f} s"

    def read_by_others(self):
        """A reader of the database keeps a snapshot open, as a backup does."""
        def read(seconds):
            try:
                with sqlite3.connect(f"file:{self.work}/state/queue.sqlite?mode=ro", uri=True, timeout=5) as reader:
                    reader.execute("BEGIN")
                    reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
                    time.sleep(seconds)
            except sqlite3.Error as error:
                self.say(f"the foreign reader: {error}")
        threading.Thread(target=read, args=(self.random.uniform(0.5, 6),), daemon=True).start()

    def disabled(self):
        """Switched off and on again. What waits is deleted then, so first nothing may wait: only at a quiet moment."""
        off = self.agent.say("disable", "--yes")
        self.agent.kill()
        self.agent.start()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 60)
        on = self.agent.say("enable")
        if off or on:
            self.faults.append(f"disable ended with {off}, enable with {on}")
        return f"exit {off}, {on}"

    def left_alone(self):
        time.sleep(self.random.random() * 3)

    HAPPENINGS = [
        killed, killed, killed_twice, restarted, reloaded, reloaded, reloaded_wrongly, paused, resumed, offline, dispatched, moody, moody,
        moody, moody, full_disk, read_by_others, left_alone, left_alone]

    # Quiet moments.

    def quiet(self):
        """Lets everything come to rest, and counts."""
        for destination in self.server.destinations.values():
            destination.mood = "well"
        self.hold.set()
        while not all(self.held.get(mode) for mode in Rotating.MODES):
            if any(writer.exitcode is not None for writer in self.writers):
                raise SystemExit("storm: FAILED: a writer has ended")
            time.sleep(0.02)
        self.agent.check_alive()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 60)
        for command in (["network", "on"], ["resume"]):
            code = self.agent.say(*command)
            if code != 0:
                self.faults.append(f"{' '.join(command)} ended with {code}")
        self.until("all to arrive", self.has_arrived, 180)
        self.until("the queue to be empty", lambda: self.waiting() == 0, 60)
        self.until("the spool to be tidy", lambda: not self.leftovers(), 60)
        self.judge()
        if self.random.random() < 0.3:
            self.say(f"disabled: {self.disabled()}")
        self.hold.clear()

    def until(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            self.agent.check_alive()
            if time.monotonic() > deadline:
                # What is wrong is named where it is counted.
                self.say(f"waited {seconds} s for {what}")
                return
            time.sleep(0.25)

    def has_arrived(self):
        return not any(destination.missing(mode, self.counts[mode])
                       for destination in self.server.destinations.values() for mode in Rotating.MODES)

    def waiting(self):
        status = self.agent.status()
        return status and sum(lane["queued"] for one in status["destinations"] for lane in one["lanes"])

    def leftovers(self):
        """Files in the spool that are neither a writer's current one nor an archive of rotation's, which stays."""
        return [f"{mode}/{name}" for mode in Rotating.MODES for name in os.listdir(f"{self.work}/spool/{mode}")
                if name != "f.log" and not name.endswith(".gz")]

    def judge(self):
        before = len(self.faults)
        for name, destination in self.server.destinations.items():
            for mode in Rotating.MODES:
                missing = destination.missing(mode, self.counts[mode])
                if missing:
                    self.faults.append(f"{name}: {len(missing)} lines of {mode} did not arrive, the first {missing[:3]}")
            repeated = destination.repeated()
            if repeated:
                self.faults.append(f"{name}: {len(repeated)} lines arrived more than once, as {repeated[:3]}")
            self.faults += destination.faults
            destination.faults = []
        self.judge_file()
        left = self.leftovers()
        if left:
            self.faults.append(f"{len(left)} files are left in the spool, as {left[:3]}")
        status = self.agent.status()
        if status is None:
            self.faults.append("status says nothing")
        else:
            self.judge_ledger(status)
        memory, descriptors = self.agent.size()
        self.sizes.append((memory, descriptors))
        total = sum(self.counts.values())
        self.say(f"quiet: {total} lines, {memory:.1f} MB, {descriptors} descriptors; {len(self.faults) - before} faults")
        for fault in self.faults[before:]:
            self.say(f"FAULT: {fault}")

    def judge_file(self):
        """A file remembers no batches: around a kill lines may be there twice, but none is missing."""
        seen = {mode: set() for mode in Rotating.MODES}
        with open(f"{self.work}/out.jsonl", "rb") as file:
            for line in file:
                try:
                    mode, number = json.loads(line)["k"].rsplit("-", 1)
                except (ValueError, KeyError):
                    # A line that a kill has torn; its batch was written again.
                    continue
                seen[mode].add(int(number))
        for mode in Rotating.MODES:
            missing = self.counts[mode] - len(seen[mode])
            if missing:
                self.faults.append(f"file: {missing} lines of {mode} are missing")

    def judge_ledger(self, status):
        if not status["balanced"]:
            self.faults.append("the agent says that the ledger does not balance")
        for one in status["destinations"]:
            for lane in one["lanes"]:
                place = f"{one['name']}, {lane['priority']}"
                gone = [lane[column] for column in ("acknowledged", "dead_lettered", "evicted", "expired", "discarded", "lost", "queued")]
                if lane["accepted"] + lane["retried"] != sum(gone):
                    self.faults.append(f"{place}: the ledger's row does not balance: {lane}")
                for column in ("evicted", "expired", "discarded", "lost", "queued"):
                    if lane[column]:
                        self.faults.append(f"{place}: {lane[column]} {column}")
            dead = sum(lane["dead_lettered"] for lane in one["lanes"])
            expected = self.server.destinations[one["name"]].rejected if one["name"] in self.server.destinations else ()
            if dead != len(expected):
                self.faults.append(f"{one['name']}: {dead} dead letters, {len(expected)} events were rejected")

    # The whole.

    def rage(self):
        self.agent.start()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 30)
        for writer in self.writers:
            writer.start()
        until = time.monotonic() + self.options.seconds
        while time.monotonic() < until and not self.faults:
            for _ in range(self.options.calm):
                happening = self.random.choice(self.HAPPENINGS)
                self.agent.check_alive()
                self.done[happening.__name__] = self.done.get(happening.__name__, 0) + 1
                said = happening(self)
                self.say(happening.__name__.replace("_", " ") + (f": {said}" if said else ""))
                time.sleep(self.random.random())
            self.quiet()
        self.stop.set()
        self.compare_sizes()
        self.agent.terminate()

    def compare_sizes(self):
        """Of the first quiet moments and of the last: what grows all the time is found by long storms."""
        if len(self.sizes) < 4:
            return
        early, late = self.sizes[:2], self.sizes[-2:]
        if min(one[0] for one in late) > 1.5 * max(one[0] for one in early) + 8:
            self.faults.append(f"memory has grown: {self.sizes}")
        if min(one[1] for one in late) > max(one[1] for one in early) + 16:
            self.faults.append(f"descriptors have grown: {self.sizes}")

    def end(self):
        for writer in self.writers:
            if writer.is_alive():
                writer.terminate()
        if self.agent.process and self.agent.process.poll() is None:
            self.agent.process.kill()
            self.agent.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--calm", type=int, default=12, help="after how many decisions a quiet moment comes")
    parser.add_argument("--pause", type=float, default=0.2, help="the longest pause between two writes, in seconds")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--keep", action="store_true", help="leave what there is behind")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("storm: needs root, for a file system of its own", file=sys.stderr)
        return 77
    work = tempfile.mkdtemp(prefix="spoolship-storm-", dir=options.scratch)
    os.mkdir(f"{work}/state", 0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m,mode=700", "storm", f"{work}/state"], check=True)
    print(f"storm: seed {options.seed}, {options.seconds:.0f} s, in {work}", flush=True)
    storm, failed = None, True
    try:
        storm = Storm(options, work)
        storm.rage()
        failed = bool(storm.faults)
        happened = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(storm.done.items()))
        print(f"storm: {sum(storm.counts.values())} lines, {storm.agent.starts} starts; {happened}")
        for name, destination in storm.server.destinations.items():
            print(f"storm: {name}: {len(destination.batches)} batches; answers {dict(sorted(destination.answers.items()))}")
        for fault in storm.faults:
            print(f"storm: FAILED: {fault}")
        print("storm: passed" if not failed else f"storm: failed; to repeat it: --seed {options.seed}")
        return int(failed)
    finally:
        if storm:
            storm.end()
        if options.keep or failed:
            print(f"storm: kept in {work}")
        else:
            # Lazily: the foreign reader may still have the database open.
            subprocess.run(["umount", "--lazy", f"{work}/state"], check=True)
            shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
