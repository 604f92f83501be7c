internal import Containers
internal import Events
internal import EventLoops
internal import Logs
package import Model
internal import Spool

/// Lines that are not events: they go to the quarantine.
extension Intake {
    func keepTooLarge(_ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64) {
        keep(
            .neverFits, "an event of \(line.count) bytes does not fit queue.max_size", source, offset, line.count,
            Array(presentable(Array(line), of: source.app).prefix(4096)))
    }

    private func keep(
        _ reason: QuarantineRecord.Reason, _ detail: String, _ source: SpoolSource, _ offset: Int64, _ length: Int,
        _ content: [UInt8]
    ) {
        keep(
            QuarantineRecord(
                reason: reason, detail: detail, app: source.app, path: source.path, offset: offset,
                length: Int64(length), content: content, time: time.wallTime, file: source.file))
    }

    /// Takes a record of the spool: what is kept of it is redacted as the rules say.
    package func quarantine(_ record: QuarantineRecord) {
        rules?.refresh()
        var record = record
        record.content = presentable(record.content, of: record.app)
        keep(record)
        // One that was read before and is kept as it is counts as it did.
        if record.reason == .refused { pending.refused += 1 }
        var counts = AppCounts()
        counts.quarantined = 1
        apps.note(record.app, counts)
    }

    /// Takes a record whose content may be kept as it is.
    func keep(_ record: QuarantineRecord) {
        pending.read += 1
        pending.quarantined.append(record)
        pendingBytes += Intake.recordBytes + record.content.count + record.detail.utf8.count + record.path.utf8.count
    }

    /// What a record takes besides its texts, in memory and in the queue: a commit of many small ones is a large one.
    private static let recordBytes = 256

    /// Keeps the beginning of an event as the tags left it that made it too large.
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
            // Never as long as what is kept: to read that again would apply the tags again.
            source, offset, max(line.count, content.count + 1), content)
    }

    /// Events that tags made too large since the last log line, and where the last one is.
    struct MadeTooLarge {
        var count: Int
        var app: String
        var path: String
        var offset: Int64
        var tags: [String]
    }

    /// Logs what tags made too large, at most every ten seconds: it is not sent, by the document's fault, not the app's.
    func reportMadeTooLarge() {
        guard let found = madeTooLarge, time.bootTime >= nextTooLargeReport else { return }
        nextTooLargeReport = time.bootTime + .seconds(10)
        madeTooLarge = nil
        log.warning(
            "tags made events too large, they are in quarantine",
            [
                "app": found.app, "path": found.path, "offset": found.offset, "tags": found.tags.joined(separator: ","),
                "count": found.count, "hint": "reduce what the container sets; `spoolship quarantine list` shows them",
            ])
    }

    /// One log line an hour for what limits cut, so that nobody has to find out at the destination.
    func reportCuts() {
        let count = pass.counts.cuts
        guard count > cutsTold.count, time.bootTime >= cutsTold.next, let last = pass.counts.lastCut else { return }
        log.warning(
            "limits cut events",
            [
                "app": last.app, "member": last.member, "limit": "limits.\(last.limit.rawValue)",
                "count": count - cutsTold.count, "hint": "raise the limit, or write 0 for none",
            ])
        cutsTold = (count, time.bootTime + .seconds(3_600))
    }

    /// What may be kept of a line; see `RuleEngine.presentable`. What a runtime has wrapped is a text in a member.
    func presentable(_ content: [UInt8], of app: String, isText: Bool = false) -> [UInt8] {
        guard let rules else { return content }
        // What is to be hidden is not known yet: everything is.
        guard rules.awaited(for: app) == nil else { return RuleEngine.shape(of: content) }
        return rules.engine.presentable(content, of: app, isText: isText || settings.events.apps[app]?.format != nil)
    }

    /// Where the line begins that zeros stand before: a power cut leaves them where a writer's last bytes were, and what
    /// is appended later is not to go with them. Nil where there are none, or nothing else.
    static func leadingZeros(_ base: UnsafePointer<UInt8>, _ line: Range<Int>) -> Int? {
        guard base[line.lowerBound] == 0, let end = line.first(where: { base[$0] != 0 }), end < line.upperBound - 1
        else { return nil }
        return end
    }

    func keepProblem(
        _ line: UnsafeRawBufferPointer, _ source: SpoolSource, at offset: Int64, length: Int, isRefused: Bool
    ) {
        let problem = pass.problem
        if isRefused { pending.refused += 1 }
        // Of what may be long and cannot be read again the beginning is enough.
        let isText = problem?.reason == .unredactable
        keep(
            isRefused ? .refused : problem?.reason ?? .notJSON, problem?.detail ?? "", source, offset, length,
            presentable(Array(isText ? line.prefix(4096) : line[...]), of: source.app, isText: isText))
    }
}
