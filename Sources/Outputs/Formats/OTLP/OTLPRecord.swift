internal import EventLoops
internal import Model

typealias OTLPAttributes = [(key: String, value: OTLPMessage)]

extension OTLPMessage {
    static func text(_ text: String) -> OTLPMessage { OTLPMessage((1, "stringValue", .text(text))) }

    /// Of each key the last value, in the place of its first: keys must be unique.
    private static func unique(_ attributes: OTLPAttributes) -> Value {
        var places: [String: Int] = [:]
        var unique: [OTLPMessage] = []
        for (key, value) in attributes {
            let message = OTLPMessage((1, "key", .text(key)), (2, "value", .message(value)))
            if let place = places[key] {
                unique[place] = message
            } else {
                places[key] = unique.count
                unique.append(message)
            }
        }
        return .messages(unique)
    }

    /// A value of an attribute; what is nested deeper than `depth` stays JSON, as text.
    static func value(_ json: JSONSlice, depth: Int = 32) -> OTLPMessage {
        switch json.kind {
        case .null: return OTLPMessage()
        case .boolean: return OTLPMessage((2, "boolValue", .boolean(json.boolean ?? false)))
        case .string: return .text(json.string ?? "")
        case .number:
            if let integer = json.integer { return OTLPMessage((3, "intValue", .integer(integer))) }
            // A whole number beyond 64 bits would be rounded.
            guard let double = json.double, double.isFinite, json.text.contains(where: { ".eE".contains($0) }) else {
                return .text(json.text)
            }
            return OTLPMessage((4, "doubleValue", .double(double)))
        case .array where depth > 0:
            let values = (json.elements ?? []).map { value($0, depth: depth - 1) }
            return OTLPMessage((5, "arrayValue", .message(OTLPMessage((1, "values", .messages(values))))))
        case .object where depth > 0:
            let members = (json.members ?? []).map { ($0.key, value($0.value, depth: depth - 1)) }
            return OTLPMessage((6, "kvlistValue", .message(OTLPMessage((1, "values", unique(members))))))
        case .array, .object: return .text(json.text)
        }
    }

    /// An event as a log record. Its body is the event's `message`, or else its name.
    ///
    /// Its attributes' keys are unique: readers remove repeats by `log.record.uid`, which no app may shadow. The agent's own
    /// come first and win; a property of the same name is called `property.NAME`; a member of the event's own that a property
    /// or one of the agent's is called like is `member.NAME`.
    static func record(_ event: EventView, in batch: BatchHeader, at index: Int) -> OTLPMessage {
        var fields = OTLPFields(event)
        let traceID = fields.identifier("trace_id", bytes: 16)
        let spanID = traceID.isEmpty ? [] : fields.identifier("span_id", bytes: 8)
        let severity = fields.severity(event)
        let body = fields.message() ?? event.name
        let own = [
            ("log.record.uid", event.stableID(in: batch.id, at: index)), ("session.id", event.sessionID),
            ("geo.country.iso_code", event["country"]?.string), ("event.type", event["type"]?.string),
        ]
        var attributes: OTLPAttributes = own.compactMap { name, text in text.map { (name, .text($0)) } }
        let reserved = Set(own.map(\.0))
        var keys = reserved
        for property in fields.properties {
            let key = reserved.contains(property.key) ? "property.\(property.key)" : property.key
            keys.insert(key)
            attributes.append((key, value(property.value)))
        }
        for member in fields.members {
            let key = keys.contains(member.key) ? "member.\(member.key)" : member.key
            attributes.append((key, value(member.value)))
        }
        func nanoseconds(_ time: Timestamp?) -> Value {
            .fixed(UInt64(clamping: (time ?? batch.acceptedAt).nanoseconds))
        }
        var record = OTLPMessage(
            (1, "timeUnixNano", nanoseconds(event.time)), (2, "severityNumber", .number(severity.number)))
        if !severity.text.isEmpty { record.add(3, "severityText", .text(severity.text)) }
        record.add(5, "body", .message(.text(body)))
        record.add(6, "attributes", unique(attributes))
        if !traceID.isEmpty { record.add(9, "traceId", .identifier(traceID)) }
        if !spanID.isEmpty { record.add(10, "spanId", .identifier(spanID)) }
        record.add(11, "observedTimeUnixNano", nanoseconds(event.observedAt))
        record.add(12, "eventName", .text(event.name))
        return record
    }

    /// What the semantic conventions call what the agent knows of a machine.
    private static let names = [
        "os_name": "os.name", "os_version": "os.version", "os_build": "os.build_id", "kernel": "os.description",
        "model": "device.model.name", "manufacturer": "device.manufacturer", "app_version": "service.version",
        "install_id": "service.instance.id", "host_name": "host.name", "sdk_name": "telemetry.sdk.name",
        "sdk_version": "telemetry.sdk.version",
    ]

    /// The request of a batch: events one after the other that come from the same app and machine are a group.
    static func request(_ events: [EventView], in batch: BatchHeader, version: String) -> OTLPMessage {
        var scope = OTLPMessage((1, "name", .text("spoolship")))
        if !version.isEmpty { scope.add(2, "version", .text(version)) }
        var groups: [(resource: OTLPMessage, records: [OTLPMessage])] = []
        var last: (app: ArraySlice<UInt8>?, device: ArraySlice<UInt8>?)
        for (index, event) in events.enumerated() {
            let source = (app: event["app"]?.bytes, device: (event.device ?? event["host_name"])?.bytes)
            if groups.isEmpty || source != last { groups.append((resource(of: event), [])) }
            last = source
            groups[groups.count - 1].records.append(record(event, in: batch, at: index))
        }
        let resourceLogs = groups.map { group in
            let scopeLogs = OTLPMessage((1, "scope", .message(scope)), (2, "logRecords", .messages(group.records)))
            return OTLPMessage((1, "resource", .message(group.resource)), (2, "scopeLogs", .messages([scopeLogs])))
        }
        return OTLPMessage((1, "resourceLogs", .messages(resourceLogs)))
    }

    private static func resource(of event: EventView) -> OTLPMessage {
        var attributes: OTLPAttributes = []
        if let app = event["app"]?.string { attributes.append(("service.name", .text(app))) }
        for member in event.device?.members ?? [] {
            attributes.append((names[member.key] ?? "device.\(member.key)", value(member.value)))
        }
        if let host = event["host_name"]?.string { attributes.append(("host.name", .text(host))) }
        return OTLPMessage((1, "attributes", unique(attributes)))
    }
}
