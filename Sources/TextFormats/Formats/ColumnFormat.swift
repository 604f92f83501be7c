/// The formats `csv` and `tsv`: fields in the order of the columns that the settings name. CSV has quotes by
/// RFC 4180; TSV has neither quotes nor escapes.
struct ColumnFormat: Sendable {
    /// The byte between fields: a comma or a tab.
    private let separator: UInt8
    /// Names of the columns, in quotes and with a colon.
    private let names: [[UInt8]]
    /// The names as a line of the file may have them.
    private let plainNames: [[UInt8]]
    /// For each column, whether `numbers` has its name.
    private let isNumber: [Bool]

    /// A format for columns.
    init(_ separator: UInt8, _ columns: [String], numbers: [String]) {
        self.separator = separator
        names = columns.map { RecordWriter.quotedName($0) }
        plainNames = columns.map { Array($0.utf8) }
        isNumber = columns.map { numbers.contains($0) }
    }

    /// Names of the members of a record.
    var memberNames: [[UInt8]] { names.map { RecordWriter.name(quoted: $0) } }

    /// Whether the fields of a line are the names of the columns, in quotes or not. The only column of a line
    /// may have its name as a value.
    func isHeader(_ line: Bytes) -> Bool {
        guard plainNames.count > 1 else { return false }
        var reader = LineReader(line)
        for (index, name) in plainNames.enumerated() {
            if index > 0 {
                guard reader.next == separator else { return false }
                reader.p += 1
            }
            let isQuoted = separator == UInt8(ascii: ",") && reader.skip("\"")
            guard reader.skip(name), !isQuoted || reader.skip("\"") else { return false }
        }
        return reader.isAtEnd
    }

    /// Reads a record, which must have exactly one field for each column. An empty text is written as one, an
    /// empty number is left out.
    func parse(_ reader: inout LineReader, into writer: inout RecordWriter) -> Bool {
        // Fields are written as they are read: a record that turns out to be wrong is discarded by the
        // caller.
        for index in names.indices {
            if index > 0 {
                guard reader.next == separator, !reader.isAtEnd else {
                    return reader.fail(separator == UInt8(ascii: ",") ? "," : "a tab")
                }
                reader.p += 1
            }
            // A quote counts only at the beginning of a field, and only for CSV.
            if reader.next == UInt8(ascii: "\""), separator == UInt8(ascii: ",") {
                guard quoted(names[index], &reader, into: &writer) else { return false }
                continue
            }
            let rest = reader.rest
            let value = rest.prefix(rest.firstIndex(of: separator) ?? rest.count)
            reader.p = value.end
            if isNumber[index] {
                if !value.isEmpty {
                    writer.number(quoted: names[index], value)
                }
            } else {
                writer.member(quoted: names[index], value)
            }
        }
        // A line with more fields than columns fails: values would be lost without a sign.
        return reader.isAtEnd ? true : reader.fail("the end of the line: columns has fewer names")
    }

    /// Reads a field in quotes, in which two quotes stand for one (RFC 4180, section 2.7). The name is
    /// written first, so that no copy of the value is needed; it is a text even if `numbers` has its name.
    private func quoted(_ name: [UInt8], _ reader: inout LineReader, into writer: inout RecordWriter) -> Bool
    {
        reader.p += 1
        writer.json.raw(name)
        writer.json.openString()
        // Each piece ends at a quote; two quotes in a row are one quote of the value.
        while let piece = reader.until(UInt8(ascii: "\"")) {
            writer.json.content(piece)
            guard reader.next == UInt8(ascii: "\""), !reader.isAtEnd else {
                writer.json.closeString()
                return true
            }
            writer.json.content(reader.rest.prefix(1))
            reader.p += 1
        }
        return false
    }
}
