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

/// A TCP client that does what it is asked and no more. Used by one thread at a time.
final class Client: Sendable {
    private let descriptor: Int32

    init(port: UInt16) throws {
        descriptor = try Descriptor(
            checking: socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket"
        ).release()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw SystemError("connect") }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends what fits; a server that has closed the connection is no failure.
    func send(_ bytes: [UInt8]) {
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
    }

    /// What comes next; nothing at the end.
    func read() -> String {
        var block = [UInt8](repeating: 0, count: 65_536)
        return String(decoding: block[..<max(0, recv(descriptor, &block, block.count, 0))], as: UTF8.self)
    }

    func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// All that comes until the end.
    func readAll() -> String {
        var all: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &block, block.count, 0)
            guard count > 0 else { return String(decoding: all, as: UTF8.self) }
            all.append(contentsOf: block[..<count])
        }
    }

    func close() { _ = Glibc.close(descriptor) }
}
