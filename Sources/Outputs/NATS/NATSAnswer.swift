internal import Model

/// Decides what a server's answer means for a batch: pure functions of the answer.
///
/// JetStream never looks into events, so no batch is bisected, and no answer makes dead letters except for
/// size.
enum NATSAnswer {
    /// The outcome of a message for which a reply came.
    ///
    /// - Parameter wireBytes: size of the message with its headers.
    static func outcome(headers: [UInt8], payload: [UInt8], wireBytes: Int, subject: String) -> Outcome {
        if let status = status(in: headers) {
            guard status == 503 else {
                return .retry(Failure(kind: .status, status: status, message: "answered \(status)"))
            }
            return .retry(
                Failure(
                    kind: .status, status: 503,
                    message: "answered 503: no stream takes \(subject): create one, or wait for its leader"))
        }
        let nonsense = Outcome.retry(
            Failure(
                kind: .protocolViolation,
                message:
                    "the answer is not an acknowledgement: does another program subscribe to \(subject)?",
                excerpt: AnswerReader.excerpt(payload)))
        guard let answer = JSONSlice(payload[...]), answer.kind == .object else { return nonsense }
        guard let error = answer["error"], error.kind != .null else {
            // JetStream acknowledges a repeat like the first message, with `"duplicate": true`.
            let isOne = answer["stream"]?.string != nil && (answer["seq"]?.integer ?? 0) > 0
            return isOne ? .acknowledged : nonsense
        }
        guard error.kind == .object else { return nonsense }
        return outcome(of: error, payload, wireBytes: wireBytes)
    }

    /// The outcome for an error of JetStream, by its `err_code`. Source: nats-server, `server/errors.json`.
    private static func outcome(of error: JSONSlice, _ payload: [UInt8], wireBytes: Int) -> Outcome {
        let status = error["code"]?.integer.flatMap { Int(exactly: $0) }.flatMap {
            (100...999).contains($0) ? $0 : nil
        }
        let code = error["err_code"]?.integer ?? 0
        // Only numbers and known words: messages go to the log, and a server may answer anything.
        let said = [status.map(String.init), code > 0 ? String(code) : nil].compactMap { $0 }.joined(
            separator: " ")
        func failure(_ hint: String) -> Failure {
            Failure(
                kind: .status, status: status,
                message: "answered \(said.isEmpty ? "an error" : said): \(hint)",
                excerpt: AnswerReader.excerpt(payload))
        }
        switch code {
        case 10054: return .tooLarge(wireBytes: wireBytes, failure("the stream's max_msg_size is smaller"))
        case 10077:
            let reason = full.first { $0 == error["description"]?.string } ?? "it could not store the message"
            return .retry(failure("\(reason): raise the stream's limits, or let it discard old messages"))
        case 10060:
            return .held(failure("another stream takes this subject; check nats.stream and nats.subject"))
        case 10109: return .held(failure("the stream is sealed"))
        case 10039: return .held(failure("the account has no JetStream"))
        case 10002, 10023, 10028, 10047: return .retry(failure("the server or the account has no room left"))
        case 10004, 10008, 10009, 10076: return .retry(failure("JetStream is not available at the moment"))
        case 10158, 10167: return .retry(failure("the stream is busy"))
        case 10059: return .retry(failure("the stream was removed"))
        default:
            guard let status, status < 500, status != 408, status != 429 else {
                return .retry(failure("see the server's log"))
            }
            return .held(failure("see the server's log, and `spoolship status` as root for its text"))
        }
    }

    /// Descriptions with which a stream that discards new messages refuses one.
    private static let full = [
        "maximum messages exceeded", "maximum bytes exceeded", "maximum messages per subject exceeded",
    ]

    /// The status in the first line of a header block; nil without one. An acknowledgement has no status;
    /// 503 means that no stream listens to the subject.
    static func status(in headers: [UInt8]) -> Int? {
        let start = Array("NATS/1.0 ".utf8)
        guard headers.starts(with: start) else { return nil }
        let digits = headers.dropFirst(start.count).prefix { (0x30...0x39).contains($0) }
        guard digits.count == 3 else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}

/// What an error of a server (`-ERR`) means.
struct NATSComplaint: Equatable {
    /// Whether the server refuses our subject only. The connection stays open, but no acknowledgement will
    /// come.
    let isAboutPublishing: Bool
    /// Outcome of the batches that the error keeps from being stored.
    let outcome: Outcome

    /// - Parameter text: the text after `-ERR`.
    init(_ text: String, host: String) {
        func failure(_ hint: String) -> Failure {
            Failure(
                kind: .status, message: "\(host): \(hint)", excerpt: AnswerReader.excerpt(Array(text.utf8)))
        }
        let said = text.lowercased()
        isAboutPublishing = said.hasPrefix("permissions violation for publish")
        if isAboutPublishing {
            outcome = .held(
                failure("these credentials may not publish to the subject (Permissions Violation)"))
            return
        }
        for (beginning, isHeld, hint) in NATSComplaint.known where said.hasPrefix(beginning) {
            outcome = isHeld ? .held(failure(hint)) : .retry(failure(hint))
            return
        }
        outcome = .retry(failure("broke off with an error; see the server's log"))
    }

    /// Known errors: how they begin, in lower case; whether a person must look; what to do. Source:
    /// nats-server, `server/errors.go`.
    private static let known: [(String, Bool, String)] = [
        (
            "permissions violation for subscription", true,
            "these credentials may not subscribe to acknowledgements; allow _INBOX.>, or see nats.inbox_prefix"
        ),
        (
            "authorization violation", true,
            "refuses these credentials (Authorization Violation); check token, user, nkey or credentials file"
        ),
        ("user authentication expired", true, "the credentials have expired; give the agent new ones"),
        ("account authentication expired", true, "the account's credentials have expired"),
        ("user authentication revoked", true, "the credentials were revoked; give the agent new ones"),
        ("authentication timeout", false, "got no credentials in time; is the machine overloaded?"),
        ("secure connection - tls required", true, "wants TLS; write tls:// in the url"),
        ("attempted to connect to", true, "is not the port for clients, which is 4222 by default"),
        ("maximum connections exceeded", false, "has too many connections already"),
        (
            "maximum account active connections exceeded", false,
            "the account has too many connections already"
        ),
        ("maximum subscriptions exceeded", false, "the account has too many subscriptions already"),
        ("maximum payload violation", false, "now accepts only smaller messages"),
        ("invalid publish subject", true, "does not accept the subject"),
        ("stale connection", false, "saw no sign of life and closed the connection"),
        ("slow consumer", false, "could not deliver acknowledgements and closed the connection"),
        ("server shutdown", false, "is stopping"),
        ("parser error", true, "does not understand the agent; is it a NATS server?"),
        ("unknown protocol operation", true, "does not understand the agent; is it a NATS server?"),
    ]
}
