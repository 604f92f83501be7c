/// Bad lines of a file that a commit could not keep in the quarantine. The file must stay in the spool,
/// and the lines are read again from there.
///
/// They are rows of table `memory`, one for each file and commit: a file with a million bad lines costs
/// a row for each commit, not for each line.
public struct UnkeptLines: Sendable, Equatable {
    /// How the names of the rows begin.
    public static let prefix = "unkept/"

    package var app: String
    /// The file's path at that time, relative to the spool.
    public var path: String
    /// Where the lines are in the unpacked file; neighbouring lines are one range.
    public private(set) var ranges: [Range<Int64>] = []

    package init(app: String, path: String) {
        self.app = app
        self.path = path
    }

    /// Adds a line, to the last range if it follows directly.
    package mutating func add(_ record: QuarantineRecord) {
        let range = record.offset..<record.offset + max(1, record.length)
        if let last = ranges.last, last.upperBound == range.lowerBound {
            ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
        } else {
            ranges.append(range)
        }
    }

    /// Removes what is before an offset, because it has been read again.
    public mutating func drop(before offset: Int64) {
        ranges = ranges.compactMap {
            $0.upperBound > offset ? max($0.lowerBound, offset)..<$0.upperBound : nil
        }
    }

    /// Name of the row.
    public func name(of file: [UInt8]) -> String {
        "\(UnkeptLines.prefix)\(Hexadecimal.text(file))/\(ranges.first?.lowerBound ?? 0)"
    }

    /// Value of the row.
    public var encoded: [UInt8] {
        let places = ranges.map { "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
        return Array("\(places)\0\(app)\0\(path)".utf8)
    }

    /// Parses a row's value; nil if this version would not write it.
    public init?(_ value: [UInt8]) {
        let parts = String(decoding: value, as: UTF8.self).split(
            separator: "\0", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        app = String(parts[1])
        path = String(parts[2])
        for place in parts[0].split(separator: ",") {
            let ends = place.split(separator: "-").compactMap { Int64($0) }
            guard ends.count == 2, ends[0] < ends[1] else { return nil }
            ranges.append(ends[0]..<ends[1])
        }
    }

    /// The file handle in a row's name, in hexadecimal.
    public static func file(ofRow name: String) -> String {
        String(name.dropFirst(prefix.count).prefix { $0 != "/" })
    }
}
