internal import EventLoops
internal import Glibc

/// What `spoolship.service` lets the agent write and see, read from the unit and its drop-ins.
///
/// From outside the service nothing of the sandbox can be felt: a directory that root and the agent's user may write is
/// read-only inside. Only what takes directories away is read; the service manager has the last word.
struct UnitSandbox: Equatable {
    /// Directories below which the agent may write.
    private(set) var writable: [String] = []
    /// Directories that look empty, or cannot be entered, inside.
    private(set) var hidden: [String] = []
    /// Whether everything else is read-only.
    private(set) var isStrict = false

    /// Where units are, later ones over earlier ones.
    static let places = [
        "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/system", "/etc/systemd/system",
    ]

    /// The unit's sandbox; nil where there is no such unit.
    init?(places: [String] = UnitSandbox.places) {
        let name = "spoolship.service"
        guard let unit = places.last(where: { access("\($0)/\(name)", R_OK) == 0 }) else { return nil }
        read("\(unit)/\(name)")
        var dropIns: [String: String] = [:]
        for place in places {
            let directory = "\(place)/\(name).d"
            for file in (try? WholeFile.names(in: directory)) ?? []
            where file.hasSuffix(".conf") && !file.hasPrefix(".") {
                dropIns[file] = "\(directory)/\(file)"
            }
        }
        for (_, path) in dropIns.sorted(by: { $0.key < $1.key }) { read(path) }
    }

    /// Why the agent cannot use a path inside the service as `check` can outside; nil when it can.
    ///
    /// - Parameter writes: whether it is to be written, not only read.
    func refusal(_ path: String, writes: Bool) -> String? {
        func lies(_ directory: String) -> Bool { path == directory || path.hasPrefix(directory + "/") }
        let advice = "in a drop-in (systemctl edit spoolship)"
        if let place = hidden.first(where: lies), !writable.contains(where: lies) {
            return "is in \(place), which spoolship.service hides from the agent; use another directory, or allow it"
                + " \(advice)"
        }
        guard writes, isStrict, !writable.contains(where: lies) else { return nil }
        return "is not writable for spoolship.service; add ReadWritePaths=\(path) \(advice)"
    }

    private mutating func read(_ path: String) {
        guard let bytes = StartupCheck.bytes(of: path, atMost: 1 << 20) else { return }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !line.hasPrefix("#"), !line.hasPrefix(";") else { continue }
            let values = parts[1].split(separator: " ").map(String.init)
            take(String(parts[0]), values)
        }
    }

    private mutating func take(_ key: String, _ values: [String]) {
        let isOn = ["yes", "true", "1", "on"].contains(values.first ?? "")
        switch key {
        case "ProtectSystem": isStrict = values.first == "strict"
        case "ReadWritePaths", "BindPaths":
            if values.isEmpty { writable = [] }
            // A minus says that it may be missing; a plus, that it is below the root directory.
            writable += values.map { String($0.drop { $0 == "-" || $0 == "+" }) }.map { path in
                path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
            }
        case "StateDirectory": writable += values.map { "/var/lib/\($0)" }
        case "RuntimeDirectory": writable += values.map { "/run/\($0)" }
        case "CacheDirectory": writable += values.map { "/var/cache/\($0)" }
        case "LogsDirectory": writable += values.map { "/var/log/\($0)" }
        case "PrivateTmp":
            hidden.removeAll { $0 == "/tmp" || $0 == "/var/tmp" }
            if isOn { hidden += ["/tmp", "/var/tmp"] }
        case "ProtectHome":
            hidden.removeAll { ["/home", "/root", "/run/user"].contains($0) }
            if isOn || values.first == "tmpfs" { hidden += ["/home", "/root", "/run/user"] }
        default: break
        }
    }
}
