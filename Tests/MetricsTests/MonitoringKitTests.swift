import Metrics
import Model
import TestKit
import Testing

@Suite("Monitoring kit", .timeLimit(.minutes(10)))
struct MonitoringKitTests {
    private let directory = "\(GoldenFile.root)/monitoring"

    @Test("promtool accepts the alerts, and every test of them passes")
    func promtool() throws {
        let (code, output) = try runShell(
            "cd '\(directory)' && promtool check rules alerts.yml && promtool test rules alerts_test.yml")
        #expect(code == 0, "\(output)")
    }

    @Test("every alert has a test in which it fires, one in which it is silent, and an entry in the runbook")
    func everyAlertIsTested() throws {
        let alerts = try words(after: "- alert: ", in: "\(directory)/alerts.yml")
        let tests = Set(try words(after: "- name: ", in: "\(directory)/alerts_test.yml"))
        let entries = try words(after: "## ", in: "\(GoldenFile.root)/docs/runbook.md")
        #expect(alerts.count >= 20)
        #expect(Set(alerts).count == alerts.count)
        #expect(entries == alerts)
        for alert in alerts {
            #expect(tests.contains("\(alert) fires"), "\(alert)")
            #expect(tests.contains("\(alert) is silent"), "\(alert)")
        }
        // Absolute: an alert is read far from this tree.
        let runbooks = try words(
            after: "runbook_url: file:///usr/share/doc/spoolship/runbook.md#", in: "\(directory)/alerts.yml")
        #expect(runbooks == alerts.map { $0.lowercased() })
    }

    @Test(
        "the runbook says for each alert whether it pages, fleet.md lists the paging ones, and the rules agree"
    )
    func pages() throws {
        let alerts = try words(after: "- alert: ", in: "\(directory)/alerts.yml")
        let severities = try words(after: "severity: ", in: "\(directory)/alerts.yml")
        #expect(severities.count == alerts.count && Set(severities) == ["page", "ticket"])
        let runbook = try readFile("\(GoldenFile.root)/docs/runbook.md")
        let said = runbook.split(separator: "\n").filter {
            $0.hasPrefix("**Pages") || $0.hasPrefix("**Ticket")
        }
        #expect(said.map { $0.hasPrefix("**Pages") ? "page" : "ticket" } == severities)
        let fleet = try readFile("\(GoldenFile.root)/docs/fleet.md").split(separator: "\n")
        let row = try #require(fleet.first { $0.hasPrefix("| SpoolshipDown") }).split(separator: "|").map(
            String.init)
        func named(_ cell: String) -> Set<String> {
            Set(cell.split { !($0.isLetter || $0.isNumber) }.map(String.init))
        }
        let pages = Set(zip(alerts, severities).filter { $0.1 == "page" }.map(\.0))
        #expect(named(row[0]) == pages)
        #expect(named(row[1]).isSubset(of: Set(alerts).subtracting(pages)))
    }

    @Test("inhibition rules name existing alerts and labels, and no cause silences itself")
    func inhibition() throws {
        let alerts = Set(try words(after: "- alert: ", in: "\(directory)/alerts.yml"))
        let text = try readFile("\(directory)/alertmanager.yml")
        var rules = 0
        var sources: Set<String> = []
        for line in text.split(separator: "\n") where line.contains("_matchers:") {
            let named = Set(
                line.split { !($0.isLetter || $0.isNumber) }.map(String.init).filter {
                    $0.hasPrefix("Spoolship")
                })
            #expect(named.subtracting(alerts).subtracting(["Spoolship"]).isEmpty, "\(line)")
            if line.contains("source_matchers") {
                sources = named
            } else {
                rules += 1
                #expect(line.contains("!=") || sources.isDisjoint(with: named), "\(line)")
            }
        }
        #expect(rules >= 5)
        #expect(try words(after: "equal: [job, instance", in: "\(directory)/alertmanager.yml").count == rules)
    }

    @Test("alerts and dashboard use only metrics, labels and values that exist")
    func everyMetricExists() throws {
        let alerts = try readFile("\(directory)/alerts.yml")
        let dashboard = try JSONValue(parsing: readFile("\(directory)/dashboard.json"))
        let expressions = MonitoringKitTests.texts(under: ["expr", "query"], in: dashboard)
        #expect(expressions.count > 40)
        for text in expressions + [alerts] {
            for use in MetricUse.all(in: text) {
                let family = MetricFamily.all.first { family in
                    use.name == family.name
                        || family.kind == .histogram
                            && ["_bucket", "_sum", "_count"].contains { use.name == family.name + $0 }
                }
                guard let family else {
                    Issue.record("there is no metric \(use.name)")
                    continue
                }
                for (label, values) in use.matchers where !["job", "instance", "le"].contains(label) {
                    let known = family.labels.first { $0.name == label }
                    #expect(known != nil, "\(use.name) has no label \(label)")
                    guard let closed = known?.values, values.first?.hasPrefix("$") != true else { continue }
                    for value in values {
                        #expect(closed.contains(value), "\(use.name): \(label) is never \(value)")
                    }
                }
            }
        }
    }

    @Test("the comparison finds a mistake")
    func theCheckCanFail() {
        let uses = MetricUse.all(
            in: #"rate(spoolship_ready{state=~"a|b",x="1"}[5m]) / my_spoolship_x + process_max_fds"#)
        #expect(uses.map(\.name) == ["spoolship_ready", "process_max_fds"])
        #expect(uses.first?.matchers.map(\.label) == ["state", "x"])
        #expect(uses.first?.matchers.first?.values == ["a", "b"])
    }

    private func words(after mark: String, in path: String) throws -> [String] {
        try readFile(path).split(separator: "\n").compactMap { line in
            let text = line.drop { $0 == " " }
            return text.hasPrefix(mark) ? String(text.dropFirst(mark.count)) : nil
        }
    }

    private static func texts(under keys: Set<String>, in value: JSONValue) -> [String] {
        switch value {
        case .array(let elements): elements.flatMap { texts(under: keys, in: $0) }
        case .object(let members):
            members.flatMap { member -> [String] in
                if keys.contains(member.key), let text = member.value.string { return [text] }
                return texts(under: keys, in: member.value)
            }
        default: []
        }
    }
}

/// A metric that an expression names, with what it asks of the labels.
private struct MetricUse {
    let name: String
    let matchers: [(label: String, values: [String])]

    static func all(in text: String) -> [MetricUse] {
        func isPart(_ character: Character) -> Bool {
            character.isASCII && (character.isLetter || character.isNumber) || character == "_"
        }
        var uses: [MetricUse] = []
        var rest = Substring(text)
        while let start = rest.firstIndex(where: isPart) {
            let word = rest[start...].prefix(while: isPart)
            rest = rest[word.endIndex...]
            guard word.hasPrefix("spoolship_") || word.hasPrefix("process_") else { continue }
            var matchers: [(label: String, values: [String])] = []
            if rest.first == "{", let end = rest.firstIndex(of: "}") {
                for matcher in rest[rest.index(after: rest.startIndex)..<end].split(separator: ",") {
                    let parts = matcher.split(separator: "\"", omittingEmptySubsequences: false)
                    guard parts.count == 3 else { continue }
                    let label = String(parts[0].prefix(while: isPart))
                    matchers.append((label, parts[1].split(separator: "|").map(String.init)))
                }
                rest = rest[end...]
            }
            uses.append(MetricUse(name: String(word), matchers: matchers))
        }
        return uses
    }
}
