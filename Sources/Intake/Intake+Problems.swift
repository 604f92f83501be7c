internal import Containers
internal import Events
internal import EventLoops
internal import Logs
internal import TextFormats
package import Model
internal import Spool

/// Lines that are not events and go to the quarantine, and reports of what was wrong. Content is redacted by
/// the rules before it is kept; it never goes to the log.
extension Intake {
    /// Keeps the beginning of an event that is too large for the queue.
    func keepTooLarge(_ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64) {
        keep(
            .neverFits, "an event of \(line.count) bytes does not fit queue.max_size", source, offset,
            line.count,
            Array(presentable(Array(line), of: source.app).prefix(4096)))
    }

    /// Keeps an event that does not match its schema.
    func keepUnfit(
        _ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64,
        _ failure: (name: String, text: String)
    ) {
        keep(
            .schema, "\(failure.name): \(failure.text)", source, offset, line.count,
            presentable(Array(line), of: source.app))
    }

    /// Logs, at most once an hour, events that were sent although they do not match their schema.
    func reportSchemas() {
        guard let found = schemas.takeReport(at: time.bootTime) else { return }
        log.warning(
            "events are not as their schema says, they are sent",
            [
                "event": found.name, "detail": found.text, "count": found.count,
                "hint":
                    "see spoolship_schema_events_total; schemas.mode = \"quarantine\" keeps such events back",
            ])
    }

    /// Keeps a line, or the part of it in `content`, with the reason.
    private func keep(
        _ reason: QuarantineRecord.Reason, _ detail: String, _ source: SpoolSource, _ offset: Int64,
        _ length: Int,
        _ content: [UInt8]
    ) {
        keep(
            QuarantineRecord(
                reason: reason, detail: detail, app: source.app, path: source.path, offset: offset,
                length: Int64(length), content: content, time: time.wallTime, file: source.file))
    }

    /// Takes a record of the spool, for what cannot become an event. Its content is redacted by the rules.
    package func quarantine(_ record: QuarantineRecord) {
        rules?.refresh()
        var record = record
        record.content = presentable(record.content, of: record.app)
        keep(record)
        // A refused line that is read again and stays in the quarantine is counted as refused again.
        if record.reason == .refused {
            pending.refused += 1
        }
        var counts = AppCounts()
        counts.quarantined = 1
        apps.note(record.app, counts)
    }

    /// Takes a record whose content may be kept as it is.
    func keep(_ record: QuarantineRecord) {
        pending.read += 1
        pending.quarantined.append(record)
        pendingBytes +=
            Intake.recordBytes + record.content.count + record.detail.utf8.count + record.path.utf8.count
    }

    /// Estimated size of a record without its texts, in memory and in the queue. Without it, a commit of many
    /// small records would grow large unnoticed.
    private static let recordBytes = 256

    /// Keeps the beginning of an event that tags have made too large, as the tags left it.
    func keepMadeTooLarge(_ rules: IntakeRules, _ source: SpoolSource, _ offset: Int64) {
        let line = rules.engine.line
        let content = Array(line.prefix(4096))
        madeTooLarge = MadeTooLarge(
            count: (madeTooLarge?.count ?? 0) + 1, app: source.app, path: source.path, offset: offset,
            tags: rules.engine.firedTags(most: 5))
        keep(
            .madeTooLarge,
            content.isEmpty
                ? "tags made it far too large; none of it is kept"
                : "tags made it \(line.count) bytes; the part kept is redacted and hashed",
            // Always longer than the kept content, so that it is never reread: rereading would apply the tags
            // twice.
            source, offset, max(line.count, content.count + 1), content)
    }

    /// Events that tags made too large since the log last reported them, with the place of the last one.
    struct MadeTooLarge {
        var count: Int
        var app: String
        var path: String
        var offset: Int64
        var tags: [String]
    }

    /// Logs events that tags made too large, at most every ten seconds. They are not sent, by a fault of the
    /// container's document and not of the app.
    func reportMadeTooLarge() {
        guard let found = madeTooLarge, time.bootTime >= nextTooLargeReport else { return }
        nextTooLargeReport = time.bootTime + .seconds(10)
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

    /// Logs, at most once an hour, that limits cut events: otherwise an operator would learn it at the
    /// destination.
    func reportCuts() {
        let count = pass.counts.cuts
        guard count > cutsTold.count, time.bootTime >= cutsTold.next, let last = pass.counts.lastCut else {
            return
        }
        log.warning(
            "limits cut events",
            [
                "app": last.app, "member": last.member, "limit": "limits.\(last.limit.rawValue)",
                "count": count - cutsTold.count, "hint": "raise the limit, or write 0 for none",
            ])
        cutsTold = (count, time.bootTime + .seconds(3_600))
    }

    /// Logs, at most once an hour, lines that do not match their apps' settings, and the column of the first
    /// difference; never content.
    func reportTexts() {
        guard pass.counts.texts != textsTold.counts, time.bootTime >= textsTold.next else { return }
        for (app, counts) in pass.counts.texts.sorted(by: { $0.key < $1.key }) {
            let told = textsTold.counts[app]
            let (notParsed, broken) = (
                counts.notParsed - (told?.notParsed ?? 0), counts.brokenJSON - (told?.brokenJSON ?? 0)
            )
            if notParsed > 0, let last = counts.last {
                log.warning(
                    "lines are not of the app's format",
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
        textsTold = (pass.counts.texts, time.bootTime + .seconds(3_600))
    }

    /// The part of a line that may be kept; see `RuleEngine.presentable`. A line that a runtime has wrapped
    /// counts as text.
    func presentable(_ content: [UInt8], of app: String, isText: Bool = false) -> [UInt8] {
        guard let rules else { return content }
        // The document that says what to hide is not there yet, so everything is hidden.
        guard rules.awaited(for: app) == nil else { return RuleEngine.shape(of: content) }
        let known = settings.events.apps[app]
        return rules.engine.presentable(
            content, of: app, isText: isText || known?.format != nil || known?.textFormat != nil)
    }

    /// Offset at which a line begins after leading zeros; nil if the line has no zeros in front, or nothing
    /// else. A power cut leaves zeros in the place of a writer's last bytes, and a line that was appended
    /// later must not be lost with them.
    static func leadingZeros(_ base: UnsafePointer<UInt8>, _ line: Range<Int>) -> Int? {
        guard base[line.lowerBound] == 0, let end = line.first(where: { base[$0] != 0 }),
            end < line.upperBound - 1
        else { return nil }
        return end
    }

    /// Keeps a line that the pass has quarantined or refused.
    func keepProblem(
        _ line: UnsafeRawBufferPointer, _ source: SpoolSource, at offset: Int64, length: Int, isRefused: Bool
    ) {
        let problem = pass.problem
        if isRefused {
            pending.refused += 1
        }
        // A withheld text may be long and cannot become an event: its beginning is enough.
        let isText = problem?.reason == .unredactable
        keep(
            isRefused ? .refused : problem?.reason ?? .notJSON, problem?.detail ?? "", source, offset, length,
            presentable(Array(isText ? line.prefix(4096) : line[...]), of: source.app, isText: isText))
    }
}
