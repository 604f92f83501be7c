internal import EventLoops
internal import Events
public import Model

/// Grafana Loki's push API: a stream for each app, one entry an event, the event itself as its line.
///
/// The labels are the settings', the host and the app. Apps are few (directories of the spool); should a batch name more,
/// the others share a stream: a label with many values makes a stream for each of them. What has many values (the
/// session, the event's id), and how serious an event is, goes as structured metadata, which is found without an index.
/// Source: Loki reference, "Ingest logs", `POST /loki/api/v1/push`, and "What is structured metadata".
public struct LokiEncoder: BatchEncoder {
    /// The most apps of a batch that have a stream of their own.
    static let mostApps = 32

    private let labels: [String: String]
    private let namesApps: Bool
    private let hasMetadata: Bool

    /// - Parameters:
    ///   - labels: the stream's; default `job="spoolship"`. `host` and `app` stand above what is known; empty leaves one out.
    ///   - host: this machine's name; nil or empty for no such label.
    ///   - structuredMetadata: whether session and event ids go beside each line (Loki 3, or 2.9 where it is allowed).
    public init(labels: [String: String] = [:], host: String? = nil, structuredMetadata: Bool = true) {
        var all = labels.isEmpty ? ["job": "spoolship"] : labels
        if all["host"] == nil, let host { all["host"] = host }
        namesApps = all["app"] == nil
        all = all.filter { !$0.value.isEmpty }
        // Loki takes no stream without a label.
        self.labels = all.isEmpty ? ["job": "spoolship"] : all
        hasMetadata = structuredMetadata
    }

    /// `application/json`.
    public var contentType: String { "application/json" }
    /// `true`.
    public var readsAnswers: Bool { true }

    /// A stream for each app, in the order in which they come. An event without a time has the batch's.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        var streams: [(app: String?, events: [(place: Int, event: EventView)])] = []
        for (place, event) in try EventView.all(lines).enumerated() {
            var app = namesApps ? event["app"]?.string.map { String($0.prefix(128)) } : nil
            if app?.isEmpty == true { app = nil }
            if let known = streams.firstIndex(where: { $0.app == app }) {
                streams[known].events.append((place, event))
            } else if streams.count < LokiEncoder.mostApps {
                streams.append((app, [(place, event)]))
            } else if let rest = streams.firstIndex(where: { $0.app == "other" }) {
                streams[rest].events.append((place, event))
            } else {
                streams.append(("other", [(place, event)]))
            }
        }
        var text = JSONText(capacity: lines.count + lines.count / 2 + 256)
        text.raw(#"{"streams":["#)
        for stream in streams {
            text.raw(#"{"stream":"#)
            write(stream.app.map { labels.merging(["app": $0]) { $1 } } ?? labels, to: &text)
            text.raw(#","values":["#)
            for (place, event) in stream.events { write(event, at: place, of: header, to: &text) }
            text.dropLast()
            text.raw("]},")
        }
        if !streams.isEmpty { text.dropLast() }
        text.raw("]}")
        return text.bytes
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
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            text.string(name)
            text.raw(":")
            text.string(value)
            text.raw(",")
        }
        text.dropLast()
        text.raw("}")
    }
}
