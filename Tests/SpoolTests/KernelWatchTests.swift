import Glibc
@testable import Spool
import TestKit
import Testing

/// The kernel's bytes as changes, without a kernel that tells any.
@Suite("Spool: kernel events")
struct KernelWatchTests {
    private func event(
        _ mask: Int32, watch: Int32 = 1, cookie: UInt32 = 0, _ name: String = "", padding: Int = 3
    )
        -> [UInt8]
    {
        let bytes = name.isEmpty ? [] : Array(name.utf8) + [UInt8](repeating: 0, count: padding)
        let fields = [UInt32(bitPattern: watch), UInt32(bitPattern: mask), cookie, UInt32(bytes.count)]
        return fields.flatMap { withUnsafeBytes(of: $0) { Array($0) } } + bytes
    }

    private func changes(_ bytes: [UInt8]) -> [(kind: Change.Kind, watch: Int32, name: String)] {
        bytes.withUnsafeBytes { KernelWatch.changes(in: $0).map { ($0.kind, $0.watch, $0.name.text) } }
    }

    @Test("each kind is read, with its watch and its name without padding")
    func kinds() {
        let kinds: [(Int32, Change.Kind)] = [
            (Int32(IN_MODIFY), .modified), (Int32(IN_CLOSE_WRITE), .closedByWriter),
            (Int32(IN_CREATE), .created),
            (Int32(IN_MOVED_TO), .movedHere), (Int32(IN_MOVED_FROM), .movedAway),
            (Int32(IN_DELETE), .deleted),
            (Int32(IN_ATTRIB), .attributesChanged), (Int32(IN_IGNORED), .watchEnded),
            (Int32(IN_MOVE_SELF), .movedItself),
            (Int32(IN_Q_OVERFLOW), .overflow), (Int32(IN_DELETE_SELF), .other),
        ]
        let bytes = kinds.enumerated().flatMap {
            event($1.0, watch: Int32($0), "name\($0)", padding: $0 % 4 + 1)
        }
        let found = changes(bytes)
        #expect(found.map(\.kind) == kinds.map(\.1))
        #expect(found.map(\.watch) == kinds.indices.map { Int32($0) })
        #expect(found.map(\.name) == kinds.indices.map { "name\($0)" })
        event(Int32(IN_CREATE) | Int32(IN_ISDIR), ".d").withUnsafeBytes { bytes in
            #expect(
                KernelWatch.changes(in: bytes).allSatisfy {
                    $0.isDirectory && $0.isHidden && $0.kind == .created
                })
        }
    }

    @Test("a name may fill its field without a NUL, or be empty")
    func names() {
        let bytes =
            event(Int32(IN_CREATE), "full", padding: 0) + event(Int32(IN_IGNORED))
            + event(Int32(IN_DELETE), "x")
        #expect(changes(bytes).map(\.name) == ["full", "", "x"])
    }

    @Test("incomplete bytes end the events, wherever they are cut, and random bytes do no harm")
    func cut() {
        let whole = [
            event(Int32(IN_CREATE), "a"), event(Int32(IN_MODIFY), "bcd"), event(Int32(IN_DELETE), "e"),
        ]
        let bytes = whole.flatMap { $0 }
        for length in 0...bytes.count {
            let complete = whole.indices.prefix { index in whole[...index].map(\.count).reduce(0, +) <= length
            }.count
            #expect(changes(Array(bytes.prefix(length))).count == complete)
        }
        var random = SplitMix64(seed: 51)
        for _ in 0..<2_000 {
            let noise = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            #expect(changes(noise).count <= noise.count / 16)
        }
    }

    @Test("the halves of a rename are joined by their cookie, within one read")
    func renames() {
        var kernel = KernelWatch()
        let (one, other) = (
            KernelWatch.Origin(file: FileID(bytes: [1]), name: FileName("a.log")),
            KernelWatch.Origin(file: nil, name: FileName("b.log"))
        )
        #expect(!kernel.isMidRename)
        kernel.began(7, from: one)
        kernel.began(8, from: other)
        #expect(
            kernel.isMidRename && kernel.origin(8) == other && kernel.origin(8) == nil && kernel.isMidRename)
        #expect(kernel.origin(7) == one && !kernel.isMidRename)
        kernel.began(9, from: one)
        kernel.batchEnded()
        #expect(kernel.origin(9) == nil && !kernel.isMidRename)
    }
}
