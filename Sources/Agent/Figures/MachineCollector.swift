internal import EventLoops
internal import Glibc
internal import Intake
internal import Metrics
internal import Synchronization

/// What of the machine the agent depends on: room in the file systems of the spool and of the state directory, and the clock.
///
/// Each scrape tells what the last look found, and has another one taken on the loop that writes the queue: a disk that hangs holds up no
/// scrape.
final class MachineCollector: MetricCollector, Sendable {
    private struct Space {
        let directory: String
        let path: String
        var freeBytes: Int?
        /// Nil where the file system counts none.
        var freeInodes: Int?

        mutating func look() {
            var found = statvfs()
            guard statvfs(path, &found) == 0 else {
                (freeBytes, freeInodes) = (nil, nil)
                return
            }
            // bounded: what is too much for 64 bits is enough.
            let (bytes, isTooMuch) = UInt64(found.f_bavail).multipliedReportingOverflow(by: UInt64(found.f_frsize))
            freeBytes = isTooMuch ? .max : Int(clamping: bytes)
            freeInodes = found.f_files > 0 ? Int(clamping: UInt64(found.f_favail)) : nil
        }
    }

    private let spaces: Mutex<[Space]>
    private let loop: EventLoop

    /// - Parameter loop: where the file systems are asked.
    init(spool: String, state: String, on loop: EventLoop) {
        self.loop = loop
        var found = [Space(directory: "spool", path: spool), Space(directory: "state", path: state)]
        for index in found.indices { found[index].look() }
        spaces = Mutex(found)
    }

    /// Why nothing expires; nil where the clock is synchronised, or the kernel may not be asked.
    static var clockComplaint: String? {
        guard kernelClockIsSynchronised() == false else { return nil }
        return "the clock is not synchronised (timedatectl): nothing expires and no event's time counts as ahead"
    }

    func collect(into exposition: inout Exposition) {
        for space in spaces.withLock({ $0 }) {
            if let bytes = space.freeBytes { exposition.set(\.freeBytes, [space.directory], to: bytes) }
            if let inodes = space.freeInodes { exposition.set(\.freeInodes, [space.directory], to: inodes) }
        }
        exposition.set(\.clockSynchronised, to: kernelClockIsSynchronised() ?? true)
        loop.post {
            var looked = self.spaces.withLock { $0 }
            for index in looked.indices { looked[index].look() }
            self.spaces.withLock { [looked] in $0 = looked }
        }
    }
}
