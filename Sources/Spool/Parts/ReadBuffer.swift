/// The one buffer that blocks are read into. It is given back once nothing was read for a while.
struct ReadBuffer {
    private let size: Int
    private var memory: UnsafeMutableRawBufferPointer?
    private var isUsed = false
    private var isReleasePlanned = false

    init(size: Int) { self.size = size }

    /// The buffer; what was in it is gone.
    mutating func take() -> UnsafeMutableRawBufferPointer {
        isUsed = true
        if let memory { return memory }
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
        memory = fresh
        return fresh
    }

    /// Nothing is to be read now. True: ask later whether it is to be given back. Not at once: for lines that come one after the
    /// other it would be mapped, filled with zeros and unmapped each time, a twentieth of all that they cost.
    mutating func rest() -> Bool {
        guard memory != nil, !isReleasePlanned else { return false }
        isUsed = false
        isReleasePlanned = true
        return true
    }

    /// The time has come that `rest` asked for. True: it was used meanwhile, and rests again.
    mutating func releaseIfUnused() -> Bool {
        isReleasePlanned = false
        if isUsed { return rest() }
        release()
        return false
    }

    mutating func release() {
        memory?.deallocate()
        memory = nil
        isUsed = false
    }
}
