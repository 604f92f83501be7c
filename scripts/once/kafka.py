import os
import re
import subprocess
import sys

from . import support

PARTITIONS = 3


class Kafka:
    """The broker tansu from PyPI with its topics in memory, behind TLS and SCRAM: so the documented configuration is run as printed.

    It advertises the proxy's address: producers that ask it where the topic is stay with the proxy. librdkafka's consumer reads.
    """

    def __init__(self, base, options, proxy):
        self.base, self.proxy = base, proxy
        # It also makes the password.
        text = support.as_printed("Apache Kafka", base, "")
        self.configuration = re.sub(r"brokers = .*", f'brokers = ["localhost:{proxy.port}"]', text)
        with open(f"{base}/kafka.password") as file:
            self.password = file.read()
        self.certify()
        ready = f"{base}/kafka-port"
        with open(f"{base}/server.log", "wb") as log:
            self.process = subprocess.Popen([
                support.installed("bin/python3"), f"{support.FIXTURES}/kafka_secure.py", base, ready, "--ca",
                f"{base}/kafka-ca.pem", "--user", "spoolship", "--password", self.password, "--advertise", f"{proxy.port}",
                "--partitions", f"{PARTITIONS}", "--front", f"{base}/kafka.pem,{base}/kafka.key",
            ], stdout=log, stderr=log)
        support.wait(lambda: f"tansu; see {base}/server.log", 60, lambda: os.path.exists(ready) and open(ready).read().endswith("\n"))
        self.port = int(open(ready).read())

    def certify(self):
        """Makes an authority, and the broker's certificate."""
        name = f"{self.base}/kafka"
        for words in [
            ["req", "-x509", "-subj", "/CN=authority", "-keyout", f"{name}-ca.key", "-out", f"{name}-ca.pem"],
            ["req", "-x509", "-subj", "/CN=localhost", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-CA", f"{name}-ca.pem",
             "-CAkey", f"{name}-ca.key", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"],
        ]:
            subprocess.run(
                ["openssl", *words, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"], check=True,
                capture_output=True)

    def destination(self, port):
        return self.configuration

    def harm(self, proxy):
        # It keeps its records in memory.
        proxy.cut(0.7)

    def lines(self):
        sys.path.insert(0, support.FIXTURES)
        from kafka_library import Reader

        reader = Reader(f"localhost:{self.proxy.port}", b"events", PARTITIONS, {
            "security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "spoolship",
            "sasl.password": self.password, "ssl.ca.location": f"{self.base}/kafka-ca.pem",
        })
        support.wait(lambda: "the end of each partition", 300, lambda: len(reader.ended) == PARTITIONS)
        for record in reader.records:
            yield record["value"]

    def stop(self):
        self.process.kill()
        self.process.wait()
