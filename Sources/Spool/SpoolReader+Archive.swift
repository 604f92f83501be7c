internal import EventLoops
internal import Glibc
internal import Logs

/// Where files go when they have been read (`after_read = "archive"`): `DIRECTORY/2026-11-20/APP/NAME`.
struct Archive: ~Copyable {
    let directory: Descriptor
    let retention: Duration?
    /// The last day on which old folders were removed.
    var cleaned = ""
}

extension SpoolReader {
    /// Names tried for a file whose name is taken in the archive.
    private static let attempts = 8

    /// Opens the archive and makes it if it is not there.
    static func openArchive(
        _ path: String, retention: Duration?, spool: borrowing Descriptor
    ) throws(SpoolError) -> Descriptor {
        do throws(SystemError) {
            _ = path.withCString { mkdirat(spool.raw, $0, 0o750) }
            let raw = path.withCString { openat(spool.raw, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
            let descriptor = try Descriptor(checking: raw, "openat")
            let (own, other) = (try FileSystem.status(spool), try FileSystem.status(descriptor))
            guard own.device == other.device else { throw SystemError("openat", number: EXDEV) }
            return descriptor
        } catch {
            throw SpoolError(
                .noArchive, "cannot archive to \(path): it must be a directory on the spool's file system",
                cause: error)
        }
    }

    /// Removes a file that has been read, or moves it into the archive.
    func putAway(_ name: FileName, in directory: SpoolDirectory, _ raw: Int32) throws(SystemError) {
        guard let root = archive?.directory.raw else { return try FileSystem.unlink(raw, name) }
        let day = time.wallTime.day
        if archive?.cleaned != day { clean(root, before: day) }
        let dayFolder = try folder(FileName(day), in: root)
        let appFolder = try folder(FileName(directory.app), in: dayFolder.raw)
        let original = name.claimed ?? name
        for attempt in 0..<SpoolReader.attempts {
            let target =
                attempt == 0
                ? original : FileName(Array("\(random.next() as UInt64)-".utf8) + original.bytes.suffix(200))
            do throws(SystemError) {
                try FileSystem.rename(raw, name, to: appFolder.raw, target)
                guard fsync(appFolder.raw) == 0 else { throw SystemError("fsync") }
                return
            } catch {
                guard error.number == EEXIST else { throw error }
            }
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    private func folder(_ name: FileName, in parent: Int32) throws(SystemError) -> Descriptor {
        // It is there on every day but the first; opening tells what else is wrong.
        _ = name.withCString { mkdirat(parent, $0, 0o750) }
        let raw = name.withCString { openat(parent, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
        return try Descriptor(checking: raw, "openat")
    }

    /// Removes the folders of days that are older than the retention limit.
    private func clean(_ root: Int32, before day: String) {
        archive?.cleaned = day
        guard let retention = archive?.retention else { return }
        let oldest = (time.wallTime - retention).day
        do throws(SystemError) {
            for old in try names(in: root) where SpoolReader.isDay(old) && old.text < oldest {
                let folder = try self.folder(old, in: root)
                for app in try names(in: folder.raw) {
                    let files = try self.folder(app, in: folder.raw)
                    for name in try names(in: files.raw) { try FileSystem.unlink(files.raw, name) }
                    _ = app.withCString { unlinkat(folder.raw, $0, AT_REMOVEDIR) }
                }
                _ = old.withCString { unlinkat(root, $0, AT_REMOVEDIR) }
                log.info("archive folder removed", ["day": old.text])
            }
        } catch {
            note(error, "cannot remove old archive folder", FileName(oldest))
        }
    }

    private func names(in directory: Int32) throws(SystemError) -> [FileName] {
        let looked = try FileSystem.openDirectory(directory, FileName("."))
        let stream = try DirectoryStream(looked)
        var names: [FileName] = []
        while let entry = stream.next() { names.append(entry.name) }
        return names
    }

    private static func isDay(_ name: FileName) -> Bool {
        name.bytes.count == 10
            && name.bytes.enumerated().allSatisfy { index, byte in
                index == 4 || index == 7
                    ? byte == UInt8(ascii: "-") : (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            }
    }
}

extension Timestamp {
    /// The day in UTC, `2026-11-20`.
    var day: String {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: Int32, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        return "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
    }
}
