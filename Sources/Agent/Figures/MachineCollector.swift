internal import EventLoops
internal import Intake
internal import Metrics
internal import Synchronization

/// Exports what the agent depends on in the machine: free space in the file systems of the spool and of the
/// state directory, and whether the clock is synchronised.
///
/// A scrape exports the result of the last look, and starts another look on the loop that writes the queue: a
/// scrape never waits for a disk that hangs.
final class MachineCollector: MetricCollector, Sendable {
    /// The directories: the value of the label, and the path.
    private let places: [(directory: String, path: String)]
    /// The last result for each of `places`; nil if the file system could not be asked.
    private let rooms: Mutex<[FileSystemRoom?]>
    /// The loop that asks the file systems.
    private let loop: EventLoop

    /// Asks the file systems for the first time.
    ///
    /// - Parameter loop: the loop that asks them again at each scrape.
    init(spool: String, state: String, on loop: EventLoop) {
        self.loop = loop
        places = [("spool", spool), ("state", state)]
        rooms = Mutex(places.map { FileSystemRoom($0.path) })
    }

    func collect(into exposition: inout Exposition) {
        for (place, room) in zip(places, rooms.withLock { $0 }) {
            guard let room else { continue }
            exposition.set(\.freeBytes, [place.directory], to: room.freeBytes)
            if let inodes = room.freeInodes {
                exposition.set(\.freeInodes, [place.directory], to: inodes)
            }
        }
        // A sandbox may forbid asking the kernel (`ProtectClock=`). That must not raise an alert.
        exposition.set(\.clockSynchronised, to: kernelClockIsSynchronised() ?? true)
        loop.post {
            let found = self.places.map { FileSystemRoom($0.path) }
            self.rooms.withLock { $0 = found }
        }
    }
}
