internal import Configuration
internal import Agent
internal import Containers
internal import EventLoops
internal import Events
internal import Model

enum ContainerTestCommand {
    static let containerTest = Command(
        name: "container test", summary: "runs a document's tests, and shows its effect on recorded events",
        arguments: "FILE", argumentCount: 1...1,
        details: """
            Needs no agent and no configuration. FILE is a container's document, signed or not; it is \
            checked as the agent would, and its tests are run. Functions give the answers of the test, \
            otherwise null.

            --events FILE takes recorded events, one JSON object a line (`spoolship tap` prints them), - \
            for standard input. For each it shows which tags fire, which conditions held and which did not, \
            and the event before and after. {"type": "data_layer", …} lines are pushes. Of events that \
            their schema does not allow it shows where.

            Exits with 0 if everything passes, 1 if a test fails, 65 if the document cannot be used or a \
            recorded line is not an event, 74 if a file cannot be read.
            """,
        options: [
            Command.Option("events FILE", "recorded events to show"),
            Command.Option(
                "host NAME", repeats: true,
                "the machine's name for recorded events; with several, the first is used and the share of "
                    + "each in rollouts is shown"
            ),
            Command.Option("app APP", "the app of the recorded events; default their own, else default"),
            .json,
        ]
    ) { try ContainerTest(invocation: $0).run() }

    static let containerCheck = Command(
        name: "container check",
        summary: "reports mistakes and weaknesses of a document, with line and column",
        arguments: "FILE", argumentCount: 1...1,
        details: """
            Several mistakes at once; then unused rules, tags that can never act, copies of what a later \
            tag removes, hashes with a salt. With --config also unknown destinations and functions that may \
            not be called. `container test` and `container sign` check the same.

            Exits with 0 if nothing is wrong, with 65 if agents would refuse the document or it does not do \
            what it says.
            """
    ) { invocation in
        let path = invocation.arguments[0]
        let bytes = SignedDocument.document(in: try NamedFile.contents(of: path, atMost: 2 << 20))
        try invocation.end(
            try TrialAgent(invocation).review(bytes, path, on: invocation.console) ? .badData : .success)
    }
}

/// One run of `container test`. Its parts are in the order in which they are printed.
private struct ContainerTest {
    /// The options.
    let invocation: Invocation
    /// The time of the run, the same for all events.
    private let now = SystemTime().wallTime
    /// What is known of the agent.
    private let agent: TrialAgent
    /// The app of the recorded events; nil for their own.
    private let app: String?
    /// Keeps numbers of events as they were written.
    private let numbers = ExactNumbers()

    init(invocation: Invocation) throws(CommandFailure) {
        self.invocation = invocation
        agent = try TrialAgent(invocation)
        app = try invocation.app()
    }

    /// Runs the tests and prints the result. Lines that are not events (65) count more than tests that fail
    /// (1), because the tests of such a run are incomplete.
    func run() throws(CommandFailure) {
        let document = try readDocument()
        if !invocation.has("json") {
            try showHosts(document)
        }
        let failures = try runTests(of: document)
        warnOfFunctions(document)
        let events = try showEvents(document)
        if invocation.has("json") {
            try invocation.console.print(numbers.text(json(document, failures, events.shown)))
        }
        try invocation.end(
            events.hasRefused ? .badData : failures.allSatisfy(\.isEmpty) ? .success : .negative)
    }

    /// The document, after its mistakes and warnings were printed.
    ///
    /// - Throws: `CommandFailure` with code 65 if agents would refuse it.
    private func readDocument() throws(CommandFailure) -> ContainerDocument {
        let path = invocation.arguments[0]
        // A signature is not checked: nothing is put in force here. Up to 2 MiB are read, which is more than
        // a document may have, so that the message names the real limit.
        let bytes = SignedDocument.document(in: try NamedFile.contents(of: path, atMost: 2 << 20))
        guard !agent.review(bytes, path, on: invocation.console) else {
            throw CommandFailure(.badData, "\(path) cannot be used")
        }
        return try orFail(.badData, about: path, try ContainerDocument(reading: bytes))
    }

    /// Prints for each host whether the rollout of the document and of its rules includes it. A host's share
    /// is a hash of its name, so it is the same here as on the host.
    private func showHosts(_ document: ContainerDocument) throws(CommandFailure) {
        for host in invocation.values("host") {
            let share = AgentFacts(hostName: host).share(of: document.id)
            var line = "  \(host): at \(Double(Int(share * 100)) / 100) of 100"
            if let percent = document.rollout {
                line += share < percent ? ", takes the document" : ", does not take the document"
            }
            // A rule with an expression is several rules of one name, its alternatives; one line is enough.
            var seen: Set<String> = []
            for rule in document.rules where seen.insert(rule.name).inserted {
                guard let percent = rule.conditions.compactMap(\.rolloutPercent).min() else { continue }
                line += "; \(rule.name): \(share < percent ? "in" : "out")"
            }
            try invocation.console.print(line)
        }
    }

    /// Warns of functions that the agents' configuration has to allow: otherwise they give null and tags do
    /// less than the document says.
    private func warnOfFunctions(_ document: ContainerDocument) {
        guard let called = try? CompiledContainer(document).deniedFunctions, !called.isEmpty else { return }
        invocation.console.printError(
            "\(document.id) calls \(called.joined(separator: ", ")): if may_call and [functions] do not "
                + "name them, they give null")
    }

    // MARK: Tests

    /// Runs the tests one after the other and prints their results. Returns the failures of each test; empty
    /// for a test that passes.
    private func runTests(of document: ContainerDocument) throws(CommandFailure) -> [[String]] {
        let console = invocation.console
        let isText = !invocation.has("json")
        let count = document.tests.count
        if isText {
            try console.print(
                "\(document.id) version \(document.version): \(count) \(count == 1 ? "test" : "tests"),"
                    + " \(Set(document.rules.map(\.name)).count) rules, \(document.tags.count) tags")
        }
        var all: [[String]] = []
        for test in document.tests {
            let failures = try orFail(
                .badData,
                try test.failures(
                    in: document, facts: agent.factsOfTests, events: agent.events(on: test.host)))
            all.append(failures)
            guard isText else { continue }
            try console.print(
                "  \(failures.isEmpty ? console.styled("ok  ", .green) : console.styled("FAIL", .red))  "
                    + "\(test.name)"
            )
            for failure in failures { try console.print("          \(failure)") }
        }
        return all
    }

    // MARK: Events

    /// Prints what the document does to each recorded event.
    ///
    /// - Returns: the results for JSON, and whether a line was refused as an event.
    private func showEvents(
        _ document: ContainerDocument
    ) throws(CommandFailure) -> (shown: [JSONValue], hasRefused: Bool) {
        guard let path = invocation.value("events") else { return ([], false) }
        let trials = try orFail(
            .badData, try ContainerTrials(document, facts: agent.facts, events: agent.events, now: now))
        var shown: [JSONValue] = []
        var hasRefused = false
        let lines = try NamedFile.contents(of: path, atMost: 1 << 30).split(separator: UInt8(ascii: "\n"))
        for (index, line) in lines.enumerated() where line.contains(where: { $0 > 0x20 }) {
            // The app that the recorded event has, if the option does not name one.
            let said = try? JSONValue(parsing: Array(line))
            let app = app ?? said?["app"]?.string ?? "default"
            let trial: EventTrial?
            do throws(ContainerTrials.Refusal) {
                trial = try trials.run(Array(line), app: app)
            } catch {
                if error.schemaPath != nil {
                    try showUnfit(error.message, line: index + 1, &shown)
                } else {
                    hasRefused = true
                    invocation.console.printError("\(path):\(index + 1): \(error.message)")
                }
                continue
            }
            // A push (`data_layer`) changes the state for later events, and has no result of its own.
            guard let trial else { continue }
            if invocation.has("json") {
                shown.append(json(trial, line: index + 1))
            } else {
                try print(trial, line: index + 1)
            }
        }
        return (shown, hasRefused)
    }

    /// Prints that a schema of the document does not allow an event, or adds that to the results for JSON.
    private func showUnfit(
        _ message: String, line: Int, _ shown: inout [JSONValue]
    ) throws(CommandFailure) {
        let console = invocation.console
        if invocation.has("json") {
            shown.append(["line": .integer(line), "quarantined": .string(message)])
        } else {
            try console.print("\nline \(line)\n  \(console.styled("quarantined", .yellow))  \(message)")
        }
    }

    /// Prints what happened to one event: each tag with its rules and conditions, the event before and after,
    /// and where it goes.
    private func print(_ trial: EventTrial, line: Int) throws(CommandFailure) {
        let console = invocation.console
        let name = (try? JSONValue(parsing: trial.before))?["name"]?.string ?? ""
        try console.print("\nline \(line): \(JSONValue.string(name))")
        for tag in trial.tags {
            let silent = tag.isCutOff ? "not reached: the event was already discarded" : "silent"
            let word = tag.fires ? console.styled("fires", .green) : console.styled(silent, .dim)
            try console.print("  \(word)  \(tag.tag)")
            for rule in tag.rules {
                let verb = rule.isBlocking ? "blocking rule" : "rule"
                try console.print("    \(verb) \(rule.name) \(rule.holds ? "holds" : "does not hold")")
                if let expression = rule.expression {
                    try console.print("      when \(expression)")
                }
                for condition in rule.conditions {
                    try console.print("      \(ContainerTest.text(condition))")
                }
            }
        }
        try console.print("  before  \(trial.before)")
        if let reason = trial.discardedBy {
            try console.print("  \(console.styled("discarded", .yellow)) by \(reason)")
        } else {
            try console.print("  after   \(trial.after == trial.before ? "the same" : trial.after ?? "")")
            try console.print("  priority \(trial.priority.name)")
        }
        if let destinations = trial.destinations {
            try console.print("  to      \(destinations.joined(separator: ", "))")
        }
        for call in trial.calls { try console.print("  calls   \(call.request)") }
    }

    /// A condition and its result: `yes  event equals "Start" (it is "Start")`.
    private static func text(_ explained: TagExplanation.ConditionExplanation) -> String {
        let condition = explained.condition
        let words =
            (condition.negate ? "not " : "") + condition.predicate.rawValue
            + (condition.ignoreCase ? " (any case)" : "")
        return "\(explained.holds ? "yes" : "no ")  \(condition.macro) \(words) \(explained.comparand)"
            + " (it is \(explained.value))"
    }

    // MARK: JSON

    /// The complete result as JSON.
    private func json(_ document: ContainerDocument, _ failures: [[String]], _ events: [JSONValue])
        -> JSONValue
    {
        let tests = zip(document.tests, failures).map { test, failures -> JSONValue in
            [
                "name": .string(test.name), "passes": .bool(failures.isEmpty),
                "failures": .array(failures.map(JSONValue.string)),
            ]
        }
        return [
            "id": .string(document.id), "version": .integer(document.version),
            "passes": .bool(failures.allSatisfy(\.isEmpty)), "tests": .array(tests), "events": .array(events),
        ]
    }

    /// The result for one event as JSON.
    private func json(_ trial: EventTrial, line: Int) -> JSONValue {
        let tags = trial.tags.map { tag -> JSONValue in
            [
                "tag": .string(tag.tag), "fires": .bool(tag.fires), "not_reached": .bool(tag.isCutOff),
                "rules": .array(tag.rules.map(json)),
            ]
        }
        func parsed(_ text: String?) -> JSONValue { text.map { numbers.value(of: $0) } ?? .null }
        return [
            "line": .integer(line), "tags": .array(tags), "fired": .array(trial.fired.map(JSONValue.string)),
            "discarded_by": JSONValue(trial.discardedBy), "priority": .string(trial.priority.name),
            "destinations": JSONValue(trial.destinations.map { .array($0.map(JSONValue.string)) }),
            "calls": .array(trial.calls.map(\.request)), "before": parsed(trial.before),
            "after": parsed(trial.after),
        ]
    }

    /// A rule and its conditions as JSON.
    private func json(_ rule: TagExplanation.RuleExplanation) -> JSONValue {
        let conditions = rule.conditions.map { explained -> JSONValue in
            [
                "macro": .string(explained.condition.macro), "value": numbers.value(of: explained.value),
                "predicate": .string(explained.condition.predicate.rawValue),
                "comparand": numbers.value(of: explained.comparand),
                "negate": .bool(explained.condition.negate),
                "ignore_case": .bool(explained.condition.ignoreCase),
                "holds": .bool(explained.holds),
            ]
        }
        return [
            "rule": .string(rule.name), "blocking": .bool(rule.isBlocking), "holds": .bool(rule.holds),
            "when": JSONValue(rule.expression), "conditions": .array(conditions),
        ]
    }
}

/// What is known of the agent that a document is tried for. Settings are used only with `--config`, because a
/// document is for many machines, and this one's configuration need not be typical.
struct TrialAgent {
    let settings: Settings?
    /// What rules know of the machine that `--host` names.
    let facts: AgentFacts
    /// How the machine that `--host` names reads events.
    let events: EventOptions
    /// The facts without `--host`: a document's own tests name their hosts themselves.
    let factsOfTests: AgentFacts

    /// Reads what is known from the options; throws with code 78 if `--config` names a configuration with
    /// mistakes.
    init(_ invocation: Invocation) throws(CommandFailure) {
        settings =
            invocation.has("config")
            ? try orFail(.configuration, try invocation.loadSettings().settings) : nil
        var facts = AgentFacts(hostName: invocation.values("host").first)
        facts.keyLengths = settings?.keyLengths ?? []
        self.facts = facts
        events = TrialAgent.events(on: facts.hostName, by: settings)
        facts.hostName = nil
        factsOfTests = facts
    }

    /// How a machine reads events: countries may depend on its name.
    func events(on host: String?) -> EventOptions { TrialAgent.events(on: host, by: settings) }

    private static func events(on host: String?, by settings: Settings?) -> EventOptions {
        settings?.trialEvents(on: host ?? "") ?? EventOptions()
    }

    /// Prints all mistakes and weaknesses of a document to standard error, with line and column.
    ///
    /// - Returns: whether agents would refuse the document.
    func review(_ bytes: [UInt8], _ file: String, on console: Console) -> Bool {
        // The container's own settings decide which functions its tags can call.
        let id = (try? JSONValue(parsing: bytes))?["id"]?.string
        let container = settings?.containers.first { $0.id == id }
        let review = DocumentReview(
            bytes, facts: facts, destinations: settings?.destinations.map(\.name),
            mayCall: container?.mayCall,
            now: SystemTime().wallTime)
        for (line, column, finding) in review.findings {
            let word = finding.isMistake ? "" : "warning: "
            console.printError("\(file):\(line):\(column): \(word)\(finding)")
        }
        return review.hasMistakes
    }
}
