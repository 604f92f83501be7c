public import EventLoops
public import Model

/// The backlog of a spool that is not read: counted without reading it.
public struct SpoolBacklog: Sendable, Equatable {
    /// Files that hold, or may hold, events.
    public private(set) var files = 0
    /// Their bytes, without what a checkpoint covers.
    public private(set) var bytes: ByteCount = 0
    /// When anything about the oldest of them was last changed, as the kernel says; nil without files.
    public private(set) var oldest: Timestamp?

    /// So many names are looked at: with more it only matters that there are many.
    static let mostNames = 20_000
    private static let deepest = 8

    /// Counts what waits.
    ///
    /// - Parameters:
    ///   - directory: the spool.
    ///   - read: how many bytes of append files were read before, by their paths below the spool.
    public static func measure(in directory: String, read: [String: Int64] = [:]) -> SpoolBacklog {
        var backlog = SpoolBacklog()
        var names = 0
        if let root = try? FileSystem.openRoot(directory) { backlog.add(root, below: "", depth: 0, read, &names) }
        return backlog
    }

    private mutating func add(
        _ directory: borrowing Descriptor, below: String, depth: Int, _ read: [String: Int64], _ names: inout Int
    ) {
        // What is gone or out of reach does not wait.
        guard let stream = try? DirectoryStream(directory) else { return }
        while names < SpoolBacklog.mostNames, let name = try? stream.next()?.name {
            names += 1
            guard !name.isHidden, let status = try? FileSystem.status(stream.descriptor, name) else { continue }
            let path = below.isEmpty ? name.text : "\(below)/\(name.text)"
            if status.isDirectory {
                guard depth < SpoolBacklog.deepest,
                    let inner = try? FileSystem.openDirectory(stream.descriptor, name)
                else { continue }
                add(inner, below: path, depth: depth + 1, read, &names)
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
