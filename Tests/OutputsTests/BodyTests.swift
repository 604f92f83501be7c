import Frames
import Model
import TestKit
import Testing

@testable import Outputs

@Suite("Bodies")
struct BodyTests {
    @Test(
        "a whole frame with the wanted compression is sent byte for byte", arguments: Compression.allCases)
    func storedFramesAreSentAsTheyAre(compression: Compression) throws {
        let part = try Sample.part(0..<50, compression)
        let body = try BodyBuilder(NDJSONEncoder(), compression).body(of: Sample.batch([part]))
        #expect(body == part.frame)
    }

    @Test("any parts and ranges are joined into one frame, with their lines in order")
    func joinedBodiesAreOneFrame() throws {
        let seed: UInt64 = 20_261_120
        var random = SplitMix64(seed: seed)
        for round in 0..<200 {
            var parts: [Batch.Part] = []
            var expected: [UInt8] = []
            var next = 0
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let count = Int.random(in: 1...30, using: &random)
                let from = Int.random(in: 0..<count, using: &random)
                let to = Int.random(in: from + 1...count, using: &random)
                let compression = Compression.allCases.randomElement(using: &random) ?? .none
                parts.append(try Sample.part(next..<next + count, compression, events: from..<to))
                expected += Sample.lines(next + from..<next + to)
                next += count
            }
            let wanted = Compression.allCases.randomElement(using: &random) ?? .none
            let body = try BodyBuilder(NDJSONEncoder(), wanted).body(of: Sample.batch(parts))
            // The decompressor takes exactly one frame or member.
            let unpacked = try FrameDecompressor().decompress(body, wanted, limit: 1 << 20)
            #expect(unpacked == expected, "seed \(seed), round \(round)")
        }
    }

    @Test("pieces of several frames, in any order, contain their own lines")
    func pieces() throws {
        var random = SplitMix64(seed: 52)
        let builder = try BodyBuilder(NDJSONEncoder(), .none)
        for _ in 0..<300 {
            let frame = Int.random(in: 0..<3, using: &random)
            let first = Int.random(in: 0..<20, using: &random)
            let events = first..<Int.random(in: first + 1...20, using: &random)
            let compression: Compression = frame == 0 ? .gzip : .zstd
            let part = try Sample.part(frame * 20..<frame * 20 + 20, compression, events: events)
            let lines = Sample.lines(frame * 20 + events.lowerBound..<frame * 20 + events.upperBound)
            #expect(try builder.body(of: Sample.batch([part])) == lines)
        }
    }

    @Test("a frame that is damaged or has too few lines is an error, and nothing is sent")
    func damagedFramesAreErrors() throws {
        var part = try Sample.part(0..<10, .gzip)
        var frame = part.frame
        frame[frame.count / 2] ^= 0xFF
        part = Batch.Part(
            compression: .gzip, frame: frame, bytes: part.bytes, eventsInFrame: 10, events: 0..<10)
        #expect(throws: OutputError.self) {
            try BodyBuilder(NDJSONEncoder(), .zstd).body(of: Sample.batch([part]))
        }
        let short = Batch.Part(
            compression: .none, frame: Sample.lines(0..<3), bytes: 0, eventsInFrame: 5, events: 1..<5)
        #expect(throws: OutputError.self) {
            try BodyBuilder(NDJSONEncoder(), .zstd).body(of: Sample.batch([short]))
        }
    }

    @Test("events can be sent as a JSON array")
    func jsonArray() throws {
        let body = try BodyBuilder(JSONArrayEncoder(), .none).body(
            of: Sample.batch([try Sample.part(0..<2, .zstd)]))
        #expect(
            String(decoding: body, as: UTF8.self)
                == #"[{"name":"Video clicked","n":0},{"name":"Video clicked","n":1}]"#)
    }
}
