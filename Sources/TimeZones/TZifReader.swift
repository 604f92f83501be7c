/// Parses a TZif file (RFC 9636, section 3). The bytes may be anything: each count is checked against
/// the length of the file.
struct TZifReader {
    /// The content of a file, as far as the agent uses it.
    struct File: Sendable, Equatable {
        /// When the offset changes, in seconds since 1970 (UTC), in order.
        var transitions: [Int64] = []
        /// The offset from each transition on, in seconds east of UTC.
        var offsets: [Int32] = []
        /// The offset before the first transition.
        var first: Int32 = 0
        /// The rule for the time after the last transition; if it is nil, the last offset stays.
        var footer: FooterRule?
    }

    private let bytes: [UInt8]
    /// Offset of the next byte.
    private var index = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads the file.
    ///
    /// - Returns: nil if the file is damaged.
    mutating func read() -> File? {
        guard let header = header() else { return nil }
        guard header.version >= 2 else { return block(header, timeSize: 4) }
        // From version 2 on the first block is for readers that know 32-bit times only; a second block
        // with 64-bit times follows.
        // bounded: each of its counts is.
        index += header.size(timeSize: 4)
        guard let second = self.header(), var file = block(second, timeSize: 8) else { return nil }
        guard nextByte() == 0x0A, let end = bytes[index...].firstIndex(of: 0x0A) else { return nil }
        if end > index {
            guard let footer = FooterRule(bytes[index..<end]) else { return nil }
            file.footer = footer
        }
        return file
    }

    /// A header: version and the six counts of a data block.
    private struct Header {
        let version: Int
        /// Numbers of UT/local indicators, standard/wall indicators, leap seconds, transitions, local
        /// time types, and bytes of abbreviations, in the order of the file.
        let counts: [Int]

        var times: Int { counts[3] }
        var types: Int { counts[4] }

        /// Size in bytes of the data block.
        func size(timeSize: Int) -> Int {
            times * (timeSize + 1) + types * 6 + skippedSize(timeSize: timeSize)
        }

        /// Size in bytes of the part behind the types, which is skipped.
        func skippedSize(timeSize: Int) -> Int {
            counts[5] + counts[2] * (timeSize + 4) + counts[1] + counts[0]
        }
    }

    /// A header; nil if it is damaged. Counts beyond 65,536 are refused, so that sizes cannot overflow.
    private mutating func header() -> Header? {
        guard bytes.count - index >= 44, bytes[index..<index + 4].elementsEqual("TZif".utf8) else {
            return nil
        }
        let versionByte = bytes[index + 4]
        let version = versionByte == 0 ? 1 : Int(versionByte) - Int(UInt8(ascii: "0"))
        guard version >= 1 else { return nil }
        index += 20
        let header = Header(version: version, counts: (0..<6).map { _ in Int(number(4)) })
        guard header.counts.allSatisfy({ $0 <= 65_536 }), header.types >= 1 else { return nil }
        return header
    }

    /// A data block; nil if it is damaged. Transitions must be in order, because they are searched by
    /// bisection.
    private mutating func block(_ header: Header, timeSize: Int) -> File? {
        guard bytes.count - index >= header.size(timeSize: timeSize) else { return nil }
        var file = File()
        for _ in 0..<header.times {
            let time = timeSize == 8 ? number(8) : Int64(Int32(truncatingIfNeeded: number(4)))
            if let last = file.transitions.last, time <= last { return nil }
            file.transitions.append(time)
        }
        let kinds = (0..<header.times).map { _ in Int(nextByte()) }
        var offsets: [Int32] = []
        for _ in 0..<header.types {
            let offset = Int32(truncatingIfNeeded: number(4))
            guard abs(Int(offset)) < 26 * 3600 else { return nil }
            offsets.append(offset)
            index += 2
        }
        guard kinds.allSatisfy({ $0 < offsets.count }) else { return nil }
        file.offsets = kinds.map { offsets[$0] }
        file.first = offsets[0]
        index += header.skippedSize(timeSize: timeSize)
        return file
    }

    /// The next byte; 0 at the end.
    private mutating func nextByte() -> UInt8 {
        guard index < bytes.count else { return 0 }
        index += 1
        return bytes[index - 1]
    }

    /// A big-endian number of `size` bytes.
    private mutating func number(_ size: Int) -> Int64 {
        Int64(bitPattern: (0..<size).reduce(UInt64(0)) { value, _ in value << 8 | UInt64(nextByte()) })
    }
}
