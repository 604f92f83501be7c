import Control
import Model
import Synchronization
import TestKit
import Testing

@testable import spoolship

/// Old files that are taken through an agent which is not alone.
@Suite("run --once beside pieces of another command", .timeLimit(.minutes(1)))
struct BackfillRunTests {
    /// An agent's memory of one file, and of the lines that it got, whoever sent them.
    private final class Taken: Sendable {
        struct State {
            var place: String?
            var lines = ""
            /// So many pieces are taken from a command that is gone just before they come from this one.
            var ghosts = 0
            /// Most lines that fit into one transaction.
            var most = Int.max
            /// The file's path, as the command gives it.
            var path: String?
        }

        let state: Mutex<State>

        init(ghosts: Int, most: Int) { state = Mutex(State(ghosts: ghosts, most: most)) }

        func answer(_ request: ControlRequest, pieceBytes: Int) -> ControlResponse {
            state.withLock { state in
                guard request.method == "POST" else {
                    return .json([
                        "place": JSONValue(state.place), "piece_bytes": .integer(pieceBytes),
                        "max_event_size": 1000,
                    ])
                }
                guard request.query["from"] == state.place else {
                    return ControlRefusal(409, "elsewhere", "read twice?").response
                }
                state.path = request.query["file"]
                let text = String(decoding: request.body, as: UTF8.self)
                let count = text.utf8.count { $0 == UInt8(ascii: "\n") }
                guard count <= state.most else {
                    return ControlRefusal(413, "too_large", "it does not fit").response
                }
                state.place = request.query["end"]
                state.lines += text
                guard state.ghosts == 0 else {
                    state.ghosts -= 1
                    return ControlRefusal(409, "elsewhere", "read twice?").response
                }
                return .json(["read": .integer(count), "refused": 0, "quarantined": 0])
            }
        }
    }

    private func run(
        ghosts: Int = 0, mostLines: Int = .max, pieceBytes: Int = 30, suffix: String = ".jsonl",
        from root: String = ""
    ) async throws -> (code: ExitCode, said: KeptConsole, lines: String, all: String, path: String?) {
        let taken = Taken(ghosts: ghosts, most: mostLines)
        var routes = ControlRoutes()
        routes.add("GET", "/v1/status") { _ in .json([:]) }
        for method in ["GET", "POST"] {
            routes.add(method, "/v1/backfill") { taken.answer($0, pieceBytes: pieceBytes) }
        }
        let agent = try await FakeAgent(routes)
        let all = (0..<12).map { "{\"name\":\"e\($0)\"}\n" }.joined()
        let file = "\(agent.directory.path)/old\(suffix)"
        try writeFile(file, all)
        let kept = KeptConsole()
        let code = CommandLineTool(console: kept.console())
            .run(["run", "--once", root + file, "--config", agent.configuration])
        await agent.stop()
        let (lines, path) = taken.state.withLock { ($0.lines, $0.path) }
        return (code, kept, lines, all, path)
    }

    @Test(
        "a late piece of a killed command is accepted: the backfill continues after it, nothing is repeated")
    func goesOnBehindALatePiece() async throws {
        let (code, said, lines, all, _) = try await run(ghosts: 1)
        #expect(code == .success, "\(said.errorOutput)")
        #expect(lines == all)
    }

    @Test("of two commands that read the same file, one ends with 75 and says why")
    func endsBesideAnother() async throws {
        let (code, said, lines, all, _) = try await run(ghosts: 2)
        #expect(code == .temporaryFailure && said.errorOutput.contains("read twice?"))
        #expect(all.hasPrefix(lines) && lines != all)
    }

    @Test(
        "lines that do not fit into one transaction are offered in smaller pieces, each once",
        arguments: [".jsonl", ".json"])
    func offersFewerLines(suffix: String) async throws {
        let (code, said, lines, all, _) = try await run(mostLines: 2, pieceBytes: 10_000, suffix: suffix)
        #expect(code == .success, "\(said.errorOutput)")
        #expect(lines == all)
    }

    @Test("the size of pieces halves with each refusal, and grows again ever more slowly")
    func pieceSize() {
        var size = PieceSize(most: 100)
        for pieces in [16, 32] {
            let isSmaller = size.wasRefused(100)
            #expect(isSmaller && size.bytes == 50)
            for _ in 1..<pieces { size.wasTaken() }
            #expect(size.bytes == 50)
            size.wasTaken()
            #expect(size.bytes == 100)
        }
        let isSmaller = size.wasRefused(1)
        #expect(!isSmaller)
    }

    @Test("a single line that does not fit ends with 65 and the agent's reason")
    func endsIfOneLineDoesNotFit() async throws {
        let (code, said, lines, _, _) = try await run(mostLines: 0, pieceBytes: 10_000)
        #expect(code == .badData && said.errorOutput.contains("it does not fit"))
        #expect(lines.isEmpty)
    }

    @Test("the agent gets a whole path, also of a file that is named by a relative one")
    func wholePath() async throws {
        let up = String(repeating: "../", count: 40)
        let (code, said, lines, all, path) = try await run(from: up + ".")
        #expect(code == .success && lines == all, "\(said.errorOutput)")
        #expect(path?.hasPrefix("/") == true && path?.hasSuffix("/old.jsonl") == true)
    }
}
