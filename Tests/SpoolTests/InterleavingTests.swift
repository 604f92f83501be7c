import Glibc
import Logs
import Model
import Spool
import TestKit
import Testing

/// Apps, rotation and an agent that is stopped and killed, all at random, against what a reader must see: every line
/// once, the lines of a writer in their order.
private final class World {
    /// Who has a file open and appends to it.
    struct Writer {
        var descriptor: Int32
        var name: String
        var serial: Int
        var lines = 0
        /// What was written of a line that has no LF yet.
        var partial = ""
    }

    struct Stuck: Error, CustomStringConvertible {
        var description: String
    }

    let spool: SpoolHarness
    var random: SplitMix64
    var reader: SpoolReader
    var writers: [Writer] = []
    /// Lines that must arrive.
    var expected: [String] = []
    var serial = 0
    var rotation = 0
    var history: [String] = []
    let afterRead: SpoolOptions.AfterRead
    /// Whether files are deleted while they are written to. Those whose descriptor is closed just then are gone, so the
    /// reader may have many open; where none is deleted it may have few.
    let isDeleting: Bool

    init(seed: UInt64) async throws {
        random = SplitMix64(seed: seed)
        spool = try SpoolHarness()
        afterRead = random.next() % 3 == 0 ? .keep : .delete
        isDeleting = random.next() % 2 == 0
        for folder in ["app", "old"] { spool.makeDirectory(folder) }
        reader = try await World.start(spool, afterRead, isDeleting, &random)
    }

    private static func start(
        _ spool: SpoolHarness, _ afterRead: SpoolOptions.AfterRead, _ isDeleting: Bool,
        _ random: inout SplitMix64
    ) async throws -> SpoolReader {
        let bytes = Int(random.next() % 4000) + 1
        let limit = isDeleting ? 100 : Int(random.next() % 4) + 1
        spool.queue.with { $0.room = bytes * 2 }
        return try await spool.start {
            $0.afterRead = afterRead
            $0.maxOpenFiles = limit
            $0.commitBytes = bytes
            $0.linger = .milliseconds(1)
            $0.settleTime = .milliseconds(20)
            $0.sealTime = .milliseconds(20)
            $0.giveUpTime = .milliseconds(10)
            $0.graceTime = .milliseconds(5)
            $0.secondTry = .milliseconds(30)
        }
    }

    func chance(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    func note(_ what: String) { history.append(what) }

    func step() async throws {
        switch chance(20) {
        case 0...6: await write()
        case 7: openWriter()
        case 8: closeWriter()
        case 9: try await rename()
        case 10: try await delete()
        case 11: try await truncate()
        case 12, 13: dropFile()
        case 14: try await restart()
        case 15: try await kill()
        case 16:
            note("full")
            spool.queue.with { $0.isFull = true }
        case 17:
            note("room")
            spool.queue.with { $0.isFull = false }
        default: await spool.pause(.milliseconds(Int64(chance(15))))
        }
    }

    private func openWriter() {
        guard writers.count < 5 else { return }
        let name = ["x.jsonl", "app/y.log", "app/z.ndjson"][chance(3)]
        // Two writers of one file would mix the pieces of their lines.
        guard !writers.contains(where: { $0.name == name }) else { return }
        let descriptor = open("\(spool.path)/\(name)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o660)
        guard descriptor >= 0 else { return }
        serial += 1
        note("open \(name) as \(serial)")
        writers.append(Writer(descriptor: descriptor, name: name, serial: serial))
    }

    private func line(_ index: Int) -> String {
        writers[index].lines += 1
        return "writer \(writers[index].serial) line \(writers[index].lines) "
            + String(repeating: "-", count: chance(chance(20) == 0 ? 2000 : 40))
    }

    private func put(_ index: Int, _ text: String) {
        #expect(Glibc.write(writers[index].descriptor, text, text.utf8.count) == text.utf8.count)
    }

    private func write() async {
        if writers.isEmpty { return openWriter() }
        let index = chance(writers.count)
        if chance(3) == 0, writers[index].partial.isEmpty {
            let partial = line(index)
            note("partial \(writers[index].serial)")
            writers[index].partial = partial
            return put(index, partial)
        }
        if !writers[index].partial.isEmpty {
            expected.append(writers[index].partial)
            writers[index].partial = ""
            put(index, "\n")
        }
        var text = ""
        for _ in 0...chance(chance(8) == 0 ? 200 : 4) {
            let line = line(index)
            expected.append(line)
            text += line + "\n"
        }
        note("write \(writers[index].serial) to \(writers[index].lines)")
        put(index, text)
    }

    private func closeWriter() {
        guard !writers.isEmpty else { return }
        let writer = writers.remove(at: chance(writers.count))
        note("close \(writer.serial)")
        // Whoever opens the file next would go on in the middle of the line.
        if !writer.partial.isEmpty {
            expected.append(writer.partial)
            #expect(Glibc.write(writer.descriptor, "\n", 1) == 1)
        }
        close(writer.descriptor)
    }

    private func rename() async throws {
        guard !writers.isEmpty else { return }
        let index = chance(writers.count)
        rotation += 1
        let old = writers[index].name
        guard !old.hasSuffix(".gone"), access("\(spool.path)/\(old)", F_OK) == 0 else { return }
        let base = old.split(separator: "/").last.map(String.init) ?? old
        let new = [
            "\(old).\(rotation)", "old/\(base).\(rotation)", "\(old)-2026\(rotation + 1000)",
            "old/.\(base).\(rotation)",
        ][chance(4)]
        if new.contains("/."), writers[index].partial.isEmpty {
            // Under a name that says nothing a file is known only once something of it was read.
            let line = line(index)
            expected.append(line)
            put(index, line + "\n")
            try await allArrive("before a hidden name")
        } else if new.contains("/.") {
            return
        }
        // It may have been removed and made again meanwhile: then another file is renamed, which is as good.
        note("rename \(old) to \(new)")
        guard Glibc.rename("\(spool.path)/\(old)", "\(spool.path)/\(new)") == 0 else { return }
        // The writer goes on in the renamed file for a while; a hidden one is known by its descriptor only.
        writers[index].name = new + ".gone"
    }

    /// Deletes a file that was read, while its writer goes on in it.
    private func delete() async throws {
        guard isDeleting, !writers.isEmpty else { return }
        let index = chance(writers.count)
        guard !writers[index].name.hasSuffix(".gone"), writers[index].partial.isEmpty else { return }
        // A reader cannot read a file that is gone before it has ever seen it; so it has a line, and that has arrived.
        let line = line(index)
        expected.append(line)
        put(index, line + "\n")
        try await allArrive("before deletion")
        let path = "\(spool.path)/\(writers[index].name)"
        var own = stat()
        var named = stat()
        guard fstat(writers[index].descriptor, &own) == 0, stat(path, &named) == 0, own.st_ino == named.st_ino
        else { return }
        note("delete \(writers[index].serial)")
        unlink(path)
        writers[index].name += ".gone"
        let last = self.line(index)
        expected.append(last)
        put(index, last + (chance(2) == 0 ? "\n" : ""))
        close(writers.remove(at: index).descriptor)
        // What is written into a deleted file must be read before the agent stops.
        try await allArrive("after deletion")
    }

    /// Empties a file of which all was read, as copy-and-truncate does.
    private func truncate() async throws {
        guard !writers.isEmpty, !spool.queue.with({ $0.isFull }) else { return }
        let index = chance(writers.count)
        guard writers[index].partial.isEmpty else { return }
        try await allArrive("before truncation")
        note("truncate \(writers[index].serial)")
        ftruncate(writers[index].descriptor, 0)
        if chance(2) == 0 { await write() }
    }

    private func dropFile() {
        serial += 1
        let count = chance(4) + 1
        let events = (0..<count).map { "{\"file\":\(serial),\"event\":\($0)}" }
        expected += events
        let text = count == 1 ? events[0] : "[\n" + events.joined(separator: ",\n") + "\n]"
        let folder = ["", "app/"][chance(2)]
        let name = chance(2) == 0 ? "same.json" : "\(serial).json"
        switch chance(3) {
        case 0 where name != "same.json":
            note("drop file \(serial) in place")
            spool.write(text, to: folder + name)
        default:
            // Over a file of the same name, which may not have been read: that one is then gone by its writer's will.
            let isFree = access("\(spool.path)/\(folder)\(name)", F_OK) != 0
            let target = isFree ? name : "\(serial).json"
            note("drop file \(serial) as \(target)")
            spool.write(text, to: "\(folder).\(serial)")
            spool.rename("\(folder).\(serial)", to: folder + target)
        }
    }

    private func restart() async throws {
        note("restart")
        spool.queue.with { $0.isFull = false }
        // A deleted file's last lines are read before (`delete` waits for them).
        await reader.stop()
        reader = try await World.start(spool, afterRead, isDeleting, &random)
    }

    /// The process dies: what is not committed by now never is.
    private func kill() async throws {
        note("kill")
        spool.queue.with {
            $0.failsAfter = $0.commits
            $0.isFull = false
        }
        await reader.stop()
        spool.queue.with { $0.failsAfter = nil }
        reader = try await World.start(spool, afterRead, isDeleting, &random)
    }

    func allArrive(_ when: String) async throws {
        spool.queue.with { $0.isFull = false }
        let count = expected.count
        if await !spool.holds(within: .seconds(30), { spool.queue.lines.count >= count }) {
            throw Stuck(description: "stuck \(when)")
        }
    }

    func finish() async throws {
        while !writers.isEmpty { closeWriter() }
        try await allArrive("at the end")
        // Time enough for what would arrive twice.
        await spool.pause(.milliseconds(150))
        await reader.stop()
    }

    /// What is wrong; nil if all is well.
    func verdict() -> String? {
        let lines = spool.queue.lines
        var counts: [String: Int] = [:]
        for line in lines { counts[line, default: 0] += 1 }
        let missing = expected.filter { counts[$0] == nil }
        let repeated = counts.filter { $0.value > 1 }.keys
        let foreign = Set(lines).subtracting(expected)
        func short(_ lines: some Sequence<String>) -> [String] {
            lines.prefix(5).map { String($0.prefix(40)) }
        }
        if !missing.isEmpty { return "missing \(short(missing))" }
        if !repeated.isEmpty { return "repeated \(short(repeated))" }
        if !foreign.isEmpty { return "never written \(short(foreign))" }
        var last: [Substring: Int] = [:]
        for line in lines where line.hasPrefix("writer") {
            let parts = line.split(separator: " ")
            let number = Int(parts[3]) ?? 0
            if let before = last[parts[1]], before > number { return "out of order: \(line.prefix(40))" }
            last[parts[1]] = number
        }
        let quarantined = spool.queue.quarantined
        return quarantined.isEmpty ? nil : "quarantined \(quarantined.map { "\($0.path): \($0.detail)" })"
    }
}

@Suite("Interleavings", .timeLimit(.minutes(5)))
struct InterleavingTests {
    @Test("through any writes, rotations, restarts and kills every line arrives once and in order")
    func everyLineArrivesOnce() async throws {
        let rounds = getenv("SPOOL_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 20
        for seed in Seeds.list(1...UInt64(max(1, rounds))) {
            let world = try await World(seed: seed)
            var stuck = ""
            do {
                for _ in 0..<120 { try await world.step() }
                try await world.finish()
            } catch let error as World.Stuck {
                stuck = "\(error); "
            }
            if let wrong = world.verdict() ?? (stuck.isEmpty ? nil : "it went on later") {
                let log = world.spool.log.messages.suffix(20).map { "\($0.text) \($0.fields)" }
                Issue.record(
                    """
                    \(Seeds.again(seed)): \(stuck)\(wrong); \(world.history.joined(separator: ", "))
                    log: \(log.joined(separator: "\n"))
                    files: \(world.spool.names()) \(world.spool.names(in: "app")) \(world.spool.names(in: "old"))
                    """)
                return
            }
        }
    }
}
