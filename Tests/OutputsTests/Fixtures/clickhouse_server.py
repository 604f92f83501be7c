#!/usr/bin/env python3
"""As much of ClickHouse's HTTP interface as an insert needs, before its real engine (chdb).

usage: clickhouse_server.py DIRECTORY --ready FILE [--port N] [--user NAME --password-file FILE]

Keeps its tables in DIRECTORY, and writes its port into FILE when it is ready. The query is the parameter `query`, followed by the
body; every other parameter becomes a setting of the query, as ClickHouse does it. So it is the engine that knows formats, settings and
insert_deduplication_token. A refusal has the engine's text, the header X-ClickHouse-Exception-Code, and the status that ClickHouse
gives to that code (HTTPHandler).
"""

import argparse
import base64
import gzip
import hmac
import http.server
import os
import re
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True

from chdb import session

from with_parent import end_with_parent

parser = argparse.ArgumentParser()
parser.add_argument("directory")
parser.add_argument("--ready", required=True)
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--user")
parser.add_argument("--password-file")
options = parser.parse_args()

engine = session.Session(options.directory)
lock = threading.Lock()
# From the codes of its errors to statuses; 500 is for the others.
STATUSES = {
    400: {6, 7, 26, 27, 38, 41, 43, 53, 62, 69, 70, 72, 117, 129, 130, 131, 321, 441, 467, 469, 675},
    403: {192, 193, 194, 497, 516}, 404: {47, 60, 81, 218},
}


def with_settings(query, settings):
    if not settings:
        return query
    pairs = []
    for name, value in settings:
        if not re.fullmatch(r"[a-z0-9_]+", name):
            raise RuntimeError(f"Code: 115. DB::Exception: Setting {name} is neither a builtin setting. (UNKNOWN_SETTING)")
        pairs.append("{}='{}'".format(name, value.replace("\\", "\\\\").replace("'", "\\'")))
    # An insert has its settings before its format.
    head, mark, tail = query.partition(" FORMAT ")
    return f"{head} SETTINGS {', '.join(pairs)}{mark}{tail}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def is_known(self):
        if not options.user:
            return True
        with open(options.password_file) as file:
            wanted = f"{options.user}:{file.read().strip()}"
        kind, _, basic = self.headers.get("Authorization", "").partition(" ")
        shown = base64.b64decode(basic).decode() if kind == "Basic" else "{}:{}".format(
            self.headers.get("X-ClickHouse-User"), self.headers.get("X-ClickHouse-Key"))
        return hmac.compare_digest(shown.encode(), wanted.encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if not self.is_known():
                raise RuntimeError("Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)")
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            pairs = urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
            query = "".join(value for name, value in pairs if name == "query")
            query = with_settings(query, [pair for pair in pairs if pair[0] != "query"])
            query = f"{query}\n{body.decode()}" if query else body.decode()
            with lock:
                answer = engine.query(query, "TabSeparated").bytes()
            self.reply(200, answer or b"")
        except RuntimeError as error:
            found = re.search(r"Code: (\d+)", str(error))
            code = int(found[1]) if found else 0
            status = next((status for status, codes in STATUSES.items() if code in codes), 500)
            self.reply(status, str(error).strip().encode() + b"\n", code)

    def reply(self, status, body, code=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Clients that are killed are part of the tests; anything else is a defect of this server.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


end_with_parent()
server = Server(("127.0.0.1", options.port), Handler)
with open(options.ready + ".new", "w") as file:
    file.write(f"{server.server_port}\n")
os.rename(options.ready + ".new", options.ready)
server.serve_forever()
