internal import EventLoops
internal import Intake
internal import Metrics
internal import Spool
internal import Synchronization

/// Exports what the agent depends on in the machine: free space in the file systems of the spool and of the
/// state directory, and whether the clock is synchronised.
///
/// A scrape exports the result of the last look, and starts another look: a scrape never waits for a disk
/// that hangs. The state directory is looked at on the loop that writes the queue, the spool on another
/// thread if its file system may never answer.
final class MachineCollector: MetricCollector, Sendable {
    private let spool: String
    private let state: String
    /// The last results; nil if the file system could not be asked.
    private let rooms: Mutex<(spool: FileSystemRoom?, state: FileSystemRoom?)>
    /// The loop that asks the file system of the state directory.
    private let loop: EventLoop

    /// Asks the file systems for the first time.
    ///
    /// - Parameter loop: the loop that asks them again at each scrape.
    init(spool: String, state: String, on loop: EventLoop) {
        self.loop = loop
        self.spool = spool
        self.state = state
        let isDistant = DistantMount.onTheWay(of: spool) != nil
        rooms = Mutex((isDistant ? nil : FileSystemRoom(spool), FileSystemRoom(state)))
        if isDistant {
            lookAtSpool()
        }
    }

    func collect(into exposition: inout Exposition) {
        let rooms = rooms.withLock(\.self)
        for (name, room) in [("spool", rooms.spool), ("state", rooms.state)] {
            guard let room else { continue }
            exposition.set(\.freeBytes, [name], to: room.freeBytes)
            if let inodes = room.freeInodes {
                exposition.set(\.freeInodes, [name], to: inodes)
            }
        }
        // A sandbox may forbid asking the kernel (`ProtectClock=`). That must not raise an alert.
        exposition.set(\.clockSynchronised, to: kernelClockIsSynchronised() ?? true)
        loop.post {
            let found = FileSystemRoom(self.state)
            self.rooms.withLock { $0.state = found }
            self.lookAtSpool()
        }
    }

    private func lookAtSpool() {
        guard DistantMount.onTheWay(of: spool) != nil else {
            let found = FileSystemRoom(spool)
            return rooms.withLock { $0.spool = found }
        }
        SilentFiles.ask(about: "the room of \(spool)") {
            FileSystemRoom(self.spool)
        } then: { found in
            self.rooms.withLock { $0.spool = found }
        }
    }
}
