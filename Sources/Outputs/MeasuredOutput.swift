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

    /// There are none.
    public init() {}
}
