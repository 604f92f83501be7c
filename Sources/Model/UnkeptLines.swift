/// Bad lines of a file that a commit could not keep in the quarantine: the file stays because of them, and they are read again there.
///
/// They are rows of table `memory`, one for each file and commit, so that a row is written once however many lines there are.
public struct UnkeptLines: Sendable, Equatable {
    /// How the names of the rows begin.
    public static let prefix = "unkept/"

    package var app: String
    /// The file as it was called then, relative to the spool.
    public var path: String
    /// Where they are in the unpacked file; neighbours are one.
    public private(set) var ranges: [Range<Int64>] = []

    package init(app: String, path: String) {
        self.app = app
        self.path = path
    }

    package mutating func add(_ record: QuarantineRecord) {
        let range = record.offset..<record.offset + max(1, record.length)
        if let last = ranges.last, last.upperBound == range.lowerBound {
            ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
        } else {
            ranges.append(range)
        }
    }

    /// Leaves out what is before an offset: it has been read again.
    public mutating func drop(before offset: Int64) {
        ranges = ranges.compactMap { $0.upperBound > offset ? max($0.lowerBound, offset)..<$0.upperBound : nil }
    }

    /// The row that holds them.
    public func name(of file: [UInt8]) -> String {
        "\(UnkeptLines.prefix)\(Hexadecimal.text(file))/\(ranges.first?.lowerBound ?? 0)"
    }

    /// The value of the row.
    public var encoded: [UInt8] {
        let places = ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
        return Array("\(places)\0\(app)\0\(path)".utf8)
    }

    /// What a row says; nil if it is not what this version writes.
    public init?(_ value: [UInt8]) {
        let parts = String(decoding: value, as: UTF8.self).split(
            separator: "\0", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        (app, path) = (String(parts[1]), String(parts[2]))
        for place in parts[0].split(separator: ",") {
            let ends = place.split(separator: "-").compactMap { Int64($0) }
            guard ends.count == 2, ends[0] < ends[1] else { return nil }
            ranges.append(ends[0]..<ends[1])
        }
    }

    /// What names the file of a row, in hexadecimal digits.
    public static func file(ofRow name: String) -> String {
        String(name.dropFirst(prefix.count).prefix { $0 != "/" })
    }
}
