import Delivery
import EventLoops
import Glibc
import Model
import Synchronization
import TestKit
import Testing

/// Lives on a loop whose thread has a network namespace of its own: nothing outside is touched.
private actor Namespace {
    let loop: EventLoop

    init(on loop: EventLoop) { self.loop = loop }
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Gives the loop's thread a network of its own; sockets and processes made on it belong to it.
    func enter() -> Bool { enterOwnNetwork() }

    /// Runs `ip`; false when it failed.
    func ip(_ words: String) -> Bool {
        var arguments: [UnsafeMutablePointer<CChar>?] =
            (["ip"] + words.split(separator: " ").map(String.init)).map {
                strdup($0)
            }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        guard posix_spawn(&process, "/usr/sbin/ip", nil, nil, arguments, environ) == 0 else { return false }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 { guard errno == EINTR else { return false } }
        return status == 0
    }
}

/// Gives the calling thread a network of its own (`unshare(CLONE_NEWNET)`, which Glibc's module hides).
@Sendable private func enterOwnNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    guard let symbol = dlsym(nil, "unshare") else { return false }
    return unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000) == 0
}

/// Whether a network namespace can be made: a try on a thread that ends right after.
private let canMakeNamespaces: Bool = {
    guard access("/usr/sbin/ip", X_OK) == 0, let loop = try? EventLoop(name: "try"),
        (try? loop.start()) != nil
    else {
        return false
    }
    let answer = Mutex<Bool?>(nil)
    loop.post {
        let made = enterOwnNetwork()
        answer.withLock { $0 = made }
    }
    for _ in 0..<30_000 where answer.withLock({ $0 }) == nil { usleep(1000) }
    loop.stop()
    return answer.withLock { $0 } == true
}()

@Suite("Network monitor")
struct NetworkMonitorTests {
    @Test(
        "ac15: link down and up, an address, a moved default route: reported within a second or two",
        .enabled(if: canMakeNamespaces, "NOT TESTED: needs root (CAP_SYS_ADMIN) for unshare(2), and iproute2")
    )
    func ac15_namespace() async throws {
        let loop = try EventLoop(name: "network")
        try loop.start()
        defer { loop.stop() }
        let space = Namespace(on: loop)
        try #require(await space.enter())
        let kept = Kept(Mutex([]))
        let monitor = NetworkMonitor(
            on: loop,
            targets: [
                "lan": [NetworkTarget(host: "10.9.8.7")], "wan": [.name],
                "far": [NetworkTarget(host: "203.0.113.9")],
            ]
        ) { kept.add($0) }
        try await monitor.start()
        #expect(kept.routes == ["lan": false, "wan": false, "far": false])

        for words in [
            "link set lo up", "link add v0 type veth peer name v1", "link set v1 up", "link set v0 up",
            "addr add 10.9.8.1/24 dev v0",
        ] {
            try #require(await space.ip(words), "ip \(words)")
        }
        #expect(await eventually { kept.routes == ["lan": true, "wan": true, "far": false] })
        #expect(kept.changes == 0)

        try #require(await space.ip("route add default via 10.9.8.2"))
        #expect(await eventually { kept.routes["far"] == true && kept.changes == 1 })

        // The cable is pulled: the route is there, but it leads nowhere.
        try #require(await space.ip("link set v1 down"))
        #expect(await eventually { kept.routes == ["lan": false, "wan": false, "far": false] })
        try #require(await space.ip("link set v1 up"))
        #expect(await eventually { kept.routes == ["lan": true, "wan": true, "far": true] })

        // The default route moves within 30 s of the last change: it is held back.
        try #require(await space.ip("route replace default via 10.9.8.3"))
        #expect(kept.changes == 1)

        try #require(await space.ip("link set v0 down"))
        #expect(await eventually { kept.routes == ["lan": false, "wan": false, "far": false] })
        await monitor.stop()
    }

    @Test("ac15: a monitor that could not start, or has stopped, reports nothing")
    func ac15_notStarted() async throws {
        let loop = try EventLoop(name: "network")
        try loop.start()
        defer { loop.stop() }
        let kept = Kept(Mutex([]))
        let monitor = NetworkMonitor(on: loop, targets: ["lan": [.name]]) { kept.add($0) }
        await monitor.setTargets(["lan": [NetworkTarget(host: "127.0.0.1")]])
        #expect(kept.routes.isEmpty)
        try await monitor.start()
        #expect(kept.routes == ["lan": true])
        await monitor.stop()
        await monitor.setTargets(["lan": [NetworkTarget(host: "127.0.0.1")], "other": [.name]])
        #expect(kept.routes == ["lan": true])
    }

    @Test(
        "ac15: a moved default route is a change; containers that start and stop are not",
        .enabled(if: canMakeNamespaces, "NOT TESTED: needs root (CAP_SYS_ADMIN) for unshare(2), and iproute2")
    )
    func ac15_containersAreNoChange() async throws {
        let loop = try EventLoop(name: "network")
        try loop.start()
        defer { loop.stop() }
        let space = Namespace(on: loop)
        try #require(await space.enter())
        for words in [
            "link set lo up", "link add v0 type veth peer name v1", "link set v1 up", "link set v0 up",
            "addr add 10.9.8.1/24 dev v0", "route add default via 10.9.8.2",
        ] {
            try #require(await space.ip(words), "ip \(words)")
        }
        let kept = Kept(Mutex([]))
        let monitor = NetworkMonitor(on: loop, targets: ["wan": [.name]]) { kept.add($0) }
        try await monitor.start()
        for number in 0..<5 {
            try #require(await space.ip("link add c\(number) type veth peer name p\(number)"))
            try #require(await space.ip("link set c\(number) up"))
            try #require(await space.ip("addr add 172.17.\(number).1/24 dev c\(number)"))
            try #require(await space.ip("link del c\(number)"))
        }
        try #require(await space.ip("route replace default via 10.9.8.3"))
        #expect(await eventually { kept.changes == 1 })
        #expect(kept.changes == 1)
        await monitor.stop()
    }
}

/// What a monitor told.
private final class Kept: Sendable {
    private let news: Mutex<[NetworkNews]>

    init(_ news: consuming Mutex<[NetworkNews]>) { self.news = news }

    func add(_ one: NetworkNews) { news.withLock { $0.append(one) } }
    var routes: [DestinationName: Bool] { news.withLock { $0.last?.routes ?? [:] } }
    var changes: Int { news.withLock { $0.count { $0.hasChanged } } }
}
