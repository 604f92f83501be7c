internal import EventLoops
internal import Model

/// What comes from the saved copy and from the network, and when to fetch next.
extension ContainerMachine {
    // MARK: Saved

    mutating func takeSaved(
        _ result: Saved, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator,
        _ effects: inout [Effect]
    ) {
        isSavedKnown = true
        switch result {
        case .copy(let copy, let tag, let confirmed):
            least = max(least ?? copy.version, copy.version)
            // A fetch that somebody asked for may have been quicker.
            guard held?.source != .network else { return }
            guard !isOver(copy, at: moment) else {
                fail(.saved, .expired, "version \(copy.version) has expired; publish a newer one", &effects)
                break
            }
            let container = HeldContainer(source: .saved, copy: copy, confirmed: confirmed)
            saved = container
            etag = tag
            effects.append(.tell(.succeeded(.saved, version: copy.version, isNew: true)))
            let fresh = isFresh(container, at: moment)
            if fresh || options.opening != .preferFresh || isOpen { take(container, &effects) }
            if fresh {
                schedule(after: moment.wall - confirmed, moment, &random)
                return
            }
        case .missing:
            fail(.saved, .noSavedContainer, "nothing was saved yet", &effects)
        case .failed(let message):
            fail(.saved, .ioError, message, &effects)
        case .refused(let refusal, let version):
            least = max(least ?? version, version)
            fail(.saved, RefreshResult(refusal.code), refusal.message, &effects)
        }
        fetch(moment, isOwn: true, &effects)
    }

    // MARK: Network

    mutating func fetch(_ moment: ContainerMoment, isOwn: Bool, _ effects: inout [Effect]) {
        guard options.hasAddress, !isFetching else { return }
        if isOwn {
            if let last = lastOwnFetch, moment.boot < last + ContainerMachine.leastPause {
                nextFetch = last + ContainerMachine.leastPause
                return
            }
            lastOwnFetch = moment.boot
        }
        isFetching = true
        nextFetch = nil
        effects += [.tell(.began(.network)), .fetch(etag: etag)]
    }

    mutating func takeFetched(
        _ result: Fetched, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator,
        _ effects: inout [Effect]
    ) {
        isFetching = false
        var result = result
        if case .copy(let copy, _) = result, let refusal = refusal(of: copy, at: moment) { result = .refused(refusal) }
        switch result {
        case .copy(let copy, let tag):
            let isNew = saved?.copy != copy
            least = copy.version
            etag = tag
            let container = HeldContainer(source: .network, copy: copy, confirmed: moment.wall)
            saved = container
            effects.append(.keep(copy, etag: tag, confirmed: moment.wall))
            succeed(copy.version, isNew: isNew, moment, &random, &effects)
            take(container, &effects)
        case .notModified:
            guard let known = saved, etag != nil else {
                return failFetch(.unknownError, "304 for a request that named no ETag", moment, &random, &effects)
            }
            let container = HeldContainer(source: known.source, copy: known.copy, confirmed: moment.wall)
            saved = container
            effects.append(.confirm(moment.wall))
            succeed(known.copy.version, isNew: false, moment, &random, &effects)
            take(container, &effects)
        case .refused(let refusal):
            failFetch(RefreshResult(refusal.code), refusal.message, moment, &random, &effects)
        case .failed(let reason, let message):
            failFetch(reason, message, moment, &random, &effects)
        }
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
        _ version: Int, isNew: Bool, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator,
        _ effects: inout [Effect]
    ) {
        failures = 0
        problem = nil
        schedule(after: .zero, moment, &random)
        effects.append(.tell(.succeeded(.network, version: version, isNew: isNew)))
    }

    mutating func failFetch(
        _ reason: RefreshResult, _ message: String, _ moment: ContainerMoment,
        _ random: inout some RandomNumberGenerator, _ effects: inout [Effect]
    ) {
        failures += 1
        problem = message
        fail(.network, reason, message, &effects)
        let longest = max(min(ContainerMachine.longestBackoff, options.refreshInterval), ContainerMachine.leastPause)
        let wait = min(ContainerMachine.leastPause * (1 << min(failures - 1, 10)), longest)
        nextFetch = moment.boot + wait * Double.random(in: 1...1.25, using: &random)
        // Whoever waits for the network waits in vain.
        if !isOpen { open(with: saved ?? standardHeld, &effects) }
    }

    func fail(_ type: RefreshType, _ reason: RefreshResult, _ message: String, _ effects: inout [Effect]) {
        effects.append(.tell(.failed(type, reason, message: message)))
    }

    /// Plans the next fetch of a copy that was confirmed so long ago: a little earlier than it must be, by chance.
    mutating func schedule(
        after age: Duration, _ moment: ContainerMoment, _ random: inout some RandomNumberGenerator
    ) {
        let wait = min(options.freshFor, options.refreshInterval) * Double.random(in: 0.9...1, using: &random)
        nextFetch = moment.boot + max(.zero, wait - age)
    }

    mutating func fetchSoon(_ moment: ContainerMoment) {
        // Without an address nothing would ever answer the wish, and it would wake the agent again and again.
        guard options.hasAddress else { return }
        let earliest = lastOwnFetch.map { $0 + ContainerMachine.leastPause } ?? moment.boot
        nextFetch = max(moment.boot, earliest)
    }
}
