/// Random numbers that repeat: the same seed gives the same numbers on every machine. For trials of
/// rules, whose result must not change from run to run.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64),
/// https://doi.org/10.1145/2660193.2660195.
public struct RepeatableRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64 = 0) { state = seed }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
