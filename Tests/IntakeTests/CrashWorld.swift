import EventLoops
import Events
import Frames
import Glibc
import Logs
import Model
import Queue
import TestKit

@testable import Intake
@testable import Spool

/// A machine with a spool, writers, an agent's reader and queue, and a destination, that crashes again and again; and what
/// must have become of every event.
final class CrashWorld {
    /// What was found to be wrong.
    struct Difference: Error, CustomStringConvertible {
        var description: String
    }

    /// An append file that a writer made, and what it holds.
    private struct Content {
        var lines: [(start: Int64, end: Int64, key: String)] = []
        var size: Int64 = 0
        /// All before it was synced by its writer.
        var synced: Int64 = 0
    }

    /// What runs between two crashes.
    private struct Machine {
        let store: QueueStore
        let reader: SpoolReader
    }

    private let directory: TemporaryDirectory
    private let readerLoop: EventLoop
    private let storeLoop: EventLoop
    private var random: SplitMix64
    private let cut: CrashDisk.Cut
    private let durability: Durability
    private let afterRead: SpoolOptions.AfterRead
    /// Whether events have ids, the app repeats some of them, and the agent looks for repeats.
    private let repeats: Bool
    private var machine: Machine?

    private var serial = 0
    /// Keys of events that must arrive.
    private var required: Set<String> = []
    /// Keys of events that must not arrive more than once each, unless they are here.
    private var repeatable: Set<String> = []
    private var written: Set<String> = []
    /// What each batch held that was sent.
    private var batches: [BatchID: [String]] = [:]
    private var contents: [UInt64: Content] = [:]
    /// Drop files that nobody synced, and their events.
    private var sloppy: [UInt64: [String]] = [:]
    /// What the cuts did.
    private(set) var effects = Effects()

    struct Effects {
        var undone = 0
        var shortened = 0
        var repeated = 0
        var events = 0
        var arrived = 0
        var quarantined = 0
        var discarded = 0

        static func += (left: inout Effects, right: Effects) {
            left.undone += right.undone
            left.shortened += right.shortened
            left.repeated += right.repeated
            left.events += right.events
            left.arrived += right.arrived
            left.quarantined += right.quarantined
            left.discarded += right.discarded
        }
    }
    /// Files that lost their tail in the last cut, and where it begins.
    private var shortened: [UInt64: Int64] = [:]
    /// Files that a cut has left with zeros right after a line.
    private var zeroed: Set<UInt64> = []
    private var writer: (descriptor: Int32, inode: UInt64)?
    private(set) var history: [String] = []
    let log = KeptLog()

    private var spool: String { "\(directory.path)/spool" }
    private var isStrict: Bool { cut == .process || durability == .powerLoss }

    init(seed: UInt64, _ cut: CrashDisk.Cut, _ durability: Durability, repeats: Bool = false) throws {
        self.repeats = repeats
        directory = try TemporaryDirectory(in: "/dev/shm")
        readerLoop = try EventLoop(name: "reader")
        storeLoop = try EventLoop(name: "store")
        random = SplitMix64(seed: seed)
        self.cut = cut
        self.durability = durability
        afterRead =
            switch random.next() % 4 {
            case 0: .keep
            case 1: .archive(directory: "archive", retention: nil)
            default: .delete
            }
        for name in ["spool", "spool/app", "spool/incoming", "spool/archive", "aside"] {
            mkdir("\(directory.path)/\(name)", 0o755)
        }
        CrashDisk.reset()
        try readerLoop.start()
        try storeLoop.start()
    }

    deinit {
        readerLoop.stop()
        storeLoop.stop()
    }

    // MARK: From crash to crash

    /// Boots, works, and crashes at some operation.
    func live() async throws {
        try await boot(freezingAfter: 1 + chance(chance(3) == 0 ? 30 : 250))
        var actions = 0
        while !CrashSpool.isFrozen, actions < 150 {
            try await act()
            actions += 1
        }
        CrashSpool.freeze()
        try await crash()
    }

    /// Boots for the last time: all must arrive now.
    func finish() async throws {
        try await boot(freezingAfter: Int.max / 2)
        // Bounded by rounds without progress, in each of which both loops have had a turn: a busy machine may take any time.
        var (last, rounds): (String?, Int) = (nil, 0)
        while true {
            while try await deliver() {}
            guard let waiting = waitsFor() else { break }
            (last, rounds) = waiting == last ? (last, rounds + 1) : (waiting, 0)
            guard rounds < 30_000 else { throw Difference(description: "waits for \(waiting)") }
            await pause(.milliseconds(2))
            await turn(of: readerLoop)
        }
        guard let machine else { return }
        await machine.reader.stop()
        // What the reader took between the last look and its stop, as a file that nobody had to wait for.
        while try await deliver() {}
        await machine.store.close()
        try verify(machine.store.snapshot)
        CrashSpool.cut(.process, seed: 0)
    }

    /// Ends without looking, because something was wrong.
    func abandon() async {
        CrashSpool.freeze()
        closeWriter()
        await machine?.reader.stop()
        await machine?.store.close()
        machine = nil
        CrashSpool.cut(.process, seed: 0)
    }

    private func verify(_ state: QueueSnapshot) throws {
        guard state.intake.balances, state.lanes.allSatisfy({ $0.ledger.balances }) else {
            throw Difference(
                description: "the ledger does not balance: \(state.lanes.map(\.ledger)) \(state.intake)")
        }
        var counts: [String: Int] = [:]
        for keys in batches.values { for key in keys { counts[key, default: 0] += 1 } }
        effects.events = written.count
        effects.arrived = counts.count
        effects.quarantined = state.intake.quarantined
        effects.repeated = counts.values.count { $0 > 1 }
        let foreign = counts.keys.filter { !written.contains($0) }
        guard foreign.isEmpty else { throw Difference(description: "never written: \(foreign.prefix(5))") }
        guard isStrict else { return }
        let repeated = counts.filter { $0.value > 1 && (repeats || !repeatable.contains($0.key)) }.keys
            .sorted()
        guard repeated.isEmpty else { throw Difference(description: "accepted twice: \(repeated.prefix(8))") }
        let accepted = state.lanes.reduce(0) { $0 + $1.ledger.accepted - $1.ledger.discarded }
        effects.discarded = state.lanes.reduce(0) { $0 + $1.ledger.discarded }
        let sent = batches.values.reduce(0) { $0 + $1.count }
        guard accepted == sent else {
            throw Difference(description: "\(accepted) were accepted, \(sent) were sent")
        }
    }

    private func boot(freezingAfter operations: Int) async throws {
        history.append("boot, \(operations) operations")
        CrashDisk.record()
        CrashSpool.begin(spool, aside: "\(directory.path)/aside", freezingAfter: operations)
        var options = QueueOptions(stateDirectory: "\(directory.path)/state", destinations: ["main"])
        options.vfs = CrashDisk.name
        options.durability = durability
        let store = try await openQueue(options)
        let restored = try await store.restore()
        findRepeatable(restored.checkpoints)
        var events = EventOptions()
        events.session.mode = .off
        let limits = ChunkLimits(batchEvents: 50, batchBytes: 1 << 20, cap: 10 << 20)
        var settings = IntakeSettings(
            events: events, routes: [Route(destinations: ["main"], compression: .none, chunks: limits)],
            table: RouteTable(standard: limits), cap: 10 << 20)
        if repeats { settings.repeats = RepeatSettings(window: .seconds(86_400), most: 100_000) }
        let intake = Intake(
            settings, store: store, memory: restored.memory, figures: IntakeFigures(),
            clock: ClockTrust { true },
            repeats: RepeatWindow(), on: readerLoop, time: SystemTime(), log: Log(log))
        var reading = SpoolOptions(directory: spool)
        reading.afterRead = afterRead
        reading.maxOpenFiles = 4
        reading.commitBytes = 1 + chance(2000)
        reading.linger = .milliseconds(1)
        reading.settleTime = .milliseconds(5)
        reading.secondTry = .milliseconds(20)
        reading.sealTime = .milliseconds(15)
        reading.giveUpTime = .milliseconds(20)
        reading.graceTime = .milliseconds(5)
        reading.syncInterval = .milliseconds(Int64(1 + chance(20)))
        let reader = try SpoolReader(
            reading, start: SpoolStart(checkpoints: restored.checkpoints, done: restored.done), sink: intake,
            on: readerLoop, log: Log(log))
        machine = Machine(store: store, reader: reader)
        await reader.start()
    }

    private func openQueue(_ options: QueueOptions) async throws -> QueueStore {
        for _ in 0..<1000 {
            do throws(QueueError) {
                return try QueueStore(options, on: storeLoop, time: SystemTime(), log: Log(log))
            } catch {
                guard error.code == .locked else { throw error }
            }
            // A child that another test starts has the lock's descriptor until it has become its program.
            await pause(.milliseconds(5))
        }
        throw Difference(description: "the state directory stays locked")
    }

    private func crash() async throws {
        history.append("crash")
        if let writer { close(writer.descriptor) }
        writer = nil
        await machine?.reader.stop()
        await machine?.store.close()
        machine = nil
        CrashDisk.cut(cut, after: CrashSpool.diskOperations, seed: random.next())
        effects.undone += CrashSpool.cut(cut, seed: random.next())
        let present = files()
        if cut == .power { for (inode, path) in present { shorten(inode, path) } }
        // What is there after a crash stays.
        sloppy = [:]
        for inode in contents.keys {
            guard present[inode] != nil, var content = contents[inode] else {
                contents[inode] = nil
                continue
            }
            content.synced = content.size
            for line in content.lines { required.insert(line.key) }
            contents[inode] = content
        }
    }

    /// A file's tail that was not synced is cut, or reads as zeros.
    private func shorten(_ inode: UInt64, _ path: String) {
        if let keys = sloppy[inode], chance(2) == 0 {
            var status = stat()
            guard stat(path, &status) == 0, status.st_size > 0 else { return }
            effects.shortened += 1
            // A file that stays and has changed is another file.
            if afterRead == .keep { repeatable.formUnion(keys) }
            truncate(path, Int(chance(Int(status.st_size))))
            if chance(2) == 0 { truncate(path, Int(status.st_size)) }
            return
        }
        guard var content = contents[inode], content.size > content.synced, chance(4) > 0 else { return }
        var place = content.synced + Int64(chance(Int(content.size - content.synced)))
        if chance(2) == 0 { place = content.lines.last { $0.end <= place }?.end ?? place }
        truncate(path, Int(place))
        zeroed.remove(inode)
        if chance(2) == 0 {
            truncate(path, Int(content.size))
            if content.lines.contains(where: { $0.end == place }) { zeroed.insert(inode) }
        } else {
            content.size = place
        }
        history.append("\(path.suffix(24)) ends at \(place)")
        shortened[inode] = place
        effects.shortened += 1
        repeatable.formUnion(content.lines.filter { $0.end > place }.map(\.key))
        content.lines.removeAll { $0.end > place }
        contents[inode] = content
    }

    /// Lines between the highest mark that is left and the lost tail may be read again: that is what is promised. Behind zeros that were
    /// skipped, as an earlier power cut leaves them, no mark proves anything.
    private func findRepeatable(_ checkpoints: [Checkpoint]) {
        for checkpoint in checkpoints {
            guard let trace = FileTrace(checkpoint.state), let place = shortened[trace.inode],
                checkpoint.offset > place
            else { continue }
            // Of what is left of less than the beginning that is known, nothing shows that it is the same file's.
            let isKnown = place >= trace.fingerprint.length
            let mark = isKnown ? trace.marks.last { $0.offset <= place && $0.sum != 0 }?.offset ?? 0 : 0
            let lines = contents[trace.inode]?.lines ?? []
            repeatable.formUnion(lines.filter { $0.start >= mark }.map(\.key))
        }
        shortened = [:]
    }

    // MARK: What writers and the destination do

    private func act() async throws {
        switch chance(20) {
        case 0...4: dropDurably()
        case 5...6: dropSloppily()
        case 7...11: append()
        case 12: sync()
        case 13: rotate()
        case 14: closeWriter()
        case 15...16: _ = try await deliver()
        default: await pause(.milliseconds(Int64(chance(6))))
        }
    }

    private func event() -> (key: String, text: String) {
        serial += 1
        // Most repeats come soon, some after a crash or two.
        let again = repeats && chance(3) == 0 ? max(1, serial - 1 - chance(chance(2) == 0 ? 5 : 100)) : serial
        let key = "k\(again)"
        written.insert(key)
        let padding = String(repeating: "x", count: chance(60))
        let id = repeats ? #""id":"\#(key)","# : ""
        return (key, #"{"name":"event",\#(id)"properties":{"key":"\#(key)","x":"\#(padding)"}}"#)
    }

    private func dropText() -> (keys: [String], text: String) {
        let events = (0...chance(4)).map { _ in event() }
        let text =
            events.count == 1 ? events[0].text : "[\n" + events.map(\.text).joined(separator: ",\n") + "]"
        return (events.map(\.key), text)
    }

    /// As the protocol says: once it returns, the file survives.
    private func dropDurably() {
        let (keys, text) = dropText()
        // Ids are an app's.
        let folder = ["app", "incoming"][repeats ? 0 : chance(2)]
        let bytes = Array(text.utf8)
        let name = try? bytes.withUnsafeBytes {
            try DropFileWriter.put($0, in: "\(spool)/\(folder)", using: &random)
        }
        history.append("drop \(keys) in \(folder): \(name ?? "failed")")
        if name != nil { required.formUnion(keys) }
    }

    /// Neither content nor name is synced.
    private func dropSloppily() {
        let (keys, text) = dropText()
        let name = "\(spool)/app/.\(serial).tmp"
        guard let inode = put(text, to: name, O_CREAT) else { return }
        CrashSpool.made(name)
        sloppy[inode] = keys
        let isDone = CrashSpool.rename(name, to: "\(spool)/app/\(serial).json")
        history.append("sloppy \(keys): \(isDone)")
        if isDone, cut == .process { required.formUnion(keys) }
    }

    private func put(_ text: String, to path: String, _ flags: Int32) -> UInt64? {
        let file = open(path, O_WRONLY | O_CLOEXEC | flags, 0o640)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard write(file, text, text.utf8.count) == text.utf8.count, fstat(file, &status) == 0 else {
            return nil
        }
        return UInt64(status.st_ino)
    }

    private func append() {
        guard let (descriptor, inode) = writer ?? openWriter(), !CrashSpool.isFrozen else { return }
        var content = contents[inode] ?? Content()
        for _ in 0...chance(6) {
            let (key, text) = event()
            let line = text + "\n"
            guard write(descriptor, line, line.utf8.count) == line.utf8.count else { return }
            content.lines.append((content.size, content.size + Int64(line.utf8.count), key))
            content.size += Int64(line.utf8.count)
            if cut == .process { required.insert(key) }
        }
        history.append("append to \(content.lines.last?.key ?? "")")
        contents[inode] = content
        if chance(3) == 0 { sync() }
    }

    private func openWriter() -> (descriptor: Int32, inode: UInt64)? {
        guard !CrashSpool.isFrozen else { return nil }
        let path = "\(spool)/app/x.jsonl"
        let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o660)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return nil }
        let inode = UInt64(status.st_ino)
        // The number of a file that is gone may have come back.
        if status.st_size == 0 { contents[inode] = nil }
        if contents[inode] == nil {
            CrashSpool.made(path)
            contents[inode] = Content(size: Int64(status.st_size), synced: Int64(status.st_size))
            guard syncFolder() else {
                close(descriptor)
                return nil
            }
        } else if status.st_size > 0 {
            // What a cut left of a line is the writer's; it begins a new one. After zeros it does not care.
            var last: UInt8 = 0
            pread(descriptor, &last, 1, Int(status.st_size) - 1)
            // After zeros from a line's end on it need not.
            if last != 0x0A, !zeroed.contains(inode), write(descriptor, "\n", 1) == 1 {
                contents[inode]?.size = Int64(status.st_size) + 1
            }
        }
        writer = (descriptor, inode)
        return writer
    }

    private func syncFolder() -> Bool {
        let folder = open("\(spool)/app", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(folder) }
        return fsync(folder) == 0
    }

    private func sync() {
        guard let writer, var content = contents[writer.inode], fsync(writer.descriptor) == 0 else { return }
        content.synced = content.size
        for line in content.lines { required.insert(line.key) }
        contents[writer.inode] = content
    }

    private func rotate() {
        guard writer != nil else { return }
        serial += 1
        let isDone = CrashSpool.rename("\(spool)/app/x.jsonl", to: "\(spool)/app/x.jsonl.\(serial)")
        history.append("rotate: \(isDone)")
        if chance(2) == 0 { append() }
        closeWriter()
    }

    private func closeWriter() {
        if let writer { close(writer.descriptor) }
        writer = nil
    }

    /// Sends a batch and has it acknowledged. False: there is none.
    private func deliver() async throws -> Bool {
        guard let store = machine?.store else { return false }
        let request = LeaseRequest(destination: "main", priority: .normal, maxEvents: 50, maxBytes: 1 << 20)
        guard let batch = try await store.leaseNext(request) else { return false }
        // What comes after the crash never happened.
        guard !CrashSpool.isFrozen else { return false }
        let decompressor = FrameDecompressor()
        var keys: [String] = []
        for part in batch.parts {
            let bytes = try decompressor.decompress(part.frame, part.compression, limit: part.bytes)
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")[part.events] {
                keys.append(line.firstMatch(of: /"key":"(k\d+)"/).map { String($0.1) } ?? "no key")
            }
        }
        if let known = batches[batch.header.id], known != keys {
            throw Difference(description: "batch \(batch.header.id) held \(known) and holds \(keys)")
        }
        batches[batch.header.id] = keys
        history.append("sent \(keys)")
        _ = try await store.settle(.acknowledged(batch.header))
        return true
    }

    // MARK: Looking

    /// The files of the spool, by inode number; the archive's not.
    private func files() -> [UInt64: String] {
        var found: [UInt64: String] = [:]
        for folder in ["app", "incoming"] {
            guard let stream = opendir("\(spool)/\(folder)") else { continue }
            defer { closedir(stream) }
            while let entry = readdir(stream) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != ".", name != ".." {
                    found[UInt64(entry.pointee.d_ino)] = "\(spool)/\(folder)/\(name)"
                }
            }
        }
        return found
    }

    /// What is not done yet; nil if all is.
    private func waitsFor() -> String? {
        guard let machine else { return "the agent" }
        var waiting: [String] = []
        let missing = required.subtracting(batches.values.joined())
        if !missing.isEmpty { waiting.append("events \(missing.sorted().prefix(8))") }
        for lane in machine.store.snapshot.lanes where lane.ledger.queued > 0 {
            waiting.append("\(lane.ledger.queued) queued events")
        }
        let figures = machine.reader.figures
        if figures.unreadBytes > 0 { waiting.append("\(figures.unreadBytes.value) unread bytes") }
        if figures.waitingDropFiles > 0 { waiting.append("\(figures.waitingDropFiles) drop files") }
        if !figures.secondTries.isEmpty { waiting.append("second tries \(figures.secondTries)") }
        if afterRead != .keep {
            let left = files().values.filter { $0.hasSuffix(".json") || $0.contains("/x.jsonl.") }
            if !left.isEmpty { waiting.append("files to go: \(left.sorted())") }
        }
        return waiting.isEmpty ? nil : waiting.joined(separator: ", ")
    }

    private func turn(of loop: EventLoop) async {
        await withCheckedContinuation { continuation in loop.post { continuation.resume() } }
    }

    private func chance(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    private func pause(_ wait: Duration) async {
        await withCheckedContinuation { continuation in
            storeLoop.post { [storeLoop] in storeLoop.after(wait) { continuation.resume() } }
        }
    }
}
