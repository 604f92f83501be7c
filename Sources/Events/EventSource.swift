internal import EventLoops
internal import Model
internal import TimeZones

/// A source of lines: the app, and how far its writers are trusted. Made by `EventPass.source`.
///
/// Not Sendable: it belongs to the pass that made it.
public struct EventSource {
    let state: AppState
    /// Whether others than the app may write: the lines come through the drop box.
    let isShared: Bool
    /// Whether the lines are of old files, of which nothing expires.
    let isBackfill: Bool
}

/// The members of an app that tags hide, as a function of the names that lead to them. The number is
/// another one as soon as an answer may be another one, so that nothing derived from old answers is used.
public typealias HiddenPaths = (number: Int, hides: ([[UInt8]]) -> Bool)

/// What the pass keeps of an app: its settings, prepared for use, and the names that it has used today.
final class AppState {
    let name: String
    /// The app's name as JSON text.
    let quotedName: [UInt8]
    private(set) var settings = AppOptions()
    /// Where the app's records have their name, time and severity.
    private(set) var members = RecordMembers()
    /// Zone of times that do not name one.
    private(set) var zone = TimeZoneRules.utc
    /// Properties of the machine and of the app.
    private var device = KnownDevice()
    /// Priority rules that can fit events of the app, in order.
    private(set) var rules: [NameRule] = []
    /// Whether the queue may store the names of its events; false while tags hide them.
    var storesNames = true
    /// Value of the pass's counter when a source of the app was last begun.
    var lastUse = 0
    /// Names of the day. Behind a pointer, so that the pass reaches them without counting references; valid
    /// as long as this object.
    let names: UnsafeMutablePointer<DistinctNames>

    init(_ name: String, seed: UInt64, _ options: EventOptions, _ watched: WatchedNames) {
        self.name = name
        quotedName = JSONText.quoted(name)
        names = .allocate(capacity: 1)
        names.initialize(to: DistinctNames(seed: seed))
        configure(options, watched)
    }

    /// The device as JSON text for events of a time, with the span of times in which it stays the same.
    func device(at time: Timestamp) -> (text: [UInt8], from: Timestamp, until: Timestamp) {
        device.text(at: time)
    }

    deinit {
        names.deinitialize(count: 1)
        names.deallocate()
    }

    /// Prepares settings for use; what tags hide is left out of the candidates.
    func configure(_ options: EventOptions, _ watched: WatchedNames, _ hiding: HiddenPaths? = nil) {
        settings = options.apps[name] ?? options.defaults
        members = RecordMembers(settings, watched, hiding)
        zone = settings.zone ?? options.zone
        device = KnownDevice(options.device, settings)
        rules = options.priorityRules.filter { $0.app == nil || $0.app == name }.map { NameRule($0) }
    }
}

/// A priority rule for a known app, prepared for comparison with names.
struct NameRule {
    /// The name, or how it begins.
    let name: [UInt8]
    /// Whether the rule's name ended with `*`.
    let isPrefix: Bool
    /// Least severity of records that the rule fits; nil for all.
    let level: Severity?
    let priority: Priority
    /// Whether the rule counts more than the event's own priority.
    let force: Bool

    init(_ rule: PriorityRule) {
        let pattern = rule.event ?? "*"
        isPrefix = pattern.hasSuffix("*")
        name = Array((isPrefix ? pattern.dropLast() : pattern[...]).utf8)
        level = rule.level.map { Severity($0) }
        priority = rule.priority
        force = rule.force
    }

    /// Whether the rule fits an event of that name.
    func fits(_ event: UnsafeBufferPointer<UInt8>) -> Bool {
        guard isPrefix ? event.count >= name.count : event.count == name.count else { return false }
        return event.prefix(name.count).elementsEqual(name)
    }
}
