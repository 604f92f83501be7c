internal import EventLoops
package import Model

/// OpenTelemetry logs over HTTP, in protocol buffers or JSON.
///
/// Source: OpenTelemetry protocol 1.5, "OTLP/HTTP", and opentelemetry-proto `logs.proto`.
package struct OTLPEncoder: BatchEncoder {
    private let encoding: OTLPEncoding
    private let version: String

    /// - Parameters:
    ///   - encoding: default protocol buffers.
    ///   - version: the agent's, told as the scope's.
    package init(_ encoding: OTLPEncoding = .protobuf, version: String = "") {
        self.encoding = encoding
        self.version = version
    }

    package var traits: FormatTraits {
        FormatTraits(
            contentType: encoding == .protobuf ? "application/x-protobuf" : "application/json",
            answerBytes: (65_536, 0), readsAnswers: true)
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let request = OTLPMessage.request(try EventView.all(lines), in: header, version: version)
        guard encoding == .json else { return request.bytes }
        var text = JSONText(capacity: 4096)
        request.write(to: &text)
        return text.bytes
    }

    /// Whether some events were rejected.
    ///
    /// The protocol tells how many, not which, and that a request must not be sent again. A batch of which some were
    /// rejected is acknowledged, and the rejected ones are counted; of one that was rejected wholly, which are is known.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard (200...299).contains(answer.status) else { return nil }
        let partial =
            encoding == .protobuf
            ? OTLPProtobuf.partialSuccess(answer.body) : OTLPEncoder.partialSuccess(answer.body)
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

    /// What an answer in JSON says of rejected records; nil when it says nothing.
    private static func partialSuccess(_ answer: [UInt8]) -> (rejected: Int64, message: String)? {
        guard let partial = JSONSlice(answer[...])?["partialSuccess"] else { return nil }
        let count = partial["rejectedLogRecords"]
        let rejected = count?.integer ?? count?.string.flatMap { Int64($0) } ?? 0
        return (rejected, partial["errorMessage"]?.string ?? "")
    }
}
