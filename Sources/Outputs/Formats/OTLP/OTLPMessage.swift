internal import Model

/// A message of the protocol, which is written in protocol buffers or as the protocol's JSON.
///
/// Source: opentelemetry-proto v1, `logs.proto`, `common.proto`, `logs_service.proto`: the fields' numbers are theirs, and
/// the names as JSON has them; Protocol Buffers documentation, "Encoding"; OTLP, "JSON Protobuf Encoding".
struct OTLPMessage {
    enum Value {
        case text(String)
        case number(Int)
        /// In JSON a string, as all of 64 bits.
        case integer(Int64)
        /// The same, always eight bytes.
        case fixed(UInt64)
        case double(Double)
        case boolean(Bool)
        /// A trace's or span's, in hexadecimal digits where it is JSON, unlike other bytes.
        case identifier([UInt8])
        case message(OTLPMessage)
        /// A field that is there as often as there are messages.
        case messages([OTLPMessage])
    }

    /// In the order of their numbers.
    var fields: [(number: UInt64, name: StaticString, value: Value)] = []

    init(_ fields: (UInt64, StaticString, Value)...) { self.fields = fields }

    mutating func add(_ number: UInt64, _ name: StaticString, _ value: Value) { fields.append((number, name, value)) }

    func write(to text: inout JSONText) {
        text.raw("{")
        for field in fields {
            text.raw("\"")
            text.raw(field.name)
            text.raw("\":")
            switch field.value {
            case .text(let string): text.string(string)
            case .number(let number): text.number(number)
            case .integer(let integer): text.string(String(integer))
            case .fixed(let number): text.string(String(number))
            case .double(let double): text.raw("\(double)".utf8)
            case .boolean(let boolean): text.raw(boolean ? "true" : "false")
            case .identifier(let bytes): text.string(Hexadecimal.text(bytes))
            case .message(let message): message.write(to: &text)
            case .messages(let messages):
                text.raw("[")
                for message in messages {
                    message.write(to: &text)
                    text.raw(",")
                }
                text.close("]")
            }
            text.raw(",")
        }
        text.close("}")
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        func append(_ number: UInt64) {
            var rest = number
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        func append(_ field: UInt64, varint: UInt64) {
            append(field << 3)
            append(varint)
        }
        func append(_ field: UInt64, fixed: UInt64) {
            append(field << 3 | 1)
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: fixed >> shift))
            }
        }
        func append(_ field: UInt64, content: [UInt8]) {
            append(field << 3 | 2)
            append(UInt64(content.count))
            bytes.append(contentsOf: content)
        }
        for (field, _, value) in fields {
            switch value {
            case .text(let text): append(field, content: Array(text.utf8))
            case .number(let number): append(field, varint: UInt64(number))
            case .integer(let integer): append(field, varint: UInt64(bitPattern: integer))
            case .fixed(let number): append(field, fixed: number)
            case .double(let double): append(field, fixed: double.bitPattern)
            case .boolean(let boolean): append(field, varint: boolean ? 1 : 0)
            case .identifier(let content): append(field, content: content)
            case .message(let message): append(field, content: message.bytes)
            case .messages(let messages): for message in messages { append(field, content: message.bytes) }
            }
        }
        return bytes
    }
}
