internal import Model

/// What a name in the spool says about its file.
///
/// Names are bytes: an app may write any but `/` and NUL, and nothing here depends on their being text.
enum FileKind: Equatable {
    /// Lines are added to it until it is rotated away: `x.jsonl`, `x.ndjson`, `x.log`, `x.jsonl.1`.
    case append
    /// Written once, whole.
    case drop(DropFormat)
    /// Not for us: hidden, not finished, or of another kind.
    case other
}

enum DropFormat: Equatable {
    /// One object or an array of objects: `x.json`.
    case json
    /// Lines, packed as a gzip member: `x.jsonl.gz`.
    case gzipLines
    /// Lines, packed as a Zstandard frame: `x.jsonl.zst`.
    case zstdLines
}

/// A file's name without its directory, as bytes.
struct FileName: Hashable, Comparable {
    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
    init(_ text: String) { bytes = Array(text.utf8) }

    /// Of a path: the directory's; empty at the top.
    var parent: FileName { FileName(bytes[..<(bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)]) }

    /// Of a path: what follows the directory's.
    var last: FileName { FileName(bytes[(bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)...]) }

    /// The name as text for people; bytes that are not UTF-8 are replaced.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    static func < (left: FileName, right: FileName) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }

    func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
            for (index, byte) in bytes.enumerated() { buffer[index] = CChar(bitPattern: byte) }
            buffer[bytes.count] = 0
            // A temporary allocation of at least one byte has an address; the cast to a non-optional cannot fail.
            return body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped))
        }
    }

    var isHidden: Bool { bytes.first == UInt8(ascii: ".") }

    /// Names under which files are written before they are renamed.
    var isUnfinished: Bool { hasSuffix(".tmp") || hasSuffix(".part") }

    /// What the name says about the file; a claim says what its original name says.
    var kind: FileKind {
        if let claimed { return claimed.visibleKind }
        return isHidden ? .other : visibleKind
    }

    private var visibleKind: FileKind {
        if isUnfinished { return .other }
        if hasSuffix(".json") { return .drop(.json) }
        if hasSuffix(".gz") { return FileName(bytes.dropLast(3)).isAppendName ? .drop(.gzipLines) : .other }
        if hasSuffix(".zst") { return FileName(bytes.dropLast(4)).isAppendName ? .drop(.zstdLines) : .other }
        return isAppendName ? .append : .other
    }

    /// Whether the name is that of an append file, as it is or as rotation changes it.
    private var isAppendName: Bool {
        if isFullLog || self == FileName.current { return true }
        let stem = FileName(bytes[..<(bytes.endIndex - rotationSuffixLength)])
        return FileName.appendSuffixes.contains { stem.hasSuffix($0) && stem.bytes.count > $0.utf8.count }
    }

    /// Whether rotation has given an append file this name.
    var isRotatedName: Bool { kind == .append && anyStem != self }

    /// The name that an append file had before rotation and compression changed it: `x.jsonl` of `x.jsonl.2.gz`.
    var stem: FileName {
        let original = claimed ?? self
        let plain =
            switch original.kind {
            case .drop(.gzipLines): FileName(original.bytes.dropLast(3))
            case .drop(.zstdLines): FileName(original.bytes.dropLast(4))
            default: original
            }
        return plain.anyStem
    }

    /// The name without what rotation adds to a name of any kind.
    var anyStem: FileName {
        if isFullLog { return FileName.current }
        let length = rotationSuffixLength
        return length == 0 || length >= bytes.count ? self : FileName(bytes[..<(bytes.endIndex - length)])
    }

    /// The stem without what rotation puts before the extension: `x.log` of `x-2026-11-23-1.log`, if content shows that rotation did.
    var base: FileName {
        let stem = self.stem.bytes
        guard let dot = stem.lastIndex(of: UInt8(ascii: ".")) else { return self.stem }
        return FileName(FileName(stem[..<dot]).anyStem.bytes + stem[dot...])
    }

    /// What multilog and svlogd write to.
    private static let current = FileName("current")

    /// Whether multilog or svlogd has given a file this name once it was full: `@`, its time in 24 digits, `.s` or `.u`.
    private var isFullLog: Bool {
        bytes.count == 27 && bytes[0] == UInt8(ascii: "@") && (hasSuffix(".s") || hasSuffix(".u"))
            && bytes[1..<25].allSatisfy(Hexadecimal.isDigit)
    }

    private static let appendSuffixes = [".jsonl", ".ndjson", ".log"]

    /// How many bytes at the end rotation has added: `.1`, `-20261120`, `.2026-11-20T10:00`, `.old`, one after another.
    private var rotationSuffixLength: Int {
        if hasSuffix(".old") { return 4 }
        var index = bytes.endIndex
        var start = index
        var digits = 0
        while index > bytes.startIndex {
            let byte = bytes[index - 1]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digits += 1
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                if digits > 0 { start = index - 1 }
            case UInt8(ascii: ":"), UInt8(ascii: "T"), UInt8(ascii: "Z"), UInt8(ascii: "+"): break
            default: return bytes.endIndex - start
            }
            index -= 1
        }
        return bytes.endIndex - start
    }

    func hasSuffix(_ suffix: String) -> Bool {
        bytes.count >= suffix.utf8.count && bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }

    /// What our names for claimed files begin with; 16 hexadecimal digits, a full stop and the original name follow.
    private static let claimPrefix = Array(".spoolship.".utf8)
    private static let claimLength = claimPrefix.count + 16 + 1
    /// The longest name that file systems take.
    private static let longest = 255

    /// The name under which a file is claimed: hidden, of our own, the kind still told by its end.
    func claim(_ number: UInt64) -> FileName {
        let original = (claimed ?? self).bytes.suffix(FileName.longest - FileName.claimLength)
        var bytes = FileName.claimPrefix
        bytes += withUnsafeBytes(of: number.bigEndian) { Hexadecimal.text($0) }.utf8
        bytes.append(UInt8(ascii: "."))
        bytes += original
        return FileName(bytes)
    }

    var claimed: FileName? {
        guard bytes.count > FileName.claimLength, bytes.starts(with: FileName.claimPrefix),
            bytes[FileName.claimLength - 1] == UInt8(ascii: "."),
            bytes[FileName.claimPrefix.count..<(FileName.claimLength - 1)].allSatisfy(Hexadecimal.isDigit)
        else { return nil }
        return FileName(bytes.dropFirst(FileName.claimLength))
    }
}
