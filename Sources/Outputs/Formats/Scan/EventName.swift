internal import Events
internal import Model

/// The names of members that formats know, so that a name is compared with all of them once.
///
/// Names with dots are both names and ways into objects, whose first part is a name here, too.
enum EventName: UInt8, CaseIterable {
    // Members that have a place of their own, and the agent's.
    case name, app, hostName, sessionID, country, type, timestamp, observedAt, properties, device
    case id, recordID, spoolshipID, priority, version, atTimestamp
    // Severities.
    case severity, level, lvl, levelname, dottedLogLevel, atL, s, syslogPriority, errorSeverity
    case dottedRecordLevel, atLevel, capitalLogLevel, capitalLevel, levelno, label, sev
    // Traces.
    case traceID, camelTraceID, capitalTraceID, atTrace, dottedTraceID, otelTraceID, datadogTrace
    case spanID, camelSpanID, capitalSpanID, atSpan, dottedSpanID, otelSpanID, datadogSpan
    case traceFlags, camelTraceFlags, capitalTraceFlags, dottedTraceFlags, otelTraceSampled, traceparent
    // Messages.
    case message, msg, atM, capitalMessage, event, text, log, shortMessage, dottedRecordMessage, atTemplate
    // Objects that names with dots lead into.
    case record, trace, span, dd
    // Attributes of OpenTelemetry that are the agent's.
    case recordUID, dottedSessionID, countryCode, eventType

    /// The name as it is written.
    var text: StaticString {
        switch self {
        case .name: "name"
        case .app: "app"
        case .hostName: "host_name"
        case .sessionID: "session_id"
        case .country: "country"
        case .type: "type"
        case .timestamp: "timestamp"
        case .observedAt: "observed_at"
        case .properties: "properties"
        case .device: "device"
        case .id: "id"
        case .recordID: "record_id"
        case .spoolshipID: "spoolship_id"
        case .priority: "priority"
        case .version: "version"
        case .atTimestamp: "@timestamp"
        case .severity: "severity"
        case .level: "level"
        case .lvl: "lvl"
        case .levelname: "levelname"
        case .dottedLogLevel: "log.level"
        case .atL: "@l"
        case .s: "s"
        case .syslogPriority: "PRIORITY"
        case .errorSeverity: "error_severity"
        case .dottedRecordLevel: "record.level.name"
        case .atLevel: "@level"
        case .capitalLogLevel: "LogLevel"
        case .capitalLevel: "Level"
        case .levelno: "levelno"
        case .label: "label"
        case .sev: "sev"
        case .traceID: "trace_id"
        case .camelTraceID: "traceId"
        case .capitalTraceID: "TraceId"
        case .atTrace: "@tr"
        case .dottedTraceID: "trace.id"
        case .otelTraceID: "otelTraceID"
        case .datadogTrace: "dd.trace_id"
        case .spanID: "span_id"
        case .camelSpanID: "spanId"
        case .capitalSpanID: "SpanId"
        case .atSpan: "@sp"
        case .dottedSpanID: "span.id"
        case .otelSpanID: "otelSpanID"
        case .datadogSpan: "dd.span_id"
        case .traceFlags: "trace_flags"
        case .camelTraceFlags: "traceFlags"
        case .capitalTraceFlags: "TraceFlags"
        case .dottedTraceFlags: "trace.flags"
        case .otelTraceSampled: "otelTraceSampled"
        case .traceparent: "traceparent"
        case .message: "message"
        case .msg: "msg"
        case .atM: "@m"
        case .capitalMessage: "Message"
        case .event: "event"
        case .text: "text"
        case .log: "log"
        case .shortMessage: "short_message"
        case .dottedRecordMessage: "record.message"
        case .atTemplate: "@mt"
        case .record: "record"
        case .trace: "trace"
        case .span: "span"
        case .dd: "dd"
        case .recordUID: "log.record.uid"
        case .dottedSessionID: "session.id"
        case .countryCode: "geo.country.iso_code"
        case .eventType: "event.type"
        }
    }

    /// The known name of that text; nil for other texts. For tables, not for events.
    init?(_ text: String) {
        guard let found = EventName.allCases.first(where: { "\($0.text)" == text }) else { return nil }
        self = found
    }
}

/// A set of known names.
struct EventNames: ExpressibleByArrayLiteral {
    /// A bit for each name, by its number.
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    init(arrayLiteral names: EventName...) {
        for name in names { insert(name) }
    }

    @inline(__always) var isEmpty: Bool { low | high == 0 }

    @inline(__always)
    func contains(_ name: EventName) -> Bool {
        let number = UInt64(name.rawValue)
        return (number < 64 ? low &>> number : high &>> (number &- 64)) & 1 == 1
    }

    @inline(__always)
    mutating func insert(_ name: EventName) {
        let number = UInt64(name.rawValue)
        if number < 64 {
            low |= 1 &<< number
        } else {
            high |= 1 &<< (number &- 64)
        }
    }

    @inline(__always)
    func meets(_ other: EventNames) -> Bool { low & other.low | high & other.high != 0 }
}

/// A way to a value: a member's name; or, if that has dots, a way through objects, if there is no member of
/// the whole name.
struct EventPath {
    /// The name as a whole.
    let name: EventName
    /// The member that the first part names; nil without dots.
    let outer: EventName?
    /// The parts after the first.
    let inner: [[UInt8]]

    init?(_ text: String) {
        guard let name = EventName(text) else { return nil }
        self.name = name
        let parts = text.split(separator: ".").map { Array($0.utf8) }
        outer = parts.count > 1 ? EventName(String(decoding: parts[0], as: UTF8.self)) : nil
        inner = Array(parts.dropFirst())
    }
}
