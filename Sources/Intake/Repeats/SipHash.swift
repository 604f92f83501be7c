/// SipHash-2-4: a hash of bytes that depends on a secret key, so that writers cannot choose ids that collide.
///
/// Source: J.-P. Aumasson, D. J. Bernstein: SipHash, a fast short-input PRF (2012).
struct SipHash {
    let key: (UInt64, UInt64)

    /// Hash of a text.
    func hash(of text: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var state = State(key)
        for byte in text { state.add(byte) }
        return state.finish()
    }

    /// Hash of two texts. A separator keeps `ab`, `c` and `a`, `bc` apart.
    func hash(_ first: some Collection<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> UInt64 {
        var state = State(key)
        for byte in first { state.add(byte) }
        // UTF-8 never has this byte.
        state.add(0xFF)
        for byte in second { state.add(byte) }
        return state.finish()
    }

    /// The four words of the algorithm, and the bytes of a word that is not complete yet.
    private struct State {
        private var v0: UInt64
        private var v1: UInt64
        private var v2: UInt64
        private var v3: UInt64
        private var word: UInt64 = 0
        /// Number of bytes so far; its low byte goes into the last word.
        private var count = 0

        init(_ key: (UInt64, UInt64)) {
            v0 = key.0 ^ 0x736F_6D65_7073_6575
            v1 = key.1 ^ 0x646F_7261_6E64_6F6D
            v2 = key.0 ^ 0x6C79_6765_6E65_7261
            v3 = key.1 ^ 0x7465_6462_7974_6573
        }

        @inline(__always)
        mutating func add(_ byte: UInt8) {
            word |= UInt64(byte) &<< UInt64(8 &* (count & 7))
            count &+= 1
            if count & 7 == 0 {
                compress()
            }
        }

        /// Adds the last word and finishes with four rounds.
        mutating func finish() -> UInt64 {
            word |= UInt64(truncatingIfNeeded: count & 0xFF) << 56
            compress()
            v2 ^= 0xFF
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }

        /// Adds a complete word with two rounds.
        private mutating func compress() {
            v3 ^= word
            round()
            round()
            v0 ^= word
            word = 0
        }

        /// One SipRound.
        @inline(__always)
        private mutating func round() {
            func rotated(_ value: UInt64, _ bits: UInt64) -> UInt64 {
                value &<< bits | value &>> (64 &- bits)
            }
            v0 &+= v1
            v2 &+= v3
            v1 = rotated(v1, 13) ^ v0
            v3 = rotated(v3, 16) ^ v2
            v0 = rotated(v0, 32)
            v2 &+= v1
            v0 &+= v3
            v1 = rotated(v1, 17) ^ v2
            v3 = rotated(v3, 21) ^ v0
            v2 = rotated(v2, 32)
        }
    }
}
