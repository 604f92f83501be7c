internal import EventLoops

final class KafkaTicket: Ticket<KafkaRecord> {
    /// Those that every record has.
    var headers: [(name: String, value: String)] = []
    /// Ends the wait for reports without a question.
    var questionTimer: EventLoop.TimerID?
    var producer: KafkaProducer?

    /// A report's mark has so many bits for the record's place: more than a batch can hold.
    private static let placeBits: UInt = 28

    func mark(_ index: Int) -> UInt { UInt(id) << KafkaTicket.placeBits | UInt(index) }

    static func place(_ mark: UInt) -> (id: UInt64, index: Int) {
        (UInt64(mark >> placeBits), Int(mark & (1 << placeBits - 1)))
    }

    /// How many were handed over and have no outcome.
    var open: Int { next - settled }
}
