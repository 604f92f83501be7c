/// `[stats]`: the port for monitoring, with metrics, health and the status page.
public struct StatsSettings: SettingsSection {
    /// The address; nil if the port is closed. The default is reachable from this machine only, because the
    /// port has no password.
    package var listen: ListenAddress? = ListenAddress(host: "127.0.0.1", port: 9464)
    /// Whether the status page is served.
    package var statusPage = true
    /// Further host names that the port answers to. Other names are refused, so that a web page cannot read
    /// the port by a DNS name of its own (DNS rebinding).
    package var hosts: [String] = []

    static let entries: [Entry<StatsSettings>] = [
        .pair(
            "listen", .init("address", \.listen, ListenAddress.settingType),
            .init("hosts", \.hosts, hostsType),
            "Another address lets other machines scrape, without TLS or password; off closes the port. hosts"
                + " are the host names that it answers to, as in [\"web1.example.com\"], besides addresses,"
                + " localhost and the machine's name.",
            restart: true),
        .setting(
            "status_page", \.statusPage, .boolean, "false leaves only metrics and health.", restart: true),
        .setting("hosts", \.hosts, hostsType, "Now listen.hosts.", restart: true)
            .renamed(to: "listen.hosts"),
    ]

    private static let hostsType = ValueType<[String]>.list(of: .text(), count: 0...64, unique: true)
}

/// `[control]`: the Unix socket that the commands use.
public struct ControlSettings: SettingsSection {
    /// Path of the socket.
    package var socket = "/run/spoolship/control.sock"
    /// Group whose members may use the socket.
    package var group = "spoolship"

    /// The defaults.
    package init() {}

    static let entries: [Entry<ControlSettings>] = [
        .pair(
            "socket", .init("path", \.socket, ControlSettings.socketPathType),
            .init("group", \.group, .text()),
            "The socket on which commands reach the agent, and the group whose members may use them, as root"
                + " and the agent's user may.",
            restart: true),
        .setting("group", \.group, .text(), "Now socket.group.", restart: true)
            .renamed(to: "socket.group"),
    ]
}

extension ListenAddress {
    /// An address with a port, or `off`.
    static var settingType: ValueType<ListenAddress?> {
        ValueType("address", range: "ADDRESS:PORT, or \"off\"") { node throws(Problem) in
            guard case .string(let text) = node.value else {
                throw .wrongType("a string, as \"127.0.0.1:9464\"", node)
            }
            if text == "off" { return nil }
            guard let address = ListenAddress(text) else {
                throw Problem(
                    .outOfRange,
                    "is \(SettingValue.quote(text)); must be an IP address and a port, such as "
                        + "\"127.0.0.1:9464\" or \"[::1]:9464\", or \"off\"")
            }
            return address
        } print: {
            .string($0?.description ?? "off")
        }
    }
}

extension ControlSettings {
    /// The path of a Unix socket. The kernel has room for 107 bytes (unix(7)).
    static var socketPathType: ValueType<String> { .path("absolute, at most 107 bytes", maxLength: 107) }
}
