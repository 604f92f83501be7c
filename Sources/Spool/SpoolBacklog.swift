public import EventLoops
public import Model

/// The backlog of a spool that no agent reads at the moment, counted without reading its files.
public struct SpoolBacklog: Sendable, Equatable {
    /// Files with bytes that were not read, and that may hold events.
    public private(set) var files = 0
    /// Bytes of these files that no checkpoint covers.
    public private(set) var bytes: ByteCount = 0
    /// Earliest status change (st_ctim) of these files; nil without files.
    public private(set) var oldest: Timestamp?

    package init() {}

    /// Files that the agent has claimed and not removed or archived yet.
    public private(set) var claims = 0
    /// Whether all names were examined.
    public private(set) var isWhole = true

    /// Most names that are examined, so that counting ends in a spool of millions of files.
    static let mostNames = 20_000

    /// Counts the backlog.
    ///
    /// - Parameters:
    ///   - directory: the spool.
    ///   - read: bytes of append files that were read before, by path relative to the spool.
    public static func measure(in directory: String, read: [String: Int64] = [:]) -> SpoolBacklog {
        var backlog = SpoolBacklog()
        var names = 0
        if let root = try? FileSystem.openRoot(directory) {
            backlog.add(root, below: "", depth: 0, read, &names)
        }
        return backlog
    }

    /// Counts the files of a directory and of those below it.
    private mutating func add(
        _ directory: borrowing Descriptor, below: String, depth: Int, _ read: [String: Int64],
        _ names: inout Int
    ) {
        // A directory that is gone or cannot be read is not counted.
        guard let stream = try? DirectoryStream(directory) else { return }
        while names < SpoolBacklog.mostNames, let name = try? stream.next()?.name {
            names += 1
            isWhole = names < SpoolBacklog.mostNames
            if name.claimed != nil {
                claims += 1
            }
            guard !name.isHidden, let status = try? FileSystem.status(stream.descriptor, name) else {
                continue
            }
            let path = below.isEmpty ? name.text : "\(below)/\(name.text)"
            if status.isDirectory {
                guard depth < Directories.deepest,
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
