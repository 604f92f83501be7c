internal import EventLoops
internal import Model

/// A small plot of the last hour as inline SVG; its label says the same in words for screen readers.
struct StatusPlot {
    /// One curve.
    struct Line {
        let name: String
        /// The values with their times, oldest first.
        let points: [(at: Timestamp, value: Double)]
    }

    /// The caption.
    let title: String
    /// The right edge of the plot.
    let now: Timestamp
    /// The curves; the area below the first one is filled.
    let lines: [Line]
    /// Writes a value for people.
    let text: (Double) -> String

    /// Size of the plot, in the units of the SVG's `viewBox`.
    private static let width = 600.0
    private static let height = 110.0

    /// The figure: caption, plot, axis. Without two points to connect it says that there are no figures yet.
    var html: String {
        guard lines.contains(where: { $0.points.count >= 2 }) else {
            return
                "<figure><figcaption>\(title)</figcaption><p class=\"quiet\">No figures yet: they are gathered "
                + "while events pass and when this page is viewed.</p></figure>\n"
        }
        let top = lines.flatMap { $0.points.map(\.value) }.max() ?? 0
        // Avoids a division by zero while all values are 0.
        let scale = top > 0 ? top : 1
        var svg = ""
        for (number, line) in lines.enumerated() where line.points.count >= 2 {
            let path = line.points.map { point in
                "\(StatusPlot.number(x(point.at))),\(StatusPlot.number(StatusPlot.height * (1 - point.value / scale)))"
            }
            // Only the first curve is filled: two areas would hide each other.
            if number == 0, let first = line.points.first, let last = line.points.last {
                let area = path.joined(separator: " ")
                let start = StatusPlot.number(x(first.at))
                let end = StatusPlot.number(x(last.at))
                let bottom = StatusPlot.number(StatusPlot.height)
                svg += "<polygon class=\"area\" points=\"\(start),\(bottom) \(area) \(end),\(bottom)\"/>"
            }
            svg += "<polyline class=\"line\(number)\" points=\"\(path.joined(separator: " "))\"/>"
        }
        // The label says in words what the plot shows.
        let latest = lines.compactMap { line in line.points.last.map { "\(line.name) \(text($0.value))" } }
        let label = "\(title), last hour: \(latest.joined(separator: ", ")), most \(text(top))"
        let legend = lines.enumerated().map { number, line in
            let last = line.points.last.map { " <strong>\(text($0.value))</strong>" } ?? ""
            return "<span class=\"key key\(number)\">\(line.name)\(last)</span>"
        }
        return """
            <figure><figcaption>\(title) <span class="legend">\(legend.joined())</span></figcaption>
            <p class="top" aria-hidden="true">\(text(top))</p>
            <svg viewBox="0 -2 600 114" preserveAspectRatio="none" role="img" aria-label="\(HTMLText.escaped(label))">\
            <path class="grid" d="M0 0H600M0 55H600M0 110H600"/>\(svg)</svg>
            <p class="axis"><span>1 h ago</span><span>now</span></p></figure>

            """
    }

    /// The horizontal position of a time; times before the hour are at the left edge.
    private func x(_ time: Timestamp) -> Double {
        let age = Double((now - time).nanosecondsClamped) / Double(StatusHistory.length.nanosecondsClamped)
        return StatusPlot.width * min(1, max(0, 1 - age))
    }

    /// A coordinate with one decimal, to keep the page small.
    private static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}

/// Escapes text for HTML.
enum HTMLText {
    /// The text with all characters escaped that have a meaning in HTML content or attributes. Control
    /// characters are escaped too: HTML forbids them, and a terminal would obey them if a person fetches the
    /// page with curl.
    static func escaped(_ text: String) -> String {
        let escapes = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")]
        return escapes.reduce(PrintableText.escaped(text)) { $0.replacingAll($1.0, with: $1.1) }
    }
}
