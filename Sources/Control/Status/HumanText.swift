/// Writes figures for people, in the status page, `status` and the commands.
package enum HumanText {
    /// A count with commas: `12,431`.
    package static func count(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 {
                text += ","
            }
            text.append(digit)
        }
        return number < 0 ? "-" + text : text
    }

    /// A size in powers of 1,024: `512 B`, `3.4 MiB`.
    package static func bytes(_ number: Int) -> String {
        var value = Double(number)
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if abs(value) < 1023.95 { return unit == "B" ? "\(number) B" : "\(decimal(value)) \(unit)" }
            value /= 1024
        }
        return "\(decimal(value)) TiB"
    }

    /// A duration in its two largest units: `41s`, `3h12m`, `25d`.
    package static func duration(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let parts = [
            (seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
        ]
        guard let first = parts.firstIndex(where: { $0.0 > 0 }) else { return "0s" }
        return parts[first...].prefix(2).filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }.joined()
    }

    /// An estimated duration in one unit: `5h`.
    package static func roughly(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        for (length, unit) in [(86_400, "d"), (3600, "h"), (60, "m")] as [(Int64, String)]
        where seconds >= length * 2 {
            return "\((seconds + length / 2) / length)\(unit)"
        }
        return seconds >= 60 ? "1m" : "\(seconds)s"
    }

    /// A rate: `0.4/s`, `1,204/s`.
    package static func rate(_ perSecond: Double) -> String {
        perSecond < 99.95 ? "\(decimal(perSecond))/s" : "\(count(Int(perSecond.rounded())))/s"
    }

    /// `1 file`, `2 files`.
    package static func plural(_ number: Int, _ noun: String) -> String {
        "\(count(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// A number with at most one decimal.
    private static func decimal(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(abs(tenths % 10))"
    }
}
