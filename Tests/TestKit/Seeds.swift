internal import Glibc

/// The seeds of property tests: fixed for what decides whether a change lands, others for the nightly run.
///
/// `SPOOLSHIP_SEED=17` runs each property with that seed alone; `SPOOLSHIP_SEED=random` draws new ones.
public enum Seeds {
    private static let wanted = getenv("SPOOLSHIP_SEED").map { String(cString: $0) }

    /// The seeds to try.
    ///
    /// - Parameter fixed: those that are tried when nobody asks for others.
    public static func list(_ fixed: some Sequence<UInt64>) -> [UInt64] {
        switch wanted {
        case nil: Array(fixed)
        // Short ones, so that a person can type them.
        case "random": fixed.map { _ in UInt64.random(in: 1...999_999_999) }
        case .some(let text): UInt64(text).map { [$0] } ?? Array(fixed)
        }
    }

    /// A seed for a property that takes one: the one that was asked for, a drawn one, or the fixed one.
    public static func one(_ fixed: UInt64) -> UInt64 { list([fixed])[0] }

    /// The command that runs a failed property again with its seed.
    ///
    /// - Parameters:
    ///   - seed: the seed that failed.
    ///   - settings: further variables of the environment that the run had, as `QUEUE_OPERATIONS=1000`.
    public static func again(
        _ seed: UInt64, _ settings: String = "", file: String = #fileID, test: String = #function
    ) -> String {
        let target = file.prefix { $0 != "/" }
        let name = test.prefix { $0 != "(" }
        let more = settings.isEmpty ? "" : settings + " "
        return
            "seed \(seed), to repeat it: SPOOLSHIP_SEED=\(seed) \(more)swift test --filter '\(target).*/\(name)'"
    }
}
