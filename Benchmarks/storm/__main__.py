#!/usr/bin/env python3
"""A storm: the agent lives with the world, all of it at once, and at each quiet moment everything is counted.

Twelve writers rotate their files in every way and drop files. Five destinations: four HTTPS servers and a file. One of the servers
rejects single events for good, and two refuse every fifth line with 400: one the whole request, one stores its other events, as Loki does. A container rules what becomes of the events. The storm
* kills and stops the agent, reloads it with other settings and wrong ones, pauses and resumes, disables and enables it,
* takes the network away, by command, by the route and behind the route: the agent has a network namespace of its own,
* fills the disk, makes it read-only, and reads the database from outside,
* sets the agent's clock ahead and back, by seconds to weeks (world.c says how),
* puts the servers into every mood: errors, 429, answers that are lost after the batch was taken, slow and torn connections, 413,
* fills the queue, and rotates, creates and deletes files of an app that is read in place meanwhile, and in the middle of lines,
* publishes versions of the container, good, garbled, wrongly signed or older ones, withdraws them, and previews drafts.
After some of these comes a quiet moment. Then

* each line has arrived at each server once, or is a rejected event's dead letter; at the file at least once,
* at the servers that refuse a fifth the other lines have arrived and are acknowledged within a minute, and the refused ones are dead letters or set aside,
* a record of the app that is read in place is whole, with --records all three lines of it,
* a batch that came again under its id had the same content,
* each event is as one good version of the container makes it, and no request and no file ever held what is to be hidden,
* the published version is in force when asked for, and within its refresh interval when not (in storms of ten minutes and more),
* what waits unread is what `status` says, ten seconds after the last change,
* the ledger balances, for each destination and priority, and nothing is counted as evicted, expired or lost,
* nothing is left in the spool but the writers' current files and the archives that rotation packed,
* memory and descriptors are what they were.

It prints its seed and each decision with its time; the same seed makes the same decisions in the same order. Needs root, for a
file system of a size of its own and for the network.

usage: python3 Benchmarks/storm BINARY [--seconds 180] [--seed N] [--calm 12] [--records] [--keep]
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from life import Storm


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--calm", type=int, default=12, help="after how many decisions a quiet moment comes")
    parser.add_argument("--pause", type=float, default=0.2, help="the longest pause between two writes, in seconds")
    parser.add_argument("--records", action="store_true", help="lines of the app read in place are records of three lines (`first_line`)")
    parser.add_argument("--refusing", action="store_true", help="two more servers, which refuse every fifth line")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--keep", action="store_true", help="leave what there is behind")
    return parser.parse_args()


def report(storm):
    happened = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(storm.done.items()))
    print(f"storm: {sum(storm.counts.values())} lines, {storm.agent.starts} starts, {len(storm.publisher.good)} good versions; {happened}")
    for name, destination in storm.server.destinations.items():
        print(f"storm: {name}: {len(destination.batches)} batches; answers {dict(sorted(destination.answers.items()))}")
        if destination.in_refused:
            count, most = len(destination.in_refused), max(destination.in_refused.values())
            print(f"storm: {name}: {count} good events were in refused requests, one of them in {most}")
    for fault in storm.model.faults:
        print(f"storm: FAILED: {fault}")
    print("storm: passed" if not storm.model.faults else f"storm: failed; to repeat it: --seed {storm.options.seed}")


def main():
    chosen = options()
    if os.geteuid() != 0:
        print("storm: needs root, for a file system of its own", file=sys.stderr)
        return 77
    if "STORM_IS_INSIDE" not in os.environ:
        # The servers listen in a network namespace that other programs do not see.
        os.environ["STORM_IS_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, HERE, *sys.argv[1:], "--seed", str(chosen.seed)])
    work = tempfile.mkdtemp(prefix="spoolship-storm-", dir=chosen.scratch)
    os.mkdir(f"{work}/state", 0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m,mode=700", "storm", f"{work}/state"], check=True)
    print(f"storm: seed {chosen.seed}, {chosen.seconds:.0f} s, in {work}", flush=True)
    storm, failed = None, True
    try:
        storm = Storm(chosen, work)
        storm.rage()
        failed = bool(storm.model.faults)
        report(storm)
        return int(failed)
    finally:
        if storm:
            storm.end()
        if chosen.keep or failed:
            print(f"storm: kept in {work}")
        else:
            # Lazily: the foreign reader may still have the database open.
            subprocess.run(["umount", "--lazy", f"{work}/state"], check=True)
            shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
