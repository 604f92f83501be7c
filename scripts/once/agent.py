import json
import os
import re
import signal
import subprocess


class Agent:
    def __init__(self, base, binary, destination, batch):
        """An agent with a destination, and batches of so many events; None leaves all settings to the destination's text."""
        self.base, self.binary, self.process = base, binary, None
        self.configuration = f"{base}/spoolship.toml"
        for name in ["spool", "state", "runtime"]:
            os.makedirs(f"{base}/{name}", exist_ok=True)
        with open(self.configuration, "w") as file:
            file.write(f"""
[agent]
state_directory = "{base}/state"
runtime_directory = "{base}/runtime"
[spool]
directory = "{base}/spool"
after_read = "delete"
[queue]
max_size = "64MiB"
[control]
socket = "{base}/control.sock"
[stats]
listen = "127.0.0.1:0"
[session]
mode = "off"
[dispatch]
interval = "1s"
[retry]
intervals = ["200ms", "500ms", "1s", "2s"]
probe_interval = "1s"
""" + (destination if batch is None else re.sub(r'^name = .*$', lambda name: name[0] + f"""
batch_events = {{ full = {batch}, max = {batch} }}
request_timeout = "10s"
connect_timeout = "5s"
compression = "gzip\"""", destination, count=1, flags=re.MULTILINE)))

    def start(self):
        log = open(f"{self.base}/agent.log", "ab")
        self.process = subprocess.Popen([self.binary, "run", "--config", self.configuration], stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def status(self):
        words = [self.binary, "status", "--json", "--config", self.configuration]
        done = subprocess.run(words, capture_output=True, text=True)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def lane(self):
        """The normal lane's figures; None while the agent does not answer."""
        status = self.status()
        lanes = status["destinations"][0]["lanes"] if status and status["destinations"] else []
        return next((lane for lane in lanes if lane["priority"] == "normal"), None)

    def is_settled(self, accepted=0):
        """Whether nothing waits, after so many events have been accepted."""
        lane = self.lane()
        return lane is not None and lane["accepted"] >= accepted and lane["queued"] == 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
