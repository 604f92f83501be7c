/// Which events may go to which destinations by consent. Plain values: the configuration's purposes, and the
/// states that commands have set.
///
/// For an event and a purpose the first of these that says something decides (docs/privacy.md):
///
/// 1. `spoolship consent APP PURPOSE off`: refused, whatever the event says;
/// 2. the event's member `consent`;
/// 3. `spoolship consent APP PURPOSE on`: given;
/// 4. `[apps.NAME] consent`: refused if it names the purpose, otherwise given.
///
/// A destination with several purposes gets an event only if each of them is given.
public struct ConsentRules: Sendable, Equatable {
    /// For which purposes an app's events need consent.
    public enum Need: Sendable, Equatable {
        /// For each purpose, also one that a destination gets later.
        case all
        /// For these.
        case purposes(Set<String>)
    }

    /// Purposes of destinations; destinations without one are missing, and get every event.
    package var purposes: [DestinationName: [String]]
    /// Apps whose events need consent.
    package var needs: [String: Need]
    /// What commands have set, by app and purpose.
    package var states: ConsentStates
    /// Number of these rules in this process: what was judged by others is judged again. Not 0, which
    /// stands for no rules.
    package var revision = 1

    package init(
        purposes: [DestinationName: [String]], needs: [String: Need] = [:],
        states: ConsentStates = ConsentStates()
    ) {
        self.purposes = purposes
        self.needs = needs
        self.states = states
    }

    /// The rules as a text that changes with each of them, without their number. It is stored, so that a
    /// start notices a change: the form must not vary for the same rules.
    public var text: String {
        var lines = purposes.sorted { $0.key < $1.key }.map {
            "purpose \($0.key.text) \($0.value.sorted().joined(separator: " "))"
        }
        lines += needs.sorted { $0.key < $1.key }.map { app, need in
            switch need {
            case .all: "all \(app)"
            case .purposes(let names): "need \(names.sorted().joined(separator: ",")) \(app)"
            }
        }
        return (lines + [states.text ?? ""]).joined(separator: "\n")
    }

    /// Whether consent decides anything.
    public var isIdle: Bool { purposes.isEmpty }

    /// Whether some of these destinations have a purpose.
    public func concerns(_ destinations: [DestinationName]) -> Bool {
        !purposes.isEmpty && destinations.contains { purposes[$0] != nil }
    }

    /// Those of the destinations that must not get an event, given what it says.
    public func withheld(
        from destinations: [DestinationName], saying statement: ConsentStatement, of app: String
    ) -> [DestinationName] {
        destinations.filter { name in
            guard let purposes = purposes[name] else { return false }
            return !purposes.allSatisfy { isGiven($0, by: statement, of: app) }
        }
    }

    /// Whether an event may be used for a purpose.
    public func isGiven(_ purpose: String, by statement: ConsentStatement, of app: String) -> Bool {
        let state = states[app, purpose]
        if state == false { return false }
        if let said = statement.answer(for: purpose) { return said }
        if state == true { return true }
        return !isNeeded(purpose, of: app)
    }

    /// Whether an app's events need consent for a purpose.
    public func isNeeded(_ purpose: String, of app: String) -> Bool {
        switch needs[app] {
        case nil: false
        case .all?: true
        case .purposes(let names)?: names.contains(purpose)
        }
    }
}

/// The consent that commands have set: an answer for each app and purpose that was set.
///
/// Its text is stored in the queue's file, so the form of `init(_:)` and `text` must not change.
public struct ConsentStates: Sendable, Equatable {
    /// A purpose of an app.
    public struct Key: Sendable, Hashable {
        /// Name of the app.
        public let app: String
        /// Name of the purpose.
        public let purpose: String

        package init(app: String, purpose: String) {
            self.app = app
            self.purpose = purpose
        }
    }

    private var answers: [Key: Bool] = [:]

    /// Most answers: each is stored and read with every change.
    public static let most = 10_000

    /// Nothing is set.
    public init() {}

    /// The answer for an app and a purpose; nil if none was set.
    public subscript(app: String, purpose: String) -> Bool? {
        get { answers[Key(app: app, purpose: purpose)] }
        set { answers[Key(app: app, purpose: purpose)] = newValue }
    }

    /// Number of answers.
    public var count: Int { answers.count }

    /// All answers, by app and purpose.
    public var all: [(key: Key, isGiven: Bool)] {
        answers.sorted { ($0.key.app, $0.key.purpose) < ($1.key.app, $1.key.purpose) }.map {
            ($0.key, $0.value)
        }
    }

    /// Reads a stored text; lines of another form are ignored. They would be those of a newer version.
    public init(_ text: String) {
        for line in text.split(separator: "\n") {
            // The app is last, because its name may have spaces.
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count == 3, parts[0] == "on" || parts[0] == "off" else { continue }
            answers[Key(app: String(parts[2]), purpose: String(parts[1]))] = parts[0] == "on"
        }
    }

    /// A line for each answer; nil if nothing is set.
    public var text: String? {
        guard !answers.isEmpty else { return nil }
        return all.map { "\($0.isGiven ? "on" : "off") \($0.key.purpose) \($0.key.app)" }
            .joined(separator: "\n")
    }
}
