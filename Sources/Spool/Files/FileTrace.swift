internal import Frames

/// A quick hash, to see whether bytes are still the same. An adversary could only fool the reading of a file of his own.
enum ByteHash {
    /// The hash of the bytes; the same on every machine and in every version, because it is kept.
    static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(bytes.count) &* 0x9E37_79B9_7F4A_7C15 ^ 0xD6E8_FEB8_6659_FD93
        var index = 0
        while index + 8 <= bytes.count {
            hash = mix(hash, UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index += 8
        }
        var rest: UInt64 = 0
        for byte in bytes[index...].reversed() { rest = rest << 8 | UInt64(byte) }
        hash = mix(hash, rest)
        return hash ^ (hash >> 29)
    }

    private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        let (high, low) = ((hash ^ word) &* 0xA076_1D64_78BD_642F).multipliedFullWidth(by: 0xE703_7ED1_A0B4_28DB)
        return high ^ low
    }
}

/// A place in a file, what is right before it, and what all that is before it sums up to: proof that the file was read up to here.
struct Mark: Equatable {
    /// How many bytes before it the hash covers, or all if there are fewer.
    static let window = 256

    /// All bytes before it were read.
    var offset: Int64
    /// `ByteHash` of the last `window` of them.
    var hash: UInt64
    /// `crc32c` of all of them; 0 where it is not known: some were skipped, or an earlier version read them.
    var sum: UInt32 = 0

    static let start = Mark(offset: 0, hash: ByteHash.of(UnsafeRawBufferPointer(start: nil, count: 0)), sum: .max)

    var covered: Int { Int(min(offset, Int64(Mark.window))) }

    /// Whether the bytes right before both are the same.
    func ends(like other: Mark) -> Bool { offset == other.offset && hash == other.hash }

    /// The mark so many bytes further on.
    ///
    /// - Parameter bytes: what ends with these bytes, and has before them what a mark covers.
    func advanced(by count: Int, atEndOf bytes: UnsafeRawBufferPointer) -> Mark {
        var mark = Mark(offset: offset + Int64(count), hash: 0)
        mark.hash = ByteHash.of(UnsafeRawBufferPointer(rebasing: bytes.suffix(mark.covered)))
        mark.sum = sum == 0 ? 0 : crc32c(UnsafeRawBufferPointer(rebasing: bytes.suffix(count)), from: sum)
        return mark
    }
}

/// The first bytes of a file: two files that begin alike may still be two, but one that begins otherwise is another.
struct Fingerprint: Hashable {
    /// How many bytes it covers at most.
    static let longest = 1024

    /// How many bytes it covers; less than `longest` while no more were read.
    var length: Int
    /// `ByteHash` of them.
    var hash: UInt64

    static let empty = Fingerprint(length: 0, hash: 0)

    /// Whether a file that has these bytes begins with those that it covers.
    func begins(_ bytes: [UInt8]) -> Bool {
        bytes.count >= length && bytes[..<length].withUnsafeBytes { ByteHash.of($0) } == hash
    }
}

/// What the spool keeps of a file beside its checkpoint, to know it again and to find its place in it again.
@dynamicMemberLookup
struct FileTrace: Equatable {
    static let mostMarks = 64

    /// The inode number: a hint where to look for the file under a name that says nothing.
    var inode: UInt64 = 0
    var fingerprint = Fingerprint.empty
    /// The last of `marks`, and those before it: most files have one, which needs no memory of its own.
    private var lastMark: Mark?
    private var earlierMarks: [Mark] = []
    private var rare = Rare.nothing

    /// What only the traces of files say that are gone, or that stay although they were read.
    private indirect enum Rare: Equatable {
        case nothing
        case told(Told)
    }

    /// What only some traces say.
    struct Told: Equatable {
        /// Milliseconds since 1970 when the file was last missed; nil while it is there.
        var missingSince: Int64?
        /// Whether all of it was read, although it stays: a drop file that is kept, an archive of an append file.
        ///
        /// The number tells the version of the content that was read (from its size and times); another one is read again.
        var doneVersion: UInt64?
        /// Whose it is, where users share a directory.
        var owner: UInt32?
        /// The stem of the name that it was written under, where its path does not say it.
        var origin: FileName?
    }

    /// Places of earlier commits, ascending; the last is the checkpoint itself.
    var marks: [Mark] {
        get { lastMark.map { earlierMarks + [$0] } ?? [] }
        set {
            lastMark = newValue.last
            earlierMarks = Array(newValue.dropLast())
        }
    }

    /// What is told beside the content is as if it were the trace's own.
    subscript<Value>(dynamicMember field: WritableKeyPath<Told, Value>) -> Value {
        get { told[keyPath: field] }
        set { told[keyPath: field] = newValue }
    }

    private var told: Told {
        get { if case .told(let told) = rare { told } else { Told() } }
        set { rare = newValue == Told() ? .nothing : .told(newValue) }
    }

    /// Whether a copy or an archive may be known by it.
    var hasContent: Bool { told.doneVersion == nil && fingerprint.length > 0 && lastMark != nil }

    /// Adds the mark of a commit. Beyond `mostMarks` the one goes that leaves the smallest gap for its age, so that
    /// recent marks stay close together and old ones are far apart.
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
    /// No state that this program wrote is longer.
    private static let longest = 2048

    /// The bytes to keep: a version, then numbers of variable length; marks as distances, and the sums of the first of them.
    var encoded: [UInt8] {
        var bytes = [FileTrace.version]
        FileTrace.put(fixed: inode, &bytes)
        FileTrace.put(UInt64(fingerprint.length), &bytes)
        FileTrace.put(fixed: fingerprint.hash, &bytes)
        FileTrace.put(told.missingSince.map { UInt64(bitPattern: max(0, $0)) &+ 1 } ?? 0, &bytes)
        bytes.append(
            (told.doneVersion == nil ? 0 : FileTrace.isDone) | (told.owner == nil ? 0 : FileTrace.hasOwner)
                | (told.origin == nil ? 0 : FileTrace.hasOrigin))
        if let doneVersion = told.doneVersion { FileTrace.put(fixed: doneVersion, &bytes) }
        if let owner = told.owner { FileTrace.put(UInt64(owner), &bytes) }
        if let origin = told.origin {
            FileTrace.put(UInt64(origin.bytes.count), &bytes)
            bytes += origin.bytes
        }
        // Earlier versions told here what the file had held before.
        FileTrace.put(0, &bytes)
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

    /// What was kept; nil if it is not what this version writes, whatever the bytes are.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= FileTrace.longest, bytes.first == FileTrace.version else { return nil }
        do throws(TraceReader.Malformed) {
            var reader = TraceReader(rest: bytes[1...])
            inode = try reader.fixed()
            fingerprint = try reader.fingerprint()
            var told = Told()
            let missing = try reader.number(atMost: UInt64(Int64.max))
            if missing > 0 { told.missingSince = Int64(missing - 1) }
            let what = UInt8(
                try reader.number(atMost: UInt64(FileTrace.isDone | FileTrace.hasOwner | FileTrace.hasOrigin)))
            if what & FileTrace.isDone != 0 { told.doneVersion = try reader.fixed() }
            if what & FileTrace.hasOwner != 0 { told.owner = UInt32(try reader.number(atMost: UInt64(UInt32.max))) }
            if what & FileTrace.hasOrigin != 0 {
                told.origin = FileName(try reader.bytes(try reader.count(upTo: .max)))
            }
            self.told = told
            for _ in 0..<(try reader.count(upTo: 4)) {
                _ = (try reader.fingerprint(), try reader.number(), try reader.fixed() as UInt64)
            }
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

    private static func put(_ number: UInt64, _ bytes: inout [UInt8]) {
        var number = number
        while number >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        bytes.append(UInt8(number))
    }

    private static func put(fixed number: some FixedWidthInteger, _ bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
}

/// Takes numbers from the front of what the queue kept.
private struct TraceReader {
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
