/// Reads and prints durations: `"6s"`, `"1h30m"`, `"0.5s"`.
public enum DurationText {
    /// Units from the largest to the smallest.
    static let units: [(name: String, nanoseconds: Int64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ]

    /// Reads numbers with units (d, h, m, s, ms), in any order, perhaps after a minus; nil for other texts,
    /// and beyond 292 years, which nanoseconds in 64 bits have room for.
    public static func parse(_ text: String) -> Duration? {
        var rest = Substring(text)
        let negative = rest.first == "-"
        if negative {
            rest.removeFirst()
        }
        // 0 needs no unit.
        if rest == "0" { return .zero }
        var total: Int64 = 0
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            guard let number = DecimalNumber(prefixOf: &rest) else { return nil }
            let name = rest.prefix { $0.isLetter }
            guard let unit = units.first(where: { $0.name == name }),
                let part = number.times(unit.nanoseconds)
            else { return nil }
            rest = rest.dropFirst(name.count)
            let (sum, overflow) = total.addingReportingOverflow(part)
            guard !overflow else { return nil }
            total = sum
        }
        return .nanoseconds(negative ? -total : total)
    }

    /// The shortest text that `parse` reads as that duration, in whole milliseconds.
    public static func print(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = attoseconds / 1_000_000_000_000_000
        // bounded: the configuration holds no duration of more than ten years.
        if milliseconds != 0 { return "\(seconds * 1_000 + milliseconds)ms" }
        guard seconds != 0 else { return "0s" }
        // Only a unit that divides the seconds: 90 seconds are `90s`, not `1m30s`, which is harder to
        // compare.
        for unit in units where seconds % max(1, unit.nanoseconds / 1_000_000_000) == 0 {
            return "\(seconds / (unit.nanoseconds / 1_000_000_000))\(unit.name)"
        }
        return "\(seconds)s"
    }
}

/// Reads and prints sizes: `"10MB"` is 10,000,000 bytes, `"10MiB"` 10,485,760.
public enum SizeText {
    /// Units from the largest to the smallest; `kB` comes after `KB`, so that sizes are printed with the
    /// latter.
    static let units: [(name: String, bytes: Int64)] = [
        ("TiB", 1 << 40), ("TB", 1_000_000_000_000), ("GiB", 1 << 30), ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000), ("KiB", 1 << 10), ("KB", 1_000), ("kB", 1_000), ("B", 1),
    ]

    /// Reads a number with a unit (B, kB to TB, KiB to TiB); nil for other texts, for fractions of a byte,
    /// and beyond 64 bits.
    public static func parse(_ text: String) -> Int? {
        var rest = Substring(text)
        if rest == "0" { return 0 }
        guard let number = DecimalNumber(prefixOf: &rest), let unit = units.first(where: { $0.name == rest })
        else { return nil }
        return number.times(unit.bytes, exactly: true).map { Int($0) }
    }

    /// The text with the largest unit that `parse` reads as exactly that number of bytes: 1048576 is `1MiB`,
    /// 1000000 is `1MB`.
    public static func print(_ bytes: Int) -> String {
        guard bytes != 0 else { return "0B" }
        let unit = units.first { bytes % Int($0.bytes) == 0 } ?? ("B", 1)
        return "\(bytes / Int(unit.bytes))\(unit.name)"
    }
}

/// A decimal number, kept exactly: as a double, 0.1s could become 99 ms.
private struct DecimalNumber {
    /// All digits as a whole number.
    let digits: Int64
    /// Ten to the number of digits after the point.
    let scale: Int64

    /// Takes a number from the beginning of a text: digits, perhaps a point and up to nine more.
    init?(prefixOf text: inout Substring) {
        let whole = text.prefix { $0.isASCII && $0.isNumber }
        // 18 digits fit in 64 bits.
        guard !whole.isEmpty, whole.count <= 18 else { return nil }
        var rest = text.dropFirst(whole.count)
        var fraction = Substring()
        if rest.first == "." {
            rest = rest.dropFirst()
            fraction = rest.prefix { $0.isASCII && $0.isNumber }
            guard !fraction.isEmpty, fraction.count <= 9 else { return nil }
            rest = rest.dropFirst(fraction.count)
        }
        let scale = (0..<fraction.count).reduce(Int64(1)) { scale, _ in scale * 10 }
        guard let whole = Int64(whole), let part = fraction.isEmpty ? 0 : Int64(fraction) else { return nil }
        let (product, tooMuch) = whole.multipliedReportingOverflow(by: scale)
        let (sum, overflow) = product.addingReportingOverflow(part)
        guard !tooMuch, !overflow else { return nil }
        digits = sum
        self.scale = scale
        text = rest
    }

    /// The number times a unit, rounded down; nil if that overflows, or if it must be whole and is not.
    func times(_ unit: Int64, exactly: Bool = false) -> Int64? {
        // The product of two numbers of 64 bits fits in 128 bits, so nothing is rounded before the division.
        let (quotient, remainder) = (Int128(digits) * Int128(unit)).quotientAndRemainder(
            dividingBy: Int128(scale))
        guard let quotient = Int64(exactly: quotient) else { return nil }
        return exactly && remainder != 0 ? nil : quotient
    }
}
