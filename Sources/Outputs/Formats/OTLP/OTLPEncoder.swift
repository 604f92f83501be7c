package import Model

/// Writes OpenTelemetry logs for OTLP over HTTP, in protocol buffers or JSON.
///
/// Source: OpenTelemetry protocol 1.5, "OTLP/HTTP", and opentelemetry-proto `logs.proto`.
package struct OTLPEncoder: BatchEncoder {
    private let encoding: OTLPEncoding
    /// The agent's version, sent as the version of the scope.
    private let version: String
    /// This machine's name as events give it; empty if they do not.
    private let host: String
    /// Members of traces besides the usual ones; nil without them.
    private let keys: OTLPKeys?
    /// Where events have their message.
    private let messages: MessagePaths

    /// - Parameters:
    ///   - version: the agent's version, sent as the scope's.
    ///   - host: this machine's name as events give it; nil if they do not.
    ///   - keys: members of traces besides the usual ones; nil without them.
    ///   - messages: where events have their message, besides the usual members.
    package init(
        _ encoding: OTLPEncoding = .protobuf, version: String = "", host: String? = nil,
        keys: OTLPKeys? = nil, messages: MessagePaths = MessagePaths()
    ) {
        self.encoding = encoding
        self.version = version
        self.host = host ?? ""
        self.keys = keys
        self.messages = messages
    }

    package var traits: FormatTraits {
        FormatTraits(
            contentType: encoding == .protobuf ? "application/x-protobuf" : "application/json",
            answerBytes: (65_536, 0), readsAnswers: true, namesOwners: true)
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        // Attributes repeat names and lengths, so records are longer than their events.
        let capacity = lines.count * 2 + 4096
        return try BodyBuffer.array(capacity: capacity) { out throws(OutputError) in
            switch encoding {
            case .protobuf: try request(OTLPBinarySink(out), lines, header).written()
            case .json: try request(OTLPJSONSink(out), lines, header).written()
            }
        }
    }

    private func request<Sink: OTLPSink & ~Copyable>(
        _ sink: consuming Sink, _ lines: [UInt8], _ header: BatchHeader
    ) throws(OutputError) -> Sink {
        var request = OTLPRequest(
            sink, of: header, version: version, host: host, keys: keys, messages: messages)
        try EventScan.forEach(lines) { event, index in request.add(event, at: index) }
        return request.finished()
    }

    /// Whether some records were rejected.
    ///
    /// The protocol says how many were rejected, not which, and forbids sending the request again. If some
    /// were rejected, the batch is acknowledged and the loss counted
    /// ([why](../../DESIGN.md#an-otlp-answer-that-says-some-were-rejected-is-acknowledged-and-counted)). If
    /// all were rejected, it is known which.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard (200...299).contains(answer.status) else { return nil }
        guard let partial = partialSuccess(answer.body) else {
            return .retry(
                answer.failure(
                    "the answer is not an OTLP response: is this the address of /v1/logs?"
                        + (ErrorWords.found(in: answer.body).map { " Its error is \($0)" } ?? ""),
                    .protocolViolation))
        }
        guard partial.rejected > 0 else { return .acknowledged }
        let failure = Failure(
            kind: .status, status: answer.status,
            message: "\(partial.rejected) of \(header.events) events were rejected",
            excerpt: AnswerReader.excerpt(Array(partial.message.utf8)))
        guard partial.rejected < Int64(header.events) else {
            return .partial(
                rejected: (0..<header.events).map {
                    RejectedEvent(index: $0, failure: failure, isFinal: true)
                },
                retry: [])
        }
        return .acknowledgedWithLoss(rejected: Int(partial.rejected), failure)
    }

    /// What an answer says about rejected records. The answer may be in the other encoding than the request,
    /// so both are tried. An empty answer rejects nothing; nil if it is not an answer of the protocol.
    private func partialSuccess(_ answer: [UInt8]) -> (rejected: Int64, message: String)? {
        guard let text = JSONSlice(answer[...]) else { return (0, "") }
        let found =
            encoding == .protobuf
            ? OTLPProtobuf.partialSuccess(answer) ?? OTLPEncoder.partialSuccess(text)
            : OTLPEncoder.partialSuccess(text) ?? OTLPProtobuf.partialSuccess(answer)
        return found.flatMap { $0.rejected < 0 ? nil : $0 }
    }

    /// What an answer in JSON says about rejected records. Unknown members are ignored. Nil for an error,
    /// which is not a response of the protocol: gRPC's `Status`, or an error of a gateway.
    private static func partialSuccess(_ answer: JSONSlice) -> (rejected: Int64, message: String)? {
        guard answer.members != nil, answer["error"].map({ $0.kind == .null }) ?? true else { return nil }
        if let code = answer["code"]?.integer, code != 0, !(200...299).contains(code) { return nil }
        guard let partial = answer["partialSuccess"], partial.kind != .null else { return (0, "") }
        guard partial.members != nil else { return nil }
        let message = partial["errorMessage"]?.string ?? ""
        guard let count = partial["rejectedLogRecords"], count.kind != .null else { return (0, message) }
        return Int64(count.string ?? count.text).map { ($0, message) }
    }
}
