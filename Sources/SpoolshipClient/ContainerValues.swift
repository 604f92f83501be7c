/// The values of the agent's containers, for apps: what `values.json` in the agent's runtime directory says.
///
/// The file is looked at when a value is asked for, at most once a second, so that a new version is seen
/// without a restart. Without an agent, or without a container, each key is missing and has the default of
/// its type. If the file cannot be read, the last values stay. May be used from any thread.
public final class ContainerValues: @unchecked Sendable {
    // Unchecked: what changes is only used with the monitor held.
    /// Path of the file.
    private let path: String
    /// Guards all fields below.
    private let monitor = Monitor()
    /// Values by key.
    private var values: [String: JSONText.Value] = [:]
    /// The file that was read last; nil before the first.
    private var seen: FileMark?
    /// Time of the last look; nil before the first.
    private var lookedAt: Int64?
    /// Functions of the observers, by id.
    private var watchers: [UInt64: @Sendable () -> Void] = [:]
    /// Id of the last observer.
    private var lastWatcher: UInt64 = 0
    /// Whether the observing thread runs.
    private var isWatching = false

    /// Values of the agent on this machine; `path` is their file, by default the package's.
    public init(path: String = "/run/spoolship/values.json") { self.path = path }

    /// The text of a key; `""` if it is missing. Numbers and truth values are written out.
    public func string(_ key: String) -> String {
        switch value(key) {
        case .string(let text): text
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): "\(flag)"
        default: ""
        }
    }

    /// The whole number of a key; 0 if it is missing, or is not a whole number.
    public func integer(_ key: String) -> Int64 {
        switch value(key) {
        case .integer(let number): number
        case .double(let number): Int64(exactly: number) ?? 0
        case .string(let text): Int64(text).flatMap { "\($0)" == text ? $0 : nil } ?? 0
        default: 0
        }
    }

    /// The number of a key; 0.0 if it is missing, or is not a number.
    public func double(_ key: String) -> Double {
        switch value(key) {
        case .integer(let number): Double(exactly: number) ?? 0
        case .double(let number): number
        case .string(let text): Double(text).flatMap { $0.isFinite ? $0 : nil } ?? 0
        default: 0
        }
    }

    /// The truth value of a key; false if it is missing, or is not a truth value.
    public func boolean(_ key: String) -> Bool {
        switch value(key) {
        case .bool(let flag): flag
        case .string(let text): text == "true"
        default: false
        }
    }

    /// Whether a key has a value.
    public func contains(_ key: String) -> Bool { value(key) != nil }

    /// Calls a function when the values have changed, until `stopObserving`.
    ///
    /// One thread for all observers looks at the file once a second while there are observers. The function
    /// is called on that thread, so it should be short.
    ///
    /// - Returns: the id for `stopObserving`; nil if no thread could be started.
    public func observe(_ body: @escaping @Sendable () -> Void) -> UInt64? {
        let (id, mustStart) = monitor.sync {
            lastWatcher += 1
            watchers[lastWatcher] = body
            defer { isWatching = true }
            return (lastWatcher, !isWatching)
        }
        // Values that exist already are not a change.
        refresh(atOnce: true)
        guard mustStart, !startThread({ [weak self] in ContainerValues.watch { self } }) else { return id }
        monitor.sync {
            watchers[id] = nil
            isWatching = false
        }
        return nil
    }

    /// Ends an observation. A call that has begun may still end after it.
    public func stopObserving(_ id: UInt64) { monitor.sync { watchers[id] = nil } }

    /// The observing thread: looks once a second, as long as there are observers and the object is in use.
    private static func watch(_ values: () -> ContainerValues?) {
        while true {
            sleepSecond()
            guard let values = values() else { return }
            guard values.monitor.sync({ values.goesOn() }) else { return }
            guard values.refresh(atOnce: true) else { continue }
            let watchers = values.monitor.sync { values.watchers.sorted { $0.key < $1.key }.map(\.value) }
            for watcher in watchers { watcher() }
        }
    }

    /// Whether the thread must continue. Decided and noted in one step: an observer that was added in between
    /// would otherwise have no thread.
    private func goesOn() -> Bool {
        if watchers.isEmpty {
            isWatching = false
        }
        return isWatching
    }

    /// The value of a key, after a look at the file if one is due.
    private func value(_ key: String) -> JSONText.Value? {
        refresh(atOnce: false)
        return monitor.sync { values[key] }
    }

    /// Reads the file if it is not the one that was read last; returns whether the values have changed.
    @discardableResult
    private func refresh(atOnce: Bool) -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        let now = steadyNanoseconds()
        if !atOnce, let lookedAt, now - lookedAt < 1_000_000_000 { return false }
        lookedAt = now
        guard let mark = FileMark(path), mark != seen, let text = readSmallFile(path, limit: 4 << 20),
            case .object(let members) = JSONText.read(text), case .object(let found)? = members["values"]
        else { return false }
        seen = mark
        let isChanged = found != values
        values = found
        return isChanged
    }
}
