/// What happened to one attempt to send a batch. A value, not an error: every answer of a destination is one of these.
public enum Outcome: Sendable, Equatable {
    /// The destination has all of it.
    case acknowledged
    /// The destination has the batch, and says that it rejected so many of its events, but not which. Not to be sent again.
    case acknowledgedWithLoss(rejected: Int, Failure)
    /// The destination has some of it. Events in none of the two lists are acknowledged.
    case partial(rejected: [RejectedEvent], retry: [Int])
    /// Not now: try the same batch again, by the backoff.
    case retry(Failure)
    /// Not now, and the destination says when: nothing goes to it for that long, and the attempt does not count.
    case retryAfter(Duration, Failure)
    /// The body is too large: to be split. `wireBytes` is the size of the body that was refused.
    case tooLarge(wireBytes: Int, Failure)
    /// The destination does not want (some of) these events: to be bisected.
    case rejected(Failure)
    /// The destination or its settings are wrong, not the events: data is kept, a person must look.
    case held(Failure)
    /// There is no route to the destination: no attempt was made, nothing counts.
    case offline

    /// What the destination said against the batch, or first against one of its events.
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

/// An event that its destination rejected by itself.
public struct RejectedEvent: Sendable, Equatable {
    /// Its place in the batch, from 0.
    public let index: Int
    package let failure: Failure
    /// Whether nothing else decides: it is not offered again, whatever the destination is known for.
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
        /// The destination answered with another status than hoped for.
        case status
        case resolve
        case connect
        case tls
        /// The connection or the answer took too long.
        case timeout
        /// The connection broke, before or after the request was read.
        case connection
        case protocolViolation = "protocol"
        /// The request could not be made here: a file that cannot be read, a body that cannot be built.
        case local
    }

    package let kind: Kind
    /// The HTTP status, where there was one.
    public let status: Int?
    /// One line for a person; never event content, never a secret.
    public let message: String
    /// The beginning of the answer's body (at most 1 KiB), for the dead letter's record only: it may quote the event.
    public let excerpt: String

    /// Whether the receiver may have taken the events and only its answer been lost, between it and a gateway too.
    package var leavesOpen: Bool {
        switch kind {
        case .timeout, .connection, .protocolViolation: true
        case .status: [408, 502, 504].contains(status)
        case .resolve, .connect, .tls, .local: false
        }
    }

    /// Whether the receiver refuses the request itself, and so has taken nothing of it.
    package var isRefusal: Bool { status.map { (400..<500).contains($0) && $0 != 429 } ?? false && !leavesOpen }

    /// The first 200 characters of the answer that can be shown, blanks joined; nil when there are none.
    ///
    /// They may quote an event, and play no tricks on a terminal: only printable characters are kept.
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
        if text.hasSuffix(" ") { text.removeLast() }
        return text.isEmpty ? nil : text
    }

    package init(kind: Kind, status: Int? = nil, message: String, excerpt: String = "") {
        self.kind = kind
        self.status = status
        self.message = message
        self.excerpt = excerpt
    }
}
