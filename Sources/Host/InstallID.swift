public import EventLoops
internal import Glibc
internal import Model

/// A random id of this installation, in `install-id` in the state directory: a UUID, readable by the agent alone.
public struct InstallID: Sendable, Equatable {
    /// The id: 36 characters, lower case.
    public let text: String
    /// Whether a file was there whose content is no id, so that a new one was made: worth a warning.
    public let wasReplaced: Bool
    /// The id of the machine that this one is a copy of, where the state directory was copied with it; then `text` is new.
    public var clonedFrom: String?

    /// The installation's id; a new one is made and kept, durably, when there is none.
    ///
    /// A state directory that was copied with its machine's image, or moved to another one, gets a new id: two machines with
    /// one id would be one to whoever counts them. `machine-id` beside it says whose the id is.
    /// - Parameter machine: what tells this machine from its copies (`MachineID`); nil where nothing does.
    /// - Throws: `HostError` with code `installID` when it can be neither read nor written.
    public static func load(
        in stateDirectory: String, machine: String? = nil, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        var id = try load(from: stateDirectory, using: &random)
        guard let machine else { return id }
        let path = "\(stateDirectory)/machine-id"
        let known = hostFile(path).map { String($0.prefix { !$0.isWhitespace }) } ?? ""
        guard known != machine else { return id }
        if !known.isEmpty {
            let original = id.text
            id = try reset(in: stateDirectory, using: &random)
            id.clonedFrom = original
        }
        // After the id: a crash in between makes one id more, never two machines with the same.
        try write(machine, to: path)
        return id
    }

    private static func load(
        from stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        let kept = hostFile(path)
        if kept == nil, errno != ENOENT {
            throw HostError(
                .installID, "\(path) cannot be read: \(SystemError.message(errno)); give it to the agent's user")
        }
        if let id = kept.flatMap({ valid($0) }) { return InstallID(text: id, wasReplaced: false) }
        let made = try reset(in: stateDirectory, using: &random)
        return InstallID(text: made.text, wasReplaced: kept != nil)
    }

    /// Makes a new id, as on a machine that was cloned; throws `installID`.
    public static func reset(
        in stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        // Version 4: only random bits.
        let id = UUIDv7(high: random.next() & ~0xF000 | 0x4000, low: random.next() & ~(3 << 62) | 1 << 63)
        try write(id.description, to: path)
        return InstallID(text: id.description, wasReplaced: false)
    }

    private static func write(_ text: String, to path: String) throws(HostError) {
        try relaying(try WholeFile.replace(path, with: Array((text + "\n").utf8), mode: 0o600)) {
            (error: SystemError) in
            HostError(.installID, "\(path) cannot be written: \(error)")
        }
    }

    /// The id of a text; nil when it is none.
    private static func valid(_ text: String) -> String? {
        text.utf8.count <= 38 ? UUIDv7(text.prefix { !$0.isWhitespace })?.description : nil
    }
}

/// Distinguishes a machine from its copies, by machine-id(5): an image that is started twice gets two ids.
public enum MachineID {
    /// The id below a root (empty but in tests); nil where there is none, or not yet.
    public static func read(root: String = "") -> String? {
        let text = hostFile("\(root)/etc/machine-id").map { String($0.prefix { !$0.isWhitespace }) }
        guard let text, text.utf8.count == 32, text.allSatisfy(\.isHexDigit) else { return nil }
        return text.lowercased()
    }
}
