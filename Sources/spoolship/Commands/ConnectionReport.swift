internal import Agent
internal import Configuration
internal import EventLoops
internal import Model

/// What `check --connect` found out about one destination.
struct ConnectionReport {
    /// The destination that was tried.
    private let destination: DestinationSettings
    /// How long the attempt to connect took.
    private let milliseconds: Int
    /// Why the connection failed; nil if it was opened.
    private let failure: Problem?
    /// What is wrong with a destination that can be reached: an error if it would refuse every batch,
    /// otherwise a warning.
    private let complaint: Problem?
    /// The test event; nil if none was sent.
    private let test: Test?

    /// The result of a test event.
    private struct Test {
        /// How long the answer took.
        let milliseconds: Int
        /// The answers of the destination.
        let delivery: TestDelivery
        /// Why the event was not acknowledged; nil if it was.
        let problem: Problem?
    }

    /// Tries each destination, one after the other.
    ///
    /// - Parameter sends: whether each one also gets a test event.
    static func all(of loaded: LoadedSettings, sends: Bool) -> [ConnectionReport] {
        let rehearsal = StartupRehearsal(loaded.settings, version: Build.version)
        return loaded.settings.destinations.map { ConnectionReport($0, loaded, rehearsal, sends: sends) }
    }

    /// Tries one destination: connection, complaint, test event. Each step is made only if the one before
    /// succeeded.
    private init(
        _ destination: DestinationSettings, _ loaded: LoadedSettings, _ rehearsal: StartupRehearsal,
        sends: Bool
    ) {
        self.destination = destination
        let setting = "destination.\(destination.name).\(destination.addressKey)"
        let attempt = ConnectionReport.timed { rehearsal.connect(to: destination) }
        milliseconds = attempt.milliseconds
        failure = attempt.result.map {
            loaded.problem(.environment, "cannot be reached: \($0)", about: setting)
        }
        guard failure == nil else {
            complaint = nil
            test = nil
            return
        }
        complaint = rehearsal.complaint(of: destination).map { complaint in
            let severity: Problem.Severity = complaint.isRefused ? .error : .warning
            return loaded.problem(.environment, complaint.message, about: setting, severity: severity)
        }
        // The report is written to standard output; a test event there would become part of it.
        guard sends, destination.kind != .stdout else {
            test = nil
            return
        }
        let sent = ConnectionReport.timed { rehearsal.sendTestEvent(to: destination) }
        let problem = sent.result.refusal.map {
            loaded.problem(.environment, "did not acknowledge the test event: \($0)", about: setting)
        }
        test = Test(milliseconds: sent.milliseconds, delivery: sent.result, problem: problem)
    }

    /// The result of some work, and how long it took by the clock since the boot.
    private static func timed<Result>(_ work: () -> Result) -> (result: Result, milliseconds: Int) {
        let time = SystemTime()
        let start = time.bootTime
        let result = work()
        return (result, (time.bootTime - start).wholeMilliseconds)
    }

    /// Whether there are only warnings.
    var isGood: Bool { problems.allSatisfy { $0.severity != .error } }

    /// All problems of the destination.
    var problems: [Problem] { [failure, complaint, test?.problem].compactMap(\.self) }

    /// The lines that are printed; a failed connection has its problem instead.
    func lines(_ console: Console) -> [String] {
        guard failure == nil else { return [] }
        var lines = ["\(destination.name): \(console.styled("connected in \(milliseconds) ms", .green))"]
        guard let test else { return lines }
        let isGood = test.problem == nil
        let verb = destination.kind == .syslog ? "sent (syslog has no acknowledgement)" : "acknowledged"
        let result = "test event \(isGood ? verb : "not acknowledged") in \(test.milliseconds) ms"
        lines.append("\(destination.name): \(console.styled(result, isGood ? .green : .red))")
        for answer in test.delivery.answers {
            lines.append("\(destination.name): answer \(answer.status) \(answer.text)")
        }
        return lines
    }

    /// The report as JSON.
    var json: JSONValue {
        let json: JSONValue = [
            "destination": .string(destination.name), "connected": .bool(failure == nil),
            "milliseconds": .integer(milliseconds),
        ]
        guard let test else { return json }
        let answers = test.delivery.answers.map { answer -> JSONValue in
            ["status": .integer(answer.status), "body": .string(answer.text)]
        }
        let sent: JSONValue = [
            "acknowledged": .bool(test.problem == nil), "milliseconds": .integer(test.milliseconds),
            "answers": .array(answers),
        ]
        return json.adding("test", sent)
    }
}
