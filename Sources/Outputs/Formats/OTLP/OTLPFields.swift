internal import Events
internal import Model

/// Which members and properties of an event become fields of its record. A member that becomes a field is
/// taken: it is no attribute any more.
struct OTLPFields: ~Copyable {
    /// The properties of the event.
    private(set) var properties = MemberList()
    /// Names of members and of properties that are taken.
    private var takenMembers: EventNames = []
    private var takenProperties: EventNames = []
    /// Taken names that formats do not know; empty for most events.
    private var otherTakenMembers: [[UInt8]] = []
    private var otherTakenProperties: [[UInt8]] = []
    /// Severities of the event's members.
    private var severities = SeverityReader()
    /// Members of traces besides the usual ones; nil without them.
    private let keys: OTLPKeys?

    /// - Parameter keys: members of traces besides the usual ones; nil without them.
    init(_ keys: OTLPKeys? = nil) { self.keys = keys }

    /// Begins another event.
    mutating func begin(_ event: borrowing EventScan) {
        takenMembers = []
        takenProperties = []
        if !otherTakenMembers.isEmpty {
            otherTakenMembers.removeAll()
        }
        if !otherTakenProperties.isEmpty {
            otherTakenProperties.removeAll()
        }
        guard let value = event[.properties], value.isObject, properties.read(value.start, value.count) else {
            properties.removeAll()
            return
        }
    }

    /// The trace of the event, from ids of its own or from a W3C `traceparent`; empty if no id is valid.
    /// Members that the settings name come first.
    mutating func trace(_ event: borrowing EventScan) -> OTLPTrace {
        let names = OTLPNames.shared
        var found: OTLPTrace?
        var isDatadog = false
        if let keys {
            found = first(keys.traceID, of: event) { value in
                OTLPTrace.identifier(value, bytes: 16).map { OTLPTrace(traceID: $0) }
                    ?? value.text.flatMap { OTLPTrace(parent: $0) }
            }
        }
        let isNamed = found != nil
        if found == nil {
            guard has(names.ofTraces, event) else { return OTLPTrace() }
            for name in names.trace {
                guard let id = take(name, of: event, { OTLPTrace.identifier($0, bytes: 16) }) else {
                    continue
                }
                found = OTLPTrace(traceID: id)
                isDatadog = name.name == .datadogTrace
                break
            }
            if found == nil {
                found = take(names.parent, of: event) { $0.text.flatMap { OTLPTrace(parent: $0) } }
            }
        }
        guard var trace = found else { return OTLPTrace() }
        if let keys {
            if let id = first(keys.spanID, of: event, { OTLPTrace.identifier($0, bytes: 8) }) {
                trace.spanID = id
            }
            if let flags = first(keys.flags, of: event, { OTLPTrace.flags($0) }) {
                trace.flags = flags
            }
        }
        if trace.spanID.isEmpty {
            // Datadog writes ids of spans as decimal numbers.
            trace.spanID =
                isDatadog
                ? take(names.datadogSpan, of: event) { OTLPTrace.decimalIdentifier($0) } ?? []
                : first(names.span, of: event) { OTLPTrace.identifier($0, bytes: 8) } ?? []
            // A trace id under a name of the settings may be Datadog's as well.
            if trace.spanID.isEmpty, isNamed {
                trace.spanID = take(names.datadogSpan, of: event) { OTLPTrace.decimalIdentifier($0) } ?? []
            }
        }
        if trace.flags == nil {
            trace.flags = first(names.flags, of: event) { OTLPTrace.flags($0) }
        }
        return trace
    }

    /// The severity number, 1 (trace) to 24 (fatal), and the event's own word for it, empty without one;
    /// nil if the event gives no severity, because an invented one would hide the alarming records among
    /// the others. A word is then no longer an attribute; a number still is.
    ///
    /// Source: OpenTelemetry, "Logs Data Model", fields `SeverityNumber` and `SeverityText`.
    mutating func severity(_ event: borrowing EventScan) -> (number: Int, text: TextBytes)? {
        if let found = severities.read(event) {
            guard let text = found.text else {
                return (found.value.number, OTLPNames.word(of: found.value.level))
            }
            takenMembers.insert(found.path)
            return (found.value.number, text)
        }
        for (path, scale) in OTLPNames.shared.severities where has([path.name], event) {
            let found = take(path, of: event) { value in
                Severity(text: value.words.string, in: scale).map {
                    ($0.number, value.text ?? TextBytes(""))
                }
            }
            if let found { return found }
        }
        return event[.type]?.text?.equals("crash") == true ? (21, TextBytes("")) : nil
    }

    /// The text for a person: an event's message or name; a record's message. Nil for a record without one,
    /// whose body is the whole record.
    ///
    /// - Parameter paths: where the settings say that the message is.
    mutating func body(
        _ event: borrowing EventScan, isRecord: Bool, at paths: [MemberPath]
    ) -> TextBytes? {
        message(event, isRecord: isRecord, at: paths) ?? (isRecord ? nil : event.name)
    }

    /// The message, a text that is not empty: the first at the paths of the settings; else of an event the
    /// member `message`, of a record the first by the names that loggers use; nil without one.
    private mutating func message(
        _ event: borrowing EventScan, isRecord: Bool, at paths: [MemberPath]
    ) -> TextBytes? {
        if !paths.isEmpty, let found = first(paths, of: event, OTLPFields.filledText) { return found }
        let names = OTLPNames.shared
        guard has(names.ofMessages, event) else { return nil }
        return first(
            isRecord ? names.message[...] : names.message.prefix(1), of: event, OTLPFields.filledText)
    }

    /// A text that is not empty; nil for anything else.
    private static func filledText(_ value: JSONBytes) -> TextBytes? {
        value.text.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The message of one event, in UTF-8; nil without one.
    ///
    /// - Parameter paths: where the settings say that the message is.
    static func message(in line: ArraySlice<UInt8>, at paths: [MemberPath]) -> [UInt8]? {
        line.withUnsafeBufferPointer { bytes in
            var event = EventScan()
            guard event.read(bytes) else { return nil }
            var fields = OTLPFields()
            fields.begin(event)
            return fields.message(event, isRecord: event.isRecord, at: paths)?.decoded
        }
    }

    /// The text for a person of one event, in UTF-8; the whole event if it is a record without one.
    ///
    /// - Parameter paths: where the settings say that the message is.
    static func message(of line: ArraySlice<UInt8>, at paths: [MemberPath]) -> [UInt8] {
        line.withUnsafeBufferPointer { bytes in
            var event = EventScan()
            guard event.read(bytes) else { return Array(line) }
            var fields = OTLPFields()
            fields.begin(event)
            return fields.body(event, isRecord: event.isRecord, at: paths)?.decoded ?? Array(line)
        }
    }

    /// Whether a member has become a field.
    @inline(__always)
    func hasTaken(member: MemberList.Member) -> Bool {
        if let known = member.known { return takenMembers.contains(known) }
        return !otherTakenMembers.isEmpty && otherTakenMembers.contains { member.name.equals($0) }
    }

    /// Whether a property has become a field.
    @inline(__always)
    func hasTaken(property: MemberList.Member) -> Bool {
        if let known = property.known { return takenProperties.contains(known) }
        return !otherTakenProperties.isEmpty && otherTakenProperties.contains { property.name.equals($0) }
    }

    /// Whether the event has any of these names, as members or as properties.
    private func has(_ names: EventNames, _ event: borrowing EventScan) -> Bool {
        event.members.present.meets(names) || properties.present.meets(names)
    }

    /// The first value of these names that `read` accepts; see `take`.
    private mutating func first<Value>(
        _ paths: some Collection<EventPath>, of event: borrowing EventScan, _ read: (JSONBytes) -> Value?
    ) -> Value? {
        for path in paths {
            if let value = take(path, of: event, read) { return value }
        }
        return nil
    }

    /// The member, or else the property, of that name, if `read` accepts it; it is then no longer an
    /// attribute. A name with a dot may also lead into an object, which stays an attribute.
    private mutating func take<Value>(
        _ path: EventPath, of event: borrowing EventScan, _ read: (JSONBytes) -> Value?
    ) -> Value? {
        if !takenMembers.contains(path.name), let value = event[path.name].flatMap(read) {
            takenMembers.insert(path.name)
            return value
        }
        if !takenProperties.contains(path.name), let value = properties[path.name].flatMap(read) {
            takenProperties.insert(path.name)
            return value
        }
        guard let outer = path.outer, let object = event[outer] ?? properties[outer] else { return nil }
        return path.inner.reduce(Optional(object)) { $0?.member($1) }.flatMap(read)
    }

    /// The first value at these paths of the settings that `read` accepts; see `take`.
    private mutating func first<Value>(
        _ paths: [MemberPath], of event: borrowing EventScan, _ read: (JSONBytes) -> Value?
    ) -> Value? {
        for path in paths {
            if let value = take(path, of: event, read) { return value }
        }
        return nil
    }

    /// The value at a path of the settings, in the members or else in the properties, if `read` accepts it.
    /// A member of the whole name is then no longer an attribute; an object on the way stays one.
    private mutating func take<Value>(
        _ path: MemberPath, of event: borrowing EventScan, _ read: (JSONBytes) -> Value?
    ) -> Value? {
        if let value = event.members.value(of: path.name).flatMap(read) {
            if let known = path.known {
                takenMembers.insert(known)
            } else {
                otherTakenMembers.append(path.name)
            }
            return value
        }
        if let value = properties.value(of: path.name).flatMap(read) {
            if let known = path.known {
                takenProperties.insert(known)
            } else {
                otherTakenProperties.append(path.name)
            }
            return value
        }
        guard let outer = path.parts.first else { return nil }
        for object in [event.members.value(of: outer), properties.value(of: outer)] {
            let value = path.parts.dropFirst().reduce(object) { $0?.member($1) }
            if let found = value.flatMap(read) { return found }
        }
        return nil
    }
}

/// Names that loggers use for what has a field of its own in a record.
final class OTLPNames: Sendable {
    static let shared = OTLPNames()

    let datadogSpan: EventPath
    let parent: EventPath
    let trace: [EventPath]
    let span: [EventPath]
    let flags: [EventPath]
    let message: [EventPath]
    /// The names that a severity may have among the properties, with the scale of a number.
    let severities: [(path: EventPath, scale: SeverityScale)]
    /// The names that a trace, and those that a message may begin with.
    let ofTraces: EventNames
    let ofMessages: EventNames

    /// Names of the semantic conventions for the members of `device`.
    let ofDevice = [
        "os_name": "os.name", "os_version": "os.version", "os_build": "os.build_id",
        "kernel": "os.description",
        "model": "device.model.name", "manufacturer": "device.manufacturer", "app_version": "service.version",
        "install_id": "service.instance.id", "host_name": "host.name", "sdk_name": "telemetry.sdk.name",
        "sdk_version": "telemetry.sdk.version",
    ]

    private init() {
        trace = OTLPNames.paths([
            "trace_id", "traceId", "TraceId", "@tr", "trace.id", "otelTraceID", "dd.trace_id",
        ])
        span = OTLPNames.paths(["span_id", "spanId", "SpanId", "@sp", "span.id", "otelSpanID"])
        flags = OTLPNames.paths([
            "trace_flags", "traceFlags", "TraceFlags", "trace.flags", "otelTraceSampled",
        ])
        message = OTLPNames.paths([
            "message", "msg", "@m", "Message", "event", "text", "log", "short_message", "record.message",
            "@mt",
        ])
        datadogSpan = OTLPNames.paths(["dd.span_id"])[0]
        parent = OTLPNames.paths(["traceparent"])[0]
        severities = OTLPNames.paths(["severity", "level"]).map {
            ($0, Severity.scale(of: "\($0.name.text)"))
        }
        ofTraces = OTLPNames.firsts(trace + [parent])
        ofMessages = OTLPNames.firsts(message)
    }

    private static func paths(_ names: [String]) -> [EventPath] {
        let paths = names.compactMap { EventPath($0) }
        precondition(paths.count == names.count, "a name of OTLP is missing in EventName")
        return paths
    }

    private static func firsts(_ paths: [EventPath]) -> EventNames {
        var names: EventNames = []
        for path in paths {
            names.insert(path.name)
            path.outer.map { names.insert($0) }
        }
        return names
    }

    /// The text of a severity that was given as a number.
    static func word(of level: SeverityLevel) -> TextBytes {
        switch level {
        case .trace: TextBytes("TRACE")
        case .debug: TextBytes("DEBUG")
        case .info: TextBytes("INFO")
        case .warn: TextBytes("WARN")
        case .error: TextBytes("ERROR")
        case .fatal: TextBytes("FATAL")
        }
    }
}
