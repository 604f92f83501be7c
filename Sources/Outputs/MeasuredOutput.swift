public import EventLoops
public import Model

/// What every kind of destination tells besides what became of a batch.
public protocol MeasuredOutput: BatchSender {
    /// The bytes that were handed over since this was last asked: bodies as they go over the wire.
    func takeSentBytes() async -> Int
    /// How many values of events the format had no place for or had to change, in batches acknowledged since this was
    /// last asked.
    func takeLeftOutValues() async -> Int
    /// When certificates expire, as of the last look.
    var certificates: OutputCertificates { get async }

    /// One attempt, as `send` makes it, with what the three above say after it: one call where four would each go to the
    /// output's actor and back.
    func sendMeasured(_ batch: Batch) async -> MeasuredOutcome
}

extension MeasuredOutput {
    /// None: events are written as they are.
    public func takeLeftOutValues() -> Int { 0 }

    /// None: there is nobody to be known by.
    public var certificates: OutputCertificates { OutputCertificates() }

    /// Asks for each by itself.
    public func sendMeasured(_ batch: Batch) async -> MeasuredOutcome {
        let outcome = await send(batch)
        return MeasuredOutcome(
            outcome: outcome, sentBytes: await takeSentBytes(), leftOutValues: await takeLeftOutValues(),
            certificates: await certificates)
    }
}

/// How an attempt ended, and what it took.
public struct MeasuredOutcome: Sendable {
    /// How it ended.
    public let outcome: Outcome
    /// The bytes that were handed over meanwhile.
    public let sentBytes: Int
    /// How many values the format had no place for or had to change.
    public let leftOutValues: Int
    /// When certificates expire.
    public let certificates: OutputCertificates
}

/// What a person may want to know of a destination's certificates.
public struct OutputCertificates: Sendable, Equatable {
    /// When the first of the agent's own certificates expires; nil without one.
    public var ownExpiry: Timestamp?
    /// When the first of the certificates of `tls.ca_file` expires; nil without one.
    public var authorityExpiry: Timestamp?
    /// When the destination's own certificate expires, as of the last handshake; nil before one, and without TLS.
    public var serverExpiry: Timestamp?
    /// How often they could not be read again, so that older ones stayed in force.
    public var failedReloads = 0
}
