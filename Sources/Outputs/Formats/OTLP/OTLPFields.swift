internal import Events
internal import Model

/// The members and properties of an event while a record is made from it: a member that becomes a field of
/// the record is removed, the rest become attributes.
struct OTLPFields {
    /// Members that are still to become attributes.
    private(set) var members: [(key: String, value: JSONSlice)]
    /// Properties that are still to become attributes.
    private(set) var properties: [(key: String, value: JSONSlice)]
    private let event: EventView
    /// Names of `OTLPNames` that the event has. Most events have few, so most look-ups end here.
    private let present: Set<String>

    init(_ event: EventView) {
        self.event = event
        members = event.ownMembers
        properties = event.properties
        present = Set((members + properties).lazy.map(\.key).filter { OTLPNames.all.contains($0) })
    }

    /// The trace of the event, from ids of its own or from a W3C `traceparent`; empty if no id is valid.
    mutating func trace() -> OTLPTrace {
        guard !present.isEmpty else { return OTLPTrace() }
        for name in OTLPNames.trace {
            guard let id = extract(name, { OTLPTrace.identifier($0.string, bytes: 16) }) else { continue }
            var trace = OTLPTrace(traceID: id)
            // Datadog writes ids of spans as decimal numbers.
            trace.spanID =
                name == OTLPNames.datadogTrace
                ? extract(OTLPNames.datadogSpan) { OTLPTrace.decimalIdentifier($0.string ?? $0.text) } ?? []
                : OTLPNames.span.firstResult { extract($0) { OTLPTrace.identifier($0.string, bytes: 8) } }
                    ?? []
            trace.flags = OTLPNames.flags.firstResult { extract($0) { OTLPTrace.flags($0) } }
            return trace
        }
        return extract(OTLPNames.parent) { $0.string.flatMap { OTLPTrace(parent: $0) } } ?? OTLPTrace()
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
        let names = event.isRecord ? OTLPNames.message[...] : OTLPNames.message.prefix(1)
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
private enum OTLPNames {
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
