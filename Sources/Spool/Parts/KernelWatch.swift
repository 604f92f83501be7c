internal import CLinux
internal import Glibc

/// One inotify event: a change of a watched directory or file, which the number of its watch identifies
/// (inotify(7)).
struct Change {
    enum Kind {
        /// Events were lost, so every directory must be listed again.
        case overflow
        /// The kernel has removed the watch, because its directory or file is gone.
        case watchEnded
        /// The watched directory itself was moved.
        case movedItself
        case modified
        /// A writer has closed the file; other writers may still have it open.
        case closedByWriter
        case created
        /// A name has appeared or gone by a rename. Both halves of one rename have the same cookie.
        case movedHere, movedAway
        case deleted
        case attributesChanged
        case other

        init(mask: UInt32) {
            let mask = Int(mask)
            self =
                switch mask {
                case _ where mask & Int(IN_Q_OVERFLOW) != 0: .overflow
                case _ where mask & Int(IN_IGNORED) != 0: .watchEnded
                case _ where mask & Int(IN_MOVE_SELF) != 0: .movedItself
                case _ where mask & Int(IN_MODIFY) != 0: .modified
                case _ where mask & Int(IN_CLOSE_WRITE) != 0: .closedByWriter
                case _ where mask & Int(IN_CREATE) != 0: .created
                case _ where mask & Int(IN_MOVED_TO) != 0: .movedHere
                case _ where mask & Int(IN_MOVED_FROM) != 0: .movedAway
                case _ where mask & Int(IN_DELETE) != 0: .deleted
                case _ where mask & Int(IN_ATTRIB) != 0: .attributesChanged
                default: .other
                }
        }
    }

    let kind: Kind
    let watch: Int32
    let isDirectory: Bool
    let cookie: UInt32
    /// The bytes of the name, valid as long as the buffer of the changes.
    let rawName: UnsafeRawBufferPointer

    /// Whether the change is of an entry whose name begins with a full stop.
    var isHidden: Bool { rawName.first == UInt8(ascii: ".") }

    var name: FileName { FileName(rawName) }
}

/// Decodes inotify's bytes into changes, and joins the two halves of renames.
///
/// It knows files by their ids only, and neither directories nor the descriptor that the bytes come from.
struct KernelWatch {
    /// The file and the name before a rename.
    struct Origin: Equatable {
        /// The append file that was known there; nil if none was.
        let file: FileID?
        let name: FileName
    }

    /// Renames of which only the first half has arrived, by their cookies.
    private var halves: [UInt32: Origin] = [:]

    /// Whether the second half of some rename may still follow.
    var isMidRename: Bool { !halves.isEmpty }

    /// The first half of a rename.
    mutating func began(_ cookie: UInt32, from origin: Origin) { halves[cookie] = origin }

    /// Joins the second half of a rename with the first one. Returns the earlier name; nil if the file came
    /// from a directory that is not watched.
    mutating func origin(_ cookie: UInt32) -> Origin? { halves.removeValue(forKey: cookie) }

    /// All changes were read. A rename whose second half is missing led to a directory that is not watched.
    mutating func batchEnded() { halves.removeAll(keepingCapacity: true) }

    static func changes(in bytes: UnsafeRawBufferPointer) -> Changes { Changes(bytes: bytes) }

    /// The changes in a buffer from the kernel, one after the other. The sequence ends at bytes that are not
    /// a whole change.
    struct Changes: Sequence, IteratorProtocol {
        private static let header = MemoryLayout<inotify_event>.size

        fileprivate let bytes: UnsafeRawBufferPointer
        /// Offset in the buffer at which the next change begins.
        private(set) var offset = 0

        fileprivate init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        mutating func next() -> Change? {
            guard bytes.count - offset >= Changes.header else { return nil }
            let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let begin = offset + Changes.header
            guard Int(event.len) <= bytes.count - begin else { return nil }
            offset = begin + Int(event.len)
            let padded = UnsafeRawBufferPointer(rebasing: bytes[begin..<offset])
            let length = padded.firstIndex(of: 0) ?? padded.count
            return Change(
                kind: Change.Kind(mask: event.mask), watch: event.wd,
                isDirectory: Int(event.mask) & Int(IN_ISDIR) != 0,
                cookie: event.cookie, rawName: UnsafeRawBufferPointer(rebasing: padded[..<length]))
        }
    }
}
