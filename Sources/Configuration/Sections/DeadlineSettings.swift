internal import EventLoops
internal import Model

/// `[[deadline]]`: when events must have arrived: those of a local date, before a time of the next one.
public struct DeadlineSettings: SettingsSection {
    package var name = ""
    /// Since midnight, in whole minutes.
    package var time = Duration.seconds(4 * 3600)
    package var timeZone = ""
    package var margin = Duration.seconds(1800)
    package var apps: [String] = []
    package var destinations: [String] = []

    static let entries: [Entry<DeadlineSettings>] = [
        .setting(
            "name", \.name, .destinationName.standingForNothing(""), "Its name, in metrics and `queue list`.",
            example: "\"reports\""),
        .setting(
            "time", \.time, .timeOfDay, "Events of a local date must have arrived before this time of the next one."),
        .setting(
            "time_zone", \.timeZone, .timeZone.standingForNothing(""), "The zone of these dates.",
            example: "\"Europe/Rome\""),
        .setting(
            "margin", \.margin, .duration(.zero ... .seconds(86_400)),
            "How long before that time events go first within their priority, without waiting for the interval."),
        .setting("apps", \.apps, .list(of: .text(), unique: true), "The apps; [] for all."),
        .setting(
            "destinations", \.destinations, .list(of: .destinationName, unique: true),
            "The destinations; [] for all."),
    ]
}

extension ValueType where Value == Duration {
    /// A time of day, to the minute: `04:00`.
    static var timeOfDay: ValueType {
        ValueType("time", range: "\"00:00\" to \"23:59\"") { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string, as \"04:00\"", node) }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            let isForm = parts.allSatisfy { $0.utf8.count == 2 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
            guard isForm, parts.count == 2, let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60
            else {
                throw Problem(
                    .outOfRange, "is \(SettingValue.quote(text)); must be hours and minutes, such as \"04:00\"")
            }
            // bounded: a time of day.
            return .seconds(hour * 3600 + minute * 60)
        } print: {
            let (hour, minute) = ($0.components.seconds / 60).quotientAndRemainder(dividingBy: 60)
            return .string("\(hour.digits(2)):\(minute.digits(2))")
        }
    }
}

extension ValueType where Value == String {
    /// A name of the tz database; whether the system has it is looked at by `check`.
    static var timeZone: ValueType {
        checked("time zone", range: "tz database name", mustBe: "a name of the tz database, such as \"Europe/Rome\"") {
            $0.first?.isLetter == true && $0.isTimeZoneName
        }
    }
}
