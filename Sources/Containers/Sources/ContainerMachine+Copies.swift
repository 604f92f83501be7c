internal import EventLoops
internal import Model

/// What comes from the saved copy and from the network, and when to fetch next.
extension ContainerMachine {
    mutating func takeSaved(_ result: Saved, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator) {
        isSavedKnown = true
        switch result {
        case .copy(let copy, let tag, let confirmed):
            least = max(least ?? copy.version, copy.version)
            // A fetch that somebody asked for may have been quicker.
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
            if fresh || options.opening != .preferFresh || isOpen { take(container) }
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

    /// A route or the network is back: what is missing or stale is fetched at once; once a minute where a route flaps.
    mutating func networkReturned(_ moment: ContainerMoment) {
        guard options.hasAddress, isSavedKnown, !isFetching, failures > 0 || !isFresh(at: moment) else { return }
        let pause = lastReturn.map { $0 + ContainerMachine.leastPause } ?? moment.boot
        let earliest = max(pause, notBefore ?? pause)
        guard moment.boot >= earliest else { return nextFetch = earliest }
        (lastReturn, lastOwnFetch) = (moment.boot, moment.boot)
        fetch(moment, isOwn: false)
    }

    /// The earliest moment at which the machine may fetch without being asked to; the distant past before the first fetch.
    private var earliestOwnFetch: BootInstant {
        let past = BootInstant(nanoseconds: .min)
        return max(lastOwnFetch.map { $0 + ContainerMachine.leastPause } ?? past, notBefore ?? past)
    }

    mutating func takeFetched(
        _ result: Fetched, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        isFetching = false
        var result = result
        if case .copy(let copy, _) = result, let refusal = refusal(of: copy, at: moment) { result = .refused(refusal) }
        switch result {
        case .copy(let copy, let tag) where isForOthers(copy):
            if waiting?.version != copy.version { effects.append(.tell(.heldBack(version: copy.version))) }
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
            // Only what is longer than the pause of its own: a server that says a second is not asked each second.
            if let wait { notBefore = moment.boot + wait * Double.random(in: 1...1.25, using: &random) }
            failFetch(reason, message, moment, &random)
        }
    }

    /// Whether a document rolls out to a share that this machine is not in. One that has none yet takes it anyway: any
    /// published document is better than none.
    private func isForOthers(_ copy: ContainerCopy) -> Bool {
        guard let percent = copy.rollout, let saved, saved.copy.version < copy.version else { return false }
        return options.share >= percent
    }

    /// The copy in hand is the one that this machine should have.
    private mutating func confirmKnown(_ moment: ContainerMoment, _ random: inout some RandomNumberGenerator) {
        saved?.confirmed = moment.wall
        guard let known = saved else { return }
        // What is in the database is another copy, as long as this one is not: its age is not to be renewed.
        if unsaved == nil {
            effects.append(.confirm(moment.wall))
        } else {
            unsaved?.container = known
            save()
        }
        succeed(known.copy.version, isNew: false, moment, &random)
        take(known)
    }

    mutating func save() {
        guard let container = unsaved?.container, let confirmed = container.confirmed else { return }
        effects.append(.keep(container.copy, etag: etag, confirmed: confirmed))
    }

    mutating func noteKept(_ isSaved: Bool, _ moment: ContainerMoment) {
        guard !isSaved, let failures = unsaved?.failures else { return unsaved = nil }
        let pauses = ContainerMachine.savePauses
        unsaved?.next = moment.boot + min(pauses.first * (1 << min(failures, 10)), pauses.longest)
        unsaved?.failures += 1
    }

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
                .version, "version \(copy.version) is known with another content; publish it under a higher version")
        }
        return nil
    }

    mutating func succeed(
        _ version: Int, isNew: Bool, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        failures = 0
        problem = nil
        notBefore = nil
        schedule(after: .zero, moment, &random)
        effects.append(.tell(.succeeded(.network, version: version, isNew: isNew)))
    }

    mutating func failFetch(
        _ reason: RefreshResult, _ message: String, _ moment: ContainerMoment,
        _ random: inout some RandomNumberGenerator
    ) {
        failures += 1
        problem = message
        fail(.network, reason, message)
        let wait = min(ContainerMachine.leastPause * (1 << min(failures - 1, 10)), ContainerMachine.longestBackoff)
        let own = moment.boot + wait * Double.random(in: 1...1.25, using: &random)
        nextFetch = max(own, notBefore ?? own)
        // Whoever waits for the network waits in vain.
        if !isOpen { open(with: saved ?? standardHeld) }
    }

    mutating func fail(_ type: RefreshType, _ reason: RefreshResult, _ message: String) {
        effects.append(.tell(.failed(type, reason, message: message)))
    }

    /// Plans the next fetch of a copy that was confirmed so long ago: a little earlier than it must be, at random.
    mutating func schedule(after age: Duration, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator) {
        // Where that would be sooner than it may be, later at random: a fleet that all waited the least pause would fetch in step.
        let wait = max(
            min(options.freshFor, options.refreshInterval) * Double.random(in: 0.9...1, using: &random),
            ContainerMachine.leastPause * Double.random(in: 1...1.1, using: &random))
        // Confirmed in the future: the clock was set back, and nobody knows how old the copy is.
        nextFetch = moment.boot + (age < .zero ? .zero : max(.zero, wait - age))
    }

    mutating func fetchSoon(_ moment: ContainerMoment) {
        // Without an address nothing would ever answer the wish, and it would wake the agent again and again.
        guard options.hasAddress else { return }
        nextFetch = max(moment.boot, earliestOwnFetch)
    }
}
