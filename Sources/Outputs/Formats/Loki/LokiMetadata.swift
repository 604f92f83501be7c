internal import Events
internal import Model

/// The structured metadata of an entry: the ids and the level of its event, and the members that the
/// settings name, sorted by name.
struct LokiMetadata: ~Copyable {
    /// Where a value comes from.
    private enum Source {
        case member(name: [UInt8], parts: [[UInt8]])
        case eventID, session, level
    }

    /// A name with its colon as JSON, and where its value comes from: the last source that has one counts.
    private let fields: [(key: [UInt8], sources: [Source])]
    /// Whether the settings name members, which are looked for among the properties, too.
    private let readsProperties: Bool
    private var severities = SeverityReader()
    /// The properties of the present event; empty unless members are named.
    private var properties = MemberList()
    /// The id of the present event.
    private var id = BodyBuffer(capacity: 320)

    /// Longest value, in bytes. Loki refuses entries with more than 64 KiB of structured metadata.
    private static let longestValue = 1024

    /// - Parameter members: members to send, as names or paths with dots.
    init(_ members: [String]) {
        var sources: [String: [Source]] = [:]
        for path in members {
            let parts = path.split(separator: ".").map { Array($0.utf8) }
            sources[LokiMetadata.name(of: path), default: []].append(
                .member(name: Array(path.utf8), parts: parts))
        }
        sources["event_id", default: []].append(.eventID)
        sources["session_id", default: []].append(.session)
        sources["level", default: []].append(.level)
        readsProperties = !members.isEmpty
        fields = sources.sorted { $0.key < $1.key }.map { name, sources in
            (Array("\"\(name)\":".utf8), sources.reversed())
        }
    }

    /// A member's path as a name that Loki accepts: `trace.id` becomes `trace_id`.
    private static func name(of path: String) -> String {
        let name = String(path.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        return name.first?.isNumber == true ? "_\(name)" : name
    }

    /// Writes the metadata of an event as an object.
    mutating func write(
        _ event: borrowing EventScan, in batch: BatchID, at index: Int, to out: inout BodyBuffer
    ) {
        guard readsProperties else { return writeUsual(event, in: batch, at: index, to: &out) }
        // Only members that the settings name are looked for among the properties.
        properties.removeAll()
        if let value = event[.properties], value.isObject,
            !properties.read(value.start, value.count)
        {
            properties.removeAll()
        }
        out.byte(UInt8(ascii: "{"))
        var isFirst = true
        for field in fields {
            let start = out.count
            if !isFirst {
                out.byte(UInt8(ascii: ","))
            }
            field.key.withUnsafeBufferPointer { out.append($0) }
            var isWritten = false
            for source in field.sources where !isWritten {
                isWritten = write(source, event, batch, index, &out)
            }
            if isWritten {
                isFirst = false
            } else {
                out.cut(to: start)
            }
        }
        out.byte(UInt8(ascii: "}"))
    }

    /// Writes what every event has if the settings name no members. The general way would cost as much as the
    /// event's line.
    private mutating func writeUsual(
        _ event: borrowing EventScan, in batch: BatchID, at index: Int, to out: inout BodyBuffer
    ) {
        out.append(#"{"event_id":"# as StaticString)
        _ = write(.eventID, event, batch, index, &out)
        let end = out.count
        out.append(#","level":"# as StaticString)
        if !write(.level, event, batch, index, &out) {
            out.cut(to: end)
        }
        if let session = event[.sessionID]?.text {
            out.append(#","session_id":"# as StaticString)
            out.quoted(session)
        }
        out.byte(UInt8(ascii: "}"))
    }

    /// Writes the value of a source; false if the event has none.
    private mutating func write(
        _ source: Source, _ event: borrowing EventScan, _ batch: BatchID, _ index: Int,
        _ out: inout BodyBuffer
    ) -> Bool {
        switch source {
        case .eventID:
            id.cut(to: 0)
            event.writeStableID(in: batch, at: index, to: &id)
            out.quoted(id.bytes)
        case .session:
            guard let session = event[.sessionID]?.text else { return false }
            out.quoted(session)
        case .level:
            guard let level = severities.read(event)?.value.level else { return false }
            var word = level.rawValue
            word.withUTF8 { out.quoted($0) }
        case .member(let name, let parts):
            guard let value = value(of: event, name, parts)?.scalar else { return false }
            write(value, &out)
        }
        return true
    }

    /// The value of a member or of a path. The path may also be the name of a property.
    private func value(of event: borrowing EventScan, _ name: [UInt8], _ parts: [[UInt8]]) -> JSONBytes? {
        if let found = event.value(name, parts) { return found }
        for index in (0..<properties.count).reversed() where properties[index].name.equals(name) {
            return properties[index].value
        }
        return nil
    }

    /// Writes a value, cut to the greatest length between two characters.
    private func write(_ value: TextBytes, _ out: inout BodyBuffer) {
        guard value.count > LokiMetadata.longestValue else { return out.quoted(value) }
        let text = value.decoded
        var end = min(text.count, LokiMetadata.longestValue)
        while end < text.count, end > 0, text[end] & 0xC0 == 0x80 { end -= 1 }
        text[..<end].withUnsafeBufferPointer { out.quoted($0) }
    }
}
