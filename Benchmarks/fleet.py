#!/usr/bin/env python3
"""A fleet's figures: what polling a container costs nginx (poll), and pictures of the simulation's counts (draw).

poll starts nginx with TLS on loopback and fetches a document of 20 KB as agents do, conditionally: each request on a new
connection, because a minute lies between two. It counts nginx's CPU time and the bytes on the wire.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
from ports import free_port


def cpu_seconds(process):
    """User and system time of a process and its children."""
    total = 0.0
    for pid in [process] + [int(p) for p in subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()]:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


class Wire:
    """One connection over TLS whose bytes are counted."""

    def __init__(self, port, context, session):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost", session=session)
        self.bytes = 0
        self.run(self.tls.do_handshake)

    def run(self, step):
        while True:
            try:
                result = step()
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                block = self.socket.recv(65536)
                self.bytes += len(block)
                self.incoming.write(block) if block else self.incoming.write_eof()

    def flush(self):
        block = self.outgoing.read()
        if block:
            self.socket.sendall(block)
            self.bytes += len(block)

    def close(self):
        self.socket.close()


def request(port, context, tag, session=None):
    wire = Wire(port, context, session)
    head = "GET /GTM-1234 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: spoolship\r\nAccept: application/json, */*\r\n"
    if tag:
        head += f"If-None-Match: {tag}\r\n"
    wire.run(lambda: wire.tls.write((head + "\r\n").encode()))
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += wire.run(lambda: wire.tls.read(65536))
    head, body = answer.split(b"\r\n\r\n", 1)
    status = int(head.split()[1])
    if status == 200:
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(body) < length:
            body += wire.run(lambda: wire.tls.read(65536))
    tag = re.search(rb"(?i)etag: (.*)", head)
    wire.close()
    return status, tag[1].decode().strip() if tag else None, wire.bytes, wire.tls.session


def poll(arguments):
    home = tempfile.mkdtemp(prefix="spoolship-fleet-")
    nginx = None
    try:
        os.chmod(home, 0o755)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{home}/key.pem", "-out",
             f"{home}/cert.pem"], check=True, capture_output=True)
        os.mkdir(f"{home}/www")
        with open(f"{home}/www/GTM-1234", "wb") as document:
            document.write(b"x" * arguments.size)
        port = free_port()
        with open(f"{home}/nginx.conf", "w") as conf:
            conf.write(f"""
                daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error.log;
                {"user root;" if os.getuid() == 0 else ""}
                events {{ worker_connections 256; }}
                http {{
                    access_log off; client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
                    uwsgi_temp_path {home}/u; scgi_temp_path {home}/s; ssl_session_cache shared:x:10m;
                    server {{
                        listen 127.0.0.1:{port} ssl; server_name localhost; root {home}/www;
                        ssl_certificate {home}/cert.pem; ssl_certificate_key {home}/key.pem;
                    }}
                }}""")
        nginx = subprocess.Popen(["/usr/sbin/nginx", "-p", home, "-c", f"{home}/nginx.conf", "-e", f"{home}/error.log"])
        context = ssl.create_default_context(cafile=f"{home}/cert.pem")
        until = time.monotonic() + 30
        while True:
            try:
                _, tag, _, _ = request(port, context, None)
                break
            except OSError:
                if time.monotonic() > until:
                    raise SystemExit("nginx does not answer")
                time.sleep(0.05)
        for name, conditional in [("304, new connection", True), ("200, new connection", False)]:
            before = cpu_seconds(nginx.pid)
            total = 0
            for _ in range(arguments.requests):
                status, _, size, _ = request(port, context, tag if conditional else None)
                assert status == (304 if conditional else 200), status
                total += size
            spent = cpu_seconds(nginx.pid) - before
            each = total / arguments.requests
            milliseconds = spent * 1000 / arguments.requests
            print(f"{name}: {each:.0f} B on the wire, {milliseconds:.2f} ms of nginx's CPU; 1,000 agents once a minute:"
                  f" {each * 1000 / 60 / 1000:.0f} kB/s, {milliseconds * 1000 / 60 / 10:.1f} % of a core")
    finally:
        if nginx:
            nginx.send_signal(signal.SIGTERM)
            nginx.wait()
        shutil.rmtree(home)


TITLES = {
    "fetch-12h-outage-24h": "Fetching every 12 h; the server is down for 24 h",
    "fetch-1m-outage-1h": "Fetching every minute; the server is down for an hour",
    "fetch-1m-retry-after-1h": "Fetching every minute; for a minute the server says 503, Retry-After: 3600",
    "deliver-outage-1h": "Delivering 50 events in five minutes each; the receiver is down for an hour",
    "deliver-overload": "Delivering every 40 s each to a receiver that takes 500 requests a second, and is down for half an hour",
}


def draw(arguments):
    """One picture: for each scenario the requests a second, summed over 30 s."""
    names = [name for name in TITLES if os.path.exists(f"{arguments.source}/{name}.csv")]
    width, height, gap, left = 760, 120, 62, 56
    out = []
    for place, name in enumerate(names):
        with open(f"{arguments.source}/{name}.csv") as file:
            facts = file.readline()
            counts = [int(line) for line in file]
        start, end = map(int, re.search(r"outage=(?:Range\()?(\d+)\.\.<(\d+)", facts).groups())
        agents = int(re.search(r"agents=(\d+)", facts)[1])
        step = max(10, len(counts) // 700 // 10 * 10)
        rates = [sum(counts[i:i + step]) / len(counts[i:i + step]) for i in range(0, len(counts), step)]
        most = max(rates) or 1
        top = 34 + place * (height + gap)
        x = lambda second: left + second * (width - left - 20) / len(counts)
        points = " ".join(f"{x(i * step):.1f},{top + height - rate / most * (height - 14):.1f}" for i, rate in enumerate(rates))
        out.append(f'<text x="{left}" y="{top - 8}" class="t">{TITLES[name]} ({agents:,} agents)</text>')
        out.append(f'<rect x="{x(start):.1f}" y="{top}" width="{x(end) - x(start):.1f}" height="{height}" class="o"/>')
        out.append(f'<polyline points="{points}" class="l"/>')
        out.append(f'<line x1="{left}" y1="{top + height}" x2="{width - 20}" y2="{top + height}" class="a"/>')
        out.append(f'<text x="{left - 6}" y="{top + 18}" class="y">{most:.1f}/s</text>')
        out.append(f'<text x="{left - 6}" y="{top + height}" class="y">0</text>')
        hours = len(counts) / 3600
        tick = 12 if hours > 20 else 0.5 if hours > 1 else 0.25
        mark = 0.0
        while mark <= hours:
            out.append(f'<text x="{x(mark * 3600):.1f}" y="{top + height + 15}" class="x">{mark:g} h</text>')
            mark += tick
    style = ("text{font:12px sans-serif;fill:#666}.t{font-weight:bold}.y{text-anchor:end}.x{text-anchor:middle}"
             ".o{fill:#d33;opacity:.13}.l{fill:none;stroke:#27c;stroke-width:1.2}.a{stroke:#999}")
    total = 34 + len(names) * (height + gap)
    with open(f"{arguments.target}/fleet-arrivals.svg", "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}">'
                   f'<style>{style}</style>\n' + "\n".join(out) + "\n</svg>\n")


parser = argparse.ArgumentParser(description=__doc__)
commands = parser.add_subparsers(required=True)
polling = commands.add_parser("poll")
polling.add_argument("--requests", type=int, default=1000)
polling.add_argument("--size", type=int, default=20_000)
polling.set_defaults(run=poll)
drawing = commands.add_parser("draw")
drawing.add_argument("source")
drawing.add_argument("target")
drawing.set_defaults(run=draw)
parsed = parser.parse_args()
parsed.run(parsed)
