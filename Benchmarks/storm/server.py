"""The destinations of the storm: one HTTPS server that answers in every way, and remembers what it has acknowledged."""
import collections
import gzip
import hashlib
import json
import os
import random
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from place import MODE, Place
from world import FARTHEST

# How a destination can be: what share of the requests is answered otherwise than with 200, and how.
MOODS = {
    "well": [],
    "errors": [(0.5, "500"), (0.2, "503")],
    "busy": [(0.6, "429")],
    "forgetful": [(0.3, "lost")],
    "slow": [(0.7, "slow")],
    "torn": [(0.5, "torn")],
    "deaf": [(0.3, "deaf")],
    "small": [(1.0, "413")],
    "bad day": [(0.2, "500"), (0.1, "429"), (0.1, "lost"), (0.1, "slow"), (0.1, "torn"), (0.1, "413")],
    "down": [(1.0, "torn")],
}
# A batch of more events than this is too large for a server that is "small".
SMALL = 7
# Servers that refuse every fifth line of a writer with 400, whenever it comes: one refuses the whole request, the other stores the
# other events of it, as Loki does.
REFUSING = {"fifth": False, "partly": True}


class Destination:
    """What one destination has acknowledged."""

    def __init__(self, name):
        self.name, self.mood, self.lock = name, "well", threading.Lock()
        self.batches = {}
        # Of each writer's lines: up to which all have arrived, and those that have beyond.
        self.all_to, self.beyond = collections.Counter(), collections.defaultdict(set)
        self.rejected, self.repeats = set(), []
        self.answers = collections.Counter()
        self.faults = []
        # How often each event was in a request that was refused for another event, by that number.
        self.refuses, self.stores_others = name in REFUSING, REFUSING.get(name, False)
        self.in_refused = collections.Counter()

    def is_refused(self, number):
        return self.refuses and number % 5 == 0

    def refuse(self, numbers):
        """400 to a request: its good events come again in other batches, whether this server stored them or not."""
        with self.lock:
            for mode, number in numbers:
                if self.is_refused(number):
                    self.note(mode, number)
                    continue
                self.in_refused[mode, number] += 1
                if self.stores_others:
                    self.note(mode, number)

    def take(self, key, digest, numbers):
        """Acknowledges a batch. One that was acknowledged before must be the same, and counts once."""
        with self.lock:
            if key in self.batches:
                if self.batches[key] != digest:
                    self.faults.append(f"{self.name}: batch {key} came again with another content")
                return
            self.batches[key] = digest
            for mode, number in numbers:
                if self.has(mode, number) and not self.stores_others:
                    self.repeats.append((mode, number))
                self.note(mode, number)

    def reject(self, numbers):
        """For good: they are dead letters, which is as good as arrived."""
        with self.lock:
            for mode, number in numbers:
                self.rejected.add((mode, number))
                self.note(mode, number)

    def has(self, mode, number):
        return number <= self.all_to[mode] or number in self.beyond[mode]

    def note(self, mode, number):
        beyond = self.beyond[mode]
        if number > self.all_to[mode]:
            beyond.add(number)
        while self.all_to[mode] + 1 in beyond:
            self.all_to[mode] += 1
            beyond.remove(self.all_to[mode])

    def knows(self, key):
        with self.lock:
            return key in self.batches

    def missing(self, mode, most):
        """Of the events 1 to `most` of a writer, those that were neither acknowledged nor rejected for good."""
        with self.lock:
            return [n for n in range(self.all_to[mode] + 1, most + 1) if n not in self.beyond[mode]]


class Server:
    """All destinations and the container, each under its own path."""

    def __init__(self, directory, names, seed, network, world, publisher):
        self.destinations = {name: Destination(name) for name in names}
        self.publisher = publisher
        # Of each writer: lines beyond this number are ruled by this version at least.
        self.ruled_from = {}
        self.random = random.Random(f"server-{seed}")
        make_certificate(directory, network.server, world)
        self.ca = f"{directory}/ca.pem"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")
        handler = type("Handler", (Handler,), {"server_of_storm": self})
        self.listener = ThreadingHTTPServer((network.server, 0), handler)
        self.listener.daemon_threads = True
        self.address = f"{network.server}:{self.listener.server_address[1]}"
        # The handshake belongs to the connection's own thread: a client that is slow holds up nobody.
        self.listener.socket = context.wrap_socket(self.listener.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def url(self, name):
        return f"https://{self.address}/{name}"

    def look_at(self, body, events):
        """Whether each event is as the container promises."""
        if b"hush" in body:
            yield "a secret has left the machine"
        for event in events:
            if event.get("k", "").startswith(f"{MODE}-") and not Place.is_whole(event):
                yield f"{event['k']} is torn"
            if event.get("name") != "e":
                continue
            wrong = self.publisher.wrong_with(event)
            if wrong:
                yield f"{event.get('k')} {wrong}"
                continue
            mode, number = split(event["k"])
            count, version = self.ruled_from.get(mode, (0, 0))
            if number > count and event["ruled"] < version:
                yield f"{event['k']} was ruled by {event['ruled']}, and {version} was in force when it was written"

    def pick(self, mood):
        dice = self.random.random()
        for share, answer in MOODS[mood]:
            if dice < share:
                return answer
            dice -= share
        return "200"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *arguments):
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, ssl.SSLError):
            # The agent was killed, or has given up: it is what the storm is about.
            self.close_connection = True

    def do_GET(self):
        self.server_of_storm.publisher.answer(self)

    def do_POST(self):
        destination = self.server_of_storm.destinations[self.path.strip("/")]
        answer = self.server_of_storm.pick(destination.mood)
        destination.answers[answer] += 1
        length = int(self.headers["Content-Length"])
        if answer == "torn":
            self.rfile.read(length // 2)
            return self.hang_up()
        body = self.rfile.read(length)
        if len(body) < length:
            return self.hang_up()
        key = self.headers["Idempotency-Key"]
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        events = [json.loads(line) for line in body.splitlines()]
        # What was sent counts, whatever the answer.
        destination.faults += list(self.server_of_storm.look_at(body, events))[:3]
        numbers = [split(event["k"]) for event in events if "k" in event]
        poisoned = [split(event["k"]) for event in events if event.get("poison")]
        if answer == "deaf":
            time.sleep(8)
            return self.hang_up()
        if answer == "slow":
            time.sleep(self.server_of_storm.random.random() * 2)
        elif answer in ("500", "503", "429"):
            return self.reply(int(answer), {"Retry-After": "1"} if answer == "429" else {})
        if not destination.knows(key):
            if any(destination.is_refused(number) for _, number in numbers):
                destination.refuse(numbers)
                destination.answers["400"] += 1
                return self.reply(400)
            if answer == "413" and len(events) > SMALL:
                return self.reply(413)
            if poisoned and destination.name == "picky":
                if len(events) == 1:
                    destination.reject(poisoned)
                return self.reply(400)
        destination.take(key, hashlib.sha256(body).digest(), numbers)
        return self.hang_up() if answer == "lost" else self.reply(200)

    def hang_up(self):
        self.close_connection = True

    def reply(self, status, headers=None, content=b""):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def split(key):
    mode, number = key.rsplit("-", 1)
    return mode, int(number)


def make_certificate(directory, address, world):
    """An authority of the storm's own, and a certificate by it, both valid wherever the agent's clock may be."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=os.environ | world.environment)

    valid = 4 * FARTHEST
    world.step(-FARTHEST)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    days = ["-days", str(valid // 86400)]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", *days, "-subj", "/CN=storm")
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={address}")
    with open(f"{directory}/names", "w") as file:
        file.write(f"subjectAltName=IP:{address}\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", *days,
            "-extfile", "names", "-out", "server.pem")
    world.step(FARTHEST)
