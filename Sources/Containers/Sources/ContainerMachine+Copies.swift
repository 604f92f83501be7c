internal import EventLoops
internal import Model

/// What happens with the saved copy and with fetches, and when the next fetch is due.
extension ContainerMachine {
    /// Handles the saved copy: it is used, unless a fetch was faster, and decides when the first fetch is
    /// due.
    mutating func takeSaved(
        _ result: Saved, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        isSavedKnown = true
        switch result {
        case .copy(let copy, let tag, let confirmed):
            least = max(least ?? copy.version, copy.version)
            // A fetch that a person asked for may have ended before.
            guard held?.source != .network else { return }
            guard !isOver(copy, at: moment) else {
                fail(.saved, .expired, "version \(copy.version) has expired; publish a newer one")
                break
            }
            let container = HeldContainer(source: .saved, copy: copy, confirmed: confirmed)
            saved = container
            etag = tag
            effects.append(.tell(.succeeded(.saved, version: copy.version, isNew: true)))
            let fresh = isFresh(container, at: moment)
            if fresh || options.opening != .preferFresh || isOpen {
                take(container)
            }
            if fresh { return schedule(after: moment.wall - confirmed, moment, &random) }
        case .missing:
            fail(.saved, .noSavedContainer, "nothing was saved yet")
        case .failed(let message):
            fail(.saved, .ioError, message)
        case .refused(let refusal, let version):
            least = max(least ?? version, version)
            fail(.saved, RefreshResult(refusal.code), refusal.message)
        }
        fetch(moment, isOwn: true)
    }

    /// Begins a fetch, unless one is under way.
    ///
    /// - Parameter isOwn: whether no person asked for it; then the least pause applies.
    mutating func fetch(_ moment: ContainerMoment, isOwn: Bool) {
        guard options.hasAddress, !isFetching else { return }
        if isOwn {
            let earliest = earliestOwnFetch
            guard moment.boot >= earliest else { return nextFetch = earliest }
            lastOwnFetch = moment.boot
        }
        isFetching = true
        nextFetch = nil
        effects += [.tell(.began(.network)), .fetch(etag: waiting?.etag ?? etag)]
    }

    /// The network is back: a missing or stale document is fetched at once, but at most once a minute if the
    /// route flaps.
    mutating func networkReturned(_ moment: ContainerMoment) {
        guard options.hasAddress, isSavedKnown, !isFetching, failures > 0 || !isFresh(at: moment) else {
            return
        }
        let pause = lastReturn.map { $0 + ContainerMachine.leastPause } ?? moment.boot
        let earliest = max(pause, notBefore ?? pause)
        guard moment.boot >= earliest else { return nextFetch = earliest }
        (lastReturn, lastOwnFetch) = (moment.boot, moment.boot)
        fetch(moment, isOwn: false)
    }

    /// The earliest time for a fetch that no person asked for; the distant past before the first fetch.
    private var earliestOwnFetch: BootInstant {
        let past = BootInstant(nanoseconds: .min)
        return max(lastOwnFetch.map { $0 + ContainerMachine.leastPause } ?? past, notBefore ?? past)
    }

    /// Handles the result of a fetch.
    mutating func takeFetched(
        _ result: Fetched, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        isFetching = false
        var result = result
        if case .copy(let copy, _) = result, let refusal = refusal(of: copy, at: moment) {
            result = .refused(refusal)
        }
        switch result {
        case .copy(let copy, let tag) where isForOthers(copy):
            if waiting?.version != copy.version {
                effects.append(.tell(.heldBack(version: copy.version)))
            }
            waiting = (copy.version, tag)
            confirmKnown(moment, &random)
        case .copy(let copy, let tag):
            waiting = nil
            let isNew = saved?.copy != copy
            least = copy.version
            etag = tag
            let container = HeldContainer(source: .network, copy: copy, confirmed: moment.wall)
            saved = container
            unsaved = (container, 0, unsaved?.next)
            save()
            succeed(copy.version, isNew: isNew, moment, &random)
            take(container)
        case .notModified:
            guard saved != nil, etag != nil || waiting?.etag != nil else {
                return failFetch(.unknownError, "304 for a request without an ETag", moment, &random)
            }
            confirmKnown(moment, &random)
        case .refused(let refusal):
            failFetch(RefreshResult(refusal.code), refusal.message, moment, &random)
        case .failed(let reason, let message, let wait):
            // Only a time longer than the machine's own pause counts: a server that says "one second" is not
            // asked each second.
            if let wait {
                notBefore = moment.boot + wait * Double.random(in: 1...1.25, using: &random)
            }
            failFetch(reason, message, moment, &random)
        }
    }

    /// Whether a document rolls out to a share that this machine is not in. A machine without a document
    /// takes it anyway: any published document is better than none.
    private func isForOthers(_ copy: ContainerCopy) -> Bool {
        guard let percent = copy.rollout, let saved, saved.copy.version < copy.version else { return false }
        return options.share >= percent
    }

    /// Notes that the copy is the one that this machine should have, and uses it.
    private mutating func confirmKnown(_ moment: ContainerMoment, _ random: inout some RandomNumberGenerator)
    {
        saved?.confirmed = moment.wall
        guard let known = saved else { return }
        // While the copy is not saved, the database has another one, whose age must not be renewed.
        if unsaved == nil {
            effects.append(.confirm(moment.wall))
        } else {
            unsaved?.container = known
            save()
        }
        succeed(known.copy.version, isNew: false, moment, &random)
        take(known)
    }

    /// Saves the copy that is not saved yet.
    mutating func save() {
        guard let container = unsaved?.container, let confirmed = container.confirmed else { return }
        effects.append(.keep(container.copy, etag: etag, confirmed: confirmed))
    }

    /// Handles the result of saving; after a failure the pause doubles.
    mutating func noteKept(_ isSaved: Bool, _ moment: ContainerMoment) {
        guard !isSaved, let failures = unsaved?.failures else { return unsaved = nil }
        let pauses = ContainerMachine.savePauses
        unsaved?.next = moment.boot + min(pauses.first * (1 << min(failures, 10)), pauses.longest)
        unsaved?.failures += 1
    }

    /// Why a fetched document must not be used; nil if it may.
    func refusal(of copy: ContainerCopy, at moment: ContainerMoment) -> ContainerError? {
        if isOver(copy, at: moment) {
            return ContainerError(
                .expired, "version \(copy.version) has expired already; publish one with a later expiry date")
        }
        if let least, copy.version < least {
            return ContainerError(
                .version,
                "version \(copy.version) is older than the saved \(least); to go back, sign the old content under a higher version"
            )
        }
        if let known = saved?.copy, known.version == copy.version, known.content != copy.content {
            return ContainerError(
                .version,
                "version \(copy.version) is known with another content; publish it under a higher version")
        }
        return nil
    }

    /// Notes a good fetch, and plans the next one.
    mutating func succeed(
        _ version: Int, isNew: Bool, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        failures = 0
        problem = nil
        notBefore = nil
        schedule(after: .zero, moment, &random)
        effects.append(.tell(.succeeded(.network, version: version, isNew: isNew)))
    }

    /// Notes a failed fetch, and plans the next one: the pause doubles, up to an hour, and is spread by a
    /// quarter.
    mutating func failFetch(
        _ reason: RefreshResult, _ message: String, _ moment: ContainerMoment,
        _ random: inout some RandomNumberGenerator
    ) {
        failures += 1
        problem = message
        fail(.network, reason, message)
        let wait = min(
            ContainerMachine.leastPause * (1 << min(failures - 1, 10)), ContainerMachine.longestBackoff)
        let own = moment.boot + wait * Double.random(in: 1...1.25, using: &random)
        nextFetch = max(own, notBefore ?? own)
        // Opening that waits for the network would wait in vain.
        if !isOpen {
            open(with: saved ?? standardHeld)
        }
    }

    /// Reports a failure.
    mutating func fail(_ type: RefreshType, _ reason: RefreshResult, _ message: String) {
        effects.append(.tell(.failed(type, reason, message: message)))
    }

    /// Plans the next fetch of a copy that was confirmed some time ago: up to a tenth earlier than due, by
    /// chance.
    mutating func schedule(
        after age: Duration, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        // If that is sooner than the least pause, a little later, at random: a fleet that waits exactly the
        // least pause would fetch at one moment.
        let wait = max(
            min(options.freshFor, options.refreshInterval) * Double.random(in: 0.9...1, using: &random),
            ContainerMachine.leastPause * Double.random(in: 1...1.1, using: &random))
        // Confirmed in the future: the clock was set back, and the age of the copy is not known.
        nextFetch = moment.boot + (age < .zero ? .zero : max(.zero, wait - age))
    }

    /// Plans a fetch as soon as it is allowed.
    mutating func fetchSoon(_ moment: ContainerMoment) {
        // Without a URL no fetch would ever satisfy this, and the timer would wake the agent again and again.
        guard options.hasAddress else { return }
        nextFetch = max(moment.boot, earliestOwnFetch)
    }
}
