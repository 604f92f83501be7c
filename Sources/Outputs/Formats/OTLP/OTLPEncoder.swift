public import EventLoops
public import Model

/// OpenTelemetry logs over HTTP, in protocol buffers or JSON.
///
/// Source: OpenTelemetry protocol 1.5, "OTLP/HTTP", and opentelemetry-proto `logs.proto`.
public struct OTLPEncoder: BatchEncoder {
    private let encoding: OTLPEncoding
    private let version: String

    /// - Parameters:
    ///   - encoding: default protocol buffers.
    ///   - version: the agent's, told as the scope's.
    public init(_ encoding: OTLPEncoding = .protobuf, version: String = "") {
        self.encoding = encoding
        self.version = version
    }

    /// As the encoding says.
    public var contentType: String { encoding == .protobuf ? "application/x-protobuf" : "application/json" }
    /// `true`.
    public var readsAnswers: Bool { true }
    /// A short message.
    public func answerLimit(events: Int) -> Int { 65_536 }

    /// An export request.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let groups = OTLPGroup.groups(of: try EventView.all(lines), in: header)
        switch encoding {
        case .protobuf: return OTLPProtobuf.request(groups, version: version)
        case .json: return OTLPJSON.request(groups, version: version)
        }
    }

    /// Whether some events were rejected.
    ///
    /// The protocol tells how many, not which, and that a request must not be sent again. A batch of which some were
    /// rejected is acknowledged, and the rejected ones are counted; of one that was rejected wholly, which are is known.
    public func outcome(
        ofAnswer answer: HTTPAnswerBody, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard (200...299).contains(answer.status) else { return nil }
        let partial =
            encoding == .protobuf
            ? OTLPProtobuf.partialSuccess(answer.bytes) : OTLPJSON.partialSuccess(answer.bytes)
        guard let partial, partial.rejected > 0 else { return .acknowledged }
        let failure = Failure(
            kind: .status, status: answer.status,
            message: "\(partial.rejected) of \(header.events) events were rejected",
            excerpt: AnswerReader.excerpt(Array(partial.message.utf8)))
        guard partial.rejected < Int64(header.events) else {
            return .partial(
                rejected: (0..<header.events).map { RejectedEvent(index: $0, failure: failure, isFinal: true) },
                retry: [])
        }
        return .acknowledgedWithLoss(rejected: Int(partial.rejected), failure)
    }
}
