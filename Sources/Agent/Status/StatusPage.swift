internal import Control
internal import EventLoops
internal import Model
internal import Queue

/// A status report as one HTML page for a person. It has no script and loads nothing; it is readable on a
/// phone, by a screen reader, in light and dark. A pure value: the same report and history give the same
/// page.
///
/// All texts that may come from outside pass through `HTMLText.escaped`.
struct StatusPage: Sendable {
    /// The page reloads itself after this time, by an HTML header because it has no script.
    private static let refreshSeconds = 15

    /// The state to show.
    private let report: StatusReport
    /// Samples of the last hour, for the plots.
    private let history: StatusHistory
    /// The sentences that the page shares with `status`.
    private let words: StatusText

    init(_ report: StatusReport, history: StatusHistory) {
        self.report = report
        self.history = history
        words = StatusText(report)
    }

    /// The whole page.
    var html: String {
        let troubles = DestinationTroubles(report).summary
        let state = report.obstacles.isEmpty ? "Ready" : "Not ready"
        // `fair`: ready, but a destination fails.
        let tone = report.obstacles.isEmpty ? (troubles == nil ? "good" : "fair") : "bad"
        let also = troubles.map { ", \(HTMLText.escaped($0))" } ?? ""
        let host = report.host.isEmpty ? "" : " on \(HTMLText.escaped(report.host))"
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta http-equiv="refresh" content="\(StatusPage.refreshSeconds)">
            <link rel="icon" href="data:,">
            <title>\(state): Spoolship\(host)</title>
            <style>
            \(StatusPage.style)
            </style>
            </head>
            <body>
            <header>
            <h1>Spoolship\(host)</h1>
            <p class="pill \(tone)">\(state)\(also)</p>
            <p class="quiet">Version \(HTMLText.escaped(report.version)), up \
            \(HumanText.duration(report.now - report.started)), at \(time(report.now)). Shown again every \(StatusPage.refreshSeconds) s. <a href="/">Now</a></p>
            </header>
            <main>
            \(obstacles)\(destinations)\(plots)\(ledger)\(apps)\(checks)\(stores)\(containers)</main>
            <footer><p class="quiet">Dispatch \(HTMLText.escaped(report.dispatchText)). \
            <a href="/metrics">Metrics</a>, <a href="/readyz">readiness</a>. On the machine, <code>spoolship status</code>
            shows the same and <code>spoolship help</code> what can be done about it.</p></footer>
            </body>
            </html>

            """
    }

    // MARK: Sections

    /// "Needs attention": obstacles, failing destinations, a failed reload, complaints; empty if all is well.
    private var obstacles: String {
        var items = report.obstacles
        items += DestinationTroubles(report).sentences(reason: words.reason)
        if let problem = report.reloadProblem {
            items.append("The last reload failed, the old settings are in force: \(problem)")
        }
        if let problem = report.restartProblem {
            items.append("A restart would fail: \(problem)")
        }
        items += report.spool.complaints
        guard !items.isEmpty else { return "" }
        let list = items.map { "<li>\(HTMLText.escaped($0))</li>" }.joined(separator: "\n")
        return StatusPage.section(
            "attention", "Needs attention", "<ul>\n\(list)\n</ul>", of: "class=\"alert\" ")
    }

    /// What schemas and the search for repeats found; empty without them.
    private var checks: String {
        guard !report.checks.isEmpty else { return "" }
        let list = report.checks.map { "<li>\(HTMLText.escaped($0))</li>" }.joined(separator: "\n")
        return StatusPage.section("checks", "Checks", "<ul>\n\(list)\n</ul>")
    }

    /// A card for each destination.
    private var destinations: String {
        guard !report.destinations.isEmpty else {
            return
                "<section><h2>Destinations</h2><p>None is configured: nothing is read, events wait in the spool.</p>"
                + "</section>\n"
        }
        let cards = words.ordered.map { destination in
            let oldest = destination.oldest.map { HumanText.duration(report.now - $0) }
            let address =
                destination.address.map { " <span class=\"quiet\">\(HTMLText.escaped($0))</span>" } ?? ""
            // While a destination works, the queue may grow for a moment without ever reaching its cap.
            let cap =
                destination.state == .active || destination.queued == 0
                ? nil : report.capReachedIn.map { "about \(HumanText.roughly($0))" }
            return """
                <article class="card \(StatusPage.tone(destination.state))">
                <h3>\(HTMLText.escaped(destination.name))\(address)</h3>
                <p class="why"><span class="pill \(StatusPage.tone(destination.state))">\
                \(StatusPage.label(destination.state))</span> \(why(destination))</p>
                <dl>\(StatusPage.term("Waiting, critical", HumanText.count(destination.ledger(.critical).queued)))\
                \(StatusPage.term("Waiting, normal", HumanText.count(destination.ledger(.normal).queued)))\
                \(StatusPage.term("Oldest", oldest ?? "–"))\
                \(StatusPage.term("In flight", HumanText.count(destination.inFlight)))\
                \(failure(destination).map { StatusPage.term("Last failure", $0) } ?? "")\
                \(cap.map { StatusPage.term("Cap reached in", $0) } ?? "")</dl>
                </article>
                """
        }
        return StatusPage.section(
            "destinations", "Destinations", "<div class=\"cards\">\n\(cards.joined(separator: "\n"))\n</div>")
    }

    /// The plots of the last hour: deliveries, and events that wait.
    private var plots: String {
        // Counters become rates: a plot of a counter would only ever rise.
        func rates(_ figure: (StatusHistory.Sample) -> Int) -> [(at: Timestamp, value: Double)] {
            // A rate holds for the whole time between two samples: a step, not a slope.
            zip(history.samples, history.samples.dropFirst()).flatMap { before, after in
                let seconds = Double((after.at - before.at).nanosecondsClamped) / 1e9
                let rate = seconds > 0 ? max(0, Double(figure(after) - figure(before))) / seconds : 0
                return [(before.at, rate), (after.at, rate)]
            }
        }
        let flow = StatusPlot(
            title: "Deliveries", now: report.now,
            lines: [
                .init(name: "accepted", points: rates(\.accepted)),
                .init(name: "acknowledged", points: rates(\.acknowledged)),
            ], text: HumanText.rate)
        let waiting = StatusPlot(
            title: "Waiting", now: report.now,
            lines: [.init(name: "deliveries", points: history.samples.map { ($0.at, Double($0.queued)) })],
            text: { HumanText.count(Int($0)) })
        return StatusPage.section(
            "hour", "The last hour", "<div class=\"plots\">\n\(flow.html)\(waiting.html)</div>")
    }

    /// The ledger with all its figures, and whether it balances.
    private var ledger: String {
        let columns = Ledger.figures.map { figure in
            let word = figure.name == "queued" ? "waiting" : figure.name.replacingAll("_", with: "-")
            return (name: word.prefix(1).uppercased() + word.dropFirst(), path: figure.path)
        }
        guard !report.destinations.isEmpty else { return "" }
        let all = words.ordered.flatMap { destination in
            [Priority.critical, .normal].map { priority in
                (name: "\(destination.name), \(priority.name)", ledger: destination.ledger(priority))
            }
        }
        // Of many destinations most have no critical events: half of the rows would be zeros.
        let isLong = report.destinations.count > StatusText.destinationsInDetail
        let shown =
            isLong ? all.filter { row in columns.contains { row.ledger[keyPath: $0.path] != 0 } } : all
        let rows = shown.map { name, ledger in
            let cells = columns.map { column in
                let value = ledger[keyPath: column.path]
                let tone = value == 0 ? " class=\"zero\"" : ""
                return "<td\(tone) data-name=\"\(column.name)\">\(HumanText.count(value))</td>"
            }
            return StatusPage.row(name, cells)
        }
        let empty = all.count - shown.count
        let hint =
            empty > 0
            ? "<p class=\"quiet\">\(HumanText.plural(empty, "row")) without events "
                + "\(empty == 1 ? "is" : "are") left out.</p>" : ""
        // The ledger's equation is the proof that no event was lost without being counted. A reader of the
        // page should see it hold, not only see it fail.
        let check =
            report.balances
            ? "<p class=\"quiet\">The ledger balances: accepted + retried = all the others.</p>"
            : "<p class=\"pill bad\">The ledger does not balance: please report this as a defect.</p>"
        return StatusPage.table(
            "ledger", "Ledger", "Deliveries since the queue was made, by destination and priority",
            head: ["Destination"] + columns.map(\.name), rows: rows, after: hint + check)
    }

    /// The most apps in the table; the page names the command that shows all.
    private static let mostApps = 20

    /// The table of the busiest apps.
    private var apps: String {
        let all = words.appRows
        guard !all.isEmpty else { return "" }
        let columns = ["Events", "Records", "Bytes", "In quarantine", "Last read"]
        let rows = all.prefix(StatusPage.mostApps).map { cells in
            StatusPage.row(
                cells[0], zip(columns, cells.dropFirst()).map { "<td data-name=\"\($0)\">\($1)</td>" })
        }
        let more = all.count - rows.count
        return StatusPage.table(
            "apps", "Apps", "Read since the start, the busiest first", head: ["App"] + columns, rows: rows,
            after: more > 0
                ? "<p class=\"quiet\">And \(more) more: <code>spoolship status --apps</code>.</p>" : "")
    }

    /// A row of a table with its heading. The cells are HTML, the heading is text.
    private static func row(_ name: String, _ cells: [String]) -> String {
        "<tr><th scope=\"row\">\(HTMLText.escaped(name))</th>\(cells.joined())</tr>"
    }

    /// A section with a table that scrolls by itself, so that a phone does not scroll the whole page
    /// sideways.
    private static func table(
        _ id: String, _ title: String, _ caption: String?, head: [String], rows: [String], after: String
    ) -> String {
        section(
            id, title,
            """
            <div class="scroll" tabindex="0" role="region" aria-labelledby="\(id)"><table>
            \(caption.map { "<caption class=\"quiet\">\($0)</caption>" } ?? "")
            <thead><tr\(caption == nil ? " class=\"text\"" : "")>\(head.map { "<th scope=\"col\">\($0)</th>" }.joined())</tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody></table></div>
            \(after)
            """)
    }

    /// A section with a heading, which names it for screen readers.
    private static func section(_ id: String, _ title: String, _ body: String, of attributes: String = "")
        -> String
    {
        "<section \(attributes)aria-labelledby=\"\(id)\"><h2 id=\"\(id)\">\(title)</h2>\n\(body)</section>\n"
    }

    /// The state of the spool and the queue.
    private var stores: String {
        let queue = report.queue
        // At most 100: a cap that was lowered may be less than what is stored.
        let share = queue.maxSize > 0 ? min(100, queue.storedBytes * 100 / queue.maxSize) : 0
        let intake = queue.intake
        // The words of the control API, as a person says them.
        let accepting =
            switch report.accepting.word {
            case "all": "everything"
            case "critical": "critical events only"
            default: "nothing"
            }
        let reason = report.accepting.reason.map { ": \(HTMLText.escaped($0))" } ?? ""
        let lag =
            report.spool.lagBytes == 0
            ? report.spool.isListed ? "nothing" : "not known yet"
            : "\(HumanText.bytes(report.spool.lagBytes)), oldest \(HumanText.duration(.seconds(report.spool.lagSeconds)))"
        return StatusPage.section(
            "stores", "Spool and queue",
            """
            <p><label for="fill">Queue: \(HumanText.bytes(queue.storedBytes)) of \(HumanText.bytes(queue.maxSize)), \
            \(share) %</label><br>
            <meter id="fill" min="0" max="100" low="80" high="90" optimum="0" value="\(share)">\(share) %</meter></p>
            <dl>\(StatusPage.term("Takes", accepting + reason))\
            \(StatusPage.term("Unread in the spool", lag))\
            \(report.spool.waits.map { StatusPage.term("Reading waits", HTMLText.escaped($0)) } ?? "")\
            \(StatusPage.term("Files", HumanText.count(report.spool.files)))\
            \(StatusPage.term("Events read", HumanText.count(intake.read)))\
            \(StatusPage.term("Refused", HumanText.count(intake.refused)))\
            \(StatusPage.term("In quarantine", HumanText.count(queue.quarantine.count)))\
            \(StatusPage.term("Dead letters", HumanText.count(queue.deadLetters.count)))\
            \(StatusPage.term("On disk", HumanText.bytes(queue.fileBytes + queue.walBytes)))</dl>
            """)
    }

    /// The table of the containers, and the settings that they have set.
    private var containers: String {
        guard !report.containers.isEmpty else { return "" }
        let rows = report.containers.map { container in
            let age = container.confirmed.map { HumanText.duration(report.now - $0) + " ago" } ?? "–"
            let ends = container.previewEnds.map { ", ends in \(HumanText.duration($0 - report.now))" } ?? ""
            let cells = [
                ("Version", container.version), ("Source", container.source + ends), ("Confirmed", age),
                ("Problem", container.problem ?? "none"),
            ]
            return StatusPage.row(
                container.id,
                cells.map { "<td class=\"text\" data-name=\"\($0)\">\(HTMLText.escaped($1))</td>" })
        }
        return StatusPage.table(
            "containers", "Containers", nil, head: ["Id", "Version", "Source", "Confirmed", "Problem"],
            rows: rows,
            after: overrides)
    }

    /// Settings that commands or containers have set.
    private var overrides: String {
        guard !report.overrides.isEmpty else { return "" }
        let entries = report.overrides.map {
            "<li><code>\(HTMLText.escaped($0.setting)) = \(HTMLText.escaped($0.value))</code>, set by "
                + "\(HTMLText.escaped($0.origin))</li>"
        }
        return "<p>Settings that are not as configured:</p><ul>\(entries.joined())</ul>"
    }

    // MARK: Pieces

    /// The reason of a state, without the state itself, which is the label before it; commands are set as
    /// code.
    private func why(_ destination: StatusReport.Destination) -> String {
        var reason = words.reason(destination)
        let label = StatusPage.label(destination.state).lowercased()
        // What waits for a retry is failing: after the label the word would say it again.
        if let said = [label, "failing"].first(where: reason.hasPrefix) {
            reason = String(reason.dropFirst(said.count).drop { ",: ".contains($0) })
        }
        let parts = reason.split(separator: "`", omittingEmptySubsequences: false).map {
            HTMLText.escaped(String($0))
        }
        // The text between two backticks is a command. With an odd number of backticks show the text as it
        // is.
        guard parts.count % 2 == 1 else { return HTMLText.escaped(reason) }
        return parts.enumerated().map { $0 % 2 == 1 ? "<code>\($1)</code>" : $1 }.joined()
    }

    /// The code of the last failure, never its text: the text may quote an event, which only clients of the
    /// control socket may see.
    private func failure(_ destination: StatusReport.Destination) -> String? {
        guard let (failure, at) = destination.lastFailure else { return nil }
        let what = failure.status.map { "HTTP \($0)" } ?? failure.kind.rawValue
        return "\(what), \(HumanText.duration(report.now - at)) ago"
    }

    /// An entry of a list of terms.
    private static func term(_ name: String, _ value: String) -> String {
        "<div><dt>\(name)</dt><dd>\(value)</dd></div>"
    }

    /// A time of day for people, with the full time for programs.
    private func time(_ time: Timestamp) -> String {
        let text = time.description
        return "<time datetime=\"\(text)\">\(text.dropFirst(11).prefix(8)) UTC</time>"
    }

    /// The colour of a state, as a class of the style sheet.
    private static func tone(_ state: DestinationStateName) -> String {
        switch state {
        case .active: "good"
        case .held, .breakerOpen, .offline: "bad"
        default: "fair"
        }
    }

    /// The name of a state for people.
    private static func label(_ state: DestinationStateName) -> String {
        switch state {
        case .active: "Active"
        case .disabled: "Disabled"
        case .networkOff: "Network off"
        case .paused: "Paused"
        case .stopping: "Stopping"
        case .held: "Held"
        case .retryAfter: "Asked to wait"
        case .offline: "Offline"
        case .breakerOpen: "Failing"
        case .waitingForRetry: "Retrying"
        case .orphaned: "Not configured"
        }
    }

    /// The style sheet, without the line feed at the end of its file.
    private static let style = String(decoding: PackageResources.page_css.dropLast(), as: UTF8.self)
}
