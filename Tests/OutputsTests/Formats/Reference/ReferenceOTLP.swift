import EventLoops
import Events
import Model

@testable import Outputs

// OpenTelemetry logs as the first version of the format wrote them: slow, and so plain that it can be read
// against the protocol. `FormatAgreementTests` compares the format with it.

/// A message of the protocol, to be written as protocol buffers or as the protocol's JSON.
///
/// Source: opentelemetry-proto v1, `logs.proto`, `common.proto`, `logs_service.proto` for field numbers and
/// JSON names; Protocol Buffers documentation, "Encoding"; OTLP, "JSON Protobuf Encoding".
struct ReferenceMessage {
    /// A field's value by its type in the protocol, which decides how each encoding writes it.
    enum Value {
        case text(String)
        /// A small whole number (an enumeration), written as a varint.
        case number(Int)
        /// A signed number of 64 bits, written as a varint; in JSON a string, because readers round larger
        /// numbers.
        case integer(Int64)
        /// An unsigned number of 64 bits, always eight bytes; in JSON a string.
        case fixed(UInt64)
        /// An unsigned number of 32 bits, always four bytes.
        case fixed32(UInt32)
        case double(Double)
        case boolean(Bool)
        /// Id of a trace or span; in JSON hexadecimal digits, while the protocol's other bytes would be
        /// Base64.
        case identifier([UInt8])
        case message(ReferenceMessage)
        /// A repeated field: written once for each message.
        case messages([ReferenceMessage])
    }

    /// The fields, in the order of their numbers.
    var fields: [(number: UInt64, name: StaticString, value: Value)] = []

    init(_ fields: (UInt64, StaticString, Value)...) { self.fields = fields }

    mutating func add(_ number: UInt64, _ name: StaticString, _ value: Value) {
        fields.append((number, name, value))
    }

    /// Writes the message as JSON.
    func write(to text: inout JSONText) {
        text.raw("{")
        for field in fields {
            text.raw("\"")
            text.raw(field.name)
            text.raw("\":")
            switch field.value {
            case .text(let string): text.string(string)
            case .number(let number): text.number(number)
            case .integer(let integer): text.string(String(integer))
            case .fixed(let number): text.string(String(number))
            case .fixed32(let number): text.number(number)
            case .double(let double): text.raw("\(double)".utf8)
            case .boolean(let boolean): text.raw(boolean ? "true" : "false")
            case .identifier(let bytes): text.string(Hexadecimal.text(bytes))
            case .message(let message): message.write(to: &text)
            case .messages(let messages):
                text.raw("[")
                for message in messages {
                    message.write(to: &text)
                    text.raw(",")
                }
                text.close("]")
            }
            text.raw(",")
        }
        text.close("}")
    }

    /// The message as protocol buffers.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        // A varint: seven bits in each byte, the lowest first; the top bit says that more follow.
        func append(_ number: UInt64) {
            var rest = number
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        // Each field begins with its number and its wire type: 0 for a varint, 1 for eight bytes, 5 for
        // four bytes, 2 for a length with content.
        func append(_ field: UInt64, varint: UInt64) {
            append(field << 3)
            append(varint)
        }
        func append(_ field: UInt64, fixed: UInt64) {
            append(field << 3 | 1)
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: fixed >> shift))
            }
        }
        func append(_ field: UInt64, fixed32: UInt32) {
            append(field << 3 | 5)
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: fixed32 >> shift))
            }
        }
        func append(_ field: UInt64, content: [UInt8]) {
            append(field << 3 | 2)
            append(UInt64(content.count))
            bytes.append(contentsOf: content)
        }
        for (field, _, value) in fields {
            switch value {
            case .text(let text): append(field, content: Array(text.utf8))
            case .number(let number): append(field, varint: UInt64(number))
            case .integer(let integer): append(field, varint: UInt64(bitPattern: integer))
            case .fixed(let number): append(field, fixed: number)
            case .fixed32(let number): append(field, fixed32: number)
            case .double(let double): append(field, fixed: double.bitPattern)
            case .boolean(let boolean): append(field, varint: boolean ? 1 : 0)
            case .identifier(let content): append(field, content: content)
            case .message(let message): append(field, content: message.bytes)
            case .messages(let messages): for message in messages { append(field, content: message.bytes) }
            }
        }
        return bytes
    }
}

/// Attributes in order; a key may occur more than once until `unique`.
typealias ReferenceAttributes = [(key: String, value: ReferenceMessage)]

extension ReferenceMessage {
    /// A text as an `AnyValue`.
    static func text(_ text: String) -> ReferenceMessage { ReferenceMessage((1, "stringValue", .text(text))) }

    /// The attributes with unique keys, which the protocol demands: the last value of each key, at the
    /// position of its first.
    private static func unique(_ attributes: ReferenceAttributes) -> Value {
        var places: [String: Int] = [:]
        var unique: [ReferenceMessage] = []
        for (key, value) in attributes {
            let message = ReferenceMessage((1, "key", .text(key)), (2, "value", .message(value)))
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
    static func value(_ json: JSONSlice, depth: Int = 32) -> ReferenceMessage {
        switch json.kind {
        case .null: return ReferenceMessage()
        case .boolean: return ReferenceMessage((2, "boolValue", .boolean(json.boolean ?? false)))
        case .string: return .text(json.string ?? "")
        case .number:
            if let integer = json.integer { return ReferenceMessage((3, "intValue", .integer(integer))) }
            // A double would round a whole number beyond 64 bits, so it stays text.
            guard let double = json.double, double.isFinite, json.text.contains(where: { ".eE".contains($0) })
            else {
                return .text(json.text)
            }
            return ReferenceMessage((4, "doubleValue", .double(double)))
        case .array where depth > 0:
            let values = (json.elements ?? []).map { value($0, depth: depth - 1) }
            return ReferenceMessage(
                (5, "arrayValue", .message(ReferenceMessage((1, "values", .messages(values))))))
        case .object where depth > 0:
            let members = (json.members ?? []).map { ($0.key, value($0.value, depth: depth - 1)) }
            return ReferenceMessage(
                (6, "kvlistValue", .message(ReferenceMessage((1, "values", unique(members))))))
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
    ) -> ReferenceMessage {
        var fields = ReferenceFields(event)
        let trace = fields.trace()
        let severity = fields.severity()
        let body = fields.body()
        let own = [
            ("log.record.uid", event.stableID(in: batch.id, at: index)), ("session.id", event.sessionID),
            ("geo.country.iso_code", event["country"]?.string), ("event.type", event["type"]?.string),
        ]
        var attributes: ReferenceAttributes = own.compactMap { name, text in text.map { (name, .text($0)) } }
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
        var record = ReferenceMessage((1, "timeUnixNano", nanoseconds(event.time)))
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
    ) -> ReferenceMessage {
        var scope = ReferenceMessage((1, "name", .text("spoolship")))
        if !version.isEmpty {
            scope.add(2, "version", .text(version))
        }
        var groups: [(resource: ReferenceMessage, records: [ReferenceMessage])] = []
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
            let scopeLogs = ReferenceMessage(
                (1, "scope", .message(scope)), (2, "logRecords", .messages(group.records)))
            return ReferenceMessage(
                (1, "resource", .message(group.resource)), (2, "scopeLogs", .messages([scopeLogs])),
                (3, "schemaUrl", .text(schema)))
        }
        return ReferenceMessage((1, "resourceLogs", .messages(resourceLogs)))
    }

    /// The resource of an event: its app and its machine.
    private static func resource(of event: EventView, _ service: String?, _ host: String) -> ReferenceMessage
    {
        var attributes: ReferenceAttributes = []
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
        return ReferenceMessage((1, "attributes", unique(attributes)))
    }
}

/// The members and properties of an event while a record is made from it: a member that becomes a field of
/// the record is removed, the rest become attributes.
struct ReferenceFields {
    /// Members that are still to become attributes.
    private(set) var members: [(key: String, value: JSONSlice)]
    /// Properties that are still to become attributes.
    private(set) var properties: [(key: String, value: JSONSlice)]
    private let event: EventView
    /// Names of `ReferenceNames` that the event has. Most events have few, so most look-ups end here.
    private let present: Set<String>

    init(_ event: EventView) {
        self.event = event
        members = event.ownMembers
        properties = event.properties
        present = Set((members + properties).lazy.map(\.key).filter { ReferenceNames.all.contains($0) })
    }

    /// The trace of the event, from ids of its own or from a W3C `traceparent`; empty if no id is valid.
    mutating func trace() -> ReferenceTrace {
        guard !present.isEmpty else { return ReferenceTrace() }
        for name in ReferenceNames.trace {
            guard let id = extract(name, { ReferenceTrace.identifier($0.string, bytes: 16) }) else {
                continue
            }
            var trace = ReferenceTrace(traceID: id)
            // Datadog writes ids of spans as decimal numbers.
            trace.spanID =
                name == ReferenceNames.datadogTrace
                ? extract(ReferenceNames.datadogSpan) {
                    ReferenceTrace.decimalIdentifier($0.string ?? $0.text)
                } ?? []
                : ReferenceNames.span.firstResult {
                    extract($0) { ReferenceTrace.identifier($0.string, bytes: 8) }
                }
                    ?? []
            trace.flags = ReferenceNames.flags.firstResult { extract($0) { ReferenceTrace.flags($0) } }
            return trace
        }
        return extract(ReferenceNames.parent) { $0.string.flatMap { ReferenceTrace(parent: $0) } }
            ?? ReferenceTrace()
    }

    /// The severity number, 1 (trace) to 24 (fatal), and the event's own word for it, empty without one;
    /// nil if the event gives no severity, because an invented one would hide the alarming records among
    /// the others. A word is then no longer an attribute; a number still is.
    ///
    /// Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`.
    mutating func severity() -> (number: Int, text: String)? {
        if let (value, path, text) = event.severity {
            if text != nil {
                members.removeAll { $0.key == path }
            }
            return (value.number, text ?? value.level.rawValue.uppercased())
        }
        for name in ["severity", "level"] {
            let found = extract(name) { value in
                Severity(text: value.string ?? value.text, in: Severity.scale(of: name)).map {
                    ($0.number, value.string ?? "")
                }
            }
            if let found { return found }
        }
        return event["type"]?.string == "crash" ? (21, "") : nil
    }

    /// The text for a person: an event's message or name; a record's message, by the names that loggers
    /// use, or else the whole record as JSON.
    mutating func body() -> String {
        let names = event.isRecord ? ReferenceNames.message[...] : ReferenceNames.message.prefix(1)
        let found = names.firstResult { name in
            extract(name) { value -> String? in value.string.flatMap { $0.isEmpty ? nil : $0 } }
        }
        return found ?? (event.isRecord ? String(decoding: event.line, as: UTF8.self) : event.name)
    }

    /// The member, or else the property, of that name, if `read` accepts it; it is then no longer an
    /// attribute. A name with a dot may also lead into an object, which stays an attribute.
    private mutating func extract<Value>(_ name: String, _ read: (JSONSlice) -> Value?) -> Value? {
        let dot = name.firstIndex(of: ".")
        guard present.contains(name) || dot.map({ present.contains(String(name[..<$0])) }) == true else {
            return nil
        }
        if let member = members.last(where: { $0.key == name }), let value = read(member.value) {
            members.removeAll { $0.key == name }
            return value
        }
        if let property = properties.last(where: { $0.key == name }), let value = read(property.value) {
            properties.removeAll { $0.key == name }
            return value
        }
        guard let dot else { return nil }
        let (outer, inner) = (name[..<dot], String(name[name.index(after: dot)...]))
        let object = members.last { $0.key == outer } ?? properties.last { $0.key == outer }
        return object?.value[inner].flatMap(read)
    }
}

/// Names that loggers use for what has a field of its own in a record. A name with a dot is a member's
/// name, or leads into an object.
private enum ReferenceNames {
    static let datadogTrace = "dd.trace_id"
    static let datadogSpan = "dd.span_id"
    static let parent = "traceparent"
    static let trace = ["trace_id", "traceId", "TraceId", "@tr", "trace.id", "otelTraceID", datadogTrace]
    static let span = ["span_id", "spanId", "SpanId", "@sp", "span.id", "otelSpanID"]
    static let flags = ["trace_flags", "traceFlags", "TraceFlags", "trace.flags", "otelTraceSampled"]
    static let message = [
        "message", "msg", "@m", "Message", "event", "text", "log", "short_message", "record.message", "@mt",
    ]

    /// All these names, and the first parts of those with dots.
    static let all: Set<String> = {
        let names = trace + span + flags + message + [datadogSpan, parent, "severity", "level"]
        return Set(names + names.compactMap { name in name.firstIndex(of: ".").map { String(name[..<$0]) } })
    }()
}

extension Sequence {
    /// The first result that is not nil.
    fileprivate func firstResult<Result>(_ find: (Element) -> Result?) -> Result? {
        for element in self {
            if let result = find(element) { return result }
        }
        return nil
    }
}

/// The trace, the span and the flags of a record.
///
/// Source: W3C, "Trace Context", `traceparent`; opentelemetry-proto v1, `logs.proto`, fields `trace_id`,
/// `span_id` and `flags`.
struct ReferenceTrace {
    /// 16 bytes; empty if unknown.
    var traceID: [UInt8] = []
    /// 8 bytes; empty if unknown.
    var spanID: [UInt8] = []
    /// Flags, whose lowest bit says that the trace was sampled; nil if the event has none.
    var flags: UInt32?

    init(traceID: [UInt8] = []) { self.traceID = traceID }

    /// Reads a header `00-TRACE-SPAN-FLAGS`; nil for anything else. Later versions may append further
    /// parts, which are ignored, as "Versioning of traceparent" demands.
    init?(parent: String) {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[0].allSatisfy(\.isHexDigit),
            parts[0] != "00" || parts.count == 4, parts[3].utf8.count == 2,
            let flags = UInt32(parts[3], radix: 16),
            let trace = ReferenceTrace.identifier(String(parts[1]), bytes: 16),
            let span = ReferenceTrace.identifier(String(parts[2]), bytes: 8)
        else { return nil }
        traceID = trace
        spanID = span
        self.flags = flags
    }

    /// An id in hexadecimal digits, not all 0 (which means no id); nil for anything else.
    static func identifier(_ text: String?, bytes: Int) -> [UInt8]? {
        guard let text, text.utf8.count == 2 * bytes else { return nil }
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == 2 * bytes, digits.contains(where: { $0 != 0 }) else { return nil }
        return (0..<bytes).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
    }

    /// A span's id in decimal digits; nil for anything else.
    static func decimalIdentifier(_ text: String) -> [UInt8]? {
        guard let number = UInt64(text), number > 0 else { return nil }
        return (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// Flags in hexadecimal digits, as a number or as a truth value; nil for anything else.
    static func flags(_ value: JSONSlice) -> UInt32? {
        if let isSampled = value.boolean { return isSampled ? 1 : 0 }
        if let number = value.integer { return (0...255).contains(number) ? UInt32(number) : nil }
        guard let text = value.string, (1...2).contains(text.utf8.count) else { return nil }
        return UInt32(text, radix: 16)
    }
}
