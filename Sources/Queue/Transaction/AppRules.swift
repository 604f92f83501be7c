internal import Model

/// Which waiting events must leave a lane because of their app: what commands have withheld, and ages.
struct AppRules {
    /// Apps whose collection is off.
    private let disabled: Set<String>
    /// Apps whose consent was withdrawn, by destination.
    private let withdrawn: [DestinationName: Set<String>]
    /// Apps whose consent was withdrawn from some destination.
    private let withdrawnSomewhere: Set<String>
    private let maxAges: [String: Duration]
    /// The least of the ages; nil without any.
    private let leastAge: Duration?

    /// Nil if no event can ever leave because of its app.
    init?(_ options: QueueOptions, _ states: ConsentStates) {
        guard !options.appMaxAges.isEmpty || !states.isEmpty else { return nil }
        disabled = states.disabled
        withdrawn = options.purposes.mapValues { states.withdrawn(from: $0) }.filter { !$0.value.isEmpty }
        withdrawnSomewhere = withdrawn.values.reduce(into: []) { $0.formUnion($1) }
        maxAges = options.appMaxAges
        leastAge = maxAges.values.min()
    }

    /// Whether events may leave a lane of a destination.
    ///
    /// - Parameter age: age of the oldest event; nil if nothing may expire.
    func concern(_ destination: DestinationName, age: Duration?) -> Bool {
        if withholds(from: destination) { return true }
        guard let age, let leastAge else { return false }
        return age > leastAge
    }

    /// Whether some app's events are withheld from a destination.
    func withholds(from destination: DestinationName) -> Bool {
        !disabled.isEmpty || withdrawn[destination] != nil
    }

    /// Why an app's events must not be sent to a destination, as the ledger's reason; nil if they may.
    func reason(of app: String, _ destination: DestinationName) -> String? {
        if disabled.contains(app) { return ConsentStates.disabledReason }
        return withdrawn[destination]?.contains(app) == true ? NotStored.withheldReason : nil
    }

    /// Whether an app's events are withheld from some destination.
    func withholds(_ app: String) -> Bool { disabled.contains(app) || withdrawnSomewhere.contains(app) }

    /// Whether an app's event is too old.
    func isExpired(_ app: String, age: Duration) -> Bool {
        guard let most = maxAges[app] else { return false }
        return age > most
    }
}

/// The settings in force and what commands have set, with what follows from both: it is made anew when one of
/// them changes.
struct SettingsInForce {
    var options: QueueOptions { didSet { follow() } }
    var consent: ConsentStates { didSet { follow() } }
    var bounds: FileBounds
    private(set) var appRules: AppRules?

    init(_ options: QueueOptions, _ consent: ConsentStates) {
        self.options = options
        self.consent = consent
        bounds = FileBounds(options)
        appRules = AppRules(options, consent)
    }

    private mutating func follow() {
        bounds = FileBounds(options)
        appRules = AppRules(options, consent)
    }
}
