internal import EventLoops

/// The dates of HTTP.
///
/// Source: RFC 9110, section 5.6.7: the fixed form, and the two obsolete ones that a recipient must read too.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The point in time; nil for anything that is none of the three forms.
    static func parse(_ text: String) -> Timestamp? {
        let words = text.split { $0 == " " || $0 == "," || $0 == "\t" }
        switch words.count {
        case 6 where words[5] == "GMT":
            // Sun, 06 Nov 1994 08:49:37 GMT
            return point(year: words[3], month: words[2], day: words[1], clock: words[4])
        case 4 where words[3] == "GMT":
            // Sunday, 06-Nov-94 08:49:37 GMT
            let date = words[1].split(separator: "-")
            guard date.count == 3, let short = Int(date[2]), (0...99).contains(short) else { return nil }
            // RFC 9110: a year that seems more than 50 years ahead is in the past. By 2070 nobody will send these.
            return point(
                year: Substring(String(short < 70 ? 2000 + short : 1900 + short)), month: date[1], day: date[0],
                clock: words[2])
        case 5:
            // Sun Nov  6 08:49:37 1994
            return point(year: words[4], month: words[1], day: words[2], clock: words[3])
        default:
            return nil
        }
    }

    private static func point(year: Substring, month: Substring, day: Substring, clock: Substring) -> Timestamp? {
        let parts = clock.split(separator: ":").compactMap { Int64($0) }
        guard
            let year = Int(year), (1970...2200).contains(year),
            let month = months.firstIndex(where: { $0 == month }),
            let day = Int(day), (1...31).contains(day),
            parts.count == 3, (0...23).contains(parts[0]), (0...59).contains(parts[1]), (0...60).contains(parts[2])
        else { return nil }
        let days = Int64(LocalDate(year: year, month: month + 1, day: day).dayNumber)
        // bounded: each part was compared with its range.
        let seconds = days * 86_400 + parts[0] * 3600 + parts[1] * 60 + parts[2]
        // bounded: the year is 2200 at most.
        return Timestamp(milliseconds: seconds * 1000)
    }
}
