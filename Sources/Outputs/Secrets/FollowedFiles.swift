internal import EventLoops
internal import Logs
internal import Model

/// The certificates and the secret of a destination, which may be in files that change while the agent
/// runs.
///
/// They are checked at most once a second, and only when the output asks. If a changed file cannot be used,
/// the last good content stays in force, one warning is logged and `failedReloads` counts.
struct FollowedFiles {
    /// The files that were read again.
    struct Changes {
        var hasCertificates = false
        var hasSecret = false

        /// Whether the next attempt uses anything new.
        var areAny: Bool { hasCertificates || hasSecret }
    }

    /// The certificates and the key.
    private var material: TLSMaterial
    /// The secret; nil if the destination has none.
    private var provider: SecretProvider?
    private let name: DestinationName
    private let log: Log
    /// Time before which the files are not checked again: a busy destination would otherwise call `stat`
    /// for each batch.
    private var nextLook: BootInstant
    /// What the last check found wrong; the same problem is logged only once until the file is good again.
    private var lastComplaints: [String] = []

    /// Reads the files for the first time.
    ///
    /// - Throws: `OutputError` if a file cannot be read or used.
    init(
        _ name: DestinationName, _ tls: TLSOptions, secret: SecretSource?, hasLines: Bool = false, log: Log,
        at now: BootInstant
    ) throws(OutputError) {
        material = try TLSMaterial(tls)
        provider = try secret.map { source throws(OutputError) in
            try SecretProvider(source, hasLines: hasLines)
        }
        self.name = name
        self.log = log
        nextLook = now + .seconds(1)
    }

    /// Certificates and key in force.
    var tls: TLSMaterial.Contents { material.contents }
    /// The secret in force; nil without one.
    var secret: Secret? { provider?.current }
    /// Whether any certificate or secret is in a file, so that it can change.
    var areAny: Bool { material.hasFiles || provider?.hasFile ?? false }

    /// Expiry of the certificates in force.
    var certificates: OutputCertificates {
        OutputCertificates(ownExpiry: material.certificateExpiry, authorityExpiry: material.authorityExpiry)
    }

    /// Reads the files that have changed since the last call.
    ///
    /// - Parameter use: puts a new secret into use; throws if it cannot be used, in which case the caller
    ///   keeps the old one.
    mutating func readChanged(
        at now: BootInstant, _ certificates: inout OutputCertificates,
        use: (Secret?) throws(OutputError) -> Void = { _ in }
    ) -> Changes {
        var changes = Changes()
        guard now >= nextLook else { return changes }
        nextLook = now + .seconds(1)
        var problems: [String] = []
        do throws(OutputError) {
            if material.hasChanged {
                try material.refresh()
                certificates.ownExpiry = material.certificateExpiry
                certificates.authorityExpiry = material.authorityExpiry
                log.info("certificates reread", ["destination": name])
                changes.hasCertificates = true
            }
        } catch {
            problems.append(error.message)
        }
        // Each by itself: a certificate that cannot be used must not keep a new secret out of use.
        do throws(OutputError) {
            if provider?.hasChanged ?? false {
                try provider?.refresh()
                try use(provider?.current)
                log.info("secret reread", ["destination": name])
                changes.hasSecret = true
            }
        } catch {
            problems.append(error.message)
        }
        certificates.failedReloads += problems.count
        complain(problems)
        return changes
    }

    private mutating func complain(_ problems: [String]) {
        guard problems != lastComplaints else { return }
        for problem in problems where !lastComplaints.contains(problem) {
            log.warning(
                "changed file not used, the last good one stays", ["destination": name, "reason": problem])
        }
        lastComplaints = problems
    }
}
