internal import EventLoops
internal import Model

/// A message to publish, or a question to JetStream.
struct NATSMessage {
    var subject: String
    /// Whether the reply is wanted as an answer; otherwise it is an acknowledgement.
    var isQuestion = false
    /// The header block with the blank line at its end.
    var headers: [UInt8]
    var payload: [UInt8]

    /// Size as servers measure it against `max_payload`.
    var size: Int { headers.count + payload.count }
}

/// A call of `publish` with the messages that wait for acknowledgements.
final class NATSTicket: Ticket<NATSMessage> {
    /// Messages without an acknowledgement: the index, by the last word of the reply's subject.
    var awaited: [UInt64: Int] = [:]
    /// The connection that carries the messages; nil while the call waits for one.
    var link: NATSLink?
    /// When the last message was sent, to see whether the server has sent anything since.
    var lastSent: BootInstant?
    /// Payload of the reply to a question.
    var answer: [UInt8]?

    /// Indices of messages that the stream recognised as repeats.
    var repeats: [Int] = []

    override func report(or remaining: Outcome?) -> TicketReport {
        var report = super.report(or: remaining)
        report.refusal = link == nil ? remaining : nil
        report.mayBeStored = !awaited.isEmpty
        report.answer = answer
        report.repeats = repeats
        return report
    }
}
