internal import Model

/// Where a message of the protocol is written: protocol buffers or the protocol's JSON. The fields of a
/// message are written in the order of their numbers.
///
/// Source: opentelemetry-proto v1, `logs.proto`, `common.proto`, `logs_service.proto` for field numbers and
/// JSON names; Protocol Buffers documentation, "Encoding"; OTLP, "JSON Protobuf Encoding".
protocol OTLPSink: ~Copyable {
    /// What was written.
    var out: BodyBuffer { get set }

    /// Begins a message in a field.
    ///
    /// - Parameter length: about how many bytes it will have; a good guess saves moving them.
    mutating func open(_ field: UInt8, _ name: StaticString, about length: Int) -> OTLPMark
    mutating func close(_ mark: OTLPMark)

    /// Begins a repeated field.
    mutating func openList(_ name: StaticString)
    mutating func closeList()
    /// Begins a message in a repeated field.
    mutating func openItem(_ field: UInt8, about length: Int) -> OTLPMark

    /// Writes UTF-8.
    mutating func text(_ field: UInt8, _ name: StaticString, utf8: UnsafeBufferPointer<UInt8>)
    /// Writes the text of a string of an event.
    mutating func text(_ field: UInt8, _ name: StaticString, _ text: TextBytes)
    /// Writes a small whole number.
    mutating func number(_ field: UInt8, _ name: StaticString, _ number: Int)
    /// Writes a signed number of 64 bits; in JSON a string, because readers round larger numbers.
    mutating func integer(_ field: UInt8, _ name: StaticString, _ integer: Int64)
    /// Writes an unsigned number of eight bytes; in JSON a string.
    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt64)
    /// Writes an unsigned number of four bytes.
    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt32)
    mutating func double(_ field: UInt8, _ name: StaticString, _ double: Double)
    mutating func boolean(_ field: UInt8, _ name: StaticString, _ boolean: Bool)
    /// Writes the id of a trace or span; in JSON hexadecimal digits, while the protocol's other bytes would
    /// be Base64.
    mutating func identifier(_ field: UInt8, _ name: StaticString, _ bytes: [UInt8])

    /// Ends the request.
    mutating func finish()
}

/// Where a message begins that is not finished.
struct OTLPMark {
    /// Offset of its content.
    let start: Int
    /// Bytes before it that are kept for its length.
    let room: Int
}

extension OTLPSink where Self: ~Copyable {
    /// Writes UTF-8 of memory that is not kept.
    mutating func text(_ field: UInt8, _ name: StaticString, _ bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { text(field, name, utf8: $0) }
    }
}

/// Writes protocol buffers. A message's length stands before it and is known only afterwards, so room is
/// kept for it; where the guess was wrong, the message is moved.
struct OTLPBinarySink: OTLPSink, ~Copyable {
    var out: BodyBuffer

    init(_ out: consuming BodyBuffer) { self.out = out }

    /// What was written.
    consuming func written() -> BodyBuffer { out }

    @inline(__always)
    mutating func open(_ field: UInt8, _ name: StaticString, about length: Int) -> OTLPMark {
        openItem(field, about: length)
    }

    @inline(__always)
    mutating func openItem(_ field: UInt8, about length: Int) -> OTLPMark {
        out.byte(field &<< 3 | 2)
        let room = OTLPBinarySink.width(UInt64(truncatingIfNeeded: length))
        out.reserve(room)
        out.wrote(room)
        return OTLPMark(start: out.count, room: room)
    }

    @inline(__always)
    mutating func close(_ mark: OTLPMark) {
        let length = out.count &- mark.start
        let width = OTLPBinarySink.width(UInt64(truncatingIfNeeded: length))
        if width != mark.room {
            out.move(from: mark.start, by: width - mark.room)
        }
        out.varint(UInt64(truncatingIfNeeded: length), at: mark.start &- mark.room)
    }

    mutating func openList(_ name: StaticString) {}
    mutating func closeList() {}
    mutating func finish() {}

    @inline(__always)
    mutating func text(_ field: UInt8, _ name: StaticString, utf8 text: UnsafeBufferPointer<UInt8>) {
        key(field &<< 3 | 2, varint: UInt64(truncatingIfNeeded: text.count))
        if let start = text.baseAddress {
            out.append(start, text.count)
        }
    }

    @inline(__always)
    mutating func text(_ field: UInt8, _ name: StaticString, _ text: TextBytes) {
        guard text.isEscaped else { return self.text(field, name, utf8: text.buffer) }
        let mark = openItem(field, about: text.count)
        out.decoded(text.buffer)
        close(mark)
    }

    mutating func number(_ field: UInt8, _ name: StaticString, _ number: Int) {
        key(field &<< 3, varint: UInt64(truncatingIfNeeded: number))
    }

    @inline(__always)
    mutating func integer(_ field: UInt8, _ name: StaticString, _ integer: Int64) {
        key(field &<< 3, varint: UInt64(bitPattern: integer))
    }

    @inline(__always)
    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt64) {
        out.byte(field &<< 3 | 1)
        out.reserve(8)
        UnsafeMutableRawPointer(out.cursor).storeBytes(of: number.littleEndian, as: UInt64.self)
        out.wrote(8)
    }

    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt32) {
        out.byte(field &<< 3 | 5)
        out.reserve(4)
        UnsafeMutableRawPointer(out.cursor).storeBytes(of: number.littleEndian, as: UInt32.self)
        out.wrote(4)
    }

    mutating func double(_ field: UInt8, _ name: StaticString, _ double: Double) {
        fixed(field, name, double.bitPattern)
    }

    mutating func boolean(_ field: UInt8, _ name: StaticString, _ boolean: Bool) {
        key(field &<< 3, varint: boolean ? 1 : 0)
    }

    mutating func identifier(_ field: UInt8, _ name: StaticString, _ bytes: [UInt8]) {
        text(field, name, bytes)
    }

    /// Writes a field's number with its wire type (0 for a varint, 1 for eight bytes, 2 for a length with
    /// content, 5 for four bytes), and a varint.
    @inline(__always)
    private mutating func key(_ key: UInt8, varint value: UInt64) {
        out.byte(key)
        let width = OTLPBinarySink.width(value)
        out.reserve(width)
        out.wrote(width)
        out.varint(value, at: out.count &- width)
    }

    /// Bytes of a varint: seven bits in each.
    @inline(__always)
    private static func width(_ value: UInt64) -> Int {
        value < 0x80 ? 1 : (70 &- (value | 1).leadingZeroBitCount) / 7
    }
}

extension BodyBuffer {
    /// Writes a varint over bytes that are counted already: seven bits in each byte, the lowest first; the
    /// top bit says that more follow.
    @inline(__always)
    fileprivate mutating func varint(_ value: UInt64, at offset: Int) {
        var rest = value
        var index = offset
        while rest >= 0x80 {
            start[index] = UInt8(truncatingIfNeeded: rest) | 0x80
            rest &>>= 7
            index &+= 1
        }
        start[index] = UInt8(truncatingIfNeeded: rest)
    }
}

/// Writes the protocol's JSON. A comma stands after each field and item; the end of a message takes the last
/// one back.
struct OTLPJSONSink: OTLPSink, ~Copyable {
    var out: BodyBuffer

    init(_ out: consuming BodyBuffer) {
        self.out = out
        self.out.byte(UInt8(ascii: "{"))
    }

    /// What was written.
    consuming func written() -> BodyBuffer { out }

    mutating func finish() {
        takeBackComma()
        out.byte(UInt8(ascii: "}"))
    }

    mutating func open(_ field: UInt8, _ name: StaticString, about length: Int) -> OTLPMark {
        key(name)
        return openItem(field, about: length)
    }

    mutating func openItem(_ field: UInt8, about length: Int) -> OTLPMark {
        out.byte(UInt8(ascii: "{"))
        return OTLPMark(start: out.count, room: 0)
    }

    mutating func close(_ mark: OTLPMark) { end("},") }

    mutating func openList(_ name: StaticString) {
        key(name)
        out.byte(UInt8(ascii: "["))
    }

    mutating func closeList() { end("],") }

    mutating func text(_ field: UInt8, _ name: StaticString, utf8: UnsafeBufferPointer<UInt8>) {
        key(name)
        out.quoted(utf8)
        out.byte(UInt8(ascii: ","))
    }

    mutating func text(_ field: UInt8, _ name: StaticString, _ text: TextBytes) {
        key(name)
        out.quoted(text)
        out.byte(UInt8(ascii: ","))
    }

    mutating func number(_ field: UInt8, _ name: StaticString, _ number: Int) {
        key(name)
        out.number(Int64(number))
        out.byte(UInt8(ascii: ","))
    }

    mutating func integer(_ field: UInt8, _ name: StaticString, _ integer: Int64) {
        key(name)
        out.byte(UInt8(ascii: "\""))
        out.number(integer)
        out.append("\"," as StaticString)
    }

    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt64) {
        // Times are within the positive half.
        integer(field, name, Int64(clamping: number))
    }

    mutating func fixed(_ field: UInt8, _ name: StaticString, _ number: UInt32) {
        self.number(field, name, Int(number))
    }

    mutating func double(_ field: UInt8, _ name: StaticString, _ double: Double) {
        key(name)
        out.append("\(double)" as String)
        out.byte(UInt8(ascii: ","))
    }

    mutating func boolean(_ field: UInt8, _ name: StaticString, _ boolean: Bool) {
        key(name)
        out.append(boolean ? "true," : "false," as StaticString)
    }

    mutating func identifier(_ field: UInt8, _ name: StaticString, _ bytes: [UInt8]) {
        text(field, name, Array(Hexadecimal.text(bytes).utf8))
    }

    private mutating func key(_ name: StaticString) {
        out.byte(UInt8(ascii: "\""))
        out.append(name)
        out.append("\":" as StaticString)
    }

    private mutating func end(_ text: StaticString) {
        takeBackComma()
        out.append(text)
    }

    private mutating func takeBackComma() {
        if out.bytes.last == UInt8(ascii: ",") {
            out.cut(to: out.count - 1)
        }
    }
}
