#!/usr/bin/env python3
"""A hostile user's hour: users do all they can to the agent while honest apps work beside them.

The agent runs as a user of its own in the packaged layout: an app's directory for each app, the drop box, one capability.
Hostile users own directories of their own and may write into the drop box. There are three ways:

* by default two users try the attacks of `attacks.py`, beside twenty honest apps;
* with --random three users draw operations from all system calls that a user has on entries of his own (`draws.py`), while twelve
  honest ones rotate their files in twelve ways, in their directories, in the drop box, and where logs are read in place;
* with --bounds each thing that a user can make many of grows a hundredfold beyond the agent's bound, in a control group of 128 MB
  (`bounds.py`), beside honest apps.

What must hold is in `house.py`. It prints its seed, and what it did, a line a minute. The same seed chooses the same attacks, or
draws the same operations, in the same order. Needs root.

usage: python3 Benchmarks/hostile BINARY [--random | --bounds] [--seconds 60] [--seed N] [--events 100000] [--only NAME,…]
       [--without NAME,…]
"""
import argparse
import os
import random
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bounds
import draws
from attacks import ATTACKS, Ground
from house import APPS, HOSTILE, MOST_WAIT, House, become, honest, interrupted, limited


def hostile(ground: Ground, until: float, attacks: list, done: str) -> None:
    become(HOSTILE)
    signal.signal(signal.SIGALRM, interrupted)
    while time.monotonic() < until:
        attack = ground.random.choice(attacks)
        state = ground.random.getstate()
        outcome = limited(MOST_WAIT, attack, ground)
        ground.random.setstate(state)
        ground.random.getrandbits(64)
        with open(done, "a") as file:
            file.write(f"{time.time():.1f} {attack.__name__}{outcome}\n")
        time.sleep(ground.random.random())
        clean(ground.app)


def clean(directory: str) -> None:
    """Removes what a hostile user left in its own directory, once it is much: the disk is not what is tried here."""
    names = os.listdir(directory)
    if len(names) < 2_000:
        return
    for name in names:
        path = os.path.join(directory, name)
        try:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        except OSError:
            pass


def attack(options) -> list:
    """The hour of attacks; what was wrong."""
    attacks = [attack for attack in ATTACKS if options.tries(attack.__name__)]
    with House(options) as house:
        until = time.monotonic() + options.seconds
        for app in range(APPS):
            house.fork(honest, house.work, app, options.events // APPS, options.seconds)
        for index in range(2):
            ground = Ground(box=house.path("spool/incoming"), app=house.path("spool/hostile"), secrets=house.secrets, port=house.port,
                            random=random.Random(options.seed * 2 + index))
            house.fork(hostile, ground, until, attacks, house.path("done", str(index)))

        def times() -> list:
            return sorted(float(line.split()[0]) for name in os.listdir(house.path("done")) for line in open(house.path("done", name)))

        faults = house.live(until, lambda: f"{len(times())} attacks")
        rest = max((after - before for before, after in zip(times(), times()[1:])), default=0)
        return faults + ([f"the hostile users did nothing for {rest:.0f} s"] if rest > 6 * MOST_WAIT else [])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--random", action="store_true", help="operations drawn from all that a user may do")
    parser.add_argument("--bounds", action="store_true", help="each thing that a user can make many of, in 128 MB")
    parser.add_argument("--seconds", type=float, default=60, help="with --bounds: the longest that one thing grows")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--events", type=int, default=100_000, help="of all honest apps together; not with --random")
    parser.add_argument("--only", default="", help="these attacks, operations or growths only, with commas between")
    parser.add_argument("--without", default="", help="all but these, with commas between")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--spool", default="", help="a directory for the spool alone; with --bounds /dev/shm, where things grow faster")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory behind")
    options = parser.parse_args()
    options.spool = options.spool or ("/dev/shm" if options.bounds else "")
    options.tries = lambda name: (not options.only or name in options.only.split(",")) and name not in options.without.split(",")
    if os.geteuid() != 0:
        print("hostile: needs root, to be several users", file=sys.stderr)
        return 77
    print(f"hostile: seed {options.seed}, {options.seconds:.0f} s", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    faults = (draws.run if options.random else bounds.run if options.bounds else attack)(options)
    for fault in faults:
        print(f"hostile: FAILED: {fault}")
    print("hostile: passed" if not faults else f"hostile: {len(faults)} failed", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
