internal import EventLoops

/// The text format of an answer, negotiated with the client.
///
/// Source: Prometheus, "Exposition formats" (text 0.0.4); OpenMetrics 1.0.
package enum ExpositionFormat: Sendable, CaseIterable {
    /// Prometheus' text format 0.0.4, which every scraper reads.
    case prometheusText
    /// OpenMetrics 1.0.
    case openMetrics

    /// The `Content-Type` of an answer.
    package var contentType: String {
        switch self {
        case .prometheusText: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format that a request's `Accept` header prefers; Prometheus' text if the header names none of
    /// ours. Of equal qualities OpenMetrics wins. At most 32 ranges are read, because the header comes from
    /// outside.
    package init(accept: String?) {
        var best: (format: ExpositionFormat, quality: Double) = (.prometheusText, 0)
        for range in (accept ?? "").split(separator: ",").prefix(32) {
            let parts = range.split(separator: ";").map(ExpositionFormat.trimmed)
            let parameters = parts.dropFirst().map {
                $0.split(separator: "=", maxSplits: 1).map(ExpositionFormat.trimmed)
            }
            func parameter(_ name: String) -> String? {
                parameters.first { $0.first == name && $0.count == 2 }?[1]
            }
            let quality = parameter("q").flatMap(Double.init) ?? 1
            let format: ExpositionFormat
            switch parts.first {
            case "application/openmetrics-text":
                guard (parameter("version") ?? "1.0.0") == "1.0.0" else { continue }
                format = .openMetrics
            case "text/plain", "text/*", "*/*": format = .prometheusText
            default: continue
            }
            if quality > best.quality || (quality == best.quality && quality > 0 && format == .openMetrics) {
                best = (format, quality)
            }
        }
        self = best.format
    }

    /// A part of the header without blanks and quotes, in lower case.
    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop { $0 == " " || $0 == "\t" || $0 == "\"" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" && $0 != "\"" }
        return end.map { start[...$0].lowercased() } ?? ""
    }

    /// Writes all samples in the order of the table; families without samples are left out.
    package func write(_ exposition: Exposition) -> String {
        var exposition = exposition
        exposition.set(\.seriesSuppressed, to: exposition.suppressed)
        var text = ""
        for family in MetricFamily.all {
            let series = exposition.series(of: family)
            guard !series.isEmpty else { continue }
            writeHead(family, to: &text)
            for one in series { write(one, of: family, to: &text) }
        }
        if self == .openMetrics {
            text += "# EOF\n"
        }
        return text
    }

    /// Writes the lines about a family. Prometheus' text has no type `info`, so it becomes a gauge.
    private func writeHead(_ family: MetricFamily, to text: inout String) {
        let name = self == .openMetrics ? family.openMetricsName : family.name
        let kind = self == .prometheusText && family.kind == .info ? "gauge" : family.kind.rawValue
        text += "# HELP \(name) \(ExpositionFormat.escaped(family.help, quotes: self == .openMetrics))\n"
        text += "# TYPE \(name) \(kind)\n"
        if self == .openMetrics, let unit = family.unit {
            text += "# UNIT \(name) \(unit)\n"
        }
    }

    /// Writes the lines of a series; the buckets of a histogram are cumulated here.
    private func write(_ series: Exposition.Series, of family: MetricFamily, to text: inout String) {
        let labels = zip(family.labels, series.labels).map { label, value in
            "\(label.name)=\"\(ExpositionFormat.escaped(value, quotes: true))\""
        }
        func line(_ suffix: String, _ labels: [String], _ value: String) {
            text += family.name + suffix
            if !labels.isEmpty {
                text += "{\(labels.joined(separator: ","))}"
            }
            text += " \(value)\n"
        }
        switch series.value {
        case .integer(let number): line("", labels, "\(number)")
        case .real(let number): line("", labels, ExpositionFormat.number(number))
        case .buckets(let buckets):
            var sum = 0
            for (bound, count) in zip(family.buckets + [.infinity], buckets.counts) {
                sum += count
                line("_bucket", labels + ["le=\"\(ExpositionFormat.number(bound))\""], "\(sum)")
            }
            line("_sum", labels, ExpositionFormat.number(buckets.sum))
            line("_count", labels, "\(sum)")
        }
    }

    /// A number as both formats write it.
    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return "\(value)"
    }

    /// Text with escapes. Values of labels come from outside: a line feed in one would forge another
    /// sample, and a person may look at the metrics on a terminal, so controls are written as the log
    /// writes them.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += #"\\"#
            case "\n": result += #"\n"#
            case "\"" where quotes: result += #"\""#
            case " "..."~": result.unicodeScalars.append(scalar)
            case _ where PrintableText.isPrintable(scalar): result.unicodeScalars.append(scalar)
            default: result += "\\" + PrintableText.escape(of: scalar)
            }
        }
        return result
    }
}
