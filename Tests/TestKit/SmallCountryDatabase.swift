/// A MaxMind database of one node: IPv4 addresses below 128.0.0.0 are Italian, others are not in it.
///
/// Source: MaxMind DB file format specification, version 2.0.
public enum SmallCountryDatabase {
    /// The file's content.
    public static var bytes: [UInt8] {
        // Records of 24 bits: the left one leads to the data (node count + 16 + offset 0), the right one says "not found".
        let tree: [UInt8] = [0, 0, 17, 0, 0, 1]
        let data = map([("country", map([("iso_code", text("IT"))]))])
        let metadata = map([
            ("node_count", number(1, type: 6)), ("record_size", number(24, type: 5)),
            ("ip_version", number(4, type: 5)),
            ("database_type", text("Test")), ("languages", [0x00, 0x04]),
            ("binary_format_major_version", number(2, type: 5)),
            ("binary_format_minor_version", number(0, type: 5)),
            ("build_epoch", [0x01, 0x02, 1]), ("description", map([])),
        ])
        var bytes = tree + [UInt8](repeating: 0, count: 16) + data
        bytes += [0xAB, 0xCD, 0xEF]
        bytes += Array("MaxMind.com".utf8)
        return bytes + metadata
    }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        let head: [UInt8] = bytes.count < 29 ? [0x40 | UInt8(bytes.count)] : [0x5D, UInt8(bytes.count - 29)]
        return head + bytes
    }
    private static func number(_ value: UInt8, type: UInt8) -> [UInt8] { [type << 5 | 1, value] }
    private static func map(_ members: [(String, [UInt8])]) -> [UInt8] {
        [0xE0 | UInt8(members.count)] + members.flatMap { text($0.0) + $0.1 }
    }
}
