import TestKit
import Testing

@testable import Spool

/// The pieces of blocks, read from memory.
@Suite("Spool: block reader")
struct BlockReaderTests {
    private static let longest = 20

    /// What became of a file.
    private struct Result: Equatable {
        /// Lines that were handed over, each with its LF.
        var lines: [[UInt8]] = []
        /// Lengths of lines that are too long.
        var tooLong: [Int] = []
        /// Where reading stopped.
        var end = 0
    }

    /// What is to become of a sealed file: each line is judged by itself. Zeros are skipped where a line begins, and
    /// are not there at the end of the file.
    private func expected(_ file: [UInt8]) -> Result {
        var result = Result()
        let content = file[..<((file.lastIndex { $0 != 0 } ?? -1) + 1)]
        var start = 0
        while let first = content[start...].firstIndex(where: { $0 != 0 }) {
            let feed = content[first...].firstIndex(of: 0x0A)
            let line = content[first..<(feed ?? content.count)]
            if line.count > Self.longest {
                result.tooLong.append(line.count)
            } else {
                result.lines.append(line + [0x0A])
            }
            start = feed.map { $0 + 1 } ?? content.count
        }
        result.end = start
        return result
    }

    /// Reads a file in blocks, as the shell does.
    private func read(_ file: [UInt8], block size: () -> Int, isSealed: Bool) -> Result {
        let reader = BlockReader(longest: Self.longest)
        var result = Result()
        var place = 0
        turns: for _ in 0..<10_000 {
            let count = size()
            let bytes = Array(file.dropFirst(place).prefix(count))
            guard !bytes.isEmpty else { break }
            let isEnd = bytes.count < count
            var start = 0
            while start < bytes.count {
                let cut = Array(bytes[start...]).withUnsafeBytes { block -> BlockReader.Cut in
                    let content = BlockReader.content(of: block)
                    var zeros: BlockReader.Zeros?
                    if BlockReader.needsZeros(block, content: content) {
                        let next = file[(place + content)...].firstIndex { $0 != 0 }
                        zeros = next.map { .content(Int64($0)) } ?? .end
                    }
                    return reader.cut(
                        block, content: content, zeros: zeros, isEnd: isEnd,
                        BlockReader.Ending(isSealed: isSealed, isSilent: true))
                }
                switch cut.piece {
                case .lines(let length):
                    let lines = bytes[start..<(start + length)]
                    #expect(lines.last == 0x0A, "a piece ends within a line")
                    result.lines += lines.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
                        .map { Array($0) + [0x0A] }
                case .lastLine(let length): result.lines.append(bytes[start..<(start + length)] + [0x0A])
                case .tooLong(let length): result.tooLong.append(length - 1)
                case .endless:
                    // The shell looks for its end beyond the block.
                    let content = file[..<((file.lastIndex { $0 != 0 } ?? -1) + 1)]
                    let feed = content[place...].firstIndex(of: 0x0A)
                    result.tooLong.append((feed ?? content.count) - place)
                    place = feed.map { $0 + 1 } ?? content.count
                    continue turns
                case .zeros(let end):
                    start += Int(end) - place
                    place = Int(end)
                case .open, .nothing: break
                }
                place += cut.piece.length
                start += cut.piece.length
                guard cut.goesOn else {
                    if cut.mayHaveMore { continue turns }
                    break turns
                }
            }
            if isEnd, start >= bytes.count { break }
        }
        result.end = place
        return result
    }

    private func file(_ random: inout SplitMix64) -> [UInt8] {
        var file: [UInt8] = []
        for _ in 0..<Int.random(in: 0...12, using: &random) {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: file += [UInt8](repeating: 0, count: Int.random(in: 1...90, using: &random))
            case 1: file += [UInt8](repeating: 0x78, count: Int.random(in: 15...70, using: &random)) + [0x0A]
            case 2: file += [0x61, 0, 0, 0x62, 0x0A]
            case 3: file += [0x61, 0x62]
            default: file += Array(repeating: 0x79, count: Int.random(in: 0...20, using: &random)) + [0x0A]
            }
        }
        return file
    }

    @Test("in a sealed file each line is read once, in order, for any blocks; trailing zeros are no piece")
    func sealed() {
        for seed in UInt64(1)...3000 {
            var random = SplitMix64(seed: seed)
            let file = file(&random)
            let result = read(
                file, block: { Int.random(in: (Self.longest + 2)...120, using: &random) }, isSealed: true)
            #expect(result == expected(file), "seed \(seed): \(file)")
        }
    }

    @Test("in a file being written nothing after the last line feed is handed over, and reading stops there")
    func open() {
        for seed in UInt64(1)...3000 {
            var random = SplitMix64(seed: seed)
            let file = file(&random)
            let result = read(
                file, block: { Int.random(in: (Self.longest + 2)...120, using: &random) }, isSealed: false)
            let all = expected(file)
            #expect(result.lines == Array(all.lines.prefix(result.lines.count)), "seed \(seed): \(file)")
            #expect(all.lines.count - result.lines.count <= 1, "seed \(seed): \(file)")
            #expect(!file[result.end...].contains(0x0A), "a whole line was left, seed \(seed): \(file)")
        }
    }

    @Test("text at the end waits for silence, and is cut nowhere else")
    func text() {
        var reader = BlockReader(longest: 100)
        reader.joinsText = true
        let text = Array("Error: x\n  at y\n".utf8)
        func cut(isSilent: Bool, isEnd: Bool) -> BlockReader.Cut {
            text.withUnsafeBytes {
                reader.cut(
                    $0, content: $0.count, zeros: nil, isEnd: isEnd,
                    BlockReader.Ending(isSealed: false, isSilent: isSilent))
            }
        }
        let open = BlockReader.Piece.open(text.count, hasLines: true, holdsText: true)
        #expect(cut(isSilent: false, isEnd: true) == BlockReader.Cut(piece: open, mayHaveMore: false))
        #expect(cut(isSilent: true, isEnd: true).piece == .lines(text.count))
        // Lines before zeros, or before more of the file.
        #expect(cut(isSilent: false, isEnd: false).piece == .lines(text.count))
    }
}
