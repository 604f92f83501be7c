"""What must be true at a quiet moment."""
import json
import os

from place import MODE
from server import REFUSING
from writer import MODES

# Whose lines are counted: those of the writers in the spool, and of the app that is read in place.
COUNTED = [*MODES, MODE]

GONE = ("acknowledged", "dead_lettered", "evicted", "expired", "discarded", "lost", "queued")


class Model:
    """Knows what was written, and compares it with what has arrived and with what the agent says."""

    def __init__(self, work, server, agent, counts):
        self.work, self.server, self.agent, self.counts = work, server, agent, counts
        self.faults, self.sizes = [], []
        self.offset, self.seen = 0, {mode: set() for mode in COUNTED}

    def has_arrived(self, refusing=False):
        return not any(destination.missing(mode, self.counts[mode])
                       for destination in self.server.destinations.values() for mode in COUNTED
                       if destination.refuses == refusing)

    def waiting(self):
        status = self.agent.status()
        return status and sum(lane["queued"] for one in status["destinations"] for lane in one["lanes"]
                              if one["name"] not in REFUSING)

    def leftovers(self):
        """Files in the spool that are neither a writer's current one nor an archive of rotation's, which stays."""
        return [f"{mode}/{name}" for mode in MODES for name in os.listdir(f"{self.work}/spool/{mode}")
                if name != "f.log" and not name.endswith(".gz")]

    def judge(self):
        """Counts; what the agent's size is now."""
        for name, destination in self.server.destinations.items():
            for mode in COUNTED:
                missing = destination.missing(mode, self.counts[mode])
                if missing:
                    self.faults.append(f"{name}: {len(missing)} lines of {mode} did not arrive, the first {missing[:3]}")
            if destination.repeats:
                self.faults.append(f"{name}: {len(destination.repeats)} lines arrived more than once, as {destination.repeats[:3]}")
            self.faults += destination.faults
            destination.faults = []
        self.judge_file()
        left = self.leftovers()
        if left:
            self.faults.append(f"{len(left)} files are left in the spool, as {left[:3]}")
        status = self.agent.status()
        if status is None:
            self.faults.append("status says nothing")
        else:
            self.judge_ledger(status)
        self.sizes.append(self.agent.size())
        return self.sizes[-1]

    def judge_file(self):
        """A file remembers no batches: around a kill lines may be there twice, but none is missing."""
        with open(f"{self.work}/out.jsonl", "rb") as file:
            file.seek(self.offset)
            data = file.read()
        # The agent may be writing yet, so no more than whole lines.
        data = data[:data.rfind(b"\n") + 1]
        self.offset += len(data)
        events = []
        for line in data.splitlines():
            try:
                event = json.loads(line)
                mode, number = event["k"].rsplit("-", 1)
            except (ValueError, KeyError):
                # A line that a kill has torn; its batch was written again.
                continue
            events.append(event)
            self.seen[mode].add(int(number))
        self.faults += [f"file: {wrong}" for wrong in self.server.look_at(data, events)][:3]
        for mode in COUNTED:
            missing = self.counts[mode] - len(self.seen[mode])
            if missing:
                self.faults.append(f"file: {missing} lines of {mode} are missing")

    def judge_ledger(self, status):
        if not status["balanced"]:
            self.faults.append("the agent says that the ledger does not balance")
        for one in status["destinations"]:
            for lane in one["lanes"]:
                place = f"{one['name']}, {lane['priority']}"
                if lane["accepted"] + lane["retried"] != sum(lane[column] for column in GONE):
                    self.faults.append(f"{place}: the ledger's row does not balance: {lane}")
                columns = ("evicted", "expired", "discarded", "lost") + (() if one["name"] in REFUSING else ("queued",))
                for column in columns:
                    if lane[column]:
                        self.faults.append(f"{place}: {lane[column]} {column}")
            if one["name"] in REFUSING:
                self.judge_refusing(one)
                continue
            dead = sum(lane["dead_lettered"] for lane in one["lanes"])
            expected = self.server.destinations[one["name"]].rejected if one["name"] in self.server.destinations else ()
            if dead != len(expected):
                self.faults.append(f"{one['name']}: {dead} dead letters, {len(expected)} events were rejected")

    def judge_refusing(self, one):
        """What is refused is a dead letter, or waits set aside; nothing else waits."""
        kept, refused = self.kept(one), self.refused()
        if kept != refused:
            self.faults.append(f"{one['name']}: {kept} events are kept or dead letters, {refused} are refused")

    def kept(self, one):
        return sum(lane["dead_lettered"] + lane["queued"] for lane in one["lanes"])

    def refused(self):
        return sum(count // 5 for count in self.counts.values())

    def unsettled(self):
        """How many good events wait for an acknowledgement, by server that refuses some: one that stores the others of a refused
        request has them before."""
        counts = {one["name"]: self.kept(one) - self.refused() for one in (self.agent.status() or {}).get("destinations", [])
                  if one["name"] in REFUSING}
        return {name: count for name, count in counts.items() if count > 0}

    def has_settled(self):
        return self.agent.status() is not None and not self.unsettled()

    def judge_container(self, version):
        """The published version is in force: lines from now on show it."""
        container = self.agent.container()
        if container.get("version") != version:
            self.faults.append(f"version {version} of the container is published, and not in force: {container}")
            return
        for mode in MODES:
            self.server.ruled_from[mode] = (self.counts[mode], version)

    def compare_sizes(self):
        """Of the first quiet moments and of the last: what grows all the time is found by long storms."""
        if len(self.sizes) < 4:
            return
        early, late = self.sizes[:2], self.sizes[-2:]
        if min(one[0] for one in late) > 1.5 * max(one[0] for one in early) + 8:
            self.faults.append(f"memory has grown: {self.sizes}")
        if min(one[1] for one in late) > max(one[1] for one in early) + 16:
            self.faults.append(f"descriptors have grown: {self.sizes}")
