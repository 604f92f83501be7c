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
            self = .map((json.members ?? []).map { OTLPAttribute($0.key, OTLPValue($0.value, depth: depth - 1)) })
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

/// An event as a log record.
struct OTLPRecord: Equatable {
    let time: UInt64
    let observed: UInt64
    /// 9 is INFO, 21 is FATAL.
    let severity: Int
    let name: String
    let attributes: [OTLPAttribute]

    /// Members with a place of their own in a record or a resource.
    private static let placed: Set<String> = [
        "name", "timestamp", "observed_at", "properties", "app", "device", "id", "session_id", "country", "type",
    ]

    init(_ event: EventView, in batch: BatchHeader, at index: Int) {
        let time = event.time ?? batch.acceptedAt
        self.time = UInt64(clamping: time.nanoseconds)
        observed = UInt64(clamping: (event.observedAt ?? batch.acceptedAt).nanoseconds)
        let type = event["type"]?.string
        severity = type == "crash" ? 21 : 9
        name = event.name
        var attributes = event.properties.map { OTLPAttribute($0.key, OTLPValue($0.value)) }
        attributes.append(OTLPAttribute("log.record.uid", .string(event.stableID(in: batch.id, at: index))))
        if let session = event.sessionID { attributes.append(OTLPAttribute("session.id", .string(session))) }
        if let country = event["country"]?.string {
            attributes.append(OTLPAttribute("geo.country.iso_code", .string(country)))
        }
        if let type { attributes.append(OTLPAttribute("event.type", .string(type))) }
        for member in event.members where !OTLPRecord.placed.contains(member.key) {
            attributes.append(OTLPAttribute(member.key, OTLPValue(member.value)))
        }
        self.attributes = attributes
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
        "install_id": "service.instance.id",
    ]

    static func groups(of events: [EventView], in batch: BatchHeader) -> [OTLPGroup] {
        var groups: [OTLPGroup] = []
        var last: (app: ArraySlice<UInt8>?, device: ArraySlice<UInt8>?)
        for (index, event) in events.enumerated() {
            let source = (app: event["app"]?.bytes, device: event.device?.bytes)
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
        return attributes
    }
}
