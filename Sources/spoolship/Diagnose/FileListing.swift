internal import Digests
internal import EventLoops

/// The files of a directory and those below it: mode, owner, size, time and name, never what is in them.
struct FileListing {
    private static let most = 2_000
    private static let deepest = 8

    let root: String
    let isHashed: Bool
    /// Of this report alone: the same name has the same hash within it, and no list of likely names finds it.
    private let salt = (0..<32).map { _ in UInt8.random(in: .min ... .max) }

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
            guard let status = FileStatus(link: "\(directory)/\(name)") else { continue }
            let mode = String(status.mode, radix: 8)
            let indent = String(repeating: "  ", count: depth)
            lines.append("\(indent)\(mode) \(status.ownerName) \(status.size) \(status.modified) \(shown(name))")
            guard status.isDirectory, depth < FileListing.deepest else { continue }
            add("\(directory)/\(name)", depth: depth + 1, to: &lines)
        }
    }

    /// A name, or its hash with what tells its kind.
    private func shown(_ name: String) -> String {
        guard isHashed, name != ".spoolship" else { return name }
        let hash = SHA256.hexadecimal(salt + Array(name.utf8)).prefix(12)
        let kinds = [".json", ".jsonl", ".ndjson", ".log", ".gz", ".zst", ".tmp", ".part"]
        return hash + (kinds.first { name.hasSuffix($0) } ?? "")
    }
}
