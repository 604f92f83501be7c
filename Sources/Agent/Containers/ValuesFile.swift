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
        // Readable by all, whatever the umask takes away.
        try WholeFile.replace(path, with: text, mode: 0o644, isForAll: true, isDurable: false)
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
