internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// The directory to which files are moved once they were read (`after_read = "archive"`):
/// `DIRECTORY/2026-11-20/APP/NAME`, bounded in age and in bytes. Used on the reader's loop only.
final class Archive {
    /// Number of names tried for a file whose name is in use.
    private static let attempts = 8

    /// The open folder of an app for the current day.
    private final class Folder {
        let descriptor: Descriptor
        /// Whether all files that were moved in are durable.
        var isSynced = false
        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    private let root: Descriptor
    /// Identity of the archive directory, which must not be read as a part of the spool: its files would be
    /// sent again.
    let identity: (device: UInt64, inode: UInt64)
    private let retention: Duration?
    private let mostBytes: ByteCount?
    private let log: Log
    /// The current day in UTC; empty before the first file.
    private var day = ""
    /// The folders of the current day, by app.
    private var folders: [String: Folder] = [:]
    /// Size of the archive; nil while it was not counted.
    private var bytes: ByteCount?

    /// Opens the archive and makes it if it is not there.
    ///
    /// - Parameters:
    ///   - path: relative to the spool, or absolute.
    ///   - retention: age at which the folder of a day is removed; nil: never.
    ///   - mostBytes: size beyond which the oldest files are removed; nil: no bound.
    init(
        _ path: String, retention: Duration?, mostBytes: Int64?, spool: borrowing Descriptor, log: Log
    ) throws(SpoolError) {
        self.retention = retention
        self.mostBytes = mostBytes.map { ByteCount($0) }
        self.log = log
        do throws(SystemError) {
            // Both directories may exist already; `open` reports any other problem. The parent may be
            // `.spoolship`, which writers must be able to search, hence 0755.
            if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex {
                _ = String(path[..<slash]).withCString { mkdirat(spool.raw, $0, 0o755) }
            }
            root = try Archive.open(FileName(path), in: spool.raw, makes: true)
            let status = try FileSystem.status(root)
            guard try FileSystem.status(spool).device == status.device else {
                throw SystemError("openat", number: EXDEV)
            }
            identity = (status.device, status.inode)
        } catch {
            throw SpoolError(
                .noArchive, "cannot archive to \(path): it must be a directory on the spool's file system",
                cause: error)
        }
    }

    /// Moves a file into the archive. Until `sync` a power cut may undo this.
    ///
    /// - Parameters:
    ///   - name: the file's name in `directory`; a claim gets its original name back.
    ///   - now: determines the folder and which folders are too old.
    ///   - isTrusted: whether `now` can be trusted; if not, no folder is removed for its age.
    func add(
        _ name: FileName, from directory: Int32, of app: String, at now: Timestamp, isTrusted: () -> Bool,
        using random: inout any RandomNumberGenerator
    ) throws(SystemError) {
        if day != now.day {
            beginDay(now, expires: isTrusted())
        }
        var folder = try folder(of: app)
        let original = name.claimed ?? name
        for attempt in 0..<Archive.attempts {
            let target =
                attempt == 0
                ? original : FileName(Array("\(random.next() as UInt64)-".utf8) + original.bytes.suffix(200))
            do throws(SystemError) {
                try FileSystem.rename(directory, name, to: folder.descriptor.raw, target)
            } catch {
                if error.number == EEXIST { continue }
                // ENOENT has two causes: the file is gone, or somebody has removed the open folder, whose
                // link count is 0 then.
                guard error.number == ENOENT, try FileStatus(of: folder.descriptor.raw).links == 0 else {
                    throw error
                }
                folders.removeAll()
                folder = try self.folder(of: app)
                try FileSystem.rename(directory, name, to: folder.descriptor.raw, target)
            }
            folder.isSynced = false
            count(target, in: folder.descriptor.raw)
            return
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    /// Makes the files that were moved in durable.
    func sync() throws(SystemError) {
        for folder in folders.values where !folder.isSynced {
            guard fsync(folder.descriptor.raw) == 0 else { throw SystemError("fsync") }
            folder.isSynced = true
        }
    }

    /// Closes the folders of the last day, and removes folders that are too old.
    private func beginDay(_ now: Timestamp, expires: Bool) {
        // `sync` reaches only today's folders, so sync yesterday's before they are closed. The spool's
        // directory is synced after this: otherwise a power cut could leave a file in neither place.
        for folder in folders.values where !folder.isSynced { _ = fsync(folder.descriptor.raw) }
        folders.removeAll()
        day = now.day
        guard let retention, expires else { return }
        let oldest = (now - retention).day
        do throws(SystemError) {
            for old in try days() where old.text < oldest {
                try remove(day: old)
                bytes = nil
                log.info("archive folder removed", ["day": old.text, "reason": "archive_max_age"])
            }
        } catch {
            log.warning("cannot remove old archive folder", ["before": oldest, "reason": error.description])
        }
    }

    /// The folder of an app for the current day; created if it does not exist.
    private func folder(of app: String) throws(SystemError) -> Folder {
        if let known = folders[app] { return known }
        let today = try Archive.open(FileName(day), in: root.raw, makes: true)
        let folder = Folder(try Archive.open(FileName(app), in: today.raw, makes: true))
        // The folders' own names must be as durable as the files in them.
        guard fsync(today.raw) == 0, fsync(root.raw) == 0 else { throw SystemError("fsync") }
        folders[app] = folder
        return folder
    }

    /// Opens a folder in the archive; creates it first if `makes`.
    private static func open(_ name: FileName, in parent: Int32, makes: Bool = false) throws(SystemError)
        -> Descriptor
    {
        // It usually exists already; `openat` reports any other problem.
        if makes {
            _ = name.withCString { mkdirat(parent, $0, 0o750) }
        }
        let raw = name.withCString { openat(parent, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
        return try Descriptor(checking: raw, "openat")
    }

    /// Counts a file that was moved in, and removes the oldest files beyond the bound. Errors are only
    /// logged, because the file is archived already.
    private func count(_ name: FileName, in folder: Int32) {
        guard let mostBytes else { return }
        do throws(SystemError) {
            let size = ByteCount(try FileSystem.status(folder, name).size)
            let total = if let bytes { bytes + size } else { try countAll() }
            bytes = total
            guard total > mostBytes else { return }
            // Remove a tenth more than needed, so that this is not repeated for every file.
            bytes = try removeOldest(total, downTo: ByteCount(mostBytes.value / 10 * 9))
        } catch {
            bytes = nil
            log.warning("cannot remove old archived files", ["reason": error.description])
        }
    }

    /// Size of the whole archive, by listing it.
    private func countAll() throws(SystemError) -> ByteCount {
        var sum: ByteCount = 0
        // bounded: sizes are ByteCounts.
        for day in try days() { for file in try files(of: day) { sum += file.size } }
        return sum
    }

    /// Removes the oldest files, day by day, until the archive has at most the wanted size. Returns the new
    /// size.
    private func removeOldest(_ total: ByteCount, downTo wanted: ByteCount) throws(SystemError) -> ByteCount {
        var left = total
        for day in try days() {
            guard left > wanted else { break }
            let dayFolder = try Archive.open(day, in: root.raw)
            let files = try files(of: day).sorted { $0.changed < $1.changed }
            var removed = 0
            for file in files where left > wanted {
                let folder = try Archive.open(file.app, in: dayFolder.raw)
                try FileSystem.unlink(folder.raw, file.name)
                // bounded: sizes are ByteCounts.
                left -= file.size
                removed += 1
            }
            if removed == files.count, day.text != self.day {
                try remove(day: day)
            }
            log.info(
                "archived files removed", ["day": day.text, "files": removed, "reason": "archive_max_size"])
        }
        return left
    }

    /// A file in the archive.
    private struct Archived {
        var app: FileName
        var name: FileName
        var size: ByteCount
        var changed: Timestamp
    }

    private func files(of day: FileName) throws(SystemError) -> [Archived] {
        let folder = try Archive.open(day, in: root.raw)
        var found: [Archived] = []
        for app in try names(in: folder.raw) {
            let files = try Archive.open(app, in: folder.raw)
            for name in try names(in: files.raw) {
                let status = try FileSystem.status(files.raw, name)
                found.append(
                    Archived(app: app, name: name, size: ByteCount(status.size), changed: status.changed))
            }
        }
        return found
    }

    /// Removes the folder of a day with all files in it.
    private func remove(day: FileName) throws(SystemError) {
        let folder = try Archive.open(day, in: root.raw)
        for app in try names(in: folder.raw) {
            let files = try Archive.open(app, in: folder.raw)
            for name in try names(in: files.raw) { try FileSystem.unlink(files.raw, name) }
            guard app.withCString({ unlinkat(folder.raw, $0, AT_REMOVEDIR) }) == 0 else {
                throw SystemError("unlinkat")
            }
        }
        guard day.withCString({ unlinkat(root.raw, $0, AT_REMOVEDIR) }) == 0 else {
            throw SystemError("unlinkat")
        }
    }

    /// The folders of days, oldest first. Other names in the directory do not belong to the agent and are
    /// left alone.
    private func days() throws(SystemError) -> [FileName] {
        try names(in: root.raw).filter { Archive.isDay($0) }.sorted()
    }

    private func names(in directory: Int32) throws(SystemError) -> [FileName] {
        let looked = try FileSystem.openDirectory(directory, FileName("."))
        let stream = try DirectoryStream(looked)
        var names: [FileName] = []
        while let entry = try stream.next() { names.append(entry.name) }
        return names
    }

    /// Whether a name has the form of a day, `2026-11-20`.
    static func isDay(_ name: FileName) -> Bool {
        let shape = name.bytes.map { "0123456789".utf8.contains($0) ? UInt8(ascii: "0") : $0 }
        return shape.elementsEqual("0000-00-00".utf8)
    }
}

extension Timestamp {
    /// The day in UTC, `2026-11-20`.
    fileprivate var day: String { String(description.prefix(10)) }
}
