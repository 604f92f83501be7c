/// `[stats]`: the port for monitoring.
public struct StatsSettings: SettingsSection {
    package var listen: ListenAddress? = ListenAddress(host: "127.0.0.1", port: 9464)
    package var statusPage = true
    package var hosts: [String] = []

    static let entries: [Entry<StatsSettings>] = [
        .setting(
            "listen", \.listen, .listenAddress,
            "Another address lets other machines scrape, without TLS or password; off closes the port.", restart: true),
        .setting("status_page", \.statusPage, .boolean, "false leaves only metrics and health.", restart: true),
        .setting(
            "hosts", \.hosts, .list(of: .text(), count: 0...64, unique: true),
            "Host names that the port answers to, as in [\"web1.example.com\"], besides addresses, localhost and the"
                + " machine's name.", restart: true),
    ]
}

/// `[control]`: the Unix socket that the commands use.
public struct ControlSettings: SettingsSection {
    package var socket = "/run/spoolship/control.sock"
    package var group = "spoolship"

    package init() {}

    static let entries: [Entry<ControlSettings>] = [
        .setting("socket", \.socket, .socketPath, "The socket on which commands reach the agent.", restart: true),
        .setting(
            "group", \.group, .text(), "Its members may use the commands, as root and the agent's user may.",
            restart: true),
    ]
}

extension ValueType where Value == ListenAddress? {
    static var listenAddress: ValueType {
        ValueType("address", range: "ADDRESS:PORT, or \"off\"") { node throws(Problem) in
            guard case .string(let text) = node.value else { throw .wrongType("a string, as \"127.0.0.1:9464\"", node) }
            if text == "off" { return nil }
            guard let address = ListenAddress(text) else {
                throw Problem(
                    .outOfRange,
                    "is \(SettingValue.quote(text)); must be an IP address and a port, such as \"127.0.0.1:9464\" or \"[::1]:9464\","
                        + " or \"off\"")
            }
            return address
        } print: {
            .string($0?.description ?? "off")
        }
    }
}

extension ValueType where Value == String {
    /// The path of a Unix socket; the kernel keeps 107 bytes.
    static var socketPath: ValueType { path("absolute, at most 107 bytes", maxLength: 107) }
}
