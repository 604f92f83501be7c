import EventLoops
import Frames
import Glibc
import Model
import Spool
import TestKit
import Testing

/// In `incoming/` users share a directory, and any of them may make files that look like another's.
@Suite("Owners", .enabled(if: geteuid() == 0, "files of several users take root"), .timeLimit(.minutes(10)))
struct OwnersTests {
    /// What is done in the drop box, one after another.
    private enum Step {
        /// Lines that were never there, in a file under a rotated name or in an archive.
        case fresh(String, lines: [String], isPacked: Bool)
        /// Lines that their owner's files have held.
        case copy(String, lines: [String], isPacked: Bool)
        /// Lines that are added to the owner's current file.
        case append(String, lines: [String])
        /// The current file is copied and emptied.
        case copyTruncate(String, copy: String, lines: [String])
    }

    /// A content that looks like all others of its number at both ends: only what is between tells whose it is.
    private static func content(_ number: Int, of owner: UInt32) -> [String] {
        func line(_ label: String) -> String { "{\"\(label)\":\"\(String(repeating: "x", count: 90))\"}" }
        return (0..<14).map { line("head \($0)") }
            + (0..<3).map { line("middle \($0) of \(owner) in \(number + 100)") }
            + (0..<4).map { line("tail \($0) of \(number)") }
    }

    private static let stems = ["app.jsonl", "web.log", "held.ndjson"]

    /// The steps of one owner; the first name of each stem belongs to one of them.
    private static func steps(of owner: UInt32, _ owners: [UInt32], seed: UInt64) -> [Step] {
        var random = SplitMix64(seed: seed &* 1_000 + UInt64(owner))
        var steps: [Step] = []
        var number = 0
        var isShort: Set<String> = []
        for (index, stem) in stems.enumerated() {
            let isOwn = owners[(index + Int(seed % 7)) % owners.count] == owner && !stem.hasPrefix("held")
            var read: [[String]] = []
            for _ in 0..<5 {
                number += 1
                let name = "\(stem).\(number * 10 + Int(owner % 10))"
                let lines = content(number, of: owner)
                switch Int.random(in: 0..<6, using: &random) {
                case 0 where isOwn, 1 where isOwn:
                    steps.append(.append(stem, lines: lines))
                    steps.append(.copyTruncate(stem, copy: name, lines: lines))
                case 2 where !read.isEmpty:
                    steps.append(
                        .copy(
                            name, lines: read[Int.random(in: read.indices, using: &random)],
                            isPacked: Bool.random(using: &random)))
                case 3 where isShort.insert(stem).inserted:
                    steps.append(.fresh(name, lines: ["{\"started\":true}"], isPacked: false))
                case 4: steps.append(.fresh(name, lines: lines, isPacked: true))
                default:
                    steps.append(.fresh(name, lines: lines, isPacked: false))
                    read.append(lines)
                }
            }
        }
        return steps
    }

    private func put(
        _ lines: [String], _ isPacked: Bool, _ name: String, of owner: UInt32, _ spool: SpoolHarness
    )
        throws
    {
        let text = Array(lines.map { $0 + "\n" }.joined().utf8)
        spool.write(isPacked ? try FrameCompressor(.gzip).compress(text) : text, to: "incoming/.new")
        chown("\(spool.path)/incoming/.new", owner, owner)
        spool.rename("incoming/.new", to: "incoming/\(name)\(isPacked ? ".gz" : "")")
    }

    /// Does it, each step once the lines before it have come.
    private func run(_ steps: [(owner: UInt32, step: Step)], holding holder: UInt32?, seed: UInt64)
        async throws
        -> [UInt32: [String]]
    {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        let reader = try await spool.start { $0.afterRead = seed.isMultiple(of: 2) ? .keep : .delete }
        var held: Int32 = -1
        if let holder {
            try put([], false, "held.ndjson", of: holder, spool)
            held = open("\(spool.path)/incoming/held.ndjson", O_WRONLY | O_APPEND | O_CLOEXEC)
            #expect(write(held, "{", 1) == 1)
        }
        defer { close(held) }
        var expected: [UInt32: [String]] = [:]
        func lines(_ owner: UInt32) -> [String] {
            spool.queue.with { $0.lines.filter { $0.app == "uid-\(owner)" }.map(\.text) }
        }
        for (owner, step) in steps {
            switch step {
            case .fresh(let name, let lines, let isPacked):
                try put(lines, isPacked, name, of: owner, spool)
                expected[owner, default: []] += lines
            case .copy(let name, let lines, let isPacked): try put(lines, isPacked, name, of: owner, spool)
            case .append(let name, let lines):
                if !spool.exists("incoming/\(name)") { try put([], false, name, of: owner, spool) }
                spool.append(lines.map { $0 + "\n" }.joined(), to: "incoming/\(name)")
                expected[owner, default: []] += lines
            case .copyTruncate(let name, let copy, let lines):
                try put(lines, false, copy, of: owner, spool)
                truncate("\(spool.path)/incoming/\(name)", 0)
            }
            let count = expected[owner]?.count ?? 0
            let came = await spool.holds(within: .seconds(5)) { lines(owner).count >= count }
            #expect(
                came,
                "\(Seeds.again(seed)): \(count - lines(owner).count) lines of \(owner) are missing after \(step)"
            )
            guard came else { break }
        }
        // Time enough for what would come twice.
        await spool.pause(.seconds(1))
        for (owner, expected) in expected {
            #expect(lines(owner).sorted() == expected.sorted(), "\(Seeds.again(seed)): uid \(owner)")
        }
        let read = Dictionary(uniqueKeysWithValues: expected.keys.map { ($0, lines($0).sorted()) })
        await reader.stop()
        return read
    }

    @Test(
        "files of one user in incoming/ fare the same with and without other users' files",
        arguments: Seeds.list(1...4))
    func othersChangeNothing(seed: UInt64) async throws {
        let owners: [UInt32] = [65_001, 65_002, 65_003]
        var random = SplitMix64(seed: seed)
        var waiting = owners.map { owner in (owner, Self.steps(of: owner, owners, seed: seed)) }
        var all: [(owner: UInt32, step: Step)] = []
        while let index = waiting.indices.filter({ !waiting[$0].1.isEmpty }).randomElement(using: &random) {
            all.append((waiting[index].0, waiting[index].1.removeFirst()))
        }
        let together = try await run(all, holding: 65_004, seed: seed)
        for owner in owners {
            let alone = try await run(all.filter { $0.owner == owner }, holding: nil, seed: seed)
            #expect(together[owner] == alone[owner], "\(Seeds.again(seed)): uid \(owner)")
        }
    }

    @Test("memory of one user's files is not displaced by another's, nor lost at a start")
    func rememberedByOwner() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("incoming")
        var reader = try await spool.start()
        let (mine, other) = (Self.content(1, of: 65_001), Self.content(1, of: 65_002))
        try put(mine, false, "app.jsonl.1", of: 65_001, spool)
        await spool.untilLines(mine)
        await spool.until("it goes") { spool.names(in: "incoming").isEmpty }
        await reader.stop()
        reader = try await spool.start()
        try put(mine, true, "app.jsonl.2", of: 65_001, spool)
        try put(other, true, "app.jsonl.3", of: 65_002, spool)
        await spool.untilLines(mine + other)
        await spool.until("both are read") { reader.figures.dropFilesRead == 2 }
        #expect(spool.queue.lines.count == mine.count + other.count)
        await reader.stop()
    }

    @Test(
        "in a directory of `read` that anybody may write to, files of one user neither copy nor delay another's"
    )
    func sharedPlaces() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("logs")
        #expect(chmod("\(spool.path)/logs", 0o1777) == 0)
        let place = try #require(ReadPlace.of(app: "web", ["\(spool.path)/logs/*"])?.first)
        let reader = try await spool.start {
            ($0.place, $0.directory, $0.afterRead) = (place, place.root, .keep)
        }
        let (forged, own) = (Self.content(1, of: 65_001), Self.content(1, of: 65_002))
        for (name, owner, lines) in [("app.log", 65_001 as uid_t, forged), ("app.log.1", 65_002, own)] {
            spool.write(lines.map { $0 + "\n" }.joined(), to: "new")
            chown("\(spool.path)/new", owner, owner)
            spool.rename("new", to: "logs/\(name)")
            await spool.until("all of \(name)") { Set(lines).isSubset(of: spool.queue.lines) }
        }
        let held = open("\(spool.path)/logs/web.log", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        defer { close(held) }
        #expect(write(held, "{", 1) == 1 && fchown(held, 65_001, 65_001) == 0)
        spool.write("{\"n\":1}\n", to: "new")
        chown("\(spool.path)/new", 65_002, 65_002)
        spool.rename("new", to: "logs/web.log.1")
        await spool.until("what another's open file does not hold up") {
            spool.queue.lines.contains("{\"n\":1}")
        }
        await reader.stop()
    }
}
