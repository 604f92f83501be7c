internal import EventLoops
internal import Model

/// A value of an attribute.
indirect enum OTLPValue: Equatable {
    case empty
    case string(String)
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case array([OTLPValue])
    case map([OTLPAttribute])

    /// - Parameter depth: how much deeper values may be nested; what is deeper stays JSON, as text.
    init(_ json: JSONSlice, depth: Int = 32) {
        switch json.kind {
        case .null: self = .empty
        case .boolean: self = .boolean(json.boolean ?? false)
        case .string: self = .string(json.string ?? "")
        case .number:
            if let integer = json.integer {
                self = .integer(integer)
            } else if let double = json.double, double.isFinite {
                self = .double(double)
            } else {
                self = .string(json.text)
            }
        case .array where depth > 0:
            self = .array((json.elements ?? []).map { OTLPValue($0, depth: depth - 1) })
        case .object where depth > 0:
            self = .map(
                (json.members ?? []).map { OTLPAttribute($0.key, OTLPValue($0.value, depth: depth - 1)) }
                    .withUniqueKeys())
        case .array, .object:
            self = .string(json.text)
        }
    }
}

/// A name and its value.
struct OTLPAttribute: Equatable {
    let key: String
    let value: OTLPValue

    init(_ key: String, _ value: OTLPValue) {
        self.key = key
        self.value = value
    }
}

extension [OTLPAttribute] {
    /// Of each key the last value, in the place of its first: keys must be unique.
    func withUniqueKeys() -> [OTLPAttribute] {
        var places: [String: Int] = [:]
        var unique: [OTLPAttribute] = []
        for attribute in self {
            if let place = places[attribute.key] {
                unique[place] = attribute
            } else {
                places[attribute.key] = unique.count
                unique.append(attribute)
            }
        }
        return unique
    }
}

/// An event as a log record.
///
/// Its attributes' keys are unique: readers remove repeats by `log.record.uid`, which no app may shadow. The agent's own
/// come first and win; a property of the same name is called `property.NAME`; a member of the event's own that a property
/// or one of the agent's is called like is `member.NAME`.
struct OTLPRecord: Equatable {
    let time: UInt64
    let observed: UInt64
    let severity: OTLPSeverity
    let name: String
    /// The event's `message`, or else its name.
    let body: String
    /// 16 bytes; empty when the event has none, or none that is valid.
    let traceID: [UInt8]
    /// 8 bytes; empty when the event has none, or none that is valid.
    let spanID: [UInt8]
    let attributes: [OTLPAttribute]

    init(_ event: EventView, in batch: BatchHeader, at index: Int) {
        let time = event.time ?? batch.acceptedAt
        self.time = UInt64(clamping: time.nanoseconds)
        observed = UInt64(clamping: (event.observedAt ?? batch.acceptedAt).nanoseconds)
        name = event.name
        let type = event["type"]?.string
        var own = [OTLPAttribute("log.record.uid", .string(event.stableID(in: batch.id, at: index)))]
        if let session = event.sessionID { own.append(OTLPAttribute("session.id", .string(session))) }
        if let country = event["country"]?.string {
            own.append(OTLPAttribute("geo.country.iso_code", .string(country)))
        }
        if let type { own.append(OTLPAttribute("event.type", .string(type))) }
        var fields = OTLPFields(event)
        traceID = fields.identifier("trace_id", bytes: 16)
        spanID = traceID.isEmpty ? [] : fields.identifier("span_id", bytes: 8)
        severity = fields.severity(event) ?? (type == "crash" ? .fatal : .info)
        body = fields.message() ?? event.name
        let reserved: Set<String> = ["log.record.uid", "session.id", "geo.country.iso_code", "event.type"]
        var keys = reserved
        var attributes = own
        for property in fields.properties {
            let key = reserved.contains(property.key) ? "property.\(property.key)" : property.key
            keys.insert(key)
            attributes.append(OTLPAttribute(key, OTLPValue(property.value)))
        }
        for member in fields.members where !EventView.placed.contains(member.key) {
            let key = keys.contains(member.key) ? "member.\(member.key)" : member.key
            attributes.append(OTLPAttribute(key, OTLPValue(member.value)))
        }
        self.attributes = attributes.withUniqueKeys()
    }
}

/// Events one after the other that come from the same app and machine.
struct OTLPGroup: Equatable {
    let resource: [OTLPAttribute]
    var records: [OTLPRecord]

    /// What the semantic conventions call what the agent knows of a machine.
    private static let names = [
        "os_name": "os.name", "os_version": "os.version", "os_build": "os.build_id", "kernel": "os.description",
        "model": "device.model.name", "manufacturer": "device.manufacturer", "app_version": "service.version",
        "install_id": "service.instance.id", "host_name": "host.name", "sdk_name": "telemetry.sdk.name",
        "sdk_version": "telemetry.sdk.version",
    ]

    static func groups(of events: [EventView], in batch: BatchHeader) -> [OTLPGroup] {
        var groups: [OTLPGroup] = []
        var last: (app: ArraySlice<UInt8>?, device: ArraySlice<UInt8>?)
        for (index, event) in events.enumerated() {
            let source = (app: event["app"]?.bytes, device: (event.device ?? event["host_name"])?.bytes)
            if groups.isEmpty || source != last {
                groups.append(OTLPGroup(resource: resource(of: event), records: []))
                last = source
            }
            groups[groups.count - 1].records.append(OTLPRecord(event, in: batch, at: index))
        }
        return groups
    }

    private static func resource(of event: EventView) -> [OTLPAttribute] {
        var attributes: [OTLPAttribute] = []
        if let app = event["app"]?.string { attributes.append(OTLPAttribute("service.name", .string(app))) }
        for member in event.device?.members ?? [] {
            attributes.append(OTLPAttribute(names[member.key] ?? "device.\(member.key)", OTLPValue(member.value)))
        }
        if let host = event["host_name"]?.string { attributes.append(OTLPAttribute("host.name", .string(host))) }
        return attributes.withUniqueKeys()
    }
}
