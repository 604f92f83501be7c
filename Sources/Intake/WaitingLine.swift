/// Tasks of one loop that wait for a change.
///
/// Not thread-safe: it belongs to one loop, and so do the tasks.
final class WaitingLine {
    /// The wait was ended because the agent stops.
    struct Ended: Error {}

    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var isOver = false

    /// Waits for `wakeAll`, unless there is no need any more.
    ///
    /// - Parameter isNeedless: looked at in the moment in which the wait begins: a change that came before is not missed.
    /// - Throws: `Ended` after `end`.
    func wait(unless isNeedless: () -> Bool) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            if isOver { return continuation.resume(throwing: Ended()) }
            if isNeedless() { return continuation.resume() }
            waiting.append(continuation)
        }
    }

    /// Ends the wait of all that wait now.
    func wakeAll() {
        let woken = waiting
        waiting = []
        for continuation in woken { continuation.resume() }
    }

    /// Ends all waiting, now and later, with `Ended`.
    func end() {
        isOver = true
        let ended = waiting
        waiting = []
        for continuation in ended { continuation.resume(throwing: Ended()) }
    }
}
