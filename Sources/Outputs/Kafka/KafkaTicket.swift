internal import EventLoops

/// A call of `publish` with the records that wait for reports.
final class KafkaTicket: Ticket<KafkaRecord> {
    /// Headers of all records.
    var headers: [(name: String, value: String)] = []
    /// Timer of the question that is asked if no report comes.
    var questionTimer: EventLoop.TimerID?
    /// The producer that has the records.
    var producer: KafkaProducer?

    /// Bits of a mark for the record's index: enough for more records than a batch can hold.
    private static let placeBits: UInt = 28

    /// The mark of a record: the call's id and the record's index in one number, because the library
    /// returns just one.
    func mark(_ index: Int) -> UInt { UInt(id) << KafkaTicket.placeBits | UInt(index) }

    /// Call and index of a mark.
    static func place(_ mark: UInt) -> (id: UInt64, index: Int) {
        (UInt64(mark >> placeBits), Int(mark & (1 << placeBits - 1)))
    }

    /// Number of records that were handed over and have no outcome.
    var open: Int { next - settled }
}
