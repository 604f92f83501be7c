internal import Configuration
internal import Containers
internal import EventLoops
internal import Events
internal import Glibc
internal import Host
internal import Logs
internal import Outputs
internal import TimeZones

/// What is known of the machine, looked up once at the start.
struct HostFacts: Sendable {
    /// The host's name; empty when the kernel does not tell.
    let name = hostName()
    /// The id of this installation; nil when none could be kept.
    let installID: String?
    /// What names this installation in headers and in keys of objects: always the same, and nothing that tags may redact in events.
    var senderID: String? { installID.map { AppCenterEncoder.uuid("spoolship sender \($0)") } }
    private let found: [String: String]
    /// The machine's time zone; nil when it cannot be found.
    let zone: TimeZoneRules?

    /// Looks the machine up; what cannot be found is left out, with a warning where a person can fix it.
    /// With `keepsID` an install id is made where there is none; without it nothing changes on the machine.
    init(_ settings: Settings, version: String, log: Log, keepsID: Bool = true) {
        var locale: [String: String] = [:]
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] { locale[name] = environment(name) }
        let installID = keepsID ? HostFacts.installID(settings, log: log) : nil
        self.installID = installID
        found = DeviceReader(environment: locale).read(version: version, installID: installID, hostName: name)
        do throws(TimeZoneError) {
            zone = try TimeZoneLoader().loadLocal(environment("TZ"))
        } catch {
            log.warning("no time zone: events carry no offset", ["hint": error.message])
            zone = nil
        }
    }

    /// The id of this installation, made where there is none.
    private static func installID(_ settings: Settings, log: Log) -> String? {
        var random = KernelRandom()
        // The queue makes its directory when it opens, which is later: the first start needs an id too.
        mkdir(settings.agent.stateDirectory, 0o700)
        do throws(HostError) {
            let id = try InstallID.load(in: settings.agent.stateDirectory, machine: MachineID.read(), using: &random)
            if id.wasReplaced { log.warning("new install id: the old file contained none") }
            if let original = id.clonedFrom {
                log.warning(
                    "new install id: the state directory came from another machine",
                    ["before": original, "now": id.text])
            }
            return id.text
        } catch {
            log.warning("no install id", ["hint": error.message])
            return nil
        }
    }

    /// What macros of containers know of the machine.
    func agentFacts(version: String) -> AgentFacts {
        AgentFacts(
            hostName: name.isEmpty ? nil : name, osVersion: found["os_version"], agentVersion: version,
            locale: found["locale"])
    }

    func device(for settings: Settings) -> DeviceText? {
        DeviceReader.text(
            found, wanted: Set(settings.device.properties.map(\.rawValue)), overrides: settings.device.overrides,
            zone: zone)
    }
}

func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
