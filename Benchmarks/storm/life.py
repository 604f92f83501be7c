"""The storm itself: one happening after another, and quiet moments between."""
import multiprocessing
import os
import random
import time

import happenings
from agent import Agent
from containers import Publisher
from model import Model
from place import RECORDS, Place
from server import REFUSING, Server
from world import Network, World
from writer import MODES, Writer


class Storm:
    """What happens, in an order that the seed decides."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.random = random.Random(f"storm-{options.seed}")
        for name in ["spool", "tls", "container", "run"] + [f"spool/{mode}" for mode in MODES]:
            os.mkdir(f"{work}/{name}", 0o755)
        self.world, self.network = World(work), Network()
        self.publisher = Publisher(options.binary, f"{work}/container", self.world.environment)
        self.publisher.publish("well")
        # On request: at this rate of lines, all good ones do not arrive within the minute that is demanded.
        self.refusing = list(REFUSING) if options.refusing else []
        self.server = Server(f"{work}/tls", ["plain", "picky", *self.refusing], options.seed, self.network, self.world, self.publisher)
        self.agent = Agent(options.binary, work, self.server, self.world, self.network, RECORDS if options.records else "")
        self.began, self.done, self.quiets = time.monotonic(), {}, 0
        manager = multiprocessing.Manager()
        self.counts, self.held = manager.dict(), manager.dict()
        self.model = Model(work, self.server, self.agent, self.counts)
        self.place = Place(self)
        self.hold, self.stop = multiprocessing.Event(), multiprocessing.Event()
        self.writers = [
            multiprocessing.Process(
                target=Writer(f"{work}/spool", mode, options.seed).live, daemon=True,
                args=(self.hold, self.stop, self.counts, self.held, options.pause))
            for mode in MODES]

    def say(self, text):
        print(f"storm: {time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    def rage(self):
        self.agent.start()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 30)
        for writer in self.writers:
            writer.start()
        until = time.monotonic() + self.options.seconds
        while time.monotonic() < until and not self.model.faults:
            for _ in range(self.options.calm):
                happening = self.random.choice(happenings.ALL)
                self.agent.check_alive()
                self.done[happening.__name__] = self.done.get(happening.__name__, 0) + 1
                said = happening(self)
                self.say(happening.__name__.replace("_", " ") + (f": {said}" if said else ""))
                time.sleep(self.random.random())
            self.quiet()
        self.stop.set()
        self.model.compare_sizes()
        self.agent.terminate()

    # Quiet moments.

    def quiet(self):
        """Lets everything come to rest, and counts."""
        # Decided first: what the answers are must not change what comes next.
        is_disabled, waits_for_refresh = self.random.random() < 0.3, self.random.random() < 0.1
        is_full = self.quiets == 0 or self.random.random() < 0.3
        self.quiets += 1
        for destination in self.server.destinations.values():
            destination.mood = "well"
        self.publisher.publish("unchanged")
        self.hold.set()
        while not all(self.held.get(mode) for mode in MODES):
            if any(writer.exitcode is not None for writer in self.writers):
                raise SystemExit("storm: FAILED: a writer has ended")
            time.sleep(0.02)
        self.agent.check_alive()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 60)
        # What waits goes in large batches: one event a batch, and a sync of the file for each, is no hang but slow.
        self.agent.configure(events=500)
        for command in (["reload"], ["network", "on"], ["resume"], ["container", "preview", "--end"]):
            code = self.agent.say(*command)
            if code != 0:
                self.model.faults.append(f"{' '.join(command)} ended with {code}")
        self.until("the container", lambda: self.agent.say("container", "refresh") == 0, 60)
        # However many events are refused before it, a good one arrives within a minute.
        self.until("what is not refused to arrive", lambda: self.model.has_arrived(refusing=True) and self.model.has_settled(), 60)
        for name, count in self.model.unsettled().items():
            self.model.faults.append(f"{name}: {count} good events were not acknowledged within a minute")
        for name in self.refusing:
            for mode in MODES:
                missing = self.server.destinations[name].missing(mode, self.counts[mode])
                if missing:
                    self.model.faults.append(f"{name}: {len(missing)} lines of {mode} did not arrive within a minute")
        self.until("all to arrive", self.model.has_arrived, 180)
        self.until("the queue to be empty", lambda: self.model.waiting() == 0, 60)
        self.until("the spool to be tidy", lambda: not self.model.leftovers(), 60)
        before = len(self.model.faults)
        memory, descriptors = self.model.judge()
        self.model.judge_container(self.publisher.published())
        self.say(f"quiet: {sum(self.counts.values())} lines, {memory:.1f} MB, {descriptors} descriptors; "
                 f"{len(self.model.faults) - before} faults")
        if is_full and len(self.model.faults) == before:
            self.say(f"full queue: {self.place.live()}")
            self.until("all of it to arrive", self.model.has_arrived, 60)
            self.until("the queue to be empty", lambda: self.model.waiting() == 0, 60)
            self.model.judge()
        if waits_for_refresh and self.options.seconds >= 600:
            self.wait_for_refresh()
        if is_disabled:
            self.say(f"disabled: {self.disabled()}")
        for fault in self.model.faults[before:]:
            self.say(f"FAULT: {fault}")
        self.hold.clear()

    def until(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            self.agent.check_alive()
            if time.monotonic() > deadline:
                # What is wrong is named where it is counted.
                self.say(f"waited {seconds} s for {what}")
                return False
            time.sleep(0.25)
        return True

    def wait_for_refresh(self):
        """A version that is published is in force within the refresh interval, and nobody asks for it."""
        version = self.publisher.publish("well")
        began = time.monotonic()
        self.until("the refresh", lambda: self.agent.container().get("version") == version, 180)
        self.model.judge_container(version)
        self.say(f"version {version} was in force after {time.monotonic() - began:.0f} s")

    def disabled(self):
        """Switched off and on again. What waits is deleted then, so first nothing may wait: only at a quiet moment."""
        off = self.agent.say("disable", "--yes")
        self.agent.kill()
        self.agent.start()
        self.until("the agent to answer", lambda: self.agent.status() is not None, 60)
        on = self.agent.say("enable")
        if off or on:
            self.model.faults.append(f"disable ended with {off}, enable with {on}")
        return f"exit {off}, {on}"

    def end(self):
        for writer in self.writers:
            if writer.is_alive():
                writer.terminate()
        if self.agent.process and self.agent.process.poll() is None:
            self.agent.process.kill()
            self.agent.process.wait()
        self.network.end()
