import base64
import gzip
import json
import os
import subprocess

from . import support


class S3:
    """moto behind a gate that recomputes each signature: the tests' own server."""

    def __init__(self, base, options, proxy):
        python = support.installed("bin/python3")
        log = open(f"{base}/server.log", "wb")
        place = f"{base}/port"
        words = [python, f"{support.FIXTURES}/s3_server.py", place]
        self.process = subprocess.Popen(words, stdout=log, stderr=log)
        support.wait(lambda: "moto", 60, lambda: os.path.exists(place) and open(place).read().endswith("\n"))
        self.port = int(open(place).read())

    def destination(self, port):
        return f"""
[[destination]]
name = "main"
type = "s3"
url = "http://127.0.0.1:{port}"
[destination.s3]
bucket = "events"
region = "eu-central-1"
access_key_id = "AKIDEXAMPLE"
secret_access_key = "secret/with+signs="
path_style = true
"""

    def harm(self, proxy):
        # It keeps its objects in memory.
        proxy.cut(0.7)

    def lines(self):
        objects = json.loads(support.ask(self.port, "/_test/objects"))
        for key in sorted(objects):
            yield from gzip.decompress(base64.b64decode(objects[key]["body"])).splitlines()

    def stop(self):
        self.process.kill()
        self.process.wait()
