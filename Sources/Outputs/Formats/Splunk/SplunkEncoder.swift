internal import EventLoops
internal import Events
package import Model

/// Writes requests of Splunk's HTTP event collector: an object for each event, with the event's time.
///
/// With a channel, a batch counts as acknowledged only when the indexers have it; without, when the
/// collector has it. Source: Splunk documentation, "Format events for HTTP Event Collector", "Troubleshoot
/// HTTP Event Collector", "About HTTP Event Collector Indexer Acknowledgment".
package struct SplunkEncoder: BatchEncoder {
    /// The collector's codes for mistakes in the settings: a bad index, a missing or bad channel,
    /// acknowledgement disabled. Their status is 400, but no event is at fault.
    private static let settingCodes: Set<Int64> = [7, 10, 11, 14]

    /// The status that the collector sends with each of its codes. Only code 0 acknowledges; 17 is about
    /// the collector's health, at another address.
    private static let statuses: [Int64: Int] = [
        1: 403, 2: 401, 3: 401, 4: 403, 5: 400, 6: 400, 7: 400, 8: 500, 9: 503, 10: 400, 11: 400, 12: 400,
        13: 400,
        14: 400, 15: 400, 16: 400, 17: 404, 18: 503, 19: 503, 20: 503, 21: 403, 22: 403, 23: 503,
    ]

    /// Value of `X-Splunk-Request-Channel`; nil to not wait for indexers.
    private let channel: String?
    /// Names of the metadata in `templates`, in the same order.
    private let names: [String]
    /// This machine's name; nil if the settings name a host.
    private let host: String?
    /// Whether the settings name a source, so that the event's `log.file.path` is not used.
    private let hasSource: Bool
    /// Members that become indexed fields.
    private let fields: StructuredMetadata
    /// Templates of the metadata; nil if the settings name none.
    package let templates: EventTemplates?

    /// - Parameters:
    ///   - settings: host, source, source type, index and fields, which the collector stores with each event.
    ///     If one is nil, the token's default applies; the source is `log.file.path` of an event that has it.
    ///   - channel: id of this sender in the form of a UUID, for tokens with indexer acknowledgement; nil
    ///     does not wait for indexers.
    ///   - host: this machine's name, sent with events that name it themselves if the settings name none.
    package init(
        _ settings: SplunkSettings = SplunkSettings(), channel: String? = nil, host: String? = nil,
        _ scope: TemplateScope = TemplateScope()
    ) {
        self.channel = channel
        let metadata = [
            ("host", settings.host), ("source", settings.source), ("sourcetype", settings.sourcetype),
            ("index", settings.index),
        ].compactMap { name, template in template.map { (name: name, template: $0) } }.filter {
            !$0.template.isEmpty
        }
        names = metadata.map(\.name)
        templates = metadata.isEmpty ? nil : EventTemplates(metadata.map(\.template), scope)
        self.host = settings.host == nil && host?.isEmpty == false ? host : nil
        hasSource = settings.source != nil
        fields = settings.fields
    }

    package var traits: FormatTraits {
        FormatTraits(
            answerBytes: (65_536, 0), readsAnswers: true, tokenPlace: .authorization(scheme: "Splunk"),
            headers: channel.map { [("X-Splunk-Request-Channel", $0)] } ?? [])
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        let filled = try templates?.fill(for: header) { events }
        var text = JSONText(capacity: lines.count + events.count * (48 + 32 * names.count))
        for (place, event) in events.enumerated() {
            text.raw("{")
            if let time = event.time {
                text.raw(#""time":"#)
                text.raw(SplunkEncoder.seconds(time).utf8)
                text.raw(",")
            }
            if let filled { for (name, value) in zip(names, filled[place]) { text.member(name, value) } }
            if !hasSource, let path = event.member(at: "log.file.path")?.string, !path.isEmpty {
                text.member("source", path)
            }
            if let host, event.isFrom(host) {
                text.member("host", host)
            }
            text.raw(#""event":"#)
            text.raw(event.line)
            write(fieldsOf: event, to: &text)
            text.raw("}\n")
        }
        return text.bytes
    }

    /// Writes the indexed fields: the level, and the members of the settings.
    private func write(fieldsOf event: EventView, to text: inout JSONText) {
        guard fields != .none else { return }
        var found: [(name: String, value: String)] = fields.members.compactMap { path in
            let value = event.member(at: path) ?? event.properties.last { $0.key == path }?.value
            return value?.scalar.map { (path, $0) }
        }
        if let severity = event.severity?.value, !found.contains(where: { $0.name == "level" }) {
            found.append(("level", severity.level.rawValue))
        }
        guard !found.isEmpty else { return }
        text.raw(#","fields":{"#)
        for (name, value) in found { text.member(name, value) }
        text.close("}")
    }

    /// Seconds with as many digits as the time needs: three, six or nine.
    static func seconds(_ time: Timestamp) -> String {
        let (whole, rest) = time.nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        let sign = time.nanoseconds < 0 ? "-" : ""
        if rest % 1_000_000 == 0 { return "\(sign)\(whole).\((rest / 1_000_000).digits(3))" }
        return rest % 1000 == 0
            ? "\(sign)\(whole).\((rest / 1000).digits(6))" : "\(sign)\(whole).\(rest.digits(9))"
    }

    /// The fate of each event: the collector stores the events before the one that it names, rejects that
    /// one, and stops there.
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

    /// The outcome of a success with the code of a failure, which a gateway before the collector may
    /// produce: the same as with the collector's own status.
    ///
    /// - Parameter code: nil if it is not a number.
    private func denied(_ answer: HTTPAnswer, _ body: JSONSlice, code: Int64?, of header: BatchHeader)
        -> Outcome
    {
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

    /// The outcome if the collector blames the settings or one event; otherwise nil.
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
            rejected: [RejectedEvent(index: place, failure: failure)],
            retry: Array((place + 1)..<header.events))
    }

    /// The question whether the indexers have the batch, by the number that the collector gave it.
    package func confirmation(ofAnswer answer: HTTPAnswer, url: String) -> Confirmation? {
        guard channel != nil, let number = ackID(in: answer) else { return nil }
        return Confirmation(
            url: SplunkEncoder.acknowledgementAddress(for: url), body: Array("{\"acks\":[\(number)]}".utf8)
        ) { answer in
            JSONSlice(answer.body[...])?["acks"]?["\(number)"]?.boolean ?? false
        }
    }

    /// The number of the batch for indexer acknowledgement; nil without one.
    private func ackID(in answer: HTTPAnswer) -> Int64? { JSONSlice(answer.body[...])?["ackId"]?.integer }

    /// `…/services/collector/ack` for an address `…/services/collector`, `…/event` or `…/event/1.0`.
    static func acknowledgementAddress(for url: String) -> String {
        let base = url.prefix { $0 != "?" && $0 != "#" }
        var parts = base.split(separator: "/", omittingEmptySubsequences: false)
        while let last = parts.last, last.isEmpty { parts.removeLast() }
        if parts.last == "1.0" {
            parts.removeLast()
        }
        if parts.last == "event" {
            parts.removeLast()
        }
        return parts.joined(separator: "/") + "/ack"
    }
}
