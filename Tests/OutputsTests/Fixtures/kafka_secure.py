#!/usr/bin/env python3
"""A Kafka broker that wants TLS and a password: the broker is tansu, before it are fronts that speak TLS and check passwords.

usage: kafka_secure.py DIRECTORY READY --ca FILE --user NAME --password TEXT [--strict] [--impostor]
       [--advertise PORT] [--partitions N] [--tokens URL] --front CERTIFICATE,KEY[,CLIENT-CA]...

When it is ready, it writes the fronts' ports into READY, a line. tansu advertises the first front, or another port of this machine
that leads there; then somebody else reads. Otherwise what is stored in the topic `events` is in DIRECTORY/records, a JSON line a
record. What each front has seen of its clients is in DIRECTORY/clients: the name that was asked for, the subject of the client's certificate, the mechanism, or what failed. A front has the
server's side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), because tansu in memory knows no users. Like Kafka 3.9 it lets pass
what librdkafka before 2.6.1 gets wrong, the client's nonce twice; with `--strict`, like Kafka 4, it does not. With `--impostor` it lets
everybody in, and so cannot prove that it knows the password itself. With `--tokens` it also has the server's side of OAUTHBEARER
(RFC 7628, as Kafka's KIP-255 uses it): a token is good if a request that carries it is answered by 200 at that address.
"""

import argparse
import base64
import ctypes
import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True

sys.path.append(f"{os.path.dirname(os.path.abspath(__file__))}/../../../scripts")
from kafka_library import Reader
from ports import free_port
from with_parent import end_with_parent

parser = argparse.ArgumentParser()
parser.add_argument("directory")
parser.add_argument("ready")
parser.add_argument("--ca", required=True)
parser.add_argument("--user", required=True)
parser.add_argument("--password", required=True)
parser.add_argument("--advertise", type=int)
parser.add_argument("--partitions", type=int, default=1)
parser.add_argument("--tokens")
parser.add_argument("--strict", action="store_true")
parser.add_argument("--impostor", action="store_true")
parser.add_argument("--front", action="append", required=True)
options = parser.parse_args()
MECHANISMS = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256"}
BEARER = "OAUTHBEARER"
VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
UNSUPPORTED_MECHANISM, UNSUPPORTED_VERSION, AUTHENTICATION_FAILED = 33, 35, 58
TANSU = os.path.join(os.path.dirname(sys.executable), "tansu")


def ends_with_main_thread():
    """Of a child that the main thread started."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(words, port):
    """Starts the broker and waits for its port."""
    with open(f"{options.directory}/broker.log", "ab") as log:
        process = subprocess.Popen(
            words, env={**os.environ, "RUST_LOG": "error"}, stdout=log, stderr=log, preexec_fn=ends_with_main_thread)
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process
        except OSError:
            if time.monotonic() > end or process.poll() is not None:
                sys.exit(f"{words[0]} did not start: see {options.directory}/broker.log")
            time.sleep(0.05)


def text(words):
    return struct.pack(">h", len(words)) + words.encode()


class Session:
    """The server's side of SCRAM, for one client."""

    def __init__(self, mechanism):
        self.hash, self.is_known, self.challenge = MECHANISMS[mechanism], False, None

    def hmac(self, key, words):
        return hmac.digest(key, words.encode(), self.hash)

    def answer(self, message):
        fields = dict(part.split("=", 1) for part in message.split(",") if part[1:2] == "=")
        if self.challenge is None:
            self.user, self.first = fields["n"], message.split(",", 2)[2]
            self.nonce, self.salt = fields["r"] + secrets.token_hex(12), secrets.token_bytes(16)
            self.challenge = f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i=4096"
            return 0, self.challenge
        salted = hashlib.pbkdf2_hmac(self.hash, options.password.encode(), self.salt, 4096)
        without_proof = message.rsplit(",p=", 1)[0]
        whole = f"{self.first},{self.challenge},{without_proof}"
        client_key = self.hmac(salted, "Client Key")
        signature = self.hmac(hashlib.new(self.hash, client_key).digest(), whole)
        wanted = bytes(a ^ b for a, b in zip(client_key, signature))
        has_nonce = fields["r"] == self.nonce or (fields["r"].endswith(self.nonce) and not options.strict)
        is_right = self.user == options.user and has_nonce and fields["c"] == "biws"
        if not options.impostor and not (is_right and hmac.compare_digest(wanted, base64.b64decode(fields["p"]))):
            return AUTHENTICATION_FAILED, "no such user or password"
        self.is_known = True
        proof = secrets.token_bytes(len(wanted)) if options.impostor else self.hmac(self.hmac(salted, "Server Key"), whole)
        return 0, f"v={base64.b64encode(proof).decode()}"


class TokenSession:
    """The server's side of OAUTHBEARER, for one client."""

    def __init__(self):
        self.is_known, self.is_refused = False, False

    def answer(self, message):
        if self.is_refused:
            return AUTHENTICATION_FAILED, "no such token"
        proof = dict(part.split("=", 1) for part in message.split("\x01") if "=" in part)["auth"]
        request = urllib.request.Request(options.tokens, data=b"{}", headers={"Authorization": proof})
        try:
            self.is_known = urllib.request.urlopen(request, timeout=10).status == 200
        except urllib.error.HTTPError:
            self.is_refused = True
        return 0, "" if self.is_known else '{"status":"invalid_token"}'


class Front(threading.Thread):
    def __init__(self, files, target):
        super().__init__(daemon=True)
        certificate, key, *authority = files.split(",")
        self.target, self.lock = target, threading.Lock()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.sni_callback = self.note_name
        if authority:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(authority[0])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def note_name(self, connection, name, context):
        connection.asked_for = name

    def note(self, **what):
        with self.lock, open(f"{options.directory}/clients", "a") as file:
            file.write(json.dumps({"port": self.port, **what}) + "\n")

    def run(self):
        while True:
            threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, plain):
        try:
            client = self.context.wrap_socket(plain, server_side=True)
        except OSError as error:
            return self.note(failed=str(error))
        subject = [value for part in (client.getpeercert() or {}).get("subject", ()) for _, value in part]
        self.note(name=getattr(client, "asked_for", None), subject=subject, version=client.version())
        there = socket.create_connection(("127.0.0.1", self.target))
        threading.Thread(target=self.copy, args=(there, client), daemon=True).start()
        try:
            self.requests(client, there)
        except OSError:
            pass
        there.close()

    def requests(self, client, there):
        """Forwards requests once the client has shown who it is."""
        stream, session = client.makefile("rb"), None
        while len(head := stream.read(4)) == 4:
            request = stream.read(struct.unpack(">i", head)[0])
            api, version, correlation, name = struct.unpack(">hhih", request[:10])
            body = request[10 + max(0, name):]
            if api == VERSIONS and version > 0:
                # tansu's newer lists are read wrongly by Debian 12's librdkafka: it gets the first.
                answer = struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, VERSIONS, 0, 0)
            elif api == HANDSHAKE:
                mechanism = body[2:].decode()
                offered = [*MECHANISMS, *([BEARER] if options.tokens else [])]
                code = 0 if mechanism in offered else UNSUPPORTED_MECHANISM
                self.note(mechanism=mechanism)
                session = None if code else TokenSession() if mechanism == BEARER else Session(mechanism)
                answer = struct.pack(">hi", code, len(offered)) + b"".join(text(name) for name in offered)
            elif api == AUTHENTICATE and session:
                code, said = session.answer(body[4:].decode())
                # The words are an error's or the mechanism's.
                answer = struct.pack(">h", code) + (text(said) if code else struct.pack(">h", -1))
                answer += struct.pack(">i", 0 if code else len(said)) + (b"" if code else said.encode())
                answer += struct.pack(">q", 0) if version > 0 else b""
            elif api == VERSIONS or (session and session.is_known):
                there.sendall(head + request)
                continue
            else:
                self.note(failed=f"request {api} of a stranger")
                return
            client.sendall(struct.pack(">ii", len(answer) + 4, correlation) + answer)

    def copy(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        target.close()


def main():
    end_with_parent()
    port = free_port()
    fronts = [Front(files, port) for files in options.front]
    run([TANSU, "broker", "--listener-url", f"tcp://127.0.0.1:{port}", "--advertised-listener-url",
         f"tcp://localhost:{options.advertise or fronts[0].port}", "--storage-engine", "memory://tansu/"], port)
    subprocess.run(
        [TANSU, "topic", "create", "--broker", f"tcp://127.0.0.1:{port}", "--partitions", f"{options.partitions}", "events"], check=True,
        timeout=60, stdout=subprocess.DEVNULL)
    for front in fronts:
        front.start()
    if not options.advertise:
        reader = Reader(f"localhost:{fronts[0].port}", b"events", options.partitions, {
            "security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": options.user,
            "sasl.password": options.password, "ssl.ca.location": options.ca,
        })
    with open(options.ready, "w") as file:
        file.write(" ".join(str(front.port) for front in fronts) + "\n")
    if options.advertise:
        threading.Event().wait()
    with open(f"{options.directory}/records", "w", buffering=1) as file:
        written = 0
        while True:
            with reader.lock:
                new = reader.records[written:]
            file.writelines(json.dumps(record) + "\n" for record in new)
            written += len(new)
            time.sleep(0.05)


main()
