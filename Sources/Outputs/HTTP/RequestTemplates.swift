internal import EventLoops
internal import Model

/// Where a request goes, with the headers that depend on its events.
struct RequestTarget {
    /// Stands in `url` for the request's key, which is known once it is decided which events go in the
    /// request. No address contains this character.
    static let keyMark = "\0"

    /// The address, with its placeholders filled in.
    var url: String
    /// Lines `Name: value`.
    var headers: [String]

    /// The target of a request with this key: the id of its batch or of a piece of it. Two pieces at the same
    /// address would replace each other where `{batch_id}` names an object.
    func named(_ key: String) -> RequestTarget {
        guard url.utf8.contains(0) else { return self }
        let named = url.replacingAll(RequestTarget.keyMark, with: key.percentEncoded)
        return RequestTarget(url: named, headers: headers)
    }
}

/// The configured headers of messages and records (NATS, Kafka), some of which may have placeholders of
/// events.
struct HeaderTemplates: Sendable {
    /// Headers without placeholders, the same for all events.
    let fixed: [(name: String, value: String)]
    /// Values of the other headers; nil if all are fixed.
    let templates: EventTemplates?
    /// Names of the headers in `templates`, in the same order.
    private let names: [String]

    /// - Throws: `OutputError` with code `invalidSetting` for an unknown placeholder.
    init(_ settings: DestinationSettings, _ scope: TemplateScope) throws(OutputError) {
        let all = settings.sortedHeaders
        fixed = all.filter { !Template.hasPlaceholders($0.value) }
        let filled = all.filter { Template.hasPlaceholders($0.value) }
        names = filled.map(\.name)
        let texts = try filled.map { header throws(OutputError) in
            try RequestTemplates.template(header.value, "headers.\(header.name)")
        }
        templates = texts.isEmpty ? nil : EventTemplates(texts, scope)
    }

    /// The headers of each event that have placeholders; nil if no header has any.
    func filled(
        for header: BatchHeader, _ events: [EventView]
    ) throws(OutputError) -> [[(name: String, value: String)]]? {
        guard let templates else { return nil }
        let filled = try templates.fill(for: header) { events }
        return events.indices.map { event in zip(names, filled[event]).map { (name: $0, value: $1) } }
    }
}

/// The address and headers of an HTTP destination that have placeholders of events. Events with different
/// values go in different requests.
struct RequestTemplates: Sendable {
    /// The templates: that of the address first, if it has placeholders, then those of the headers.
    let templates: EventTemplates
    /// The address if it has no placeholders; otherwise nil.
    private let url: String?
    /// Names of the headers that have placeholders, in the order of their templates.
    private let headers: [String]

    /// - Returns: nil if neither the address nor a header has placeholders.
    /// - Throws: `OutputError` with code `invalidSetting` for an unknown placeholder.
    init?(_ options: HTTPOptions, _ scope: TemplateScope) throws(OutputError) {
        var all: [Template] = []
        var names: [String] = []
        url = Template.hasPlaceholders(options.url) ? nil : options.url
        if url == nil {
            all.append(try RequestTemplates.template(options.url, "url", for: .address))
        }
        for (name, value) in options.settings.sortedHeaders where Template.hasPlaceholders(value) {
            all.append(try RequestTemplates.template(value, "headers.\(name)"))
            names.append(name)
        }
        guard !all.isEmpty else { return nil }
        headers = names
        templates = EventTemplates(all, scope)
    }

    /// Parses a template of a request; `setting` is its name in messages.
    static func template(
        _ text: String, _ setting: String, for place: Template.Place = .request
    ) throws(OutputError) -> Template {
        do throws(Template.Mistake) {
            return try Template(text, for: place)
        } catch {
            throw OutputError(.invalidSetting, "\(setting) \(error.message)")
        }
    }

    /// The target of each group of events with equal values. `events` is called only if values may differ.
    func targets(
        for header: BatchHeader, _ events: () throws(OutputError) -> [EventView]
    ) throws(OutputError) -> [(target: RequestTarget, events: [Int])] {
        let filled = try templates.fill(for: header, events)
        let all = Array(0..<header.events)
        return filled.sets.map { set in
            // The first text is the address if the address has placeholders.
            let values = url == nil ? set.texts.dropFirst() : set.texts[...]
            let lines = zip(headers, values).map { "\($0): \($1)" }
            let target = RequestTarget(url: url ?? set.texts[0], headers: lines)
            return (target, templates.areOfEvents ? set.events : all)
        }
    }
}
