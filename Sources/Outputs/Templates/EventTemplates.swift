package import EventLoops
internal import Events
package import Logs
package import Model
internal import Synchronization

/// The templates of a destination that go together: one, or all labels of Loki.
///
/// What an event puts into them, its values, is a function of its bytes and of whose it is. But only so many values are taken
/// at a time: what comes beyond them becomes `other`, until one of them was in no batch for a day. There is room for twice as
/// many as one app may have, so that it leaves some to the others. A start and a reload begin with none.
package final class EventTemplates: Sendable {
    /// What an event has for a member that is missing, empty, or no text, number or truth value.
    package static let missing = "none"
    /// What an event has whose values are one too many.
    package static let beyond = "other"
    /// So long a value keeps its place without a batch that has it.
    static let patience = Duration.seconds(86_400)
    private static let warningInterval = Duration.seconds(3600)

    /// How many events had no values of their own since this was last asked.
    package struct Counts: Sendable, Equatable {
        /// Those that lacked a member, or had one that is no text, number or truth value.
        package var missing = 0
        /// Those whose values were one too many.
        package var beyond = 0
    }

    private struct State {
        /// The values that are taken, with whose room they take and when a batch last had them.
        var known: [[String]: (holder: String, usedAt: BootInstant)] = [:]
        var holdings = Holdings()
        /// There is no room before: none of them is old enough until then.
        var fullUntil: BootInstant?
        var counts = Counts()
        /// When that was last in the log, and how many events since.
        var warnedAt: BootInstant?
        var unsaid = 0
    }

    private let templates: [Template]
    private let fields: [Template.Field]
    private let scope: TemplateScope
    private let state = Mutex(State())

    init(_ templates: [Template], _ scope: TemplateScope = TemplateScope()) {
        self.templates = templates
        self.scope = scope
        var fields: [Template.Field] = []
        for field in templates.flatMap(\.fields) where field.isOfEvent && !fields.contains(field) {
            fields.append(field)
        }
        self.fields = fields
    }

    /// Whether the events of a batch may differ in them.
    var areOfEvents: Bool { !fields.isEmpty }

    func takeCounts() -> Counts {
        guard areOfEvents else { return Counts() }
        return state.withLock { state in
            defer { state.counts = Counts() }
            return state.counts
        }
    }

    /// What the templates become for each event of a batch; the events are asked for only where they may differ.
    func fill(
        for header: BatchHeader, _ events: () throws(OutputError) -> [EventView]
    ) throws(OutputError) -> FilledTemplates {
        guard areOfEvents else { return FilledTemplates(texts: [texts(header, [])], which: nil) }
        let found = try events().enumerated().map { place, event in
            // Of what an older version stored nobody knows whose it is: it counts as that app's that it names.
            let known = header.apps.indices.contains(place) ? header.apps[place] : ""
            let app = safe(known.isEmpty ? event["app"]?.scalar : known)
            return (fields.map { $0 == .app ? app : value(of: $0, in: event) }, Holdings.holder(of: app ?? ""))
        }
        let now = scope.time.bootTime
        return state.withLock { state in
            var places: [[String]: Int] = [:]
            var filled = FilledTemplates(texts: [], which: [])
            var beyond = 0
            for (values, holder) in found {
                if values.contains(nil) { state.counts.missing += 1 }
                let values = values.map { $0 ?? EventTemplates.missing }
                let isTaken = places[values] != nil || take(values, for: holder, &state, now)
                if !isTaken { beyond += 1 }
                let final = isTaken ? values : fields.map { _ in EventTemplates.beyond }
                if places[final] == nil {
                    // Other values may make the same place: one object, message or index for both.
                    let texts = texts(header, final)
                    places[final] = filled.texts.firstIndex(of: texts) ?? filled.texts.count
                    if places[final] == filled.texts.count { filled.texts.append(texts) }
                }
                filled.which?.append(places[final] ?? 0)
            }
            state.counts.beyond += beyond
            warn(beyond, &state, now)
            return filled
        }
    }

    private func take(
        _ values: [String], for holder: String, _ state: inout State, _ now: BootInstant
    ) -> Bool {
        if let known = state.known[values] {
            state.known[values] = (known.holder, now)
            return true
        }
        if !state.holdings.takeFair(for: holder, of: 2 * scope.mostValues) {
            if let until = state.fullUntil, now < until { return false }
            for (old, known) in state.known where known.usedAt + EventTemplates.patience <= now {
                state.known[old] = nil
                state.holdings.release(known.holder)
            }
            state.fullUntil = state.known.values.map(\.usedAt).min().map { $0 + EventTemplates.patience }
            guard state.holdings.takeFair(for: holder, of: 2 * scope.mostValues) else { return false }
        }
        state.known[values] = (holder, now)
        return true
    }

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

    private func texts(_ header: BatchHeader, _ values: [String]) -> [String] {
        let time = header.acceptedAt.description
        return templates.map { template in
            template.filled { field in
                switch field {
                case .app, .level, .name, .member, .date, .hour:
                    fields.firstIndex(of: field).map { values[$0] } ?? EventTemplates.missing
                case .batchDate: String(time.prefix(10))
                case .batchHour: String(time.dropFirst(11).prefix(2))
                case .priority: header.priority.name
                case .destination: header.destination.text
                case .installID: scope.installID
                case .batchID: header.id.description
                }
            }
        }
    }

    /// What an event has for a placeholder, but for its app, safe for the place; nil for nothing.
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

    private func safe(_ value: String?) -> String? { value.flatMap { templates.first?.place.safe($0) } }
}

package struct TemplateScope: Sendable {
    package var destination: DestinationName = ""
    package var mostValues = DestinationSettings().templateValues
    package var installID = ""
    package var log: Log?
    package var time: any TimeSource = SystemTime()
}

struct FilledTemplates {
    /// What is different, in the order in which it comes: a text for each template.
    fileprivate(set) var texts: [[String]]
    /// Which of them each event has; nil: all have the first.
    fileprivate(set) var which: [Int]?

    func number(of event: Int) -> Int { which?[event] ?? 0 }

    subscript(event: Int) -> [String] { texts[number(of: event)] }

    /// The events of each text of the first template, where they may differ.
    var groups: [(text: String, events: [Int])] {
        var groups = texts.map { (text: $0[0], events: [Int]()) }
        for (event, place) in (which ?? []).enumerated() { groups[place].events.append(event) }
        return groups
    }
}
