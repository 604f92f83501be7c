/// A property of the host that events can carry.
package enum DeviceProperty: String, Sendable, CaseIterable {
    /// Name of the agent, `spoolship`, and its version.
    case sdkName = "sdk_name"
    case sdkVersion = "sdk_version"
    /// Name of the host.
    case hostName = "host_name"
    /// Name, version and build of the distribution, from os-release(5).
    case osName = "os_name"
    case osVersion = "os_version"
    case osBuild = "os_build"
    /// Release of the kernel, as `uname -r` prints it.
    case kernel
    /// Model and manufacturer of the machine, as its firmware says.
    case model, manufacturer
    /// Language and region, such as `it_IT`, from the environment (locale(7)).
    case locale
    /// Minutes east of UTC, at the event's time.
    case timeZoneOffset = "time_zone_offset"
    /// Version and build of the app, if the app says them.
    case appVersion = "app_version"
    case appBuild = "app_build"
    /// Id of this installation of the agent.
    case installID = "install_id"
}

/// `[device]`: properties of the host that events carry.
public struct DeviceSettings: SettingsSection {
    /// The properties that are sent, if they are known.
    package var properties = DeviceProperty.allCases
    /// Values in place of those that are found.
    package var overrides: [String: String] = [:]

    static let entries: [Entry<DeviceSettings>] = [
        .pair(
            "properties", .init("names", \.properties, .list(of: .choice, unique: true)),
            .init("overrides", \.overrides, overridesType),
            "Leave out what you do not need; [] sends none. Unknown properties are left out anyway. overrides"
                + " are values to send instead of those found, as { model = \"rack 12\" }."),
        .setting("overrides", \.overrides, overridesType, "Now properties.overrides.")
            .renamed(to: "properties.overrides"),
    ]

    private static let overridesType = ValueType<[String: String]>.map(
        of: .text(), names: DeviceProperty.allCases.map(\.rawValue).joined(separator: ", ")
    ) {
        DeviceProperty(rawValue: $0) != nil
    }
}
