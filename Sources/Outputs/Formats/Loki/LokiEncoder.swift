internal import EventLoops
internal import Events
package import Model

/// Writes requests of Grafana Loki's push API: a stream for each app, an entry for each event with the
/// event as its line.
///
/// Labels come from the settings, the host and the app. Each combination of values makes a stream, and Loki
/// bears few streams: apps are few (directories of the spool), and a label of the settings has at most
/// `template_values` values; further events share a stream. Members with many values (session, event id)
/// and the severity go into structured metadata, which needs no index.
///
/// Loki refuses entries that are far behind the newest of their stream (an hour by default). Therefore
/// critical events, which are sent first, have a stream of their own; and a batch that Loki refuses for
/// this reason is sent again with a stream for each hour, in which nothing is far behind.
///
/// Source: Loki reference, "Ingest logs", `POST /loki/api/v1/push`, and "What is structured metadata";
/// Loki's `pkg/ingester/stream.go` and `pkg/chunkenc/interface.go` for the words of its answers.
package struct LokiEncoder: BatchEncoder {
    /// Names of the labels in `filling`, in the same order.
    private let names: [String]
    /// Templates of the labels' values.
    private let filling: EventTemplates
    /// This machine's name for the label `host`; nil if the settings have that label or the name is
    /// unknown.
    private let host: String?
    /// Whether critical events get a label `priority`: not if the settings have a label of that name.
    private let namesPriority: Bool
    /// Whether streams are divided by hour, with a label `late`.
    private var isLate = false
    /// Whether the label `app` is the app that events belong to. It is not bounded by `template_values`,
    /// and the settings may replace it.
    private let namesApp: Bool
    /// The members sent as structured metadata.
    private let metadata: StructuredMetadata

    /// - Parameters:
    ///   - labels: labels of the streams; default `job="spoolship"`. `host`, `app` and `priority` replace
    ///     what is known; an empty text leaves the label out.
    ///   - host: this machine's name, for events that name it themselves; nil or empty for no label.
    ///   - structuredMetadata: what accompanies each line (Loki 3, or 2.9 with the feature enabled).
    package init(
        labels: [String: Template] = [:], host: String? = nil, structuredMetadata: StructuredMetadata = .ids,
        _ scope: TemplateScope = TemplateScope()
    ) {
        let all = labels.isEmpty ? ["job": "spoolship"] : labels
        self.host = all["host"] == nil && host?.isEmpty == false ? host : nil
        namesPriority = all["priority"] == nil
        namesApp = all["app"] == nil
        let given = all.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
        names = given.map(\.key)
        filling = EventTemplates(given.map(\.value), scope)
        metadata = structuredMetadata
    }

    package var templates: EventTemplates? { filling }

    package var traits: FormatTraits { FormatTraits(readsAnswers: true, namesOwners: namesApp) }

    /// The form with a stream for each hour, if the answer says that entries are too far behind their
    /// stream.
    package func alternative(afterAnswer answer: HTTPAnswer) -> (any BatchEncoder)? {
        guard !isLate, LokiEncoder.isAboutOrder(answer) else { return nil }
        var late = self
        late.isLate = true
        return late
    }

    /// Rejects entries that are too old, or out of order even in streams by hour: the events are at fault,
    /// not the destination.
    ///
    /// Loki stores the other entries of such a request. They are still sent again, without the refused ones:
    /// the answer may name one reason of several, and Loki keeps a repeated entry only once.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        if let oldest = LokiEncoder.oldestAccepted(answer), let events = try? EventView.all(lines()) {
            return refuse(events, before: oldest, of: header, answer)
        }
        guard LokiEncoder.isAboutOrder(answer) else { return nil }
        let failure = answer.failure(
            "Loki accepts no entry this far behind its stream's newest, nor by hour; see max_chunk_age")
        return .partial(
            rejected: (0..<header.events).map { RejectedEvent(index: $0, failure: failure, isFinal: true) },
            retry: [])
    }

    /// Rejects the events that are older than Loki accepts; nil if no event is that old.
    private func refuse(
        _ events: [EventView], before oldest: Timestamp, of header: BatchHeader, _ answer: HTTPAnswer
    ) -> Outcome? {
        let times = events.map { $0.time ?? header.acceptedAt }
        // Loki's answer has whole seconds: if no event is older, the refused ones are of the same second.
        let end = times.contains { $0 < oldest } ? oldest : oldest + .seconds(1)
        let failure = answer.failure("Loki accepts no entry this old; see reject_old_samples_max_age")
        let refused = times.indices.filter { times[$0] < end }
        guard !refused.isEmpty else { return nil }
        let others = times.indices.filter { times[$0] >= end }
        return .partial(
            rejected: refused.map { RejectedEvent(index: $0, failure: failure, isFinal: true) }, retry: others
        )
    }

    /// The time from which Loki accepts entries, if the answer says that some are too old; otherwise nil.
    ///
    /// The answer quotes labels, which may contain the same words with another time. Of several times the
    /// earliest counts: forged words can then spare events, but never have some rejected.
    private static func oldestAccepted(_ answer: HTTPAnswer) -> Timestamp? {
        guard answer.status == 400 else { return nil }
        guard answer.excerpt.holds("has timestamp too old"), !isAboutOrder(answer) else { return nil }
        let words = Array("oldest acceptable timestamp is: ".utf8)
        let text = Array(answer.excerpt.utf8)
        return text.indices.filter { text[$0...].starts(with: words) }.compactMap { start in
            let time = text[(start + words.count)...].prefix { "0123456789-:TZ+".utf8.contains($0) }
            return EventView.time(String(decoding: time, as: UTF8.self))
        }.min()
    }

    /// Whether the answer says that entries are too far behind the newest of their stream.
    private static func isAboutOrder(_ answer: HTTPAnswer) -> Bool {
        answer.status == 400 && ["too far behind", "out of order"].contains { answer.excerpt.holds($0) }
    }

    /// A body with a stream for each app, in the order of their first events. An event without a time gets
    /// the batch's.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let filled = try filling.fill(for: header) { () throws(OutputError) in try EventView.all(lines) }
        var streams = LokiStreams(namesApp: namesApp, host: host, dividesByHour: isLate)
        return try BodyBuffer.array(capacity: lines.count + lines.count / 2 + 4096) {
            out throws(OutputError) in
            var entries = LokiEntries(header, metadata, to: out)
            try EventScan.forEach(lines) { event, index in
                let known = header.apps.indices.contains(index) ? header.apps[index] : ""
                let stream = streams.number(
                    of: event, owner: known, values: filled.number(of: index),
                    at: event.time ?? header.acceptedAt
                )
                entries.add(event, at: index, to: stream) {
                    labels(of: streams.streams[stream], in: header, filled)
                }
            }
            return entries.request(streams.streams.map { labels(of: $0, in: header, filled) })
        }
    }

    /// The labels of a stream, as a JSON object.
    private func labels(
        of stream: LokiStreams.Stream, in header: BatchHeader, _ filled: FilledTemplates
    ) -> [UInt8] {
        var labels: [String: String] = [:]
        if namesPriority, header.priority == .critical {
            labels["priority"] = header.priority.name
        }
        for (name, value) in zip(names, filled.texts[stream.values]) { labels[name] = value }
        labels["app"] = stream.app ?? labels["app"]
        labels["host"] = stream.host ?? labels["host"]
        labels["late"] = stream.hour ?? labels["late"]
        // Loki refuses a stream without labels.
        if labels.isEmpty {
            labels["job"] = "spoolship"
        }
        // Sorted, because the same batch must give the same bytes.
        var text = JSONText()
        text.raw("{")
        for (name, value) in labels.sorted(by: { $0.key < $1.key }) { text.member(name, value) }
        text.close("}")
        return text.bytes
    }
}
