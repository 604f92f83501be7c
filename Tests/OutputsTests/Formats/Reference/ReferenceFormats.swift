import EventLoops
import Events
import Model

@testable import Outputs

/// Loki's requests as the first version of the format wrote them.
struct ReferenceLoki {
    let names: [String]
    let filling: EventTemplates
    let host: String?
    let metadata: StructuredMetadata
    var isLate = false
    private let namesPriority = true
    private let namesApp = true

    init(host: String? = nil, structuredMetadata: StructuredMetadata) {
        names = ["job"]
        filling = EventTemplates(["spoolship"])
        self.host = host
        metadata = structuredMetadata
    }

    /// A body with a stream for each app, in the order of their first events. An event without a time gets
    /// the batch's.
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        let filled = try filling.fill(for: header) { () throws(OutputError) in events }
        var streams: [(stream: Stream, places: [Int])] = []
        var numbers: [Stream: Int] = [:]
        for (index, event) in events.enumerated() {
            let hour = isLate ? String("\(event.time ?? header.acceptedAt)".prefix(13)) : nil
            let known = header.apps.indices.contains(index) ? header.apps[index] : ""
            let app = event.owner(known).flatMap { Template.Place.label.safe($0) } ?? EventTemplates.missing
            let stream = Stream(
                values: filled.number(of: index), app: namesApp ? app : nil,
                host: host.flatMap { event.isFrom($0) ? $0 : nil }, hour: hour)
            if let number = numbers[stream] {
                streams[number].places.append(index)
            } else {
                numbers[stream] = streams.count
                streams.append((stream, [index]))
            }
        }
        var text = JSONText(capacity: lines.count + lines.count / 2 + 256)
        text.raw(#"{"streams":["#)
        for (stream, places) in streams {
            text.raw(#"{"stream":"#)
            var labels: [String: String] = [:]
            if namesPriority, header.priority == .critical {
                labels["priority"] = header.priority.name
            }
            for (name, value) in zip(names, filled.texts[stream.values]) { labels[name] = value }
            labels["app"] = stream.app ?? labels["app"]
            labels["host"] = stream.host ?? labels["host"]
            labels["late"] = stream.hour ?? labels["late"]
            // Loki refuses a stream without labels.
            write(labels.isEmpty ? ["job": "spoolship"] : labels, to: &text)
            text.raw(#","values":["#)
            for index in places { write(events[index], at: index, of: header, to: &text) }
            text.close("]},")
        }
        text.close("]}")
        return text.bytes
    }

    /// The key of a stream within a request.
    private struct Stream: Hashable {
        /// Index of the texts of the label templates.
        let values: Int
        /// Value of the label `app`; nil without that label.
        let app: String?
        /// Value of the label `host`; nil for events that name no host, or another.
        let host: String?
        /// Hour of the event, `2026-11-20T10`; nil unless streams are divided by hour.
        let hour: String?
    }

    /// Writes an entry: time in nanoseconds, line, structured metadata.
    private func write(_ event: EventView, at index: Int, of header: BatchHeader, to text: inout JSONText) {
        text.raw("[\"")
        text.number((event.time ?? header.acceptedAt).nanoseconds)
        text.raw("\",")
        text.string(event.line)
        if metadata != .none {
            var found: [String: String] = [:]
            for path in metadata.members {
                // The path may also be the name of a property.
                let value = event.member(at: path) ?? event.properties.last { $0.key == path }?.value
                if let text = value?.scalar {
                    found[ReferenceLoki.name(of: path)] = ReferenceLoki.cut(text)
                }
            }
            found["event_id"] = event.stableID(in: header.id, at: index)
            if let session = event.sessionID {
                found["session_id"] = session
            }
            if let severity = event.severity?.value {
                found["level"] = severity.level.rawValue
            }
            text.raw(",")
            write(found, to: &text)
        }
        text.raw("],")
    }

    /// A member's path as a name that Loki accepts: `trace.id` becomes `trace_id`.
    private static func name(of path: String) -> String {
        let name = String(path.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        return name.first?.isNumber == true ? "_\(name)" : name
    }

    /// Longest value of structured metadata, in bytes. Loki refuses entries with more than 64 KiB of
    /// structured metadata.
    private static let longestValue = 1024

    /// A text cut to that length, between characters.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > longestValue else { return text }
        var cut = ""
        var length = 0
        for scalar in text.unicodeScalars {
            length += UTF8.width(scalar)
            guard length <= longestValue else { break }
            cut.unicodeScalars.append(scalar)
        }
        return cut
    }

    /// Writes an object of texts, sorted by name: the same batch must give the same bytes.
    private func write(_ members: [String: String], to text: inout JSONText) {
        text.raw("{")
        for (name, value) in members.sorted(by: { $0.key < $1.key }) { text.member(name, value) }
        text.close("}")
    }
}

/// Requests of `_bulk` as the first version of the format wrote them.
struct ReferenceElasticsearch {
    func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        var text = JSONText(capacity: lines.count + events.count * 128)
        var times = TimestampWriter()
        for (place, event) in events.enumerated() {
            text.raw(#"{"create":{"#)
            text.member("_id", event.stableID(in: header.id, at: place))
            text.close("}}\n")
            write(event, to: &text, &times)
            text.raw("\n")
        }
        return text.bytes
    }

    /// Writes an event as it is, with `@timestamp` as its first member if it has none.
    private func write(_ event: EventView, to text: inout JSONText, _ times: inout TimestampWriter) {
        guard event["@timestamp"] == nil, let time = event.time,
            let brace = event.line.firstIndex(of: UInt8(ascii: "{"))
        else { return text.raw(event.line) }
        text.raw(#"{"@timestamp":"#)
        text.string(times.text(of: time))
        if !event.members.isEmpty {
            text.raw(",")
        }
        text.raw(event.line[(brace + 1)...])
    }
}
