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
    /// Whether the agent may ask the kernel whether the clock is synchronised; else it judges by the machine's uptime.
    private(set) var mayAskClock = true
    /// The groups that the agent has beside its user's.
    private(set) var groups: [String] = []
    /// The variables that the service gives the agent.
    private(set) var environment: [String: String] = [:]

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

    /// Why the agent cannot read a path inside the service, or write there; nil when it can.
    func refusal(_ path: String, writes: Bool) -> String? {
        func lies(_ directory: String) -> Bool { path == directory || path.hasPrefix(directory + "/") }
        let advice = "in a drop-in (systemctl edit spoolship)"
        if let place = hidden.first(where: lies), !writable.contains(where: lies) {
            let setting = place.hasSuffix("tmp") ? "PrivateTmp=no" : "ProtectHome=\(writes ? "no" : "read-only")"
            return
                "is in \(place), which spoolship.service hides from the agent; use another directory, or write \(setting)"
                + " \(advice)"
        }
        guard writes, isStrict, !writable.contains(where: lies) else { return nil }
        return "is not writable for spoolship.service; add ReadWritePaths=\(path) \(advice)"
    }

    private mutating func read(_ path: String) {
        for (key, value) in UnitSandbox.lines(of: path) { take(key, UnitSandbox.words(value)) }
    }

    /// The lines of the form `KEY=VALUE` of a unit or a file with variables.
    private static func lines(of path: String) -> [(key: String, value: String)] {
        guard let bytes = try? WholeFile.bytes(of: path, atMost: 1 << 20) else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !line.hasPrefix("#"), !line.hasPrefix(";") else { return nil }
            return (String(parts[0]), String(parts[1]))
        }
    }

    /// The words of a value; quotes hold blanks together.
    private static func words(_ value: String) -> [String] {
        var words: [String] = []
        var quote: Character?
        var isWithin = false
        for character in value {
            if character == quote {
                quote = nil
            } else if quote == nil, "\"'".contains(character) {
                if !isWithin { words.append("") }
                (quote, isWithin) = (character, true)
            } else if quote == nil, character == " " || character == "\t" {
                isWithin = false
            } else {
                if !isWithin { words.append("") }
                isWithin = true
                words[words.count - 1].append(character)
            }
        }
        return words
    }

    private mutating func take(_ key: String, _ values: [String]) {
        let isOn = ["yes", "true", "1", "on"].contains(values.first ?? "")
        switch key {
        case "ProtectClock": mayAskClock = !isOn
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
        case "SupplementaryGroups": groups = values.isEmpty ? [] : groups + values
        case "Environment":
            if values.isEmpty { environment = [:] }
            for value in values {
                let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
            }
        case "EnvironmentFile":
            for file in values {
                for (key, value) in UnitSandbox.lines(of: String(file.drop { $0 == "-" })) {
                    environment[key] = UnitSandbox.words(value).joined(separator: " ")
                }
            }
        case "PrivateTmp": hide(["/tmp", "/var/tmp"], isOn)
        case "ProtectHome": hide(["/home", "/root", "/run/user"], isOn || values.first == "tmpfs")
        default: break
        }
    }

    private mutating func hide(_ places: [String], _ isHidden: Bool) {
        hidden.removeAll(where: places.contains)
        if isHidden { hidden += places }
    }
}
