/// A host property that can travel with events.
package enum DeviceProperty: String, Sendable, CaseIterable {
    /// The agent's: `spoolship`, and its version.
    case sdkName = "sdk_name"
    case sdkVersion = "sdk_version"
    case hostName = "host_name"
    case osName = "os_name"
    case osVersion = "os_version"
    case osBuild = "os_build"
    case kernel
    /// The machine's, by its firmware.
    case model, manufacturer
    case locale
    /// Minutes east of UTC, at the event's time.
    case timeZoneOffset = "time_zone_offset"
    /// The app's, where it says so.
    case appVersion = "app_version"
    case appBuild = "app_build"
    case installID = "install_id"
}

/// `[device]`: host properties that travel with events.
public struct DeviceSettings: SettingsSection {
    package var properties = DeviceProperty.allCases
    package var overrides: [String: String] = [:]

    static let entries: [Entry<DeviceSettings>] = [
        .setting(
            "properties", \.properties, .list(of: .choice, unique: true),
            "Leave out what you do not need; [] sends none. Unknown properties are left out anyway."),
        .setting(
            "overrides", \.overrides,
            .map(of: .text(), names: DeviceProperty.allCases.map(\.rawValue).joined(separator: ", ")) { name in
                DeviceProperty(rawValue: name) != nil
            }, "Values to send instead of those found.", example: "{ model = \"rack 12\" }"),
    ]
}
