internal import CScan
internal import Glibc

/// The text of JSON strings, as bytes of UTF-8.
public enum JSONString {
    /// Appends a text as a JSON string in quotes. Only quotes, backslashes and control characters are
    /// escaped.
    public static func append(_ text: UnsafeBufferPointer<UInt8>, to json: inout [UInt8]) {
        json.append(UInt8(ascii: "\""))
        // Bytes without escapes are copied in runs.
        var start = 0
        while true {
            let index = firstEscaped(in: text, from: start)
            json.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<index]))
            guard index < text.count else { break }
            let byte = text[index]
            if byte < 0x20 {
                json += "\\u00".utf8
                json += [Hexadecimal.digits[Int(byte >> 4)], Hexadecimal.digits[Int(byte & 15)]]
            } else {
                json += [UInt8(ascii: "\\"), byte]
            }
            start = index + 1
        }
        json.append(UInt8(ascii: "\""))
    }

    /// Index of the first quote, backslash or control character from `start` on; the end if there is no
    /// such byte.
    private static func firstEscaped(in text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        guard let base = text.baseAddress else { return start }
        var index = start
        while index < text.count {
            let byte = base[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return index }
            // `cscan_plain` examines several bytes at once and stops at bytes beyond ASCII, which need
            // no escape.
            let isRun = byte < 0x80 && text.count - index >= CSCAN_WIDTH
            index += isRun ? Int(cscan_plain(base + index)) : 1
        }
        return index
    }

    /// The content between a string's quotes with its escapes resolved.
    ///
    /// It does not validate. Half of a surrogate pair and a truncated escape become U+FFFD; an unknown
    /// escape becomes the character after the backslash.
    public static func decoded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: text.count + decodedExcess) { buffer, count in
            if let start = buffer.baseAddress {
                count = decode(text, to: start)
            }
        }
    }

    /// Most bytes by which a decoded text may be longer than its escaped form: a truncated `\u` at the end
    /// becomes U+FFFD.
    package static let decodedExcess = 1

    /// Writes what `decoded` returns to memory that holds `text.count + decodedExcess` bytes.
    ///
    /// - Returns: the number of bytes that were written.
    package static func decode(
        _ text: UnsafeBufferPointer<UInt8>, to target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        guard let base = text.baseAddress else { return 0 }
        var index = 0
        var written = 0
        while index < text.count {
            // Bytes without escapes are copied in runs.
            let rest = text.count - index
            let found = memchr(base + index, CInt(UInt8(ascii: "\\")), rest)
            let run = found.map { UnsafeRawPointer($0) - UnsafeRawPointer(base + index) } ?? rest
            memcpy(target + written, base + index, run)
            index += run
            written += run
            guard index + 1 < text.count else {
                // A backslash at the very end stands for itself.
                if index < text.count {
                    target[written] = text[index]
                    written += 1
                }
                break
            }
            guard text[index + 1] == UInt8(ascii: "u") else {
                target[written] = meaning(of: text[index + 1]) ?? text[index + 1]
                written += 1
                index += 2
                continue
            }
            for byte in UTF8.encode(scalar(text, &index)) ?? UTF8.encodedReplacementCharacter {
                target[written] = byte
                written += 1
            }
        }
        return written
    }

    /// Most bytes that `escape` writes for one byte of text.
    package static let longestEscape = 6

    /// Writes a text as it stands between the quotes of a JSON string to memory that holds `longestEscape`
    /// bytes for each of its bytes, and 16 more.
    ///
    /// - Returns: the number of bytes that were written.
    package static func escape(
        _ text: UnsafeBufferPointer<UInt8>, to target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        guard let base = text.baseAddress else { return 0 }
        let width = Int(CSCAN_WIDTH)
        var index = 0
        var written = 0
        while index < text.count {
            if text.count - index >= width {
                // Texts full of quotes, such as a line of JSON that becomes a string.
                var more = 0
                index += cscan_escape(base + index, text.count - index, target + written, &more)
                written += more
            }
            if text.count - index >= width {
                // Sixteen bytes are copied whatever they are; those after the first that needs a look are
                // written over.
                memcpy(target + written, base + index, width)
                let plain = Int(cscan_plain(base + index))
                index += plain
                written += plain
                if plain == width { continue }
            }
            guard index < text.count else { break }
            let byte = base[index]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                target[written] = byte
                written += 1
            } else {
                target[written] = UInt8(ascii: "\\")
                written += byte < 0x20 ? control(byte, target + written) : quoted(byte, target + written)
            }
            index += 1
        }
        return written
    }

    /// Writes the rest of the escape of a quote or a backslash; returns the length of the escape.
    @inline(__always)
    private static func quoted(_ byte: UInt8, _ target: UnsafeMutablePointer<UInt8>) -> Int {
        target[1] = byte
        return 2
    }

    /// Writes the rest of the escape of a control character; returns the length of the escape.
    private static func control(_ byte: UInt8, _ target: UnsafeMutablePointer<UInt8>) -> Int {
        target[1] = UInt8(ascii: "u")
        target[2] = UInt8(ascii: "0")
        target[3] = UInt8(ascii: "0")
        target[4] = Hexadecimal.digits[Int(byte >> 4)]
        target[5] = Hexadecimal.digits[Int(byte & 15)]
        return 6
    }

    /// The byte that an escaped byte stands for; nil if it is not an escape, or begins a longer one.
    static func meaning(of escape: UInt8) -> UInt8? {
        switch escape {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): escape
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: nil
        }
    }

    /// The character of the escape `\u….` at `index`, or of a surrogate pair; moves `index` behind it.
    private static func scalar(_ text: UnsafeBufferPointer<UInt8>, _ index: inout Int) -> Unicode.Scalar {
        let first = unit(text, index)
        index = min(index + 6, text.count)
        guard let first else { return "\u{FFFD}" }
        if first & 0xFC00 == 0xD800, let second = unit(text, index), second & 0xFC00 == 0xDC00 {
            index += 6
            return Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + second & 0x3FF) ?? "\u{FFFD}"
        }
        return Unicode.Scalar(first) ?? "\u{FFFD}"
    }

    /// The code unit of the escape `\u….` at `index`; nil if there is no complete one.
    package static func unit(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> UInt32? {
        guard index + 6 <= text.count, text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u")
        else {
            return nil
        }
        var unit: UInt32 = 0
        for byte in text[index + 2..<index + 6] {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"):
                unit = unit << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"):
                unit = unit << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
            default: return nil
            }
        }
        return unit
    }
}
