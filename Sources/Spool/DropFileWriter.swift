internal import CLinux
internal import EventLoops
internal import Glibc

/// The writer's side of the spool protocol: puts a file into a spool directory, all of it or nothing, durably.
public enum DropFileWriter {
    /// Names drawn before giving up.
    private static let attempts = 8

    /// Writes a drop file: under a hidden name, synced, renamed without replacing anything, the directory synced.
    ///
    /// When it returns, the file survives a power cut (in a drop box, which cannot be opened to be synced, the file system
    /// is synced as a whole). When it throws, no reader has seen anything.
    /// - Parameters:
    ///   - bytes: a JSON object, or an array of objects.
    ///   - directory: where to put it: an app's directory in the spool, or `incoming/`.
    ///   - label: what the name begins with; letters, digits, `-` and `_`, others become `_`.
    ///   - random: makes the name one of its kind.
    /// - Returns: the file's name in the directory.
    /// - Throws: `cannotWrite`, with what the system said.
    public static func put(
        _ bytes: UnsafeRawBufferPointer, in directory: String, label: String = "event",
        using random: inout some RandomNumberGenerator
    ) throws(SpoolError) -> String {
        do throws(SystemError) {
            let folder = try Folder(directory)
            let stem = String(label.utf8.prefix(64).map { isPlain($0) ? Character(UnicodeScalar($0)) : "_" })
            for _ in 0..<attempts {
                let digits = String(random.next() as UInt64, radix: 16)
                let name = FileName("\(stem)-\(digits).json")
                let hidden = FileName(".\(stem)-\(digits).json.tmp")
                do throws(SystemError) {
                    let file = try write(bytes, to: hidden, in: folder.descriptor.raw, thenRenamedTo: name)
                    try folder.sync(with: file)
                    return name.text
                } catch {
                    guard error.number == EEXIST else { throw error }
                }
            }
            throw SystemError("renameat2", number: EEXIST)
        } catch {
            throw SpoolError(
                .cannotWrite, "cannot write into \(directory): may this user write there, and is there room?",
                cause: error)
        }
    }

    /// The directory; a drop box, where one may put files and not list them, can be opened as a place only.
    private struct Folder: ~Copyable {
        let descriptor: Descriptor
        private let isReadable: Bool

        init(_ path: String) throws(SystemError) {
            let raw = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
            isReadable = raw >= 0 || errno != EACCES
            let place = isReadable ? raw : path.withCString { open($0, CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC) }
            descriptor = try Descriptor(checking: place, "open")
        }

        /// Makes the name of a file in it durable.
        func sync(with file: borrowing Descriptor) throws(SystemError) {
            let result = isReadable ? fsync(descriptor.raw) : clinux_sync_file_system(file.raw)
            guard result == 0 else { throw SystemError("fsync") }
        }
    }

    private static func write(
        _ bytes: UnsafeRawBufferPointer, to hidden: FileName, in directory: Int32, thenRenamedTo name: FileName
    ) throws(SystemError) -> Descriptor {
        // Readable by the group, as the protocol asks, whatever the umask adds.
        let raw = hidden.withCString { openat(directory, $0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640) }
        let file = try Descriptor(checking: raw, "openat")
        do throws(SystemError) {
            guard fchmod(file.raw, 0o640) == 0 else { throw SystemError("fchmod") }
            try WholeFile.write(Array(bytes), to: file.raw)
            guard fsync(file.raw) == 0 else { throw SystemError("fsync") }
            try FileSystem.rename(directory, hidden, to: name)
            return file
        } catch {
            // What cannot be removed here stays hidden, and is never read.
            try? FileSystem.unlink(directory, hidden)
            throw error
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8.contains(byte)
    }
}
