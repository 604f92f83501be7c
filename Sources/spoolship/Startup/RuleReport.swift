internal import Agent
internal import Model

/// What the rules of the configuration do to a sample of lines, for `check --sample FILE`: on how many lines
/// each rule applies, and the first lines before and after.
struct RuleReport {
    /// The lines that rules act on.
    let sample: RuleSample
    /// How many lines of the file are events or records; the others never reach the rules.
    let accepted: Int

    /// How many lines are shown before and after.
    private static let most = 5

    /// The report as text: the counts, then for each of the first lines its number, its rules, where it goes,
    /// and what has changed.
    var text: String {
        var out = "rules: apply to \(sample.lines.count) of \(accepted) \(accepted == 1 ? "line" : "lines")\n"
        for (rule, lines) in sample.counts { out += "  \(lines)  \(rule)\n" }
        for line in sample.lines.prefix(RuleReport.most) {
            out += "\(line.number): \(line.rules.joined(separator: ", "))"
            out += line.destinations.map { " -> \($0.joined(separator: ", "))" } ?? ""
            out += line.priority.map { ", \($0)" } ?? ""
            out += "\n"
            guard line.after != line.before else { continue }
            out += "  - \(line.before)\n  + \(line.after ?? "(discarded)")\n"
        }
        if sample.hasDigests {
            out += "  digests are made with a key of zeros here: those that the agent sends differ\n"
        }
        return out
    }

    /// The report as JSON, with all lines.
    var json: JSONValue {
        let lines = sample.lines.map { line -> JSONValue in
            [
                "line": .integer(line.number), "rules": .array(line.rules.map(JSONValue.string)),
                "before": .string(line.before), "after": JSONValue(line.after),
                "destinations": line.destinations.map { .array($0.map(JSONValue.string)) } ?? .null,
                "priority": JSONValue(line.priority),
            ]
        }
        let counts = sample.counts.map {
            ["name": .string($0.rule), "lines": .integer($0.lines)] as JSONValue
        }
        return ["counts": .array(counts), "lines": .array(lines)]
    }
}
