/// A host property that can travel with events.
public enum DeviceProperty: String, Sendable, CaseIterable {
    /// `spoolship`.
    case sdkName = "sdk_name"
    /// The agent's version.
    case sdkVersion = "sdk_version"
    /// The machine's name.
    case hostName = "host_name"
    /// The system's name.
    case osName = "os_name"
    /// The system's version.
    case osVersion = "os_version"
    /// The system's build.
    case osBuild = "os_build"
    /// The kernel's release.
    case kernel
    /// The machine's model, by its firmware.
    case model
    /// The machine's maker, by its firmware.
    case manufacturer
    /// The agent's locale.
    case locale
    /// Minutes east of UTC, at the event's time.
    case timeZoneOffset = "time_zone_offset"
    /// The app's version, where it says so.
    case appVersion = "app_version"
    /// The app's build, where it says so.
    case appBuild = "app_build"
    /// A random id of this installation.
    case installID = "install_id"
}

/// `[device]`: host properties that travel with events.
public struct DeviceSettings: Sendable, Equatable {
    package var properties = DeviceProperty.allCases
    package var overrides: [String: String] = [:]
}

extension DeviceSettings: SettingsSection {
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
