internal import CLinux
internal import EventLoops
internal import Glibc

/// The writer's side of the spool protocol: puts a file into a spool directory, all of it or nothing,
/// durably.
public enum DropFileWriter {
    /// Number of random names tried if they are taken.
    private static let attempts = 8

    /// Writes a drop file under a hidden name, syncs it, renames it without replacing another file, and syncs
    /// the directory. The order matters: a reader must never see an incomplete file under a visible name, not
    /// even after a power cut.
    ///
    /// When the function returns, the file survives a power cut, or an agent has taken it over. In a drop
    /// box, which cannot be opened for syncing, the whole file system is synced. When it throws, the file
    /// is gone again, so that the caller may write it once more; only an agent that keeps files where they
    /// are may have read it. If the disk does not let the file go either, the message names the file, and
    /// says that the agent may read it.
    ///
    /// - Parameters:
    ///   - bytes: a JSON object, or an array of objects.
    ///   - directory: an app's directory in the spool, or `incoming/`.
    ///   - label: beginning of the name, at most 64 bytes; bytes other than letters, digits, `-` and `_`
    ///     become `_`.
    ///   - random: makes the name unique.
    /// - Returns: the file's name in the directory.
    /// - Throws: `cannotWrite`, with what the system said.
    public static func put(
        _ bytes: UnsafeRawBufferPointer, in directory: String, label: String = "event",
        using random: inout some RandomNumberGenerator
    ) throws(SpoolError) -> String {
        var left: String?
        do throws(SystemError) {
            let folder = try Folder(directory)
            let stem = String(label.utf8.prefix(64).map { isPlain($0) ? Character(UnicodeScalar($0)) : "_" })
            for _ in 0..<attempts {
                let digits = String(random.next() as UInt64, radix: 16)
                let name = FileName("\(stem)-\(digits).json")
                let hidden = FileName(".\(stem)-\(digits).json.tmp")
                do throws(SystemError) {
                    let file = try write(bytes, to: hidden, in: folder.descriptor.raw, thenRenamedTo: name)
                    do throws(SystemError) {
                        try folder.sync(with: file)
                    } catch {
                        switch takeBack(name, as: hidden, in: folder.descriptor.raw) {
                        case .gone: break
                        case .claimed: return name.text
                        case .stays: left = name.text
                        }
                        throw error
                    }
                    return name.text
                } catch {
                    guard error.number == EEXIST else { throw error }
                }
            }
            throw SystemError("renameat2", number: EEXIST)
        } catch {
            guard let left else {
                throw SpoolError(
                    .cannotWrite,
                    "cannot write into \(directory): may this user write there, and is there room?",
                    cause: error)
            }
            throw SpoolError(
                .cannotWrite,
                "cannot make \(directory)/\(left) durable, and cannot remove it: the agent may still read it;"
                    + " look whether it is there before writing it again",
                cause: error)
        }
    }

    /// The open directory. A drop box that a user may write to but not list can only be opened
    /// with O_PATH.
    private struct Folder: ~Copyable {
        let descriptor: Descriptor
        private let isReadable: Bool

        init(_ path: String) throws(SystemError) {
            let raw = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            isReadable = raw >= 0 || errno != EACCES
            let opened =
                isReadable ? raw : path.withCString { open($0, CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC) }
            descriptor = try Descriptor(checking: opened, "open")
        }

        /// Makes the name of a file in the directory durable.
        func sync(with file: borrowing Descriptor) throws(SystemError) {
            // Some file systems cannot sync a directory by itself (fsync(2), EINVAL).
            if isReadable, fsync(descriptor.raw) == 0 { return }
            guard !isReadable || errno == EINVAL, clinux_sync_file_system(file.raw) == 0 else {
                throw SystemError("fsync")
            }
        }
    }

    /// Writes and syncs the file under its hidden name, then renames it. The content must be on the disk
    /// before the visible name is.
    private static func write(
        _ bytes: UnsafeRawBufferPointer, to hidden: FileName, in directory: Int32,
        thenRenamedTo name: FileName
    ) throws(SystemError) -> Descriptor {
        // The protocol asks for a file that the group can read; `fchmod` sets that regardless of the umask.
        let raw = hidden.withCString { openat(directory, $0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640) }
        let file = try Descriptor(checking: raw, "openat")
        do throws(SystemError) {
            guard fchmod(file.raw, 0o640) == 0 else { throw SystemError("fchmod") }
            try WholeFile.write(Array(bytes), to: file.raw)
            guard fsync(file.raw) == 0 else { throw SystemError("fsync") }
            try FileSystem.rename(directory, hidden, to: name)
            return file
        } catch {
            // A file that cannot be removed here stays hidden, so it is never read.
            try? FileSystem.unlink(directory, hidden)
            throw error
        }
    }

    /// What became of a file that was to be removed again.
    private enum TakenBack {
        /// No visible name leads to it.
        case gone
        /// An agent has claimed it, and makes its content durable in the queue.
        case claimed
        /// The file still has its visible name: the disk fails, or has become read-only.
        case stays
    }

    /// Removes a file whose name could not be made durable.
    private static func takeBack(_ name: FileName, as hidden: FileName, in directory: Int32) -> TakenBack {
        do throws(SystemError) {
            try FileSystem.rename(directory, name, to: hidden)
        } catch {
            return error.number == ENOENT ? .claimed : .stays
        }
        // If this fails, the file stays hidden, so it is never read.
        try? FileSystem.unlink(directory, hidden)
        return .gone
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8.contains(byte)
    }
}
