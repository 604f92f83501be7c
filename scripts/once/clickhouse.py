import json
import os
import subprocess
import time

from . import support


class ClickHouse:
    """ClickHouse's engine from PyPI (chdb) behind a small HTTP server, with its table on disk.

    What a token does is the engine's own: the server hands each request's settings to it, and looks at none.
    """

    def __init__(self, base, options, proxy):
        self.base, self.port = base, support.free_port()
        # The documented table and configuration; the latter also makes the password.
        self.configuration = support.as_printed("ClickHouse", base, "http://127.0.0.1:{port}")
        self.start()
        self.query(support.printed("ClickHouse", "sql").strip().rstrip(";").replace(
            "deduplication_window = 10000", f"deduplication_window = {options.remembered}"))

    def start(self):
        place = f"{self.base}/port"
        if os.path.exists(place):
            os.remove(place)
        with open(f"{self.base}/server.log", "ab") as log:
            self.process = subprocess.Popen(
                [support.installed("bin/python3"), f"{support.FIXTURES}/clickhouse_server.py", f"{self.base}/clickhouse",
                 "--port", f"{self.port}", "--ready", place, "--user", "spoolship",
                 "--password-file", f"{self.base}/clickhouse.password"], stdout=log, stderr=log)
        support.wait(lambda: f"chdb; see {self.base}/server.log", 60, lambda: os.path.exists(place))

    def destination(self, port):
        return self.configuration.replace("{port}", f"{port}")

    def harm(self, proxy):
        self.stop()
        time.sleep(0.3)
        self.start()

    def query(self, text):
        with open(f"{self.base}/clickhouse.password") as file:
            headers = {"X-ClickHouse-User": "spoolship", "X-ClickHouse-Key": file.read()}
        return support.ask(self.port, "/", text.encode(), headers)

    def lines(self):
        for line in self.query("SELECT id, properties FROM events FORMAT JSONEachRow").splitlines():
            row = json.loads(line)
            yield json.dumps({"id": row["id"], "properties": json.loads(row["properties"])})

    def stop(self):
        self.process.kill()
        self.process.wait()
