internal import EventLoops

/// The Linux audit log, lines of `key=value` behind a type and a time.
enum AuditdFormat {
    /// Reads a record of the audit log: `type=SYSCALL msg=audit(1795946400.243:24287): arch=c000003e
    /// comm="cat"`. Events of several lines stay several records with the same `serial`. Source: auditd(8),
    /// and the audit event fields of https://github.com/linux-audit/audit-documentation.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // `node=` is there if `name_format` is set in auditd.conf.
        if reader.skip("node=") {
            writer.text("node", reader.word())
        }
        _ = reader.skip(" ")
        guard reader.expect("type=") else { return false }
        writer.text("type", reader.word())
        guard reader.expect(" msg=audit("), let time = reader.until(UInt8(ascii: ":")) else { return false }
        guard let seconds = instant(time) else { return reader.fail("a time") }
        writer.time(seconds)
        guard let serial = reader.digits(), reader.expect("):") else { return false }
        writer.number("serial", serial)
        // SELinux's decision is words before the pairs: `avc:  denied  { read } for  pid=`.
        let decision = Bytes(reader.p, decisionLength(reader.rest))
        if !decision.isEmpty {
            writer.text("message", decision.trimmed)
            reader.p = decision.end
        }
        while true {
            // An enriched record (`log_format = ENRICHED` in auditd.conf) has a second list, after the byte
            // 0x1D.
            while !reader.isAtEnd, reader.next <= 0x20 { reader.p += 1 }
            guard !reader.isAtEnd else { return true }
            let key = reader.pairKey()
            guard !key.isEmpty else { return reader.fail("a key") }
            // A word without `=` is not part of a pair and is skipped.
            guard reader.skip("=") else { continue }
            guard let value = value(&reader) else { return false }
            // The pairs of an enriched address are in braces, `SADDR={ saddr_fam=inet laddr=192.0.2.7 }`, and
            // become members as the others do.
            guard !value.equals("{") else { continue }
            writer.member(key, value)
        }
    }

    /// Length of the words before the first pair; 0 if the record begins with a pair, as most do.
    private static func decisionLength(_ text: Bytes) -> Int {
        let end = text.firstIndex(of: UInt8(ascii: "=")) ?? text.count
        var length = end
        // The name of the first pair is the word before its `=`.
        while end < text.count, length > 0, text[length - 1] > 0x20 { length -= 1 }
        return text.prefix(length).trimmed.isEmpty ? 0 : length
    }

    /// Reads a value, without the quotes around it. The audit log has no escapes: it writes special bytes as
    /// hexadecimal digits.
    private static func value(_ reader: inout LineReader) -> Bytes? {
        let quote = reader.next
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return reader.pairValue() }
        reader.p += 1
        return reader.until(quote)
    }

    /// The instant of `1795946400.243`: at most twelve digits, a point and three digits.
    private static func instant(_ text: Bytes) -> Timestamp? {
        guard let dot = text.firstIndex(of: UInt8(ascii: ".")), dot <= 12, text.prefix(dot).isDigits,
            text.count - dot == 4, text.dropping(dot + 1).isDigits
        else { return nil }
        // bounded: twelve digits, and three.
        return Timestamp(
            seconds: text.prefix(dot).buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) },
            nanoseconds: text.dropping(dot + 1).buffer.reduce(0) { $0 * 10 + Int($1 &- 0x30) } * 1_000_000)
    }
}
