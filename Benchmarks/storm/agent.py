"""The agent under the storm: its configuration in several versions, its life, and what it says of itself."""
import json
import os
import signal
import subprocess
import time

from containers import ID

CONFIGURATION = """
[agent]
state_directory = "{work}/state"
runtime_directory = "{work}/run"
log_level = "{log_level}"
[spool]
directory = "{work}/spool"
after_read = "delete"
max_open_files = {open_files}
[queue]
max_size = "{cap}"
compression = "{stored}"
[dispatch]
interval = "{interval}"
batch_events = {events}
parallel_batches = {parallel}
critical_delay = "{critical}"
[session]
mode = "off"
[retry]
intervals = {retries}
[control]
socket = "{work}/control.sock"
[stats]
listen = "off"
[[container]]
id = "{container}"
url = "{container_url}"
public_key = "{key}"
ca_file = "{ca}"
required = true
refresh_interval = "{refresh}"
may_set = {may_set}
[apps.place]
read = ["{work}/place/*.log"]
{records}[[destination]]
name = "file"
type = "file"
path = "{work}/out.jsonl"
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
# What a reload may change, in this order, and to what.
CHANGES = {
    "interval": ["1s", "2s", "5s"],
    "events": [1, 20, 50, 500],
    "compression": ["none", "gzip"],
    "cap": ["4MiB", "8MiB", "32MiB"],
    "stored": ["auto", "none", "zstd"],
    "parallel": [1, 3, 8],
    "critical": ["100ms", "3s"],
    "retries": ['["1s", "2s"]', '["1s"]', '["1s", "1s", "1s", "2s"]'],
    "open_files": [16, 64, 512],
    "log_level": ["info", "debug"],
    "refresh": ["1m", "2m"],
    "may_set": ['["dispatch.interval"]', "[]"],
}
FIRST = {
    "interval": "1s", "events": 50, "compression": "gzip", "cap": "8MiB", "stored": "auto", "parallel": 3, "critical": "3s",
    "retries": '["1s", "2s"]', "open_files": 512, "log_level": "info", "refresh": "1m", "may_set": '["dispatch.interval"]'}


class Agent:
    def __init__(self, binary, work, server, world, network, records):
        self.binary, self.work, self.server, self.world, self.network = binary, work, server, world, network
        # How records of several lines begin, in the app that is read in place; empty: each line is one.
        self.records = records
        self.path = f"{work}/spoolship.toml"
        self.process, self.starts, self.log_began, self.configuration = None, 0, 0, {}
        self.environment = os.environ | world.environment
        self.configure(**FIRST)

    def configure(self, **changes):
        self.configuration |= changes
        values = {
            "work": self.work, "records": self.records, "ca": self.server.ca, "container": ID, "container_url": self.server.url(f"container/{ID}"),
            "key": self.server.publisher.keys["ours"], **self.configuration}
        text = CONFIGURATION.format(**values)
        for name in self.server.destinations:
            text += DESTINATION.format(name=name, url=self.server.url(name), **values)
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.rename(self.path + ".new", self.path)

    def start(self):
        self.starts += 1
        # The library is for the agent, not for what starts it.
        variables = [f"{name}={value}" for name, value in self.world.environment.items()]
        command = [*self.network.enter(), "env", *variables, self.binary, "run", "--config", self.path]
        with open(f"{self.work}/agent.log", "ab") as log:
            self.log_began = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def check_alive(self):
        status = self.process.poll()
        if status is not None:
            raise SystemExit(f"storm: FAILED: the agent ended by itself with {status}; {self.last_words()}")

    def kill(self):
        self.check_alive()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self):
        """Ends it as systemd does; it must end by itself, with 0; how long that took."""
        self.check_alive()
        began = time.monotonic()
        self.process.terminate()
        try:
            status = self.process.wait(90)
        except subprocess.TimeoutExpired:
            raise SystemExit("storm: FAILED: the agent did not end within 90 s of SIGTERM") from None
        # Before its first word the signal is the system's to handle: the program has not begun yet.
        has_begun = os.path.getsize(f"{self.work}/agent.log") > self.log_began
        if status != 0 and (has_begun or status != -signal.SIGTERM):
            raise SystemExit(f"storm: FAILED: the agent ended with {status} after SIGTERM; {self.last_words()}")
        return time.monotonic() - began

    def last_words(self):
        with open(f"{self.work}/agent.log", "rb") as file:
            return "its last words:\n" + b"".join(file.readlines()[-5:]).decode(errors="replace")

    def ask(self, *words):
        """Runs a command of the agent's; its exit code and what it printed."""
        try:
            done = subprocess.run(
                [self.binary, *words, "--config", self.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=self.environment, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"storm: FAILED: `{' '.join(words)}` did not end within 120 s") from None
        return done.returncode, done.stdout

    def say(self, *words):
        """Runs a command of the agent's; its exit code."""
        return self.ask(*words)[0]

    def status(self):
        code, text = self.ask("status", "--json")
        return json.loads(text) if code in (0, 1) and text else None

    def container(self):
        """What the agent says of the container; nothing while it does not answer."""
        code, text = self.ask("container", "list", "--json")
        return json.loads(text)["containers"][0] if code == 0 and text else {}

    def size(self):
        """Resident memory in MB, and open descriptors."""
        with open(f"/proc/{self.process.pid}/status") as file:
            memory = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
        return memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))
