internal import EventLoops
public import Model

/// Grafana Loki's push API: one stream with the destination's labels, one entry an event, the event itself as its line.
///
/// The labels are the settings' alone: one made of events would make a stream for each of its values.
/// Source: Loki reference, "Ingest logs", `POST /loki/api/v1/push`.
public struct LokiEncoder: BatchEncoder {
    private let labels: [(name: String, value: String)]

    /// - Parameter labels: the stream's; default `job="spoolship"`, because Loki takes no stream without any.
    public init(labels: [String: String] = [:]) {
        let labels = labels.isEmpty ? ["job": "spoolship"] : labels
        self.labels = labels.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// `application/json`.
    public var contentType: String { "application/json" }

    /// One stream. An event without a time has the batch's.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        var text = JSONText(capacity: lines.count + lines.count / 4 + 256)
        text.raw(#"{"streams":[{"stream":{"#)
        for label in labels {
            text.string(label.name)
            text.raw(":")
            text.string(label.value)
            text.raw(",")
        }
        text.dropLast()
        text.raw(#"},"values":["#)
        for event in events {
            text.raw("[\"")
            text.number((event.time ?? header.acceptedAt).nanoseconds)
            text.raw("\",")
            text.string(event.line)
            text.raw("],")
        }
        if !events.isEmpty { text.dropLast() }
        text.raw("]}]}")
        return text.bytes
    }
}
