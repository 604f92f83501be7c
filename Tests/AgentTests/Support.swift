import Configuration
import Control
import EventLoops
import Glibc
import Logs
import TestKit

@testable import Agent

/// A loop with a thread for the time of a test.
func withLoop<Value>(_ body: (EventLoop) async throws -> Value) async throws -> Value {
    let loop = try EventLoop(name: "test")
    try loop.start()
    defer { loop.stop() }
    return try await body(loop)
}

/// An agent that runs in this process, in a directory of its own, and a client of its control socket.
struct RunningAgent {
    let client: ControlClient
    let service: AgentService
    let routes: ControlRoutes
    /// Where all of it lies: `out.jsonl` is what its destination `main` has got.
    let directory: String
}

/// Runs an agent with one destination, a file, for the time of a test.
///
/// - Parameters:
///   - settings: TOML after that of the destination; `DIRECTORY` is where all of it lies.
///   - files: what lies there before it starts.
func withAgent(
    _ settings: String = "", files: [String: String] = [:], _ body: (RunningAgent) async throws -> Void
) async throws {
    let scratch = try TemporaryDirectory()
    let directory = scratch.path
    for (name, content) in files { try writeFile("\(directory)/\(name)", content) }
    mkdir("\(directory)/spool", 0o755)
    let text = """
        [agent]
        state_directory = "DIRECTORY/state"
        runtime_directory = "DIRECTORY"
        [spool]
        directory = "DIRECTORY/spool"
        [stats]
        listen = "off"
        [control]
        socket = "DIRECTORY/control.sock"
        [[destination]]
        name = "main"
        type = "file"
        path = "DIRECTORY/out.jsonl"
        \(settings)
        """.replacing("DIRECTORY", with: directory)
    try writeFile("\(directory)/spoolship.toml", text)
    let loaded = try Settings.load(path: "\(directory)/spoolship.toml").settings
    try await withLoop { loop in
        let service = try AgentService(
            loaded, path: "\(directory)/spoolship.toml",
            program: ProgramIdentity(version: "1.2.3", commit: "unknown", toolchain: "Swift"),
            sink: StandardErrorLog(level: .error), task: nil, on: loop)
        try service.readerLoop.start()
        try service.storeLoop.start()
        let parts = try await service.start()
        let result: Result<Void, any Error>
        do {
            try await body(
                RunningAgent(
                    client: ControlClient(socket: "\(directory)/control.sock"), service: service,
                    routes: service.ports.control?.routes ?? ControlRoutes(), directory: directory))
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await service.stop(parts)
        service.readerLoop.stop()
        service.storeLoop.stop()
        try result.get()
    }
}
