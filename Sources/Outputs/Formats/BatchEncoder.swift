public import EventLoops
public import Model

/// A format: how events become a body, and what an answer in that format says. One folder each.
///
/// A pure value: bytes in, bytes out. The same batch gives the same bytes at every attempt.
public protocol BatchEncoder: Sendable {
    /// The body's `Content-Type`.
    var contentType: String { get }
    /// Whether the body is the stored lines as they are, so that a stored frame may be the body.
    var sendsLinesAsStored: Bool { get }
    /// How much of an answer to so many events the format reads, in bytes; 0: its status says all.
    func answerLimit(events: Int) -> Int
    /// Whether an answer of success has a body that says what became of the events.
    var readsAnswers: Bool { get }
    /// Where the format has its token.
    var tokenPlace: TokenPlace { get }
    /// Arguments of the format's own that the address gets, escaped: `measurement_id=G-1`; empty for none.
    var arguments: String { get }
    /// Headers of the format's own, besides `Content-Type`.
    var headers: [HTTPOptions.Header] { get }

    /// Whether a batch may take several requests; then `requests` says which.
    var boundsRequests: Bool { get }

    /// Which events go into which request, as places in the batch: each in one, in their order.
    func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]]

    /// Which events the format can never carry, and why: they are not sent, and become dead letters.
    ///
    /// - Parameter now: the time of day.
    func refusals(_ lines: [UInt8], of header: BatchHeader, at now: Timestamp) throws(OutputError) -> [RejectedEvent]

    /// Whether the format may have no place for a value of an event; then `leftOut` counts them.
    var mayLeaveOut: Bool { get }

    /// How many values of the events the format has no place for, or has to change; asked once they are acknowledged.
    func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int

    /// Turns lines into a body, uncompressed.
    ///
    /// - Parameter lines: JSON objects that each end with a line feed and hold no other.
    /// - Throws: `OutputError` with code `badBatch` when they cannot be put into this format.
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8]

    /// What is to be asked before a batch that was answered so counts as acknowledged; nil: nothing.
    ///
    /// - Parameter url: where the batch went.
    func confirmation(ofAnswer answer: HTTPAnswerBody, url: String) -> Confirmation?

    /// The form in which a batch goes once more at once, where an answer is about how it was written; nil: none.
    func alternative(afterAnswer answer: HTTPAnswerBody) -> (any BatchEncoder)?

    /// What an answer says of each event.
    ///
    /// - Parameters:
    ///   - answer: any final one.
    ///   - lines: what was encoded; made anew, so only asked for when an answer needs it.
    /// - Returns: nil when the status says all.
    func outcome(
        ofAnswer answer: HTTPAnswerBody, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome?
}

/// A question that is repeated until the destination says that it has a batch for good.
public struct Confirmation: Sendable {
    /// Where it is asked.
    public let url: String
    /// The question.
    public let body: [UInt8]
    /// Whether an answer of success says yes.
    public let isGiven: @Sendable (HTTPAnswerBody) -> Bool
}

extension BatchEncoder {
    /// `application/json`.
    public var contentType: String { "application/json" }
    /// `false`.
    public var sendsLinesAsStored: Bool { false }
    /// 0.
    public func answerLimit(events: Int) -> Int { 0 }
    /// `false`.
    public var readsAnswers: Bool { false }
    /// `Authorization: Bearer …`.
    public var tokenPlace: TokenPlace { .authorization(scheme: "Bearer") }
    /// None.
    public var arguments: String { "" }
    /// None.
    public var headers: [HTTPOptions.Header] { [] }

    /// `false`.
    public var boundsRequests: Bool { false }

    /// None.
    public func refusals(
        _ lines: [UInt8], of header: BatchHeader, at now: Timestamp
    ) throws(OutputError) -> [RejectedEvent] { [] }

    /// `false`.
    public var mayLeaveOut: Bool { false }

    /// None.
    public func leftOut(_ lines: [UInt8]) throws(OutputError) -> Int { 0 }

    /// All in one.
    public func requests(_ lines: [UInt8]) throws(OutputError) -> [[Int]] {
        [Array(0..<lines.count { $0 == UInt8(ascii: "\n") })]
    }

    /// Nothing.
    public func confirmation(ofAnswer answer: HTTPAnswerBody, url: String) -> Confirmation? { nil }

    /// None.
    public func alternative(afterAnswer answer: HTTPAnswerBody) -> (any BatchEncoder)? { nil }

    /// The status says all.
    public func outcome(
        ofAnswer answer: HTTPAnswerBody, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? { nil }
}
