internal import EventLoops
internal import Model

/// What became of some records.
struct KafkaReport: Sendable {
    /// What became of each, in their order.
    var outcomes: [Outcome]
    /// The bytes of keys and events that were handed over.
    var sentBytes = 0
}

/// Some records on their way, from the call that brings them to its return.
///
/// Lives on its client's loop.
final class KafkaTicket {
    let id: UInt64
    let records: [KafkaRecord]
    /// Those that every record has.
    let headers: [(name: String, value: String)]
    let continuation: CheckedContinuation<KafkaReport, Never>
    var outcomes: [Outcome?]
    /// How many have an outcome.
    var settled = 0
    /// The first that was not handed over yet.
    var next = 0
    var timer: EventLoop.TimerID?
    /// Ends the wait for reports without a question.
    var questionTimer: EventLoop.TimerID?
    /// Where they were handed over.
    var producer: KafkaProducer?
    var sentBytes = 0

    /// A report's mark has so many bits for the record's place: more than a batch can hold.
    private static let placeBits: UInt = 28

    init(
        _ id: UInt64, _ records: [KafkaRecord], _ headers: [(name: String, value: String)],
        _ continuation: CheckedContinuation<KafkaReport, Never>
    ) {
        self.id = id
        self.records = records
        self.headers = headers
        self.continuation = continuation
        outcomes = Array(repeating: nil, count: records.count)
    }

    /// Names a record in its report.
    func mark(_ index: Int) -> UInt { UInt(id) << KafkaTicket.placeBits | UInt(index) }

    /// The call and the record that a mark names.
    static func place(_ mark: UInt) -> (id: UInt64, index: Int) {
        (UInt64(mark >> placeBits), Int(mark & (1 << placeBits - 1)))
    }

    /// How many were handed over and have no outcome.
    var open: Int { next - settled }

    /// Notes what became of one.
    func settle(_ index: Int, _ outcome: Outcome) {
        guard outcomes.indices.contains(index), outcomes[index] == nil else { return }
        outcomes[index] = outcome
        settled += 1
    }

    /// Ends it: those without an outcome share this one.
    func finish(_ rest: Outcome?) {
        let fallback = rest ?? .retry(Failure(kind: .connection, message: "given up here before an answer came"))
        continuation.resume(
            returning: KafkaReport(outcomes: outcomes.map { $0 ?? fallback }, sentBytes: sentBytes))
    }
}
