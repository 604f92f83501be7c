internal import EventLoops
internal import Model
internal import Outputs

/// The event that `check --connect --send` sends; a person recognises it at the receiver.
struct TestEvent {
    /// The name by which readers find the event, or filter it out.
    static let name = "spoolship_test"
    /// The app that the event claims to come from.
    static let app = "spoolship"

    let id: UUIDv7
    let time: Timestamp

    init(at time: Timestamp, random: some RandomNumberGenerator = KernelRandom()) {
        self.time = time
        var generator = UUIDv7Generator()
        var random = random
        id = generator.next(at: time, using: &random)
    }

    /// A batch of this event alone. The event has only the members that every event has, because a table may
    /// have no columns for others.
    func batch(for destination: DestinationName) -> Batch {
        let event: JSONValue = [
            "name": .string(TestEvent.name), "app": .string(TestEvent.app), "id": .string(id.description),
            "timestamp": .string("\(time)"), "observed_at": .string("\(time)"),
        ]
        let line = Array("\(event)\n".utf8)
        var header = BatchHeader(
            id: id, destination: destination, priority: .normal, events: 1, bytes: line.count,
            acceptedAt: time, firstEventTime: time)
        header.apps = [TestEvent.app]
        let part = Batch.Part(
            compression: .none, frame: line, bytes: line.count, eventsInFrame: 1, events: 0..<1)
        return Batch(header: header, parts: [part])
    }
}

/// The result of sending a test event.
public struct TestDelivery: Sendable {
    /// Why the receiver does not have the event; nil if it acknowledged the event.
    public let refusal: String?
    /// The server's answers, if it gives any: the status and the beginning of the body.
    public let answers: [(status: Int, text: String)]

    init(_ outcome: Outcome, _ answers: [AnswerExcerpt]) {
        refusal = TestDelivery.refusal(outcome)
        self.answers = answers.map { ($0.status, $0.text) }
    }

    /// The result if the output cannot be made.
    init(notMade reason: String) {
        refusal = reason
        answers = []
    }

    /// The failure in an outcome; nil for an acknowledged event.
    private static func refusal(_ outcome: Outcome) -> String? {
        switch outcome {
        case .acknowledged: nil
        case .offline: "there is no route to the receiver"
        case .partial, .rejected, .acknowledgedWithLoss:
            "the receiver rejected the event: \(outcome.failure?.message ?? "without a reason")"
        case .tooLarge(_, let failure), .retry(let failure), .retryAfter(_, let failure), .held(let failure):
            failure.message
        }
    }
}
