internal import EventLoops
internal import Model

/// Writes events as log records.
///
/// Keys of attributes are unique. The agent's attributes come first and win, because readers remove repeats
/// by `log.record.uid`, which no app may replace. A property with the name of one of them becomes
/// `property.NAME`; a member with the name of a property or of an agent's attribute becomes `member.NAME`.
struct OTLPRecord: ~Copyable {
    /// Attributes that are the agent's.
    private static let reserved: EventNames = [.recordUID, .dottedSessionID, .countryCode, .eventType]

    private var fields: OTLPFields
    /// The record's id by which readers recognise a repeat.
    private var uid = BodyBuffer(capacity: 320)
    /// Places of the members that become attributes.
    private var own: [Int] = []
    /// Hashes of the names of all attributes that are not the agent's.
    private var hashes: [UInt32] = []
    /// The last hashes that were found to differ: most records of a log have the names of the one before.
    private var differing: [UInt32] = []

    /// - Parameter keys: members of traces besides the usual ones; nil without them.
    init(_ keys: OTLPKeys?) { fields = OTLPFields(keys) }

    /// Writes a record into the field `logRecords`.
    ///
    /// - Parameters:
    ///   - service: the app that the event belongs to.
    ///   - messages: where the app's events have their message, besides the usual members.
    mutating func write<Sink: OTLPSink & ~Copyable>(
        _ event: borrowing EventScan, of service: [UInt8]?, messages: [MemberPath], in batch: BatchHeader,
        at index: Int, to sink: inout Sink
    ) {
        fields.begin(event)
        let isRecord = event.isRecord
        let trace = fields.trace(event)
        let severity = fields.severity(event)
        let body = fields.body(event, isRecord: isRecord, at: messages)
        uid.cut(to: 0)
        event.writeStableID(in: batch.id, at: index, to: &uid)

        let mark = sink.openItem(2, about: event.line.count * 2)
        sink.fixed(1, "timeUnixNano", OTLPRecord.nanoseconds(event.time ?? batch.acceptedAt))
        if let severity {
            sink.number(2, "severityNumber", severity.number)
            if !severity.text.isEmpty {
                sink.text(3, "severityText", severity.text)
            }
        }
        let value = sink.open(5, "body", about: (body?.count ?? event.line.count) + 2)
        if let body {
            sink.text(1, "stringValue", body)
        } else {
            sink.text(1, "stringValue", utf8: event.line)
        }
        sink.close(value)
        attributes(of: event, service, to: &sink)
        if let flags = trace.flags {
            sink.fixed(8, "flags", flags)
        }
        if !trace.traceID.isEmpty {
            sink.identifier(9, "traceId", trace.traceID)
        }
        if !trace.spanID.isEmpty {
            sink.identifier(10, "spanId", trace.spanID)
        }
        sink.fixed(11, "observedTimeUnixNano", OTLPRecord.nanoseconds(event.observedAt ?? batch.acceptedAt))
        // An event's name determines its attributes (OpenTelemetry, "Semantic conventions for events"); a
        // line of a log has no such name.
        if !isRecord {
            sink.text(12, "eventName", event.name)
        }
        sink.close(mark)
    }

    private static func nanoseconds(_ time: Timestamp) -> UInt64 { UInt64(clamping: time.nanoseconds) }

    private mutating func attributes<Sink: OTLPSink & ~Copyable>(
        of event: borrowing EventScan, _ service: [UInt8]?, to sink: inout Sink
    ) {
        sink.openList("attributes")
        // A record may name another app than the one it belongs to.
        let named = event[.app]?.text
        let app = named.flatMap { text in service.map { text.equals($0) } == true ? nil : text }
        let id = TextBytes(UnsafePointer(uid.start), uid.count, .utf8)
        if gather(event, hasApp: app != nil) {
            OTLPValues.attribute(6, TextBytes("log.record.uid"), id, to: &sink)
            for (key, name) in OTLPRecord.agents {
                if let text = event[name]?.text {
                    OTLPValues.attribute(6, TextBytes(key), text, to: &sink)
                }
            }
            if let app {
                OTLPValues.attribute(6, TextBytes("app"), app, to: &sink)
            }
            for index in 0..<fields.properties.count {
                let property = fields.properties[index]
                if fields.hasTaken(property: property) { continue }
                OTLPValues.attribute(6, property.name, property.value, to: &sink)
            }
            for index in own {
                let member = event.members[index]
                OTLPValues.attribute(6, member.name, member.value, to: &sink)
            }
        } else {
            OTLPValues.write(6, collected(event, id: id, app: app), to: &sink)
        }
        sink.closeList()
    }

    /// The agent's attributes besides the id, with the members that they come from.
    private static let agents: [(key: StaticString, member: EventName)] = [
        ("session.id", .sessionID), ("geo.country.iso_code", .country), ("event.type", .type),
    ]

    /// Finds the members that become attributes; false if their keys are not certainly unique.
    private mutating func gather(_ event: borrowing EventScan, hasApp: Bool) -> Bool {
        own.removeAll(keepingCapacity: true)
        hashes.removeAll(keepingCapacity: true)
        let id = event.idIndex.flatMap { event.members[$0].known }
        var isCertain = !event.members.hasEscapedNames && !fields.properties.hasEscapedNames
        for index in 0..<event.members.count {
            let member = event.members[index]
            if fields.hasTaken(member: member) { continue }
            if let known = member.known {
                if known == id || event.isPlaced(member) { continue }
                if OTLPRecord.reserved.contains(known) || known == .app && hasApp {
                    isCertain = false
                }
            }
            own.append(index)
            hashes.append(member.hash)
        }
        for index in 0..<fields.properties.count {
            let property = fields.properties[index]
            if fields.hasTaken(property: property) { continue }
            if let known = property.known {
                if OTLPRecord.reserved.contains(known) || known == .app && hasApp {
                    isCertain = false
                }
            }
            hashes.append(property.hash)
        }
        guard isCertain else { return false }
        if hashes == differing { return true }
        guard areDifferent else { return false }
        differing = hashes
        return true
    }

    /// Whether all hashes differ; false if there are too many to compare.
    private var areDifferent: Bool {
        guard hashes.count <= OTLPValues.mostCompared else { return false }
        return hashes.withUnsafeBufferPointer { hashes in
            var place = 1
            while place < hashes.count {
                let hash = hashes[place]
                for other in 0..<place where hashes[other] == hash { return false }
                place += 1
            }
            return true
        }
    }

    /// All attributes with the names that they get.
    private func collected(
        _ event: borrowing EventScan, id: TextBytes, app: TextBytes?
    ) -> [OTLPValues.Collected] {
        let uid = Array("log.record.uid".utf8)
        var found = [OTLPValues.Collected(key: uid, value: .text(id))]
        var keys: Set<[UInt8]> = [uid]
        for (key, name) in OTLPRecord.agents {
            let key = TextBytes(key).decoded
            keys.insert(key)
            if let text = event[name]?.text {
                found.append(OTLPValues.Collected(key: key, value: .text(text)))
            }
        }
        if let app {
            found.append(OTLPValues.Collected(key: Array("app".utf8), value: .text(app)))
        }
        let reserved = keys
        for index in 0..<fields.properties.count {
            let property = fields.properties[index]
            if fields.hasTaken(property: property) { continue }
            let name = property.name.decoded
            let key = reserved.contains(name) ? Array("property.".utf8) + name : name
            keys.insert(key)
            found.append(OTLPValues.Collected(key: key, value: .json(property.value)))
        }
        for index in own {
            let name = event.members[index].name.decoded
            let key = keys.contains(name) ? Array("member.".utf8) + name : name
            found.append(OTLPValues.Collected(key: key, value: .json(event.members[index].value)))
        }
        return found
    }
}
