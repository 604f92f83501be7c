import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Outputs

/// A request without an answer in time: the message names the step at which the request stopped.
@Suite("Steps of a timeout")
struct TimeoutStepTests {
    /// Facts of a request that was written whole, 1000 bytes, with a limit of 10 s.
    private func facts(_ change: (inout TimeoutStep.Facts, inout TCPState) -> Void) -> TimeoutStep.Facts {
        var facts = TimeoutStep.Facts(limit: .seconds(10))
        var connection = TCPState()
        facts.size = 1000
        facts.written = 1000
        change(&facts, &connection)
        facts.connection = connection
        return facts
    }

    @Test("before the request a timeout names its step: name, connection, proxy or TLS")
    func before() {
        #expect(TimeoutStep(facts { facts, _ in facts.isResolved = false }) == .name)
        #expect(TimeoutStep(facts { facts, _ in facts.isConnected = false }) == .connecting)
        let proxied = facts { facts, _ in
            facts.awaitsProxy = true
            facts.awaitsTLS = true
        }
        #expect(TimeoutStep(proxied) == .proxy)
    }

    @Test("in a TLS handshake silence, lost packets and lost large packets are distinguished")
    func handshake() {
        func step(_ change: (inout TCPState) -> Void) -> TimeoutStep {
            TimeoutStep(
                facts { facts, connection in
                    facts.awaitsTLS = true
                    change(&connection)
                })
        }
        #expect(step { _ in } == .handshake(.silent))
        #expect(step { $0.retransmissions = 3 } == .handshake(.lost))
        #expect(step { $0.outOfOrder = 1 } == .handshake(.largePacketsMissing))
        #expect(step { $0.received = 90 } == .handshake(.unfinished))
        var unknown = facts { facts, _ in facts.awaitsTLS = true }
        unknown.connection = nil
        #expect(TimeoutStep(unknown) == .handshake(.unfinished))
    }

    @Test("in a request the message has the acknowledged bytes and what blocks the rest")
    func request() {
        func step(_ change: (inout TimeoutStep.Facts, inout TCPState) -> Void) -> TimeoutStep {
            TimeoutStep(facts(change))
        }
        #expect(step { _, _ in } == .answer(size: 1000))
        // The end of TLS is on its way already.
        #expect(
            step {
                $1.unacknowledged = 24
                $1.inFlight = 1
            } == .answer(size: 1000))
        #expect(step { $1.unacknowledged = 24 } == .sending(acknowledged: 976, of: 1000, .unread))
        #expect(
            step {
                $1.unacknowledged = 400
                $1.inFlight = 1
                $1.retransmissions = 5
            } == .sending(acknowledged: 600, of: 1000, .lost))
        #expect(step { $1.unacknowledged = 400 } == .sending(acknowledged: 600, of: 1000, .unread))
        #expect(
            step {
                $0.written = 800
                $1.unacknowledged = 400
                $1.inFlight = 1
            } == .sending(acknowledged: 400, of: 1000, .slow))
        // The head and TLS are queued as well.
        #expect(step { $1.unacknowledged = 1400 } == .sending(acknowledged: 0, of: 1000, .unread))
        var unknown = facts { _, _ in }
        unknown.connection = nil
        #expect(TimeoutStep(unknown) == .unknown)
    }

    @Test("a thread without CPU time is named before the network, but not after a short wait")
    func starved() {
        #expect(
            TimeoutStep(
                facts { facts, _ in
                    facts.isConnected = false
                    facts.starved = .seconds(6)
                }) == .starved(.seconds(6)))
        #expect(TimeoutStep(facts { facts, _ in facts.starved = .seconds(4) }) == .answer(size: 1000))
        var short = TimeoutStep.Facts(limit: .milliseconds(200))
        short.isConnected = false
        short.starved = .milliseconds(900)
        #expect(TimeoutStep(short) == .connecting)
        #expect(
            TimeoutStep.starved(.seconds(6)).words(for: "collector.test").contains(
                "the agent itself waited 6 s for the CPU"))
    }

    @Test("the wait for a CPU counts from the request, or from at most a second before it")
    func wait() {
        var count: Int64? = 5_000_000_000
        var wait = CPUWait { count }
        #expect(wait.sinceMark == .zero)
        let start = BootInstant(nanoseconds: 0)
        wait.begin(at: start)
        count = 6_000_000_000
        #expect(wait.sinceMark == .seconds(1))
        wait.begin(at: start + .milliseconds(999))
        #expect(wait.sinceMark == .seconds(1))
        wait.begin(at: start + .seconds(1))
        #expect(wait.sinceMark == .zero)
        count = nil
        #expect(wait.sinceMark == .zero)
        #expect(CPUWait.waited(in: "12 3456 7\n") == 3456)
        #expect(CPUWait.waited(in: "12") == nil)
        // This kernel counts.
        var real = CPUWait()
        real.begin(at: start)
        #expect(real.sinceMark >= .zero)
    }

    @Test("the kernel's state of a connection gives acknowledged bytes, a blocked receiver, and its end")
    func kernel() throws {
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        pair.forEach { close($0) }
        #expect(TCPState(of: pair[0]) == nil)
        let listener = try FullListener(backlog: 8, fills: false)
        let socket = try #require(listener.connect(waits: true))
        defer { close(socket) }
        #expect(TCPState(of: socket) == TCPState())
        let kilobyte = [UInt8](repeating: 0x61, count: 1024)
        while send(socket, kilobyte, kilobyte.count, Int32(MSG_DONTWAIT)) > 0 {}
        let deadline = SystemTime().bootTime + .seconds(30)
        // All that fits was acknowledged; the kernel only asks now and then whether there is room.
        while TCPState(of: socket)?.inFlight != 0, SystemTime().bootTime < deadline { sched_yield() }
        let state = try #require(TCPState(of: socket))
        #expect(state.unacknowledged > 0)
        #expect(state.inFlight == 0)
    }

    @Test("a machine that does not acknowledge a connection is named")
    func unconnected() async throws {
        let bench = try Bench()
        let listener = try FullListener(backlog: 0, fills: true)
        let output = try bench.output(to: "http://127.0.0.1:\(listener.port)/") {
            $0.connectTimeout = .milliseconds(300)
        }
        let failure = try #require(retried(await output.send(try Sample.batch(5))))
        #expect(failure.kind == .timeout)
        #expect(
            failure.message.contains("nothing answers the request for a connection (TCP SYN)"),
            "\(failure.message)")
    }
}

/// A listening socket that never accepts, with a small receive buffer; its queue of connections is filled if wanted, so that the
/// kernel drops further requests for a connection.
private final class FullListener {
    let port: UInt16
    private let listener: Int32
    private var waiting: [Int32] = []

    init(backlog: Int32, fills: Bool) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var size: Int32 = 8192
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        var address = FullListener.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, backlog) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(bound)
        port = UInt16(bigEndian: address.sin_port)
        // One connection more than the backlog fits, and is complete; one that waits shows that the queue is full.
        if fills {
            for waits in [true, false, false] {
                if let socket = connect(waits: waits) { waiting.append(socket) }
            }
        }
    }

    deinit {
        waiting.forEach { close($0) }
        close(listener)
    }

    func connect(waits: Bool) -> Int32? {
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (waits ? 0 : SOCK_NONBLOCK.rawValue)
        let socket = socket(AF_INET, Int32(kind), 0)
        var address = FullListener.address(port: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 || errno == EINPROGRESS else {
            close(socket)
            return nil
        }
        return socket
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }
}
