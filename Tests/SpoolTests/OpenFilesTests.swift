import EventLoops
import TestKit
import Testing

@testable import Spool

/// Which descriptors are closed, on files that nobody opens.
@Suite("Spool: open files")
struct OpenFilesTests {
    private let directory = SpoolDirectory(path: FileName("app"), depth: 1, id: FileID(bytes: []), 0)

    private func file(_ number: Int, size: Int64 = 0) -> AppendFile {
        AppendFile(
            FileID(bytes: [UInt8(number >> 8), UInt8(number & 255)]), in: directory,
            name: FileName("\(number).jsonl"),
            owner: 0, size: size, now: BootInstant(nanoseconds: 0))
    }

    @Test("the least recently used file is closed, finished files before those with unread lines")
    func order() {
        var open = OpenFiles(mostFiles: 3)
        let files = [file(0, size: 5), file(1), file(2), file(3), file(4)]
        for file in files.prefix(3) { #expect(open.opened(file).isEmpty) }
        open.use(files[1])
        #expect(open.opened(files[3]) == [files[2]])
        #expect(open.opened(files[4]) == [files[1]])
        // Only then a file whose lines wait, although it was used longest ago.
        files[3].see(length: 9)
        #expect(open.mayOpenMore)
        files[4].see(length: 9)
        #expect(!open.mayOpenMore)
        #expect(open.opened(file(5)) == [files[0]])
    }

    @Test(
        "in any order of uses the file closed is the one used longest ago, of those read to the end if there are any",
        arguments: Seeds.list(0..<20))
    func orderOfAnyUses(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var open = OpenFiles(mostFiles: 40)
        var held: [AppendFile] = []
        for number in 0..<2000 {
            let opened = file(number, size: Int64.random(in: 0...1, using: &random))
            let closed = open.opened(opened)
            for closed in closed {
                let hasRead = held.contains { !$0.hasUnread }
                let oldest = held.filter { $0.hasUnread != hasRead }.min { $0.lastUse < $1.lastUse }
                #expect(closed === oldest, "\(Seeds.again(seed))")
                held.removeAll { $0 === closed }
            }
            held.append(opened)
            for _ in 0..<3 {
                guard let used = held.randomElement(using: &random) else { break }
                open.use(used)
                switch Int.random(in: 0..<8, using: &random) {
                case 0: used.see(length: used.length + 1)
                case 1:
                    open.closed(used)
                    held.removeAll { $0 === used }
                default: break
                }
            }
        }
    }

    @Test("with a high limit, a file that is opened does not look at all open files", .timeLimit(.minutes(1)))
    func manyOpenFiles() {
        var open = OpenFiles(mostFiles: 10_000)
        var closed = 0
        for number in 0..<30_000 { closed += open.opened(file(number)).count }
        #expect(closed == 20_000)
    }

    @Test("files that cannot be opened again, are compared, or have a lease stay open beyond the limit")
    func pinned() {
        var open = OpenFiles(mostFiles: 1)
        let (nameless, leaving, compared, plain) = (file(0), file(1), file(2), file(3))
        for file in [nameless, leaving, compared] { _ = open.opened(file) }
        nameless.naming = .none
        leaving.enter(.leaving, at: BootInstant(nanoseconds: 0))
        open = OpenFiles(mostFiles: 1)
        for file in [nameless, leaving] { #expect(open.opened(file).isEmpty) }
        open.compare(compared)
        #expect(open.opened(compared).isEmpty)
        #expect(open.opened(plain).isEmpty)
        open.endComparison()
        #expect(open.opened(file(4)) == [compared, plain])
        #expect(open.count == 3)
    }

    @Test("files without a name beyond the limit are given up, those with the fewest unread bytes first")
    func nameless() {
        var open = OpenFiles(mostFiles: 2)
        let files = [7, 3, 9, 5].enumerated().map { file($0, size: $1) }
        for file in files {
            _ = open.opened(file)
            file.naming = .none
        }
        #expect(open.namelessBeyondLimit() == [files[1], files[3]])
        open.closed(files[1])
        #expect(open.namelessBeyondLimit() == [files[3]])
    }

    @Test("limits: as configured, what the process has left, half in a shortage, and at least two")
    func limits() {
        var open = OpenFiles(mostFiles: 100)
        #expect(open.fit(limit: .max, open: 0).mostFiles == nil)
        #expect(open.mostFiles == 100 && open.mostDirectories == OpenFiles.mostDirectories)
        #expect(open.fit(limit: 104, open: 20).mostFiles == 30)
        #expect(open.mostFiles == 30 && open.mostDirectories == 15)
        let files = (0..<20).map { file($0) }
        for file in files { #expect(open.opened(file).isEmpty) }
        let closing = open.shed(limit: 100)
        #expect(closing.mostFiles == 10 && closing.files == Array(files.prefix(10)) && open.isShort)
        for _ in 0..<5 { _ = open.shed(limit: 100) }
        #expect(open.mostFiles == 2 && open.mostDirectories == 2)
        // The shortage is over.
        #expect(open.fit(limit: 0, open: 16).mostFiles == 2 && !open.isShort)
        #expect(open.fit(limit: 1 << 40, open: 16).files.isEmpty && open.mostFiles == 100)
    }

    @Test("of directories the one that was opened longest ago is closed")
    func directories() {
        var open = OpenFiles(mostFiles: 1)
        _ = open.fit(limit: 32, open: 0)
        let all = (0..<4).map { SpoolDirectory(path: FileName("\($0)"), depth: 1, id: FileID(bytes: []), 0) }
        #expect(open.mostDirectories == 2)
        #expect(open.opened(all[0]).isEmpty && open.opened(all[1]).isEmpty)
        #expect(open.opened(all[2]).first === all[0])
        open.closed(all[1])
        #expect(open.opened(all[3]).isEmpty)
    }

    @Test(
        "random lives: at most the limit of files is open, except for those that must be", arguments: 1...20)
    func random(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let most = Int.random(in: 1...6, using: &random)
        var open = OpenFiles(mostFiles: most)
        var isOpen: Set<AppendFile> = []
        let files = (0..<30).map { file($0, size: Int64.random(in: 0...3, using: &random)) }
        for _ in 0..<500 {
            guard let file = files.randomElement(using: &random) else { continue }
            switch Int.random(in: 0..<6, using: &random) {
            case 0..<3:
                guard !isOpen.contains(file), file.hasName else {
                    open.use(file)
                    continue
                }
                isOpen.insert(file)
                let closing = open.opened(file)
                #expect(!closing.contains(file))
                for other in closing {
                    #expect(isOpen.remove(other) != nil && other.hasName && other.stage != .leaving)
                }
            case 3 where isOpen.contains(file): file.naming = .none
            case 4 where isOpen.contains(file):
                open.closed(file)
                isOpen.remove(file)
                file.naming = .written
            default:
                open.use(file)
            }
            let pinned = isOpen.count { !$0.hasName || $0.stage == .leaving }
            #expect(open.count == isOpen.count)
            #expect(isOpen.count <= most + pinned + 1)
        }
        #expect(Set(open.takeAll()) == isOpen && open.count == 0)
    }
}
