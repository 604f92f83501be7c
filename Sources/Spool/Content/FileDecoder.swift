internal import Glibc
public import Model

/// Decodes a file's bytes to UTF-8, and says how many bytes of the file a part of the text stands for. A
/// value without state, so that reading may begin at any line.
///
/// Malformed units (a surrogate without its partner, an odd byte at the end) become the byte 0xFF, which is
/// not UTF-8 either: so the sink replaces or refuses them, and counts them, like all bytes that are not
/// UTF-8.
struct FileDecoder: Equatable {
    let encoding: FileEncoding

    init(_ encoding: FileEncoding) { self.encoding = encoding }

    /// The decoder of a file; nil if its bytes are handed over as they are.
    ///
    /// - Parameters:
    ///   - head: the file's first bytes. A byte order mark of UTF-16 is recognised without a setting, and
    ///     counts more than a setting for the other byte order.
    ///   - configured: the encoding of the settings.
    init?(head: UnsafeRawBufferPointer, _ configured: FileEncoding?) {
        let marked = FileDecoder.marked(head)
        guard let encoding = configured == .latin1 ? .latin1 : marked ?? configured else { return nil }
        self.encoding = encoding
    }

    /// The encoding that a byte order mark names; nil without a mark of UTF-16.
    private static func marked(_ head: UnsafeRawBufferPointer) -> FileEncoding? {
        guard head.count >= 2 else { return nil }
        return switch (head[0], head[1]) {
        case (0xFF, 0xFE): .utf16le
        case (0xFE, 0xFF): .utf16be
        default: nil
        }
    }

    /// Length of a unit in bytes.
    var unit: Int { encoding == .latin1 ? 1 : 2 }

    /// Least length in the file of a text that is longer than `longest` bytes, in every case.
    func length(beyond longest: Int) -> Int { unit * (longest + 1) }

    /// Room for the bytes of the longest line, so that a longer one is recognised: with a byte order mark
    /// before it, half of a surrogate pair behind it, which is not decoded yet, and an LF.
    func room(forLineOf longest: Int) -> Int { length(beyond: longest) + 2 * unit + 1 }

    /// Length of the byte order mark with which a file begins, which is no text.
    func markLength(of head: UnsafeRawBufferPointer) -> Int {
        unit == 2 && FileDecoder.marked(head) != nil ? 2 : 0
    }

    /// The offset of the unit in which a byte of the file is.
    func start(ofUnitAt offset: Int64) -> Int64 { offset / Int64(unit) * Int64(unit) }

    // MARK: Decoding

    /// Room for the text of some bytes, and an LF behind it.
    static func room(for count: Int) -> Int { 2 * count + 2 }

    /// Decodes bytes that begin with a whole unit.
    ///
    /// - Parameters:
    ///   - isWhole: whether nothing follows, so that an incomplete character at the end is malformed.
    ///     Otherwise it is left out.
    ///   - text: at least `room(for:)` bytes.
    /// - Returns: the length of the text.
    func decode(
        _ bytes: UnsafeRawBufferPointer, isWhole: Bool, into text: UnsafeMutableRawBufferPointer
    ) -> Int {
        switch encoding {
        case .latin1: FileDecoder.decodeLatin1(bytes, into: text)
        case .utf16le: FileDecoder.decodeUTF16(bytes, low: 0, isWhole: isWhole, into: text)
        case .utf16be: FileDecoder.decodeUTF16(bytes, low: 1, isWhole: isWhole, into: text)
        }
    }

    /// The text of bytes that are shown to people, such as the beginning of a line that is too long.
    func text(of bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: FileDecoder.room(for: bytes.count)) { buffer, count in
            count = bytes.withUnsafeBytes {
                decode($0, isWhole: true, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }

    private static func decodeLatin1(
        _ bytes: UnsafeRawBufferPointer, into text: UnsafeMutableRawBufferPointer
    ) -> Int {
        var count = 0
        for byte in bytes {
            if byte < 0x80 {
                text[count] = byte
                count += 1
            } else {
                text[count] = 0xC0 | byte >> 6
                text[count + 1] = 0x80 | byte & 0x3F
                count += 2
            }
        }
        return count
    }

    /// - Parameter low: offset of the low byte in a unit.
    private static func decodeUTF16(
        _ bytes: UnsafeRawBufferPointer, low: Int, isWhole: Bool, into text: UnsafeMutableRawBufferPointer
    ) -> Int {
        var index = 0
        var count = 0
        func unit(at index: Int) -> UInt32 {
            UInt32(bytes[index + 1 - low]) << 8 | UInt32(bytes[index + low])
        }
        func put(_ byte: UInt32) {
            text[count] = UInt8(truncatingIfNeeded: byte)
            count += 1
        }
        while index + 1 < bytes.count {
            let value = unit(at: index)
            index += 2
            switch value {
            case 0..<0x80: put(value)
            case 0x80..<0x800:
                put(0xC0 | value >> 6)
                put(0x80 | value & 0x3F)
            case 0xD800..<0xDC00:
                guard index + 1 < bytes.count else {
                    // The second half of the pair may come with the next bytes.
                    guard isWhole else { return count }
                    put(FileDecoder.malformed)
                    continue
                }
                let next = unit(at: index)
                guard next & 0xFC00 == 0xDC00 else {
                    put(FileDecoder.malformed)
                    continue
                }
                index += 2
                let scalar = 0x10000 + (value & 0x3FF) << 10 + next & 0x3FF
                put(0xF0 | scalar >> 18)
                put(0x80 | scalar >> 12 & 0x3F)
                put(0x80 | scalar >> 6 & 0x3F)
                put(0x80 | scalar & 0x3F)
            case 0xDC00..<0xE000: put(FileDecoder.malformed)
            default:
                put(0xE0 | value >> 12)
                put(0x80 | value >> 6 & 0x3F)
                put(0x80 | value & 0x3F)
            }
        }
        if isWhole, index < bytes.count {
            put(FileDecoder.malformed)
        }
        return count
    }

    /// A byte that is in no UTF-8.
    private static let malformed: UInt32 = 0xFF

    // MARK: Places

    /// How many bytes of the file a text stands for that `decode` has made. An odd byte at the end of the
    /// file counts as two.
    func length(of text: UnsafeRawBufferPointer) -> Int {
        var units = 0
        for byte in text {
            // Each character begins with a byte that is no continuation; one of four bytes was a pair.
            units += byte & 0xC0 == 0x80 ? 0 : 1
            if unit == 2, byte >= 0xF0, byte != 0xFF {
                units += 1
            }
        }
        return units * unit
    }

    /// Offset of the first occurrence of an ASCII character in bytes that begin with a whole unit.
    func first(_ character: UInt8, in bytes: UnsafeRawBufferPointer) -> Int? {
        guard unit == 2 else { return LineCutter.first(Int32(character), in: bytes) }
        let low = encoding == .utf16le ? 0 : 1
        var start = 0
        while let found = LineCutter.first(
            Int32(character), in: UnsafeRawBufferPointer(rebasing: bytes[min(start, bytes.count)...]))
        {
            let begin = (start + found) & ~1
            if begin + 1 < bytes.count, bytes[begin + low] == character, bytes[begin + 1 - low] == 0 {
                return begin
            }
            start = begin + 2
        }
        return nil
    }

    /// The offset behind the last line feed in bytes that begin with a whole unit.
    func endOfLastLine(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard unit == 2 else {
            return LineCutter.lastLineFeed(in: bytes).map { $0 + 1 }
        }
        let low = encoding == .utf16le ? 0 : 1
        return stride(from: (bytes.count & ~1) - 2, through: 0, by: -2)
            .first { bytes[$0 + low] == 0x0A && bytes[$0 + 1 - low] == 0 }.map { $0 + 2 }
    }
}

/// The encoding of a file as far as it is known.
enum FileScript: Equatable {
    case unknown
    /// The bytes are handed over as they are.
    case plain
    case decoded(FileDecoder)

    init(_ decoder: FileDecoder?) {
        self = decoder.map { .decoded($0) } ?? .plain
    }

    var decoder: FileDecoder? {
        guard case .decoded(let decoder) = self else { return nil }
        return decoder
    }
}

/// The text of a whole file, as the reader of files in place hands it over.
public enum FileText {
    /// Decodes the content of a file by its byte order mark or an encoding; UTF-8 stays as it is.
    public static func decoded(_ bytes: [UInt8], _ encoding: FileEncoding?) -> [UInt8] {
        bytes.withUnsafeBytes { whole in
            guard let decoder = FileDecoder(head: whole, encoding) else { return bytes }
            return decoder.text(of: Array(whole[decoder.markLength(of: whole)...]))
        }
    }
}
