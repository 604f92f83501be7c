#!/usr/bin/env python3
"""Events per CPU-second of the agent by type of destination, beside http with the same batches, in one run.

usage: destinations.py BINARY [--events 100000] [--rounds 5]

All events wait in the spool before an agent starts; its CPU time is taken when all are acknowledged. The rows take turns, so that a
machine that slows down slows all of them; printed are medians, and each row's ratio to its row of http. The servers are those of
scripts/exactly-once (moto, nats-server, tansu), and for http one that reads and says 200. All bodies are packed with zstd.
"""
import argparse
import http.server
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scripts"))

from once import support
from once.agent import Agent
from once.kafka import Kafka
from once.nats import NATS
from once.proxy import Proxy
from once.s3 import S3

OWN = 'interval = "6s"\nbatch_events = 50\nbatch_size = "1MiB"\nparallel_batches = 3\ncritical_delay = "3s"\n'


class HTTP:
    """Reads a body and says 200."""

    def __init__(self, base, options, proxy):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def destination(self, port):
        return f'[[destination]]\nname = "main"\ntype = "http"\nurl = "http://127.0.0.1:{port}/"\n'

    def stop(self):
        self.server.shutdown()


# A row's name, its server, its settings of [dispatch], its settings of the destination, and the row that it is compared with.
ROWS = [
    ("http, batches of 10,000", HTTP, 'batch_events = 10000\nbatch_size = "8MiB"\n', "", None),
    ("s3, batches of 10,000", S3, 'batch_events = 10000\nbatch_size = "8MiB"\n', "", "http, batches of 10,000"),
    ("http, batches of 3,000", HTTP, 'batch_events = 3000\nbatch_size = "8MiB"\n', "", None),
    ("nats, batches of 3,000", NATS, 'batch_events = 3000\nbatch_size = "8MiB"\n', "", "http, batches of 3,000"),
    ("kafka, batches of 3,000", Kafka, 'batch_events = 3000\nbatch_size = "8MiB"\n', "", "http, batches of 3,000"),
    ("http, no settings", HTTP, "", "", None),
    ("http, own settings equal to the defaults", HTTP, "", OWN, "http, no settings"),
]


class MeasuredAgent(Agent):
    """The agent of scripts/exactly-once with settings of its own."""

    def __init__(self, base, binary, destination, dispatch, own):
        super().__init__(base, binary, destination, 1)
        with open(self.configuration) as file:
            text = file.read()
        text = re.sub(r"(?m)^batch_events = 1\n", own, text).replace('compression = "gzip"', 'compression = "zstd"')
        text = text.replace('max_size = "64MiB"', 'max_size = "1GiB"')
        text = text.replace('[dispatch]\ninterval = "1s"\n', f"[dispatch]\n{dispatch}")
        with open(self.configuration, "w") as file:
            file.write(text)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(options, row, server, port, spool):
    base = tempfile.mkdtemp(prefix="spoolship-destinations-", dir=options.directory)
    agent = MeasuredAgent(base, options.binary, server.destination(port), row[2], row[3])
    for name in os.listdir(spool):
        shutil.copy(f"{spool}/{name}", f"{base}/spool/{name}")
    agent.start()
    try:
        support.wait(lambda: f"{row[0]}; see {base}/agent.log", 300, lambda: agent.is_settled(options.events))
        status, cpu = agent.status(), agent.cpu()
    finally:
        agent.kill()
    lane = next(lane for lane in status["destinations"][0]["lanes"] if lane["priority"] == "normal")
    if lane["acknowledged"] != options.events or lane["retried"] > 0:
        sys.exit(f"{row[0]}: not a clean run: {lane}; see {base}/agent.log")
    shutil.rmtree(base)
    return options.events / cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only rows whose name holds these words, and what they are compared with")
    parser.add_argument("--directory", default="/var/tmp", help="where to work")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in row[0]]
    rows = [row for row in ROWS if row in rows or any(row[0] == other[4] for other in rows)]
    top = tempfile.mkdtemp(prefix="spoolship-destinations-", dir=options.directory)
    subprocess.run(
        [sys.executable, f"{HERE}/generate.py", f"{top}/spool", "--events", f"{options.events}"], check=True,
        stdout=subprocess.DEVNULL)
    servers, found = {}, {row[0]: [] for row in rows}
    try:
        for row in rows:
            if row[1] not in servers:
                os.mkdir(f"{top}/{row[1].__name__}")
                proxy = Proxy(1, 0)
                proxy.calm()
                server = row[1](f"{top}/{row[1].__name__}", types.SimpleNamespace(window=120 * 10**9), proxy)
                proxy.target = server.port
                # Kafka's broker advertises the proxy; the others are spoken to directly.
                servers[row[1]] = server, proxy.port if row[1] is Kafka else server.port
        for number in range(options.rounds):
            # Each round begins with another row.
            for row in random.Random(number).sample(rows, len(rows)):
                found[row[0]].append(measure(options, row, *servers[row[1]], f"{top}/spool"))
    finally:
        for server, _ in servers.values():
            server.stop()
    shutil.rmtree(top)
    print(f"{options.events} events, medians of {options.rounds}, lowest and highest:")
    for name, _, _, _, other in rows:
        values = found[name]
        ratio = ""
        if other:
            # By round: what slowed one slowed the other.
            ratio = f"  {statistics.median(a / b for a, b in zip(values, found[other])):.2f} of {other}"
        print(f"{name:42} {statistics.median(values):9,.0f} events a CPU-second ({min(values):,.0f} to {max(values):,.0f}){ratio}")


if __name__ == "__main__":
    main()
