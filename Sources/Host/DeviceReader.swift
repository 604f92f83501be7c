// Host: what the agent knows about the machine it runs on: properties that travel with events, the
// install id, and the countries of addresses.
//
// It promises:
// - Nothing is invented. What the machine does not state, or states with a placeholder, is left out.
// - An install id belongs to one machine. A copied state directory gets a new one.
// - Files of the system are read with a bound (64 KiB), and a file that is missing or damaged never
//   stops the agent; only an install id that can be neither read nor written does.
//
// Its parts:
// - DeviceReader.swift: os-release, kernel, firmware and locale as the members of `device`.
// - InstallID.swift: the install id, and `MachineID`, by which copies are recognised.
// - CountryDatabase.swift: countries from a MaxMind database, with a library that is loaded only if one
//   is set.
// - HostError.swift: the errors.
//
// Its rules: paths and environment are passed in, so that tests use files of their own. It knows nothing
// about how events are read.
//
// Begin with `DeviceReader.read`, whose result `DeviceReader.text` turns into what events get.

internal import EventLoops
public import Events
internal import Glibc
public import TimeZones

/// Reads the machine's properties.
public struct DeviceReader: Sendable {
    /// The members of `device` in the order in which they are written. `time_zone_offset` is not among
    /// them, because it depends on the event's time.
    public static let members = [
        "sdk_name", "sdk_version", "host_name", "os_name", "os_version", "os_build", "kernel", "model",
        "manufacturer",
        "locale", "install_id",
    ]

    /// Prefix of the paths of system files; empty except in tests.
    private let root: String
    /// Environment variables, which state the locale.
    private let environment: [String: String]

    /// A reader of the system's files below `root` (empty except in tests).
    public init(root: String = "", environment: [String: String]) {
        self.root = root
        self.environment = environment
    }

    /// The known properties by name. An install id or host name that is nil or empty is left out.
    public func read(version: String, installID: String?, hostName: String? = nil) -> [String: String] {
        var found: [String: String] = ["sdk_name": "spoolship", "sdk_version": version]
        found["host_name"] = hostName
        let system = osRelease()
        found["os_name"] = system["NAME"]
        found["os_version"] = system["VERSION_ID"]
        found["os_build"] = system["BUILD_ID"]
        found["kernel"] = kernel()
        found["model"] = firmware("product_name")
        found["manufacturer"] = firmware("sys_vendor")
        found["locale"] = locale()
        found["install_id"] = installID
        return found.filter { !$0.value.isEmpty }
    }

    /// The `device` that events get: the wanted members, found or overridden. An override with an empty
    /// text removes its member. Nil if nothing is left.
    ///
    /// - Parameter zone: used for `time_zone_offset` if that is wanted.
    public static func text(
        _ found: [String: String], wanted: Set<String>, overrides: [String: String], zone: TimeZoneRules?
    ) -> DeviceText? {
        let known = found.merging(overrides) { _, override in override }
        let text = DeviceText(
            members: members.compactMap { name in
                guard wanted.contains(name), let value = known[name], !value.isEmpty else { return nil }
                return DeviceText.Member(name, value)
            }, zone: wanted.contains("time_zone_offset") ? zone : nil)
        return text.members.isEmpty && text.zone == nil ? nil : text
    }

    /// The assignments of os-release(5).
    private func osRelease() -> [String: String] {
        let text = hostFile("\(root)/etc/os-release") ?? hostFile("\(root)/usr/lib/os-release") ?? ""
        var found: [String: String] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            found[String(line[..<equals])] = DeviceReader.unquoted(line[line.index(after: equals)...])
        }
        return found
    }

    /// A value as a shell would read it: in single or double quotes or bare, with backslashes before
    /// special characters.
    static func unquoted(_ value: Substring) -> String {
        var text = value
        while text.last == " " || text.last == "\r" { text.removeLast() }
        if text.count >= 2, let quote = text.first, quote == "\"" || quote == "'", text.last == quote {
            text = text.dropFirst().dropLast()
            if quote == "'" { return String(text) }
        }
        var result = ""
        var isEscaped = false
        for character in text {
            if character == "\\", !isEscaped {
                isEscaped = true
            } else {
                result.append(character)
                isEscaped = false
            }
        }
        return result
    }

    /// The kernel's release, as `uname -r` prints it.
    private func kernel() -> String? {
        var names = utsname()
        guard uname(&names) == 0 else { return nil }
        return withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// A property of the firmware (DMI); nil if it is missing or one of the usual placeholders.
    private func firmware(_ name: String) -> String? {
        guard let text = hostFile("\(root)/sys/class/dmi/id/\(name)") else { return nil }
        let trimmed = String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
        let empty: Set<String> = [
            "to be filled by o.e.m.", "default string", "system product name", "system manufacturer",
            "not specified",
            "none", "n/a", "unknown", "o.e.m.", "oem",
        ]
        return empty.contains(trimmed.lowercased()) ? nil : trimmed
    }

    /// Language and region of the locale: `it_IT` for `it_IT.UTF-8`. Nil for `C` and `POSIX`, which say
    /// nothing. The variables take precedence as in locale(7).
    private func locale() -> String? {
        let text = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        let name = String(text?.prefix { $0 != "." && $0 != "@" } ?? "")
        return name == "C" || name == "POSIX" ? nil : name
    }
}

/// A file as text; nil if it cannot be read or has more than 64 KiB.
func hostFile(_ path: String) -> String? {
    (try? WholeFile.bytes(of: path, atMost: 64 << 10)).map { String(decoding: $0, as: UTF8.self) }
}
