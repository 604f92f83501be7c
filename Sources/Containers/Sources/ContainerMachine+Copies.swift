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
            published.raiseLeast(to: copy.version)
            // A fetch that a person asked for may have ended before.
            guard held?.source != .network else { return }
            guard !isOver(copy, at: moment) else {
                fail(.saved, .expired, "version \(copy.version) has expired; publish a newer one")
                break
            }
            let container = HeldContainer(source: .saved, copy: copy, confirmed: confirmed)
            published.restore(container, etag: tag)
            effects.append(.tell(.succeeded(.saved, version: copy.version, isNew: true)))
            let fresh = isFresh(container, at: moment)
            if fresh || options.opening != .preferFresh || isOpen {
                putInForce(container)
            }
            if fresh { return schedule(after: moment.wall - confirmed, moment, &random) }
        case .missing:
            fail(.saved, .noSavedContainer, "nothing was saved yet")
        case .failed(let message):
            fail(.saved, .ioError, message)
        case .refused(let refusal, let version):
            published.raiseLeast(to: version)
            fail(.saved, RefreshResult(refusal.code), refusal.message)
        }
        fetch(moment, isOwn: true)
    }

    /// Begins a fetch, unless one is under way.
    ///
    /// - Parameter isOwn: whether no person asked for it; then the least pause applies.
    mutating func fetch(_ moment: ContainerMoment, isOwn: Bool) {
        guard options.hasAddress, fetches.begin(at: moment.boot, isOwn: isOwn) else { return }
        effects += [.tell(.began(.network)), .fetch(etag: published.wantedTag)]
    }

    /// The network is back: a missing or stale document is fetched at once, but at most once a minute if the
    /// route flaps.
    mutating func networkReturned(_ moment: ContainerMoment) {
        guard options.hasAddress, isSavedKnown, !isFetching,
            fetches.failures > 0 || !isFresh(at: moment),
            fetches.beginAfterReturn(at: moment.boot)
        else { return }
        effects += [.tell(.began(.network)), .fetch(etag: published.wantedTag)]
    }

    /// Handles the result of a fetch.
    mutating func takeFetched(
        _ result: Fetched, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        fetches.end()
        var result = result
        if case .copy(let copy, _) = result, let refusal = refusal(of: copy, at: moment) {
            result = .refused(refusal)
        }
        switch result {
        case .copy(let copy, let tag) where published.isForOthers(copy, share: options.share):
            if published.noteWaiting(copy.version, etag: tag) {
                effects.append(.tell(.heldBack(version: copy.version)))
            }
            confirmKnown(moment, &random)
        case .copy(let copy, let tag):
            let isNew = published.latest?.copy != copy
            let container = HeldContainer(source: .network, copy: copy, confirmed: moment.wall)
            published.replace(by: container, etag: tag)
            unsaved = Unsaved(container: container, next: unsaved?.next)
            save()
            succeed(copy.version, isNew: isNew, moment, &random)
            putInForce(container)
        case .notModified:
            guard published.latest != nil, published.wantedTag != nil else {
                return failFetch(.unknownError, "304 for a request without an ETag", moment, &random)
            }
            confirmKnown(moment, &random)
        case .refused(let refusal):
            failFetch(RefreshResult(refusal.code), refusal.message, moment, &random)
        case .failed(let reason, let message, let wait):
            // Only a time longer than the machine's own pause counts: a server that says "one second" is not
            // asked each second.
            if let wait {
                fetches.delay(by: wait, at: moment.boot, &random)
            }
            failFetch(reason, message, moment, &random)
        }
    }

    /// Notes that the copy is the one that this machine should have, and uses it.
    private mutating func confirmKnown(_ moment: ContainerMoment, _ random: inout some RandomNumberGenerator)
    {
        guard let known = published.confirm(at: moment.wall) else { return }
        // While the copy is not saved, the database has another one, whose age must not be renewed.
        if unsaved == nil {
            effects.append(.confirm(moment.wall))
        } else {
            unsaved?.container = known
            save()
        }
        succeed(known.copy.version, isNew: false, moment, &random)
        putInForce(known)
    }

    /// Saves the copy that is not saved yet.
    mutating func save() {
        guard let container = unsaved?.container, let confirmed = container.confirmed else { return }
        effects.append(.keep(container.copy, etag: published.etag, confirmed: confirmed))
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
        return published.refusal(of: copy)
    }

    /// Notes a good fetch, and plans the next one.
    mutating func succeed(
        _ version: Int, isNew: Bool, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        fetches.succeed()
        problem = nil
        schedule(after: .zero, moment, &random)
        effects.append(.tell(.succeeded(.network, version: version, isNew: isNew)))
    }

    /// Notes a failed fetch, and plans the next one.
    mutating func failFetch(
        _ reason: RefreshResult, _ message: String, _ moment: ContainerMoment,
        _ random: inout some RandomNumberGenerator
    ) {
        problem = message
        fail(.network, reason, message)
        fetches.fail(at: moment.boot, &random)
        // Opening that waits for the network would wait in vain.
        if !isOpen {
            open(with: published.latest ?? standardHeld)
        }
    }

    /// Reports a failure.
    mutating func fail(_ type: RefreshType, _ reason: RefreshResult, _ message: String) {
        effects.append(.tell(.failed(type, reason, message: message)))
    }

    /// Plans the next fetch of a copy that was confirmed some time ago.
    mutating func schedule(
        after age: Duration, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        fetches.schedule(
            each: min(options.freshFor, options.refreshInterval), after: age, at: moment.boot, &random)
    }

    /// Plans a fetch as soon as it is allowed.
    mutating func fetchSoon(_ moment: ContainerMoment) {
        // Without a URL no fetch would ever satisfy this, and the timer would wake the agent again and again.
        guard options.hasAddress else { return }
        fetches.soon(at: moment.boot)
    }
}
