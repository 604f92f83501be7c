internal import Events
internal import EventLoops
internal import Model
internal import Spool

/// Lines that are no events: they go to the quarantine.
extension Intake {
    func keepTooLarge(_ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64) {
        quarantine(
            QuarantineRecord(
                reason: .neverFits, detail: "an event of \(line.count) bytes does not fit queue.max_size",
                app: source.app, path: source.path, offset: offset, length: Int64(line.count),
                content: Array(line.prefix(4096)), time: time.wallTime))
    }

    func quarantine(_ record: QuarantineRecord) {
        pending.read += 1
        pending.quarantined.append(record)
        pendingBytes += Intake.recordBytes + record.content.count + record.detail.utf8.count + record.path.utf8.count
    }

    /// What a record takes besides its texts, in memory and in the queue: a commit of many small ones is a large one.
    private static let recordBytes = 256

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
        quarantine(
            QuarantineRecord(
                reason: isRefused ? .refused : problem?.reason ?? .notJSON, detail: problem?.detail ?? "",
                app: source.app, path: source.path, offset: offset, length: Int64(length), content: Array(line),
                time: time.wallTime))
    }
}
