import json
import subprocess

from . import support


class Elasticsearch:
    """osmem-server from PyPI: an independent OpenSearch in memory, whose own `_bulk` decides what a `create` finds.

    Neither Elasticsearch nor OpenSearch itself is in Debian or on PyPI.
    """

    def __init__(self, base, options, proxy):
        self.base, self.port = base, support.free_port()
        binary = support.installed("bin/osmem-server")
        with open(f"{base}/server.log", "wb") as log:
            # It ends with the script: that is its standard input's other end.
            self.process = subprocess.Popen(
                [binary, "-addr", f"127.0.0.1:{self.port}", "-no-ja"], stdin=subprocess.PIPE, stdout=log, stderr=log)
        support.wait(lambda: f"osmem-server; see {base}/server.log", 60, lambda: support.is_listening(self.port))

    def destination(self, port):
        return support.as_printed("Elasticsearch and OpenSearch", self.base, f"http://127.0.0.1:{port}")

    def harm(self, proxy):
        # It keeps its documents in memory.
        proxy.cut(0.7)

    def ask(self, path, body):
        return json.loads(support.ask(
            self.port, path, json.dumps(body).encode(), {"Content-Type": "application/json"}, "POST"))

    def lines(self):
        self.ask("/events/_refresh", {})
        after = None
        while True:
            query = {"size": 10_000, "sort": ["_id"], **({"search_after": after} if after else {})}
            hits = self.ask("/events/_search", query)["hits"]["hits"]
            if not hits:
                return
            for hit in hits:
                event = hit["_source"]
                if hit["_id"] != f"{event['app']}/{event['id']}":
                    raise ValueError(f"a document has another id than its event: {hit}")
                yield json.dumps(event)
            after = hits[-1]["sort"]

    def stop(self):
        self.process.kill()
        self.process.wait()
