internal import Model

/// Writes the request for a batch. Consecutive events of the same app and machine share a resource.
struct OTLPRequest<Sink: OTLPSink & ~Copyable>: ~Copyable {
    private let batch: BatchHeader
    /// The agent's version, sent as the scope's.
    private let version: String
    /// This machine's name as events give it; empty if they do not.
    private let host: String
    /// Where the request is written.
    private var sink: Sink
    private var record: OTLPRecord
    /// Where events have their message, besides the usual members.
    private let messages: MessagePaths
    /// What the events of the present group have in common; nil before the first.
    private var group: Group?

    /// Events that share a resource.
    private struct Group {
        /// The app that the queue knows; empty if it knows none.
        let known: String
        /// The app in UTF-8; nil without one.
        let service: [UInt8]?
        /// Where the app's events have their message, besides the usual members.
        let messages: [MemberPath]
        /// The device, or else the host's name.
        let device: JSONBytes?
        /// The messages that are not finished.
        let marks: (resourceLogs: OTLPMark, scopeLogs: OTLPMark)
    }

    init(
        _ sink: consuming Sink, of batch: BatchHeader, version: String, host: String, keys: OTLPKeys?,
        messages: MessagePaths
    ) {
        self.sink = sink
        self.messages = messages
        record = OTLPRecord(keys)
        self.batch = batch
        self.version = version
        self.host = host
        self.sink.openList("resourceLogs")
    }

    /// Adds an event.
    mutating func add(_ event: borrowing EventScan, at index: Int) {
        // Older versions did not store the app of an event: the event then belongs to the app that it names.
        let known = batch.apps.indices.contains(index) ? batch.apps[index] : ""
        if !belongs(event, known) {
            endGroup()
            let service = known.isEmpty ? event[.app]?.text?.decoded : Array(known.utf8)
            begin(event, known, service)
        }
        record.write(
            event, of: group?.service, messages: group?.messages ?? [], in: batch, at: index, to: &sink)
    }

    /// The sink with the whole request.
    consuming func finished() -> Sink {
        endGroup()
        sink.closeList()
        sink.finish()
        return sink
    }

    /// Whether an event belongs to the present group.
    private func belongs(_ event: borrowing EventScan, _ known: String) -> Bool {
        guard let group else { return false }
        if known.isEmpty {
            let app = event[.app]?.text
            guard (app == nil) == (group.service == nil) else { return false }
            if let app, let service = group.service, !app.equals(service) { return false }
        } else if known != group.known {
            guard group.service == Array(known.utf8) else { return false }
        }
        let device = event[.device] ?? event[.hostName]
        guard let device, let last = group.device else { return (device == nil) == (group.device == nil) }
        return device.isSame(as: last)
    }

    private mutating func begin(_ event: borrowing EventScan, _ known: String, _ service: [UInt8]?) {
        let resourceLogs = sink.openItem(1, about: batch.bytes)
        let resource = sink.open(1, "resource", about: 256)
        sink.openList("attributes")
        OTLPValues.write(1, attributes(of: event, service), to: &sink)
        sink.closeList()
        sink.close(resource)
        sink.openList("scopeLogs")
        let scopeLogs = sink.openItem(2, about: batch.bytes)
        let scope = sink.open(1, "scope", about: 64)
        sink.text(1, "name", TextBytes("spoolship"))
        if !version.isEmpty {
            sink.text(2, "version", Array(version.utf8))
        }
        sink.close(scope)
        sink.openList("logRecords")
        group = Group(
            known: known, service: service,
            messages: messages.of(service.map { String(decoding: $0, as: UTF8.self) }),
            device: event[.device] ?? event[.hostName],
            marks: (resourceLogs, scopeLogs))
    }

    private mutating func endGroup() {
        guard let group else { return }
        sink.closeList()
        sink.close(group.marks.scopeLogs)
        sink.closeList()
        // The version of the semantic conventions that the names are from.
        sink.text(3, "schemaUrl", TextBytes("https://opentelemetry.io/schemas/1.28.0"))
        sink.close(group.marks.resourceLogs)
        self.group = nil
    }

    /// What is known about the source of an event: its app and its machine.
    private func attributes(of event: borrowing EventScan, _ service: [UInt8]?) -> [OTLPValues.Collected] {
        var found: [OTLPValues.Collected] = []
        func add(_ key: String, _ value: OTLPValues.Value) {
            found.append(OTLPValues.Collected(key: Array(key.utf8), value: value))
        }
        if let service {
            add("service.name", .owned(service))
        }
        if let device = event[.device] {
            OTLPValues.forEachMember(of: device) { name, value in
                let name = name.string
                add(OTLPNames.shared.ofDevice[name] ?? "device.\(name)", .json(value))
            }
        }
        if let text = event[.hostName]?.text {
            add("host.name", .text(text))
        }
        if !host.isEmpty, event.isFrom(Array(host.utf8)) {
            add("os.type", .text(TextBytes("linux")))
        }
        return found
    }
}
