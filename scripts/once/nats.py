import base64
import contextlib
import gzip
import json
import socket
import subprocess
import sys
import time

from . import support


class NATS:
    """Debian's nats-server with JetStream on files."""

    def __init__(self, base, options, proxy):
        self.base, self.port, self.process = base, support.free_port(), None
        with open(f"{base}/nats.conf", "w") as file:
            file.write(
                f'server_name: once, host: "127.0.0.1", port: {self.port}, log_file: "{base}/server.log"\n'
                f'jetstream {{ store_dir: "{base}/jetstream", max_mem: 64MB, max_file: 4GB }}\n')
        self.start()
        stream = {
            "name": "EVENTS", "subjects": ["events.>"], "storage": "file", "retention": "limits", "num_replicas": 1,
            "duplicate_window": options.window,
        }
        with contextlib.closing(Client(self.port)) as client:
            answer = client.ask("$JS.API.STREAM.CREATE.EVENTS", json.dumps(stream))
            if "error" in answer:
                sys.exit(f"no stream: {answer['error']}")

    def start(self):
        self.process = subprocess.Popen(["/usr/sbin/nats-server", "-c", f"{self.base}/nats.conf"])
        support.wait(lambda: f"nats-server; see {self.base}/server.log", 60, lambda: support.is_listening(self.port))

    def destination(self, port):
        return f"""
[[destination]]
name = "main"
type = "nats"
url = "nats://127.0.0.1:{port}"
[destination.nats]
subject = "events.web"
stream = "EVENTS"
follow_cluster = false
"""

    def harm(self, proxy):
        self.stop()
        time.sleep(0.3)
        self.start()

    def lines(self):
        with contextlib.closing(Client(self.port)) as client:
            state = client.ask("$JS.API.STREAM.INFO.EVENTS", "")["state"]
            for number in range(state["first_seq"], state["last_seq"] + 1):
                message = client.ask("$JS.API.STREAM.MSG.GET.EVENTS", json.dumps({"seq": number}))["message"]
                data = base64.b64decode(message["data"])
                headers = base64.b64decode(message["hdrs"]).decode()
                yield from (gzip.decompress(data) if "Content-Encoding: gzip" in headers else data).splitlines()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Client:
    """As much of a NATS client as asking takes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")
        self.send('CONNECT {"verbose":false,"pedantic":false}\r\nSUB _INBOX.once 1\r\n')

    def send(self, text):
        self.socket.sendall(text.encode())

    def ask(self, subject, body):
        self.send(f"PUB {subject} _INBOX.once {len(body)}\r\n{body}\r\n")
        while line := self.file.readline():
            if line.startswith(b"PING"):
                self.send("PONG\r\n")
            elif line.startswith(b"MSG "):
                text = self.file.read(int(line.split()[-1]) + 2)
                return json.loads(text)
            elif line.startswith(b"-ERR"):
                sys.exit(f"nats-server: {line.decode().strip()}")
        sys.exit("nats-server has closed the connection")

    def close(self):
        self.socket.close()
