"""The world that the agent alone sees: its clock, its disk, its network."""
import contextlib
import mmap
import os
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Beyond this the clock turns round: the storm's certificates are valid so far. Further than queue.max_age (25 days), and still nothing
# may expire: not for ten minutes after a step of more than an hour, and quiet moments, when nothing waits, come more often.
FARTHEST = 400 * 86400


class World:
    """What `world.c` imitates for the agent and its commands."""

    def __init__(self, work):
        self.path, self.pipe, self.library = f"{work}/world", f"{work}/steps", f"{work}/world.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", self.library, f"{HERE}/world.c"], check=True)
        with open(self.path, "wb") as file:
            file.truncate(mmap.PAGESIZE)
        os.mkfifo(self.pipe, 0o600)
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.ahead, self.synchronised, self.is_read_only = 0, 1, False
        self.write()
        self.environment = {
            "LD_PRELOAD": self.library, "STORM_WORLD": self.path, "STORM_STEPS": self.pipe, "STORM_STATE": f"{work}/state/"}

    def write(self):
        self.memory[:16] = struct.pack("<qii", self.ahead, self.synchronised, self.is_read_only)

    def step(self, seconds):
        """Sets the agent's clock; how far it is ahead then."""
        wanted = self.ahead + seconds
        self.ahead = wanted if abs(wanted) <= FARTHEST else self.ahead - seconds
        self.write()
        # Without an agent nobody reads.
        with contextlib.suppress(OSError):
            pipe = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, b"stepped!")
            finally:
                os.close(pipe)
        return self.ahead

    def set_synchronised(self, synchronised):
        self.synchronised = synchronised
        self.write()

    def set_read_only(self, is_read_only):
        self.is_read_only = is_read_only
        self.write()


class Network:
    """A network namespace of the agent's own, and a cable between it and the storm's, which the servers listen in."""

    def __init__(self):
        # It ends with the storm, whatever ends that: its input is at its end then.
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.server, self.agent = "10.77.0.1", "10.77.0.2"
        mine = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 30
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == mine:
            if time.monotonic() > deadline:
                raise SystemExit("storm: FAILED: there is no network namespace for the agent")
            time.sleep(0.01)
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "server", "type", "veth", "peer", "name", "agent", "netns", str(self.holder.pid))
        self.ip("address", "add", f"{self.server}/24", "dev", "server")
        self.ip("link", "set", "server", "up")
        self.agents_ip("link", "set", "lo", "up")
        self.agents_ip("address", "add", f"{self.agent}/24", "dev", "agent")
        self.agents_ip("link", "set", "agent", "up")

    def enter(self):
        """What to put before a command that is to run in the agent's namespace."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True)

    def agents_ip(self, *arguments):
        subprocess.run([*self.enter(), "ip", *arguments], check=True)

    def set_link(self, is_up):
        """Of the agent's end: without it no route leads anywhere."""
        self.agents_ip("link", "set", "agent", "up" if is_up else "down")

    def set_cable(self, is_in):
        """Of the servers' end: without it routes stay, and nothing answers."""
        self.ip("link", "set", "server", "up" if is_in else "down")

    def end(self):
        self.holder.kill()
        self.holder.wait()
