internal import EventLoops
internal import Events
internal import Logs
internal import Model
internal import TextFormats

/// What the log says of lines and events, each at most once in its time: otherwise a bad app fills the log.
/// Content never goes to the log.
struct IntakeReports {
    private let log: Log
    /// Trust in the clock that the log has last reported.
    private var wasTrusted: Bool?
    /// Lines that went to the quarantine since the log last reported them, and the earliest time of the next
    /// report.
    private var unreported: [QuarantineRecord.Reason: Int] = [:]
    private var nextReport = BootInstant(nanoseconds: .min)
    /// Events that tags made too large since the last report, and the earliest time of the next one.
    private var madeTooLarge: MadeTooLarge?
    private var nextTooLargeReport = BootInstant(nanoseconds: .min)
    /// Number of cuts that the log has reported, and the earliest time of the next report.
    private var cuts = 0
    private var nextCutReport = BootInstant(nanoseconds: .min)
    /// Lines of text that the log has reported, by app, and the earliest time of the next report.
    private var texts: [String: TextCounts] = [:]
    private var nextTextReport = BootInstant(nanoseconds: .min)

    init(_ log: Log) { self.log = log }

    /// Logs what is due at a commit.
    mutating func report(
        _ quarantined: [QuarantineRecord], _ counts: EventCounts, at now: BootInstant
    ) {
        report(quarantined, at: now)
        reportMadeTooLarge(at: now)
        reportCuts(counts, at: now)
        reportTexts(counts.texts, at: now)
    }

    /// Logs that trust in the clock has changed.
    mutating func note(isClockTrusted isTrusted: Bool) {
        guard isTrusted != wasTrusted else { return }
        wasTrusted = isTrusted
        log.info(
            isTrusted
                ? "the clock is trusted"
                : "the clock is not trusted yet: nothing expires, no time counts as ahead")
    }

    /// Logs lines that went to the quarantine, at most every ten seconds: where the first one is, how many
    /// had the same reason since the last report, and how many another one.
    private mutating func report(_ records: [QuarantineRecord], at now: BootInstant) {
        for record in records { unreported[record.reason, default: 0] += 1 }
        guard let first = records.first, now >= nextReport else { return }
        nextReport = now + .seconds(10)
        log.warning(
            "lines quarantined",
            [
                "path": first.path, "offset": first.offset, "length": first.length,
                "reason": first.reason.rawValue,
                "detail": first.detail, "count": unreported[first.reason] ?? 0,
                "other_reasons": unreported.reduce(0) { $0 + ($1.key == first.reason ? 0 : $1.value) },
                "see": "spoolship quarantine list",
            ])
        unreported = [:]
    }

    /// Events that tags made too large since the log last reported them, with the place of the last one.
    struct MadeTooLarge {
        var count = 1
        var app: String
        var path: String
        var offset: Int64
        var tags: [String]
    }

    /// Notes an event that tags made too large.
    mutating func note(_ event: MadeTooLarge) {
        var event = event
        event.count += madeTooLarge?.count ?? 0
        madeTooLarge = event
    }

    /// Logs events that tags made too large, at most every ten seconds. They are not sent, by a fault of the
    /// container's document and not of the app.
    private mutating func reportMadeTooLarge(at now: BootInstant) {
        guard let found = madeTooLarge, now >= nextTooLargeReport else { return }
        nextTooLargeReport = now + .seconds(10)
        madeTooLarge = nil
        log.warning(
            "tags made events too large, they are in quarantine",
            [
                "app": found.app, "path": found.path, "offset": found.offset,
                "tags": found.tags.joined(separator: ","),
                "count": found.count,
                "hint": "reduce what the container sets; `spoolship quarantine list` shows them",
            ])
    }

    /// Logs events that were sent although they do not match their schema.
    func reportUnfit(_ count: Int, event: String, _ detail: String) {
        log.warning(
            "events do not match their schema, they are sent",
            [
                "event": event, "detail": detail, "count": count,
                "hint":
                    "see spoolship_schema_events_total; schemas.mode = \"quarantine\" keeps such events back",
            ])
    }

    /// Logs, at most once an hour, that limits cut events: otherwise an operator would learn it at the
    /// destination.
    private mutating func reportCuts(_ counts: EventCounts, at now: BootInstant) {
        let count = counts.cuts
        guard count > cuts, now >= nextCutReport, let last = counts.lastCut else { return }
        log.warning(
            "limits cut events",
            [
                "app": last.app, "member": last.member, "limit": "limits.\(last.limit.rawValue)",
                "count": count - cuts, "hint": "raise the limit, or write 0 for none",
            ])
        cuts = count
        nextCutReport = now + .seconds(3_600)
    }

    /// Logs, at most once an hour, lines that are not what their apps' settings say, and at which column they
    /// differ; never content.
    private mutating func reportTexts(_ found: [String: TextCounts], at now: BootInstant) {
        guard found != texts, now >= nextTextReport else { return }
        for (app, counts) in found.sorted(by: { $0.key < $1.key }) {
            let notParsed = counts.notParsed - (texts[app]?.notParsed ?? 0)
            let broken = counts.brokenJSON - (texts[app]?.brokenJSON ?? 0)
            if notParsed > 0, let last = counts.last {
                log.warning(
                    "lines do not match the app's format",
                    [
                        "app": app, "count": notParsed, "column": last.column, "expected": last.expected,
                        "hint": "run `spoolship check --sample FILE`; see parse, pattern and first_line",
                    ])
            }
            if broken > 0 {
                log.warning(
                    "lines begin as JSON and are not JSON",
                    [
                        "app": app, "count": broken,
                        "hint": "run `spoolship check --sample FILE`; they were sent as text",
                    ])
            }
        }
        texts = found
        nextTextReport = now + .seconds(3_600)
    }
}
