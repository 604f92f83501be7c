#!/usr/bin/env python3
"""Measures two binaries in turns, and says how many times as many events the second does a second of CPU.

The machine's speed changes from minute to minute, so a ratio counts only where both ran side by side: each round runs one,
then the other, and the ratio is that of the medians. What is measured is what bench.py and drops.py measure.

usage: turns.py BEFORE NOW [--events 200000] [--runs 5] [--only WORDS] [--scratch DIRECTORY]
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import bench
import drops

# What the goals are about.
BATCHES = [
    "the defaults",
    "zstd, the defaults else",
    "cap 1GiB, 3000 a batch, gzip",
    "cap 1GiB, 3000 a batch, zstd",
]
DRIPS = [1000, 5000, 20_000]
DROPS = "drop files of one event that wait"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="only cases whose name holds these words")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    options = parser.parse_args()
    binaries = [os.path.abspath(options.before), os.path.abspath(options.now)]

    with tempfile.TemporaryDirectory(prefix="spoolship-bench-", dir=options.scratch) as scratch:
        sources = os.path.join(scratch, "events")
        subprocess.run([sys.executable, os.path.join(bench.HERE, "generate.py"), sources, "--events", str(options.events)],
                       check=True)
        # One receiver for both: it does not count.
        receiver = bench.Receiver(binaries[1], scratch)

        def batches(case):
            return lambda binary: bench.measure(binary, receiver, sources, options.events, bench.PROFILES[case])

        cases = {case: batches(case) for case in BATCHES}
        for rate in DRIPS:
            cases[f"{rate:,} events a second, the defaults"] = lambda binary, rate=rate: bench.steady(
                binary, receiver, sources, scratch, rate, 10, "gzip")
        cases[DROPS] = lambda binary: drops.take(binary, receiver, scratch, 10_000, True, with_floor=False)
        try:
            print(f"{'events per CPU-second, medians of ' + str(options.runs):46}{'before':>9}{'now':>9}{'ratio':>7}"
                  f"{'rounds':>14}{'RSS MB':>14}")
            for name, run in cases.items():
                if options.only not in name:
                    continue
                rounds = [[run(binary) for binary in binaries] for _ in range(options.runs)]
                rates = [[round[place]["events_per_cpu_second"] for round in rounds] for place in (0, 1)]
                before, now = (statistics.median(one) for one in rates)
                each = [new / old for old, new in zip(*rates)]
                memory = [max(round[place].get("peak_rss_mb", 0) for round in rounds) for place in (0, 1)]
                print(f"{name:46}{before:9,.0f}{now:9,.0f}{now / before:7.2f}{min(each):8.2f}..{max(each):.2f}"
                      f"{memory[0]:8.1f},{memory[1]:.1f}", flush=True)
        finally:
            receiver.stop()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
