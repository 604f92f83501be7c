import Model
import TestKit
import Testing

@testable import Spool

@Suite("Cutting blocks into lines")
struct LineCutterTests {
    private func piece(_ cutter: LineCutter, _ text: [UInt8]) -> LineCutter.Piece {
        text.withUnsafeBytes { cutter.piece(of: $0) }
    }

    /// The lines of a text, line feeds included; the last may have none.
    private func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var rest = text[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
            lines.append(rest[..<end])
            rest = rest[end...]
        }
        return lines
    }

    /// What a block begins with, line by line: the run of whole lines up to one that is too long.
    private func expected(_ text: [UInt8], _ longest: Int) -> LineCutter.Piece {
        let lines = lines(text)
        let run = lines.prefix { $0.last == 0x0A && $0.count <= longest + 1 }
        guard let end = run.last?.endIndex else {
            guard text.count > longest else { return .partial(text.count) }
            return .tooLong(lines[0].count, isWhole: lines[0].last == 0x0A)
        }
        return .lines(end)
    }

    @Test("lines of many lengths against a plain model", arguments: Seeds.list(0..<20))
    func plain(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let longest = Int.random(in: 1...12, using: &random)
            let text = (0..<Int.random(in: 1...60, using: &random)).map { _ in
                Int.random(in: 0..<5, using: &random) == 0 ? 0x0A : UInt8(ascii: "x")
            }
            #expect(
                piece(LineCutter(longest: longest), text) == expected(text, longest),
                "\(text), \(longest), \(Seeds.again(seed))")
        }
    }

    @Test("records of several lines end where the runtime says so", arguments: Seeds.list(0..<20))
    func wrapped(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = ["a", " ", "P", "F", #"\\"#, #"\""#, #"\n"#, "{"]
        for _ in 0..<300 {
            var ends: [Bool] = []
            var text: [UInt8] = []
            let format: LineFormat = Bool.random(using: &random) ? .cri : .docker
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let content = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    pieces.randomElement(using: &random) ?? "a"
                }
                let isLast = Bool.random(using: &random)
                let isWrapped = Int.random(in: 0..<5, using: &random) > 0
                if !isWrapped {
                    text += Array("no\n".utf8)
                } else if format == .cri {
                    text += Array("2026-11-20T10:00:00Z stdout \(isLast ? "F" : "P") \(content.joined())\n".utf8)
                } else {
                    let log = content.filter { $0 != #"\n"# }.joined() + (isLast ? #"\n"# : "a")
                    let blank = Bool.random(using: &random) ? " " : ""
                    text += Array("{\(blank)\"log\"\(blank):\(blank)\"\(log)\",\"stream\":\"stdout\"}\n".utf8)
                }
                ends.append(isLast || !isWrapped)
            }
            let all = lines(text)
            let last = all.indices.last { ends[$0] }.map { all[$0].endIndex }
            for longest in [70, 1_000] {
                var cutter = LineCutter(longest: longest)
                cutter.format = format
                let found = piece(cutter, text)
                let otherwise: LineCutter.Piece = text.count <= longest ? .partial(text.count) : .lines(text.count)
                #expect(found == last.map { .lines($0) } ?? otherwise, "\(String(decoding: text, as: UTF8.self))")
            }
        }
    }

    @Test("text that may go on waits for more, up to 64 KiB of it, but no object before it does")
    func text() {
        var cutter = LineCutter(longest: 1 << 20)
        cutter.joinsText = true
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [0x0A]
        let object = Array("{\"a\":1}\n".utf8)
        for count in [1, 64] {
            let text = Array(repeating: line, count: count).joined()
            #expect(piece(cutter, Array(text)) == .partial(text.count))
            #expect(piece(cutter, object + text) == .lines(object.count))
            #expect(piece(cutter, text + object) == .lines(text.count + object.count))
        }
        let long = Array(Array(repeating: line, count: 70).joined())
        #expect(piece(cutter, long) == .lines(long.count))
        #expect(piece(cutter, object + long) == .lines(object.count + long.count))
    }
}
