internal import EventLoops
internal import Intake
internal import Metrics
internal import Synchronization

/// What of the machine the agent depends on: room in the file systems of the spool and of the state directory, and the clock.
///
/// Each scrape tells what the last look found, and has another one taken on the loop that writes the queue: a disk that hangs holds up no
/// scrape.
final class MachineCollector: MetricCollector, Sendable {
    private let places: [(directory: String, path: String)]
    private let rooms: Mutex<[FileSystemRoom?]>
    private let loop: EventLoop

    /// - Parameter loop: where the file systems are asked.
    init(spool: String, state: String, on loop: EventLoop) {
        self.loop = loop
        places = [("spool", spool), ("state", state)]
        rooms = Mutex(places.map { FileSystemRoom($0.path) })
    }

    func collect(into exposition: inout Exposition) {
        for (place, room) in zip(places, rooms.withLock { $0 }) {
            guard let room else { continue }
            exposition.set(\.freeBytes, [place.directory], to: room.freeBytes)
            if let inodes = room.freeInodes { exposition.set(\.freeInodes, [place.directory], to: inodes) }
        }
        exposition.set(\.clockSynchronised, to: kernelClockIsSynchronised() ?? true)
        loop.post {
            let found = self.places.map { FileSystemRoom($0.path) }
            self.rooms.withLock { $0 = found }
        }
    }
}
