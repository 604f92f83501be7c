internal import CLinux
internal import EventLoops
internal import Glibc

/// The identity of a file among all files that exist or existed in the spool: its handle, which has the inode
/// number and its generation (name_to_handle_at(2)).
///
/// An inode number is reused as soon as its file is gone; the pair with the generation is not. If a file
/// system has no handles (an overlay before Linux 6.5), the birth time is used instead of the generation; an
/// overlay changes that when it copies a file up. Device numbers change from boot to boot and are left out.
struct FileID: Hashable {
    /// Up to `shortest` bytes, followed by their count in the last byte; zeros if `long` is set. There may be
    /// a million identities: those of common file systems need no allocation.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    /// The bytes of a longer identity.
    private var long: [UInt8]?

    /// Most bytes that are stored in `words`.
    private static let shortest = 23

    /// The form that the queue stores: a kind (`Form`), then the kernel's bytes.
    var bytes: [UInt8] {
        if let long { return long }
        return withUnsafeBytes(of: words) { Array($0.prefix(Int($0[FileID.shortest]))) }
    }

    static func == (left: FileID, right: FileID) -> Bool {
        left.words == right.words && left.long == right.long
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        if let long {
            hasher.combine(long)
        }
    }

    /// The first byte of an identity. The numbers are stored.
    private enum Form: UInt8 {
        case handle = 1
        case birth = 2
        case inode = 3
        case content = 4
    }

    /// The key of a content that a file had before it was truncated. It identifies no file, but is stored
    /// among the keys of files. The stream is part of it, because other streams may have the same content.
    init(ofContent fingerprint: Fingerprint, upTo end: Mark, in stream: Stream) {
        self.init(
            bytes: [Form.content.rawValue] + FileID.bytes(of: fingerprint.hash) + FileID.bytes(of: end.hash)
                + stream.bytes)
    }

    init(bytes: [UInt8]) { self = bytes.withUnsafeBytes { FileID($0) } }

    private init(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= FileID.shortest else {
            long = Array(bytes)
            return
        }
        withUnsafeMutableBytes(of: &words) {
            $0.copyMemory(from: bytes)
            $0[FileID.shortest] = UInt8(bytes.count)
        }
    }

    /// The identity of an open file; an O_PATH descriptor is enough.
    ///
    /// - Throws: a temporary error such as ENOMEM. Falling back to another form then would make a known file
    ///   a new one.
    init(_ descriptor: borrowing Descriptor, _ status: FileStatus) throws(SystemError) {
        let number = descriptor.raw
        var failure: SystemError?
        let handle = withUnsafeTemporaryAllocation(byteCount: 2 + 128, alignment: 8) { buffer -> FileID? in
            var type: Int32 = 0
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[2...]).bindMemory(to: UInt8.self)
            let length = FileID.insisting("name_to_handle_at", &failure) {
                clinux_file_handle(number, room.baseAddress, room.count, &type)
            }
            guard length > 0 else { return nil }
            buffer[0] = Form.handle.rawValue
            buffer[1] = UInt8(truncatingIfNeeded: type)
            return FileID(UnsafeRawBufferPointer(rebasing: buffer[..<(2 + Int(length))]))
        }
        if let failure { throw failure }
        if let handle {
            self = handle
            return
        }
        var birth: Int64 = 0
        let isKnown = FileID.insisting("statx", &failure) { clinux_birth_time(number, &birth) } == 0
        if let failure { throw failure }
        self =
            isKnown
            ? FileID(
                bytes: [Form.birth.rawValue] + FileID.bytes(of: status.inode)
                    + FileID.bytes(of: UInt64(bitPattern: birth)))
            : FileID(bytes: [Form.inode.rawValue] + FileID.bytes(of: status.inode))
    }

    /// Repeats a call that fails. A file system without handles fails each time; one with handles must not
    /// seem to have none because of a single failure, which would change the identities of its files.
    private static func insisting(_ call: StaticString, _ failure: inout SystemError?, _ ask: () -> Int32)
        -> Int32
    {
        var answer = ask()
        for _ in 1..<tries where answer < 0 { answer = ask() }
        let number = errno
        if answer < 0, !saysNone.contains(number) {
            failure = SystemError(call, number: number)
        }
        return answer
    }

    /// Number of calls before a failure counts.
    private static let tries = 4
    /// Errors that mean that the file system or the sandbox gives no handle or birth time.
    private static let saysNone: Set<Int32> = [EOPNOTSUPP, ENOSYS, EPERM, EOVERFLOW, EINVAL]

    /// Whether both identities have the same form. Two identities of different forms may belong to the same
    /// file.
    func isOfSameForm(as other: FileID) -> Bool { bytes.first == other.bytes.first }

    private static func bytes(of number: UInt64) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
}
