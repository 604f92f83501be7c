#!/usr/bin/env python3
"""Ports of the loopback address that nobody listens on, for servers that are started in a moment.

usage: ports.py [COUNT]: prints so many, on a line

They are from below those that the kernel gives to connections (32768 by default): between the look and the start, one of the many
connections beside it would now and then get the same. Tests/TestKit/FreePort.swift does the same for tests in Swift.
"""

import random
import socket
import sys


def free_port():
    for _ in range(100):
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("none of a hundred ports is free")


if __name__ == "__main__":
    found = set()
    while len(found) < (int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        found.add(free_port())
    print(*found)
