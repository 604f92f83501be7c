"""The same machine with Debian's systemd as its first process: the agent is the packaged unit, in its sandbox."""
import os, shutil, signal, subprocess, time
from machine import Machine, STATS

# As in scripts/life-test: the tree becomes the root of a machine of its own, as far as namespaces go.
BOOT = r"""
set -e
mount --make-rprivate /
mount --rbind "$0" "$0"
cd "$0"
umount dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
umount run
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    set -- $device
    mknod -m 666 "dev/$1" c "$2" "$3"
done
mkdir -p dev/pts dev/shm old
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
pivot_root . old
umount -l old
# As a kernel would leave it: units see what is mounted later.
mount --make-rshared /
exec env -i container=unshare PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --system --log-target=journal --unit=faults.target
"""


class Unit:
    """The unit, in the place of a process that the harness has started."""

    def __init__(self, machine):
        self.machine = machine

    @property
    def pid(self):
        """The main process, as this machine counts processes; 0 if there is none."""
        inner = self.machine.property("MainPID")
        for name in os.listdir("/proc"):
            if not name.isdigit() or inner == "0":
                continue
            try:
                status = open(f"/proc/{name}/status").read()
                numbers = next(line for line in status.split("\n") if line.startswith("NSpid:")).split()[1:]
            except OSError:
                continue
            if len(numbers) > 1 and numbers[-1] == inner and status.startswith("Name:\tspoolship"):
                return int(name)
        return 0

    def send_signal(self, number):
        if pid := self.pid:
            os.kill(pid, number)

    def kill(self):
        self.killed = self.machine.property("MainPID")
        self.send_signal(signal.SIGKILL)

    def poll(self):
        """The exit code of an agent that has ended; none while the unit is active."""
        if self.machine.property("ActiveState") in ("active", "activating", "reloading") and self.machine.property("MainPID") != "0":
            return None
        return int(self.machine.property("ExecMainStatus"))

    def wait(self, seconds=20):
        if killed := getattr(self, "killed", None):
            self.machine.until(seconds, "the unit's process to end", lambda: self.machine.property("MainPID") != killed)
            return -9
        self.machine.until(seconds, "the unit to end", lambda: self.poll() is not None)
        return self.poll()


class BootedMachine(Machine):
    def __init__(self, package, binary):
        super().__init__(package, binary)
        system = self.path("/etc/systemd/system")
        # Nothing of this machine's services: what a unit needs, and the journal.
        for name in os.listdir(system):
            if name.endswith((".wants", ".requires")):
                shutil.rmtree(f"{system}/{name}")
        for name in ("systemd-udevd.service", "console-getty.service", "systemd-networkd.service", "systemd-resolved.service"):
            path = f"{system}/{name}"
            if not os.path.lexists(path):
                os.symlink("/dev/null", path)
        with open(f"{system}/faults.target", "w") as file:
            file.write("[Unit]\nWants=systemd-journald.service\nAfter=systemd-journald.service\nAllowIsolate=yes\n")
        os.remove(self.path("/usr/sbin/policy-rc.d"))
        self.drop_in("watchdog", "WatchdogSec=5min")
        self.boot = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "sh", "-c", BOOT, self.tree],
            stdin=subprocess.DEVNULL, stdout=open(f"{self.work}/boot.log", "w"), stderr=subprocess.STDOUT)
        self.init = None
        self.until(30, "systemd to be the first process: " + open(f"{self.work}/boot.log").read(), self.find_init)
        self.until(60, "systemd to answer", lambda: "faults.target" in self.inside("systemctl", "list-units", check=False))
        self.since = time.time()

    def find_init(self):
        children = open(f"/proc/{self.boot.pid}/task/{self.boot.pid}/children").read().split()
        if children and os.readlink(f"/proc/{children[0]}/exe").endswith("/systemd"):
            self.init = children[0]
        return self.init

    def inside(self, *words, check=True):
        return self.run("nsenter", "-t", self.init, "-m", "-p", "-i", "-u", "-C", *words, check=check)

    def sh(self, command, check=True):
        if not getattr(self, "init", None):
            return super().sh(command, check)
        return self.inside("sh", "-c", command, check=check)

    def spoolship(self, *words):
        return self.inside("spoolship", *words, check=False)

    def property(self, name):
        return self.inside("systemctl", "show", "--property", name, "--value", "spoolship", check=False).strip()

    def drop_in(self, name, text):
        home = self.path("/etc/systemd/system/spoolship.service.d")
        os.makedirs(home, exist_ok=True)
        with open(f"{home}/{name}.conf", "w") as file:
            file.write(f"[Service]\n{text}\n")

    def writable(self, path):
        """What the unit's sandbox must let the agent write, as docs/operations.md says for a spool elsewhere."""
        self.drop_in("paths", f"ReadWritePaths={path}")
        self.inside("systemctl", "daemon-reload")

    def unit(self, text):
        """Settings of the unit until the next reset."""
        self.drop_in("fault", text)
        self.inside("systemctl", "daemon-reload")

    def limit_files(self, count):
        self.unit(f"LimitNOFILE={count}")

    def start(self, waits=True):
        self.inside("systemctl", "reset-failed", "spoolship", check=False)
        self.inside("systemctl", "start", *([] if waits else ["--no-block"]), "spoolship", check=False)
        self.processes["agent"] = Unit(self)
        if waits:
            self.until(30, "the agent: " + self.log(), lambda: self.fetch(f"{STATS}/healthz")[0] == 200)
        return self.processes["agent"]

    def stop(self):
        self.inside("sh", "-c", "kill -CONT $(systemctl show --property MainPID --value spoolship) 2>/dev/null; systemctl stop spoolship", check=False)
        self.processes.pop("agent", None)

    def end(self, name):
        if isinstance(self.processes.get(name), Unit):
            return self.stop()
        return super().end(name)

    def exits(self):
        if self.property("ActiveState") == "active":
            # Beside the unit's, as somebody would start it by hand.
            command = ["runuser", "-u", "spoolship", "--", "spoolship", "run"]
            return subprocess.run(["nsenter", "-t", self.init, "-m", "-p", "-i", "-u", "-C", *command], timeout=30,
                                  stdout=open(f"{self.work}/second.log", "a"), stderr=subprocess.STDOUT).returncode
        began = self.property("ExecMainStartTimestampMonotonic")
        self.start(waits=False)
        self.until(30, "an end of the agent", lambda: self.property("ExecMainStartTimestampMonotonic") != began
                   and self.property("ActiveState") != "active" and self.property("ExecMainStatus") != "0")
        return int(self.property("ExecMainStatus"))

    def log(self):
        text = self.inside("journalctl", "-u", "spoolship", "-o", "cat", "--no-pager", "-S", f"@{self.since:.3f}", check=False) if self.init else ""
        try:
            return text + open(f"{self.work}/second.log", errors="replace").read()
        except FileNotFoundError:
            return text

    def reset(self):
        super().reset()
        for name in ("paths", "fault"):
            if os.path.exists(path := self.path(f"/etc/systemd/system/spoolship.service.d/{name}.conf")):
                os.remove(path)
        self.inside("systemctl", "daemon-reload")
        if os.path.exists(f"{self.work}/second.log"):
            os.remove(f"{self.work}/second.log")
        self.since = time.time()

    def close(self):
        self.boot.kill()
        self.boot.wait()
        super().close()
