internal import EventLoops
internal import Model

/// One message, ready to be sent.
struct NATSMessage {
    /// The header block, its blank line included.
    var headers: [UInt8]
    /// What it holds.
    var payload: [UInt8]

    /// Its size as servers measure it.
    var size: Int { headers.count + payload.count }
}

/// What became of some messages.
struct NATSReport: Sendable {
    /// What became of each, in their order.
    var outcomes: [Outcome]
    /// What kept all of them from being sent; nil when there was a connection.
    var refusal: Outcome?
    /// Whether a message may be stored that no acknowledgement came for.
    var mayBeStored = false
    /// The bytes of the messages that were handed over.
    var sentBytes = 0
}

/// Some messages on their way, from the call that brings them to its return.
///
/// Lives on its client's loop.
final class NATSTicket {
    let id: UInt64
    let messages: [NATSMessage]
    let continuation: CheckedContinuation<NATSReport, Never>
    var outcomes: [Outcome?]
    /// How many have an outcome.
    var settled = 0
    /// The first that was not sent yet.
    var next = 0
    /// The messages that an acknowledgement is awaited for, by the last word of its subject.
    var awaited: [UInt64: Int] = [:]
    var timer: EventLoop.TimerID?
    /// The connection that they were sent over.
    var link: NATSLink?
    var lastSent: BootInstant?
    var mayBeStored = false
    var sentBytes = 0

    init(_ id: UInt64, _ messages: [NATSMessage], _ continuation: CheckedContinuation<NATSReport, Never>) {
        self.id = id
        self.messages = messages
        self.continuation = continuation
        outcomes = Array(repeating: nil, count: messages.count)
    }

    /// Notes what became of one.
    func settle(_ index: Int, _ outcome: Outcome) {
        guard outcomes[index] == nil else { return }
        outcomes[index] = outcome
        settled += 1
    }

    /// Ends it: those without an outcome share this one.
    func finish(_ rest: Outcome?) {
        mayBeStored = mayBeStored || !awaited.isEmpty
        let fallback = rest ?? .retry(Failure(kind: .connection, message: "given up here before an answer came"))
        continuation.resume(
            returning: NATSReport(
                outcomes: outcomes.map { $0 ?? fallback }, refusal: link == nil ? rest : nil,
                mayBeStored: mayBeStored, sentBytes: sentBytes))
    }
}
