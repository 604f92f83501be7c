/// Lets tasks of one loop take turns, in the order in which they drew tickets.
///
/// Drawing is a synchronous call, because at each `await` other tasks of the loop may run first, also
/// before the awaited call begins. Not thread-safe: it belongs to one loop, and so do the tasks.
public final class Turnstile {
    /// Number of tickets drawn so far.
    private var drawn = 0
    /// The ticket whose turn it is.
    private var serving = 0
    /// The continuation of each waiting ticket.
    private var waiting: [Int: () -> Void] = [:]

    package init() {}

    /// A position in the order, after all tickets drawn before. The task that draws a ticket must take its
    /// turn and pass it on, or all later tickets wait forever.
    public func drawTicket() -> Int {
        defer { drawn += 1 }
        return drawn
    }

    /// Returns when all earlier tickets have passed on their turn.
    public func takeTurn(_ ticket: Int) async {
        assert(ticket >= serving && ticket < drawn, "a ticket is used twice, or was not drawn")
        await withCheckedContinuation { continuation in
            if serving == ticket { return continuation.resume() }
            waiting[ticket] = { continuation.resume() }
        }
    }

    /// Ends the present turn and resumes the next ticket, if its holder waits already.
    package func passTurn() {
        assert(serving < drawn, "a turn is passed on that nobody had")
        serving += 1
        waiting.removeValue(forKey: serving)?()
    }

    /// Calls `body` when all earlier tickets have passed on their turn, and then passes on its own.
    public func whenFree(_ body: @escaping () -> Void) {
        let ticket = drawTicket()
        let turn = {
            body()
            self.passTurn()
        }
        if serving == ticket {
            turn()
        } else {
            waiting[ticket] = turn
        }
    }
}
