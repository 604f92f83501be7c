public import EventLoops
internal import Glibc
internal import Model

/// The random id of this installation: a UUID in the file `install-id` of the state directory, readable
/// for the agent only.
public struct InstallID: Sendable, Equatable {
    /// The id: 36 characters, lower case.
    public let text: String
    /// Whether the file existed without a valid id, so that a new one was made: worth a warning.
    public let wasReplaced: Bool
    /// The id of the machine that this one was copied from, together with its state directory; `text`
    /// is new then. Nil if it is not a copy.
    public var clonedFrom: String?

    /// Reads the id, or makes one and stores it durably.
    ///
    /// A state directory that was copied in a machine's image, or moved to another machine, gets a new
    /// id: two machines with one id would be counted as one. The file `machine-id` beside it says which
    /// machine the id belongs to.
    /// - Parameter machine: distinguishes this machine from its copies (`MachineID`); nil if it is
    ///   unknown.
    /// - Throws: `HostError` with code `installID` if the id can be neither read nor written.
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
        // Written after the id: a crash in between causes one more id, never two machines with the same
        // id.
        try write(machine, to: path)
        return id
    }

    /// Reads the id of a state directory, or makes one if there is no valid id.
    private static func load(
        from stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        let kept = hostFile(path)
        if kept == nil, errno != ENOENT {
            throw HostError(
                .installID,
                "\(path) cannot be read: \(SystemError.message(errno)); give it to the agent's user")
        }
        if let id = kept.flatMap({ valid($0) }) { return InstallID(text: id, wasReplaced: false) }
        let made = try reset(in: stateDirectory, using: &random)
        return InstallID(text: made.text, wasReplaced: kept != nil)
    }

    /// Makes and stores a new id, as for a copied machine.
    ///
    /// - Throws: `HostError` with code `installID`.
    public static func reset(
        in stateDirectory: String, using random: inout some RandomNumberGenerator
    ) throws(HostError) -> InstallID {
        let path = "\(stateDirectory)/install-id"
        // A UUID of version 4, which has random bits only (RFC 9562, section 5.4).
        let id = UUIDv7(high: random.next() & ~0xF000 | 0x4000, low: random.next() & ~(3 << 62) | 1 << 63)
        try write(id.description, to: path)
        return InstallID(text: id.description, wasReplaced: false)
    }

    /// Replaces a file of the state directory durably, with mode 0600.
    private static func write(_ text: String, to path: String) throws(HostError) {
        try relaying(try WholeFile.replace(path, with: Array((text + "\n").utf8), mode: 0o600)) {
            (error: SystemError) in
            HostError(.installID, "\(path) cannot be written: \(error)")
        }
    }

    /// The id in a text; nil if there is no valid id in it.
    private static func valid(_ text: String) -> String? {
        text.utf8.count <= 38 ? UUIDv7(text.prefix { !$0.isWhitespace })?.description : nil
    }
}

/// Distinguishes a machine from its copies by machine-id(5): an image that is started twice gets two of
/// them.
public enum MachineID {
    /// The machine's id, below `root` in tests; nil if it is missing, or not set yet during the first
    /// boot.
    public static func read(root: String = "") -> String? {
        let text = hostFile("\(root)/etc/machine-id").map { String($0.prefix { !$0.isWhitespace }) }
        guard let text, text.utf8.count == 32, text.allSatisfy(\.isHexDigit) else { return nil }
        return text.lowercased()
    }
}
