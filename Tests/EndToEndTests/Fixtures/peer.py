#!/usr/bin/env python3
"""A receiver over TLS that misbehaves by a script: one fault a request, in order, and then it is well.

Events are stored once for each Idempotency-Key, a line each. Certificate and key are read again for every connection.

usage: peer.py ADDRESS PORT CERTIFICATE KEY STORE FAULT…
A fault: a status and headers ("429 Retry-After: 2"), retry-after-date, hang, drip, reset-in-body, cut-after-body,
cut-after-storing, partial-success (OTLP: three rejected), too-large:N (always), marker:TEXT (always).
"""
import email.utils
import gzip
import os
import socket
import ssl
import struct
import sys
import threading
import time

address, port, certificate, key, store, *faults = sys.argv[1:]
always = [fault for fault in faults if fault.startswith(("too-large:", "marker:"))]
faults = [fault for fault in faults if fault not in always]
lock = threading.Lock()
taken = set()


def take(batch: str, events: bytes) -> None:
    """Stores a batch, durably, unless it is there."""
    with lock:
        if batch in taken:
            return
        with open(store, "ab") as file:
            file.write(events)
            file.flush()
            os.fsync(file.fileno())
        taken.add(batch)


def answer(connection, status: int, headers=()) -> None:
    lines = [f"HTTP/1.1 {status} x", "Content-Length: 0", *headers]
    connection.sendall("\r\n".join(lines + ["", ""]).encode())


def reset(connection) -> None:
    """Ends the connection without a word, and without waiting for what is on its way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Past TLS: no closing alert.
    socket.socket(fileno=connection.detach()).close()


def serve(raw) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    raw.settimeout(60)
    with context.wrap_socket(raw, server_side=True) as connection:
        stream = connection.makefile("rb")
        while True:
            request = stream.readline()
            if not request:
                return
            headers = {}
            while (line := stream.readline().decode().rstrip("\r\n")):
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            length = int(headers.get("content-length", 0))
            with lock:
                fault = faults.pop(0) if faults else ""
            print(request.decode().strip(), headers.get("idempotency-key"), length, fault or "ok", flush=True)
            if fault == "reset-in-body":
                stream.read(min(10, length))
                return reset(connection)
            body = stream.read(length)
            if len(body) < length:
                return
            events = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            batch = headers["idempotency-key"]
            if fault == "hang":
                time.sleep(3600)
            elif fault == "drip":
                for byte in b"HTTP/1.1 200 OK\r\n" * 1000:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.2)
            elif fault == "cut-after-body":
                return reset(connection)
            elif fault == "cut-after-storing":
                take(batch, events)
                return reset(connection)
            elif fault == "retry-after-date":
                now = time.time()
                answer(connection, 503, [f"Date: {email.utils.formatdate(now, usegmt=True)}",
                                         f"Retry-After: {email.utils.formatdate(now + 2, usegmt=True)}"])
            elif fault == "partial-success":
                text = b'{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}'
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                connection.sendall(head.encode() + text)
            elif fault:
                status, _, header = fault.partition(" ")
                answer(connection, int(status), [header] if header else [])
            elif any(length > int(one[10:]) for one in always if one.startswith("too-large:")):
                answer(connection, 413)
            elif any(one[7:].encode() in events for one in always if one.startswith("marker:")):
                answer(connection, 400)
            else:
                take(batch, events)
                answer(connection, 200)


def guarded(raw) -> None:
    try:
        serve(raw)
    except (OSError, ValueError) as error:
        print("ended:", error, flush=True)
    finally:
        raw.close()


listener = socket.create_server((address, int(port)), backlog=64)
print("listening", flush=True)
while True:
    threading.Thread(target=guarded, args=(listener.accept()[0],), daemon=True).start()
