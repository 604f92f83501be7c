/// The shipped alert rules with hours made seconds, so that a test can live through them.
///
/// Nothing but times changes, and by these rules only, so that what fires here fires there, later:
/// * each `for:` becomes one second;
/// * a window of thirty minutes (`[30m]`, which counts restarts) becomes a minute, every other one 20 seconds;
/// * the waits of 3600, 600 and 60 seconds that expressions compare with become 5, 3 and 3, the day after a salvage and the
///   hour after a start 25.
enum FastRules {
    /// - Parameter text: `monitoring/alerts.yml`.
    static func transform(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let text = String(line)
            let indent = text.prefix { $0 == " " }
            guard !text.dropFirst(indent.count).hasPrefix("for: ") else { return "\(indent)for: 1s" }
            return windows(text).replacing("> 3600", with: "> 5").replacing("> 600", with: "> 3")
                .replacing("> 60", with: "> 3")
                .replacing("< 86400", with: "< 25").replacing("< 3600", with: "< 25")
        }.joined(separator: "\n")
    }

    /// A line with each `[1h]` shortened.
    private static func windows(_ line: String) -> String {
        var result = ""
        var rest = Substring(line)
        while let open = rest.firstIndex(of: "["), let close = rest[open...].firstIndex(of: "]") {
            let inside = rest[rest.index(after: open)..<close]
            let isTime = inside.first?.isNumber == true && ["m", "h", "d"].contains(inside.last)
            result += rest[..<open]
            result += isTime ? (inside == "30m" ? "[60s]" : "[20s]") : String(rest[open...close])
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }
}
