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
        quarantine(
            .neverFits, "an event of \(line.count) bytes does not fit queue.max_size", source, offset,
            line.count,
            Array(presentable(Array(line), of: source.app).prefix(4096)))
    }

    /// Quarantines an event that does not match its schema: its line, or its object if it was joined from
    /// lines with others between them.
    func keepUnfit(
        _ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64,
        _ failure: (name: String, text: String)
    ) {
        quarantine(
            .schema, "\(failure.name): \(failure.text)", source, offset, line.count,
            presentable(Array(line), of: source.app))
    }

    /// Keeps a line, or the part of it in `content`, with the reason.
    private func quarantine(
        _ reason: QuarantineRecord.Reason, _ detail: String, _ source: SpoolSource, _ offset: Int64,
        _ length: Int,
        _ content: [UInt8]
    ) {
        chunks.quarantine(
            QuarantineRecord(
                reason: reason, detail: detail, app: source.app, path: source.path, offset: offset,
                length: Int64(length), content: content, time: time.wallTime, file: source.file))
    }

    /// Quarantines bytes that cannot become an event, as the spool reports them. The rules redact the
    /// content.
    package func quarantine(_ record: QuarantineRecord) {
        rules?.refresh()
        var record = record
        record.content = presentable(record.content, of: record.app)
        chunks.quarantine(record)
        // A refused line that is read again and stays in the quarantine is counted as refused again.
        if record.reason == .refused {
            chunks.countRefused()
        }
        noteQuarantined(record.app)
    }

    /// Keeps the beginning of an event that tags have made too large, as the tags left it.
    func keepMadeTooLarge(_ rules: IntakeRules, _ source: SpoolSource, _ offset: Int64) {
        let line = rules.engine.line
        let content = Array(line.prefix(4096))
        reports.note(
            IntakeReports.MadeTooLarge(
                app: source.app, path: source.path, offset: offset, tags: rules.engine.firedTags(most: 5)))
        quarantine(
            .madeTooLarge,
            content.isEmpty
                ? "tags made it far too large; none of it is kept"
                : "tags made it \(line.count) bytes; the part kept is redacted and hashed",
            // Always longer than the kept content, so that it is never reread: rereading would apply the tags
            // twice.
            source, offset, max(line.count, content.count + 1), content)
    }

    /// The part of a line that may be kept; see `RuleEngine.presentable`. A line that a runtime has wrapped
    /// counts as text.
    func presentable(_ content: [UInt8], of app: String, isText: Bool = false) -> [UInt8] {
        guard let rules else { return content }
        // The document that says what to hide is not there yet, so everything is hidden.
        guard rules.knowsWhatIsHidden(of: app) else { return RuleEngine.shape(of: content) }
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
            chunks.countRefused()
        }
        // A withheld text may be long and cannot become an event: its beginning is enough.
        let isText = problem?.reason == .unredactable
        quarantine(
            isRefused ? .refused : problem?.reason ?? .notJSON, problem?.detail ?? "", source, offset, length,
            presentable(Array(isText ? line.prefix(4096) : line[...]), of: source.app, isText: isText))
    }
}
