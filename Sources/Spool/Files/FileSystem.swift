internal import CLinux
internal import EventLoops
internal import Glibc

/// The system calls of the spool: each beneath an open directory; none follows a link, or blocks on a lease or a FIFO.
enum FileSystem {
    /// Opens a file or directory for its metadata only: safe whatever it is, FIFO and device included.
    static func openPath(_ directory: Int32, _ name: FileName) throws(SystemError) -> Descriptor {
        try open(directory, name, CLINUX_O_PATH | O_NOFOLLOW)
    }

    /// Opens a directory beneath another, to work in it.
    static func openDirectory(_ directory: Int32, _ path: FileName) throws(SystemError) -> Descriptor {
        try open(directory, path, CLINUX_O_PATH | O_DIRECTORY | O_NOFOLLOW)
    }

    /// By an empty path the directory once more.
    private static func open(
        _ directory: Int32, _ path: FileName, _ flags: Int32
    ) throws(SystemError) -> Descriptor {
        let raw = (path.bytes.isEmpty ? FileName(".") : path).withCString {
            clinux_open_beneath(directory, $0, flags | O_CLOEXEC)
        }
        return try Descriptor(checking: raw, "openat2")
    }

    /// Opens for reading what was looked at: the very same file, whatever its name means by now.
    ///
    /// It must be a regular file or a directory. EWOULDBLOCK: somebody's file lease is in the way; try later.
    static func read(_ looked: borrowing Descriptor, directory: Bool = false) throws(SystemError) -> Descriptor {
        let flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (directory ? O_DIRECTORY : 0)
        return try Descriptor(checking: clinux_reopen(looked.raw, flags), "open")
    }

    /// The name by which the kernel finds a descriptor of ours.
    static func selfPath(_ descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

    /// Opens the spool itself; links on the way to it are the administrator's.
    static func openRoot(_ path: String) throws(SystemError) -> Descriptor {
        try Descriptor(checking: path.withCString { Glibc.open($0, CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC) }, "open")
    }

    static func status(_ descriptor: borrowing Descriptor) throws(SystemError) -> FileStatus {
        try FileStatus(of: descriptor.raw)
    }

    /// Of a name beneath a directory. EXDEV: another file system is mounted there, which is not asked: it may never answer.
    static func status(_ directory: Int32, _ name: FileName) throws(SystemError) -> FileStatus {
        try status(try openPath(directory, name))
    }

    /// Renames within a directory without replacing.
    static func rename(_ directory: Int32, _ old: FileName, to new: FileName) throws(SystemError) {
        try rename(directory, old, to: directory, new)
    }

    static func rename(_ from: Int32, _ old: FileName, to directory: Int32, _ new: FileName) throws(SystemError) {
        let result = old.withCString { old in
            new.withCString { new in clinux_rename_new(from, old, directory, new) }
        }
        guard result != 0 else { return }
        let error = SystemError("renameat2")
        // FUSE and NFS have no rename that does not replace.
        guard error.number == EINVAL else { throw error }
        if new.claimed != nil || from != directory {
            // Into the archive, or to a name that nobody else gives: it is enough to look.
            try renameUnseen(from, old, to: directory, new)
        } else {
            // Of a name of ours no other file is unlinked.
            let link = old.withCString { old in new.withCString { linkat(from, old, directory, $0, 0) } }
            guard link == 0 else { throw SystemError("linkat") }
            try unlink(from, old)
        }
    }

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
        // A descriptor that only looks cannot be synced.
        let raw = clinux_open_beneath(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let readable = try Descriptor(checking: raw, "openat2")
        guard fsync(readable.raw) == 0 else { throw SystemError("fsync") }
    }

    /// Where the hole ends that begins at `offset`; `offset` if there is none, or nobody can tell.
    ///
    /// A file may be as long as its owner likes and hold nothing: reading that takes weeks, stepping over it nothing.
    static func endOfHole(_ descriptor: Int32, at offset: Int64) throws(SystemError) -> Int64 {
        let data = clinux_next_data(descriptor, offset)
        if data >= 0 { return max(data, offset) }
        guard errno == ENXIO else { return offset }
        return max(offset, try FileStatus(of: descriptor).size)
    }

    /// So many bytes of a regular file at `offset`; fewer only at its end.
    static func bytes(of descriptor: Int32, at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
            do throws(SystemError) {
                read = try FileSystem.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer), at: offset)
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
        // Beyond the end of all files the kernel refuses to read, instead of reading less.
        let room = Int(min(Int64(buffer.count), .max - offset))
        while true {
            let count = pread(descriptor, buffer.baseAddress, room, Int(offset))
            if count >= 0 { return count }
            guard errno == EINTR else { throw SystemError("pread") }
        }
    }
}
