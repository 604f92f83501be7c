internal import CLinux
internal import EventLoops
internal import Glibc

/// What tells a file from every other one that lives or lived in the spool: its handle (inode with generation).
///
/// An inode number comes back as soon as its file is gone; with the generation it does not. Where a file system gives
/// no handles (overlay), the time when the file was made stands in for the generation. Device numbers change from boot
/// to boot and are left out.
struct FileID: Hashable {
    /// Up to `shortest` bytes, and in the last one how many; zeros where `long` is set. There may be a million of these:
    /// those of the usual file systems need no memory of their own.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private var long: [UInt8]?

    private static let shortest = 23

    /// As the queue keeps it: a kind, then what the kernel says.
    var bytes: [UInt8] {
        if let long { return long }
        return withUnsafeBytes(of: words) { Array($0.prefix(Int($0[FileID.shortest]))) }
    }

    static func == (left: FileID, right: FileID) -> Bool { left.words == right.words && left.long == right.long }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        if let long { hasher.combine(long) }
    }

    private enum Form: UInt8 {
        case handle = 1
        case birth = 2
        case inode = 3
        case content = 4
    }

    /// Names what a file held before it was truncated: no file's identity, but kept among theirs. Other streams may hold the same.
    init(ofContent fingerprint: Fingerprint, upTo place: Mark, in stream: Stream) {
        self.init(
            bytes: [Form.content.rawValue] + FileID.bytes(of: fingerprint.hash) + FileID.bytes(of: place.hash)
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

    /// The identity of an open file; a descriptor that only looks will do.
    ///
    /// - Throws: what the kernel said when it could not tell just now: for want of memory a file does not become another.
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

    /// Asks the kernel some times before its word counts: a file system without handles says so each time, and one that has
    /// them must not seem to have none for a moment.
    private static func insisting(_ call: StaticString, _ failure: inout SystemError?, _ ask: () -> Int32) -> Int32 {
        var answer = ask()
        for _ in 1..<tries where answer < 0 { answer = ask() }
        let number = errno
        if answer < 0, !saysNone.contains(number) { failure = SystemError(call, number: number) }
        return answer
    }

    private static let tries = 4
    /// What the kernel says where there is no handle, or no time of birth, to be had: of the file system, or of the sandbox.
    private static let saysNone: Set<Int32> = [EOPNOTSUPP, ENOSYS, EPERM, EOVERFLOW, EINVAL]

    /// Whether it goes by the same kind of number: one that does not may be the same file's.
    func isOfSameForm(as other: FileID) -> Bool { bytes.first == other.bytes.first }

    private static func bytes(of number: UInt64) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
}
