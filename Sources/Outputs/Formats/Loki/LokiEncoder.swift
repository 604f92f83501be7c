internal import EventLoops
internal import Events
package import Model

/// Grafana Loki's push API: a stream for each app, one entry an event, the event itself as its line.
///
/// The labels are the settings', the host and the app. Apps are few (directories of the spool); if the labels have more values
/// than `template_values`, the other events share a stream: each value makes a stream. Members with many values (the
/// session, the event's id), and the severity, go into structured metadata, which is found without an index. Loki
/// refuses entries far behind the newest of their stream (an hour by default). Critical events, which go first, have a
/// separate stream; and if Loki refuses a batch for that reason, the batch is sent once more into a stream for each
/// hour, in which nothing is far behind.
/// Source: Loki reference, "Ingest logs", `POST /loki/api/v1/push`, and "What is structured metadata"; Loki's
/// `pkg/ingester/stream.go` and `pkg/chunkenc/interface.go` for the words of its answers.
package struct LokiEncoder: BatchEncoder {
    /// The names of the labels that templates make.
    private let names: [String]
    private let filling: EventTemplates
    private let host: String?
    private let namesPriority: Bool
    private var isLate = false
    private let hasMetadata: Bool

    /// - Parameters:
    ///   - labels: the stream's; default `job="spoolship"`. `host`, `app` and `priority` take precedence over what is known; empty leaves one out.
    ///   - host: this machine's name, a label of events that say it themselves; nil or empty for no such label.
    ///   - structuredMetadata: whether session and event ids go beside each line (Loki 3, or 2.9 where it is allowed).
    package init(
        labels: [String: Template] = [:], host: String? = nil, structuredMetadata: Bool = true,
        _ scope: TemplateScope = TemplateScope()
    ) {
        var all = labels.isEmpty ? ["job": "spoolship"] : labels
        self.host = all["host"] == nil && host?.isEmpty == false ? host : nil
        namesPriority = all["priority"] == nil
        all["app"] = all["app"] ?? Template([.field(.app)], for: .label)
        let given = all.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
        names = given.map(\.key)
        filling = EventTemplates(given.map(\.value), scope)
        hasMetadata = structuredMetadata
    }

    package var templates: EventTemplates? { filling }

    package var traits: FormatTraits { FormatTraits(readsAnswers: true) }

    /// A stream for each hour, where the answer is that entries are too far behind those of the same stream.
    package func alternative(afterAnswer answer: HTTPAnswer) -> (any BatchEncoder)? {
        guard !isLate, LokiEncoder.isAboutOrder(answer) else { return nil }
        var late = self
        late.isLate = true
        return late
    }

    /// Entries that are out of order even so are rejected: it is never the destination that is wrong.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard LokiEncoder.isAboutOrder(answer) else { return nil }
        let failure = answer.failure(
            "Loki accepts no entry this far behind its stream's newest, nor by hour; see max_chunk_age")
        return .partial(
            rejected: (0..<header.events).map { RejectedEvent(index: $0, failure: failure, isFinal: true) }, retry: [])
    }

    private static func isAboutOrder(_ answer: HTTPAnswer) -> Bool {
        answer.status == 400 && ["too far behind", "out of order"].contains { answer.excerpt.holds($0) }
    }

    /// A stream for each app, in the order in which they come. An event without a time has the batch's.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        let filled = try filling.fill(for: header) { events }
        var streams: [(stream: Stream, places: [Int])] = []
        var numbers: [Stream: Int] = [:]
        for (place, event) in events.enumerated() {
            let hour = isLate ? String("\(event.time ?? header.acceptedAt)".prefix(13)) : nil
            let stream = Stream(
                values: filled.number(of: place), host: host.flatMap { event.isFrom($0) ? $0 : nil }, hour: hour)
            if let number = numbers[stream] {
                streams[number].places.append(place)
            } else {
                numbers[stream] = streams.count
                streams.append((stream, [place]))
            }
        }
        var text = JSONText(capacity: lines.count + lines.count / 2 + 256)
        text.raw(#"{"streams":["#)
        for (stream, places) in streams {
            text.raw(#"{"stream":"#)
            var labels: [String: String] = [:]
            if namesPriority, header.priority == .critical { labels["priority"] = header.priority.name }
            for (name, value) in zip(names, filled.texts[stream.values]) { labels[name] = value }
            labels["host"] = stream.host ?? labels["host"]
            labels["late"] = stream.hour ?? labels["late"]
            // Loki takes no stream without a label.
            write(labels.isEmpty ? ["job": "spoolship"] : labels, to: &text)
            text.raw(#","values":["#)
            for place in places { write(events[place], at: place, of: header, to: &text) }
            text.close("]},")
        }
        text.close("]}")
        return text.bytes
    }

    private struct Stream: Hashable {
        /// What the templates became, by its number.
        let values: Int
        let host: String?
        let hour: String?
    }

    private func write(_ event: EventView, at place: Int, of header: BatchHeader, to text: inout JSONText) {
        text.raw("[\"")
        text.number((event.time ?? header.acceptedAt).nanoseconds)
        text.raw("\",")
        text.string(event.line)
        if hasMetadata {
            var metadata = ["event_id": event.stableID(in: header.id, at: place)]
            if let session = event.sessionID { metadata["session_id"] = session }
            if let severity = event.severity?.value { metadata["level"] = severity.level.rawValue }
            text.raw(",")
            write(metadata, to: &text)
        }
        text.raw("],")
    }

    private func write(_ members: [String: String], to text: inout JSONText) {
        text.raw("{")
        for (name, value) in members.sorted(by: { $0.key < $1.key }) { text.member(name, value) }
        text.close("}")
    }
}
