internal import EventLoops
internal import Glibc

/// A random id of this installation, in `install-id` in the state directory: a UUID, readable by the agent alone.
public struct InstallID: Sendable, Equatable {
    /// The id: 36 characters, lower case.
    public let text: String
    /// Whether a file was there whose content is no id, so that a new one was made: worth a warning.
    public let wasReplaced: Bool

    /// The installation's id; a new one is made and kept, durably, when there is none.
    ///
    /// - Parameters:
    ///   - stateDirectory: where it is kept.
    ///   - random: where a new one comes from.
    /// - Throws: `HostError` with code `installID` when it can be neither read nor written.
    public static func load(
        in stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        let kept = HostFile.read(path)
        if kept == nil, errno != ENOENT {
            throw HostError(
                .installID, "\(path) cannot be read: \(SystemError.message(errno)); give it to the agent's user")
        }
        if let id = kept.flatMap({ valid($0) }) { return InstallID(text: id, wasReplaced: false) }
        let made = try reset(in: stateDirectory, using: &random)
        return InstallID(text: made.text, wasReplaced: kept != nil)
    }

    /// Makes a new id, as on a machine that was cloned.
    ///
    /// - Throws: `HostError` with code `installID`.
    public static func reset(
        in stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        let high = random.next() & ~0xF000 | 0x4000
        let low = random.next() & ~(3 << 62) | 1 << 63
        let digits = [high, low].map { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        do {
            try WholeFile.replace(path, with: Array((text + "\n").utf8), mode: 0o600)
        } catch {
            throw HostError(.installID, "\(path) cannot be written: \(error)")
        }
        return InstallID(text: text, wasReplaced: false)
    }

    /// The id of a text; nil when it is none.
    private static func valid(_ text: String) -> String? {
        let id = String(text.prefix { !$0.isWhitespace })
        guard id.utf8.count == 36, text.utf8.count <= 38 else { return nil }
        for (index, c) in id.utf8.enumerated() {
            let isDigit = (c >= 0x30 && c <= 0x39) || (c | 0x20 >= 0x61 && c | 0x20 <= 0x66)
            guard [8, 13, 18, 23].contains(index) ? c == 0x2D : isDigit else { return nil }
        }
        return id.lowercased()
    }
}
