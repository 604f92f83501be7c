internal import Glibc

/// Files that are read and replaced as a whole: a reader sees either the old or the new content, never
/// a mixture.
public enum WholeFile {
    /// Replaces a file or creates it: writes `PATH.new`, then renames it.
    ///
    /// - Parameters:
    ///   - mode: permissions of the new file, reduced by the umask.
    ///   - isForAll: sets the permissions exactly, whatever the umask.
    ///   - isDurable: whether the content is on disk when this returns; costs two syncs.
    /// - Throws: `SystemError`; the old file stays.
    public static func replace(
        _ path: String, with bytes: [UInt8], mode: UInt32, isForAll: Bool = false, isDurable: Bool = true
    ) throws(SystemError) {
        let temporary = path + ".new"
        unlink(temporary)
        do throws(SystemError) {
            let file = try Descriptor(
                checking: open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), "open")
            if isForAll, fchmod(file.raw, mode) != 0 { throw SystemError("fchmod") }
            try write(bytes, to: file.raw)
            if isDurable, fsync(file.raw) != 0 { throw SystemError("fsync") }
            guard rename(temporary, path) == 0 else { throw SystemError("rename") }
        } catch {
            unlink(temporary)
            throw error
        }
        guard isDurable else { return }
        // The directory is synced too: without that, a power cut can undo the rename (fsync(2)).
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let directory = try Descriptor(checking: open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
        guard fsync(directory.raw) == 0 else { throw SystemError("fsync") }
    }

    /// Whether no file can be created in a directory because its file system is read-only. It tries to
    /// create one, because after an error ext4 reports itself as writable and refuses writes
    /// (`emergency_ro`). The file has no name (O_TMPFILE), so nothing is left behind.
    package static func isReadOnly(_ directory: String) -> Bool {
        // O_TMPFILE, a macro that Swift does not import.
        let file = open(directory, 0o20_000_000 | O_DIRECTORY | O_WRONLY | O_CLOEXEC, 0o600)
        guard file >= 0 else { return errno == EROFS }
        close(file)
        return false
    }

    /// Creates a file that only its owner may read (0600), durably. Fails if the name exists.
    package static func create(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let file = try Descriptor(checking: open(path, flags, 0o600), "open")
        do throws(SystemError) {
            try write(bytes, to: file.raw)
            guard fsync(file.raw) == 0 else { throw SystemError("fsync") }
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Writes all bytes, however many calls that takes.
    package static func write(_ bytes: [UInt8], to raw: Int32) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(raw, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write") }
            rest = rest.dropFirst(count)
        }
    }

    /// The rest of an open file; nil if it has more than `limit` bytes.
    public static func bytes(of raw: Int32, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        // Not an array, which would be filled with zeros first: most files are small.
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
        defer { block.deallocate() }
        while bytes.count <= limit {
            let count = read(raw, block.baseAddress, block.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += UnsafeRawBufferPointer(rebasing: block[..<count])
            } else if errno != EINTR {
                throw SystemError("read")
            }
        }
        return nil
    }

    /// The content of a file; nil if it has more than `limit` bytes. O_NONBLOCK keeps it from waiting
    /// for the writer of a FIFO.
    public static func bytes(of path: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        let file = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open")
        return try bytes(of: file.raw, atMost: limit)
    }

    /// The names in a directory, in no order, without `.` and `..`; at most `most` of them, because a
    /// user could create millions.
    public static func names(in directory: String, atMost most: Int = .max) throws(SystemError) -> [String] {
        guard let stream = opendir(directory) else { throw SystemError("opendir") }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < most, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." {
                names.append(name)
            }
        }
        return names
    }
}
