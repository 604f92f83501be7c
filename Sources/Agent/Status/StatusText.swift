internal import Control
internal import EventLoops
internal import Journal
internal import Model
internal import Queue
internal import Spool

/// A status report as one screen of text. Pure: the same report gives the same screen.
struct StatusText: Sendable {
    /// How a piece of text looks on a terminal, by the number of its escape sequence.
    enum Style: String {
        /// As it should be: green.
        case good = "32"
        /// Worth a look: yellow.
        case warning = "33"
        /// A person must look: red.
        case bad = "31"
        case heading = "1"
    }

    let report: StatusReport
    private let hasColours: Bool

    /// - Parameter hasColours: whether the text is for a terminal that shows colours.
    init(_ report: StatusReport, hasColours: Bool = false) {
        self.report = report
        self.hasColours = hasColours
    }

    func styled(_ text: String, _ style: Style) -> String {
        hasColours ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The whole screen, each line ended.
    var screen: String {
        var lines = [head] + report.obstacles.map { "  " + styled($0, .bad) }
        lines += [""] + report.destinations.flatMap { [destinationLine($0)] + answerLines($0) + setAsideLines($0) }
        if report.destinations.isEmpty { lines.append("no destination is configured: events wait in the spool") }
        lines += [""] + ledger
        lines += ["", intakeLine, spoolLine]
        lines += report.spool.complaints.map { "  " + styled($0, .warning) }
        lines.append(queueLine)
        lines += keptLines
        lines += report.containers.map(containerLine)
        lines += report.overrides.map { "setting \($0.setting) = \($0.value) (set by \($0.origin))" }
        lines += switchLines
        return lines.map { $0 + "\n" }.joined()
    }

    /// What each app has written, the busiest first.
    var apps: String {
        guard !appRows.isEmpty else { return "no app has written anything since the start\n" }
        let table = [["app", "events", "records", "bytes", "quarantined", "last"]] + appRows
        let widths = table[0].indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        return table.map { row in
            let figures = zip(row, widths).dropFirst().map { StatusText.right($0, $1) }
            return ([StatusText.left(row[0], widths[0])] + figures).joined(separator: "  ") + "\n"
        }.joined()
    }

    /// Of each app its name, events, records, bytes, quarantined lines and when it last wrote; the busiest first.
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

    private var head: String {
        let ready = report.obstacles.isEmpty ? styled("ready", .good) : styled("not ready", .bad)
        let age = HumanText.duration(report.now - report.started)
        let host = report.host.isEmpty ? "" : " on \(report.host)"
        return "spoolship \(report.version)\(host), process \(report.processID), up \(age): \(ready)"
    }

    func since(_ time: Timestamp) -> String { HumanText.duration(report.now - time) }

    func until(_ time: Timestamp) -> String { HumanText.duration(time - report.now) }

    // MARK: Ledger

    private var ledger: [String] {
        let lanes = report.destinations.flatMap { destination in
            [Priority.critical, .normal].map { (destination.name, $0, destination.ledger($0)) }
        }
        guard !lanes.isEmpty else { return [] }
        let names = max(6, lanes.map(\.0.count).max() ?? 0)
        func row(_ cells: [String]) -> String {
            StatusText.left(cells[0], names) + "  " + StatusText.left(cells[1], 8)
                + cells[2...4].map { StatusText.right($0, 15) }.joined() + (cells[5].isEmpty ? "" : "  " + cells[5])
        }
        let title = row(["ledger", "", "accepted", "acknowledged", "waiting", ""])
        var last = ""
        let rows = lanes.map { name, priority, ledger in
            defer { last = name }
            return row([
                name == last ? "" : name, priority.name, HumanText.count(ledger.accepted),
                HumanText.count(ledger.acknowledged), HumanText.count(ledger.queued), others(ledger),
            ])
        }
        let check = report.balances ? [] : [styled("the ledger does not balance: please report this as a defect", .bad)]
        return [styled(title, .heading)] + rows + check
    }

    private func others(_ ledger: Ledger) -> String {
        // The others have their own columns.
        let rare = Ledger.figures.filter { !["accepted", "acknowledged", "queued"].contains($0.name) }
        return rare.map { (ledger[keyPath: $0.path], $0.name.replacingAll("_", with: "-")) }
            .filter { $0.0 > 0 }.map { "\(HumanText.count($0.0)) \($0.1)" }.joined(separator: ", ")
    }

    // MARK: The rest

    private var intakeLine: String {
        let intake = report.queue.intake
        return "events: \(HumanText.count(intake.read)) read = \(HumanText.count(intake.accepted)) accepted"
            + " + \(HumanText.count(intake.refused)) refused + \(HumanText.count(intake.quarantined)) quarantined"
    }

    private var spoolLine: String {
        let spool = report.spool
        var text = "spool:  "
        if spool.lagBytes == 0, spool.secondTries.isEmpty {
            text += spool.waits == nil ? "everything is read" : "nothing unread"
        } else if spool.lagBytes == 0 {
            text += "nothing unread except files that will be tried again"
        } else {
            text +=
                "\(HumanText.bytes(spool.lagBytes)) unread, oldest \(HumanText.duration(.seconds(spool.lagSeconds)))"
        }
        text += ", \(HumanText.plural(spool.files, "file"))"
        if !spool.directory.isEmpty { text += " in \(spool.directory)" }
        if !spool.secondTries.isEmpty {
            let tries = spool.secondTries.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            text += "; " + styled("second tries: \(tries.joined(separator: ", "))", .warning)
        }
        if let waits = spool.waits { text += "; " + styled("reading waits: \(waits)", .warning) }
        for (place, figures) in spool.places {
            let state =
                figures.flatMap { $0.root == nil ? nil : $0 }.map {
                    let unread = HumanText.bytes(Int($0.unreadBytes.value))
                    return "\(HumanText.plural($0.appendFiles, "file")), \(unread) unread"
                } ?? styled("no such directory yet, or it cannot be opened", .warning)
            text += "\nread:   \(state) in \(place.root) for \(place.app)"
        }
        for (app, directory, figures) in spool.journals {
            let source = directory.map { "the journal in \($0)" } ?? "the journal"
            text += "\nread:   \(HumanText.count(figures.entries)) \(figures.entries == 1 ? "entry" : "entries")"
            text += " of \(source) for \(app)"
            if figures.gaps > 0 {
                let times = HumanText.plural(figures.gaps, "time")
                text += "; " + styled("entries were removed before they were read, \(times): see the log", .bad)
            }
            if figures.unreadableFiles > 0 {
                let files = HumanText.plural(figures.unreadableFiles, "file")
                text += "; " + styled("\(files) of it cannot be read: see the log", .warning)
            }
            if let problem = figures.problem?.message { text += "; " + styled("not read: \(problem)", .bad) }
        }
        return text
    }

    private var queueLine: String {
        let queue = report.queue
        let share = queue.maxSize > 0 ? " (\(queue.storedBytes * 100 / queue.maxSize) %)" : ""
        var text = "queue:  \(HumanText.bytes(queue.storedBytes)) of \(HumanText.bytes(queue.maxSize))\(share)"
        text += ", \(HumanText.bytes(queue.fileBytes + queue.walBytes)) on disk"
        let accepting = report.accepting
        if accepting.word != "all" {
            let reason = accepting.reason.map { ": \($0)" } ?? ""
            let what = accepting.word == "critical" ? "only critical events are accepted" : "nothing is accepted"
            text += "; " + styled(what + reason, .bad)
        }
        return text
    }

    /// Whose the dead letters are, where there are several destinations.
    private var deadLettersByDestination: String {
        guard report.destinations.count > 1 else { return "" }
        let shares = report.destinations.compactMap { destination -> String? in
            let count = destination.lanes.reduce(0) { $0 + $1.deadLetters }
            return count > 0 ? "\(HumanText.count(count)) of \(destination.name)" : nil
        }
        return shares.isEmpty ? "" : ": " + shares.joined(separator: ", ")
    }

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
                    "\(HumanText.plural(queue.unkept.count, "file")) read and not removed: the quarantine could not hold their bad lines",
                    .warning) + ": \(report.stayingPaths.joined(separator: ", "))"
                    + (queue.unkept.count > report.stayingPaths.count ? " …" : "")
                    + " (`spoolship quarantine retry --files`)")
        }
        return lines
    }

    private func containerLine(_ container: StatusReport.Container) -> String {
        let age = container.confirmed.map { ", confirmed \(since($0)) ago" } ?? ""
        let problem = container.problem.map { "; " + styled($0, .warning) } ?? ""
        let ends = container.previewEnds.map { ", ends in \(until($0))" } ?? ""
        let source = container.source == "preview" ? styled("preview\(ends)", .warning) : container.source
        return "container \(container.id): version \(container.version), \(source)\(age)\(problem)"
    }

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
        if let problem = report.restartProblem { lines.append(styled("a restart would fail: \(problem)", .bad)) }
        return lines
    }

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
