/// Which events may go to which destinations by consent: plain values of the configuration and of commands.
///
/// For an event and a purpose the first of these that says something decides (docs/privacy.md):
///
/// 1. `spoolship consent APP PURPOSE off`: refused;
/// 2. the event's member `consent`;
/// 3. the member `consent` of the app's data layer;
/// 4. `spoolship consent APP PURPOSE on`: given;
/// 5. `[apps.NAME] consent`: refused if it names the purpose, otherwise given.
///
/// A destination with several purposes gets an event only if each of them is given. An app whose collection
/// is off (`spoolship disable --app`) sends nothing anywhere.
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
    /// What commands have set.
    package var states: ConsentStates

    package init(
        purposes: [DestinationName: [String]], needs: [String: Need] = [:],
        states: ConsentStates = ConsentStates()
    ) {
        self.purposes = purposes
        self.needs = needs
        self.states = states
    }

    /// Whether no event is ever withheld.
    public var isIdle: Bool { purposes.isEmpty && states.disabled.isEmpty }

    /// Whether some of these destinations may not get some event of an app.
    public func concerns(_ destinations: [DestinationName], of app: String) -> Bool {
        states.isDisabled(app) || !purposes.isEmpty && destinations.contains { purposes[$0] != nil }
    }

    /// Why an app's events are withheld: a metric label.
    public func reason(of app: String) -> String {
        states.isDisabled(app) ? ConsentStates.disabledReason : NotStored.withheldReason
    }

    /// The destinations that must not get an event, by what the event says about consent.
    ///
    /// - Parameter layer: what the app's data layer says; nil for nothing.
    public func withheld(
        from destinations: [DestinationName], saying statement: ConsentStatement,
        layer: ConsentStatement? = nil, of app: String
    ) -> [DestinationName] {
        if states.isDisabled(app) { return destinations }
        return destinations.filter { name in
            guard let purposes = purposes[name] else { return false }
            return !purposes.allSatisfy { isGiven($0, by: statement, layer: layer, of: app) }
        }
    }

    /// Whether an event may be used for a purpose.
    public func isGiven(
        _ purpose: String, by statement: ConsentStatement, layer: ConsentStatement? = nil, of app: String
    ) -> Bool {
        let state = states[app, purpose]
        if state == false { return false }
        return statement.answer(for: purpose) ?? layer?.answer(for: purpose) ?? state
            ?? !isNeeded(purpose, of: app)
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
