import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    @Suite("kill -9")
    struct KillTests {
        @Test(
            "killed ten times at random moments under load: nothing is lost or repeated, and the ledger balances",
            arguments: ["503", "cut-after-storing"])
        func killedUnderLoad(fault: String) throws {
            let seed = Seeds.one(11)
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["100ms", "200ms", "400ms", "800ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            // Its memory of keys is what makes "once" true, so it lives through the whole test.
            try bench.startReceiver(
                "--fail", fault, "--probability", "0.2", "--first", "200", "--seed", "\(seed)")
            var writers = Writers(bench)
            defer { print("kill -9 with \(fault): seed \(seed), \(writers.written) events") }
            for _ in 0..<10 {
                // One in four is killed while it starts.
                let isEarly = Int.random(in: 0..<4, using: &random) == 0
                try bench.startAgent(waits: !isEarly)
                if !isEarly { try bench.expectBalance() }
                let end =
                    SystemTime().bootTime
                    + .milliseconds(Int.random(in: 0...(isEarly ? 150 : 700), using: &random))
                while SystemTime().bootTime < end {
                    try writers.write(using: &random)
                    usleep(UInt32.random(in: 0...5000, using: &random))
                }
                bench.killAgent()
                for _ in 0..<5 { try writers.write(using: &random) }
            }
            try writers.end()
            try bench.startAgent()
            try bench.expectBalance()
            try bench.waitUntilDelivered(writers.written, within: .seconds(90))
            try bench.expectOnce(Set((0..<writers.written).map { "e\($0)" }), member: "key")
            let refused = bench.receiverStats?["answers"]?["503"]?.integer ?? 0
            #expect(refused + bench.receiverFigure("cuts") > 0, "the fault was never tried")
            #expect(try bench.stopAgent() == 0)
        }
    }
}

/// Apps that go on writing whatever becomes of the agent: they append, rotate and drop.
struct Writers {
    private let bench: Workbench
    private(set) var written = 0
    private var rotations = 0
    private var drops = 0
    /// The end of a line whose beginning is in the file.
    private var owed: ArraySlice<UInt8> = []

    init(_ bench: Workbench) { self.bench = bench }

    /// Writes something.
    mutating func write(using random: inout some RandomNumberGenerator) throws {
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            let events = (0..<Int.random(in: 1...5, using: &random)).map { _ in event(using: &random) }
            drops += 1
            try bench.drop("[\n" + events.joined(separator: ",\n") + "\n]", as: "drop-\(drops).json")
        case 1:
            try bench.drop(event(using: &random), as: "one-\(drops).json")
            drops += 1
        case 2:
            try end()
            rotations += 1
            // Missing until something was appended.
            rename("\(bench.spool)/app.jsonl", "\(bench.spool)/app.jsonl.\(rotations)")
        default:
            let lines = (0..<Int.random(in: 1...60, using: &random)).map { _ in event(using: &random) + "\n" }
            let bytes = Array(owed) + Array(lines.joined().utf8)
            // A writer's buffer ends anywhere.
            let cut = Int.random(in: 0..<3, using: &random) == 0 ? bytes.count - 20 : bytes.count
            try bench.append(Array(bytes[..<cut]), to: "app.jsonl")
            owed = bytes[cut...]
        }
    }

    /// Ends the line that was begun.
    mutating func end() throws {
        if !owed.isEmpty { try bench.append(Array(owed), to: "app.jsonl") }
        owed = []
    }

    private mutating func event(using random: inout some RandomNumberGenerator) -> String {
        defer { written += 1 }
        let priority = Int.random(in: 0..<10, using: &random) == 0 ? "critical" : "normal"
        return
            #"{"name":"load","priority":"\#(priority)","properties":{"key":"e\#(written)","text":"\#(bench.path)"}}"#
    }
}
