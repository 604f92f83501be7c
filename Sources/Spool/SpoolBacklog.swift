public import EventLoops
internal import Glibc
public import Model

/// What waits in a spool that nobody reads: counted by looking, not by reading.
public struct SpoolBacklog: Sendable, Equatable {
    /// Files that hold, or may hold, events.
    public private(set) var files = 0
    /// Their bytes, without what a checkpoint covers.
    public private(set) var bytes: ByteCount = 0
    /// When anything about the oldest of them was last changed, as the kernel says; nil without files.
    public private(set) var oldest: Timestamp?
    /// Whether the spool holds more than was counted.
    public private(set) var isCut = false

    /// So many names are looked at: with more it only matters that there are many.
    static let mostNames = 20_000
    private static let deepest = 8

    /// Counts what waits.
    ///
    /// - Parameters:
    ///   - directory: the spool.
    ///   - read: how many bytes of append files were read before, by their paths below the spool.
    public static func look(in directory: String, read: [String: Int64] = [:]) -> SpoolBacklog {
        var backlog = SpoolBacklog()
        var names = 0
        backlog.add(directory, below: "", depth: 0, read, &names)
        return backlog
    }

    private mutating func add(
        _ directory: String, below: String, depth: Int, _ read: [String: Int64], _ names: inout Int
    ) {
        let raw = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard raw >= 0 else { return }
        guard let stream = fdopendir(raw) else {
            close(raw)
            return
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            names += 1
            guard names <= SpoolBacklog.mostNames else {
                isCut = true
                return
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { FileName($0.prefix { $0 != 0 }) }
            guard !name.isHidden else { continue }
            // What is gone or out of reach does not wait.
            guard let status = try? FileSystem.status(raw, name) else { continue }
            let path = below.isEmpty ? name.text : "\(below)/\(name.text)"
            if status.isDirectory {
                guard depth < SpoolBacklog.deepest else { continue }
                add("\(directory)/\(name.text)", below: path, depth: depth + 1, read, &names)
            } else if status.isRegular, name.kind != .other {
                let left = ByteCount(status.size) - ByteCount(read[path] ?? 0)
                guard left > 0 else { continue }
                files += 1
                bytes += left
                oldest = min(oldest ?? status.changed, status.changed)
            }
        }
    }
}
