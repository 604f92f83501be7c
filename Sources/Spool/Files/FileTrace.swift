internal import Frames

/// A fast hash, not a cryptographic one, to see whether bytes are still the same. An attacker could only
/// confuse the reading of a file of his own.
enum ByteHash {
    /// The hash of the bytes. It is stored, so it must be the same on every machine and in every version.
    static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(bytes.count) &* 0x9E37_79B9_7F4A_7C15 ^ 0xD6E8_FEB8_6659_FD93
        var index = 0
        while index + 8 <= bytes.count {
            hash = mix(
                hash, UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index += 8
        }
        var rest: UInt64 = 0
        for byte in bytes[index...].reversed() { rest = rest << 8 | UInt64(byte) }
        hash = mix(hash, rest)
        return hash ^ (hash >> 29)
    }

    private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        let (high, low) = ((hash ^ word) &* 0xA076_1D64_78BD_642F).multipliedFullWidth(
            by: 0xE703_7ED1_A0B4_28DB)
        return high ^ low
    }
}

/// A position in a file with a hash of the bytes right before it and a checksum of all bytes before it. So it
/// can be checked later whether a file was read up to this position.
struct Mark: Equatable {
    /// Bytes before the mark that the hash covers; fewer near the beginning of the file.
    static let window = 256

    /// Offset before which all bytes were read.
    var offset: Int64
    /// `ByteHash` of the last `window` bytes before the offset.
    var hash: UInt64
    /// CRC-32C of all bytes before the offset; 0 if unknown, because some were skipped or were read by an
    /// earlier version.
    var sum: UInt32 = 0

    static let start = Mark(
        offset: 0, hash: ByteHash.of(UnsafeRawBufferPointer(start: nil, count: 0)), sum: .max)

    /// Bytes that the hash covers.
    var covered: Int { Int(min(offset, Int64(Mark.window))) }

    /// Whether both marks have the same offset and the same bytes right before it.
    func ends(like other: Mark) -> Bool { offset == other.offset && hash == other.hash }

    /// The mark `count` bytes further on.
    ///
    /// - Parameter bytes: bytes of the file that end at the new mark, at least as many as its hash and the
    ///   checksum need.
    func advanced(by count: Int, atEndOf bytes: UnsafeRawBufferPointer) -> Mark {
        var mark = Mark(offset: offset + Int64(count), hash: 0)
        mark.hash = ByteHash.of(UnsafeRawBufferPointer(rebasing: bytes.suffix(mark.covered)))
        mark.sum = sum == 0 ? 0 : crc32c(UnsafeRawBufferPointer(rebasing: bytes.suffix(count)), from: sum)
        return mark
    }
}

/// A hash of the first bytes of a file. Files with equal fingerprints may still differ, but files with
/// different ones do.
struct Fingerprint: Hashable {
    /// Most bytes that are covered.
    static let longest = 1024

    /// Bytes that are covered; less than `longest` while fewer were read.
    var length: Int
    /// `ByteHash` of the covered bytes.
    var hash: UInt64

    static let empty = Fingerprint(length: 0, hash: 0)

    /// Whether these bytes begin with the covered bytes.
    func begins(_ bytes: [UInt8]) -> Bool {
        bytes.count >= length && bytes[..<length].withUnsafeBytes { ByteHash.of($0) } == hash
    }
}

/// What was read of an archive that stays, to know it again although its size or its times change.
struct ReadArchive: Equatable {
    /// The first packed bytes.
    let fingerprint: Fingerprint
    /// The end of the packed bytes that were read.
    let mark: Mark
    /// Offset in the unpacked content before which all lines were taken.
    let taken: Int64
}

/// The state of a file's checkpoint: facts to recognise the file and its copies, and to find the read
/// position after a truncation.
@dynamicMemberLookup
struct FileTrace: Equatable {
    /// Most marks of a file.
    static let mostMarks = 64

    /// The inode number; a hint to find the file under a name that is not read otherwise. 0 for a content
    /// whose file was truncated or rewritten.
    var inode: UInt64 = 0
    var fingerprint = Fingerprint.empty
    /// The last of `marks`. Most files have a single mark, which is stored here without an allocation.
    private var lastMark: Mark?
    private var earlierMarks: [Mark] = []
    private var rare = Rare.nothing

    /// A box for the fields that few traces have, to save memory.
    private indirect enum Rare: Equatable {
        case nothing
        case told(Told)
    }

    /// The fields that only some traces have: those of files that are gone, stay after reading, or share a
    /// directory.
    struct Told: Equatable {
        /// Time in milliseconds since 1970 when the file was last missed; nil while it exists.
        var missingSince: Int64?
        /// Set if all of the file was read although it stays: a drop file that is kept, or an archive of an
        /// append file.
        ///
        /// The number is a hash of the file's size and modification time. With another one the file is read
        /// again.
        var doneVersion: UInt64?
        /// The owner, if users share the directory.
        var owner: UInt32?
        /// The stem of the original name, if the path does not show it.
        var origin: FileName?
        /// Length of the file when the checkpoint was made, if not all of it was read; else nil. If the file
        /// is gone at the next start, the bytes up to it are known to be lost.
        var unreadEnd: Int64?
        /// Offset in the unpacked content before which all lines of an archive were taken; set together with
        /// `doneVersion`, a fingerprint and a mark, which are those of the packed bytes.
        var taken: Int64?
        /// Modification time of the file when it was read last, in seconds since 1970. Programs that compress
        /// a file give its time to the archive, which shows whether the file was written to afterwards.
        var modified: Int64?
    }

    /// Marks at the positions of commits, ascending; the last one is the checkpoint's.
    var marks: [Mark] {
        get { lastMark.map { earlierMarks + [$0] } ?? [] }
        set {
            lastMark = newValue.last
            earlierMarks = Array(newValue.dropLast())
        }
    }

    /// Makes the fields of `Told` available as fields of the trace.
    subscript<Value>(dynamicMember field: WritableKeyPath<Told, Value>) -> Value {
        get { told[keyPath: field] }
        set { told[keyPath: field] = newValue }
    }

    private var told: Told {
        get { if case .told(let told) = rare { told } else { Told() } }
        set { rare = newValue == Told() ? .nothing : .told(newValue) }
    }

    /// Whether a copy or an archive can be recognised by the trace.
    var hasContent: Bool { told.doneVersion == nil && fingerprint.length > 0 && lastMark != nil }

    /// Adds the mark of a commit. Beyond `mostMarks` the mark is removed that leaves the smallest gap in
    /// relation to its age, so that recent marks are close together and old ones far apart: a truncated file
    /// is then reread from nearby.
    mutating func add(_ mark: Mark) {
        if let lastMark {
            if lastMark.offset < mark.offset {
                earlierMarks.append(lastMark)
            } else {
                earlierMarks.removeAll { $0.offset >= mark.offset }
            }
        }
        lastMark = mark
        guard earlierMarks.count >= FileTrace.mostMarks else { return }
        let marks = self.marks
        var victim = 1
        var least = Double.infinity
        for index in 1..<(marks.count - 1) {
            let gap = Double(marks[index + 1].offset - marks[index - 1].offset)
            let age = Double(mark.offset - marks[index].offset)
            if gap / age < least {
                least = gap / age
                victim = index
            }
        }
        earlierMarks.remove(at: victim)
    }
}

extension FileTrace {
    private static let version: UInt8 = 1
    private static let isDone: UInt8 = 1
    private static let hasOwner: UInt8 = 2
    private static let hasOrigin: UInt8 = 4
    /// Meanings of the offsets in a state.
    private static let unreadEnd: UInt64 = 0
    private static let taken: UInt64 = 1
    /// Marks an entry that is a time: earlier versions pass over an entry with a fingerprint.
    private static let modified = Fingerprint(length: 1, hash: 2)
    /// Longest state that this program has written; a longer one is damaged.
    private static let longest = 2048

    /// The bytes to store: a version, then numbers as LEB128 or fixed little-endian values. Marks are stored
    /// as distances, followed by the checksums of the marks that have one.
    var encoded: [UInt8] {
        var bytes = [FileTrace.version]
        FileTrace.put(fixed: inode, &bytes)
        FileTrace.put(UInt64(fingerprint.length), &bytes)
        FileTrace.put(fixed: fingerprint.hash, &bytes)
        FileTrace.put(told.missingSince.map { UInt64(bitPattern: max(0, $0)) &+ 1 } ?? 0, &bytes)
        bytes.append(
            (told.doneVersion == nil ? 0 : FileTrace.isDone) | (told.owner == nil ? 0 : FileTrace.hasOwner)
                | (told.origin == nil ? 0 : FileTrace.hasOrigin))
        if let doneVersion = told.doneVersion {
            FileTrace.put(fixed: doneVersion, &bytes)
        }
        if let owner = told.owner {
            FileTrace.put(UInt64(owner), &bytes)
        }
        if let origin = told.origin {
            FileTrace.put(UInt64(origin.bytes.count), &bytes)
            bytes += origin.bytes
        }
        // Earlier versions stored here the contents that the file had before, and skip them. An entry without
        // a fingerprint is an offset, whose meaning is in the number that these versions pass over.
        let offsets = [(told.unreadEnd, FileTrace.unreadEnd), (told.taken, FileTrace.taken)]
        FileTrace.put(UInt64(offsets.count { $0.0 != nil } + (told.modified == nil ? 0 : 1)), &bytes)
        if let modified = told.modified {
            FileTrace.put(UInt64(FileTrace.modified.length), &bytes)
            FileTrace.put(fixed: FileTrace.modified.hash, &bytes)
            FileTrace.put(UInt64(max(0, modified)), &bytes)
            FileTrace.put(fixed: UInt64(0), &bytes)
        }
        for (offset, meaning) in offsets {
            guard let offset else { continue }
            FileTrace.put(0, &bytes)
            FileTrace.put(fixed: UInt64(0), &bytes)
            FileTrace.put(UInt64(offset), &bytes)
            FileTrace.put(fixed: meaning, &bytes)
        }
        FileTrace.put(UInt64(marks.count), &bytes)
        var last: Int64 = 0
        for mark in marks {
            FileTrace.put(UInt64(bitPattern: mark.offset - last), &bytes)
            FileTrace.put(fixed: mark.hash, &bytes)
            last = mark.offset
        }
        // Earlier versions end here.
        for mark in marks.prefix(while: { $0.sum != 0 }) { FileTrace.put(fixed: mark.sum, &bytes) }
        return bytes
    }

    /// Decodes stored bytes; nil if they are malformed. Any bytes are accepted without a trap.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= FileTrace.longest, bytes.first == FileTrace.version else { return nil }
        do throws(TraceReader.Malformed) {
            var reader = TraceReader(rest: bytes[1...])
            inode = try reader.fixed()
            fingerprint = try reader.fingerprint()
            var told = Told()
            let missing = try reader.number(atMost: UInt64(Int64.max))
            if missing > 0 {
                told.missingSince = Int64(missing - 1)
            }
            let what = UInt8(
                try reader.number(atMost: UInt64(FileTrace.isDone | FileTrace.hasOwner | FileTrace.hasOrigin))
            )
            if what & FileTrace.isDone != 0 {
                told.doneVersion = try reader.fixed()
            }
            if what & FileTrace.hasOwner != 0 {
                told.owner = UInt32(try reader.number(atMost: UInt64(UInt32.max)))
            }
            if what & FileTrace.hasOrigin != 0 {
                told.origin = FileName(try reader.bytes(try reader.count(upTo: .max)))
            }
            for _ in 0..<(try reader.count(upTo: 4)) {
                let content = try reader.fingerprint()
                let number = try reader.number()
                let meaning: UInt64 = try reader.fixed()
                switch meaning {
                case _ where content == FileTrace.modified: told.modified = Int64(exactly: number)
                case _ where content != .empty: break
                case FileTrace.taken: told.taken = Int64(exactly: number)
                default: told.unreadEnd = Int64(exactly: number)
                }
            }
            self.told = told
            var marks: [Mark] = []
            for _ in 0..<(try reader.count(upTo: FileTrace.mostMarks)) {
                let last = marks.last?.offset ?? 0
                let distance = Int64(try reader.number(atMost: UInt64(Int64.max - last)))
                guard distance > 0 || marks.isEmpty else { return nil }
                // bounded: by what is left to the largest.
                marks.append(Mark(offset: last + distance, hash: try reader.fixed()))
            }
            for index in marks.indices where !reader.rest.isEmpty { marks[index].sum = try reader.fixed() }
            self.marks = marks
            guard reader.rest.isEmpty else { return nil }
        } catch {
            return nil
        }
    }

    /// Appends a number as LEB128: seven bits a byte, the lowest first.
    private static func put(_ number: UInt64, _ bytes: inout [UInt8]) {
        var number = number
        while number >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        bytes.append(UInt8(number))
    }

    /// Appends a number in little-endian order.
    private static func put(fixed number: some FixedWidthInteger, _ bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
}

/// Reads numbers from the front of stored bytes.
private struct TraceReader {
    /// Thrown for bytes that `FileTrace.encoded` does not produce.
    struct Malformed: Error {}

    var rest: ArraySlice<UInt8>

    mutating func bytes(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard rest.count >= count else { throw Malformed() }
        defer { rest.removeFirst(count) }
        return rest.prefix(count)
    }

    mutating func fixed<Number: FixedWidthInteger>() throws(Malformed) -> Number {
        try bytes(Number.bitWidth / 8).reversed().reduce(0) { $0 << 8 | Number($1) }
    }

    /// Reads a LEB128 number of at most nine bytes, and checks its bound.
    mutating func number(atMost most: UInt64 = .max) throws(Malformed) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 63, by: 7) {
            guard let byte = rest.popFirst() else { break }
            number |= UInt64(byte & 0x7F) << shift
            guard byte & 0x80 == 0 else { continue }
            guard number <= most else { break }
            return number
        }
        throw Malformed()
    }

    mutating func count(upTo most: Int) throws(Malformed) -> Int { Int(try number(atMost: UInt64(most))) }

    mutating func fingerprint() throws(Malformed) -> Fingerprint {
        Fingerprint(length: try count(upTo: Fingerprint.longest), hash: try fixed())
    }
}
