"""The agent under the storm: its configuration in several versions, its life, and what it says of itself."""
import json
import os
import signal
import subprocess
import time

CONFIGURATION = """
[agent]
state_directory = "{work}/state"
log_level = "info"
[spool]
directory = "{work}/spool"
[queue]
max_size = "{cap}"
[dispatch]
interval = "{interval}"
batch_events = {events}
[session]
mode = "off"
[retry]
intervals = ["1s", "2s"]
[control]
socket = "{work}/control.sock"
[stats]
listen = "off"
"""
DESTINATION = """
[[destination]]
name = "{name}"
type = "http"
url = "{url}"
compression = "{compression}"
connect_timeout = "3s"
request_timeout = "5s"
[destination.tls]
ca_file = "{ca}"
"""
FILE = """
[[destination]]
name = "file"
type = "file"
path = "{work}/out.jsonl"
"""


class Agent:
    def __init__(self, binary, work, server):
        self.binary, self.work, self.server = binary, work, server
        self.path = f"{work}/spoolship.toml"
        self.process, self.starts, self.configuration = None, 0, {}
        self.configure(cap="8MiB", interval="1s", events=50, compression="gzip")

    def configure(self, **changes):
        self.configuration |= changes
        values = {"work": self.work, "ca": self.server.ca, **self.configuration}
        text = CONFIGURATION.format(**values) + FILE.format(**values)
        for name in self.server.destinations:
            text += DESTINATION.format(name=name, url=self.server.url(name), **values)
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.rename(self.path + ".new", self.path)

    def start(self):
        self.starts += 1
        with open(f"{self.work}/agent.log", "ab") as log:
            self.process = subprocess.Popen([self.binary, "run", "--config", self.path], stdout=log, stderr=log)

    def check_alive(self):
        status = self.process.poll()
        if status is not None:
            raise SystemExit(f"storm: FAILED: the agent ended by itself with {status}; {self.last_words()}")

    def kill(self):
        self.check_alive()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self):
        """Ends it as systemd does; it must end by itself, with 0."""
        self.check_alive()
        began = time.monotonic()
        self.process.terminate()
        try:
            status = self.process.wait(90)
        except subprocess.TimeoutExpired:
            raise SystemExit("storm: FAILED: the agent did not end within 90 s of SIGTERM") from None
        if status != 0:
            raise SystemExit(f"storm: FAILED: the agent ended with {status} after SIGTERM; {self.last_words()}")
        return time.monotonic() - began

    def last_words(self):
        with open(f"{self.work}/agent.log", "rb") as file:
            return "its last words:\n" + b"".join(file.readlines()[-5:]).decode(errors="replace")

    def say(self, *words):
        """Runs a command of the agent's; its exit code."""
        done = subprocess.run([self.binary, *words, "--config", self.path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=120, check=False)
        return done.returncode

    def status(self):
        done = subprocess.run([self.binary, "status", "--json", "--config", self.path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60, check=False)
        return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else None

    def size(self):
        """Resident memory in MB, and open descriptors."""
        with open(f"/proc/{self.process.pid}/status") as file:
            memory = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
        return memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))
