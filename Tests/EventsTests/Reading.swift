@testable import Events
import EventLoops
import Model
import TestKit

/// A pass with one source, for tests: lines in, verdicts and lines out.
struct Reading: ~Copyable {
    static let now = Timestamp(milliseconds: 1_795_168_800_000)
    var pass: EventPass
    let source: EventSource
    var random: SplitMix64
    var buffer = LineBuffer()
    /// How serious the line was that was read last.
    var severity: Severity?
    /// The file that lines come from.
    var path = ""

    init(
        _ options: EventOptions = EventOptions(), app: String = "shop", isShared: Bool = false,
        isBackfill: Bool = false
    ) {
        // Sessions have a suite of their own; elsewhere their ids would be in the way.
        var options = options
        options.session.mode = .off
        // In an init, and where #expect holds it, Swift 6.2 takes two properties of what cannot be copied for one.
        var random = SplitMix64(seed: 1)
        pass = EventPass(options: options)
        source = pass.source(app: app, isShared: isShared, isBackfill: isBackfill, using: &random)
        self.random = random
    }

    /// Reads one line; what was written is nil when nothing was accepted.
    mutating func read(
        _ line: String, at now: Timestamp = Reading.now, isSynchronised: Bool = true
    ) -> (verdict: Verdict, output: String?) {
        let (verdict, output) = read(
            bytes: Array(line.utf8) + [0x0A], at: now, isSynchronised: isSynchronised)
        return (verdict, output.map { String(decoding: $0, as: UTF8.self) })
    }

    mutating func read(
        bytes: [UInt8], at now: Timestamp = Reading.now, isSynchronised: Bool = true
    ) -> (verdict: Verdict, output: [UInt8]?) {
        pass.begin(source, path: path, at: now, isSynchronised: isSynchronised, using: &random)
        buffer.removeAll()
        // Without room after the text: what reads beyond it is found by the address sanitizer.
        let block = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count)
        defer { block.deallocate() }
        block.initialize(from: bytes, count: bytes.count)
        let verdict = pass.read(block, from: 0, to: bytes.count)
        severity = verdict.kind == .accepted ? pass.block.state.flatMap { pass.severity($0) } : nil
        guard verdict.kind == .accepted else { return (verdict, nil) }
        pass.write(into: &buffer)
        return (verdict, Array(buffer.bytes))
    }
}

/// What the scanner says of one line: nil when it is an object, else what and where.
func failure(_ line: [UInt8]) -> ScanFailure? {
    var scanner = JSONScanner()
    let block = UnsafeMutablePointer<UInt8>.allocate(capacity: line.count + 1)
    defer { block.deallocate() }
    block.initialize(from: line, count: line.count)
    block[line.count] = 0x0A
    let (next, isObject) = scanner.scanLine(block, from: 0, to: line.count + 1)
    #if DEBUG
        precondition(next <= line.count + 1)
    #endif
    return isObject ? nil : ScanFailure(code: scanner.failureCode, byte: scanner.failureOffset)
}

func failure(_ line: String) -> ScanFailure? { failure(Array(line.utf8)) }
