import EventLoops
import Model
import Testing

@testable import Delivery

/// A command by itself: no destination, no queue, no clock.
@Suite("How a command ends")
struct CommandEndsTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    @Test("a dispatch ends when it is over everywhere, with the reasons of those that were not sent all")
    func dispatch() {
        var command = Command(for: ["a", "b", "c"], timeout: nil, at: start)
        #expect(command.due == nil && !command.isOver)
        command.noteRequest(to: "a")
        #expect(did(command.close("a", nil)) == nil, "its requests were reported")
        #expect(did(command.close("a", .held)) == nil, "it ends once")
        #expect(did(command.close("b", nil)) == .noData("b", nil))
        command.noteRequest(to: "c")
        #expect(did(command.close("c", .offline)) == .noData("c", .offline))
        #expect(command.isOver)
        #expect(command.result(waiting: 7, isEnabled: true) == .stuck(["c": .offline]))
        var done = Command(for: ["a"], timeout: nil, at: start)
        _ = done.close("a", nil)
        #expect(done.result(waiting: 7, isEnabled: true) == .done)
    }

    @Test("a drain continues while events are left and nothing stops it")
    func drain() {
        var command = Command(for: ["a", "b"], timeout: .seconds(60), at: start)
        _ = command.close("a", nil)
        _ = command.close("b", nil)
        #expect(command.result(waiting: 3, isEnabled: true) == nil)
        command.reopen("a")
        #expect(!command.isOver && command.isOpen(at: "a") && !command.isOpen(at: "b"))
        _ = command.close("a", .retryAfter)
        #expect(command.result(waiting: 3, isEnabled: true) == .stuck(["a": .retryAfter]))
        #expect(command.result(waiting: 0, isEnabled: true) == .done)
        #expect(command.result(waiting: 0, isEnabled: false) == .stuck(["a": .disabled, "b": .disabled]))
    }

    @Test(
        "at its deadline a drain begins nothing more, and eight seconds later it ends without what is in flight"
    )
    func deadline() {
        var command = Command(for: ["a"], timeout: .seconds(60), at: start)
        #expect(did(command.expire(at: start + .seconds(59))).isEmpty)
        #expect(did(command.expire(at: start + .seconds(60))) == ["a"])
        #expect(command.isTimedOut && command.isOpen(at: "a") && command.due == start + .seconds(68))
        #expect(did(command.expire(at: start + .seconds(67))).isEmpty && !command.isOver)
        #expect(did(command.expire(at: start + .seconds(68))).isEmpty && command.isOver)
        #expect(did(command.close("a", .held)) == nil)
        #expect(command.result(waiting: 2, isEnabled: true) == .timedOut(waiting: 2))
    }

    @Test("a drain without time begins nothing and says what waits")
    func noTime() {
        let command = Command(for: ["a"], timeout: .zero, at: start)
        #expect(command.isOver && command.isTimedOut)
        #expect(command.result(waiting: 2, isEnabled: true) == .timedOut(waiting: 2))
        #expect(command.result(waiting: 0, isEnabled: true) == .done)
    }
}
