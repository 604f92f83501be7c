internal import Containers
internal import EventLoops
internal import Glibc
internal import Model

/// Publishes the values of the containers to apps: `values.json` in the runtime directory, readable by all
/// users. It is replaced as a whole, so that an app reads the old values or the new ones, never a mixture.
///
/// A file of that name that an agent of this user did not write stays, and the values are not published. The
/// file is not synced to disk: after a power cut the agent writes it again.
struct ValuesFile {
    let path: String
    /// The bytes written last; nil before the first write.
    private(set) var written: [UInt8]?

    init(in directory: String) { path = "\(directory)/values.json" }

    /// Writes the values of all containers. If a key is in several containers, the last container counts.
    ///
    /// - Throws: `SystemError` with EEXIST if another program's file has the name.
    mutating func write(_ states: [ContainerState]) throws(SystemError) {
        let text = ValuesFile.text(of: states)
        guard text != written else { return }
        if written == nil, isSomebodyElses { throw SystemError("create", number: EEXIST) }
        // Readable by all, whatever the umask is.
        try WholeFile.replace(path, with: text, mode: 0o644, isForAll: true, isDurable: false)
        written = text
    }

    /// True if the file was not written by an agent of this user. A link is not followed, and anything but a
    /// regular file counts as another program's.
    private var isSomebodyElses: Bool {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard raw >= 0 else { return errno != ENOENT }
        let descriptor = Descriptor(raw)
        guard let status = try? FileStatus(of: raw), status.isRegular, status.owner == geteuid() else {
            return true
        }
        let beginning = Array(ValuesFile.beginning.utf8)
        var found = [UInt8](repeating: 0, count: beginning.count)
        return read(descriptor.raw, &found, found.count) != beginning.count || found != beginning
    }

    /// How each file of values begins, by which the agent recognises its own.
    private static let beginning = "{\"format\":1,\"values\":{"

    /// The content of the file: the merged values, and the values of each container.
    static func text(of states: [ContainerState]) -> [UInt8] {
        var merged: [JSONValue.Member] = []
        for value in states.flatMap(\.values) {
            if let index = merged.firstIndex(where: { $0.key == value.key }) {
                merged[index] = value
            } else {
                merged.append(value)
            }
        }
        let containers = states.map { state -> JSONValue in
            [
                "id": .string(state.id), "version": JSONValue(state.version),
                "source": .string(state.source.rawValue),
                "values": .object(state.values),
            ]
        }
        let all: JSONValue = ["format": 1, "values": .object(merged), "containers": .array(containers)]
        return Array("\(all)\n".utf8)
    }
}
