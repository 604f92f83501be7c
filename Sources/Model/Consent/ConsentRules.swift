/// Which events may go to which destinations by consent. Plain values of the configuration.
///
/// For an event and a purpose the first of these that says something decides (docs/privacy.md):
///
/// 1. the event's member `consent`;
/// 2. `[apps.NAME] consent`: refused if it names the purpose, otherwise given.
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

    package init(purposes: [DestinationName: [String]], needs: [String: Need] = [:]) {
        self.purposes = purposes
        self.needs = needs
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
        statement.answer(for: purpose) ?? !isNeeded(purpose, of: app)
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
