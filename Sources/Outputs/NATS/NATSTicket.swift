internal import EventLoops
internal import Model

struct NATSMessage {
    var subject: String
    /// Whether it is a question whose answer is wanted, and not to be stored.
    var isQuestion = false
    /// The header block, its blank line included.
    var headers: [UInt8]
    var payload: [UInt8]

    /// Its size as servers measure it.
    var size: Int { headers.count + payload.count }
}

final class NATSTicket: Ticket<NATSMessage> {
    /// The messages that an acknowledgement is awaited for, by the last word of its subject.
    var awaited: [UInt64: Int] = [:]
    var link: NATSLink?
    var lastSent: BootInstant?
    var answer: [UInt8]?

    var repeats: [Int] = []

    override func report(or rest: Outcome?) -> TicketReport {
        var report = super.report(or: rest)
        report.refusal = link == nil ? rest : nil
        report.mayBeStored = !awaited.isEmpty
        (report.answer, report.repeats) = (answer, repeats)
        return report
    }
}
