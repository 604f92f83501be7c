/// The trace, the span and the flags of a record.
///
/// Source: W3C, "Trace Context", `traceparent`; opentelemetry-proto v1, `logs.proto`, fields `trace_id`,
/// `span_id` and `flags`.
struct OTLPTrace {
    /// 16 bytes; empty if unknown.
    var traceID: [UInt8] = []
    /// 8 bytes; empty if unknown.
    var spanID: [UInt8] = []
    /// Flags, whose lowest bit says that the trace was sampled; nil if the event has none.
    var flags: UInt32?

    init(traceID: [UInt8] = []) { self.traceID = traceID }

    /// Reads a header `00-TRACE-SPAN-FLAGS`; nil for anything else. Later versions may append further
    /// parts, which are ignored, as "Versioning of traceparent" demands.
    init?(parent: TextBytes) {
        let parts = parent.string.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[0].allSatisfy(\.isHexDigit),
            parts[0] != "00" || parts.count == 4, parts[3].utf8.count == 2,
            let flags = UInt32(parts[3], radix: 16),
            let trace = OTLPTrace.identifier(Array(parts[1].utf8), bytes: 16),
            let span = OTLPTrace.identifier(Array(parts[2].utf8), bytes: 8)
        else { return nil }
        traceID = trace
        spanID = span
        self.flags = flags
    }

    /// An id in hexadecimal digits, not all 0 (which means no id); nil for anything else.
    static func identifier(_ value: JSONBytes, bytes: Int) -> [UInt8]? {
        guard let text = value.text else { return nil }
        if text.isEscaped { return identifier(text.decoded, bytes: bytes) }
        return text.count == 2 * bytes ? identifier(Array(text.buffer), bytes: bytes) : nil
    }

    private static func identifier(_ text: [UInt8], bytes: Int) -> [UInt8]? {
        guard text.count == 2 * bytes else { return nil }
        var found: [UInt8] = []
        found.reserveCapacity(bytes)
        var isZero = true
        for index in stride(from: 0, to: text.count, by: 2) {
            guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
            isZero = isZero && high | low == 0
            found.append(high << 4 | low)
        }
        return isZero ? nil : found
    }

    /// The value of a hexadecimal digit in either case; nil for any other byte.
    private static func digit(_ byte: UInt8) -> UInt8? {
        let digit = byte &- UInt8(ascii: "0")
        if digit < 10 { return digit }
        let letter = (byte | 0x20) &- UInt8(ascii: "a")
        return letter < 6 ? letter + 10 : nil
    }

    /// A span's id in decimal digits, as a text or a number; nil for anything else.
    static func decimalIdentifier(_ value: JSONBytes) -> [UInt8]? {
        guard let number = UInt64(value.words.string), number > 0 else { return nil }
        return (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// Flags in hexadecimal digits, as a number or as a truth value; nil for anything else.
    static func flags(_ value: JSONBytes) -> UInt32? {
        if let isSampled = value.boolean { return isSampled ? 1 : 0 }
        if let number = value.integer { return (0...255).contains(number) ? UInt32(number) : nil }
        guard let text = value.text?.string, (1...2).contains(text.utf8.count) else { return nil }
        return UInt32(text, radix: 16)
    }
}
