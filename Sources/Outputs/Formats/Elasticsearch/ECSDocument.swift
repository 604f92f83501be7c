internal import EventLoops
internal import Events
internal import Model

/// An event with the names of the Elastic Common Schema: members that the agent knows are renamed, all
/// others stay as written.
///
/// A name of the schema is left out if the event already has that name, or a text in place of the object
/// around it: Elasticsearch refuses a document with `event` as a text and `event.ingested`. Source: Elastic
/// Common Schema 8.11, "Base", "Event", "Host", "Log" and "Service" fields.
struct ECSDocument {
    /// Version of the schema, sent as `ecs.version`.
    private static let version = "8.11"

    private let event: EventView
    /// Names of the schema, each with the member that it replaces, if any, and its value as JSON.
    private var fields: [(name: String, replaced: String?, value: [UInt8])] = []

    /// - Parameter service: the app that the event belongs to.
    init(_ event: EventView, service: String?) {
        self.event = event
        if let host = event["host_name"] ?? event.device?["host_name"], host.kind == .string {
            add("host.name", replacing: "host_name", Array(host.bytes))
        }
        if let service {
            // A record that names another app keeps that member.
            add(
                "service.name", replacing: event["app"]?.scalar == service ? "app" : nil,
                ECSDocument.quoted(service))
        }
        if let observed = event["observed_at"], event.observedAt != nil {
            add("event.ingested", replacing: "observed_at", Array(observed.bytes))
        }
        if let (severity, path, text) = event.severity {
            // The agent's own `severity` is just the level's word, so it is replaced; an event's own words
            // stay.
            let isOwn = path == "severity" && text == severity.level.rawValue
            add("log.level", replacing: isOwn ? "severity" : nil, ECSDocument.quoted(severity.level.rawValue))
        }
    }

    /// A text as JSON.
    private static func quoted(_ text: String) -> [UInt8] {
        var json = JSONText()
        json.string(text)
        return json.bytes
    }

    /// Adds a name of the schema, unless it would clash with a member of the event.
    private mutating func add(_ name: String, replacing member: String?, _ value: [UInt8]) {
        guard event[name] == nil, let dot = name.firstIndex(of: ".") else { return }
        if let around = event[String(name[..<dot])] {
            guard around.kind == .object, around[String(name[name.index(after: dot)...])] == nil else {
                return
            }
        }
        fields.append((name, member, value))
    }

    /// Writes the document: the schema's names, then the event's other members in their order.
    func write(to text: inout JSONText, _ times: inout TimestampWriter) {
        text.raw("{")
        if event["@timestamp"] == nil, let time = event.time {
            text.raw(#""@timestamp":"#)
            text.string(times.text(of: time))
            text.raw(",")
        }
        if event["ecs"] == nil, event["ecs.version"] == nil {
            text.member("ecs.version", ECSDocument.version)
        }
        for field in fields {
            text.string(field.name)
            text.raw(":")
            text.raw(field.value)
            text.raw(",")
        }
        let replaced = fields.compactMap(\.replaced)
        for member in event.members where !replaced.contains(member.key) {
            text.string(member.key)
            text.raw(":")
            text.raw(member.value.bytes)
            text.raw(",")
        }
        text.close("}")
    }
}
