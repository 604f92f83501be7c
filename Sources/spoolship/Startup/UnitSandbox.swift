internal import EventLoops
internal import Glibc

/// What `spoolship.service` allows the agent to write and see, read from the unit and its drop-ins.
///
/// From outside the service its sandbox cannot be observed: a directory that root and the agent's user can
/// write is read-only inside. Only the directives in `take` are read (systemd.exec(5)), without specifiers
/// (`%h`) and continuation lines; the service manager has the last word.
struct UnitSandbox: Equatable {
    /// Directories below which the agent can write.
    var writable: [String] { given.sorted { $0.key < $1.key }.flatMap(\.value) }
    /// The given directories, by the directive that names them. An empty value takes back only what the same
    /// directive gave (systemd.exec(5)).
    private var given: [String: [String]] = [:]
    /// Directories that are empty or cannot be entered inside the service.
    private(set) var hidden: [String] = []
    /// Whether everything outside of `writable` is read-only (`ProtectSystem=strict`).
    private(set) var isStrict = false
    /// Whether the agent may ask the kernel if the clock is synchronised (`ProtectClock=` takes that away).
    /// Otherwise it judges by the machine's uptime.
    private(set) var mayAskClock = true
    /// The user that the service runs the agent as; nil if the unit has no `User=`, which means root.
    private(set) var user: String?
    /// Whether the service manager creates the user when the agent starts (`DynamicUser=`).
    private var isDynamic = false
    /// The groups that the service adds to those of the user (`SupplementaryGroups=`).
    private(set) var groups: [String] = []
    /// The environment variables that the service sets.
    private(set) var environment: [String: String] = [:]

    /// The directories of units in ascending precedence (systemd.unit(5)): a file in a later one replaces the
    /// file of the same name in an earlier one.
    static let places = [
        "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/system", "/etc/systemd/system",
    ]

    /// Reads the unit and its drop-ins; nil if the service is not installed.
    init?(places: [String] = UnitSandbox.places) {
        let name = "spoolship.service"
        guard let unit = places.last(where: { access("\($0)/\(name)", R_OK) == 0 }) else { return nil }
        read("\(unit)/\(name)")
        // A drop-in replaces one of the same name in a directory of lower precedence, and all are applied in
        // the order of their names, wherever they are.
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

    /// Why the service manager cannot start the agent as the unit's user; nil if it can.
    ///
    /// - Parameter exists: whether a user with a name or number exists.
    func userMistake(exists: (String) -> Bool) -> String? {
        guard let user, !isDynamic, !exists(user) else { return nil }
        return "spoolship.service runs the agent as user \(user), who does not exist"
            + " (systemctl status: 217/USER):"
            + " create the user (systemd-sysusers, or useradd --system \(user)),"
            + " or set User= in a drop-in (systemctl edit spoolship)"
    }

    /// Why the agent cannot read a path inside the service, or write below it; nil if it can.
    func refusal(_ path: String, writes: Bool) -> String? {
        // Whether the path is the directory or below it.
        func lies(_ directory: String) -> Bool { path == directory || path.hasPrefix(directory + "/") }
        let advice = "in a drop-in (systemctl edit spoolship)"
        if let place = hidden.first(where: lies), !writable.contains(where: lies) {
            let setting =
                place.hasSuffix("tmp") ? "PrivateTmp=no" : "ProtectHome=\(writes ? "no" : "read-only")"
            return
                "is in \(place), which spoolship.service hides from the agent; use another directory, or "
                + "write \(setting) \(advice)"
        }
        guard writes, isStrict, !writable.contains(where: lies) else { return nil }
        return "is not writable for spoolship.service; add ReadWritePaths=\(path) \(advice)"
    }

    /// Reads one file, later files over earlier ones.
    private mutating func read(_ path: String) {
        for (key, value) in UnitSandbox.lines(of: path) { apply(key, UnitSandbox.words(value)) }
    }

    /// The lines of the form `KEY=VALUE` in a unit or a file of variables; an unreadable file has none.
    /// Sections are ignored, because no directive that matters is in more than one.
    private static func lines(of path: String) -> [(key: String, value: String)] {
        guard let bytes = try? WholeFile.bytes(of: path, atMost: 1 << 20) else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !line.hasPrefix("#"), !line.hasPrefix(";") else { return nil }
            return (String(parts[0]), String(parts[1]))
        }
    }

    /// The words of a value; quotes hold blanks together, and are removed.
    private static func words(_ value: String) -> [String] {
        var words: [String] = []
        var quote: Character?
        var isWithin = false
        for character in value {
            if character == quote {
                quote = nil
            } else if quote == nil, "\"'".contains(character) {
                if !isWithin {
                    words.append("")
                }
                quote = character
                isWithin = true
            } else if quote == nil, character == " " || character == "\t" {
                isWithin = false
            } else {
                if !isWithin {
                    words.append("")
                }
                isWithin = true
                words[words.count - 1].append(character)
            }
        }
        return words
    }

    /// Applies one directive. An empty value empties lists that accumulate, as in systemd: a drop-in can take
    /// back what the unit gives.
    private mutating func apply(_ key: String, _ values: [String]) {
        let isOn = ["yes", "true", "1", "on"].contains(values.first ?? "")
        switch key {
        case "ProtectClock": mayAskClock = !isOn
        case "ProtectSystem": isStrict = values.first == "strict"
        case "ReadWritePaths", "BindPaths":
            // `-` means that the path may be missing, `+` that it is below the root directory of the service.
            let paths = values.map { String($0.drop { $0 == "-" || $0 == "+" }) }.map { path in
                path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
            }
            give(paths, by: key)
        case "StateDirectory": give(values.map { "/var/lib/\($0)" }, by: key)
        case "RuntimeDirectory": give(values.map { "/run/\($0)" }, by: key)
        case "CacheDirectory": give(values.map { "/var/cache/\($0)" }, by: key)
        case "LogsDirectory": give(values.map { "/var/log/\($0)" }, by: key)
        case "User": user = values.first
        case "DynamicUser": isDynamic = isOn
        case "SupplementaryGroups": groups = values.isEmpty ? [] : groups + values
        case "Environment":
            if values.isEmpty {
                environment = [:]
            }
            for value in values {
                let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 {
                    environment[String(parts[0])] = String(parts[1])
                }
            }
        case "EnvironmentFile":
            for file in values {
                // `-` means that the file may be missing.
                for (key, value) in UnitSandbox.lines(of: String(file.drop { $0 == "-" })) {
                    environment[key] = UnitSandbox.words(value).joined(separator: " ")
                }
            }
        case "PrivateTmp": hide(["/tmp", "/var/tmp"], isOn)
        case "ProtectHome": hide(["/home", "/root", "/run/user"], isOn || values.first == "tmpfs")
        default: break
        }
    }

    /// Adds directories to those that a directive names; none empties its list.
    private mutating func give(_ paths: [String], by directive: String) {
        given[directive] = paths.isEmpty ? [] : given[directive, default: []] + paths
    }

    /// Hides directories, or no longer hides them.
    private mutating func hide(_ places: [String], _ isHidden: Bool) {
        hidden.removeAll(where: places.contains)
        if isHidden {
            hidden += places
        }
    }
}
