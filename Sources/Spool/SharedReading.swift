public import EventLoops

/// Resources that all readers of one loop share: the buffer for blocks, and the inotify instance for files
/// that are read in place. The spool has an instance of its own, so that an overflow of its event queue does
/// not make other readers list everything again.
///
/// To be used on the loop's thread only; readers hold it as a `LoopBound`.
public final class SharedReading {
    let buffer = ReadBuffer()
    let places: KernelQueue

    /// For readers that live on this loop.
    public init(on loop: EventLoop) { places = KernelQueue(on: loop) }
}
