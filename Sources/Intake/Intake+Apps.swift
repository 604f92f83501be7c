internal import EventLoops
internal import Events
internal import Model
package import Spool

extension Intake {
    /// Takes whole lines, and counts for the app what became of them; see `takeLines`.
    package func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        let before = (
            lines: pending.read, quarantined: pending.quarantined.count, records: pass.counts.records
        )
        let taken = takeLines(lines, from: source, at: offset)
        var counts = AppCounts()
        counts.quarantined = pending.quarantined.count - before.quarantined
        counts.events = pending.read - before.lines - counts.quarantined
        counts.records = pass.counts.records - before.records
        counts.bytes = taken
        counts.lastRead = counts.events > 0 ? time.wallTime : nil
        apps.note(source.app, counts)
        return taken
    }
}
