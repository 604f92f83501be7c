internal import EventLoops
internal import Model

/// How much waits to be read, counted while reading is held back: nothing is read then, and the figures would stand
/// still while the spool grows.
struct Census {
    var directories: [SpoolDirectory] = []
    var stream: (directory: SpoolDirectory, stream: DirectoryStream, descriptor: Int32)?
    var began = BootInstant(nanoseconds: 0)
    var drops = CountedDrops()
}

struct CountedDrops {
    var files = 0
    var bytes: ByteCount = 0
    /// When the oldest of them got its content or its name.
    var oldest: Timestamp?
}

/// What the last census counted.
struct Backlog {
    /// The one that is being taken.
    var census: Census?
    var isCensusPlanned = false
    var drops = CountedDrops()
    /// When freed memory went back last, and what had been read by then.
    var released = BootInstant(nanoseconds: 0)
    var readWhenReleased: ByteCount = 0
}
