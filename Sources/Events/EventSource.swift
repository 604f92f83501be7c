internal import EventLoops
internal import Model
internal import TimeZones

/// Where lines come from: the app whose they are, and the producer within it. Made by `EventPass.source`.
///
/// Not Sendable: it belongs to the pass that made it.
public struct EventSource {
    let state: AppState
    let isShared: Bool
    let isBackfill: Bool
}

/// Which members of an app tags hide, by the names that lead to them, and a number that changes with them.
public typealias HiddenPaths = (number: Int, hides: ([[UInt8]]) -> Bool)

/// What the pass keeps of an app: its settings, ready for use, and the names it has used today.
final class AppState {
    let name: String
    let quotedName: [UInt8]
    private(set) var settings = AppSettings()
    /// The default name as the member `name`.
    private(set) var defaultNameMember: [UInt8] = []
    /// Where a record's name, time and severity are looked for.
    private(set) var nameCandidates = Candidates.none
    private(set) var timeCandidates = Candidates.none
    private(set) var levelCandidates = Candidates.none
    /// Whether the severity is where nobody else would look for it: then it is added to the record.
    private(set) var addsSeverity = false
    /// The scanner's bit of the member in which it is added.
    private(set) var severityBit: UInt64 = 0
    /// The zone of times that say none.
    private(set) var zone = TimeZoneRules.utc
    /// What is known of the machine, and of the app.
    private var device: DeviceText?
    private var renderedDevice: (text: [UInt8], from: Timestamp, until: Timestamp)?
    /// The rules that can fit, in their order.
    private(set) var rules: [NameRule] = []
    /// The number of the hidden members that the candidates leave out.
    private(set) var hiding: Int?
    /// Whether the queue may have the names of its events.
    var storesNames = true
    /// How many sources had been begun when one of it was.
    var lastUse = 0
    /// Behind a pointer, so that the pass reaches it without counting references; it lives as long as this.
    let names: UnsafeMutablePointer<DistinctNames>

    init(_ name: String, seed: UInt64, _ options: EventOptions, _ watched: WatchedNames) {
        self.name = name
        quotedName = JSONText.quoted(name)
        names = .allocate(capacity: 1)
        names.initialize(to: DistinctNames(seed: seed))
        configure(options, watched)
    }

    func device(at time: Timestamp) -> (text: [UInt8], from: Timestamp, until: Timestamp) {
        if let known = renderedDevice, time >= known.from, time < known.until { return known }
        let rendered = device?.rendered(at: time) ?? ([], Timestamp(nanoseconds: .min), Timestamp(nanoseconds: .max))
        renderedDevice = rendered
        return rendered
    }

    deinit {
        names.deinitialize(count: 1)
        names.deallocate()
    }

    func configure(_ options: EventOptions, _ watched: WatchedNames, _ hiding: HiddenPaths? = nil) {
        self.hiding = hiding?.number
        settings = options.apps[name] ?? options.defaults
        defaultNameMember = Array("\"name\":".utf8) + JSONText.quoted(settings.defaultEventName)
        nameCandidates = Candidates(settings.nameMembers, watched, hiding: hiding)
        timeCandidates = Candidates(settings.timeMembers, watched, hiding: hiding)
        levelCandidates = Candidates(settings.levelMembers, watched, hiding: hiding)
        addsSeverity = settings.levelMembers != Severity.usualMembers || settings.levelScale != .auto
        severityBit = Candidates(["severity"], watched).mask
        zone = settings.zone ?? options.zone
        device = options.device
        renderedDevice = nil
        if let version = settings.version { device?.members.append(DeviceText.Member("app_version", version)) }
        if let build = settings.build { device?.members.append(DeviceText.Member("app_build", build)) }
        rules = options.priorityRules.filter { $0.app == nil || $0.app == name }.map { NameRule($0) }
    }
}

/// A priority rule for a known app, ready to be compared with a name.
struct NameRule {
    let name: [UInt8]
    let isPrefix: Bool
    let level: Severity?
    let priority: Priority
    let force: Bool

    init(_ rule: PriorityRule) {
        let pattern = rule.event ?? "*"
        isPrefix = pattern.hasSuffix("*")
        name = Array((isPrefix ? pattern.dropLast() : pattern[...]).utf8)
        level = rule.level.map { Severity($0) }
        priority = rule.priority
        force = rule.force
    }

    func fits(_ event: UnsafeBufferPointer<UInt8>) -> Bool {
        guard isPrefix ? event.count >= name.count : event.count == name.count else { return false }
        return event.prefix(name.count).elementsEqual(name)
    }
}
