package import EventLoops
internal import Events

/// Gives the time of a stored event: for the queue, which looks at events only if some of a chunk have expired.
package enum StoredEventTime {
    /// By the event's own time, else by its acceptance; nil if the line is not an event any more.
    package static func time(of line: [UInt8], acceptedAt: Timestamp) -> Timestamp? {
        var pass = EventPass(options: EventOptions())
        var random = KernelRandom()
        pass.begin(pass.source(app: "", using: &random), at: acceptedAt, isSynchronised: false, using: &random)
        let verdict = line.withUnsafeBytes { raw -> Verdict? in
            guard let base = raw.baseAddress, raw.last == UInt8(ascii: "\n") else { return nil }
            return pass.read(base.assumingMemoryBound(to: UInt8.self), from: 0, to: raw.count)
        }
        guard let verdict, verdict.kind == .accepted else { return nil }
        return verdict.eventTime
    }
}
