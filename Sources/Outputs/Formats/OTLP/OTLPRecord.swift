internal import EventLoops
internal import Model

/// Attributes in order; a key may occur more than once until `unique`.
typealias OTLPAttributes = [(key: String, value: OTLPMessage)]

extension OTLPMessage {
    /// A text as an `AnyValue`.
    static func text(_ text: String) -> OTLPMessage { OTLPMessage((1, "stringValue", .text(text))) }

    /// The attributes with unique keys, which the protocol demands: the last value of each key, at the
    /// position of its first.
    private static func unique(_ attributes: OTLPAttributes) -> Value {
        var places: [String: Int] = [:]
        var unique: [OTLPMessage] = []
        for (key, value) in attributes {
            let message = OTLPMessage((1, "key", .text(key)), (2, "value", .message(value)))
            if let index = places[key] {
                unique[index] = message
            } else {
                places[key] = unique.count
                unique.append(message)
            }
        }
        return .messages(unique)
    }

    /// A value of an attribute (`AnyValue`). A value that is nested deeper than `depth` stays JSON, as a
    /// text: a hostile event must not exhaust the stack.
    static func value(_ json: JSONSlice, depth: Int = 32) -> OTLPMessage {
        switch json.kind {
        case .null: return OTLPMessage()
        case .boolean: return OTLPMessage((2, "boolValue", .boolean(json.boolean ?? false)))
        case .string: return .text(json.string ?? "")
        case .number:
            if let integer = json.integer { return OTLPMessage((3, "intValue", .integer(integer))) }
            // A double would round a whole number beyond 64 bits, so it stays text.
            guard let double = json.double, double.isFinite, json.text.contains(where: { ".eE".contains($0) })
            else {
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

    /// An event as a log record.
    ///
    /// Keys of attributes are unique. The agent's attributes come first and win, because readers remove
    /// repeats by `log.record.uid`, which no app may replace. A property with the name of one of them
    /// becomes `property.NAME`; a member with the name of a property or of an agent's attribute becomes
    /// `member.NAME`.
    ///
    /// - Parameter service: the app that the event belongs to.
    static func record(
        _ event: EventView, of service: String?, in batch: BatchHeader, at index: Int
    ) -> OTLPMessage {
        var fields = OTLPFields(event)
        let trace = fields.trace()
        let severity = fields.severity()
        let body = fields.body()
        let own = [
            ("log.record.uid", event.stableID(in: batch.id, at: index)), ("session.id", event.sessionID),
            ("geo.country.iso_code", event["country"]?.string), ("event.type", event["type"]?.string),
        ]
        var attributes: OTLPAttributes = own.compactMap { name, text in text.map { (name, .text($0)) } }
        // A record may name another app than the one it belongs to.
        if let app = event["app"]?.string, app != service {
            attributes.append(("app", .text(app)))
        }
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
        var record = OTLPMessage((1, "timeUnixNano", nanoseconds(event.time)))
        if let severity {
            record.add(2, "severityNumber", .number(severity.number))
            if !severity.text.isEmpty {
                record.add(3, "severityText", .text(severity.text))
            }
        }
        record.add(5, "body", .message(.text(body)))
        record.add(6, "attributes", unique(attributes))
        if let flags = trace.flags {
            record.add(8, "flags", .fixed32(flags))
        }
        if !trace.traceID.isEmpty {
            record.add(9, "traceId", .identifier(trace.traceID))
        }
        if !trace.spanID.isEmpty {
            record.add(10, "spanId", .identifier(trace.spanID))
        }
        record.add(11, "observedTimeUnixNano", nanoseconds(event.observedAt))
        // An event's name determines its attributes (OpenTelemetry, "Semantic conventions for events"); a
        // line of a log has no such name.
        if !event.isRecord {
            record.add(12, "eventName", .text(event.name))
        }
        return record
    }

    /// Names of the semantic conventions for the members of `device`.
    private static let names = [
        "os_name": "os.name", "os_version": "os.version", "os_build": "os.build_id",
        "kernel": "os.description",
        "model": "device.model.name", "manufacturer": "device.manufacturer", "app_version": "service.version",
        "install_id": "service.instance.id", "host_name": "host.name", "sdk_name": "telemetry.sdk.name",
        "sdk_version": "telemetry.sdk.version",
    ]

    /// Version of the semantic conventions that these names are from.
    private static let schema = "https://opentelemetry.io/schemas/1.28.0"

    /// The request for a batch. Consecutive events of the same app and machine share a resource.
    ///
    /// - Parameter host: this machine's name as events give it; empty if they do not.
    static func request(
        _ events: [EventView], in batch: BatchHeader, version: String, host: String
    ) -> OTLPMessage {
        var scope = OTLPMessage((1, "name", .text("spoolship")))
        if !version.isEmpty {
            scope.add(2, "version", .text(version))
        }
        var groups: [(resource: OTLPMessage, records: [OTLPMessage])] = []
        var last: (service: String?, device: ArraySlice<UInt8>?)
        for (index, event) in events.enumerated() {
            // Older versions did not store the app of an event: the event then belongs to the app that it
            // names.
            let known = batch.apps.indices.contains(index) ? batch.apps[index] : ""
            let service = known.isEmpty ? event["app"]?.string : known
            let source = (service: service, device: (event.device ?? event["host_name"])?.bytes)
            if groups.isEmpty || source != last {
                groups.append((resource(of: event, service, host), []))
            }
            last = source
            groups[groups.count - 1].records.append(record(event, of: service, in: batch, at: index))
        }
        let resourceLogs = groups.map { group in
            let scopeLogs = OTLPMessage(
                (1, "scope", .message(scope)), (2, "logRecords", .messages(group.records)))
            return OTLPMessage(
                (1, "resource", .message(group.resource)), (2, "scopeLogs", .messages([scopeLogs])),
                (3, "schemaUrl", .text(schema)))
        }
        return OTLPMessage((1, "resourceLogs", .messages(resourceLogs)))
    }

    /// The resource of an event: its app and its machine.
    private static func resource(of event: EventView, _ service: String?, _ host: String) -> OTLPMessage {
        var attributes: OTLPAttributes = []
        if let service {
            attributes.append(("service.name", .text(service)))
        }
        for member in event.device?.members ?? [] {
            attributes.append((names[member.key] ?? "device.\(member.key)", value(member.value)))
        }
        if let host = event["host_name"]?.string {
            attributes.append(("host.name", .text(host)))
        }
        if !host.isEmpty, event.isFrom(host) {
            attributes.append(("os.type", .text("linux")))
        }
        return OTLPMessage((1, "attributes", unique(attributes)))
    }
}
