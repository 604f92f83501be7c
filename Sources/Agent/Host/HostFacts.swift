internal import Configuration
internal import Containers
internal import EventLoops
internal import Events
internal import Glibc
internal import Host
internal import Logs
internal import Outputs
internal import TimeZones

/// Facts about the machine, looked up at the start: host name, install id, device members, time zone. Host
/// name and time zone are looked up again when they change (`HostWatch`).
struct HostFacts: Sendable {
    /// The host's name; empty if the kernel does not say.
    private(set) var name = hostName()
    /// The id of this installation; nil if none could be stored in the state directory.
    let installID: String?
    /// Names this installation in headers and object keys. It is derived from the install id by a hash, so
    /// that it never changes, and so that an install id which tags redact in events does not leave the
    /// machine in a header.
    var senderID: String? { installID.map { AppCenterEncoder.uuid("spoolship sender \($0)") } }
    /// The warning about a state directory that a reboot empties; nil if it is on a disk.
    let volatileState: String?
    /// Device members by name, before the settings select and override some of them.
    private var found: [String: String]
    /// The machine's time zone; nil if it cannot be found: then events carry no offset.
    private(set) var zone: TimeZoneRules?

    /// Looks the machine up. What cannot be found is left out, with a warning if a person can fix it.
    ///
    /// With `keepsID` an install id is made if there is no valid one; without it nothing changes on the
    /// machine, which is what `check` needs.
    init(_ settings: Settings, version: String, log: Log, keepsID: Bool = true) {
        var locale: [String: String] = [:]
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] { locale[name] = environment(name) }
        let installID = keepsID ? HostFacts.installID(settings, log: log) : nil
        self.installID = installID
        let directory = settings.agent.stateDirectory
        volatileState = VolatileStorage.name(of: directory).map { VolatileStorage.warning(directory, on: $0) }
        if keepsID, let volatileState {
            log.warning("the queue is not on a disk", ["hint": volatileState])
        }
        found = DeviceReader(environment: locale).read(version: version, installID: installID, hostName: name)
        do throws(TimeZoneError) {
            zone = try TimeZoneLoader().loadLocal(environment("TZ"))
        } catch {
            log.warning("no time zone: events carry no offset", ["hint": error.message])
            zone = nil
        }
    }

    /// The facts with the host's name and zone as they are now. A zone that cannot be read is logged, and
    /// stays as it was.
    ///
    /// - Parameter variable: the value of `TZ`.
    func lookedAgain(_ variable: String? = environment("TZ"), log: Log) -> HostFacts {
        var facts = self
        facts.name = hostName()
        facts.found["host_name"] = facts.name.isEmpty ? nil : facts.name
        do { facts.zone = try TimeZoneLoader().loadLocal(variable) } catch {
            log.warning("time zone cannot be read; the old one stays in force", ["reason": "\(error)"])
        }
        return facts
    }

    /// The id of this installation. A new one is made if the file is missing or invalid, or was copied from
    /// another machine (a cloned disk): a receiver could not distinguish two machines with one id.
    private static func installID(_ settings: Settings, log: Log) -> String? {
        var random = KernelRandom()
        // The first start needs an id before the queue opens and makes the directory.
        mkdir(settings.agent.stateDirectory, 0o700)
        do throws(HostError) {
            let id = try InstallID.load(
                in: settings.agent.stateDirectory, machine: MachineID.read(), using: &random)
            if id.wasReplaced {
                log.warning("new install id: the old file contained none")
            }
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

    /// The facts that macros of containers can read.
    func agentFacts(version: String) -> AgentFacts {
        AgentFacts(
            hostName: name.isEmpty ? nil : name, osVersion: found["os_version"], agentVersion: version,
            locale: found["locale"])
    }

    /// The device members that the settings want, as the text that is added to each event.
    func device(for settings: Settings) -> DeviceText? {
        DeviceReader.text(
            found, wanted: Set(settings.device.properties.map(\.rawValue)),
            overrides: settings.device.overrides,
            zone: zone)
    }
}

/// The value of an environment variable; nil if the variable is not set.
func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
