internal import EventLoops
internal import Logs
internal import Model

/// A destination's certificates and its secret, which may be in files: looked at once a second at most, and read again when
/// they change. What cannot be used leaves the last good one in force.
struct FollowedFiles {
    struct Changes {
        var hasCertificates = false
        var hasSecret = false

        var areAny: Bool { hasCertificates || hasSecret }
    }

    private var material: TLSMaterial
    private var provider: SecretProvider?
    private let name: DestinationName
    private let log: Log
    private var nextLook: BootInstant
    private var lastComplaint: String?

    /// Reads them for the first time; throws when a file cannot be read or used.
    init(
        _ name: DestinationName, _ tls: TLSOptions, secret: SecretSource?, hasLines: Bool = false, log: Log,
        at now: BootInstant
    ) throws(OutputError) {
        material = try TLSMaterial(tls)
        provider = try secret.map { source throws(OutputError) in try SecretProvider(source, hasLines: hasLines) }
        self.name = name
        self.log = log
        nextLook = now + .seconds(1)
    }

    var tls: TLSMaterial.Contents { material.contents }
    var secret: Secret? { provider?.current }
    var areAny: Bool { material.hasFiles || provider?.hasFile ?? false }

    var certificates: OutputCertificates {
        OutputCertificates(ownExpiry: material.certificateExpiry, authorityExpiry: material.authorityExpiry)
    }

    /// Reads what has changed; `use` takes a new secret into use, and throws when it cannot be used.
    mutating func readChanged(
        at now: BootInstant, _ certificates: inout OutputCertificates,
        use: (Secret?) throws(OutputError) -> Void = { _ in }
    ) -> Changes {
        var changes = Changes()
        guard now >= nextLook else { return changes }
        nextLook = now + .seconds(1)
        do throws(OutputError) {
            if material.hasChanged {
                try material.refresh()
                certificates.ownExpiry = material.certificateExpiry
                certificates.authorityExpiry = material.authorityExpiry
                log.info("certificates reread", ["destination": name])
                changes.hasCertificates = true
            }
            if provider?.hasChanged ?? false {
                try provider?.refresh()
                try use(provider?.current)
                log.info("secret reread", ["destination": name])
                changes.hasSecret = true
            }
            lastComplaint = nil
        } catch {
            certificates.failedReloads += 1
            if error.message != lastComplaint {
                lastComplaint = error.message
                log.warning(
                    "changed file not used, the last good one stays", ["destination": name, "reason": error.message])
            }
        }
        return changes
    }
}
