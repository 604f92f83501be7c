import Foundation
import Glibc
import Synchronization
import TestKit
import Testing

@testable import SpoolshipClient

/// A program at a socket that answers connections as a test says.
private final class PretendedAgent: Sendable {
    let path: String
    private let listener: Int32

    init(in directory: TemporaryDirectory) throws {
        path = "\(directory.path)/s"
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        try #require(result == 0 && listen(listener, 8) == 0)
    }

    deinit { close(listener) }

    /// The next connection, once its request has come, with the request.
    func accept() throws -> (connection: Int32, request: String) {
        let connection = Glibc.accept(listener, nil, nil)
        try #require(connection >= 0)
        var request = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        // The body is one object.
        while !request.hasSuffix("}") {
            let count = read(connection, &buffer, buffer.count)
            guard count > 0 else { break }
            request += String(decoding: buffer[..<count], as: UTF8.self)
        }
        return (connection, request)
    }

    static func say(_ text: String, to connection: Int32) {
        _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
    }

    static func beginCalls(on connection: Int32) {
        say("HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n{\"listening\": true}\n", to: connection)
    }

    static func call(_ function: String, _ number: Int, on connection: Int32) {
        say("{\"function\":\"\(function)\",\"parameters\":{\"n\":\(number)}}\n", to: connection)
    }
}

/// What happened, in order.
private final class Notes: Sendable {
    private let list = Mutex<[String]>([])
    var all: [String] { list.withLock { $0 } }
    func add(_ note: String) { list.withLock { $0.append(note) } }
}

/// The connection by which an app hears calls of tags, against a program that plays the agent.
@Suite("Connections for calls of tags")
struct FunctionCallTests {
    private func wait(_ what: Comment, _ holds: () -> Bool) {
        let end = ContinuousClock.now + .seconds(120)
        while !holds(), ContinuousClock.now < end { usleep(5_000) }
        #expect(holds(), what)
    }

    private static func text(_ error: AnalyticsError?) -> String {
        error.map { "\($0.code.rawValue): \($0.message)" } ?? "listening"
    }

    @Test("the observer gets each change once: no socket, a refusal, calls, the end of the connection")
    func reasons() throws {
        let directory = try TemporaryDirectory()
        let notes = Notes()
        let container = AgentContainer(id: "GTM-1", app: "shop", socket: "\(directory.path)/s")
        container.observeListening { notes.add(Self.text($0)) }
        try container.registerFunctionCallTagHandler({ _, _ in }, forTag: "f")
        wait("the first reason") { notes.all.count == 1 }
        #expect(container.listeningProblem?.code == .agentUnavailable && !container.isListening)
        let agent = try PretendedAgent(in: directory)
        let (refused, request) = try agent.accept()
        #expect(request.hasPrefix("POST /v1/function-calls HTTP/1.0\r\n"))
        #expect(request.hasSuffix(#"{"app":"shop","container":"GTM-1","functions":["f"]}"#))
        let body = #"{"error":{"code":"unknown_container","message":"there is no GTM-1"}}"#
        PretendedAgent.say("HTTP/1.1 404 Not Found\r\n\r\n\(body)", to: refused)
        close(refused)
        let (connection, _) = try agent.accept()
        #expect(container.listeningProblem?.message == "there is no GTM-1")
        PretendedAgent.beginCalls(on: connection)
        wait("the calls to begin") { container.isListening && notes.all.last == "listening" }
        #expect(container.listeningProblem == nil)
        close(connection)
        wait("the end") { notes.all.contains { $0.hasSuffix("the agent has ended the connection") } }
        let refusal = try #require(notes.all.firstIndex(of: "invalid_setting: there is no GTM-1"))
        #expect(
            notes.all.dropFirst(refusal + 1).prefix(2) == [
                "listening", "agent_unavailable: the agent has ended the connection",
            ], "\(notes.all)")
        #expect(notes.all[0].hasPrefix("agent_unavailable: \(directory.path)/s: "), "\(notes.all)")
        container.close()
    }

    @Test("calls that were sent before a reconnect are handled; those of a removed function are counted")
    func reconnect() throws {
        let directory = try TemporaryDirectory()
        let agent = try PretendedAgent(in: directory)
        let notes = Notes()
        let hasBegun = DispatchSemaphore(value: 0)
        let mayGoOn = DispatchSemaphore(value: 0)
        let container = AgentContainer(id: "GTM-1", app: "shop", socket: agent.path)
        try container.registerFunctionCallTagHandler(
            { name, parameters in
                guard case .integer(let number)? = parameters["n"] else { return }
                if number == 1 {
                    hasBegun.signal()
                    mayGoOn.wait()
                }
                notes.add("\(name) \(number)")
            }, forTag: "f")
        let (first, _) = try agent.accept()
        PretendedAgent.beginCalls(on: first)
        wait("the first connection") { container.isListening }
        // While the first call is handled two more arrive, and the app registers another function.
        PretendedAgent.call("f", 1, on: first)
        #expect(hasBegun.wait(timeout: .now() + 120) == .success)
        PretendedAgent.call("f", 2, on: first)
        PretendedAgent.call("f", 3, on: first)
        try container.registerFunctionCallTagHandler({ name, _ in notes.add(name) }, forTag: "g")
        #expect(!container.isListening)
        mayGoOn.signal()
        let (second, request) = try agent.accept()
        #expect(request.hasSuffix(#""functions":["f","g"]}"#), "\(request)")
        #expect(notes.all == ["f 1", "f 2", "f 3"])
        // The agent sees the end of the first connection, so it counts what it sends from now on.
        #expect(send(first, "x", 1, Int32(MSG_NOSIGNAL)) < 0)
        close(first)
        PretendedAgent.beginCalls(on: second)
        wait("the second connection") { container.isListening }
        PretendedAgent.call("f", 1, on: second)
        PretendedAgent.call("g", 2, on: second)
        container.close()
        mayGoOn.signal()
        wait("the call of the removed function") { container.unhandledCalls >= 1 }
        close(second)
    }

    @Test("the thread ends with the container, without a call and without a look at the clock")
    func endsWithContainer() throws {
        let directory = try TemporaryDirectory()
        let agent = try PretendedAgent(in: directory)
        var container: AgentContainer? = AgentContainer(id: "GTM-1", app: "shop", socket: agent.path)
        try container?.registerFunctionCallTagHandler({ _, _ in }, forTag: "f")
        let (connection, _) = try agent.accept()
        PretendedAgent.beginCalls(on: connection)
        wait("the connection") { container?.isListening == true }
        container = nil
        var byte: UInt8 = 0
        var entry = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 120_000) == 1)
        #expect(read(connection, &byte, 1) == 0)
        close(connection)
    }

    @Test("an agent that confirms and ends the connection at once is asked less and less often")
    func confirmedAndClosed() throws {
        let directory = try TemporaryDirectory()
        let agent = try PretendedAgent(in: directory)
        let container = AgentContainer(id: "GTM-1", app: "shop", socket: agent.path)
        let begin = steadyNanoseconds()
        try container.registerFunctionCallTagHandler({ _, _ in }, forTag: "f")
        for _ in 0..<5 {
            let (connection, _) = try agent.accept()
            PretendedAgent.beginCalls(on: connection)
            close(connection)
        }
        // Four waits: 100, 200, 400 and 800 ms. One is short again only after a connection that, on a slow
        // machine, lasted a second, which takes longer than the waits that it saves.
        #expect(steadyNanoseconds() - begin >= 1_400_000_000)
        container.close()
    }

    @Test("waits between attempts grow from a tenth of a second to half a minute, and begin anew")
    func waits() {
        var wait = ReconnectWait()
        #expect((0..<11).map { _ in wait.take() }.prefix(4) == [100, 200, 400, 800])
        #expect(wait.take() == 30_000)
        wait.reset()
        #expect(wait.take() == 100)
    }
}
