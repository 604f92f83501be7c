internal import EventLoops
public import Events
internal import Model

extension TestCase {
    /// Time at which the cases' events are accepted: fixed, so that ids, samples and periods are the same in
    /// each run.
    private static let moment = Timestamp(milliseconds: 1_767_225_600_000)

    /// Runs the case.
    ///
    /// - Returns: what is not as expected, a line each; empty if the case passes.
    /// - Throws: `ContainerError` if the document cannot be compiled.
    public func failures(
        in document: ContainerDocument, facts: AgentFacts = AgentFacts(),
        events: EventOptions = EventOptions()
    ) throws(ContainerError) -> [String] {
        var facts = facts
        facts.hostName = host ?? facts.hostName
        // Each case has its own trials, so that pushes, samples and throttles of other cases do not matter.
        let trials = try ContainerTrials(document, facts: facts, events: events, now: TestCase.moment)
        var failures: [String] = []
        // The values of the container, which are read without an event.
        for member in expected.values {
            let value = trials.container.value(
                ofKey: member.key,
                askingApp: AppFunctions(Set(functions.keys)) { functions[$0.function] ?? .null },
                results: { functions[$0.function] ?? .null })
            switch value {
            case .value(let value) where value == member.value: break
            case .value(let value):
                failures.append("value \(member.key) is \(value), expected \(member.value)")
            case .missing: failures.append("there is no value \(member.key), expected \(member.value)")
            case .needsEvent, .needs: failures.append("value \(member.key) needs an event")
            }
        }
        guard let event else { return failures }
        do throws(ContainerTrials.Refusal) {
            for push in dataLayer {
                let members =
                    // `type` makes it a push, whatever the test wrote there.
                    [JSONValue.Member("type", "data_layer")]
                    + (push.members ?? []).filter { $0.key != "type" }
                _ = try trials.run(
                    Array(JSONValue.object(members).description.utf8), app: app, functions: functions)
            }
            let trial = try trials.run(
                Array(event.description.utf8), app: app, file: file, functions: functions)
            guard let trial else {
                return failures + ["the event is a push into the data layer; put it under data_layer"]
            }
            if let path = expected.schemaFailure {
                failures.append(
                    "its schema allows the event, expected a failure at \(TestCase.location(path))")
            }
            failures += differences(trial)
        } catch {
            if let path = expected.schemaFailure, let found = error.schemaPath {
                if path != found {
                    failures.append(
                        "its schema refuses \(TestCase.location(found)), expected \(TestCase.location(path))")
                }
            } else {
                failures.append("the agent would not accept the event: \(error.message)")
            }
        }
        return failures
    }

    /// The location of a schema's failure in an event, as a person reads it.
    private static func location(_ pointer: String) -> String {
        pointer.isEmpty ? "the event itself" : pointer
    }

    /// Differences between the result of an event and the expectation.
    private func differences(_ trial: EventTrial) -> [String] {
        var failures: [String] = []
        func list(_ names: [String]) -> String { names.isEmpty ? "none" : names.joined(separator: ", ") }
        if let tags = expected.tags, tags != trial.fired {
            failures.append("tags fired: \(list(trial.fired)); expected \(list(tags))")
        }
        // The trial says `CONTAINER/NAME`; a test says only the name.
        let rule = trial.discardedBy.map { $0.drop { $0 != "/" }.dropFirst() }
        if let wanted = expected.discardedBy, rule.map(String.init) != wanted {
            failures.append("discarded by \(rule ?? "no rule"), expected \(wanted)")
        }
        if let kept = expected.isKept, kept != (trial.discardedBy == nil) {
            failures.append(
                kept ? "it is discarded by \(rule ?? "no rule")" : "it is kept, expected to be discarded")
        }
        if let priority = expected.priority, priority != trial.priority {
            failures.append("its priority is \(trial.priority.name), expected \(priority.name)")
        }
        // The order of destinations has no meaning.
        if let destinations = expected.destinations, destinations.sorted() != trial.destinations ?? [] {
            failures.append("it goes to \(list(trial.destinations ?? [])), expected \(list(destinations))")
        }
        guard expected.event != nil || !expected.absent.isEmpty else { return failures }
        guard let line = trial.after, let after = try? JSONValue(parsing: line) else {
            return failures + ["it is discarded, so its members are not as expected"]
        }
        if let event = expected.event {
            failures += TestCase.differences(after, event, "")
        }
        for path in expected.absent {
            // Removed as a tag would remove it, so that the same paths are found.
            var editor = EventEditor()
            Array(line.utf8).withUnsafeBytes { editor.begin($0, most: .max) }
            editor.change(PathSteps(path), .cut)
            if editor.copied > 0 {
                failures.append("member \(path) exists, expected to be absent")
            }
        }
        return failures
    }

    /// Expected parts that an event lacks; further parts are allowed.
    private static func differences(_ value: JSONValue, _ expected: JSONValue, _ path: String) -> [String] {
        guard case .object(let members) = expected, case .object = value else {
            // `1` and `1.0` are equal, as in conditions.
            if value == expected || (value.number != nil && value.number == expected.number) { return [] }
            return ["member \(path) is \(value), expected \(expected)"]
        }
        return members.flatMap { member in
            let inner = path.isEmpty ? member.key : "\(path).\(member.key)"
            guard let found = value[member.key] else {
                return ["member \(inner) is missing, expected \(member.value)"]
            }
            return differences(found, member.value, inner)
        }
    }
}
