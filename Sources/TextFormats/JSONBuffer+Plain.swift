internal import CScan
internal import Glibc

/// The fast way for text that needs no escapes: the end of a value is found while the value is copied,
/// sixteen bytes at a time.
///
/// Each function returns nil, and has written nothing, for what it does not read. The caller then reads the
/// same bytes in the general way, so both must agree on what they write. All need memory for which `loads`
/// is true.
extension JSONBuffer {
    /// Bytes of one load.
    private static let width = 16

    /// Whether sixteen bytes may be loaded from each byte of a record, and from its end. False for the last
    /// record of a block.
    @inline(__always)
    func loads(upTo end: UnsafePointer<UInt8>) -> Bool { readable - end >= JSONBuffer.width }

    /// Writes the value from `start` to the first `mark` as a member; nothing if it is empty or `-`.
    ///
    /// - Parameters:
    ///   - name: the name as in a `Template`, of at most `shortCopy` bytes; empty for a value that is only
    ///     stepped over.
    ///   - isNumber: whether the value is written without quotes; text that is not a number is not read here.
    ///   - end: the end of the record, before which the mark must be.
    /// - Returns: the address of the mark.
    @inline(__always)
    mutating func plainField(
        _ name: Bytes, isNumber: Bool, from start: UnsafePointer<UInt8>, to mark: UInt8,
        before end: UnsafePointer<UInt8>
    ) -> UnsafePointer<UInt8>? {
        // The name, quotes and the comma, and what the last load brings beyond the value.
        reserve(JSONBuffer.shortCopy + (end - start) + 2 * JSONBuffer.width)
        memcpy(out, name.start, JSONBuffer.shortCopy)
        var target = out + name.count
        if !isNumber {
            target[0] = UInt8(ascii: "\"")
            target += 1
        }
        guard let found = copyPlain(from: start, to: mark, before: end, &target) else { return nil }
        let value = Bytes(start, found - start)
        guard !name.isEmpty, !value.isEmpty, value.count > 1 || value[0] != UInt8(ascii: "-") else {
            return found
        }
        if isNumber {
            guard value.isNumber else { return nil }
        } else {
            target[0] = UInt8(ascii: "\"")
            target += 1
        }
        target[0] = UInt8(ascii: ",")
        out = target + 1
        return found
    }

    /// Writes a value of the record that was found to be plain text, as a member.
    ///
    /// - Parameter name: the name in quotes, the colon and the value's opening quote.
    @inline(__always)
    mutating func plainText(_ name: StaticString, _ value: Bytes) {
        let length = name.utf8CodeUnitCount
        reserve(length + value.count + 2 * JSONBuffer.width)
        memcpy(out, name.utf8Start, length)
        out += length
        var copied = 0
        while copied < value.count {
            memcpy(out + copied, value.start + copied, JSONBuffer.width)
            copied += JSONBuffer.width
        }
        out += value.count
        out[0] = UInt8(ascii: "\"")
        out[1] = UInt8(ascii: ",")
        out += 2
    }

    /// Writes `key=value` or `key="value"` as a member. A blank or the end of the record must follow it.
    ///
    /// - Returns: where the member is, and the address after the value and its quote.
    @inline(__always)
    mutating func plainPair(
        from start: UnsafePointer<UInt8>, before end: UnsafePointer<UInt8>
    ) -> (member: WrittenMember, after: UnsafePointer<UInt8>)? {
        // Six bytes of quotes, the colon and the comma, and what the last load brings beyond the value.
        reserve((end - start) + 3 * JSONBuffer.width)
        let key = mark
        let begin = out
        out[0] = UInt8(ascii: "\"")
        var target = out + 1
        let equals = UInt8(ascii: "=")
        guard let sign = copyPlain(from: start, to: equals, before: end, endsAtBlank: true, &target),
            sign > start, sign.pointee == equals
        else { return nil }
        target[0] = UInt8(ascii: "\"")
        target[1] = UInt8(ascii: ":")
        target[2] = UInt8(ascii: "\"")
        let value = key + (target + 2 - begin)
        target += 3
        var p = sign + 1
        if p < end, p.pointee == UInt8(ascii: "\"") {
            guard let quote = copyPlain(from: p + 1, to: UInt8(ascii: "\""), before: end, &target) else {
                return nil
            }
            p = quote + 1
            guard p == end || p.pointee == UInt8(ascii: " ") else { return nil }
        } else {
            p = plainEnd(from: p, to: UInt8(ascii: " "), before: end, &target)
            if p >= end {
                // The record ends with the value.
                target -= p - end
                p = end
            } else if p.pointee != UInt8(ascii: " ") {
                return nil
            }
        }
        target[0] = UInt8(ascii: "\"")
        target[1] = UInt8(ascii: ",")
        out = target + 2
        return (WrittenMember(key: key, value: value, end: mark - 1), p)
    }

    /// Copies plain text up to a mark; nil if something else ends it. `target` is behind the text then.
    @inline(__always)
    private func copyPlain(
        from start: UnsafePointer<UInt8>, to mark: UInt8, before end: UnsafePointer<UInt8>,
        endsAtBlank: Bool = false, _ target: inout UnsafeMutablePointer<UInt8>
    ) -> UnsafePointer<UInt8>? {
        let p = plainEnd(from: start, to: mark, before: end, endsAtBlank: endsAtBlank, &target)
        return p < end && p.pointee == mark ? p : nil
    }

    /// Copies plain text up to a mark, another byte that is not plain, or the end, which the result may be
    /// beyond by less than one load.
    @inline(__always)
    private func plainEnd(
        from start: UnsafePointer<UInt8>, to mark: UInt8, before end: UnsafePointer<UInt8>,
        endsAtBlank: Bool = false, _ target: inout UnsafeMutablePointer<UInt8>
    ) -> UnsafePointer<UInt8> {
        var p = start
        while p < end {
            var stops = cscan_stops(p) | cscan_equal(p, mark)
            if endsAtBlank {
                stops |= cscan_equal(p, UInt8(ascii: " "))
            }
            memcpy(target, p, JSONBuffer.width)
            let plain = (stops | 1 << 16).trailingZeroBitCount
            p += plain
            target += plain
            guard plain == JSONBuffer.width else { break }
        }
        return p
    }
}
