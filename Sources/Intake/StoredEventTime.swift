package import EventLoops
internal import Events

/// The time of a stored event. The queue asks for it only if some events of a chunk have expired and others
/// have not.
package enum StoredEventTime {
    /// The event's own time, or the time of its acceptance if it has none; nil if the line is no longer an
    /// event.
    package static func time(of line: [UInt8], acceptedAt: Timestamp) -> Timestamp? {
        var pass = EventPass(options: EventOptions())
        var random = KernelRandom()
        pass.begin(
            pass.source(app: "", using: &random), at: acceptedAt, isSynchronised: false, using: &random)
        let verdict = line.withUnsafeBytes { raw -> Verdict? in
            guard let base = raw.baseAddress, raw.last == UInt8(ascii: "\n") else { return nil }
            return pass.read(base.assumingMemoryBound(to: UInt8.self), from: 0, to: raw.count)
        }
        guard let verdict, verdict.kind == .accepted else { return nil }
        return verdict.eventTime
    }
}
