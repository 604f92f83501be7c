import EventLoops
import Logs
import Model
@testable import Spool
import Synchronization
import TestKit
import Testing

/// Lines that may not be taken yet.
private final class Held: Sendable {
    private let lines: Mutex<Set<String>>
    private let counter = Mutex(0)
    init(_ lines: Set<String>) { self.lines = Mutex(lines) }
    func contains(_ line: String) -> Bool { lines.withLock { $0.contains(line) } }
    func release(_ line: String) { lines.withLock { _ = $0.remove(line) } }
    func releaseAll() { lines.withLock { $0 = [] } }
    func notePark() { counter.withLock { $0 += 1 } }
    var parks: Int { counter.withLock { $0 } }
    var any: String? { lines.withLock { $0.randomElement() } }
}

/// Parks files at lines that are held; a `KeptQueue` takes the others.
private final class ParkingSink: SpoolSink {
    private let kept: KeepingSink
    private let held: Held
    private let loop: EventLoop
    private var obstacle: String?

    init(_ queue: KeptQueue, _ held: Held, on loop: EventLoop) {
        kept = KeepingSink(queue, on: loop)
        self.held = held
        self.loop = loop
    }

    func take(_ block: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        obstacle = nil
        var end = 0
        while end < block.count, let feed = block[end...].firstIndex(of: 0x0A) {
            let line = String(decoding: block[end..<feed], as: UTF8.self)
            if held.contains(line) {
                obstacle = line
                break
            }
            end = feed + 1
        }
        guard end > 0 else { return 0 }
        let taken = kept.take(UnsafeRawBufferPointer(rebasing: block[..<end]), from: source, at: offset)
        if taken < end { obstacle = nil }
        return taken
    }

    func park(_ resume: @escaping () -> Void) -> Bool {
        guard let obstacle else { return false }
        held.notePark()
        look(for: obstacle, resume)
        return true
    }

    private func look(for line: String, _ resume: @escaping () -> Void) {
        _ = loop.after(.milliseconds(1)) { [self] in
            if held.contains(line) { look(for: line, resume) } else { resume() }
        }
    }

    func quarantine(_ record: QuarantineRecord) { kept.quarantine(record) }
    func commit(_ progress: SpoolProgress) async throws { try await kept.commit(progress) }
    func persist() async throws { try await kept.persist() }
    var isUrgent: Bool { kept.isUrgent }
    func mustStay(_ file: [UInt8]) -> Bool { kept.mustStay(file) }

    func isClockTrusted() -> Bool { true }
}

@Suite("Parked files")
struct ParkingTests {
    private let harness: SpoolHarness

    init() throws { harness = try SpoolHarness() }

    private func start(_ held: Held) async throws -> SpoolReader {
        var options = SpoolOptions(directory: harness.path)
        options.settleTime = .milliseconds(20)
        options.sealTime = .milliseconds(80)
        options.graceTime = .milliseconds(60)
        options.pollInterval = .milliseconds(30)
        let reader = try SpoolReader(
            options, start: harness.queue.start, sink: ParkingSink(harness.queue, held, on: harness.loop),
            on: harness.loop, log: Log(harness.log))
        await reader.start()
        return reader
    }

    @Test("a parked file waits alone: files beside it continue, and what came before it is durable")
    func othersGoOn() async throws {
        let held = Held([#"{"a":2}"#, #"{"c":2}"#])
        harness.write("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", to: "a.jsonl")
        harness.write(#"[{"c":1},{"c":2},{"c":3}]"#, to: "c.json")
        let reader = try await start(held)
        await harness.untilLines([#"{"a":1}"#, #"{"c":1}"#])
        harness.write("{\"b\":1}\n", to: "b.jsonl")
        harness.write(#"{"d":1}"#, to: "d.json")
        harness.append("{\"a\":4}\n", to: "a.jsonl")
        await harness.untilLines([#"{"a":1}"#, #"{"b":1}"#, #"{"c":1}"#, #"{"d":1}"#])
        held.release(#"{"c":2}"#)
        await harness.until("the drop file is read") { harness.queue.lines.contains(#"{"c":3}"#) }
        #expect(!harness.queue.lines.contains(#"{"a":3}"#))
        held.releaseAll()
        await harness.until("all is read") { harness.queue.lines.contains(#"{"a":4}"#) }
        #expect(harness.queue.lines.filter { $0.hasPrefix(#"{"a""#) } == (1...4).map { "{\"a\":\($0)}" })
        #expect(harness.queue.lines.count == 9)
        await harness.until("the drop files are removed") {
            !harness.exists("c.json") && !harness.exists("d.json")
        }
        await reader.stop()
    }

    @Test("parked drop files beyond the limit delay drop files only, and all arrive in the end")
    func manyDropFiles() async throws {
        let names = (0..<40).map { "{\"n\":\($0)}" }
        let held = Held(Set(names))
        for (number, name) in names.enumerated() { harness.write(name, to: "f\(number).json") }
        let reader = try await start(held)
        await harness.until("as many as may be are parked") { held.parks == 17 }
        harness.write("{\"b\":1}\n", to: "b.jsonl")
        await harness.untilLines([#"{"b":1}"#])
        held.releaseAll()
        await harness.untilLines(names + [#"{"b":1}"#])
        await reader.stop()
    }

    @Test("every line arrives once, in its file's order, through random parking, release and restarts")
    func byChance() async throws {
        let seed = Seeds.one(4)
        var random = SplitMix64(seed: seed)
        var all: [[String]] = []
        var heldLines: Set<String> = []
        for file in 0..<24 {
            let lines = (0..<Int.random(in: 1...12, using: &random)).map { "{\"f\":\(file),\"n\":\($0)}" }
            for line in lines where Int.random(in: 0..<5, using: &random) == 0 { heldLines.insert(line) }
            all.append(lines)
            let text = lines.map { $0 + "\n" }.joined()
            harness.write(text, to: "f\(file)." + (file.isMultiple(of: 2) ? "jsonl" : "json"))
        }
        let held = Held(heldLines)
        var reader = try await start(held)
        var restarts = 0
        while let line = held.any {
            if Int.random(in: 0..<6, using: &random) == 0 {
                await reader.stop()
                reader = try await start(held)
                restarts += 1
            }
            held.release(line)
            if Bool.random(using: &random) { await harness.pause(.milliseconds(3)) }
        }
        await harness.untilLines(all.flatMap { $0 })
        for (file, lines) in all.enumerated() {
            let arrived = harness.queue.lines.filter { $0.hasPrefix("{\"f\":\(file),") }
            #expect(arrived == lines, "file \(file), \(restarts) restarts, \(Seeds.again(seed))")
        }
        await reader.stop()
    }
}
