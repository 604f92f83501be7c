"""What apps write under the storm: the writers of scripts/storm, that hold still when they are asked to."""
import importlib.machinery
import importlib.util
import os
import time


def module(name, path):
    loader = importlib.machinery.SourceFileLoader(name, path)
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(made)
    return made


# The ways of rotating are those of scripts/storm.
Rotating = module("rotating", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/storm")).Writer
MODES = Rotating.MODES


class Writer(Rotating):
    """Writes and rotates until it is told to hold; then it says how many lines it has written."""

    def line(self):
        line = super().line()
        key = f"{self.mode}-{self.count}"
        more = f'"name":"e","secret":"hush {self.count}","user":"user of {key}"'
        # One event in some thousands is one that the picky server rejects.
        if self.count % 3001 == 1500:
            more += ',"poison":true'
        if self.count % 50 == 7:
            more += ',"priority":"critical"'
        return line.replace(b'"name":"e"', more.encode())

    def live(self, hold, stop, counts, held, pause):
        while not stop.is_set():
            if hold.is_set():
                counts[self.mode] = self.count
                held[self.mode] = True
                while hold.is_set() and not stop.is_set():
                    time.sleep(0.02)
                held[self.mode] = False
                continue
            for _ in range(self.chance.randint(1, 12)):
                self.write()
                time.sleep(self.chance.random() * pause)
            if os.path.exists(self.name):
                self.rotations += 1
                getattr(self, self.mode)()
                time.sleep(self.chance.random() * pause * 10)
