internal import Containers
internal import EventLoops
internal import Glibc
internal import Model

/// Publishes the values of the containers for apps (tm19): `values.json` in the runtime directory, readable by all,
/// replaced as a whole: whoever reads it finds the old values or the new ones.
///
/// A file of that name that an agent of this user did not write stays, and the values are not published.
/// Not synced: after a power cut the agent tells them again.
struct ValuesFile {
    let path: String
    /// What was written last; nil before anything was.
    private(set) var written: [UInt8]?

    init(in directory: String) { path = "\(directory)/values.json" }

    /// Writes all containers' values, of equal keys the last; throws EEXIST where the file is somebody else's: it stays.
    mutating func write(_ states: [ContainerState]) throws(SystemError) {
        let text = ValuesFile.text(of: states)
        guard text != written else { return }
        if written == nil, isSomebodyElses { throw SystemError("create", number: EEXIST) }
        // Readable by all, whatever the umask takes away.
        try WholeFile.replace(path, with: text, mode: 0o644, isForAll: true, isDurable: false)
        written = text
    }

    /// Whether what has the file's name was not written by an agent of this user.
    private var isSomebodyElses: Bool {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard raw >= 0 else { return errno != ENOENT }
        let descriptor = Descriptor(raw)
        guard let status = try? FileStatus(of: raw), status.isRegular, status.owner == geteuid() else { return true }
        let beginning = Array(ValuesFile.beginning.utf8)
        var found = [UInt8](repeating: 0, count: beginning.count)
        return read(descriptor.raw, &found, found.count) != beginning.count || found != beginning
    }

    /// What every file of values begins with.
    private static let beginning = "{\"format\":1,\"values\":{"

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
