internal import Containers
internal import EventLoops
internal import Glibc
internal import Model

/// Publishes the values of the containers for apps (tm19): `values.json` beside the control socket, readable by all,
/// replaced as a whole: whoever reads it finds the old values or the new ones.
///
/// Not synced: after a power cut the agent tells them anew.
struct ValuesFile {
    /// The file's path.
    let path: String
    private var written: [UInt8]?

    /// - Parameter socket: the control socket's path.
    init(beside socket: String) {
        let directory = socket.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        path = "\(directory)/values.json"
    }

    /// Writes the values of the containers, in configuration order: of equal keys the later container's counts.
    ///
    /// - Throws: `SystemError`; the old file stays.
    mutating func write(_ states: [ContainerState]) throws(SystemError) {
        let text = ValuesFile.text(of: states)
        guard text != written else { return }
        let temporary = "\(path).new"
        unlink(temporary)
        let file = try Descriptor(
            checking: open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644), "open")
        // Readable by all, whatever the umask takes away.
        guard fchmod(file.raw, 0o644) == 0 else { throw SystemError("fchmod") }
        var rest = text[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.raw, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write") }
            rest = rest.dropFirst(count)
        }
        guard rename(temporary, path) == 0 else { throw SystemError("rename") }
        written = text
    }

    /// The file's text.
    static func text(of states: [ContainerState]) -> [UInt8] {
        var merged: [JSONValue.Member] = []
        for value in states.flatMap(\.values) {
            if let place = merged.firstIndex(where: { $0.key == value.key }) {
                merged[place] = value
            } else {
                merged.append(value)
            }
        }
        let containers = states.map { state -> JSONValue in
            [
                "id": .string(state.id), "version": JSONValue(state.version), "source": .string(state.source.rawValue),
                "values": .object(state.values),
            ]
        }
        let all: JSONValue = ["format": 1, "values": .object(merged), "containers": .array(containers)]
        return Array("\(all)\n".utf8)
    }
}
