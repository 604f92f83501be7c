/// Reads answers of the protocol in protocol buffers. By hand, because only two fields matter.
///
/// Source: opentelemetry-proto v1, `logs_service.proto`, for the field numbers.
enum OTLPProtobuf {
    /// What an answer says about rejected records; nil if the bytes are not an answer of the protocol.
    static func partialSuccess(_ answer: [UInt8]) -> (rejected: Int64, message: String)? {
        guard let fields = ProtobufReader.fields(of: answer[...]) else { return nil }
        var rejected = Int64(0)
        var message = ""
        for field in fields where field.number == 1 {
            // gRPC's `Status` has a number in this field.
            guard case .bytes(let bytes) = field.value, let partial = ProtobufReader.fields(of: bytes) else {
                return nil
            }
            for field in partial {
                switch (field.number, field.value) {
                case (1, .varint(let count)): rejected = Int64(bitPattern: count)
                case (2, .bytes(let text)): message = String(decoding: text, as: UTF8.self)
                case (1, _), (2, _): return nil
                default: break
                }
            }
        }
        return (rejected, message)
    }
}

/// Reads the fields of a message in hostile bytes: every length is checked, and nothing is recursive.
struct ProtobufReader {
    /// A field's value by its wire type. Groups (types 3 and 4) are obsolete and refused.
    enum Value: Equatable {
        case varint(UInt64)
        case fixed64(UInt64)
        case bytes(ArraySlice<UInt8>)
        case fixed32(UInt32)
    }

    /// Bytes that are not read yet.
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// All fields of a message; nil if the bytes are not a message.
    static func fields(of bytes: ArraySlice<UInt8>) -> [(number: Int, value: Value)]? {
        var reader = ProtobufReader(bytes)
        var fields: [(number: Int, value: Value)] = []
        while !reader.rest.isEmpty {
            guard let field = reader.next() else { return nil }
            fields.append(field)
        }
        return fields
    }

    /// The next field; nil at the end, and if the bytes are not a field.
    mutating func next() -> (number: Int, value: Value)? {
        guard let key = varint(), key >> 3 > 0, key >> 3 < 1 << 29 else { return nil }
        let number = Int(key >> 3)
        switch key & 7 {
        case 0: return varint().map { (number, .varint($0)) }
        case 1: return consume(8).map { (number, .fixed64($0.reversed().reduce(0) { $0 << 8 | UInt64($1) })) }
        case 2:
            guard let length = varint(), length <= UInt64(rest.count) else { return nil }
            return consume(Int(length)).map { (number, .bytes($0)) }
        case 5: return consume(4).map { (number, .fixed32($0.reversed().reduce(0) { $0 << 8 | UInt32($1) })) }
        default: return nil
        }
    }

    /// Removes and returns some bytes; nil if they are too few.
    private mutating func consume(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Reads a number of up to 10 bytes with 7 bits each; nil if it does not end.
    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for index in UInt64(0)..<10 {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << (7 * index)
            if byte < 0x80 { return value }
        }
        return nil
    }
}
