/// The protocol's messages in protocol buffers, written and read by hand: a dozen fields.
///
/// Source: opentelemetry-proto v1, `logs.proto`, `common.proto`, `logs_service.proto`; the field numbers are theirs.
enum OTLPProtobuf {
    static func request(_ groups: [OTLPGroup], version: String) -> [UInt8] {
        var scope = ProtobufWriter()
        scope.text(1, "spoolship")
        if !version.isEmpty { scope.text(2, version) }
        var request = ProtobufWriter()
        for group in groups {
            var resource = ProtobufWriter()
            for attribute in group.resource { resource.message(1, message(attribute)) }
            var scopeLogs = ProtobufWriter()
            scopeLogs.message(1, scope)
            for record in group.records { scopeLogs.message(2, message(record)) }
            var resourceLogs = ProtobufWriter()
            resourceLogs.message(1, resource)
            resourceLogs.message(2, scopeLogs)
            request.message(1, resourceLogs)
        }
        return request.bytes
    }

    /// What an answer says of rejected records; nil when it says nothing, or is none of the protocol.
    static func partialSuccess(_ answer: [UInt8]) -> (rejected: Int64, message: String)? {
        var reader = ProtobufReader(answer[...])
        var found: (rejected: Int64, message: String)?
        while let field = reader.next() {
            guard field.number == 1, case .bytes(let bytes) = field.value else { continue }
            var partial = ProtobufReader(bytes)
            var rejected: Int64 = 0
            var message = ""
            while let field = partial.next() {
                switch (field.number, field.value) {
                case (1, .varint(let count)): rejected = Int64(bitPattern: count)
                case (2, .bytes(let text)): message = String(decoding: text, as: UTF8.self)
                default: break
                }
            }
            found = (rejected, message)
        }
        return found
    }

    private static func message(_ record: OTLPRecord) -> ProtobufWriter {
        var writer = ProtobufWriter()
        writer.fixed(1, record.time)
        writer.varint(2, UInt64(record.severity.number))
        if !record.severity.text.isEmpty { writer.text(3, record.severity.text) }
        writer.message(5, message(OTLPValue.string(record.body)))
        for attribute in record.attributes { writer.message(6, message(attribute)) }
        if !record.traceID.isEmpty { writer.bytes(9, record.traceID) }
        if !record.spanID.isEmpty { writer.bytes(10, record.spanID) }
        writer.fixed(11, record.observed)
        writer.text(12, record.name)
        return writer
    }

    private static func message(_ attribute: OTLPAttribute) -> ProtobufWriter {
        var writer = ProtobufWriter()
        writer.text(1, attribute.key)
        writer.message(2, message(attribute.value))
        return writer
    }

    private static func message(_ value: OTLPValue) -> ProtobufWriter {
        var writer = ProtobufWriter()
        switch value {
        case .empty: break
        case .string(let string): writer.text(1, string)
        case .boolean(let boolean): writer.varint(2, boolean ? 1 : 0)
        case .integer(let integer): writer.varint(3, UInt64(bitPattern: integer))
        case .double(let double): writer.fixed(4, double.bitPattern)
        case .array(let values):
            var list = ProtobufWriter()
            for value in values { list.message(1, message(value)) }
            writer.message(5, list)
        case .map(let attributes):
            var list = ProtobufWriter()
            for attribute in attributes { list.message(1, message(attribute)) }
            writer.message(6, list)
        }
        return writer
    }
}

/// Writes fields. Source: Protocol Buffers documentation, "Encoding".
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func varint(_ field: Int, _ value: UInt64) {
        append(UInt64(field) << 3)
        append(value)
    }

    mutating func fixed(_ field: Int, _ value: UInt64) {
        append(UInt64(field) << 3 | 1)
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func text(_ field: Int, _ text: String) { self.field(field, Array(text.utf8)) }

    mutating func bytes(_ field: Int, _ bytes: [UInt8]) { self.field(field, bytes) }

    mutating func message(_ field: Int, _ message: ProtobufWriter) { self.field(field, message.bytes) }

    private mutating func field(_ field: Int, _ content: [UInt8]) {
        append(UInt64(field) << 3 | 2)
        append(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    private mutating func append(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// Reads fields of hostile bytes.
struct ProtobufReader {
    enum Value: Equatable {
        case varint(UInt64)
        case fixed64(UInt64)
        case bytes(ArraySlice<UInt8>)
        case fixed32(UInt32)
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// The next field; nil at the end, and where the bytes are none.
    mutating func next() -> (number: Int, value: Value)? {
        guard let key = varint(), key >> 3 > 0, key >> 3 < 1 << 29 else { return nil }
        let number = Int(key >> 3)
        switch key & 7 {
        case 0: return varint().map { (number, .varint($0)) }
        case 1: return take(8).map { (number, .fixed64($0.reversed().reduce(0) { $0 << 8 | UInt64($1) })) }
        case 2:
            guard let length = varint(), length <= UInt64(rest.count) else { return nil }
            return take(Int(length)).map { (number, .bytes($0)) }
        case 5: return take(4).map { (number, .fixed32($0.reversed().reduce(0) { $0 << 8 | UInt32($1) })) }
        default: return nil
        }
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for place in UInt64(0)..<10 {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << (7 * place)
            if byte < 0x80 { return value }
        }
        return nil
    }
}
