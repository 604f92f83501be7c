internal import EventLoops
internal import Model

/// One message, ready to be sent.
struct NATSMessage {
    /// Where a question goes, whose answer is wanted; nil: it is to be stored under the destination's subject.
    var subject: String?
    /// The header block, its blank line included.
    var headers: [UInt8]
    /// What it holds.
    var payload: [UInt8]

    /// Its size as servers measure it.
    var size: Int { headers.count + payload.count }
}

/// What happened to some messages.
struct NATSReport: Sendable {
    /// What happened to each, in their order.
    var outcomes: [Outcome]
    /// What kept all of them from being sent; nil when there was a connection.
    var refusal: Outcome?
    /// Whether a message may be stored that no acknowledgement came for.
    var mayBeStored = false
    /// The bytes of the messages that were handed over.
    var sentBytes = 0
    /// What came back for a question.
    var answer: [UInt8]?
}

/// Some messages or records on their way, from the call that brings them to its return. Lives on its client's loop.
class Ticket<Report: Sendable> {
    let id: UInt64
    let continuation: CheckedContinuation<Report, Never>
    private(set) var outcomes: [Outcome?]
    /// How many have an outcome.
    private(set) var settled = 0
    /// The first that was not handed over yet.
    var next = 0
    var timer: EventLoop.TimerID?
    var sentBytes = 0

    init(_ id: UInt64, count: Int, _ continuation: CheckedContinuation<Report, Never>) {
        self.id = id
        self.continuation = continuation
        outcomes = Array(repeating: nil, count: count)
    }

    /// Notes what happened to one.
    func settle(_ index: Int, _ outcome: Outcome) {
        guard outcomes.indices.contains(index), outcomes[index] == nil else { return }
        outcomes[index] = outcome
        settled += 1
    }

    /// What happened to each: those without an outcome share this one.
    func outcomes(or rest: Outcome?) -> [Outcome] {
        let fallback = rest ?? .retry(Failure(kind: .connection, message: "given up here before an answer came"))
        return outcomes.map { $0 ?? fallback }
    }
}

/// Some messages on their way.
final class NATSTicket: Ticket<NATSReport> {
    let messages: [NATSMessage]
    /// The messages that an acknowledgement is awaited for, by the last word of its subject.
    var awaited: [UInt64: Int] = [:]
    /// The connection that they were sent over.
    var link: NATSLink?
    var lastSent: BootInstant?
    /// What came back for a question.
    var answer: [UInt8]?

    init(_ id: UInt64, _ messages: [NATSMessage], _ continuation: CheckedContinuation<NATSReport, Never>) {
        self.messages = messages
        super.init(id, count: messages.count, continuation)
    }

    /// Ends it: those without an outcome share this one.
    func finish(_ rest: Outcome?) {
        continuation.resume(
            returning: NATSReport(
                outcomes: outcomes(or: rest), refusal: link == nil ? rest : nil, mayBeStored: !awaited.isEmpty,
                sentBytes: sentBytes, answer: answer))
    }
}
