package import Model

/// Writes a batch as one JSON array of events, for services that accept no NDJSON.
package struct JSONArrayEncoder: BatchEncoder {
    package init() {}

    package var traits: FormatTraits { FormatTraits() }

    /// The lines with commas instead of line feeds, in one pass over the bytes.
    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let feed = UInt8(ascii: "\n")
        return [UInt8](unsafeUninitializedCapacity: lines.count + 2) { body, count in
            body[0] = UInt8(ascii: "[")
            // Inside a string a line feed is always escaped, so each line feed ends an event.
            for (index, byte) in lines.enumerated() {
                body[index + 1] = byte == feed ? UInt8(ascii: ",") : byte
            }
            count = lines.count + 1
            if lines.last == feed {
                count -= 1
            }
            body[count] = UInt8(ascii: "]")
            count += 1
        }
    }
}
