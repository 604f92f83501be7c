internal import Model

extension ReadStart {
    /// Allowed ages. Ten years exceed any log that is kept, and their nanoseconds fit in 64 bits.
    private static var ages: ClosedRange<Duration> { .seconds(1) ... .seconds(3650 * 86_400) }

    /// `beginning`, `now`, or an age.
    static var settingType: ValueType<ReadStart> {
        ValueType("duration", range: "\"beginning\", \"now\", or an age from 1s to 3650d") {
            node throws(Problem) in
            switch node.value {
            case .string("beginning"): return .beginning
            case .string("now"): return .now
            // Reported with all three forms, because the message about durations would not mention the words.
            case .string(let text) where DurationText.parse(text) == nil:
                throw Problem(
                    .wrongType,
                    "is \(SettingValue.quote(text)); must be \"beginning\", \"now\","
                        + " or an age such as \"24h\""
                )
            default: break
            }
            let age = try node.duration()
            guard ages.contains(age) else {
                throw Problem(
                    .outOfRange,
                    "is \(DurationText.print(age)); must be \"beginning\", \"now\","
                        + " or an age from 1s to 3650d"
                )
            }
            return .age(age)
        } print: { start in
            switch start {
            case .beginning: .string("beginning")
            case .now: .string("now")
            case .age(let age): .string(DurationText.print(age))
            }
        }
    }
}
