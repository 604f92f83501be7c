internal import Agent
internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Glibc
internal import Model
internal import Outputs

/// The files that settings name: secrets, certificates, documents of containers, programs, databases, time
/// zones.
extension StartupCheck {
    /// A certificate that ends within 14 days is reported: enough time to renew it by hand.
    private static let renewal = Duration.seconds(14 * 86_400)

    /// Checks the files of a destination: secrets, certificates and their keys, and the file that is written.
    /// If they are good, the start's own reading of them is rehearsed, which finds the rest.
    mutating func checkFiles(of destination: DestinationSettings) {
        let path = "destination.\(destination.name)"
        let found = mistakes
        // No other check of this destination touches its files: each would block.
        if let file = destination.silentFile {
            return add(
                path, "\(file): its file system does not answer; events wait until it does",
                severity: .warning)
        }
        for secret in destination.secrets { checkSecret(secret.source, "\(path).\(secret.setting)") }
        let tls = destination.tls
        if let file = tls.caFile {
            checkCertificates(file, "\(path).tls.ca_file", chain: false)
        }
        let certificate = tls.certificateFile.flatMap {
            checkCertificates($0, "\(path).tls.certificate.file", chain: true)
        }
        if let file = tls.keyFile, let key = checkReadable(file, "\(path).tls.certificate.key_file") {
            warnIfReadableByAll(file, "\(path).tls.certificate.key_file")
            // A key that does not belong to the certificate would fail in the TLS handshake only, with a
            // message that does not name either file.
            if let certificate {
                do throws(OutputError) {
                    let owner = try CertificateFile(pem: certificate, path: tls.certificateFile ?? "")
                    try owner.checkKey(pem: key, path: file)
                } catch {
                    add("\(path).tls.certificate.key_file", error.message)
                }
            }
        }
        if let file = destination.path {
            if let refusal = writeRefusal(file) {
                add("\(path).path", "\(file) cannot be written: \(refusal)")
            }
            if let directory = StartupCheck.directory(of: RealPath.of(file)),
                let refusal = sandbox?.refusal(directory, writes: true)
            {
                add("\(path).path", "\(directory) \(refusal)")
            }
        }
        // What else the start would refuse. Skipped if a problem was found, because it would be reported
        // twice, and outside the service if the destination has a systemd credential, which exists for the
        // service only.
        let isService = Console.environment("CREDENTIALS_DIRECTORY") != nil
        let hasCredential = destination.secrets.contains {
            if case .credential? = $0.source {
                true
            } else {
                false
            }
        }
        if mistakes == found, isService || !hasCredential,
            let refusal = StartupRehearsal(settings, version: Build.version).fileRefusal(of: destination)
        {
            add(path, refusal)
        }
    }

    /// Why nothing can be appended to a file; nil if the file is writable, or does not exist and can be
    /// created.
    private func writeRefusal(_ file: String) -> String? {
        guard let status = FileStatus(file) else {
            // A symbolic link to a file that does not exist: the agent creates the file where the link leads.
            guard let directory = StartupCheck.directory(of: RealPath.of(file)) else { return nil }
            return missing(directory) ?? access.refusal(directory, W_OK | X_OK)
        }
        // Data that a pipe or device takes may be lost afterwards, so it could not be acknowledged.
        return status.isRegular ? access.refusal(file, W_OK) : "it is not a regular file"
    }

    /// Checks the files of a container: its certificates, its key for hashes, and its default document as the
    /// agent would put it in force.
    mutating func checkFiles(of container: ContainerSettings) {
        let path = "container.\(container.id)"
        if let file = container.caFile {
            checkCertificates(file, "\(path).url.ca_file", chain: false)
        }
        let hashKey = checkHashKey(of: container, path)
        guard let file = container.defaultFile else { return }
        let setting = "\(path).default_file"
        let name = String(file.split(separator: "/").last ?? "")
        if let refusal = sandbox?.refusal(file, writes: false) {
            add(setting, "\(file) \(refusal)")
        }
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
                    setting,
                    "\(file) redacts nothing, which required demands: no event is read while it is in force",
                    severity: container.url == nil ? .error : .warning)
            }
            if compiled.hidesByPath {
                warnOfText(as: "\(file) hides") { container.apps.isEmpty || container.apps.contains($0) }
            }
            for finding in compiled.findings {
                add(setting, "\(file): \(finding)", severity: finding.isMistake ? .error : .warning)
            }
            let unknown = compiled.deniedFunctions
            if !unknown.isEmpty {
                add(
                    setting,
                    "\(file) calls \(unknown.joined(separator: ", ")), which give null: name them in "
                        + "may_call",
                    severity: .warning)
            }
        } catch {
            add(setting, error.description)
        }
    }

    /// The key with which the container's tags hash. A key for trials if the real one cannot be read here, so
    /// that the document is checked all the same; nil if the configuration has no key.
    private mutating func checkHashKey(of container: ContainerSettings, _ path: String) -> HashKey? {
        let credentials = Console.environment("CREDENTIALS_DIRECTORY")
        // Only the service has its credentials; elsewhere the key cannot be judged.
        if container.hashKeyCredential != nil, credentials == nil { return .trial }
        guard let file = container.hashKeyPath(credentials: credentials) else { return nil }
        let setting = "\(path).hash_key"
        if let refusal = sandbox?.refusal(file, writes: false) {
            add(setting, "\(file) \(refusal)")
        }
        do throws(ContainerError) {
            return try HashKey(reading: file)
        } catch {
            add(setting, error.message)
            return .trial
        }
    }

    /// Checks the key of the configuration's own rules, and warns of text lines that rules quarantine.
    mutating func checkRules() {
        for finding in settings.keylessRules { add("rule", finding.message, severity: .warning) }
        guard let key = settings.agent.hashKey else { return warnOfTextHiding() }
        let credentials = Console.environment("CREDENTIALS_DIRECTORY")
        if case .credential = key, credentials == nil { return warnOfTextHiding() }
        let file = key.path(credentials: credentials)
        if let refusal = sandbox?.refusal(file, writes: false) {
            add("agent.hash_key", "\(file) \(refusal)")
        }
        do throws(ContainerError) { _ = try HashKey(reading: file) } catch {
            add("agent.hash_key", error.message)
        }
        warnOfTextHiding()
    }

    /// Warns of apps whose lines of text are quarantined because rules hide members by path: such a rule
    /// cannot be applied to a broken JSON text, so lines that look like parts of one are not sent.
    private mutating func warnOfTextHiding() {
        guard settings.rulesForCheck?.hidesByPath == true else { return }
        warnOfText(as: "rules hide") { _ in true }
    }

    /// Warns that text of apps is quarantined if it may have hidden members, and of what is sent all the
    /// same: a line that a format has parsed is a record, and the texts in a record are not searched for
    /// members. That is so also in apps whose other lines are quarantined.
    private mutating func warnOfText(as reason: String, of isMeant: (String) -> Bool) {
        let inParsed = "JSON inside a text of a parsed line is searched by patterns only"
        let senders = settings.appsWithText.filter { isMeant($0.app) }
        for (app, key) in senders {
            add(
                key,
                "sends text: lines that look like parts of JSON are quarantined instead, as \(reason) "
                    + "members by path" + (settings.apps[app]?.isParsed == true ? "; \(inParsed)" : ""),
                severity: .warning)
        }
        for (app, parsed) in settings.apps.sorted(by: { $0.key < $1.key })
        where parsed.isParsed && isMeant(app) && !senders.contains(where: { $0.app == app }) {
            add(
                "apps.\(app).\(parsed.parse == nil ? "pattern" : "parse")",
                "\(reason) members by path, and \(inParsed)", severity: .warning)
        }
    }

    /// Checks the programs of functions, the country database and the time zones of deadlines.
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
            guard (try? WholeFile.bytes(of: file, atMost: 1 << 20))?.starts(with: "TZif".utf8) != true else {
                continue
            }
            add(
                "deadline.\(deadline.name).time.zone",
                "\"\(deadline.timeZone)\" is not known to this system; see timedatectl list-timezones, or "
                    + "install tzdata"
            )
        }
    }

    /// Checks where a secret comes from: an empty file would be sent as an empty token, and a file that every
    /// user can read is not secret.
    private mutating func checkSecret(_ source: SecretSource?, _ setting: String) {
        switch source {
        case .file(let file):
            guard let bytes = checkReadable(file, setting) else { return }
            if bytes.allSatisfy({ $0 <= 0x20 }) {
                add(setting, "\(file) is empty")
            }
            warnIfReadableByAll(file, setting)
        case .credential(let name):
            // Only the service has credentials; elsewhere they cannot be looked at.
            guard let directory = Console.environment("CREDENTIALS_DIRECTORY") else { return }
            if missing("\(directory)/\(name)") != nil {
                add(setting, "there is no credential \(name); add LoadCredential=\(name):PATH to the unit")
            }
        case .inline, nil: break
        }
    }

    /// Checks the certificates in a file and returns the file's bytes; nil if they cannot be used.
    ///
    /// - Parameter chain: whether the file has our own certificate, the first one, followed by its issuers.
    ///   Otherwise it has authorities, which are usable until the last one expires.
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

    /// The bytes of a file that must be readable; nil after a problem, which is added.
    private mutating func checkReadable(_ file: String, _ setting: String) -> [UInt8]? {
        if let refusal = sandbox?.refusal(file, writes: false) {
            add(setting, "\(file) \(refusal)")
        }
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

    /// Warns if every user can read a file with a secret.
    private mutating func warnIfReadableByAll(_ file: String, _ setting: String) {
        guard let status = FileStatus(file), status.mode & 0o004 != 0 else { return }
        add(
            setting, "\(file) can be read by everyone (mode \(status.shownMode)); run chmod o-r \(file)",
            severity: .warning)
    }

    /// Why a path cannot be found; nil if it exists.
    func missing(_ path: String) -> String? {
        guard FileStatus(path) == nil else { return nil }
        let number = errno
        if number == EACCES, let door = access.closedDoor(on: path) {
            return "is in \(door), which user \(access.user) may not search"
        }
        return SystemError.clause(number)
    }
}
