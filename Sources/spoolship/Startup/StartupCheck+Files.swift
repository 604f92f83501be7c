internal import Agent
internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Outputs

/// The files that settings name: secrets, certificates, containers, programs, databases, time zones.
extension StartupCheck {
    /// So long before a certificate ends, it is time to renew it.
    private static let renewal = Duration.seconds(14 * 86_400)

    mutating func checkFiles(of destination: DestinationSettings) {
        let path = "destination.\(destination.name)"
        let found = mistakes
        if let file = destination.silentFile {
            return add(
                path, "\(file): its file system does not answer; events wait until it does", severity: .warning)
        }
        for secret in destination.secrets { checkSecret(secret.source, "\(path).\(secret.setting)") }
        let tls = destination.tls
        if let file = tls.caFile { checkCertificates(file, "\(path).tls.ca_file", chain: false) }
        let certificate = tls.certificateFile.flatMap {
            checkCertificates($0, "\(path).tls.certificate_file", chain: true)
        }
        if let file = tls.keyFile, let key = checkReadable(file, "\(path).tls.key_file") {
            warnIfReadableByAll(file, "\(path).tls.key_file")
            if let certificate {
                do throws(OutputError) {
                    let owner = try CertificateFile(pem: certificate, path: tls.certificateFile ?? "")
                    try owner.checkKey(pem: key, path: file)
                } catch {
                    add("\(path).tls.key_file", error.message)
                }
            }
        }
        if let file = destination.path {
            if let refusal = writeRefusal(file) { add("\(path).path", "\(file) cannot be written: \(refusal)") }
            if let directory = StartupCheck.directory(of: RealPath.of(file)),
                let refusal = sandbox?.refusal(directory, writes: true)
            {
                add("\(path).path", "\(directory) \(refusal)")
            }
        }
        // Whatever else the start would refuse. A systemd credential is there for the service alone.
        let isService = Console.environment("CREDENTIALS_DIRECTORY") != nil
        let hasCredential = destination.secrets.contains { if case .credential? = $0.source { true } else { false } }
        if mistakes == found, isService || !hasCredential,
            let refusal = StartupRehearsal(settings, version: Build.version).fileRefusal(of: destination)
        {
            add(path, refusal)
        }
    }

    /// Why nothing can be appended to a file; nil where it can, or where the file can be made.
    private func writeRefusal(_ file: String) -> String? {
        guard let status = FileStatus(file) else {
            // Of a link to nothing the file is made where it leads.
            guard let directory = StartupCheck.directory(of: RealPath.of(file)) else { return nil }
            return missing(directory) ?? access.refusal(directory, W_OK | X_OK)
        }
        // A pipe or a device keeps nothing that could be acknowledged.
        return status.isRegular ? access.refusal(file, W_OK) : "it is not a regular file"
    }

    mutating func checkFiles(of container: ContainerSettings) {
        let path = "container.\(container.id)"
        if let file = container.caFile { checkCertificates(file, "\(path).ca_file", chain: false) }
        let hashKey = checkHashKey(of: container, path)
        guard let file = container.defaultFile else { return }
        let setting = "\(path).default_file"
        let name = String(file.split(separator: "/").last ?? "")
        if let refusal = sandbox?.refusal(file, writes: false) { add(setting, "\(file) \(refusal)") }
        do throws(ContainerError) {
            let found = try DefaultFile(path: file, id: container.id, user: access.userID)
            if let better = found.path.split(separator: "/").last, better != name {
                add(setting, "\(name) is ignored, because \(better) beside it wins", severity: .warning)
            }
            let standard = found.document
            if let problem = found.signatureProblem(container.publicKeys.compactMap { PublicKey($0) }) {
                add(setting, problem, severity: .warning)
            }
            if let expires = standard.expires, expires <= SystemTime().wallTime {
                add(setting, "\(file): the document has expired, and stays in force", severity: .warning)
            }
            var facts = AgentFacts()
            facts.hashKey = hashKey
            let compiled = try CompiledContainer(standard, mayCall: Set(container.mayCall), facts: facts)
            if container.required.contains(.redaction), !compiled.hides {
                add(
                    setting, "\(file) redacts nothing, which required demands: no event is read while it is in force",
                    severity: container.url == nil ? .error : .warning)
            }
            for (app, key) in settings.appsWithText
            where compiled.hidesByPath && (container.apps.isEmpty || container.apps.contains(app)) {
                add(
                    key,
                    "sends text: lines that look like parts of JSON are quarantined instead, as \(file) hides members by path",
                    severity: .warning)
            }
            for finding in compiled.findings {
                add(setting, "\(file): \(finding)", severity: finding.isMistake ? .error : .warning)
            }
            let unknown = compiled.deniedFunctions
            if !unknown.isEmpty {
                add(
                    setting,
                    "\(file) calls \(unknown.joined(separator: ", ")), which give null: name them in may_call",
                    severity: .warning)
            }
        } catch {
            add(setting, error.description)
        }
    }

    /// The key that a container's tags hash with; nil where there is none, or only the service has it.
    private mutating func checkHashKey(of container: ContainerSettings, _ path: String) -> HashKey? {
        let credentials = Console.environment("CREDENTIALS_DIRECTORY")
        if container.hashKeyCredential != nil, credentials == nil { return .trial }
        guard let file = container.hashKeyPath(credentials: credentials) else { return nil }
        let setting = "\(path).\(container.hashKeyFile == nil ? "hash_key_credential" : "hash_key_file")"
        if let refusal = sandbox?.refusal(file, writes: false) { add(setting, "\(file) \(refusal)") }
        do throws(ContainerError) {
            return try HashKey(reading: file)
        } catch {
            add(setting, error.message)
            return .trial
        }
    }

    mutating func checkNamedFiles() {
        for (name, function) in settings.functions.sorted(by: { $0.key < $1.key }) {
            guard let program = function.command.first else { continue }
            let problem = FunctionProgram.problem(program, user: access.userID)
            if let problem = problem ?? access.refusal(program, X_OK).map({ "\(program) \($0)" }) {
                add("functions.\(name).command", problem)
            }
        }
        if let database = settings.country.database,
            let refusal = missing(database) ?? access.refusal(database, R_OK)
        {
            add("country.database", "\(database): \(refusal)")
        }
        for deadline in settings.deadlines {
            let file = "/usr/share/zoneinfo/\(deadline.timeZone)"
            guard (try? WholeFile.bytes(of: file, atMost: 1 << 20))?.starts(with: "TZif".utf8) != true else { continue }
            add(
                "deadline.\(deadline.name).time_zone",
                "\"\(deadline.timeZone)\" is not known to this system; see timedatectl list-timezones, or install tzdata"
            )
        }
    }

    private mutating func checkSecret(_ source: SecretSource?, _ setting: String) {
        switch source {
        case .file(let file):
            guard let bytes = checkReadable(file, "\(setting)_file") else { return }
            if bytes.allSatisfy({ $0 <= 0x20 }) { add("\(setting)_file", "\(file) is empty") }
            warnIfReadableByAll(file, "\(setting)_file")
        case .credential(let name):
            // Only the service itself has credentials; without them there is nothing to look at.
            guard let directory = Console.environment("CREDENTIALS_DIRECTORY") else { return }
            if missing("\(directory)/\(name)") != nil {
                add(
                    "\(setting)_credential",
                    "there is no credential \(name); add LoadCredential=\(name):PATH to the unit")
            }
        case .inline, nil: break
        }
    }

    /// Looks at certificates; of a `chain` the first one counts (our own), of authorities the one that lasts longest.
    @discardableResult
    private mutating func checkCertificates(_ file: String, _ setting: String, chain: Bool) -> [UInt8]? {
        guard let bytes = checkReadable(file, setting) else { return nil }
        do throws(OutputError) {
            let ends = try CertificateFile(pem: bytes, path: file).expiries
            let left = (chain ? ends[0] : ends.reduce(ends[0], max)) - SystemTime().wallTime
            if left < .zero {
                add(
                    setting, "\(file): certificate expired \(HumanText.duration(.zero - left)) ago; renew it",
                    severity: .warning)
            } else if left < StartupCheck.renewal {
                let days = left.components.seconds / 86_400
                add(setting, "\(file): certificate expires in \(days) days; renew it", severity: .warning)
            }
            return bytes
        } catch {
            add(setting, error.message)
            return nil
        }
    }

    /// A file's bytes; what is wrong with it is added.
    private mutating func checkReadable(_ file: String, _ setting: String) -> [UInt8]? {
        if let refusal = sandbox?.refusal(file, writes: false) { add(setting, "\(file) \(refusal)") }
        if let absent = missing(file) {
            add(setting, "\(file): \(absent)")
            return nil
        }
        guard FileStatus(file)?.isRegular == true else {
            add(setting, "\(file) is not a regular file")
            return nil
        }
        if let refusal = access.refusal(file, R_OK) {
            add(setting, "\(file) \(refusal)")
            return nil
        }
        guard let bytes = try? WholeFile.bytes(of: file, atMost: 8 << 20) else {
            add(setting, "\(file) cannot be read, or is larger than 8 MiB")
            return nil
        }
        return bytes
    }

    private mutating func warnIfReadableByAll(_ file: String, _ setting: String) {
        guard let status = FileStatus(file), status.mode & 0o004 != 0 else { return }
        add(
            setting, "\(file) can be read by everyone (mode \(status.shownMode)); run chmod o-r \(file)",
            severity: .warning)
    }

    func missing(_ path: String) -> String? {
        guard FileStatus(path) == nil else { return nil }
        let number = errno
        if number == EACCES, let door = access.closedDoor(on: path) {
            return "is in \(door), which user \(access.user) may not search"
        }
        return SystemError.message(number).lowercased()
    }
}
