"""An app whose files are read in place: it rotates them while the queue is full, and in the middle of lines."""
import os
import random
import time

MODE = "place"
# All lines have one length, so that the number of accepted lines tells how many bytes were read.
LENGTH = 400
# What a record of several lines is by, in the configuration.
RECORDS = f"first_line = '^{MODE}-\\d+ '\npattern = '^(?P<k>{MODE}-\\d+) (?s:(?P<pad>.*))$'\n"
# Lines that are several times what a queue of 1 MiB holds.
BACKLOG = 12_000
# What must be seen within ten seconds, with two for the storm itself.
SEEN = 12
# How long a rotated file had to be quiet for its last line to count as whole, before that was found to tear lines; and more.
SILENCE = 2.5


class Place:
    """Writes only at quiet moments, while nothing else does."""

    def __init__(self, storm):
        self.storm, self.folder, self.count = storm, f"{storm.work}/place", 0
        self.written, self.file, self.rotations, self.shown = 0, None, 0, (0, 0)
        # Of its own: how much it writes depends on how fast the agent is, and must not change the storm's decisions.
        self.random = random.Random(f"{MODE}-{storm.options.seed}")
        storm.counts[MODE] = 0
        os.mkdir(self.folder, 0o755)

    def line(self):
        self.count += 1
        if self.storm.options.records:
            return self.record()
        head = f'{{"k":"{MODE}-{self.count}","pad":"'.encode()
        tail = b'"}\n'
        pad = self.random.randbytes(LENGTH).hex().encode()[:LENGTH - len(head) - len(tail)]
        return head + pad + tail

    def record(self):
        """A record of three lines. The first one is longer than what is written of it before a pause: a record ends with silence."""
        head = f"{MODE}-{self.count} ".encode()
        pad = self.random.randbytes(LENGTH).hex().encode()
        rest = b"\n  " + pad[:60] + b"\n  " + pad[60:120] + b"\n"
        return head + pad[120:120 + LENGTH - len(head) - len(rest)] + rest

    def put(self, data):
        written = os.write(self.file, data)
        assert written == len(data)
        self.written += written

    def write(self, count):
        self.put(b"".join(self.line() for _ in range(count)))

    def open(self, name="f.log"):
        self.file = os.open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o660)

    def rotate(self):
        """Renames the current file, which its writer keeps open; the new name."""
        self.rotations += 1
        new = f"{self.folder}/f.log.{self.rotations}"
        os.rename(f"{self.folder}/f.log", new)
        return new

    def fill(self):
        """Writes while the servers take nothing, until reading waits; whether it does."""
        # Lines that come one by one, for which the agent gathers changes, and in the next moment more than the queue holds.
        drip = [self.line() for _ in range(200)]
        backlog = b"".join(self.line() for _ in range(BACKLOG))
        for line in drip:
            self.put(line)
            time.sleep(0.001)
        self.put(backlog)

        def waits():
            status = self.storm.agent.status()
            return status and status["spool"]["waits"]
        return self.storm.until("reading to wait", waits, 60)

    def accepted(self):
        """Lines that the agent has accepted for a destination; none while it does not answer."""
        status = self.storm.agent.status()
        if status is None:
            return None
        lanes = next(one["lanes"] for one in status["destinations"] if one["name"] == "plain")
        return sum(lane["accepted"] for lane in lanes)

    def is_unread_true(self, base):
        status, accepted = self.storm.agent.status(), self.accepted()
        if status is None or accepted is None:
            return False
        self.shown = status["spool"]["lag_bytes"], self.written - (accepted - base) * LENGTH
        return self.shown[0] == self.shown[1]

    def expect_unread(self, base, what):
        if not self.storm.until(f"the unread bytes {what}", lambda: self.is_unread_true(base), SEEN):
            self.storm.model.faults.append(f"{what}, {self.shown[0]} bytes are unread; in truth {self.shown[1]}")

    def live_through_a_full_queue(self):
        """Rotates, creates and deletes files while the queue is full. Nothing is lost that was there for ten seconds."""
        base, self.written = self.accepted() or 0, 0
        for destination in self.storm.server.destinations.values():
            destination.mood = "down"
        self.storm.agent.configure(cap="1MiB")
        code = self.storm.agent.say("reload")
        self.open()
        is_full = self.fill()
        old = self.rotate()
        half = self.line()
        self.put(half[:200])
        # The old file's writer has it open, and ends its line there; the next file has another one.
        rest = self.file
        self.open()
        self.write(2000)
        os.close(self.file)
        self.open(f"g{self.rotations}.log")
        self.write(2000)
        os.close(self.file)
        self.expect_unread(base, "after a rotation while the queue is full")
        self.file = rest
        self.put(half[200:])
        os.close(self.file)
        self.expect_unread(base, "after more was written to the renamed file")
        for name in (old, f"{self.folder}/g{self.rotations}.log"):
            os.unlink(name)
        time.sleep(1)
        self.storm.agent.configure(cap="8MiB")
        for destination in self.storm.server.destinations.values():
            destination.mood = "well"
        again = self.storm.agent.say("reload"), self.storm.agent.say("resume")
        return f"full: {is_full}, exit {code}, {again}; {self.count} lines"

    def rotate_within_lines(self):
        """Rotates and deletes files whose writer is in the middle of a line, and goes on later."""
        for is_deleted in (False, True):
            self.open()
            self.write(3)
            half = self.line()
            self.put(half[:200])
            # It is read so far, and quiet.
            time.sleep(SILENCE)
            new = self.rotate()
            if is_deleted:
                os.unlink(new)
            time.sleep(SILENCE)
            self.put(half[200:])
            self.write(2)
            os.close(self.file)

    def live(self):
        said = self.live_through_a_full_queue()
        self.storm.until("what was held back to arrive", lambda: self.has_arrived(self.count), 180)
        self.rotate_within_lines()
        self.storm.counts[MODE] = self.count
        return said

    @staticmethod
    def is_whole(event):
        """Whether all bytes of a line, or of all lines of a record, are in an event: they have one length."""
        return len(event["k"]) + len(event.get("pad", "")) in (LENGTH - len('{"k":"","pad":""}\n'), LENGTH - len(" \n"))

    def has_arrived(self, count):
        return not any(one.missing(MODE, count) for one in self.storm.server.destinations.values())
