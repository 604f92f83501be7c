import EventLoops
import Glibc
import Model
import Spool
import TestKit
import Testing

/// What a writer adds to a file that has lost its name, right before it closes it.
@Suite("Last lines of files without a name", .timeLimit(.minutes(5)))
struct LastLinesTests {
    private static let files = 40

    /// Writes files, has them lose their names, and gives each a last line in an instant in which the reader does not run.
    private func lastLines(of spool: SpoolHarness, _ reader: SpoolReader, lose: (String) -> Void) async {
        let names = (0..<Self.files).map { "f\($0).jsonl" }
        let writers = names.map {
            open("\(spool.path)/\($0)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o660)
        }
        for (index, writer) in writers.enumerated() {
            #expect(write(writer, "\(index)\n", "\(index)\n".utf8.count) > 0)
        }
        let first = names.indices.map { "\($0)" }
        await spool.untilLines(first)
        for name in names { lose(name) }
        // Silence: the reader asks now and then whether the writers are gone.
        await spool.pause(.milliseconds(300))
        await withCheckedContinuation { continuation in
            spool.loop.post {
                // A stalled agent: what was to be done by now is done before it hears of the last lines.
                usleep(200_000)
                for (index, writer) in writers.enumerated() {
                    #expect(write(writer, "last \(index)\n", "last \(index)\n".utf8.count) > 0)
                    close(writer)
                }
                continuation.resume()
            }
        }
        await spool.untilLines(first + names.indices.map { "last \($0)" })
        await spool.until("the files are let go") { reader.figures.appendFiles == 0 }
        #expect(reader.figures.bytesGivenUp == 0)
    }

    @Test("the last lines of a deleted file are read before it is released", arguments: [true, false])
    func deleted(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        let reader = try await spool.start { $0.isWatching = isWatching }
        await lastLines(of: spool, reader) { spool.remove($0) }
        await reader.stop()
    }

    @Test(
        "the last lines of a file that was moved out are read before it is released",
        arguments: [true, false])
    func movedOut(isWatching: Bool) async throws {
        let spool = try SpoolHarness()
        let outside = try TemporaryDirectory()
        let reader = try await spool.start { $0.isWatching = isWatching }
        await lastLines(of: spool, reader) { rename("\(spool.path)/\($0)", "\(outside.path)/\($0)") }
        await reader.stop()
    }
}
