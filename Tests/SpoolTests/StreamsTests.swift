import EventLoops
import Model
@testable import Spool
import TestKit
import Testing

/// What `Streams` answers and counts, without a disk or a clock.
@Suite("Streams")
struct StreamsTests {
    private let time = ManualTime()
    private let directory = SpoolDirectory(
        path: FileName("a"), depth: 1, id: FileID(bytes: Array("a".utf8)), 0)
    private let settleTime = Duration.seconds(1)

    private func file(_ name: String, number: UInt8, size: Int64) -> AppendFile {
        AppendFile(
            FileID(bytes: [number]), in: directory, name: FileName(name), owner: 0, size: size,
            now: time.bootTime)
    }

    /// The first bytes of a file with this label.
    private func head(_ label: String) -> [UInt8] {
        Array((label + String(repeating: "x", count: Fingerprint.longest)).utf8.prefix(Fingerprint.longest))
    }

    /// What became of the file from which a copy was made.
    enum Original: CaseIterable {
        case unknown, shorter, present, truncated, gone
    }

    @Test("what a copy held before anybody compared it is given up only if no other file can have held it")
    func copiedOverUnseen() throws {
        for original in Original.allCases {
            var streams = Streams([], settleTime: settleTime, most: .max, time: time)
            var pass = Pass()
            if original != .unknown {
                let size: Int64 = original == .shorter ? 1900 : 2000
                let file = file("x.jsonl", number: 1, size: size)
                _ = streams.meet(file, isRotated: false, was: .unknown)
                let fingerprint = Head(head("first")).fingerprint(of: Fingerprint.longest)
                streams.took(file, upTo: Mark(offset: size, hash: 1), fingerprint, in: &pass)
                switch original {
                case .truncated:
                    file.see(length: 100)
                    let inquiry = streams.inquiry(aboutChanged: file, head: head("next"), isRewritten: true)
                    _ = streams.changed(
                        file, .new, inquiry, isRotatedName: false, hasWaiting: false, in: &pass)
                case .gone:
                    streams.displace(file)
                    streams.leave(file, hasWaiting: false, in: &pass)
                case .unknown, .shorter, .present: break
                }
            }
            let copy = file("x.jsonl.1", number: 2, size: 2000)
            _ = streams.meet(copy, isRotated: true, was: .unknown)
            copy.see(length: 500)
            _ = streams.inquiry(aboutCopy: copy, head: head("next"))
            time.advance(by: settleTime * 100)
            streams.cutOffs.giveUpOld(time.bootTime, isHeldBack: false, suspected: [])
            let lost = streams.cutOffs.takeGivenUp().reduce(0) { $0 + $1.end - $1.begin }
            let expected: Int64 =
                switch original {
                case .unknown: 1500
                case .shorter: 100
                case .present, .truncated, .gone: 0
                }
            #expect(lost == expected, "\(original)")
        }
    }
}
