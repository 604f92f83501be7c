internal import Control
internal import EventLoops
internal import Glibc
internal import Logs
internal import Synchronization

/// What ended the last run of an agent on this state directory, if it did not stop by itself.
///
/// The file `running` in the state directory says that an agent runs: it is made at the start and removed at
/// the end. A start that finds it follows a kill, a crash or a power cut. Without it, an agent that the
/// kernel ends again and again for lack of memory leaves no trace but in the kernel's log.
final class LastRun: Sendable {
    /// How the run ended.
    enum End: Equatable {
        /// The machine went down with the agent running.
        case machine
        /// The kernel ended this many processes of a group for lack of memory while the agent ran.
        case memory(processes: Int, group: String, limit: Int?)
        /// A signal such as SIGKILL, or a fault of the program.
        case unknown
    }

    /// Content of the file: the boot in which the agent ran, and the group's count at its start.
    struct Mark: Equatable {
        /// `/proc/sys/kernel/random/boot_id`, see random(4): new at each boot, unlike the time of boot, which
        /// moves with the clock.
        var boot: String
        /// The control group and its count of killed processes; nil if the kernel does not count.
        var group: MemoryGroup?

        init(boot: String, group: MemoryGroup?) {
            self.boot = boot
            self.group = group
        }

        /// Reads a mark: `BOOT [GROUP KILLED]`. Names of groups have no spaces: systemd escapes them.
        init?(_ text: String) {
            let words = text.split { $0 == " " || $0 == "\n" }
            guard let first = words.first else { return nil }
            boot = String(first)
            group = nil
            if words.count == 3, let killed = Int(words[2]) {
                group = MemoryGroup(name: String(words[1]), killed: killed, limit: nil)
            }
        }

        /// The mark as its file has it, the form that `init(_:)` reads.
        var text: String {
            let count = group.map { " \($0.name) \($0.killed)" } ?? ""
            return "\(boot)\(count)\n"
        }

        /// What ended a run that left this mark, judged by a mark of now.
        func end(seenBy now: Mark) -> End {
            guard boot == now.boot else { return .machine }
            guard let before = group, let group = now.group, group.name == before.name,
                group.killed > before.killed
            else { return .unknown }
            return .memory(
                processes: group.killed - before.killed, group: group.name, limit: group.limit)
        }
    }

    /// The file `running`: made at the start, removed by an orderly stop. If it is there at a start, the run
    /// before it did not stop by itself.
    private let path: String
    /// The mark of this run.
    private let now: Mark
    /// The end of the last run; nil if it was orderly, or not looked at yet. `status` reads it on other
    /// threads.
    private let found = Mutex<End?>(nil)

    /// - Parameter root: a directory in place of `/`, for tests.
    init(in stateDirectory: String, root: String = "") {
        path = "\(stateDirectory)/running"
        let boot = try? WholeFile.bytes(of: "\(root)/proc/sys/kernel/random/boot_id", atMost: 64)
        let text = boot.flatMap { $0 }.map { String(decoding: $0, as: UTF8.self).prefix { !$0.isWhitespace } }
        now = Mark(boot: text.map(String.init) ?? "unknown", group: MemoryGroup(root: root))
    }

    /// Looks what ended the last run, says so in the log, and marks this one as running. Only while the state
    /// directory is locked: another agent's mark would be taken for a crash.
    func begin(_ log: Log) {
        let old = try? WholeFile.bytes(of: path, atMost: 4_096)
        let mark = old.flatMap { $0 }.flatMap { Mark(String(decoding: $0, as: UTF8.self)) }
        let end = mark?.end(seenBy: now)
        found.withLock { $0 = end }
        switch end {
        case nil: break
        case .machine:
            log.info("the agent did not stop by itself: the machine went down while it ran")
        case .memory(let processes, let group, let limit):
            log.warning(
                "the agent did not stop by itself: the kernel ended processes for lack of memory",
                [
                    "processes": processes, "group": group,
                    "limit": limit.map { HumanText.bytes($0) } ?? "none",
                    "hint": LastRun.memoryHint,
                ])
        case .unknown:
            log.warning(
                "the agent did not stop by itself: it was killed, or ended by a fault",
                ["hint": "`journalctl -u spoolship` and `journalctl -k` around its end say more"])
        }
        do throws(SystemError) {
            // After a power cut the mark of an earlier run serves as well.
            try WholeFile.replace(path, with: Array(now.text.utf8), mode: 0o600, isDurable: false)
        } catch {
            log.warning("a crash of this run will not be noticed", ["path": path, "reason": "\(error)"])
        }
    }

    /// Removes the mark: the agent has stopped by itself.
    func end() { unlink(path) }

    /// What a person should fix, for `status`: empty unless the last run was ended for lack of memory.
    var complaints: [String] {
        guard case .memory(let processes, let group, let limit) = found.withLock({ $0 }) else { return [] }
        let noun = processes == 1 ? "process" : "processes"
        let most = limit.map { ", its limit is \(HumanText.bytes($0))" } ?? ""
        return [
            "the last run did not stop by itself: the kernel ended \(processes) \(noun) of \(group)"
                + " for lack of memory meanwhile\(most); \(LastRun.memoryHint)"
        ]
    }

    private static let memoryHint =
        "`journalctl -k` names the process; raise MemoryMax= of the unit, or see what else needs memory"
}
