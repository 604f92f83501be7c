import EventLoops
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
    @Test("a compressed frame decompresses to the same bytes", arguments: Compression.allCases)
    func roundTrip(compression: Compression) throws {
        let compressor = try FrameCompressor(compression)
        let decompressor = FrameDecompressor()
        // Sizes cross the point where the parameters change, there and back.
        for count in [0, 1, 50, 3000, 2, 3000, 0] {
            let bytes = lines(count, seed: 42)
            let frame = try compressor.compress(bytes)
            #expect(try decompressor.decompress(frame, compression, limit: bytes.count) == bytes)
            if count >= 50 && compression != .none { #expect(frame.count * 2 < bytes.count) }
        }
    }

    @Test("a frame that decompresses beyond the limit is refused", arguments: Compression.allCases)
    func limitsHold(compression: Compression) throws {
        let bytes = lines(1000, seed: 1)
        let frame = try FrameCompressor(compression).compress(bytes)
        #expect { try FrameDecompressor().decompress(frame, compression, limit: bytes.count - 1) } throws: {
            ($0 as? FrameError)?.code == .tooLarge
        }
    }

    @Test(
        "damage is reported, and never gives other bytes silently",
        arguments: [Compression.gzip, .zstd])
    func damageIsTold(compression: Compression) throws {
        let bytes = lines(100, seed: 2)
        let frame = try FrameCompressor(compression).compress(bytes)
        let decompressor = FrameDecompressor()
        #expect(throws: FrameError.self) { try decompressor.decompress([], compression, limit: 10) }
        #expect(throws: FrameError.self) {
            try decompressor.decompress(Array(frame.dropLast()), compression, limit: bytes.count)
        }
        #expect(throws: FrameError.self) {
            try decompressor.decompress(frame + [0], compression, limit: bytes.count * 2)
        }
        #expect(throws: FrameError.self) {
            try decompressor.decompress(bytes, compression, limit: bytes.count)
        }
    }

    @Test(
        "a stream decompresses in pieces of any size, also with several members",
        arguments: Compression.allCases)
    func streamsUnpack(compression: Compression) throws {
        let first = lines(500, seed: 3)
        let second = lines(700, seed: 4)
        let compressor = try FrameCompressor(compression)
        let file = try compressor.compress(first) + compressor.compress(second)
        var random = SplitMix64(seed: Seeds.one(5))
        for _ in 0..<20 {
            let stream = try StreamDecompressor(compression)
            var output: [UInt8] = []
            var position = 0
            var atBoundary = false
            var room = [UInt8](repeating: 0, count: 1 + Int.random(in: 0..<4096, using: &random))
            while true {
                let piece = min(file.count - position, 1 + Int.random(in: 0..<512, using: &random))
                let step = try room.withUnsafeMutableBytes { target in
                    try file[position..<position + piece].withUnsafeBytes {
                        try stream.step($0, into: target)
                    }
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

    /// Unpacks by the other library, zlib: at most `limit` bytes; nil when it is not one whole member.
    private func unpackedByZlib(_ member: [UInt8], limit: Int) throws -> [UInt8]? {
        let stream = try StreamDecompressor(.gzip)
        var room = [UInt8](repeating: 0, count: limit + 1)
        let step = try? room.withUnsafeMutableBytes { target in
            try member.withUnsafeBytes { try stream.step($0, into: target) }
        }
        guard let step, step.isAtBoundary, step.consumed == member.count, step.produced <= limit else {
            return nil
        }
        return Array(room[..<step.produced])
    }

    /// Bytes of every kind: events, noise, one byte again and again, nothing.
    private func anyBytes(_ random: inout SplitMix64, atMost most: Int) -> [UInt8] {
        let count = Int.random(in: 0..<(Bool.random(using: &random) ? 400 : most), using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        case 1: return [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: count)
        default: return Array(lines(count / 60 + 1, seed: random.next()).prefix(count))
        }
    }

    @Test(
        "gzip makes one member that zlib reads, and noise hardly grows",
        arguments: Seeds.list(1...3))
    func gzipIsReadByOthers(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let compressor = try FrameCompressor(.gzip)
        for _ in 0..<20 {
            let bytes = anyBytes(&random, atMost: 200_000)
            let member = try compressor.compress(bytes)
            #expect(try unpackedByZlib(member, limit: bytes.count) == bytes, "\(Seeds.again(seed))")
            #expect(member.count <= bytes.count + 5 * (bytes.count / 65_535 + 1) + 18, "\(Seeds.again(seed))")
        }
    }

    @Test(
        "a damaged, truncated or extended member is refused or gives its content, never beyond the limit",
        arguments: Seeds.list(1...3))
    func damagedMembersAreBounded(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let compressor = try FrameCompressor(.gzip)
        let decompressor = FrameDecompressor()
        var refused = 0
        for _ in 0..<400 {
            let bytes = anyBytes(&random, atMost: 2_000)
            var member = try compressor.compress(bytes)
            for _ in 0...Int.random(in: 0..<3, using: &random) {
                let place = Int.random(in: 0..<member.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: member[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 1: member[place] = UInt8.random(in: 0...255, using: &random)
                case 2: member.removeLast(min(member.count - 1, place + 1))
                default: member.append(UInt8.random(in: 0...255, using: &random))
                }
            }
            let limit =
                Bool.random(using: &random) ? bytes.count : Int.random(in: 0...bytes.count, using: &random)
            do {
                let found = try decompressor.decompress(member, .gzip, limit: limit)
                #expect(found == bytes && found.count <= limit, "\(Seeds.again(seed))")
            } catch {
                refused += 1
                #expect(error.code == .corrupt || error.code == .tooLarge, "\(Seeds.again(seed))")
            }
        }
        #expect(refused > 200)
    }

    @Test("a bomb of 64 MiB in a few KB uses no more memory than the limit")
    func bombsAreBounded() throws {
        let bomb = try FrameCompressor(.gzip).compress([UInt8](repeating: 0, count: 64 << 20))
        #expect(bomb.count < 1 << 20)
        #expect { try FrameDecompressor().decompress(bomb, .gzip, limit: 1 << 20) } throws: {
            ($0 as? FrameError)?.code == .tooLarge
        }
    }

    @Test("two members, a truncated header and reserved flags are not a whole member")
    func oddMembersAreRefused() throws {
        let compressor = try FrameCompressor(.gzip)
        let decompressor = FrameDecompressor()
        let member = try compressor.compress(Array("abc".utf8))
        var reserved = member
        reserved[3] |= 0x40
        for odd in [member + member, Array(member.prefix(9)), Array(member.prefix(17)), reserved] {
            #expect { try decompressor.decompress(odd, .gzip, limit: 100) } throws: {
                ($0 as? FrameError)?.code == .corrupt
            }
        }
    }

    @Test("the checksum is that of gzip")
    func checksumIsGzips() {
        #expect(Array("123456789".utf8).withUnsafeBytes { crc32($0) } == 0xCBF4_3926)
        let halves = Array("1234".utf8).withUnsafeBytes { crc32($0) }
        #expect(Array("56789".utf8).withUnsafeBytes { crc32($0, from: halves) } == 0xCBF4_3926)
    }
}
