internal import EventLoops
internal import Model

/// The result of a `Ticket`, returned to the output that sent the messages.
struct TicketReport: Sendable {
    /// Outcome of each item, in the order of the items.
    var outcomes: [Outcome]
    /// Bytes handed over to the kernel or the library: messages with their heads, or keys and values.
    var sentBytes: Int
    /// Why nothing could be sent, for instance because there was no connection; nil if sending began.
    var refusal: Outcome?
    /// Whether the server may have stored a message for which no acknowledgement came.
    var mayBeStored = false
    /// Positions of items that the server acknowledged as repeats.
    var repeats: [Int] = []
    /// Body of the reply, if the ticket was a question.
    var answer: [UInt8]?
}

/// Messages or records that are being sent, from the call that brings them until the last of them has an
/// outcome. Belongs to its client's loop; not thread-safe. The call waits in `continuation`, which is
/// resumed exactly once, by `finish`.
class Ticket<Item> {
    /// Number by which timers and cancellation find the ticket: a ticket that has ended is no longer found.
    let id: UInt64
    /// The items to send, in order.
    let items: [Item]
    /// Resumes the call that waits for the ticket.
    private let continuation: CheckedContinuation<TicketReport, Never>
    /// Outcome of each item; nil while it is open.
    private var outcomes: [Outcome?]
    /// Number of items that have an outcome.
    private(set) var settled = 0
    /// Index of the first item that was not handed over yet.
    var next = 0
    /// The timer that ends the ticket at the request timeout; nil once it has fired or was cancelled.
    var timer: EventLoop.TimerID?
    /// Bytes handed over so far.
    var sentBytes = 0

    init(_ id: UInt64, _ items: [Item], _ continuation: CheckedContinuation<TicketReport, Never>) {
        self.id = id
        self.items = items
        self.continuation = continuation
        outcomes = Array(repeating: nil, count: items.count)
    }

    /// Whether every item has an outcome.
    var isSettled: Bool { settled == items.count }

    /// Sets the outcome of an item. The first outcome stays: an acknowledgement that comes twice, or with a
    /// bad index, changes nothing.
    func settle(_ index: Int, _ outcome: Outcome) {
        // A pattern, because `==` would copy and compare whole outcomes.
        guard outcomes.indices.contains(index), case nil = outcomes[index] else { return }
        outcomes[index] = outcome
        settled += 1
    }

    /// Ends the ticket: resumes the waiting call. Items without an outcome get `remaining`.
    func finish(_ remaining: Outcome?) { continuation.resume(returning: report(or: remaining)) }

    /// The report as of now; items without an outcome get `remaining`, or a retry if that is nil.
    func report(or remaining: Outcome?) -> TicketReport {
        let fallback =
            remaining ?? .retry(Failure(kind: .connection, message: "the wait ended before an answer came"))
        return TicketReport(outcomes: outcomes.map { $0 ?? fallback }, sentBytes: sentBytes)
    }
}
