import Dispatch
import EventLoops
import Glibc
import TestKit
import Testing

@testable import Control

/// Clients that mean harm, or are broken: whatever they do, who asks next is answered.
@Suite("Hostile clients", .timeLimit(.minutes(3)))
struct HostileClientTests {
    /// A stats port and what listens on it.
    private func withStatsPort(_ body: (UInt16, EventLoop) async throws -> Void) async throws {
        try await withLoop("stats") { loop in
            let server = StatsServer(on: loop)
            let port = try await server.start()
            try await body(port, loop)
            await server.stop()
        }
    }

    /// A scrape is answered within two seconds.
    private func scrapes(_ port: UInt16) async throws -> Bool {
        try await onThread {
            try runShell("curl -s --max-time 2 http://127.0.0.1:\(port)/healthz").output == "ok\n"
        }
    }

    @Test(
        "after 33, 64 or 500 connections opened and closed at once, the next scrape is answered",
        arguments: [33, 64, 500])
    func openedAndClosed(count: Int) async throws {
        try await withStatsPort { port, _ in
            for _ in 0..<3 {
                let clients = try (0..<count).map { _ in try Client(port: port) }
                for client in clients { client.close() }
                #expect(try await scrapes(port))
            }
        }
    }

    @Test("silent open connections block no other client", arguments: [32, 40, 500])
    func keptOpen(count: Int) async throws {
        try await withStatsPort { port, _ in
            let clients = try (0..<count).map { _ in try Client(port: port) }
            for _ in 0..<3 { #expect(try await scrapes(port)) }
            for client in clients { client.close() }
            #expect(try await scrapes(port))
        }
    }

    @Test(
        "a request that has arrived is answered, although many connections arrived before it was read",
        arguments: [64, 500])
    func requestInACrowd(count: Int) async throws {
        try await withStatsPort { port, loop in
            let request = Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            let client = try Client(port: port)
            client.send(request)
            #expect(try await onThread { client.read() }.contains("ok\n"))
            let (isBusy, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            loop.post {
                isBusy.signal()
                goesOn.wait()
            }
            let crowd = try await onThread {
                isBusy.wait()
                let crowd = try (0..<count).map { _ in try Client(port: port) }
                client.send(request)
                goesOn.signal()
                return crowd
            }
            #expect(try await onThread { client.read() }.contains("ok\n"))
            for client in crowd + [client] { client.close() }
        }
    }

    @Test(
        "clients that send a byte at a time block no other, and are disconnected after the time for a request"
    )
    func tricklers() async throws {
        try await withStatsPort { port, _ in
            let request = Array("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ".utf8)
            let clients = try (0..<40).map { _ in try Client(port: port) }
            for place in 0..<20 {
                for client in clients { client.send([request[place]]) }
                if place % 10 == 0 { #expect(try await scrapes(port)) }
            }
            for client in clients { client.close() }
        }
    }

    @Test("half-closed clients block no other, and are answered if their request is complete")
    func halfClosed() async throws {
        try await withStatsPort { port, _ in
            let silent = try (0..<20).map { _ in try Client(port: port) }
            let partial = try (0..<20).map { _ in try Client(port: port) }
            for client in partial { client.send(Array("GET /met".utf8)) }
            for client in silent + partial { client.finishSending() }
            let whole = try Client(port: port)
            whole.send(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            whole.finishSending()
            #expect(try await onThread { whole.readAll() }.contains("ok\n"))
            #expect(try await scrapes(port))
            for client in silent + partial + [whole] { client.close() }
        }
    }

    @Test("clients that never read their answers block no other")
    func neverReading() async throws {
        try await withStatsPort { port, _ in
            let request = Array(
                String(repeating: "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 500).utf8)
            let clients = try (0..<40).map { _ in try Client(port: port) }
            for client in clients { client.send(request) }
            #expect(try await scrapes(port))
            for client in clients { client.close() }
            #expect(try await scrapes(port))
        }
    }
}
