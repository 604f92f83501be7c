internal import COpenSSL
internal import Digests
internal import EventLoops
internal import Glibc

/// The files of a directory and those below it: mode, owner, size, time and name, never what is in them.
struct FileListing {
    private static let most = 2_000
    private static let deepest = 8

    private let root: String
    private let isHashed: Bool
    /// Of this report alone: the same name has the same hash within it, and no list of likely names finds it.
    private let salt = (0..<4).map { _ in UInt64.random(in: .min ... .max) }

    init(_ root: String, isHashed: Bool) {
        self.root = root
        self.isHashed = isHashed
    }

    var text: String {
        var lines = [root]
        add(root, depth: 0, to: &lines)
        if lines.count > FileListing.most { lines.append("… and more") }
        return lines.joined(separator: "\n")
    }

    private func add(_ directory: String, depth: Int, to lines: inout [String]) {
        let names: [String]
        do throws(SystemError) { names = try WholeFile.names(in: directory, atMost: FileListing.most + 1) } catch {
            lines.append("cannot be listed: \(SystemError.message(error.number).lowercased())")
            return
        }
        for name in names.sorted() {
            guard lines.count <= FileListing.most else { return }
            var status = stat()
            guard lstat("\(directory)/\(name)", &status) == 0 else { continue }
            // bounded: by the type that they become.
            let time = Timestamp(seconds: status.st_mtim.tv_sec, nanoseconds: 0)
            let owner = getpwuid(status.st_uid).map { String(cString: $0.pointee.pw_name) } ?? "\(status.st_uid)"
            let mode = String(status.st_mode, radix: 8)
            let indent = String(repeating: "  ", count: depth)
            // bounded: the size is printed only.
            lines.append("\(indent)\(mode) \(owner) \(status.st_size) \(time) \(shown(name))")
            guard status.st_mode & S_IFMT == S_IFDIR, depth < FileListing.deepest else { continue }
            add("\(directory)/\(name)", depth: depth + 1, to: &lines)
        }
    }

    /// A name, or its hash with what tells its kind.
    private func shown(_ name: String) -> String {
        guard isHashed, name != ".spoolship" else { return name }
        let bytes =
            salt.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } } + Array(name.utf8)
        let hash = SHA256.hexadecimal(bytes).prefix(12)
        let kinds = [".json", ".jsonl", ".ndjson", ".log", ".gz", ".zst", ".tmp", ".part"]
        return hash + (kinds.first { name.hasSuffix($0) } ?? "")
    }
}
