import EventLoops
import Model
@testable import Spool
import TestKit

/// Writers whose files are rotated in every way, an agent that is stalled, stopped and killed, all at random, without a disk or a clock:
/// each line that was not destroyed must arrive, and none twice.
final class ModelWorld {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Who writes to a file and has it rotated; what rotation does comes step by step, and others do something in between.
    private struct Writer {
        var path: String
        var mode: Mode
        var header: [UInt8]
        /// Whether all of its lines are of one length and end alike, and whoever truncates it begins it with the header again.
        var isUniform: Bool
        /// How `cutAndRotated` rotates: 0 copies, 1 copies and packs, 2 renames and packs.
        var way: Int
        var file: ModelFile?
        var rotations = 0
        var steps: [(ModelWorld, inout Writer) -> Void] = []
        /// The rest of a line of which the beginning was written.
        var rest: [UInt8] = []
        /// The copy after which it is truncated.
        var copy: ModelFile?
        /// When it counts as made.
        var due = BootInstant(nanoseconds: 0)
        /// What may come twice if it is not made by then.
        var allowed = 0
    }

    enum Mode {
        case rename, compress, delayedCompress, copyTruncate, shiftedCopy, copyOver, copyCompress, chain,
            dated,
            logback, cut, delete, emptied
        /// The file is cut in the middle and written to behind the cut, before it is copied or packed.
        case cutAndRotated

        static let common: [Mode] = [
            .rename, .compress, .delayedCompress, .copyTruncate, .shiftedCopy, .copyOver, .copyCompress,
            .chain, .dated, .logback, .cut, .delete, .emptied,
        ]
    }

    let disk = ModelDisk()
    let time = ManualTime()
    private(set) var random: SplitMix64
    private var writers: [Writer] = []
    private(set) var agent: ModelAgent
    private let isPolled: Bool
    /// Whether the queue has no room: no commit ends, and with two of them under way nothing is read.
    private var isQueueFull = false
    /// Whether what was cut off may count as given up although it comes: a copy paused for longer than it is waited for, and so is another
    /// file; or what was cut off unread was put back, and nobody knows that it is the same.
    private var mayCount = false
    /// Whether nothing more happens but what was begun.
    private var isEnding = false
    private var lineCount = 0
    private(set) var steps = 0
    /// What the last steps were.
    private(set) var history: [String] = []
    let isTelling: Bool

    init(seed: UInt64, isTelling: Bool = false) {
        random = SplitMix64(seed: seed)
        self.isTelling = isTelling
        isPolled = random.next() % 3 == 0
        let queue = ModelQueue()
        agent = ModelAgent(disk, queue, time, isPolling: isPolled, seed: random.next())
        disk.isDurable = { queue.lines[$0] != nil }
        disk.isUnknowable = { [unowned self] line in
            writers.contains { unknowableCopy(of: $0)?.lines().contains(line) ?? false }
        }
        let long = [UInt8](repeating: UInt8(ascii: "="), count: 1200)
        let headers: [[UInt8]] = [[], [], Array("start\n".utf8), long, long + [0x0A]]
        // Drawn apart: the worlds of all other seeds stay what they were.
        var cuts = SplitMix64(seed: ~seed)
        for number in 0..<(1 + chance(3)) {
            let mode = Mode.common[chance(Mode.common.count)]
            // Copies of such files are not to be told from each other.
            let isUniform = [.cut, .emptied].contains(mode) && chance(2) == 0
            let isCut = cuts.next() % 6 == 0
            let header = headers[chance(5)]
            // A whole line that all contents begin with, and that is longer than a fingerprint, has a place that
            // proves nothing: a content that is gone unread is taken for a short copy of a longer one.
            let isKnown = isCut && header.count > Fingerprint.longest && header.last == 0x0A
            writers.append(
                Writer(
                    path: "a/f\(number).log", mode: isCut ? .cutAndRotated : mode,
                    header: isKnown ? [] : header, isUniform: isUniform && !isCut,
                    way: Int(cuts.next() % 3)))
        }
        listen()
    }

    func chance(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    func note(_ what: @autoclosure () -> String) {
        if isTelling { history.append("\(steps): \(what())") }
    }

    /// A step of somebody.
    func step() throws {
        steps += 1
        switch chance(16) {
        case 0...4: write()
        case 5...6: rotate()
        case 7: time.advance(by: .milliseconds(Int64([10, 100, 500, 1100][chance(4)])))
        case 8 where chance(40) == 0: try restart()
        case 9 where chance(60) == 0: stepClock()
        case 10 where chance(isQueueFull ? 20 : 80) == 0:
            isQueueFull.toggle()
            note(isQueueFull ? "the queue is full" : "the queue has room")
        default: try agentStep()
        }
    }

    private func agentStep() throws {
        switch chance(8) {
        case 0: try agent.look(all: isPolled && chance(3) == 0, changes: isPolled ? 0 : 1 + chance(8))
        case 1: agent.beginCommit()
        case 2 where !isQueueFull: try agent.endCommit()
        case 3: agent.checkSome()
        case _ where isQueueFull && agent.commits.count == 2: break
        default: try agent.read()
        }
    }

    /// The time of day is set, by hand or by NTP; the clock for waits goes on. Nothing is forgotten for that alone.
    private func stepClock() {
        let step = Duration.seconds([-172_800, -3600, -2, 2, 3600, 172_800][chance(6)])
        note("step the clock by \(step)")
        time.step(to: time.wallTime + step)
    }

    private func restart() throws {
        // What an agent has noticed of a file whose lines end alike, and not made durable, the next one may not notice.
        guard !writers.contains(where: { $0.isUniform && agent.isCut($0.path) }) else { return }
        if chance(2) == 0 || writers.contains(where: \.isUniform) {
            note("stop")
            // All that it knows is durable then.
            while !agent.commits.isEmpty { try agent.endCommit() }
            agent.streams.noteUnread(in: &agent.pass)
            agent.beginCommit()
            try agent.endCommit()
        } else {
            note("kill")
        }
        agent = ModelAgent(disk, agent.queue, time, isPolling: isPolled, seed: random.next())
        disk.forgetChanges()
        listen()
        for writer in writers where writer.isUniform {
            agent.notice(writer.path)
            if let file = disk.names[writer.path] { agent.notice(shorter: file) }
        }
    }

    private func listen() {
        if isTelling { agent.tell = { [unowned self] in note("  " + $0) } }
    }

    // MARK: Writers

    private func line(of writer: Writer) -> [UInt8] {
        lineCount += 1
        if writer.isUniform {
            let number = "\(lineCount)"
            let zeros = String(repeating: "0", count: 6 - number.utf8.count)
            return Array("\(zeros)\(number):\(String(repeating: "x", count: 260)).\n".utf8)
        }
        let padding = [0, 0, 5, 30, 200][chance(5)]
        return Array("\(lineCount):\(String(repeating: "x", count: padding)).\n".utf8)
    }

    private func open(_ writer: inout Writer) -> ModelFile {
        if let file = writer.file { return file }
        let file = disk.create(writer.path)
        file.writers += 1
        writer.file = file
        if file.bytes.isEmpty, !writer.header.isEmpty {
            disk.append(writer.header + line(of: writer), to: file)
        }
        return file
    }

    private func close(_ writer: inout Writer) {
        if !writer.rest.isEmpty, let file = writer.file { disk.append(writer.rest, to: file) }
        writer.rest = []
        writer.file?.writers -= 1
        writer.file = nil
    }

    private func write() {
        let index = chance(writers.count)
        let file = open(&writers[index])
        var bytes = writers[index].rest
        writers[index].rest = []
        for _ in 0...chance(chance(6) == 0 ? 40 : 3) { bytes += line(of: writers[index]) }
        if chance(6) == 0, let last = bytes.dropLast().lastIndex(of: 0x0A) {
            let cut = last + 1 + chance(bytes.count - last - 1)
            writers[index].rest = Array(bytes[cut...])
            bytes.removeLast(bytes.count - cut)
        }
        note("write \(bytes.count) to \(file.path ?? "a deleted file")")
        disk.append(bytes, to: file)
    }

    private func rotate() {
        let index = chance(writers.count)
        guard writers[index].steps.isEmpty else {
            let step = writers[index].steps.removeFirst()
            return step(self, &writers[index])
        }
        guard chance(6) == 0, disk.names[writers[index].path] != nil else { return }
        writers[index].rotations += 1
        note("rotate \(writers[index].path) by \(writers[index].mode)")
        plan(&writers[index])
    }

    private func copy(_ from: String, to: String) -> [(ModelWorld, inout Writer) -> Void] {
        let part: (ModelWorld, inout Writer) -> Void = { world, writer in
            // Over a copy that was not looked at for long no other is made, nor over one that is empty.
            guard let source = world.disk.names[from], !world.agent.isUnread(to) else {
                return writer.steps = []
            }
            let copy = world.disk.create(to)
            world.disk.truncate(copy)
            world.note("begin a copy of \(from) to \(to)")
            world.disk.append(Array(source.bytes.prefix(world.chance(source.bytes.count + 1))), to: copy)
            copy.writers += 1
            writer.copy = copy
            // For the rest of a copy nobody waits for ever (ten seconds, and the copy before it may have been seen for one of them),
            // and of one that is shorter than a fingerprint not long.
            let patience = Duration.seconds(copy.bytes.count < Fingerprint.longest ? 1 : 9)
            writer.due = world.time.bootTime + patience
            writer.allowed = world.disk.allow(source.lines(), from: writer.due)
        }
        let rest: (ModelWorld, inout Writer) -> Void = { world, writer in
            guard let copy = world.disk.names[to] else { return }
            copy.writers -= 1
            let isInTime = world.time.bootTime < writer.due
            if isInTime { world.disk.forbid(writer.allowed) }
            world.mayCount = world.mayCount || !isInTime
            defer { if !isInTime { _ = world.disk.allow(copy.lines(), from: .init(nanoseconds: 0)) } }
            guard let source = world.disk.names[from], source.bytes.count >= copy.bytes.count else { return }
            world.note("end the copy of \(from) to \(to)")
            world.disk.append(Array(source.bytes[copy.bytes.count...]), to: copy)
        }
        return [part, rest]
    }

    private func pack(_ path: String) -> [(ModelWorld, inout Writer) -> Void] {
        let made: (ModelWorld, inout Writer) -> Void = { world, _ in
            guard let source = world.disk.names[path], world.disk.names[path + ".gz"] == nil else { return }
            world.note("pack \(path)")
            let packed = world.disk.create(path + ".gz")
            world.disk.append(source.bytes, to: packed)
        }
        let gone: (ModelWorld, inout Writer) -> Void = { world, _ in
            // As gzip does: what was written to it meanwhile is gone as well.
            if world.disk.names[path + ".gz"] != nil { world.disk.delete(path) }
        }
        return [made, gone]
    }

    private func move(_ from: String, to: String, closing: Bool = true) -> (ModelWorld, inout Writer) -> Void
    {
        { world, writer in
            world.note("rename \(from) to \(to)")
            if closing { world.close(&writer) }
            world.disk.rename(from, to: to)
        }
    }

    private func truncated() -> (ModelWorld, inout Writer) -> Void {
        { world, writer in
            guard let file = world.disk.names[writer.path] else { return }
            world.note("truncate \(writer.path)")
            // The rest of a line that is cut in two belongs to no line.
            if !writer.rest.isEmpty { world.disk.append(writer.rest, to: file) }
            writer.rest = []
            if let copy = world.unknowableCopy(of: writer) {
                _ = world.disk.allow(copy.lines(), from: .init(nanoseconds: 0))
            }
            writer.copy = nil
            world.disk.truncate(file)
            guard writer.isUniform else { return }
            world.agent.notice(shorter: file)
            world.disk.append(writer.header + world.line(of: writer), to: file)
        }
    }

    /// Cuts a file at the end of a line. Its writer may go on at once, until the file is longer than before:
    /// then a reader that did not look in between sees a file that has grown, with other bytes in it.
    private func cutInTheMiddle() -> (ModelWorld, inout Writer) -> Void {
        { world, writer in
            guard writer.rest.isEmpty, let file = world.disk.names[writer.path] else { return }
            let length = file.bytes.count
            // An archive of less than a fingerprint is not known by it.
            let ends = file.bytes.indices.filter { $0 >= Fingerprint.longest && file.bytes[$0] == 0x0A }
            guard !ends.isEmpty else { return }
            let end = ends[world.chance(ends.count)] + 1
            world.note("cut \(writer.path) to \(end) of \(length)")
            // A length that was seen before the cut may be looked for in a copy that was made after it.
            world.mayCount = true
            // In the file reading goes back to the last mark. But a copy that does not have the place that was
            // read may be another program's that begins in the same way, and is read whole.
            _ = world.disk.allow(file.lines(to: end), from: .init(nanoseconds: 0))
            world.disk.truncate(file, to: end)
            guard world.chance(3) == 0 else { return }
            var bytes: [UInt8] = []
            while end + bytes.count <= length { bytes += world.line(of: writer) }
            world.note("write \(bytes.count) behind the cut")
            world.disk.append(bytes, to: file)
        }
    }

    /// Waits until reading has gone back behind the cut, also after a kill: a copy that is made before and is
    /// shorter than what was read cannot be told from one that was made before the cut.
    private func readAfterCut() -> (ModelWorld, inout Writer) -> Void {
        { world, writer in
            guard let file = world.disk.names[writer.path], !world.agent.isWithin(file) else { return }
            writer.steps = world.isEnding ? [] : [world.readAfterCut()] + writer.steps
        }
    }

    /// The copy of a file that was written to since, if it cannot be told from a new file: it may come twice.
    private func unknowableCopy(of writer: Writer) -> ModelFile? {
        guard let copy = writer.copy, let file = disk.names[writer.path], copy.bytes.count < file.bytes.count,
            !agent.canKnow(file, copyOf: copy.bytes.count)
        else { return nil }
        return copy
    }

    private func shift(_ path: String, _ last: Int = 6) -> (ModelWorld, inout Writer) -> Void {
        { world, _ in
            for number in stride(from: last, to: 0, by: -1) {
                if world.disk.names["\(path).\(number)"] != nil {
                    world.disk.rename("\(path).\(number)", to: "\(path).\(number + 1)")
                }
            }
        }
    }

    private func plan(_ writer: inout Writer) {
        let (path, number) = (writer.path, writer.rotations)
        let closed: (ModelWorld, inout Writer) -> Void = { $0.close(&$1) }
        switch writer.mode {
        case .rename:
            writer.steps = [move(path, to: "\(path).\(number)", closing: false), { _, _ in }, closed]
        case .compress:
            writer.steps =
                [move(path, to: "\(path).\(number)")] + pack("\(path).\(number)") + [
                    // As `rotate 2` does.
                    { world, _ in world.disk.delete("\(path).\(number - 2).gz") }
                ]
        case .delayedCompress:
            writer.steps = [move(path, to: "\(path).\(number)")] + pack("\(path).\(number - 1)")
        case .copyTruncate: writer.steps = copy(path, to: "\(path).\(number)") + [truncated()]
        case .shiftedCopy: writer.steps = [shift(path)] + copy(path, to: "\(path).1") + [truncated()]
        case .copyOver: writer.steps = copy(path, to: "\(path).1") + [truncated()]
        case .copyCompress:
            writer.steps = copy(path, to: "\(path).\(number)") + [truncated()] + pack("\(path).\(number)")
        case .chain: writer.steps = [closed, shift(path), move(path, to: "\(path).1")]
        case .dated: writer.steps = [move(path, to: "a/old/\(path.dropFirst(2))-20261122\(100 + number)")]
        case .logback:
            let stem = path.dropLast(4)
            let packed = "\(stem)-2026-11-23-\(number).log"
            writer.steps =
                [move(path, to: "\(packed)123.tmp")] + [
                    { world, _ in
                        guard let source = world.disk.names["\(packed)123.tmp"] else { return }
                        world.disk.append(source.bytes, to: world.disk.create("\(packed).gz"))
                    }, { world, _ in world.disk.delete("\(packed)123.tmp") },
                ]
        case .cut:
            var (tail, end, mark, since): ([UInt8], Int, Int, BootInstant?) = ([], 0, 0, nil)
            var isCut = false
            writer.steps = [
                { world, writer in
                    // To where a line ends.
                    guard writer.rest.isEmpty, let file = world.disk.names[writer.path] else { return }
                    let ends = file.bytes.indices.filter { file.bytes[$0] == 0x0A }
                    guard !ends.isEmpty else { return }
                    end = ends[world.chance(ends.count)] + 1
                    mark = world.agent.mark(in: file, below: end)
                    (tail, since) = (Array(file.bytes[end...]), world.time.bootTime)
                    world.note("cut \(writer.path) to \(end), where \(mark) is left")
                    // What is put back soon is what it was, if a mark was left; else lines that were read are read again.
                    // Of a file that is cut again it is not waited again.
                    isCut = world.agent.isCut(writer.path)
                    let isOpen = mark == 0 || isCut
                    let due = world.time.bootTime + (isOpen ? .zero : .seconds(1))
                    file.cut = world.disk.allow(file.lines(from: mark), from: due)
                    world.disk.truncate(file, to: end)
                    if writer.isUniform { world.agent.notice(shorter: file) }
                },
                { world, writer in
                    guard let file = world.disk.names[writer.path], let since, file.bytes.count >= end else {
                        return
                    }
                    guard world.chance(2) == 0, file.bytes.count == end else { return }
                    world.note("put back")
                    world.mayCount = true
                    if !isCut, mark > 0, world.time.bootTime - since < .seconds(1), let cut = file.cut {
                        world.disk.forbid(cut)
                    }
                    file.cut = nil
                    world.disk.append(tail, to: file)
                },
            ]
        case .emptied: writer.steps = [truncated()]
        case .cutAndRotated:
            let target = "\(path).\(number)"
            let copied = [readAfterCut()] + copy(path, to: target) + [truncated()]
            let rotations = [copied, copied + pack(target), [move(path, to: target)] + pack(target)]
            writer.steps = [cutInTheMiddle()] + rotations[writer.way]
        case .delete: writer.steps = [closed, { world, writer in world.disk.delete(writer.path) }]
        }
    }

    // MARK: The end

    /// Nothing more is written: after a while all is read, and what was given up was lost.
    func end() throws {
        isQueueFull = false
        isEnding = true
        for index in writers.indices {
            while !writers[index].steps.isEmpty { writers[index].steps.removeFirst()(self, &writers[index]) }
            close(&writers[index])
        }
        for _ in 0..<60 { try settle() }
        let missing = (1...max(1, lineCount)).filter {
            agent.queue.lines[$0] == nil && !disk.destroyed.contains($0) && lineCount > 0
        }
        guard missing.isEmpty else {
            throw Failure(description: "lost: \(missing.prefix(5)) of \(lineCount) lines")
        }
        let givenUp = agent.queue.givenUp
        guard
            givenUp <= disk.tornBytes || mayCount
                || disk.destroyed.contains(where: { agent.queue.lines[$0] == nil })
        else {
            throw Failure(description: "\(givenUp) bytes were given up, and no line was lost")
        }
        try forget()
    }

    /// A second in which the agent does all that it can.
    private func settle() throws {
        time.advance(by: .milliseconds(1000))
        try agent.look(all: true, changes: .max)
        for _ in 0..<200 where try agent.read() {}
        agent.beginCommit()
        try agent.endCommit()
        agent.checkAll()
    }

    /// What grows with files and names shrinks with them: else an agent that runs for a year is full of files that are gone.
    private func forget() throws {
        // Longer than anything is remembered for, whatever the clock was set to; each time one more file goes, which makes room.
        for number in 0..<12 {
            time.advance(by: .seconds(90_000))
            let path = "a/last\(number).log"
            disk.append(Array("last\n".utf8), to: disk.create(path))
            for _ in 0..<3 { try settle() }
            disk.delete(path)
            for _ in 0..<5 { try settle() }
        }
        let present = Set(disk.names.values.map(\.id))
        let streams = agent.streams
        // An unfinished line is waited for: here nothing is sealed.
        let whole = streams.files.values.filter { !$0.hasUnread }
        if let file = whole.first(where: { disk.names[$0.path.text]?.id != $0.id }) {
            throw Failure(description: "\(file.path.text) is gone, and known")
        }
        // Of archives in polled directories nothing tells that they are gone.
        let kept = streams.remembered.kept.filter {
            !present.contains($0.key) && !(isPolled && FileTrace($0.value.state)?.doneVersion != nil)
        }
        guard kept.count <= 2 else {
            throw Failure(
                description: "\(kept.count) files are remembered that are gone: \(kept.values.map(\.path))")
        }
        let stored = agent.queue.checkpoints.keys.filter {
            let id = FileID(bytes: $0)
            return streams.files[id] == nil && streams.remembered.kept[id] == nil
        }
        guard stored.isEmpty else {
            throw Failure(description: "\(stored.count) checkpoints are stored for nobody")
        }
        let sizes = streams.sizes
        let indexed = streams.files.values.reduce(0) { $0 + Set($1.streams.map(\.hashValue)).count }
        let isForgotten =
            streams.nameless.values.allSatisfy(\.hasUnread) && sizes["cut off"] == 0
            && sizes["indexed"] == indexed
            && sizes["missing", default: 0] <= 2 * streams.remembered.kept.count + 64
            && sizes["staying", default: 0] <= streams.remembered.kept.count
        guard isForgotten else {
            throw Failure(description: "tables do not shrink: \(sizes), \(indexed) indexed")
        }
    }
}
