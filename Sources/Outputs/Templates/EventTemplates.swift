package import EventLoops
internal import Events
package import Logs
package import Model
internal import Synchronization

/// The templates of a destination that are filled together: one (a key, an index, a topic), or all labels
/// of Loki.
///
/// An event's values depend only on its bytes and its app, so that a repeat goes to the same place. The
/// number of different values of each template is bounded (`TemplateRoom`), because a receiver bears a
/// limited number of indexes, topics or streams: values beyond the bound become `other`. After a start and
/// a reload no values are known. Thread-safe.
package final class EventTemplates: Sendable {
    /// Value of an event for a member that is missing, empty, or neither text, number nor truth value.
    package static let missing = "none"
    /// Value of events whose own value exceeds the bound.
    package static let beyond = "other"
    /// Shortest time between two warnings.
    private static let warningInterval = Duration.seconds(3600)

    /// Number of events without values of their own, since the last call of `takeCounts`.
    package struct Counts: Sendable, Equatable {
        /// Events that lacked a member, or had one of another kind.
        package var missing = 0
        /// Events whose values exceeded the bound.
        package var beyond = 0
    }

    /// State behind the lock.
    private struct State {
        /// The values in use of each template; a template with too many values does not affect the others.
        var rooms: [TemplateRoom]
        var counts = Counts()
        /// Time of the last warning; nil before the first.
        var warnedAt: BootInstant?
        /// Events beyond the bound since the last warning.
        var unsaid = 0
    }

    /// The templates, in the order in which their texts are returned.
    private let templates: [Template]
    /// The distinct placeholders of all templates that depend on an event.
    private let fields: [Template.Field]
    /// Indices in `fields` of each template's placeholders.
    private let fieldPlaces: [[Int]]
    /// Values of the placeholders for destination and machine, and the bound.
    private let scope: TemplateScope
    private let state: Mutex<State>

    init(_ templates: [Template], _ scope: TemplateScope = TemplateScope()) {
        self.templates = templates
        self.scope = scope
        var fields: [Template.Field] = []
        for field in templates.flatMap(\.fields) where field.isOfEvent && !fields.contains(field) {
            fields.append(field)
        }
        self.fields = fields
        fieldPlaces = templates.map { template in
            fields.indices.filter { template.fields.contains(fields[$0]) }
        }
        state = Mutex(State(rooms: templates.map { _ in TemplateRoom() }))
    }

    /// Whether the events of a batch may have different texts. If not, no event is read.
    var areOfEvents: Bool { !fields.isEmpty }

    /// Returns the counts and resets them.
    func takeCounts() -> Counts {
        guard areOfEvents else { return Counts() }
        return state.withLock { state in
            defer { state.counts = Counts() }
            return state.counts
        }
    }

    /// The texts of the templates for each event of a batch. `events` is called only if the texts may
    /// differ.
    ///
    /// In three steps: the values of each event; whether they are within the bound; the texts. Events whose
    /// values make the same texts share them.
    func fill(
        for header: BatchHeader, _ events: () throws(OutputError) -> [EventView]
    ) throws(OutputError) -> FilledTemplates {
        guard areOfEvents else {
            return FilledTemplates(texts: [texts(header, [], templates.map { _ in false })], which: nil)
        }
        let found = try events().enumerated().map { index, event in
            let known = header.apps.indices.contains(index) ? header.apps[index] : ""
            let app = safe(event.owner(known))
            return (
                fields.map { $0 == .app ? app : value(of: $0, in: event) }, Holdings.holder(of: app ?? "")
            )
        }
        let now = scope.time.bootTime
        return state.withLock { state in
            var indices: [[String]: Int] = [:]
            var filled = FilledTemplates(texts: [], which: [])
            var beyond = 0
            for (values, holder) in found {
                if values.contains(nil) {
                    state.counts.missing += 1
                }
                let values = values.map { $0 ?? EventTemplates.missing }
                if let index = indices[values] {
                    filled.which?.append(index)
                    continue
                }
                let isBeyond = fieldPlaces.indices.map { template in
                    let own = fieldPlaces[template].map { values[$0] }
                    return !own.isEmpty
                        && !state.rooms[template].admit(
                            own, of: holder, mostValues: scope.mostValues, at: now)
                }
                // Different values may make the same text: one object, message or index for both.
                let texts = texts(header, values, isBeyond)
                let index = filled.texts.firstIndex(of: texts) ?? filled.texts.count
                if index == filled.texts.count {
                    filled.texts.append(texts)
                }
                filled.which?.append(index)
                if isBeyond.contains(true) {
                    // Not remembered for the batch: another app may still have room for the same values.
                    beyond += 1
                } else {
                    indices[values] = index
                }
            }
            state.counts.beyond += beyond
            warn(beyond, &state, now)
            return filled
        }
    }

    /// Logs a warning about values beyond the bound, at most once an hour.
    private func warn(_ events: Int, _ state: inout State, _ now: BootInstant) {
        state.unsaid += events
        guard state.unsaid > 0, state.warnedAt.map({ now - $0 >= EventTemplates.warningInterval }) ?? true
        else { return }
        scope.log?.warning(
            "templates have more values than template_values: further events are sent as \"other\"",
            ["destination": scope.destination, "template_values": scope.mostValues, "events": state.unsaid])
        state.warnedAt = now
        state.unsaid = 0
    }

    /// The texts for one set of values.
    ///
    /// - Parameter isBeyond: for each template, whether the values exceed its bound.
    private func texts(_ header: BatchHeader, _ values: [String], _ isBeyond: [Bool]) -> [String] {
        let time = header.acceptedAt.description
        return zip(templates, isBeyond).map { template, isBeyond in
            template.filled { field in
                switch field {
                case .app, .level, .name, .member, .date, .hour:
                    isBeyond
                        ? EventTemplates.beyond
                        : fields.firstIndex(of: field).map { values[$0] } ?? EventTemplates.missing
                case .batchDate: String(time.prefix(10))
                case .batchHour: String(time.dropFirst(11).prefix(2))
                case .priority: header.priority.name
                case .destination: header.destination.text
                case .installID: scope.installID
                case .batchID:
                    template.place == .address ? RequestTarget.keyMark : header.id.description
                }
            }
        }
    }

    /// An event's value for a placeholder other than its app, made safe for the place; nil if it has none.
    private func value(of field: Template.Field, in event: EventView) -> String? {
        let raw: String? =
            switch field {
            case .level: event.severity?.value.level.rawValue
            case .name: event["name"]?.scalar
            case .member(let path): event.member(at: path)?.scalar
            case .date: event.time.map { String("\($0)".prefix(10)) }
            case .hour: event.time.map { String("\($0)".dropFirst(11).prefix(2)) }
            case .app, .batchDate, .batchHour, .priority, .destination, .installID, .batchID: nil
            }
        return safe(raw)
    }

    /// A value made safe for the place of the templates, which is the same for all of them.
    private func safe(_ value: String?) -> String? { value.flatMap { templates.first?.place.safe($0) } }
}

/// What templates need besides events: the destination, the bound, the installation, the clock.
package struct TemplateScope: Sendable {
    package var destination: DestinationName = ""
    /// Most distinct values of an app for one template (`template_values`).
    package var mostValues = DestinationSettings().templateValues
    package var installID = ""
    /// Where a warning goes if there are more values.
    package var log: Log?
    package var time: any TimeSource = SystemTime()
}

/// The texts of templates for the events of a batch.
struct FilledTemplates {
    /// The distinct sets of texts, in the order of their first event; each has one text for each template.
    fileprivate(set) var texts: [[String]]
    /// Index in `texts` for each event; nil if all events use the first.
    fileprivate(set) var which: [Int]?

    /// Index of an event's set of texts.
    func number(of event: Int) -> Int { which?[event] ?? 0 }

    /// The texts of an event.
    subscript(event: Int) -> [String] { texts[number(of: event)] }

    /// Groups events by the text of the first template; one group without events if it cannot vary.
    var groups: [(text: String, events: [Int])] { sets.map { ($0.texts[0], $0.events) } }

    /// Groups events by all their texts; one group without events if they cannot vary.
    var sets: [(texts: [String], events: [Int])] {
        var sets = texts.map { (texts: $0, events: [Int]()) }
        for (event, index) in (which ?? []).enumerated() { sets[index].events.append(event) }
        return sets
    }
}
