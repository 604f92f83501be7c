/// Tasks of one loop that take turns, in the order in which they drew their tickets.
///
/// The ticket is drawn by a plain call, because a task may be interrupted by others of its loop at every `await`, also
/// before what it awaits begins. Not thread-safe: it belongs to one loop, and so do the tasks.
public final class Turnstile {
    private var drawn = 0
    private var serving = 0
    private var waiting: [Int: () -> Void] = [:]

    package init() {}

    /// A place in the order: right behind all that were drawn before. Whoever draws one takes its turn, and passes it on.
    public func drawTicket() -> Int {
        defer { drawn += 1 }
        return drawn
    }

    /// Returns when all before that ticket have passed on their turn.
    public func takeTurn(_ ticket: Int) async {
        await withCheckedContinuation { continuation in
            if serving == ticket { return continuation.resume() }
            waiting[ticket] = { continuation.resume() }
        }
    }

    package func passTurn() {
        serving += 1
        waiting.removeValue(forKey: serving)?()
    }

    /// Calls `body` once all earlier tickets have passed on their turn.
    public func whenFree(_ body: @escaping () -> Void) {
        let ticket = drawTicket()
        let turn = {
            body()
            self.passTurn()
        }
        if serving == ticket { turn() } else { waiting[ticket] = turn }
    }
}
