internal import Model

/// The apps that were read: their settings and the names that they use. What must be durable together with
/// the events comes from `takeNames`.
struct PassMemory {
    /// Most apps that are remembered. In the drop box that everybody may write to each user may be an app, so
    /// the number of apps is not under the operator's control.
    static let mostApps = 1024

    /// Where passes find the names that others with the same settings look for.
    private let shared: SharedNames
    /// Settings and names of each app that was read, by app.
    private var states: [String: AppState] = [:]
    /// Number of sources begun so far. The app with the lowest `lastUse` was not read for the longest time
    /// and is forgotten first.
    private var uses = 0
    /// Names that the settings of any app look for, beside those of `MemberName`.
    private(set) var watched = WatchedNames.none

    /// Number of different event names of each app in the UTC day in which the app was last read.
    var nameCounts: [String: NameCount] {
        states.mapValues { NameCount(day: $0.names.pointee.day, names: $0.names.pointee.count) }
    }

    init(_ shared: SharedNames) { self.shared = shared }

    /// Takes over new settings.
    mutating func configure(_ options: EventOptions) {
        watched = shared.names(options)
        for state in states.values { state.configure(options, watched) }
    }

    /// The state of an app; made when the app is first seen.
    mutating func state(
        of app: String, _ options: EventOptions, using random: inout some RandomNumberGenerator
    ) -> AppState {
        if let known = states[app] { return known }
        let made = AppState(app, seed: random.next(), options, watched)
        states[app] = made
        return made
    }

    /// Notes that lines of an app are read, on a day, and brings its candidates up to what tags hide.
    mutating func use(_ state: AppState, _ options: EventOptions, _ hiding: HiddenPaths?, day: Int64) {
        uses += 1
        state.lastUse = uses
        if state.members.hiding != hiding?.number {
            state.configure(options, watched, hiding)
        }
        state.names.pointee.beginDay(day)
    }

    /// The names that have changed since the last call, by the keys of the commit's memory; nil for keys to
    /// delete.
    ///
    /// - Parameter isHidden: whether tags hide the names of an app.
    mutating func takeNames(isHidden: (String) -> Bool) -> [String: [UInt8]?] {
        var memory: [String: [UInt8]?] = [:]
        for state in states.values {
            let stores = !isHidden(state.name)
            guard state.names.pointee.isChanged && stores || state.storesNames && !stores else { continue }
            state.names.pointee.isChanged = false
            state.storesNames = stores
            memory.updateValue(stores ? state.names.pointee.saved() : nil, forKey: "names/\(state.name)")
        }
        for state in forgetIdleApps() { memory.updateValue(nil, forKey: "names/\(state.name)") }
        return memory
    }

    /// If there are more than `mostApps`, forgets the apps that were not read for longest until three
    /// quarters of the bound are left. The next event of a forgotten app starts again, without the names of
    /// its day. Forgetting in batches keeps the sort rare.
    private mutating func forgetIdleApps() -> ArraySlice<AppState> {
        guard states.count > PassMemory.mostApps else { return [] }
        let idle = states.values.sorted { $0.lastUse < $1.lastUse }.dropLast(PassMemory.mostApps * 3 / 4)
        for state in idle { states[state.name] = nil }
        return idle
    }
}
