import Model
import TestKit
import Testing

@testable import Spool

/// The pieces of a drop file's content, given from memory.
@Suite("Spool: drop reader")
struct DropReaderTests {
    /// What a life of a reader brought.
    private struct Result: Equatable {
        var handed: [UInt8] = []
        var tooLong: [DropReader.Excerpt] = []
        var end: DropReader.Step?
    }

    /// Reads a text in blocks, as the shell does.
    ///
    /// - Parameters:
    ///   - turns: how many blocks are read at most.
    ///   - takes: whether the sink takes what it is offered.
    private func read(
        _ text: [UInt8], with reader: inout DropReader, block size: Int, turns: Int = 10_000,
        takes: (DropReader) -> Bool = { _ in true }
    ) -> Result {
        var result = Result()
        for _ in 0..<turns where result.end == nil {
            reader.beginTurn()
            var block: [UInt8] = []
            var isOver = false
            while !isOver {
                let step = block.withUnsafeBytes { reader.next(in: $0, isLast: block.count < size) }
                switch step {
                case .read(let offset): block = Array(text.dropFirst(Int(offset)).prefix(size))
                case .unpack: Issue.record("a text is unpacked")
                case .hand:
                    let mayTake = takes(reader)
                    let isTaken = reader.hand { bytes, _ in
                        guard mayTake else { return 0 }
                        result.handed += bytes
                        return bytes.count
                    }
                    #expect(isTaken == mayTake)
                    isOver = !isTaken
                case .tooLong(let excerpt): result.tooLong.append(excerpt)
                case .pause: isOver = true
                case .fault, .endsEarly, .end:
                    result.end = step
                    isOver = true
                }
            }
        }
        return result
    }

    private func read(_ text: String, block size: Int = 64) -> Result {
        var reader = DropReader(.json, longest: 40, from: .start)
        return read(Array(text.utf8), with: &reader, block: size)
    }

    @Test("events are handed over one by one, and the end says whether the text was complete")
    func ends() {
        #expect(read("{\"a\":1}\n{\"a\":2}\n").handed == Array("{\"a\":1}\n{\"a\":2}\n".utf8))
        #expect(read("{\"a\":1}").end == .end)
        #expect(read("[{\"a\":1}").end == .endsEarly("the text ends too early"))
        #expect(read("").end == .endsEarly("the file is empty"))
        guard case .fault(.notJSON, _)? = read("{\"a\":1} x").end else {
            Issue.record("a fault is not found")
            return
        }
    }

    @Test("an oversized event is an excerpt with its position, and the events around it are handed over")
    func tooLong() {
        let long = "{\"a\":\"\(String(repeating: "x", count: 60))\"}"
        let result = read("{\"a\":1}\n\(long)\n{\"a\":2}")
        #expect(result.handed == Array("{\"a\":1}\n{\"a\":2}\n".utf8))
        #expect(result.tooLong.map(\.offset) == [8] && result.tooLong.first?.length == Int64(long.utf8.count))
    }

    @Test("with any block sizes, refusals and restarts each event is read once, in order")
    func property() {
        let events = (0..<30).map { "{\"n\":\($0),\"t\":[\($0 % 3)]}" }
        let texts = [events.joined(separator: "\n") + "\n", "[" + events.joined(separator: ",\n") + "]"]
        let expected = Array(events.map { $0 + "\n" }.joined().utf8)
        for seed in UInt64(1)...60 {
            var random = SplitMix64(seed: seed)
            let text = Array(texts[Int(seed % 2)].utf8)
            let size = Int.random(in: 1...200, using: &random)
            var reader = DropReader(.json, longest: 100, from: .start)
            var (handed, end) = ([UInt8](), DropReader.Step?.none)
            for _ in 0..<1000 where end == nil {
                // More turns than the bytes of an event, or a reader that begins anew each time gets nowhere.
                let turns = Int.random(in: 20...60, using: &random)
                let part = read(text, with: &reader, block: size, turns: turns) { _ in
                    Int.random(in: 0..<4, using: &random) > 0
                }
                handed += part.handed
                end = part.end
                // As after a restart: only the place is kept.
                reader = DropReader(.json, longest: 100, from: reader.taken)
            }
            #expect(handed == expected && end == .end, "seed \(seed), blocks of \(size)")
        }
    }
}
