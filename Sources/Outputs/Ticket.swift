internal import EventLoops
internal import Model

struct TicketReport: Sendable {
    /// What happened to each, in their order.
    var outcomes: [Outcome]
    /// The bytes that were handed over: of messages, of keys and events.
    var sentBytes: Int
    /// What kept all of them from being sent; nil when there was a connection.
    var refusal: Outcome?
    /// Whether a message may be stored that no acknowledgement came for.
    var mayBeStored = false
    /// The places of those that were taken for repeats.
    var repeats: [Int] = []
    /// What came back for a question.
    var answer: [UInt8]?
}

/// Some messages or records on their way, from the call that brings them to its return. Lives on its client's loop.
class Ticket<Item> {
    let id: UInt64
    let items: [Item]
    private let continuation: CheckedContinuation<TicketReport, Never>
    private var outcomes: [Outcome?]
    private(set) var settled = 0
    /// The first that was not handed over yet.
    var next = 0
    var timer: EventLoop.TimerID?
    var sentBytes = 0

    init(_ id: UInt64, _ items: [Item], _ continuation: CheckedContinuation<TicketReport, Never>) {
        self.id = id
        self.items = items
        self.continuation = continuation
        outcomes = Array(repeating: nil, count: items.count)
    }

    var isSettled: Bool { settled == items.count }

    func settle(_ index: Int, _ outcome: Outcome) {
        guard outcomes.indices.contains(index), outcomes[index] == nil else { return }
        outcomes[index] = outcome
        settled += 1
    }

    /// Ends it: those without an outcome share this one.
    func finish(_ rest: Outcome?) { continuation.resume(returning: report(or: rest)) }

    func report(or rest: Outcome?) -> TicketReport {
        let fallback = rest ?? .retry(Failure(kind: .connection, message: "given up before an answer came"))
        return TicketReport(outcomes: outcomes.map { $0 ?? fallback }, sentBytes: sentBytes)
    }
}
