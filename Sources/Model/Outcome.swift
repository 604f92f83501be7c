/// What happened to one attempt to send a batch. A value rather than an error: every answer of a
/// destination is one of these.
public enum Outcome: Sendable, Equatable {
    /// The destination has the whole batch.
    case acknowledged
    /// The destination has the batch and says that it rejected some of the events, but not which ones.
    /// Sending it again would repeat the others.
    case acknowledgedWithLoss(rejected: Int, Failure)
    /// The destination has some of the batch. Events in neither list are acknowledged.
    case partial(rejected: [RejectedEvent], retry: [Int])
    /// Not now: the same batch is tried again after the backoff.
    case retry(Failure)
    /// Not now, and the destination says when: nothing is sent to it until then, and the attempt does
    /// not count.
    case retryAfter(Duration, Failure)
    /// The body is too large and the batch must be split. `wireBytes` is the size of the refused body.
    case tooLarge(wireBytes: Int, Failure)
    /// The destination does not accept some or all of these events. Bisecting finds which.
    case rejected(Failure)
    /// The destination or its settings are wrong, not the events. The events stay queued; a person must
    /// look.
    case held(Failure)
    /// There is no route to the destination. No attempt was made, and nothing counts.
    case offline

    /// What the destination reported about the batch, or about the first rejected event.
    package var failure: Failure? {
        switch self {
        case .acknowledged, .offline: nil
        case .partial(let rejected, _): rejected.first?.failure
        case .acknowledgedWithLoss(_, let failure), .retry(let failure), .retryAfter(_, let failure),
            .tooLarge(_, let failure), .rejected(let failure), .held(let failure):
            failure
        }
    }
}

/// An event that the destination rejected individually.
public struct RejectedEvent: Sendable, Equatable {
    /// Index in the batch, from 0.
    public let index: Int
    package let failure: Failure
    /// Whether the rejection is final: nothing known about the destination can overrule it, and the
    /// event is not offered again.
    public let isFinal: Bool

    package init(index: Int, failure: Failure, isFinal: Bool = false) {
        self.index = index
        self.failure = failure
        self.isFinal = isFinal
    }
}

/// Why an attempt failed.
public struct Failure: Sendable, Equatable {
    /// Closed, because it is a metric label.
    public enum Kind: String, Sendable, CaseIterable {
        /// The destination answered with an unexpected status.
        case status
        /// The host name could not be resolved.
        case resolve
        /// No connection could be established.
        case connect
        /// The TLS handshake failed, or a certificate was not accepted.
        case tls
        /// Connecting or the answer took too long.
        case timeout
        /// The connection broke, before or after the request was read.
        case connection
        /// The answer does not follow the protocol.
        case protocolViolation = "protocol"
        /// The request could not be made: a file cannot be read, or a body cannot be built.
        case local
    }

    package let kind: Kind
    /// The HTTP status; nil if there was no HTTP answer.
    public let status: Int?
    /// One line for a person; never event content, never a secret.
    public let message: String
    /// The beginning of the answer's body, at most 1 KiB. For the dead letter's record only, because it
    /// may quote the event.
    public let excerpt: String

    /// Whether the receiver may have stored the events although no success arrived: the answer may have
    /// been lost, also between the receiver and a gateway (502, 504).
    package var leavesOpen: Bool {
        switch kind {
        case .timeout, .connection, .protocolViolation: true
        case .status: [408, 502, 504].contains(status)
        case .resolve, .connect, .tls, .local: false
        }
    }

    /// Whether the receiver refused the request as such, and so has stored nothing of it.
    package var isRefusal: Bool {
        status.map { (400..<500).contains($0) && $0 != 429 } ?? false && !leavesOpen
    }

    /// The first 200 characters of the answer, with runs of blanks joined; nil if nothing printable is
    /// left.
    ///
    /// It may quote an event. Control and format characters are removed, so that it cannot manipulate a
    /// terminal.
    public var words: String? {
        var text = ""
        var isBlank = true
        for scalar in excerpt.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
                .spaceSeparator:
                guard !isBlank else { continue }
                isBlank = true
                text.unicodeScalars.append(" ")
            default:
                isBlank = false
                text.unicodeScalars.append(scalar)
            }
            if text.unicodeScalars.count >= 200 { break }
        }
        if text.hasSuffix(" ") {
            text.removeLast()
        }
        return text.isEmpty ? nil : text
    }

    package init(kind: Kind, status: Int? = nil, message: String, excerpt: String = "") {
        self.kind = kind
        self.status = status
        self.message = message
        self.excerpt = excerpt
    }
}
