import Glibc
import Logs
import Model
@testable import Spool
import TestKit
import Testing

/// Files whose bad lines the quarantine could not hold: they are all that is left of these lines.
@Suite("Spool: files that have to stay", .timeLimit(.minutes(2)))
struct StayingTests {
    @Test(
        "a file that must stay is read once, keeps its name across restarts, and is removed when it may be",
        arguments: [("a.json", "a.json"), ("a.jsonl", "a.jsonl.1")])
    func stays(name: String, last: String) async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        // A hidden name: it is not read yet.
        spool.write("{\"name\":\"a\"}\n", to: "shop/.new")
        let file = spool.handle(of: "shop/.new")
        spool.queue.with { _ = $0.staying.insert(file) }
        var reader = try await spool.start()
        spool.rename("shop/.new", to: "shop/\(name)")
        await spool.untilLines(["{\"name\":\"a\"}"])
        if last != name { spool.rename("shop/\(name)", to: "shop/\(last)") }
        for round in 0..<2 {
            // Another that was read and rotated in the same way goes: so there was time enough.
            spool.write("{\"name\":\"b\(round)\"}\n", to: "shop/.other")
            spool.rename("shop/.other", to: "shop/b\(round)\(last.dropFirst())")
            await spool.until("the other one goes") {
                spool.queue.lines.count == 2 + round
                    && !spool.names(in: "shop").contains { $0.contains("b\(round)") }
            }
            await spool.until("it has its name") { spool.names(in: "shop") == [last] }
            #expect(spool.queue.lines.filter { $0 == "{\"name\":\"a\"}" }.count == 1)
            #expect(await reader.path(ofFile: file) == "shop/\(last)")
            await reader.stop()
            reader = try await spool.start()
            if name == last {
                await spool.until("it is found") {
                    spool.log.messages.filter { $0.text.hasPrefix("file stays") }.count == 2 + round
                }
            }
        }
        spool.queue.with { $0.staying = [] }
        await reader.removeReleased()
        await spool.until("it goes") { spool.names(in: "shop").isEmpty }
        #expect(spool.queue.lines.filter { $0 == "{\"name\":\"a\"}" }.count == 1)
        await reader.stop()
    }

    @Test("an app with too many files that stay waits, and no other app does; later its files are read")
    func mostStay() async throws {
        let spool = try SpoolHarness()
        for app in ["bad", "good"] { spool.makeDirectory(app) }
        let reader = try await spool.start { $0.mostStayingDrops = 8 }
        func drop(_ number: Int, of app: String, stays: Bool) {
            spool.write("{\"\(app)\":\(number)}\n", to: "\(app)/.new")
            if stays {
                spool.queue.with { [file = spool.handle(of: "\(app)/.new")] in _ = $0.staying.insert(file) }
            }
            spool.rename("\(app)/.new", to: "\(app)/\(number).json")
        }
        for number in 0..<4 {
            drop(number, of: "bad", stays: true)
            await spool.until("it stays") {
                spool.log.messages.count { $0.text.hasPrefix("file stays") } == number + 1
            }
        }
        drop(4, of: "bad", stays: true)
        await spool.until("it waits") { reader.figures.complaints.contains { $0.path == "bad/*.json" } }
        drop(0, of: "good", stays: false)
        await spool.until("the other app's is read") { spool.queue.lines.contains("{\"good\":0}") }
        #expect(!spool.queue.lines.contains("{\"bad\":4}") && spool.exists("bad/4.json"))
        // Somebody removes some of them: nothing is left to remember of these, and there is room again.
        for number in 0..<3 { spool.remove("bad/\(number).json") }
        await spool.until("the one that waited is read") { spool.queue.lines.contains("{\"bad\":4}") }
        await spool.until("their records go") { spool.queue.with { $0.done.count } == 2 }
        spool.queue.with { $0.staying = [] }
        await reader.removeReleased()
        await spool.until("all are read and go") {
            spool.queue.lines.count == 6 && spool.names(in: "bad").isEmpty
        }
        await spool.until("nothing is reported any more") { reader.figures.complaints.isEmpty }
        await reader.stop()
    }

    @Test("a hidden file that stays is not forgotten when another one under its old name is deleted")
    func movedAway() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        spool.write("{\"n\":1}\n", to: "shop/.new")
        let file = spool.handle(of: "shop/.new")
        spool.queue.with { _ = $0.staying.insert(file) }
        let reader = try await spool.start()
        spool.rename("shop/.new", to: "shop/a.json")
        await spool.until("it stays") { spool.log.messages.contains { $0.text.hasPrefix("file stays") } }
        spool.rename("shop/a.json", to: "shop/.a")
        spool.write("", to: "shop/a.json")
        spool.remove("shop/a.json")
        // Another that is read and goes: by then the changes before it were taken up, and what was unlinked has been synced.
        spool.write("{\"n\":2}\n", to: "shop/.new")
        spool.rename("shop/.new", to: "shop/b.json")
        await spool.until("the other one's record has gone") {
            spool.queue.with { $0.lines.count == 2 && $0.done.map(\.handle) == [file] }
                && !spool.exists("shop/b.json")
        }
        spool.rename("shop/.a", to: "shop/c.json")
        while await reader.path(ofFile: file) != "shop/c.json" { await spool.pause(.milliseconds(5)) }
        #expect(spool.queue.lines.count == 2)
        await reader.stop()
    }

    @Test("a drop file that gets an append file's name while it is read is read once, and continues as one")
    func renamedWhileRead() async throws {
        let spool = try SpoolHarness()
        spool.makeDirectory("shop")
        let reader = try await spool.start { ($0.afterRead, $0.commitBytes) = (.keep, 4096) }
        spool.queue.with { $0.isFull = true }
        let pad = String(repeating: "x", count: 100)
        let lines = (0..<60_000).map { "{\"n\":\($0),\"pad\":\"\(pad)\"}" }
        spool.write(lines.joined(separator: "\n") + "\n", to: "shop/.new")
        spool.rename("shop/.new", to: "shop/x.json")
        while await reader.filesInHand == 0 { await spool.pause(.milliseconds(5)) }
        spool.rename("shop/x.json", to: "shop/x.jsonl")
        while await !reader.hasSeen("x.jsonl", in: "shop") { await spool.pause(.milliseconds(5)) }
        spool.queue.with { $0.isFull = false }
        await spool.until("all is read") { spool.queue.lines.count >= lines.count }
        while await reader.knownAppendFiles == 0 { await spool.pause(.milliseconds(5)) }
        spool.append("{\"n\":-1}\n", to: "shop/x.jsonl")
        await spool.untilLines(lines + ["{\"n\":-1}"])
        await reader.stop()
    }
}

extension SpoolReader {
    fileprivate var filesInHand: Int { drops.countInHand }
    fileprivate var knownAppendFiles: Int { lives.streams.files.count }

    /// Whether a name that appeared was looked at.
    fileprivate func hasSeen(_ name: String, in directory: String) -> Bool {
        let directory = tree[FileName(directory)]
        return directory?.files[FileName(name)] != nil || directory?.settling[FileName(name)] != nil
    }
}
