import EventLoops
import Model
import TestKit
import Testing

@testable import Outputs

/// A credential that is good for five minutes.
private struct Word: Expiring, Equatable {
    var text: String

    func lifetime(from now: Timestamp) -> Duration? { .seconds(300) }
    func margin(of lifetime: Duration) -> Duration { lifetime / 5 }
}

/// A holder of a credential whose service answers when the test says so.
private actor Desk: LoopActor {
    nonisolated let loop: EventLoop
    private let time = ManualTime()
    private let temporary = Temporary<Word>()
    private var secret = "old"
    private var answers: [CheckedContinuation<Void, Never>] = []
    private(set) var requests = 0

    init(on loop: EventLoop) { self.loop = loop }

    func current() async -> String {
        do {
            let given = try await temporary.current(time) { () async throws(CredentialFailure) in
                requests += 1
                let word = "\(secret) \(requests)"
                await withCheckedContinuation { answers.append($0) }
                if secret == "down" { throw CredentialFailure(kind: .connect, "down") }
                return Word(text: word)
            }
            return given.value.text
        } catch {
            return "none"
        }
    }

    /// Lets the service answer the request that waits.
    func answer() {
        answers.removeFirst().resume()
    }

    var isAsked: Bool { !answers.isEmpty }

    func use(_ new: String) {
        secret = new
        temporary.forget()
    }

    func renewNext() { temporary.renewNext() }
}

@Suite("Credentials that a service issues")
struct TemporaryTests {
    private func withDesk(_ body: (Desk) async throws -> Void) async throws {
        let loop = try EventLoop(name: "desk")
        try loop.start()
        defer { loop.stop() }
        try await body(Desk(on: loop))
    }

    @Test("a credential that was requested with an old secret is not kept: the new one is used at once")
    func forgottenInFlight() async throws {
        try await withDesk { desk in
            async let first = desk.current()
            #expect(await eventually { await desk.isAsked })
            await desk.use("new")
            await desk.answer()
            #expect(await eventually { await desk.isAsked })
            await desk.answer()
            #expect(await first == "new 2")
            #expect(await desk.current() == "new 2")
            #expect(await desk.requests == 2)
        }
    }

    @Test("a wish for another credential during a request is met by the next request")
    func wishedInFlight() async throws {
        try await withDesk { desk in
            async let first = desk.current()
            #expect(await eventually { await desk.isAsked })
            await desk.renewNext()
            await desk.answer()
            #expect(await first == "old 1")
            async let second = desk.current()
            #expect(await eventually { await desk.isAsked })
            await desk.answer()
            #expect(await second == "old 2")
            #expect(await desk.current() == "old 2")
        }
    }
}
