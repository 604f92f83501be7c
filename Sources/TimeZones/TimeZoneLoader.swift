public import EventLoops
internal import Glibc
internal import Model

/// Reads zone files of the system (package `tzdata`).
public struct TimeZoneLoader: Sendable {
    package var directory = "/usr/share/zoneinfo"
    /// The file, or link to one, that says the machine's zone.
    package var localFile = "/etc/localtime"

    package init() {}

    /// The zone of that name; `UTC` needs no file. Throws `badName`, `unknown`, `unreadable` or `malformed`.
    public func load(_ name: String) throws(TimeZoneError) -> TimeZoneRules {
        guard name != "UTC" else { return .utc }
        guard name.isTimeZoneName else {
            throw TimeZoneError(.badName, "\"\(name)\" is not a time zone; write one such as \"Europe/Rome\"")
        }
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try read("\(directory)/\(name)") } catch {
            if name == "Etc/UTC" { return .utc }
            guard error.number == ENOENT || error.number == EISDIR else {
                throw TimeZoneError(
                    .unreadable, "\(directory)/\(name) cannot be read: \(SystemError.message(error.number))")
            }
            throw TimeZoneError(
                .unknown, "there is no time zone \"\(name)\" below \(directory); is the package tzdata installed?")
        }
        return try TimeZoneRules(name: name, tzif: bytes)
    }

    /// The machine's zone; UTC when it does not say one.
    ///
    /// - Parameter variable: the value of `TZ`, which takes precedence over the machine's: a zone's name, the path of its file, or a rule
    ///   such as `CET-1CEST,M3.5.0,M10.5.0/3`; empty for UTC; nil where it is not set.
    /// - Throws: `TimeZoneError` when the file that says it cannot be read or is damaged, or `variable` names none.
    public func loadLocal(_ variable: String? = nil) throws(TimeZoneError) -> TimeZoneRules {
        if let variable {
            let text = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
            if text.isEmpty { return .utc }
            if let rules = TimeZoneRules(rule: text) { return rules }
            if text != localFile {
                return try load(text.hasPrefix(directory + "/") ? String(text.dropFirst(directory.count + 1)) : text)
            }
        }
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try read(localFile) } catch {
            if error.number == ENOENT { return .utc }
            throw TimeZoneError(.unreadable, "\(localFile) cannot be read: \(SystemError.message(error.number))")
        }
        return try TimeZoneRules(name: localName() ?? "local", tzif: bytes)
    }

    /// The name that the link to the machine's zone shows.
    private func localName() -> String? {
        guard let path = RealPath.ofExisting(localFile), path.hasPrefix(directory + "/") else { return nil }
        return String(path.dropFirst(directory.count + 1))
    }

    /// A zone's file; none comes near 256 KiB, and one that is larger is none.
    private func read(_ path: String) throws(SystemError) -> [UInt8] {
        try WholeFile.bytes(of: path, atMost: 256 << 10) ?? []
    }
}
