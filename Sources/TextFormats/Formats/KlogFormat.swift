/// klog and glog, of Kubernetes: `W1129 10:00:00.600000    9079 controller.go:77] message`; glog writes the
/// year too, `W20261129`. Source: https://github.com/kubernetes/klog/blob/main/klog.go (formatHeader), and
/// `log_year_in_prefix` in https://github.com/google/glog.
enum KlogFormat {
    /// Whether a line begins a record, by a letter, four or eight digits and a time.
    static func begins(_ line: Bytes) -> Bool {
        guard line.count > 20, severity(line[0]) != nil, line[1] &- 0x30 < 10, line[4] &- 0x30 < 10 else {
            return false
        }
        return line[5] == UInt8(ascii: " ") && line[8] == UInt8(ascii: ":")
            || line[8] &- 0x30 < 10 && line[9] == UInt8(ascii: " ") && line[12] == UInt8(ascii: ":")
    }

    /// The severity of a letter; nil for another letter.
    private static func severity(_ letter: UInt8) -> StaticString? {
        switch letter {
        case UInt8(ascii: "D"): "debug"
        case UInt8(ascii: "I"): "info"
        case UInt8(ascii: "W"): "warn"
        case UInt8(ascii: "E"): "error"
        case UInt8(ascii: "F"): "fatal"
        default: nil
        }
    }

    /// Reads a record.
    static func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        guard let severity = severity(reader.next) else { return reader.fail("I, W, E or F") }
        reader.p += 1
        writer.word("severity", severity)
        guard reader.time(words: 2, into: &writer) else { return false }
        reader.skipBlanks()
        guard let thread = reader.digits(), reader.expect(" ") else { return false }
        writer.number("thread", thread)
        guard let source = reader.until(UInt8(ascii: "]")),
            let colon = source.lastIndex(of: UInt8(ascii: ":"))
        else {
            return reader.fail("file:line]")
        }
        writer.text("file", source.prefix(colon))
        writer.number("line", source.dropping(colon + 1))
        _ = reader.skip(" ")
        writer.text("message", reader.rest)
        return true
    }
}
