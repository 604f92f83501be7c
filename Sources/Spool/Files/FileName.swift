internal import Model

/// The kind of a file by its name.
///
/// Names are bytes: an app may use any byte but `/` and NUL, and nothing here requires valid UTF-8.
enum FileKind: Equatable {
    /// Lines are added to it until it is rotated away: `x.jsonl`, `x.ndjson`, `x.log`, `x.jsonl.1`.
    case append
    /// A drop file: written once and read whole.
    case drop(DropFormat)
    /// A file that is not read: hidden, unfinished, or with another extension.
    case other
}

/// The content of a drop file.
enum DropFormat: Equatable {
    /// One object or an array of objects: `x.json`.
    case json
    /// Lines, packed as a gzip member: `x.jsonl.gz`.
    case gzipLines
    /// Lines, packed as a Zstandard frame: `x.jsonl.zst`.
    case zstdLines
}

/// A file's name without its directory, or a path relative to the spool, as bytes.
struct FileName: Hashable, Comparable {
    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
    init(_ text: String) { bytes = Array(text.utf8) }

    /// The path of the directory of a path; empty at the top.
    var parent: FileName { FileName(bytes[..<(bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)]) }

    /// The last component of a path.
    var last: FileName { FileName(bytes[(bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)...]) }

    /// The name as text for messages; bytes that are not UTF-8 are replaced, so two names may have the same
    /// text.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    static func < (left: FileName, right: FileName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
            for (index, byte) in bytes.enumerated() { buffer[index] = CChar(bitPattern: byte) }
            buffer[bytes.count] = 0
            // A temporary allocation of at least one byte has an address; the cast to a non-optional cannot
            // fail.
            return body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped))
        }
    }

    var isHidden: Bool { bytes.first == UInt8(ascii: ".") }

    /// Whether a name is one under which files are written before they are renamed.
    var isUnfinished: Bool { hasSuffix(".tmp") || hasSuffix(".part") }

    /// The kind of the file; a claim has the kind of its original name.
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

    /// Whether the name is that of an append file, with or without a rotation suffix.
    private var isAppendName: Bool {
        if isFullLog || self == FileName.current { return true }
        let stem = FileName(bytes[..<(bytes.endIndex - rotationSuffixLength)])
        return FileName.appendSuffixes.contains { stem.hasSuffix($0) && stem.bytes.count > $0.utf8.count }
    }

    /// Whether rotation has given an append file this name.
    var isRotatedName: Bool { kind == .append && anyStem != self }

    /// The name that an append file had before rotation and compression changed it: `x.jsonl` of
    /// `x.jsonl.2.gz`.
    var stem: FileName {
        let original = claimed ?? self
        return (original.unpacked?.name ?? original).anyStem
    }

    /// The name of a compressed file before compression, and its format; nil for other names.
    var unpacked: (name: FileName, format: DropFormat)? {
        for (suffix, format) in [(".gz", DropFormat.gzipLines), (".zst", .zstdLines)]
        where hasSuffix(suffix) && bytes.count > suffix.utf8.count {
            return (FileName(bytes.dropLast(suffix.utf8.count)), format)
        }
        return nil
    }

    /// The name of a file before it was compressed by a program whose archives are not read; nil for other
    /// names.
    var packedElsewhere: FileName? {
        for suffix in FileName.otherArchives where hasSuffix(suffix) && bytes.count > suffix.utf8.count {
            return FileName(bytes.dropLast(suffix.utf8.count))
        }
        return nil
    }

    /// Suffixes of the programs with which rotation compresses, beside gzip and zstd.
    private static let otherArchives = [".xz", ".bz2", ".lz4", ".lzma", ".lzo", ".br", ".Z", ".zip"]

    /// The name without a rotation suffix, for any extension.
    var anyStem: FileName {
        if isFullLog { return FileName.current }
        let length = rotationSuffixLength
        return length == 0 || length >= bytes.count ? self : FileName(bytes[..<(bytes.endIndex - length)])
    }

    /// The stem without a rotation suffix before the extension: `x.log` of `x-2026-11-23-1.log`. The digits
    /// may belong to the original name, so only the content shows whether rotation has added them.
    var base: FileName {
        let stem = self.stem.bytes
        guard let dot = stem.lastIndex(of: UInt8(ascii: ".")) else { return self.stem }
        return FileName(FileName(stem[..<dot]).anyStem.bytes + stem[dot...])
    }

    /// The file to which multilog and svlogd write.
    private static let current = FileName("current")

    /// Whether multilog or svlogd has renamed a full file to this name: `@`, a TAI64N time in 24 hexadecimal
    /// digits, `.s` or `.u`.
    private var isFullLog: Bool {
        bytes.count == 27 && bytes[0] == UInt8(ascii: "@") && (hasSuffix(".s") || hasSuffix(".u"))
            && bytes[1..<25].allSatisfy(Hexadecimal.isDigit)
    }

    private static let appendSuffixes = [".jsonl", ".ndjson", ".log"]

    /// Length of the rotation suffixes at the end: `.1`, `-20261120`, `.2026-11-20T10:00`, `.old`, also
    /// several in a row.
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
                if digits > 0 {
                    start = index - 1
                }
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

    /// Prefix of the names of claimed files. A claim has this prefix, 16 hexadecimal digits, a full stop and
    /// the original name.
    private static let claimPrefix = Array(".spoolship.".utf8)
    private static let claimLength = claimPrefix.count + 16 + 1
    /// The longest name that Linux file systems accept (NAME_MAX).
    private static let longest = 255

    /// The hidden name under which a file is claimed. The end of the original name is kept, because it
    /// determines the kind; its beginning is cut if the claim would be too long.
    func claim(_ number: UInt64) -> FileName {
        let original = (claimed ?? self).bytes.suffix(FileName.longest - FileName.claimLength)
        var bytes = FileName.claimPrefix
        bytes += withUnsafeBytes(of: number.bigEndian) { Hexadecimal.text($0) }.utf8
        bytes.append(UInt8(ascii: "."))
        bytes += original
        return FileName(bytes)
    }

    /// The original name in a claim; nil if the name is not a claim.
    var claimed: FileName? {
        guard bytes.count > FileName.claimLength, bytes.starts(with: FileName.claimPrefix),
            bytes[FileName.claimLength - 1] == UInt8(ascii: "."),
            bytes[FileName.claimPrefix.count..<(FileName.claimLength - 1)].allSatisfy(Hexadecimal.isDigit)
        else { return nil }
        return FileName(bytes.dropFirst(FileName.claimLength))
    }
}
