//  Host: what the agent knows of the machine it runs on, and of addresses: properties that travel with events, the install
//  id, countries.
//
//  It promises that nothing is invented: what the machine does not say is left out. It knows nothing of how events are read.

internal import EventLoops
public import Events
internal import Glibc
public import TimeZones

/// Reads the machine's properties (ac22).
public struct DeviceReader: Sendable {
    /// The members of `device`, in the order of writing; `time_zone_offset` depends on the event and is not among them.
    public static let members = [
        "sdk_name", "sdk_version", "host_name", "os_name", "os_version", "os_build", "kernel", "model", "manufacturer",
        "locale", "install_id",
    ]

    private let root: String
    private let environment: [String: String]

    /// `root` is where the system's files are looked for, empty but in tests; the environment tells the locale.
    public init(root: String = "", environment: [String: String]) {
        self.root = root
        self.environment = environment
    }

    /// What is known, by name; without an install id or a host's name (nil or empty) these are left out.
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

    /// The `device` that events get: the wanted members, `time_zone_offset` too, as found or overridden; an empty text
    /// leaves its member out.
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

    /// The assignments of os-release. Source: its manual page, os-release(5).
    private func osRelease() -> [String: String] {
        let text = hostFile("\(root)/etc/os-release") ?? hostFile("\(root)/usr/lib/os-release") ?? ""
        var found: [String: String] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            found[String(line[..<equals])] = DeviceReader.unquoted(line[line.index(after: equals)...])
        }
        return found
    }

    /// A value as a shell would read it: in single or double quotes, or bare, with backslashes before special characters.
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

    private func kernel() -> String? {
        var names = utsname()
        guard uname(&names) == 0 else { return nil }
        return withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// What the firmware says, unless it is one of the usual placeholders.
    private func firmware(_ name: String) -> String? {
        guard let text = hostFile("\(root)/sys/class/dmi/id/\(name)") else { return nil }
        let trimmed = String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
        let empty: Set<String> = [
            "to be filled by o.e.m.", "default string", "system product name", "system manufacturer", "not specified",
            "none", "n/a", "unknown", "o.e.m.", "oem",
        ]
        return empty.contains(trimmed.lowercased()) ? nil : trimmed
    }

    /// The locale's language and region: `it_IT` of `it_IT.UTF-8`. `C` and `POSIX` say nothing.
    private func locale() -> String? {
        let text = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        let name = String(text?.prefix { $0 != "." && $0 != "@" } ?? "")
        return name == "C" || name == "POSIX" ? nil : name
    }
}

/// A file as text; nil when it cannot be read, or has more than 64 KiB.
func hostFile(_ path: String) -> String? {
    (try? WholeFile.bytes(of: path, atMost: 64 << 10)).map { String(decoding: $0, as: UTF8.self) }
}
