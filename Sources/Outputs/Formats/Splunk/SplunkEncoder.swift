internal import EventLoops
internal import Events
package import Model

/// Splunk's HTTP event collector: one object an event, with the event's time.
///
/// With a channel, a batch counts only when the indexers have it; without, when the collector has.
/// Source: Splunk documentation, "Format events for HTTP Event Collector", "Troubleshoot HTTP Event Collector", "About
/// HTTP Event Collector Indexer Acknowledgment".
package struct SplunkEncoder: BatchEncoder {
    /// The settings' mistakes, not an event's: an index not allowed, a missing or bad channel, acknowledgement off.
    private static let settingCodes: Set<Int64> = [7, 10, 11, 14]

    /// The status that the collector gives with each of its codes; others are of the future.
    ///
    /// Only 0 says that it took the events: 17 is about its health, at another address.
    private static let statuses: [Int64: Int] = [
        1: 403, 2: 401, 3: 401, 4: 403, 5: 400, 6: 400, 7: 400, 8: 500, 9: 503, 10: 400, 11: 400, 12: 400, 13: 400,
        14: 400, 15: 400, 16: 400, 17: 404, 18: 503, 19: 503, 20: 503, 21: 403, 22: 403, 23: 503,
    ]

    private let channel: String?
    /// The metadata as members of an object, each with a comma behind it.
    private let metadata: [UInt8]
    /// This machine's name, where the metadata names none.
    private let host: String?
    package let templates: EventTemplates?

    /// - Parameters:
    ///   - settings: host, source, source type and index, which the collector keeps beside each event; where one is nil, the
    ///     token's.
    ///   - channel: an id of this sender in the form of a UUID, for tokens with indexer acknowledgement; nil does not wait
    ///     for indexers.
    ///   - host: this machine's name, kept beside events that say it themselves where the settings have none.
    package init(
        _ settings: DestinationSettings = DestinationSettings(), channel: String? = nil, host: String? = nil,
        _ scope: TemplateScope = TemplateScope()
    ) {
        self.channel = channel
        templates = settings.index.map { EventTemplates([$0], scope) }
        self.host = settings.host == nil && host?.isEmpty == false ? host : nil
        var text = JSONText()
        for (name, value) in [
            ("host", settings.host), ("source", settings.source), ("sourcetype", settings.sourcetype),
        ] {
            if let value, !value.isEmpty { text.member(name, value) }
        }
        self.metadata = text.bytes
    }

    package var traits: FormatTraits {
        FormatTraits(
            answerBytes: (65_536, 0), readsAnswers: true, tokenPlace: .authorization(scheme: "Splunk"),
            headers: channel.map { [("X-Splunk-Request-Channel", $0)] } ?? [])
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        let index = try templates?.fill(for: header) { events }
        var text = JSONText(capacity: lines.count + events.count * (48 + metadata.count))
        for (place, event) in events.enumerated() {
            text.raw("{")
            if let time = event.time {
                text.raw(#""time":"#)
                text.raw(SplunkEncoder.seconds(time).utf8)
                text.raw(",")
            }
            text.raw(metadata)
            if let index { text.member("index", index[place][0]) }
            if let host, event.isFrom(host) { text.member("host", host) }
            text.raw(#""event":"#)
            text.raw(event.line)
            if let severity = event.severity?.value {
                text.raw(#","fields":{"level":"\#(severity.level.rawValue)"}"#.utf8)
            }
            text.raw("}\n")
        }
        return text.bytes
    }

    /// Seconds with milliseconds, as the collector wants them.
    static func seconds(_ time: Timestamp) -> String {
        let milliseconds = time.milliseconds
        let (whole, rest) = milliseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        return "\(milliseconds < 0 ? "-" : "")\(whole).\(rest.digits(3))"
    }

    /// What happened to each event: the collector takes those before the one it names, rejects it, and stops there.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        let body = JSONSlice(answer.body[...])
        let isSuccess = (200...299).contains(answer.status)
        if isSuccess, let body, let code = body["code"] {
            let number = Int64(code.string ?? code.text)
            if number != 0 { return denied(answer, body, code: number, of: header) }
        }
        if channel != nil, isSuccess, ackID(in: answer) == nil {
            let message = "the answer has no ackId: is indexer acknowledgement on for this token?"
            return .held(answer.failure(message, .protocolViolation))
        }
        guard answer.status == 400, let body else { return nil }
        return refusal(body, answer, of: header)
    }

    /// What an answer means that has the status of success and the code of a failure, as a gateway before the collector may make
    /// it: the same as with the collector's own status.
    ///
    /// - Parameter code: nil for one that is no number.
    private func denied(_ answer: HTTPAnswer, _ body: JSONSlice, code: Int64?, of header: BatchHeader) -> Outcome {
        let status = code.flatMap { SplunkEncoder.statuses[$0] } ?? 503
        if status == 400, let known = refusal(body, answer, of: header) { return known }
        let failure = answer.failure(
            "answered \(answer.status), but the collector's code is \(code.map { "\($0)" } ?? "not a number"): "
                + AnswerTable.message(for: status))
        return switch AnswerTable().meaning(of: status) {
        case .hold: .held(failure)
        case .bisect: .rejected(failure)
        default: .retry(failure)
        }
    }

    /// What the collector says of the settings or of an event; nil where it names neither.
    private func refusal(_ body: JSONSlice, _ answer: HTTPAnswer, of header: BatchHeader) -> Outcome? {
        if let code = body["code"]?.integer, SplunkEncoder.settingCodes.contains(code) {
            return .held(
                answer.failure(
                    "the collector refuses the settings (its code \(code)): check index and acknowledgement of the token"
                ))
        }
        guard let number = body["invalid-event-number"]?.integer, (0..<Int64(header.events)).contains(number)
        else { return nil }
        let failure = answer.failure("the collector answered 400 for an event")
        let place = Int(number)
        return .partial(
            rejected: [RejectedEvent(index: place, failure: failure)], retry: Array((place + 1)..<header.events))
    }

    /// Whether the indexers have the batch: asked by the number that the collector gave it.
    package func confirmation(ofAnswer answer: HTTPAnswer, url: String) -> Confirmation? {
        guard channel != nil, let number = ackID(in: answer) else { return nil }
        return Confirmation(
            url: SplunkEncoder.acknowledgementAddress(for: url), body: Array("{\"acks\":[\(number)]}".utf8)
        ) { answer in
            JSONSlice(answer.body[...])?["acks"]?["\(number)"]?.boolean ?? false
        }
    }

    private func ackID(in answer: HTTPAnswer) -> Int64? { JSONSlice(answer.body[...])?["ackId"]?.integer }

    /// `…/services/collector/ack`, beside `…/services/collector`, `…/event` and `…/event/1.0`.
    static func acknowledgementAddress(for url: String) -> String {
        let base = url.prefix { $0 != "?" && $0 != "#" }
        var parts = base.split(separator: "/", omittingEmptySubsequences: false)
        while let last = parts.last, last.isEmpty { parts.removeLast() }
        if parts.last == "1.0" { parts.removeLast() }
        if parts.last == "event" { parts.removeLast() }
        return parts.joined(separator: "/") + "/ack"
    }
}
