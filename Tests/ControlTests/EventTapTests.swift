import Model
import Synchronization
import TestKit
import Testing

@testable import Control

@Suite("Tap", .timeLimit(.minutes(1)))
struct EventTapTests {
    private func offer(_ tap: EventTap, _ app: String, _ priority: Priority, _ line: String) {
        Array(line.utf8).withUnsafeBytes { tap.offer(app: app, priority: priority, line: $0) }
    }

    private func next(_ watcher: EventTap.Watcher) async -> String? {
        await watcher.next().map { String(decoding: $0.lines, as: UTF8.self) }
    }

    @Test("watchers see what they requested, and other events cost nothing")
    func filters() async {
        let tap = EventTap()
        #expect(!tap.isWatched)
        offer(tap, "shop", .normal, "{}")
        let all = tap.add(.init())
        let shop = tap.add(.init(app: "shop", priority: .critical))
        let named = tap.add(.init(name: "b"))
        #expect(tap.isWatched)
        offer(tap, "shop", .normal, #"{"name":"a"}"# + "\n")
        offer(tap, "shop", .critical, #"{"name":"b"}"#)
        offer(tap, "blog", .critical, #"{"name":"c","x":{"name":"b"}}"#)
        #expect(
            await next(all) == #"{"name":"a"}"# + "\n" + #"{"name":"b"}"# + "\n"
                + #"{"name":"c","x":{"name":"b"}}"#
                + "\n")
        #expect(await next(shop) == #"{"name":"b"}"# + "\n")
        #expect(await next(named) == #"{"name":"b"}"# + "\n")
        for watcher in [all, shop, named] { tap.remove(watcher) }
        #expect(!tap.isWatched)
    }

    @Test("a slow watcher misses events, and gets their number")
    func slowWatcher() async {
        let tap = EventTap()
        let watcher = tap.add(.init())
        let name = String(repeating: "x", count: 200_000)
        for _ in 0..<100 { offer(tap, "shop", .normal, #"{"name":"\#(name)"}"#) }
        let got = await watcher.next()
        let lines = got?.lines.count { $0 == UInt8(ascii: "\n") } ?? 0
        #expect(lines == 5)
        #expect(got?.missed == 100 - lines)
        offer(tap, "shop", .normal, "{}")
        #expect(await next(watcher) == "{}\n")
    }

    @Test("over the socket events arrive as they pass, and the tap closes when the client disconnects")
    func overTheSocket() async throws {
        let tap = EventTap()
        var routes = ControlRoutes()
        routes.add("GET", "/v1/tap") { request in
            .stream { await tap.send(app: request.query["app"], priority: nil, name: nil, to: $0) }
        }
        try await withControlServer(routes) { (client, _) async throws in
            // Offers until the client has seen enough.
            let isDone = Mutex(false)
            async let offering: Void = offerUntil(tap) { isDone.withLock { $0 } }
            let (status, seen) = try await onThread {
                var seen: [UInt8] = []
                let status = try client.stream("GET", "/v1/tap", query: [("app", "shop")]) { piece in
                    seen += piece
                    return seen.count { $0 == UInt8(ascii: "\n") } < 3
                }
                return (status, seen)
            }
            isDone.withLock { $0 = true }
            await offering
            #expect(status == 200)
            #expect(seen.starts(with: Array(#"{"name":"seen"}"#.utf8)))
            #expect(await eventually { !tap.isWatched })
        }
    }

    private func offerUntil(_ tap: EventTap, _ isDone: @Sendable () -> Bool) async {
        _ = await eventually {
            offer(tap, "shop", .normal, #"{"name":"seen"}"#)
            offer(tap, "blog", .normal, #"{"name":"not seen"}"#)
            return isDone()
        }
    }
}
