public import EventLoops
internal import Glibc
internal import Model

/// Reads the system's zone files (package `tzdata`).
public struct TimeZoneLoader: Sendable {
    /// Directory of the zone files.
    package var directory = "/usr/share/zoneinfo"
    /// The machine's zone: a zone file or a link to one (localtime(5)).
    package var localFile = "/etc/localtime"

    package init() {}

    /// The zone with a name; `UTC` needs no file.
    ///
    /// - Throws: `TimeZoneError` with code `badName`, `unknown`, `unreadable` or `malformed`.
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
                .unknown,
                "there is no time zone \"\(name)\" below \(directory); is the package tzdata installed?")
        }
        return try TimeZoneRules(name: name, tzif: bytes)
    }

    /// The machine's zone; UTC if the machine does not state one.
    ///
    /// - Parameter variable: value of `TZ`, which takes precedence (tzset(3)): a zone's name, the path
    ///   of its file, or a rule such as `CET-1CEST,M3.5.0,M10.5.0/3`; empty for UTC; nil if it is not
    ///   set.
    /// - Throws: `TimeZoneError` if the file cannot be read or is damaged, or `variable` does not name
    ///   a zone.
    public func loadLocal(_ variable: String? = nil) throws(TimeZoneError) -> TimeZoneRules {
        if let variable {
            let text = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
            if text.isEmpty { return .utc }
            if let rules = TimeZoneRules(rule: text) { return rules }
            if text != localFile {
                return try load(
                    text.hasPrefix(directory + "/") ? String(text.dropFirst(directory.count + 1)) : text)
            }
        }
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try read(localFile) } catch {
            if error.number == ENOENT { return .utc }
            throw TimeZoneError(
                .unreadable, "\(localFile) cannot be read: \(SystemError.message(error.number))")
        }
        return try TimeZoneRules(name: localName() ?? "local", tzif: bytes)
    }

    /// The zone's name, from the path that the link to its file leads to.
    private func localName() -> String? {
        guard let path = RealPath.ofExisting(localFile), path.hasPrefix(directory + "/") else { return nil }
        return String(path.dropFirst(directory.count + 1))
    }

    /// The content of a zone file. Zone files are far smaller than 256 KiB: a larger file is returned
    /// as empty, which is malformed.
    private func read(_ path: String) throws(SystemError) -> [UInt8] {
        try WholeFile.bytes(of: path, atMost: 256 << 10) ?? []
    }
}
