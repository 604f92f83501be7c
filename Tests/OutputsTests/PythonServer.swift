import EventLoops
import Foundation
import Model
import TestKit
import Testing

@testable import Outputs

/// A server of Tests/OutputsTests/Fixtures, with the packages that scripts/bootstrap installs, as a child of the tests.
final class PythonServer: Sendable {
    let ports: [Int]
    private let child: pid_t

    /// The port, or the first.
    var port: Int { ports[0] }

    /// - Parameter portFile: where it writes its ports, a line, when it is ready.
    init(_ script: String, _ words: [String], portFile: String) async throws {
        let here = URL(filePath: #filePath).deletingLastPathComponent()
        let python = here.deletingLastPathComponent().deletingLastPathComponent().appending(
            path: "build/python/bin/python3"
        ).path
        try #require(access(python, X_OK) == 0, "no \(python): run scripts/bootstrap test")
        var arguments: [UnsafeMutablePointer<CChar>?] =
            ([python, here.appending(path: "Fixtures/\(script)").path] + words)
            .map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid = pid_t()
        try #require(posix_spawn(&pid, python, nil, nil, &arguments, environ) == 0)
        child = pid
        // On a new machine its libraries, hundreds of megabytes, are read from the disk first.
        let isReady = await eventually(within: .seconds(120)) { text(of: portFile).hasSuffix("\n") }
        ports = text(of: portFile).dropLast().split(separator: " ").compactMap { Int($0) }
        guard isReady, !ports.isEmpty else {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw NotStarted(script: script)
        }
    }

    /// Whether it has not ended by itself.
    var isRunning: Bool {
        var status = siginfo_t()
        return waitid(P_PID, id_t(child), &status, WEXITED | WNOHANG | WNOWAIT) == 0 && status.si_signo == 0
    }

    /// Asks the server's own test address `/_test/…`.
    func steer(
        _ method: HTTPRequest.Method, _ what: String, _ body: String = "", on loop: EventLoop
    ) async throws -> Data {
        var options = HTTPOptions(url: "http://127.0.0.1:\(port)")
        options.heedsEnvironment = false
        let settings = TransferSettings(options: options, tls: try TLSMaterial(options.settings.tls).contents)
        let client = try HTTPClient(on: loop, settings: settings)
        let request = HTTPRequest(
            method: method, url: "\(options.url)/_test/\(what)", headers: ["Content-Type: application/json"],
            body: Array(body.utf8),
            answerLimit: 1 << 24)
        guard case .answered(let answer) = await client.perform(request), answer.status == 200,
            answer.extent == .whole
        else {
            throw SteeringError()
        }
        return Data(answer.body)
    }

    struct SteeringError: Error {}

    deinit {
        kill(child, SIGKILL)
        waitpid(child, nil, 0)
    }

    struct NotStarted: Error { var script: String }
}
