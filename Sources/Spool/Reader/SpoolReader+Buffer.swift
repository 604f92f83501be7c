internal import EventLoops

extension SpoolReader {
    /// How long nothing is read before the buffer is given back.
    private static let bufferRest = Duration.seconds(1)

    /// The one buffer that blocks are read into. It is given back once nothing was read for a while.
    func takeBuffer() -> UnsafeMutableRawBufferPointer {
        isBufferUsed = true
        if let buffer { return buffer }
        let count = Fingerprint.longest + max(SpoolReader.sliceBytes, options.maxEventSize + 1) + 1
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
        buffer = fresh
        return fresh
    }

    /// Not at once: for lines that come one after the other it would be mapped, filled with zeros and unmapped each time, a
    /// twentieth of all that they cost.
    func releaseBufferLater() {
        guard buffer != nil, bufferTimer == nil else { return }
        isBufferUsed = false
        bufferTimer = loop.after(SpoolReader.bufferRest) {
            self.assumeIsolated { reader in
                reader.bufferTimer = nil
                if reader.isBufferUsed { reader.releaseBufferLater() } else { reader.releaseBuffer() }
            }
        }
    }

    func releaseBuffer() {
        if let bufferTimer { loop.cancel(bufferTimer) }
        bufferTimer = nil
        buffer?.deallocate()
        buffer = nil
        isBufferUsed = false
    }
}
