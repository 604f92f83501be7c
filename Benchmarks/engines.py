#!/usr/bin/env python3
"""Events per CPU-second into the formats of engines, beside a Fluent Bit of yours with the same records, in one run.

usage: PEER_FLUENT_BIT=PATH engines.py BINARY [--events 600000] [--runs 3] [--only WORDS] [--scratch /var/tmp]

Both tail the same files of pino's lines from their beginning and send them, packed with gzip, over TLS, to a server that answers as
the engine does and counts the records; Kafka's broker is librdkafka's mock cluster, without TLS. The agents take turns. Only an agent's own CPU counts,
from its start until all records arrived and it ended. Without PEER_FLUENT_BIT only the agent is measured. peers/fluent-bit-build
builds one with its outputs es, kafka, loki and opentelemetry.
"""
import argparse
import ctypes
import gzip
import http.server
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
import bench
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scripts"))
from once import support

# Each line of pino has it once, and each format keeps it once.
MARK = b"request completed"


class Engine:
    """A server that counts records and answers as an engine does."""

    def __init__(self, work: str):
        engine = self
        self.count = 0
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                records = body.count(MARK)
                status, kind, answer = engine.answer(self.path, records)
                with engine.lock:
                    engine.count += records
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        directory = peers.certificates(f"{work}/certificates")
        self.ca = f"{directory}/ca.pem"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def answer(path: str, records: int) -> tuple:
        """What an engine says when it has taken so many records: the status, the type, the body."""
        if path.startswith("/loki"):
            return 204, "", b""
        if path.startswith("/v1/logs"):
            return 200, "application/x-protobuf", b""
        items = [{"create": {"status": 201}}] * records
        return 200, "application/json", json.dumps({"took": 1, "errors": False, "items": items}).encode()


class Broker:
    """librdkafka's mock cluster of one broker, in this process; without TLS. It counts by the ends of its partitions."""

    PARTITIONS = 3
    ca = ""

    def __init__(self):
        sys.path.insert(0, support.FIXTURES)
        import kafka_library

        new_cluster = kafka_library.declare("mock_cluster_new", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        addresses = kafka_library.declare("mock_cluster_bootstraps", ctypes.c_char_p, ctypes.c_void_p)
        new_topic = kafka_library.declare("mock_topic_create", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int,
                                          ctypes.c_int)
        long = ctypes.POINTER(ctypes.c_int64)
        self.ends = kafka_library.declare("query_watermark_offsets", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                                          ctypes.c_int32, long, long, ctypes.c_int)
        owner = kafka_library.handle(kafka_library.PRODUCER, {"log_level": "0"})
        cluster = new_cluster(owner, 1)
        new_topic(cluster, b"events", self.PARTITIONS, 1)
        brokers = addresses(cluster).decode()
        self.port = int(brokers.rpartition(":")[2])
        self.asker = kafka_library.handle(kafka_library.PRODUCER, {"log_level": "0", "bootstrap.servers": brokers})

    @property
    def count(self) -> int:
        total = 0
        for partition in range(self.PARTITIONS):
            low, high = ctypes.c_int64(), ctypes.c_int64()
            failed = self.ends(self.asker, b"events", partition, ctypes.byref(low), ctypes.byref(high), 20_000)
            if failed:
                raise SystemExit(f"engines: the mock cluster does not tell its ends: {failed}")
            total += high.value
        return total


TLS = "tls on\ntls.verify on\ntls.ca_file {ca}\nhost 127.0.0.1\nport {port}\n"
# Our settings of the destination, and Fluent Bit's of its output.
ENGINES = {
    "OTLP": ('type = "http"\nformat = "otlp"\nurl = "https://127.0.0.1:{port}/v1/logs"\n[destination.tls]\nca_file = "{ca}"',
             TLS + "name opentelemetry\nlogs_uri /v1/logs\ncompress gzip"),
    "Loki": ('type = "http"\nformat = "loki"\nurl = "https://127.0.0.1:{port}/loki/api/v1/push"\n'
             '[destination.tls]\nca_file = "{ca}"',
             TLS + "name loki\nlabels app=web\nline_format json\ncompress gzip"),
    "Elasticsearch": ('type = "http"\nformat = "elasticsearch"\nurl = "https://127.0.0.1:{port}/events/_bulk"\n'
                      '[destination.tls]\nca_file = "{ca}"',
                      TLS + "name es\nindex events\nsuppress_type_name on\ncompress gzip\ngenerate_id on"),
    "Kafka": ('type = "kafka"\n[destination.kafka]\nbrokers = ["127.0.0.1:{port}"]\ntopic = "events"\ntls = false',
              "name kafka\nbrokers 127.0.0.1:{port}\ntopics events\nformat json\nrdkafka.compression.codec gzip\n"
              "rdkafka.enable.idempotence true"),
}
# librdkafka packs gzip with zlib, which takes more CPU than all else.
ENGINES["Kafka, zstd"] = (ENGINES["Kafka"][0], ENGINES["Kafka"][1].replace("codec gzip", "codec zstd"))
SETTINGS = """
[agent]
state_directory = "{work}/state"
[spool]
directory = "{work}/spool"
[stats]
listen = "127.0.0.1:0"
[control]
socket = "{work}/control.sock"
[apps.web]
read = ["{sources}/*.jsonl"]
[[destination]]
name = "engine"
compression = "{compression}"
{destination}
"""
PEER = """
[SERVICE]
    flush               1
    log_level           error
    parsers_file        {work}/parsers.conf
    storage.path        {work}/storage
    storage.sync        normal
    storage.max_chunks_up 512
[INPUT]
    name                tail
    path                {sources}/*.jsonl
    db                  {work}/tail.db
    read_from_head      true
    parser              pino
    storage.type        filesystem
[OUTPUT]
    match               *
"""


def ours(binary: str, name: str, engine: Engine | Broker, sources: str, options: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-engines-", dir=options.scratch) as work:
        os.makedirs(f"{work}/spool")
        os.makedirs(f"{work}/state")
        destination = ENGINES[name][0].format(port=engine.port, ca=engine.ca)
        with open(f"{work}/spoolship.toml", "w") as file:
            compression = "zstd" if "zstd" in name else "gzip"
            file.write(SETTINGS.format(work=work, sources=sources, destination=destination, compression=compression))
        return measured([binary, "run", "--config", f"{work}/spoolship.toml"], engine, work, options)


def theirs(binary: str, name: str, engine: Engine | Broker, sources: str, options: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory(prefix="spoolship-engines-", dir=options.scratch) as work:
        peers.configuration("fluent-bit-parsers.conf", f"{work}/parsers.conf")
        lines = ENGINES[name][1].format(port=engine.port, ca=engine.ca).split("\n")
        output = "".join(f"    {line}\n" for line in lines)
        with open(f"{work}/fluent-bit.conf", "w") as file:
            file.write(PEER.format(work=work, sources=sources) + output)
        return measured([binary, "-c", f"{work}/fluent-bit.conf"], engine, work, options)


def measured(command: list, engine: Engine | Broker, work: str, options: argparse.Namespace) -> dict:
    before = engine.count
    result = peers.timed(command, dict(os.environ), lambda: engine.count - before, options.events, 300, f"{work}/agent.log")
    # A format that holds the mark twice would end the run at half of the records.
    if (arrived := engine.count - before) != options.events:
        raise peers.Unfinished(f"{arrived} records arrived instead of {options.events}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=600_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="only engines whose name holds this")
    parser.add_argument("--scratch", default="/var/tmp")
    options = parser.parse_args()
    peer, version = peers.own_fluent_bit()
    failed = False
    with tempfile.TemporaryDirectory(prefix="spoolship-engines-", dir=options.scratch) as scratch:
        sources = f"{scratch}/pino"
        subprocess.run([sys.executable, f"{HERE}/generate.py", sources, "--events", str(options.events), "--profile", "pino"],
                       check=True)
        server = Engine(scratch)
        agents = [("Spoolship", ours, os.path.abspath(options.binary))] + ([(version, theirs, peer)] if peer else [])
        for name in ENGINES:
            if options.only not in name:
                continue
            engine = Broker() if name.startswith("Kafka") else server
            rates: dict = {label: [] for label, _, _ in agents}
            for _ in range(options.runs):
                for label, run, binary in agents:
                    try:
                        rates[label].append(run(binary, name, engine, sources, options)["events_per_cpu_second"])
                    except peers.Unfinished as failure:
                        print(f"{name}: {label}: {failure}", flush=True)
                        failed = True
            medians = {label: statistics.median(found) for label, found in rates.items() if found}
            for label, rate in medians.items():
                ratio = f", {medians['Spoolship'] / rate:.1f} times" if label != "Spoolship" and "Spoolship" in medians else ""
                spread = f"{min(rates[label]):,.0f} to {max(rates[label]):,.0f}"
                print(f"{name:14} {label:20} {rate:10,.0f} events per CPU-second ({spread}){ratio}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
