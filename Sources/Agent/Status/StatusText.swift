internal import Control
internal import EventLoops
internal import Journal
internal import Model
internal import Queue
internal import Spool

/// A status report as one screen of text. A pure value: the same report gives the same screen.
struct StatusText: Sendable {
    /// How a piece of text looks on a terminal; the raw value is the number of the escape sequence (ECMA-48,
    /// SGR).
    enum Style: String {
        /// Green: as it should be.
        case good = "32"
        /// Yellow: worth a look.
        case warning = "33"
        /// Red: a person must act.
        case bad = "31"
        /// Bold.
        case heading = "1"
    }

    /// The state to show.
    let report: StatusReport
    /// How the client wants styles marked; nil for plain text.
    private let marks: StyleMarks?

    /// - Parameter marks: how the client wants styles marked; nil for plain text.
    init(_ report: StatusReport, marks: StyleMarks? = nil) {
        self.report = report
        self.marks = marks
    }

    /// The text with the marks of a style.
    func styled(_ text: String, _ style: Style) -> String {
        marks?.styled(text, style.rawValue) ?? text
    }

    /// The most destinations with a row for each priority. With more there is one row for each destination:
    /// thirty destinations would fill two screens, mostly with zeros.
    static let destinationsInDetail = 6

    /// The whole screen, each line ended.
    var screen: String {
        var lines = [head] + report.obstacles.map { "  " + styled($0, .bad) }
        lines += [""] + allDestinationLines
        if report.destinations.isEmpty {
            lines.append("no destination is configured: events wait in the spool")
        }
        lines += [""] + ledger
        lines += ["", intakeLine] + spoolLines
        lines += report.spool.complaints.map { "  " + styled($0, .warning) }
        lines.append(queueLine)
        lines += keptLines
        lines += report.rules.map(ruleLine)
        lines += report.checks
        lines += report.containers.map(containerLine)
        lines += report.overrides.map { "setting \($0.setting) = \($0.value) (set by \($0.origin))" }
        lines += report.hostNews + switchLines
        return StatusText.joined(lines)
    }

    /// On how many events a rule acted. A rule without a name is named `rule 3`.
    private func ruleLine(_ rule: (name: String, events: Int)) -> String {
        let name = rule.name.hasPrefix("rule ") ? rule.name : "rule \(rule.name)"
        return "\(name): acted on \(HumanText.plural(rule.events, "event"))"
    }

    /// One destination in detail, each line ended; nil for an unknown name.
    func screen(of name: String) -> String? {
        guard let destination = report.destinations.first(where: { $0.name == name }) else { return nil }
        var lines = destinationLines(destination)
        if let address = destination.address {
            lines.append("  address: \(address)")
        }
        lines += [""] + LedgerTable([destination], byPriority: true).lines(title: { styled($0, .heading) })
        return StatusText.joined(lines)
    }

    /// The lines, each ended. Names and messages come from outside: no control character of theirs may
    /// reach a terminal, and a line feed in a file's name must not begin a line that looks like one of
    /// these.
    private static func joined(_ lines: [String]) -> String {
        lines.map { PrintableText.escaped($0, keeping: ["\t"]) + "\n" }.joined()
    }

    /// All lines of a destination.
    private func destinationLines(_ destination: StatusReport.Destination) -> [String] {
        [destinationLine(destination)] + answerLines(destination) + setAsideLines(destination)
    }

    /// The lines of all destinations. If many fail, their answers are left for `--destination`: each would
    /// be a line as long as the reason above it.
    private var allDestinationLines: [String] {
        let failing = report.destinations.count(where: \.isFailing)
        guard failing > StatusText.destinationsInDetail else { return ordered.flatMap(destinationLines) }
        return ordered.flatMap { [destinationLine($0)] + setAsideLines($0) }
    }

    /// The destinations that fail, then the others, both in the order of the configuration.
    var ordered: [StatusReport.Destination] {
        report.destinations.filter(\.isFailing) + report.destinations.filter { !$0.isFailing }
    }

    /// What each app has written, the busiest first.
    var apps: String {
        guard !appRows.isEmpty else { return "no app has written anything since the start\n" }
        let table = [["app", "events", "records", "bytes", "quarantined", "last"]] + appRows
        let widths = table[0].indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        return StatusText.joined(
            table.map { row in
                let figures = zip(row, widths).dropFirst().map { $0.padded(onLeft: $1) }
                return ([row[0].padded(onRight: widths[0])] + figures).joined(separator: "  ")
            })
    }

    /// A row for each app: name, events, records, bytes, quarantined lines, time of the last write. The
    /// busiest app is first.
    var appRows: [[String]] {
        report.busiestApps.map { name, app in
            [
                name, HumanText.count(app.events - app.records), HumanText.count(app.records),
                HumanText.bytes(app.bytes), HumanText.count(app.quarantined),
                app.lastRead.map { "\(since($0)) ago" } ?? "–",
            ]
        }
    }

    // MARK: Head

    /// The first line: version, host, age, and whether the agent is ready.
    private var head: String {
        let ready = report.obstacles.isEmpty ? styled("ready", .good) : styled("not ready", .bad)
        let age = HumanText.duration(report.now - report.started)
        let host = report.host.isEmpty ? "" : " on \(report.host)"
        let troubles = DestinationTroubles(report).summary.map { ", " + styled($0, .bad) } ?? ""
        return
            "spoolship \(report.version)\(host), process \(report.processID), up \(age): \(ready)\(troubles)"
    }

    /// How long ago a time is.
    func since(_ time: Timestamp) -> String { HumanText.duration(report.now - time) }

    /// How long until a time.
    func until(_ time: Timestamp) -> String { HumanText.duration(time - report.now) }

    // MARK: Ledger

    /// The table of the ledgers, and a warning if they do not balance.
    private var ledger: [String] {
        guard !report.destinations.isEmpty else { return [] }
        // The hint below tells how to see the rows that are left out.
        let isDetailed = report.destinations.count <= StatusText.destinationsInDetail
        let table = LedgerTable(ordered, byPriority: isDetailed)
        let rows = table.lines(title: { styled($0, .heading) })
        let hint = isDetailed ? [] : ["`spoolship status --destination NAME` shows one in detail"]
        let check =
            report.balances
            ? [] : [styled("the ledger does not balance: please report this as a defect", .bad)]
        return rows + hint + check
    }

    // MARK: The rest

    /// The equation of the intake.
    private var intakeLine: String {
        let intake = report.queue.intake
        return "events: \(HumanText.count(intake.read)) read = \(HumanText.count(intake.accepted)) accepted"
            + " + \(HumanText.count(intake.refused)) refused + \(HumanText.count(intake.quarantined)) "
            + "quarantined"
    }

    /// The spool, with a line for each place and journal that is read.
    private var spoolLines: [String] {
        let spool = report.spool
        var text = "spool:  "
        if spool.lagBytes == 0, !spool.isListed {
            text += "not all directories have been looked at yet"
        } else if spool.lagBytes == 0, spool.secondTries.isEmpty {
            text += spool.waits == nil ? "everything is read" : "nothing unread"
        } else if spool.lagBytes == 0 {
            text += "nothing unread except files that will be tried again"
        } else {
            text +=
                "\(HumanText.bytes(spool.lagBytes)) unread, oldest "
                + "\(HumanText.duration(.seconds(spool.lagSeconds)))"
        }
        text += ", \(HumanText.plural(spool.files, "file"))"
        if !spool.directory.isEmpty {
            text += " in \(spool.directory)"
        }
        if !spool.secondTries.isEmpty {
            let tries = spool.secondTries.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            text += "; " + styled("second tries: \(tries.joined(separator: ", "))", .warning)
        }
        if let waits = spool.waits {
            text += "; " + styled("reading waits: \(waits)", .warning)
        }
        let tries =
            spool.secondTries.isEmpty
            ? [] : spool.secondTryPaths.map { styled("will be tried again: \($0)", .warning) }
        let unfinished = spool.unfinishedLines.map { line in
            let bytes = HumanText.bytes(Int(line.bytes))
            let age = HumanText.duration(report.now - line.since)
            let words = "\(bytes) have waited for a line feed for \(age)"
            return styled("\(line.app): the last line of \(line.path) has no end: \(words)", .warning)
        }
        return [text] + (tries + unfinished).map { "        " + $0 } + placeLines + journalLines
    }

    /// A line for each place that is read.
    private var placeLines: [String] {
        report.spool.places.map { place, figures in
            let state =
                figures.flatMap { $0.root == nil ? nil : $0 }.map {
                    let unread = HumanText.bytes(Int($0.unreadBytes.value))
                    return "\(HumanText.plural($0.appendFiles, "file")), \(unread) unread"
                } ?? styled("no such directory yet, or it cannot be opened", .warning)
            return "read:   \(state) in \(place.root) for \(place.app)"
        }
    }

    /// A line for each journal that is read.
    private var journalLines: [String] {
        report.spool.journals.map { app, directory, figures in
            let source = directory.map { "the journal in \($0)" } ?? "the journal"
            let entries = "\(HumanText.count(figures.entries)) \(figures.entries == 1 ? "entry" : "entries")"
            var text = "read:   \(entries) of \(source) for \(app)"
            if figures.gaps > 0 {
                let times = HumanText.plural(figures.gaps, "time")
                text +=
                    "; " + styled("entries were removed before they were read, \(times): see the log", .bad)
            }
            if figures.unreadableFiles > 0 {
                let files = HumanText.plural(figures.unreadableFiles, "file")
                text += "; " + styled("\(files) of it cannot be read: see the log", .warning)
            }
            if let problem = figures.problem?.message {
                text += "; " + styled("not read: \(problem)", .bad)
            }
            return text
        }
    }

    /// The fill level of the queue, and what it accepts.
    private var queueLine: String {
        let queue = report.queue
        let share = queue.maxSize > 0 ? " (\(queue.storedBytes * 100 / queue.maxSize) %)" : ""
        var text =
            "queue:  \(HumanText.bytes(queue.storedBytes)) of \(HumanText.bytes(queue.maxSize))\(share)"
        text += ", \(HumanText.bytes(queue.fileBytes + queue.walBytes)) on disk"
        let accepting = report.accepting
        if accepting.word != "all" {
            let reason = accepting.reason.map { ": \($0)" } ?? ""
            let what =
                accepting.word == "critical" ? "only critical events are accepted" : "no events are accepted"
            text += "; " + styled(what + reason, .bad)
        }
        return text
    }

    /// The dead letters of each destination; empty with a single destination.
    private var deadLettersByDestination: String {
        guard report.destinations.count > 1 else { return "" }
        let shares = report.destinations.compactMap { destination -> String? in
            let count = destination.lanes.reduce(0) { $0 + $1.deadLetters }
            return count > 0 ? "\(HumanText.count(count)) of \(destination.name)" : nil
        }
        return shares.isEmpty ? "" : ": " + shares.joined(separator: ", ")
    }

    /// What waits for a person: dead letters, quarantine, files that stay.
    private var keptLines: [String] {
        var lines: [String] = []
        let queue = report.queue
        func purged(_ count: Int) -> String { count > 0 ? ", \(HumanText.count(count)) purged" : "" }
        if queue.deadLetters.count + queue.deadLetters.purged > 0 {
            lines.append(
                styled(HumanText.plural(queue.deadLetters.count, "dead letter"), .warning)
                    + "\(deadLettersByDestination), \(HumanText.bytes(queue.deadLetters.bytes))"
                    + purged(queue.deadLetters.purged) + " (`spoolship dead-letters list`)")
        }
        if queue.quarantine.count + queue.quarantine.purged > 0 {
            lines.append(
                styled("\(HumanText.count(queue.quarantine.count)) in quarantine", .warning)
                    + ", \(HumanText.bytes(queue.quarantine.bytes))\(purged(queue.quarantine.purged))"
                    + " (`spoolship quarantine list`)")
        }
        if !queue.unkept.isEmpty {
            lines.append(
                styled(
                    "\(HumanText.plural(queue.unkept.count, "file")) read and not removed: the quarantine "
                        + "could not hold their bad lines",
                    .warning) + ": \(report.stayingPaths.joined(separator: ", "))"
                    + (queue.unkept.count > report.stayingPaths.count ? " …" : "")
                    + " (`spoolship quarantine retry --files`)")
        }
        return lines
    }

    /// The line of a container.
    private func containerLine(_ container: StatusReport.Container) -> String {
        let age = container.confirmed.map { ", confirmed \(since($0)) ago" } ?? ""
        let problem = container.problem.map { "; " + styled($0, .warning) } ?? ""
        let ends = container.previewEnds.map { ", ends in \(until($0))" } ?? ""
        let source = container.source == "preview" ? styled("preview\(ends)", .warning) : container.source
        return "container \(container.id): version \(container.version), \(source)\(age)\(problem)"
    }

    /// The interval and the log level, and settings that are edited but not in force.
    private var switchLines: [String] {
        var lines = ["dispatch \(report.dispatchText), log level \(report.logLevel)"]
        if let problem = report.reloadProblem {
            lines.append(styled("the last reload failed, the old settings are in force: \(problem)", .bad))
        }
        for (edits, hint) in [(report.edits, "`spoolship reload`"), (report.restartEdits, "needs a restart")]
        where !edits.isEmpty {
            let some = edits.prefix(3).joined(separator: ", ") + (edits.count > 3 ? ", …" : "")
            lines.append(styled("edited, not in force: \(some) (\(hint))", .warning))
        }
        if let problem = report.restartProblem {
            lines.append(styled("a restart would fail: \(problem)", .bad))
        }
        return lines
    }
}
