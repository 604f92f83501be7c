internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Where files go when they have been read (`after_read = "archive"`): `DIRECTORY/2026-11-20/APP/NAME`, bounded in age
/// and in bytes. Touched by its reader only.
final class Archive {
    /// Names tried for a file whose name is taken.
    private static let attempts = 8

    private final class Folder {
        let descriptor: Descriptor
        var isSynced = false
        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    private let root: Descriptor
    /// The archive itself, which is never read as a part of the spool.
    let identity: (device: UInt64, inode: UInt64)
    private let retention: Duration?
    private let mostBytes: ByteCount?
    private let log: Log
    private var day = ""
    /// The folders of the day, by app.
    private var folders: [String: Folder] = [:]
    /// What is in the archive; nil while that was not counted.
    private var bytes: ByteCount?

    /// Opens the archive and makes it if it is not there.
    ///
    /// - Parameters:
    ///   - path: relative to the spool, or absolute.
    ///   - retention: folders of days before that are removed.
    ///   - mostBytes: beyond it the oldest files go.
    init(
        _ path: String, retention: Duration?, mostBytes: Int64?, spool: borrowing Descriptor, log: Log
    ) throws(SpoolError) {
        self.retention = retention
        self.mostBytes = mostBytes.map { ByteCount($0) }
        self.log = log
        do throws(SystemError) {
            // Both may be there; opening tells what else is wrong. Writers must see what else is in `.spoolship`.
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

    /// Moves a file in. It may come back after a power cut until `sync`.
    ///
    /// - Parameters:
    ///   - name: its name in `directory`; a claim gets its original name back.
    ///   - now: decides the folder, and what is too old; while it is not trusted, nothing is.
    func take(
        _ name: FileName, from directory: Int32, of app: String, at now: Timestamp, isTrusted: () -> Bool,
        using random: inout any RandomNumberGenerator
    ) throws(SystemError) {
        if day != now.day { beginDay(now, expires: isTrusted()) }
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
                // Either the file is gone, or somebody has removed the folder that is held open.
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

    /// Makes what was moved in durable.
    func sync() throws(SystemError) {
        for folder in folders.values where !folder.isSynced {
            guard fsync(folder.descriptor.raw) == 0 else { throw SystemError("fsync") }
            folder.isSynced = true
        }
    }

    private func beginDay(_ now: Timestamp, expires: Bool) {
        // What was moved yesterday and is not synced goes with the spool's directory, which is synced after this.
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
            log.warning("cannot remove old archive folder", ["before": oldest, "error": error.description])
        }
    }

    private func folder(of app: String) throws(SystemError) -> Folder {
        if let known = folders[app] { return known }
        let today = try Archive.open(FileName(day), in: root.raw, makes: true)
        let folder = Folder(try Archive.open(FileName(app), in: today.raw, makes: true))
        // The names of the folders themselves: as durable as what is moved in.
        guard fsync(today.raw) == 0, fsync(root.raw) == 0 else { throw SystemError("fsync") }
        folders[app] = folder
        return folder
    }

    private static func open(_ name: FileName, in parent: Int32, makes: Bool = false) throws(SystemError) -> Descriptor
    {
        // It is there on every day but the first; opening tells what else is wrong.
        if makes { _ = name.withCString { mkdirat(parent, $0, 0o750) } }
        let raw = name.withCString { openat(parent, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
        return try Descriptor(checking: raw, "openat")
    }

    /// Holds the bound, as far as the archive can be read: the file is in it by now, whatever else is there.
    private func count(_ name: FileName, in folder: Int32) {
        guard let mostBytes else { return }
        do throws(SystemError) {
            let size = ByteCount(try FileSystem.status(folder, name).size)
            let total = if let bytes { bytes + size } else { try countAll() }
            bytes = total
            guard total > mostBytes else { return }
            // A tenth more than needed, so that it is not done for every file.
            bytes = try removeOldest(total, downTo: ByteCount(mostBytes.value / 10 * 9))
        } catch {
            bytes = nil
            log.warning("cannot remove old archived files", ["error": error.description])
        }
    }

    private func countAll() throws(SystemError) -> ByteCount {
        var sum: ByteCount = 0
        // bounded: sizes are ByteCounts.
        for day in try days() { for file in try files(of: day) { sum += file.size } }
        return sum
    }

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
            if removed == files.count, day.text != self.day { try remove(day: day) }
            log.info("archived files removed", ["day": day.text, "files": removed, "reason": "archive_max_size"])
        }
        return left
    }

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
                found.append(Archived(app: app, name: name, size: ByteCount(status.size), changed: status.changed))
            }
        }
        return found
    }

    private func remove(day: FileName) throws(SystemError) {
        let folder = try Archive.open(day, in: root.raw)
        for app in try names(in: folder.raw) {
            let files = try Archive.open(app, in: folder.raw)
            for name in try names(in: files.raw) { try FileSystem.unlink(files.raw, name) }
            guard app.withCString({ unlinkat(folder.raw, $0, AT_REMOVEDIR) }) == 0 else {
                throw SystemError("unlinkat")
            }
        }
        guard day.withCString({ unlinkat(root.raw, $0, AT_REMOVEDIR) }) == 0 else { throw SystemError("unlinkat") }
    }

    /// The folders of days, oldest first; what else is there is somebody else's.
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

    private static func isDay(_ name: FileName) -> Bool {
        let shape = name.bytes.map { "0123456789".utf8.contains($0) ? UInt8(ascii: "0") : $0 }
        return shape.elementsEqual("0000-00-00".utf8)
    }
}

extension Timestamp {
    /// The day in UTC, `2026-11-20`.
    fileprivate var day: String { String(description.prefix(10)) }
}
