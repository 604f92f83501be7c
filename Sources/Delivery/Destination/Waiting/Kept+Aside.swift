internal import EventLoops
internal import Model

// Batches that were rejected or set aside: how many are kept in memory, and when each is tried again.
extension Kept {
    /// Most rejected batches and pieces that wait to be tried; each is kept in memory.
    private static let mostRejected = 1000
    /// Most batches that are set aside for one reason; each is kept in memory.
    private static let mostSetAside = 1000
    /// Most set-aside batches of an app that are tried again at about the same time, after others of it were
    /// accepted.
    private static let mostSampled = 8

    /// Whether memory has room for the pieces of another rejected batch.
    var hasRoomForRejected: Bool { counts.rejected < Kept.mostRejected }

    /// Whether no more batches may be set aside for a reason.
    func isFull(of aside: TrackedBatch.Aside) -> Bool { count(of: aside) >= Kept.mostSetAside }

    /// Makes room for one more rejected batch by forgetting one that was tried in a doubt and has rested
    /// longest. The queue keeps it as a free batch, which comes again after all else was offered.
    mutating func makeRoom(inDoubtSince began: BootInstant) {
        func isTried(_ card: Card) -> Bool {
            card.isOpenlyRejected && !card.mayBeTaken && !card.isUntried(since: began)
        }
        while !hasRoomForRejected, let tried = first(by: Card.isRested, where: isTried) { remove(tried.id) }
    }

    /// When the next rejected batch of an app may be tried: ten seconds after the one before it.
    func nextTurn(of app: String?, at now: BootInstant) -> BootInstant {
        let number = app.map { self.number(of: $0) ?? -1 }
        let last = first {
            $0.notBefore > $1.notBefore
        } where: {
            $0.aside == .rejected && $0.app == number
        }
        return max(last?.notBefore ?? now, now) + Doubt.step
    }

    /// The destination accepts events of an app: retries up to eight of its set-aside batches, the most
    /// recently set aside first. If one is accepted, all are retried.
    ///
    /// Retrying all at once would ask a receiver that refuses a fifth of the events for each refused event
    /// once more.
    mutating func sampleAside(of app: String, rejectedUntil end: BootInstant, at now: BootInstant) {
        guard let number = number(of: app) else { return }
        let soon = now + Doubt.step
        func isOfApp(_ card: Card) -> Bool { card.app == number && card.isSetAside }
        var coming = count { isOfApp($0) && $0.isTriedAgain && $0.notBefore <= soon }
        while coming < Kept.mostSampled,
            let last = first(
                by: { $0.notBefore > $1.notBefore },
                where: { isOfApp($0) && !$0.isTriedAgain && $0.rejectedAt.map { $0 <= end } == true })
        {
            update(last.id) { batch in
                let rested = batch.attemptedAt.map { $0 + Doubt.step } ?? now
                batch.notBefore = min(batch.notBefore, max(rested, now))
                batch.isTriedAgain = true
            }
            coming += 1
        }
    }

    /// Retries set-aside batches of an app or of all (nil), because an answer or a person says that the cause
    /// is gone.
    ///
    /// - Parameter pause: shortest time since a batch's last attempt.
    mutating func retryAside(of app: String?, after pause: Duration, at now: BootInstant) {
        let number = app.map { self.number(of: $0) ?? -1 }
        updateAll {
            $0.isSetAside && (number == nil || number == $0.app)
        } _: { batch in
            let rested = batch.attemptedAt.map { $0 + pause } ?? now
            batch.notBefore = min(batch.notBefore, max(rested, now))
            batch.isTriedAgain = pause > .zero
        }
    }

    /// Whether a batch is set aside because it fails: of an app (nil: of any), or of several or unknown apps.
    func hasFailing(of app: String?) -> Bool {
        let number = app.map { self.number(of: $0) ?? -1 }
        return contains { $0.aside == .fails && ($0.app ?? number) == number }
    }

    /// Apps of rejected batches, as far as they are known.
    var rejectedApps: Set<String> { Set(all.filter { $0.rejectedAt != nil }.compactMap(\.app)) }

    /// The numbers of apps, as cards have them; apps without a kept batch are left out.
    func numbers(of apps: Set<String>) -> Set<Int> { Set(apps.compactMap { number(of: $0) }) }

    /// The batch that comes first in its lane, among those given back and not set aside.
    func oldest(_ priority: Priority, where isMeant: (Card) -> Bool = { _ in true }) -> Card? {
        guard counts.batches[priority] > 0 else { return nil }
        return first(by: Card.isOlder) { $0.priority == priority && !$0.isSetAside && isMeant($0) }
    }
}

extension Kept.Card {
    /// Whether the batch must be sent before what came after it in its lane.
    ///
    /// A rejected batch may be passed unless the order is promised. Otherwise each new event would wait until
    /// every rejected event before it was found.
    func isInOrder(_ order: DestinationOptions.Order) -> Bool { order == .promised || rejectedAt == nil }

    /// Whether the batch was not attempted since a doubt began, and is not set aside.
    func isUntried(since began: BootInstant) -> Bool {
        !isSetAside && attemptedAt.map { $0 < began } ?? true
    }

    /// Whether later events may pass the batch in a doubt although the order is promised: only if the batch
    /// was rejected in this doubt.
    func mayBePassed(since began: BootInstant) -> Bool {
        // A batch that stays whole was rejected event by event.
        guard let rejectedAt, let attemptedAt else { return false }
        return attemptedAt >= began && rejectedAt >= attemptedAt
    }

    /// Whether the batch is a piece that was never sent, and its app is not among those that were tried.
    ///
    /// - Parameter asked: numbers of the apps that were tried.
    func isOfUntriedApp(_ asked: Set<Int>) -> Bool {
        attemptedAt == nil && !isSetAside && app.map { !asked.contains($0) } ?? false
    }
}
