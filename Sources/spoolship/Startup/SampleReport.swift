internal import Agent
internal import Configuration
internal import Model

/// What `check --sample FILE` prints: what would become of each line of a file.
struct SampleReport {
    private let sample: LineSample
    private let path: String

    /// How many lines are shown one by one, of those that are accepted and of those that are not.
    private static let most = 20

    init(_ path: String, _ settings: Settings) throws(CommandFailure) {
        self.path = path
        sample = try orFail(.inputOutput, try LineSample(of: path, settings, version: Build.version))
    }

    /// The report as text; the lines that would be quarantined are in it whatever their number.
    var text: String {
        let count = sample.lines.count
        var out = "\(path): app \(sample.app)"
        if !sample.isRead {
            out += ", not read by this configuration; as if it were: [apps.\(sample.app)] read = [\"\(path)\"]"
        }
        out += "\n\(count) \(count == 1 ? "line" : "lines"): \(tally { $0.fate.rawValue })\n"
        let accepted = sample.lines.filter { $0.fate == .event || $0.fate == .record }
        if !accepted.isEmpty {
            func of(_ what: String, _ word: (LineSample.Line) -> String) {
                out += "  \(what)  \(tally(accepted, word))\n"
            }
            of("name ") { $0.name }
            of("time ") { $0.timeMember ?? "(none: when it was read)" }
            of("level") { $0.level?.member ?? "(none)" }
            out += "  added  \(sample.added.joined(separator: ", "))\n"
            out +=
                "  bytes  \(sample.bytes.read / accepted.count) a line, \(sample.bytes.written / accepted.count) leave\n"
        }
        for line in accepted.prefix(SampleReport.most) {
            out += "\(line.number): \(line.fate.rawValue) \(line.name) \(line.time)"
            out += line.timeMember.map { " (\($0))" } ?? " (when it was read)"
            out += line.level.map { " \($0.level) (\($0.member))" } ?? ""
            out += "\n"
        }
        for line in sample.lines.filter({ $0.problem != nil }).prefix(SampleReport.most) {
            out += "\(line.number): quarantined, \(line.problem ?? "")\n"
        }
        return out
    }

    /// How many lines have each word, the most frequent first.
    private func tally(_ lines: [LineSample.Line]? = nil, _ word: (LineSample.Line) -> String) -> String {
        let counts = Dictionary(grouping: lines ?? sample.lines, by: word).mapValues(\.count)
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let rest = counts.dropFirst(SampleReport.most / 2).reduce(0) { $0 + $1.value }
        return
            (counts.prefix(SampleReport.most / 2).map { "\($0.value) \($0.key)" }
            + (rest > 0 ? ["\(rest) others"] : []))
            .joined(separator: ", ")
    }

    /// The same for programs, with each line.
    var json: JSONValue {
        let lines = sample.lines.map { line -> JSONValue in
            [
                "line": .integer(line.number), "fate": .string(line.fate.rawValue), "name": .string(line.name),
                "time": .string(line.time), "time_member": .string(line.timeMember ?? ""),
                "level": .string(line.level?.level ?? ""), "level_member": .string(line.level?.member ?? ""),
                "problem": .string(line.problem ?? ""),
            ]
        }
        return [
            "app": .string(sample.app), "read": .bool(sample.isRead),
            "added": .array(sample.added.map(JSONValue.string)), "lines": .array(lines),
        ]
    }
}
