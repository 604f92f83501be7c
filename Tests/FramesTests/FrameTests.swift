import Frames
import Model
import TestKit
import Testing

/// Lines as events are: much alike, not quite.
private func lines(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    return (0..<count).flatMap { number in
        Array(#"{"name":"Video clicked","n":\#(number),"x":\#(random.next())}"#.utf8) + [10]
    }
}

@Suite("Frames")
struct FrameTests {
    @Test("what is packed unpacks to the same bytes", arguments: Compression.allCases)
    func roundTrip(compression: Compression) throws {
        let compressor = try FrameCompressor(compression)
        let decompressor = try FrameDecompressor()
        // Sizes cross the point where the parameters change, there and back.
        for count in [0, 1, 50, 3000, 2, 3000, 0] {
            let bytes = lines(count, seed: 42)
            let frame = try compressor.compress(bytes)
            #expect(try decompressor.decompress(frame, compression, limit: bytes.count) == bytes)
            if count >= 50 && compression != .none { #expect(frame.count * 2 < bytes.count) }
        }
    }

    @Test("a frame that unpacks to more than is allowed is refused", arguments: Compression.allCases)
    func limitsHold(compression: Compression) throws {
        let bytes = lines(1000, seed: 1)
        let frame = try FrameCompressor(compression).compress(bytes)
        #expect { try FrameDecompressor().decompress(frame, compression, limit: bytes.count - 1) } throws: {
            ($0 as? FrameError)?.code == .tooLarge
        }
    }

    @Test("damage is told, and never unpacks to something else in silence", arguments: [Compression.gzip, .zstd])
    func damageIsTold(compression: Compression) throws {
        let bytes = lines(100, seed: 2)
        let frame = try FrameCompressor(compression).compress(bytes)
        let decompressor = try FrameDecompressor()
        #expect(throws: FrameError.self) { try decompressor.decompress([], compression, limit: 10) }
        #expect(throws: FrameError.self) {
            try decompressor.decompress(Array(frame.dropLast()), compression, limit: bytes.count)
        }
        #expect(throws: FrameError.self) {
            try decompressor.decompress(frame + [0], compression, limit: bytes.count * 2)
        }
        #expect(throws: FrameError.self) { try decompressor.decompress(bytes, compression, limit: bytes.count) }
    }

    @Test("a stream unpacks in pieces of any size, several members too", arguments: Compression.allCases)
    func streamsUnpack(compression: Compression) throws {
        let first = lines(500, seed: 3)
        let second = lines(700, seed: 4)
        let compressor = try FrameCompressor(compression)
        let file = try compressor.compress(first) + compressor.compress(second)
        var random = SplitMix64(seed: 5)
        for _ in 0..<20 {
            let stream = try StreamDecompressor(compression)
            var output: [UInt8] = []
            var position = 0
            var atBoundary = false
            var room = [UInt8](repeating: 0, count: 1 + Int.random(in: 0..<4096, using: &random))
            while true {
                let piece = min(file.count - position, 1 + Int.random(in: 0..<512, using: &random))
                let step = try room.withUnsafeMutableBytes { target in
                    try file[position..<position + piece].withUnsafeBytes { try stream.step($0, into: target) }
                }
                position += step.consumed
                output += room[..<step.produced]
                atBoundary = step.isAtBoundary
                if step.consumed == 0 && step.produced == 0 && position == file.count { break }
            }
            #expect(output == first + second)
            #expect(atBoundary)
        }
    }

    @Test("a stream that ends early is not at a boundary", arguments: [Compression.gzip, .zstd])
    func cutStreamsShow(compression: Compression) throws {
        let file = try FrameCompressor(compression).compress(lines(500, seed: 6)).dropLast(3)
        let stream = try StreamDecompressor(compression)
        var room = [UInt8](repeating: 0, count: 1 << 20)
        let step = try room.withUnsafeMutableBytes { target in
            try Array(file).withUnsafeBytes { try stream.step($0, into: target) }
        }
        #expect(!step.isAtBoundary)
        #expect(throws: FrameError.self) {
            try room.withUnsafeMutableBytes { target in
                try Array("not packed at all".utf8).withUnsafeBytes {
                    try StreamDecompressor(compression).step($0, into: target)
                }
            }
        }
    }

    @Test("the checksum is gzip's")
    func checksumIsGzips() {
        #expect(Array("123456789".utf8).withUnsafeBytes { crc32($0) } == 0xCBF4_3926)
        let halves = Array("1234".utf8).withUnsafeBytes { crc32($0) }
        #expect(Array("56789".utf8).withUnsafeBytes { crc32($0, from: halves) } == 0xCBF4_3926)
    }
}
