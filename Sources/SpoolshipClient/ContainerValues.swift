/// The values of the agent's containers, for apps: what `values.json` in its runtime directory says.
///
/// The file is looked at when a value is asked for, once a second at most, so that a new version is seen without a
/// restart. Without an agent, or without a container, everything is missing and gives its type's standard value. The
/// last values that could be read stay.
/// Isolation: from any thread.
public final class ContainerValues: @unchecked Sendable {
    // What changes is touched under the monitor only.
    private let path: String
    private let monitor = Monitor()
    private var values: [String: JSONText.Value] = [:]
    private var seen: FileMark?
    private var lookedAt: Int64?
    private var watchers: [UInt64: @Sendable () -> Void] = [:]
    private var lastWatcher: UInt64 = 0
    private var isWatching = false

    /// Values of the agent on this machine; `path` is their file, by default the package's.
    public init(path: String = "/run/spoolship/values.json") { self.path = path }

    /// The text of a key; `""` when it is missing. Numbers and truth values are written out.
    public func string(_ key: String) -> String {
        switch value(key) {
        case .string(let text): text
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): "\(flag)"
        default: ""
        }
    }

    /// The whole number of a key; 0 when it is missing, or is no whole number.
    public func integer(_ key: String) -> Int64 {
        switch value(key) {
        case .integer(let number): number
        case .double(let number): Int64(exactly: number) ?? 0
        case .string(let text): Int64(text).flatMap { "\($0)" == text ? $0 : nil } ?? 0
        default: 0
        }
    }

    /// The number of a key; 0.0 when it is missing, or is no number.
    public func double(_ key: String) -> Double {
        switch value(key) {
        case .integer(let number): Double(exactly: number) ?? 0
        case .double(let number): number
        case .string(let text): Double(text).flatMap { $0.isFinite ? $0 : nil } ?? 0
        default: 0
        }
    }

    /// The truth value of a key; false when it is missing, or is none.
    public func boolean(_ key: String) -> Bool {
        switch value(key) {
        case .bool(let flag): flag
        case .string(let text): text == "true"
        default: false
        }
    }

    /// Whether a key has a value.
    public func contains(_ key: String) -> Bool { value(key) != nil }

    /// Calls a function when the values have changed, until `stopObserving` ends that.
    ///
    /// The file is looked at once a second, by one thread for all observers, while there are any. The function is called
    /// on that thread.
    ///
    /// - Returns: what to give to `stopObserving`; nil when the system has no thread left.
    public func observe(_ body: @escaping @Sendable () -> Void) -> UInt64? {
        let (id, mustStart) = monitor.sync {
            lastWatcher += 1
            watchers[lastWatcher] = body
            defer { isWatching = true }
            return (lastWatcher, !isWatching)
        }
        // What is there already is no change.
        refresh(atOnce: true)
        guard mustStart, !startThread({ [weak self] in ContainerValues.watch { self } }) else { return id }
        monitor.sync {
            watchers[id] = nil
            isWatching = false
        }
        return nil
    }

    /// Ends an observation.
    public func stopObserving(_ id: UInt64) { monitor.sync { watchers[id] = nil } }

    /// Looks once a second, as long as anybody observes and the values are in use at all.
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

    private func goesOn() -> Bool {
        if watchers.isEmpty { isWatching = false }
        return isWatching
    }

    private func value(_ key: String) -> JSONText.Value? {
        refresh(atOnce: false)
        return monitor.sync { values[key] }
    }

    /// Reads the file if it is another one than was read last; returns whether the values have changed.
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
