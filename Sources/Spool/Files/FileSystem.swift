internal import CLinux
internal import EventLoops
internal import Glibc

/// The system calls of the spool. Each works beneath an open directory (openat2(2) with RESOLVE_BENEATH);
/// none follows a link, or blocks on a lease or a FIFO.
enum FileSystem {
    /// Whether the process may open another file now. If so, EMFILE was about a limit of its user.
    static var hasDescriptorLeft: Bool {
        let raw = epoll_create1(Int32(EPOLL_CLOEXEC))
        if raw >= 0 {
            close(raw)
        }
        return raw >= 0
    }

    /// Opens a file or directory for its metadata only (O_PATH). This is safe for any kind of file, including
    /// FIFOs and devices, on which a normal `open` could block or have effects.
    static func openPath(_ directory: Int32, _ name: FileName) throws(SystemError) -> Descriptor {
        try open(directory, name, CLINUX_O_PATH | O_NOFOLLOW)
    }

    /// Opens a directory beneath another one, for further calls beneath it.
    static func openDirectory(_ directory: Int32, _ path: FileName) throws(SystemError) -> Descriptor {
        try open(directory, path, CLINUX_O_PATH | O_DIRECTORY | O_NOFOLLOW)
    }

    /// Opens a path beneath a directory; the empty path opens the directory again.
    private static func open(
        _ directory: Int32, _ path: FileName, _ flags: Int32
    ) throws(SystemError) -> Descriptor {
        let raw = (path.bytes.isEmpty ? FileName(".") : path).withCString {
            clinux_open_beneath(directory, $0, flags | O_CLOEXEC)
        }
        return try Descriptor(checking: raw, "openat2")
    }

    /// Opens for reading the file that was examined with an O_PATH descriptor: the same inode, even if its
    /// name refers to another file by now.
    ///
    /// It must be a regular file or a directory.
    /// - Throws: EWOULDBLOCK while another process holds a file lease; try again later.
    static func read(_ looked: borrowing Descriptor, directory: Bool = false) throws(SystemError)
        -> Descriptor
    {
        let flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (directory ? O_DIRECTORY : 0)
        return try Descriptor(checking: clinux_reopen(looked.raw, flags), "open")
    }

    /// The path by which a descriptor of this process can be opened or watched.
    static func selfPath(_ descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

    /// Opens the spool itself. Links in its path are followed, because the administrator configured it.
    static func openRoot(_ path: String) throws(SystemError) -> Descriptor {
        try Descriptor(
            checking: path.withCString { Glibc.open($0, CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC) }, "open")
    }

    static func status(_ descriptor: borrowing Descriptor) throws(SystemError) -> FileStatus {
        try FileStatus(of: descriptor.raw)
    }

    /// Birth time of a file; nil if its file system has none.
    static func birth(_ descriptor: borrowing Descriptor) -> Timestamp? {
        var nanoseconds: Int64 = 0
        guard clinux_birth_time(descriptor.raw, &nanoseconds) == 0 else { return nil }
        return Timestamp(nanoseconds: nanoseconds)
    }

    /// Status of a name beneath a directory.
    ///
    /// - Throws: EXDEV if another file system is mounted there. That one is not asked, because it may never
    ///   answer.
    static func status(_ directory: Int32, _ name: FileName) throws(SystemError) -> FileStatus {
        try status(try openPath(directory, name))
    }

    /// Renames within a directory without replacing.
    static func rename(_ directory: Int32, _ old: FileName, to new: FileName) throws(SystemError) {
        try rename(directory, old, to: directory, new)
    }

    /// Renames without replacing (RENAME_NOREPLACE); emulated on file systems without that flag.
    static func rename(_ from: Int32, _ old: FileName, to directory: Int32, _ new: FileName)
        throws(SystemError)
    {
        let result = old.withCString { old in
            new.withCString { new in clinux_rename_new(from, old, directory, new) }
        }
        guard result != 0 else { return }
        let error = SystemError("renameat2")
        // FUSE and NFS do not support RENAME_NOREPLACE.
        guard error.number == EINVAL else { throw error }
        if new.claimed != nil || from != directory {
            // The target is in the archive or a random claim. No other process creates such names, so it is
            // enough to check that the name is free.
            try renameUnseen(from, old, to: directory, new)
        } else {
            // A claim gets its original name back. `linkat` does not replace, and only the agent uses the
            // claim's name, so `unlink` removes no other file.
            let link = old.withCString { old in new.withCString { linkat(from, old, directory, $0, 0) } }
            guard link == 0 else { throw SystemError("linkat") }
            try unlink(from, old)
        }
    }

    /// Renames to a name that was free just before.
    private static func renameUnseen(
        _ from: Int32, _ old: FileName, to directory: Int32, _ new: FileName
    ) throws(SystemError) {
        do throws(SystemError) {
            _ = try status(directory, new)
        } catch {
            guard error.number == ENOENT else { throw error }
            let result = old.withCString { old in new.withCString { renameat(from, old, directory, $0) } }
            guard result == 0 else { throw SystemError("renameat2") }
            return
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    static func unlink(_ directory: Int32, _ name: FileName) throws(SystemError) {
        guard name.withCString({ unlinkat(directory, $0, 0) }) == 0 else { throw SystemError("unlinkat") }
    }

    /// Makes names in a directory durable.
    static func sync(_ directory: Int32) throws(SystemError) {
        // An O_PATH descriptor cannot be synced.
        let raw = clinux_open_beneath(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let readable = try Descriptor(checking: raw, "openat2")
        guard fsync(readable.raw) == 0 else { throw SystemError("fsync") }
    }

    /// The end of the hole that begins at `offset` (SEEK_DATA in lseek(2)); `offset` if no hole begins there,
    /// or if the file system cannot tell.
    ///
    /// A sparse file can have a length of exabytes: reading its zeros would take weeks.
    static func endOfHole(_ descriptor: Int32, at offset: Int64) throws(SystemError) -> Int64 {
        let data = clinux_next_data(descriptor, offset)
        if data >= 0 { return max(data, offset) }
        guard errno == ENXIO else { return offset }
        return max(offset, try FileStatus(of: descriptor).size)
    }

    /// `count` bytes of a regular file at `offset`; fewer only at its end.
    static func bytes(of descriptor: Int32, at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
            do throws(SystemError) {
                read = try FileSystem.read(
                    descriptor, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
                read = 0
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads up to `buffer.count` bytes of a regular file at `offset`; fewer only at its end.
    static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        // The kernel rejects a read beyond the largest offset instead of shortening it.
        let room = Int(min(Int64(buffer.count), .max - offset))
        while true {
            let count = pread(descriptor, buffer.baseAddress, room, Int(offset))
            if count >= 0 { return count }
            guard errno == EINTR else { throw SystemError("pread") }
        }
    }
}
