#!/usr/bin/env python3
"""Measures how long a line takes from the app's write to the receiver that has read its request: median and p99.

One app appends a critical event at a time to a file of the spool, after random pauses; the agent sends each as a request of
its own over TLS (batch size 1, interval 1s, critical_delay 0s) to a receiver in this script, which notes the time when it has
read the body and answers at once. Both clocks are the same one. The figure holds for a machine that has nothing else to do:
its load is printed.

usage: latency.py BINARY [--events 2000] [--durability crash|power_loss] [--scratch DIRECTORY] [--priority critical|normal]
"""
import argparse
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

CONFIGURATION = """
[agent]
state_directory = "{work}/state"
[spool]
directory = "{work}/spool"
after_read = "delete"
[queue]
durability = "{durability}"
[session]
mode = "off"
[dispatch]
interval = "1s"
critical_delay = "0s"
allow_zero_delay = true
batch_events = 1
[stats]
listen = "off"
[control]
socket = "{work}/control.sock"
[[destination]]
name = "bench"
type = "http"
url = "https://127.0.0.1:{port}/"
compression = "none"
[destination.tls]
ca_file = "{work}/server.pem"
"""


class Receiver(threading.Thread):
    """Reads requests, notes when each was there, answers 200; a thread for each connection."""

    def __init__(self, certificate: str, key: str):
        super().__init__(daemon=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.arrived: dict = {}

    def run(self) -> None:
        while True:
            connection = self.listener.accept()[0]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, raw) -> None:
        with self.context.wrap_socket(raw, server_side=True) as connection:
            stream = connection.makefile("rb")
            while stream.readline():
                length = 0
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = stream.read(length)
                now = time.monotonic()
                for event in body.splitlines():
                    start = event.index(b'"n":') + 4
                    self.arrived[int(event[start:event.index(b"}", start)])] = now
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def wait_for(condition, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"latency: gave up waiting for {what} after {seconds} s")
        time.sleep(0.002)


def measure(binary: str, work: str, options) -> list:
    for name in ("state", "spool"):
        os.makedirs(f"{work}/{name}")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{work}/server.key",
                    "-out", f"{work}/server.pem"], check=True, stderr=subprocess.DEVNULL)
    receiver = Receiver(f"{work}/server.pem", f"{work}/server.key")
    receiver.start()
    path = f"{work}/spoolship.toml"
    with open(path, "w") as file:
        file.write(CONFIGURATION.format(work=work, port=receiver.port, durability=options.durability))
    with open(f"{work}/agent.log", "wb") as log:
        agent = subprocess.Popen([binary, "run", "--config", path], stdout=log, stderr=log)
    try:
        written = {}
        with open(f"{work}/spool/app.jsonl", "ab", buffering=0) as spool:
            def write(number: int) -> None:
                line = (f'{{"name":"Order paid","priority":"{options.priority}",'
                        f'"properties":{{"n":{number}}}}}\n').encode()
                written[number] = time.monotonic()
                spool.write(line)

            # The first ones make the connection.
            for number in range(-20, 0):
                write(number)
                wait_for(lambda: number in receiver.arrived, 30,
                         "the first events:\n" + open(f"{work}/agent.log").read()[-2000:])
            chance = random.Random(6)
            for number in range(options.events):
                write(number)
                time.sleep(chance.uniform(0.005, 0.025))
            wait_for(lambda: all(number in receiver.arrived for number in range(options.events)), 30, "the last events")
        return sorted((receiver.arrived[number] - written[number]) * 1000 for number in range(options.events))
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--durability", default="crash", choices=["crash", "power_loss"])
    parser.add_argument("--priority", default="critical", choices=["critical", "normal"])
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--goal", type=float, help="exit with 1 when p99 is above so many milliseconds")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="spoolship-latency-", dir=options.scratch) as work:
        times = measure(os.path.abspath(options.binary), work, options)

    def at(share: float) -> float:
        return times[min(len(times) - 1, int(len(times) * share))]

    print(f"durability {options.durability}, {options.priority}, {len(times)} events: median {at(0.5):.2f} ms, "
          f"p90 {at(0.9):.2f} ms, p99 {at(0.99):.2f} ms, greatest {times[-1]:.2f} ms; load before {load:.1f} on "
          f"{os.cpu_count()} cores")
    if options.goal is not None and at(0.99) > options.goal:
        sys.exit(1)


if __name__ == "__main__":
    main()
