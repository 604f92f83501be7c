internal import Model

/// A message of the protocol, to be written as protocol buffers or as the protocol's JSON.
///
/// Source: opentelemetry-proto v1, `logs.proto`, `common.proto`, `logs_service.proto` for field numbers and
/// JSON names; Protocol Buffers documentation, "Encoding"; OTLP, "JSON Protobuf Encoding".
struct OTLPMessage {
    /// A field's value by its type in the protocol, which decides how each encoding writes it.
    enum Value {
        case text(String)
        /// A small whole number (an enumeration), written as a varint.
        case number(Int)
        /// A signed number of 64 bits, written as a varint; in JSON a string, because readers round larger
        /// numbers.
        case integer(Int64)
        /// An unsigned number of 64 bits, always eight bytes; in JSON a string.
        case fixed(UInt64)
        /// An unsigned number of 32 bits, always four bytes.
        case fixed32(UInt32)
        case double(Double)
        case boolean(Bool)
        /// Id of a trace or span; in JSON hexadecimal digits, while the protocol's other bytes would be
        /// Base64.
        case identifier([UInt8])
        case message(OTLPMessage)
        /// A repeated field: written once for each message.
        case messages([OTLPMessage])
    }

    /// The fields, in the order of their numbers.
    var fields: [(number: UInt64, name: StaticString, value: Value)] = []

    init(_ fields: (UInt64, StaticString, Value)...) { self.fields = fields }

    mutating func add(_ number: UInt64, _ name: StaticString, _ value: Value) {
        fields.append((number, name, value))
    }

    /// Writes the message as JSON.
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
            case .fixed32(let number): text.number(number)
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

    /// The message as protocol buffers.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        // A varint: seven bits in each byte, the lowest first; the top bit says that more follow.
        func append(_ number: UInt64) {
            var rest = number
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        // Each field begins with its number and its wire type: 0 for a varint, 1 for eight bytes, 5 for
        // four bytes, 2 for a length with content.
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
        func append(_ field: UInt64, fixed32: UInt32) {
            append(field << 3 | 5)
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: fixed32 >> shift))
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
            case .fixed32(let number): append(field, fixed32: number)
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
