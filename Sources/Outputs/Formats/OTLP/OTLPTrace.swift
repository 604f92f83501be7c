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
    init?(parent: String) {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].utf8.count == 2, parts[0] != "ff", parts[0].allSatisfy(\.isHexDigit),
            parts[0] != "00" || parts.count == 4, parts[3].utf8.count == 2,
            let flags = UInt32(parts[3], radix: 16),
            let trace = OTLPTrace.identifier(String(parts[1]), bytes: 16),
            let span = OTLPTrace.identifier(String(parts[2]), bytes: 8)
        else { return nil }
        traceID = trace
        spanID = span
        self.flags = flags
    }

    /// An id in hexadecimal digits, not all 0 (which means no id); nil for anything else.
    static func identifier(_ text: String?, bytes: Int) -> [UInt8]? {
        guard let text, text.utf8.count == 2 * bytes else { return nil }
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == 2 * bytes, digits.contains(where: { $0 != 0 }) else { return nil }
        return (0..<bytes).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
    }

    /// A span's id in decimal digits; nil for anything else.
    static func decimalIdentifier(_ text: String) -> [UInt8]? {
        guard let number = UInt64(text), number > 0 else { return nil }
        return (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// Flags in hexadecimal digits, as a number or as a truth value; nil for anything else.
    static func flags(_ value: JSONSlice) -> UInt32? {
        if let isSampled = value.boolean { return isSampled ? 1 : 0 }
        if let number = value.integer { return (0...255).contains(number) ? UInt32(number) : nil }
        guard let text = value.string, (1...2).contains(text.utf8.count) else { return nil }
        return UInt32(text, radix: 16)
    }
}
