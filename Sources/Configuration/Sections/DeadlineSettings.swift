internal import EventLoops
internal import Model

/// `[[deadline]]`: the events of a local date must have arrived before a time of the next date.
public struct DeadlineSettings: SettingsSection {
    /// Name, in metrics and commands.
    package var name = ""
    /// Time since midnight, in whole minutes.
    package var time = Duration.seconds(4 * 3600)
    /// Zone of the dates.
    package var timeZone = ""
    /// How long before the deadline events are sent first, without waiting for the interval.
    package var margin = Duration.seconds(1800)
    /// Apps; empty for all.
    package var apps: [String] = []
    /// Destinations; empty for all.
    package var destinations: [String] = []

    static let entries: [Entry<DeadlineSettings>] = [
        .setting(
            "name", \.name, .destinationName.standingForNothing(""), "Its name, in metrics and `queue list`.",
            example: "\"reports\""),
        .pair(
            "time", .init("of_day", \.time, DeadlineSettings.timeOfDayType),
            .init("zone", \.timeZone, DeadlineSettings.timeZoneType.standingForNothing("")),
            "Events of a local date must have arrived before this time of the next one; the zone of these"
                + " dates is required.",
            example: "{ of_day = \"04:00\", zone = \"Europe/Rome\" }"),
        .setting("time_zone", \.timeZone, DeadlineSettings.timeZoneType, "Now time.zone.")
            .renamed(to: "time.zone"),
        .setting(
            "margin", \.margin, .duration(.zero ... .seconds(86_400)),
            "How long before that time events go first within their priority, without waiting for the "
                + "interval."
        ),
        .pair(
            "for", .init("apps", \.apps, appsType), .init("destinations", \.destinations, destinationsType),
            "The apps and the destinations whose events it is for; [] for all.",
            example: "{ apps = [\"shop\"], destinations = [\"reports\"] }"),
        .setting("apps", \.apps, appsType, "Now for.apps.").renamed(to: "for.apps"),
        .setting("destinations", \.destinations, destinationsType, "Now for.destinations.")
            .renamed(to: "for.destinations"),
    ]

    private static let appsType = ValueType<[String]>.list(of: .text(), unique: true)
    private static let destinationsType = ValueType<[String]>.list(of: .destinationName, unique: true)
}

extension DeadlineSettings {
    /// A time of day in hours and minutes: `04:00`.
    static var timeOfDayType: ValueType<Duration> {
        ValueType("time", range: "\"00:00\" to \"23:59\"") { node throws(Problem) in
            guard case .string(let text) = node.value else {
                throw .wrongType("a string, as \"04:00\"", node)
            }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            // Exactly two digits on each side: `4:00` and `04:0` are refused rather than guessed at.
            let isForm = parts.allSatisfy {
                $0.utf8.count == 2 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) }
            }
            guard isForm, parts.count == 2, let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24,
                minute < 60
            else {
                throw Problem(
                    .outOfRange,
                    "is \(SettingValue.quote(text)); must be hours and minutes, such as \"04:00\"")
            }
            // bounded: a time of day.
            return .seconds(hour * 3600 + minute * 60)
        } print: {
            let (hour, minute) = ($0.components.seconds / 60).quotientAndRemainder(dividingBy: 60)
            return .string("\(hour.digits(2)):\(minute.digits(2))")
        }
    }

    /// A name of the tz database. Only its form is checked here, because the configuration can be for another
    /// machine; whether this system has it is checked by `check`.
    static var timeZoneType: ValueType<String> {
        .checked(
            "time zone", range: "tz database name",
            mustBe: "a name of the tz database, such as \"Europe/Rome\""
        ) {
            $0.first?.isLetter == true && $0.isTimeZoneName
        }
    }
}
