internal import EventLoops
internal import Model

/// The copies that the publisher has published, as far as this machine has seen them, and what may follow
/// them: nothing older, and nothing else under the same version.
struct PublishedCopies: Sendable {
    /// The copy of the last good fetch, from the database or the network.
    private(set) var latest: HeldContainer?
    /// ETag of `latest`, for conditional fetches.
    private(set) var etag: String?
    /// A published version that rolls out to machines before this one, and the ETag of its fetch. The ETag is
    /// used for the next fetch, so that the document is not transferred again and again.
    private(set) var waiting: (version: Int, etag: String?)?
    /// Lowest version that is accepted. A copy with this version must have the same bytes as the known one.
    private var least: Int?

    /// The ETag for the next fetch; nil for an unconditional one.
    var wantedTag: String? { waiting?.etag ?? etag }

    /// Sets the lowest version that is accepted from now on.
    mutating func raiseLeast(to version: Int) { least = max(least ?? version, version) }

    /// Notes the copy that was saved.
    mutating func restore(_ container: HeldContainer, etag: String?) {
        latest = container
        self.etag = etag
    }

    /// Notes a fetched copy whose rollout includes this machine.
    mutating func replace(by container: HeldContainer, etag: String?) {
        waiting = nil
        least = container.copy.version
        restore(container, etag: etag)
    }

    /// Notes a fetched copy whose rollout does not include this machine yet. Returns whether the version has
    /// changed.
    mutating func noteWaiting(_ version: Int, etag: String?) -> Bool {
        defer { waiting = (version, etag) }
        return waiting?.version != version
    }

    /// Notes that the latest copy is the one that this machine should have; nil without a copy.
    mutating func confirm(at time: Timestamp) -> HeldContainer? {
        latest?.confirmed = time
        return latest
    }

    /// Forgets a copy that has expired. What was published before it stays refused.
    mutating func forget() {
        latest = nil
        etag = nil
        waiting = nil
    }

    /// Whether a document rolls out to a share that this machine is not in. A machine without a document
    /// takes it anyway: any published document is better than none.
    func isForOthers(_ copy: ContainerCopy, share: Double) -> Bool {
        guard let percent = copy.rollout, let latest, latest.copy.version < copy.version else { return false }
        return share >= percent
    }

    /// Why a fetched document must not follow those before it; nil if it may.
    func refusal(of copy: ContainerCopy) -> ContainerError? {
        if let least, copy.version < least {
            return ContainerError(
                .version,
                "version \(copy.version) is older than the saved \(least); to go back, sign the old "
                    + "content under a higher version"
            )
        }
        if let known = latest?.copy, known.version == copy.version, known.content != copy.content {
            return ContainerError(
                .version,
                "version \(copy.version) is known with another content; publish it under a higher version")
        }
        return nil
    }
}
