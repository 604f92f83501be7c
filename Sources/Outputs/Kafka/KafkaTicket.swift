internal import EventLoops
internal import Model

/// Some records on their way.
final class KafkaTicket: Ticket {
    let records: [KafkaRecord]
    /// Those that every record has.
    let headers: [(name: String, value: String)]
    /// Ends the wait for reports without a question.
    var questionTimer: EventLoop.TimerID?
    /// Where they were handed over.
    var producer: KafkaProducer?

    /// A report's mark has so many bits for the record's place: more than a batch can hold.
    private static let placeBits: UInt = 28

    init(
        _ id: UInt64, _ records: [KafkaRecord], _ headers: [(name: String, value: String)],
        _ continuation: CheckedContinuation<TicketReport, Never>
    ) {
        self.records = records
        self.headers = headers
        super.init(id, count: records.count, continuation)
    }

    /// Names a record in its report.
    func mark(_ index: Int) -> UInt { UInt(id) << KafkaTicket.placeBits | UInt(index) }

    /// The call and the record that a mark names.
    static func place(_ mark: UInt) -> (id: UInt64, index: Int) {
        (UInt64(mark >> placeBits), Int(mark & (1 << placeBits - 1)))
    }

    /// How many were handed over and have no outcome.
    var open: Int { next - settled }
}
