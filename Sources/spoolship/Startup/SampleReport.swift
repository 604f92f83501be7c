internal import Agent
internal import Configuration
internal import Model

/// What the agent would make of each line of a file, for `check --sample FILE`: its fate, name, time and
/// level, and what is added. Nothing is sent or stored.
struct SampleReport {
    /// The lines as the agent's own reader sees them.
    private let sample: LineSample
    /// The path of the file, for the heading and the suggested setting.
    private let path: String

    /// How many accepted lines are shown one by one, and how many quarantined ones.
    private static let most = 20

    /// Reads the file at a path; throws with code 74 if it cannot be read.
    init(_ path: String, _ settings: Settings) throws(CommandFailure) {
        self.path = path
        sample = try orFail(.inputOutput, try LineSample(of: path, settings, version: Build.version))
    }

    /// What the rules do to the lines; nil if the configuration has no rules.
    func rules(of settings: Settings) -> RuleReport? {
        RuleSample(sample, settings).map { rules in
            RuleReport(
                sample: rules, accepted: sample.lines.count { $0.fate == .event || $0.fate == .record })
        }
    }

    /// The report as text: totals, then the first accepted lines, then the first quarantined ones.
    /// Quarantined lines have their own limit, so that they appear however many accepted lines there are.
    var text: String {
        let count = sample.lines.count
        var out = "\(path): app \(sample.app)"
        if !sample.isRead {
            out +=
                ", not read by this configuration; as if it were: [apps.\(sample.app)] read = [\"\(path)\"]"
        }
        out += "\n\(count) \(count == 1 ? "line" : "lines"): \(tally { $0.fate.rawValue })\n"
        out += textLines.map { "  \($0)\n" }.joined()
        let accepted = sample.lines.filter { $0.fate == .event || $0.fate == .record }
        if !accepted.isEmpty {
            // The distribution of one property over the accepted lines.
            func of(_ what: String, _ word: (LineSample.Line) -> String) {
                out += "  \(what)  \(tally(accepted, word))\n"
            }
            of("name ") { $0.name }
            of("time ") { $0.timeMember ?? "(none: when it was read)" }
            of("level") { $0.level?.member ?? "(none)" }
            out += "  added  \(sample.added.joined(separator: ", "))\n"
            out +=
                "  bytes  \(sample.bytes.read / accepted.count) a line, "
                + "\(sample.bytes.written / accepted.count) leave\n"
        }
        for line in accepted.prefix(SampleReport.most) {
            out += "\(line.number): \(line.fate.rawValue) \(line.name) \(line.time)"
            out += line.timeMember.map { " (\($0))" } ?? " (when it was read)"
            out += line.level.map { " \($0.level) (\($0.member))" } ?? ""
            out += "\n"
        }
        for line in sample.lines.filter({ $0.schemaProblem != nil }).prefix(SampleReport.most) {
            out += "\(line.number): sent, though its schema does not allow it: \(line.schemaProblem ?? "")\n"
        }
        for line in sample.lines.filter({ $0.problem != nil }).prefix(SampleReport.most) {
            out += "\(line.number): quarantined, \(line.problem ?? "")\n"
        }
        if sample.isWithoutSchemas {
            out +=
                "  records are compared with the schema of log only: for the schemas of events name the file"
                + " in an app with kind = \"event\", or put it into the spool\n"
        }
        let unknown = sample.containersWithoutDocument
        if !unknown.isEmpty {
            out +=
                "  schemas of the published \(unknown.joined(separator: ", ")) are not known here:"
                + " spoolship container test DOCUMENT --events \(path)\n"
        }
        return out
    }

    /// What was found out about lines of text: how many a format or pattern parsed, where it failed first,
    /// and which setting would parse more.
    private var textLines: [String] {
        let texts = sample.texts
        var lines: [String] = []
        if let format = texts.format, texts.parsed + texts.notParsed > 0 {
            lines.append("\(texts.parsed) of \(texts.parsed + texts.notParsed) parsed as \(format)")
            if let failure = texts.firstFailure {
                lines.append(
                    "line \(failure.line) stops at column \(failure.column), where \(failure.expected) was "
                        + "expected"
                )
            }
        }
        if texts.isSlow {
            lines.append("the pattern is slow: it is tried at each byte; begin it with ^")
        }
        if texts.brokenJSON > 0 {
            lines.append("\(texts.brokenJSON) lines begin with { and are not JSON: sent as text")
        }
        if let suggestion {
            lines.append("\(suggestion) to [apps.\(sample.app)]")
        }
        if texts.isUnknown {
            lines.append(
                "no built-in format fits: the lines are sent as text, without fields and with the time of "
                    + "reading; parse also takes a template, or csv with columns, and pattern an expression")
        }
        return lines
    }

    /// What the lines seem to be, and the settings to add; nil if nothing is known.
    private var suggestion: String? {
        let guess = sample.texts.guess.map { guess in
            let share = guess.matched * 100 / max(guess.records, 1)
            return (
                records: "\(share) % of the first \(guess.records) records are of the format \(guess.name)",
                setting: "parse = \"\(guess.name)\""
            )
        }
        guard let wrapper = sample.texts.wrapper else {
            return guess.map { "\($0.records): add \($0.setting)" }
        }
        let wrapped = "a container's runtime has wrapped the lines"
        let setting = "format = \"\(wrapper)\""
        return guess.map { "\(wrapped), and \($0.records): add \(setting) and \($0.setting)" }
            ?? "\(wrapped): add \(setting)"
    }

    /// How many lines have each word, the most frequent first; after ten words the rest as one number.
    private func tally(_ lines: [LineSample.Line]? = nil, _ word: (LineSample.Line) -> String) -> String {
        let counts = Dictionary(grouping: lines ?? sample.lines, by: word).mapValues(\.count)
            // Equal counts are in the order of the words, so that the same file gives the same report.
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let rest = counts.dropFirst(SampleReport.most / 2).reduce(0) { $0 + $1.value }
        return
            (counts.prefix(SampleReport.most / 2).map { "\($0.value) \($0.key)" }
            + (rest > 0 ? ["\(rest) others"] : []))
            .joined(separator: ", ")
    }

    /// The report as JSON, with all lines.
    var json: JSONValue {
        let lines = sample.lines.map { line -> JSONValue in
            [
                "line": .integer(line.number), "fate": .string(line.fate.rawValue),
                "name": .string(line.name),
                "time": .string(line.time), "time_member": .string(line.timeMember ?? ""),
                "level": .string(line.level?.level ?? ""), "level_member": .string(line.level?.member ?? ""),
                "problem": .string(line.problem ?? ""), "schema_problem": .string(line.schemaProblem ?? ""),
            ]
        }
        return [
            "parsed": .integer(sample.texts.parsed), "not_parsed": .integer(sample.texts.notParsed),
            "broken_json": .integer(sample.texts.brokenJSON),
            "guess": .string(sample.texts.guess?.name ?? ""),
            "unknown_format": .bool(sample.texts.isUnknown),
            "guessed_wrapper": .string(sample.texts.wrapper ?? ""),
            "app": .string(sample.app), "read": .bool(sample.isRead),
            "added": .array(sample.added.map(JSONValue.string)), "lines": .array(lines),
        ]
    }
}
