internal import EventLoops
package import Schemas

/// The settings `[schemas]` as the intake uses them.
package struct SchemaRules: Sendable, Equatable {
    /// The schemas of the directory; empty without one.
    package let set: SchemaSet
    /// Whether events that do not match their schema are sent and only counted; if false, they go to the
    /// quarantine.
    package let isReport: Bool

    package init(set: SchemaSet = SchemaSet(), isReport: Bool = false) {
        self.set = set
        self.isReport = isReport
    }
}

/// A schema, as metrics name it.
package struct SchemaName: Sendable, Hashable, Comparable {
    /// The app to whose events the schema applies; empty for all apps, and for those of documents.
    package let app: String
    package let event: String
    package let version: String

    package static func < (left: SchemaName, right: SchemaName) -> Bool {
        (left.app, left.event, left.version) < (right.app, right.event, right.version)
    }
}

/// Events of a schema since the start, by whether they match it.
package struct SchemaCounts: Sendable, Equatable {
    package var valid = 0
    package var invalid = 0

    package init() {}

    package mutating func add(_ other: SchemaCounts) {
        valid += other.valid
        invalid += other.invalid
    }
}

/// The schemas of one intake, and what they have found.
final class SchemaChecks {
    /// The settings.
    private var rules: SchemaRules
    /// Schemas in force: those of the directory, then those of the containers' documents.
    private var set: SchemaSet
    /// Schemas of the app whose lines are read, by event name.
    private var table: SchemaTable?
    /// Counts by index of the schema in the set.
    private var found: [SchemaCounts] = []
    /// Counts of sets that were in force before, so that metrics never decrease.
    private var earlier: [SchemaName: SchemaCounts] = [:]
    /// Schema and result for the event that was checked last, if that event may be sent. Counted by
    /// `countAccepted`.
    private var checked: (index: Int, failure: SchemaFailure?)?
    /// Events that were sent since the last report although they do not match, with the last one's schema and
    /// reason.
    private var reported: (count: Int, name: String, text: String)?
    /// Earliest time of the next report.
    private var nextReport = BootInstant(nanoseconds: .min)

    /// Most schemas whose counts are kept after they were replaced. Without a bound each published document
    /// would leave some for ever.
    private static let mostEarlier = 4096

    init(_ rules: SchemaRules) {
        self.rules = rules
        set = rules.set
        found = set.schemas.map { _ in SchemaCounts() }
    }

    /// Takes over changed settings. Another set takes effect with the next lines.
    func configure(_ rules: SchemaRules) { self.rules = rules }

    /// Puts another set in force. Counts of schemas with the same name and version continue.
    private func use(_ set: SchemaSet) {
        earlier = counts
        if earlier.count > SchemaChecks.mostEarlier {
            let all = earlier.values.reduce(into: SchemaCounts()) { $0.add($1) }
            earlier = [SchemaName(app: "", event: "(earlier)", version: ""): all]
        }
        checked = nil
        self.set = set
        found = set.schemas.map { _ in SchemaCounts() }
    }

    /// Prepares for lines of an app; nil if no schema concerns it.
    ///
    /// - Parameter documents: the containers in force; nil if there cannot be any.
    func ready(for app: String, _ documents: IntakeRules?) -> SchemaChecks? {
        let wanted = documents?.schemas(behind: rules.set) ?? rules.set
        if wanted != set {
            use(wanted)
        }
        let table = set.table(of: app)
        self.table = table
        return table.isEmpty ? nil : self
    }

    /// Why an event goes to the quarantine, with the name of its schema; nil if it does not.
    func failure(
        in line: UnsafeBufferPointer<UInt8>, named name: UnsafeBufferPointer<UInt8>
    ) -> (name: String, text: String)? {
        checked = nil
        guard let index = table?.index(of: name) else { return nil }
        let failure = set.schemas[index].failure(in: line)
        guard let failure, !rules.isReport else {
            checked = (index, failure)
            return nil
        }
        found[index].invalid += 1
        return (set.schemas[index].title, failure.description)
    }

    /// Counts the event that was checked last, which was accepted. Not counted at the check: an event that
    /// waits for a function is checked each time it is offered.
    func countAccepted() {
        guard let (index, failure) = checked else { return }
        checked = nil
        guard let failure else { return found[index].valid += 1 }
        found[index].invalid += 1
        reported = ((reported?.count ?? 0) + 1, set.schemas[index].title, failure.description)
    }

    /// What the log has not reported yet, at most once an hour.
    func takeReport(at now: BootInstant) -> (count: Int, name: String, text: String)? {
        guard let found = reported, now >= nextReport else { return nil }
        nextReport = now + .seconds(3_600)
        reported = nil
        return found
    }

    /// Counts since the start, by schema.
    var counts: [SchemaName: SchemaCounts] {
        var counts = earlier
        for (schema, found) in zip(set.schemas, found) {
            let name = SchemaName(app: schema.app ?? "", event: schema.name, version: schema.version)
            counts[name, default: SchemaCounts()].add(found)
        }
        return counts
    }
}
