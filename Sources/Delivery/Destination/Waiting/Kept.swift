internal import EventLoops
internal import Model

/// The batches of a destination between attempts, each id once. Their events are in the queue.
///
/// Up to two thousand of them are searched many times per request to find the next one. What decides that is
/// copied to a card of plain bytes beside each batch, and totals are kept. Searching the batches themselves,
/// with their strings and reference counts, took 2 ms per request.
struct Kept: Sendable {
    /// What decides when a batch is sent; a copy of some fields of `TrackedBatch`, without references.
    struct Card: Sendable {
        let id: BatchID
        let priority: Priority
        let events: Int
        let acceptedAt: Timestamp
        let place: PiecePlace
        let notBefore: BootInstant
        let attemptedAt: BootInstant?
        let rejectedAt: BootInstant?
        let tries: Int
        let aside: TrackedBatch.Aside?
        let waitsForRetry: Bool
        let waitsForDestination: Bool
        let isTriedAgain: Bool
        let mayBeTaken: Bool
        /// Number of the app of all events; nil if there are several or it is unknown.
        let app: Int?

        fileprivate init(_ batch: TrackedBatch, app: Int?) {
            id = batch.header.id
            priority = batch.header.priority
            events = batch.header.events
            acceptedAt = batch.header.acceptedAt
            place = batch.place
            notBefore = batch.notBefore
            attemptedAt = batch.attemptedAt
            rejectedAt = batch.rejectedAt
            tries = batch.history.tries
            aside = batch.aside
            waitsForRetry = batch.waitsForRetry
            waitsForDestination = batch.waitsForDestination
            isTriedAgain = batch.isTriedAgain
            mayBeTaken = batch.mayBeTaken
            self.app = app
        }

        var isSetAside: Bool { aside != nil }

        /// Whether the batch was rejected and waits among the others, not set aside.
        var isOpenlyRejected: Bool { rejectedAt != nil && aside == nil }

        /// Whether the left batch comes first in its lane: by acceptance, then by its place among the pieces
        /// of one batch, then by id.
        static func isOlder(_ left: Card, _ right: Card) -> Bool {
            if left.acceptedAt != right.acceptedAt { return left.acceptedAt < right.acceptedAt }
            if left.place != right.place { return left.place < right.place }
            return left.id < right.id
        }

        /// Whether the left batch was attempted longer ago, or never. Ties: critical first, then the smaller
        /// id.
        static func isRested(_ left: Card, _ right: Card) -> Bool {
            let first = left.attemptedAt?.nanoseconds ?? .min
            let second = right.attemptedAt?.nanoseconds ?? .min
            if first != second { return first < second }
            if left.priority != right.priority { return left.priority > right.priority }
            return left.id < right.id
        }

        /// Whether the left batch was tried in vain fewer times; of equals, the newer one.
        ///
        /// What was refused often while others were accepted will be refused again. (Failures in a doubt
        /// count, too: otherwise a batch that makes requests fail instead would have each turn of its app.)
        /// When a schema is repaired, the events that it refused are the newest of the refused ones. (By the
        /// last refusal they would not be: after a restart all others are refused once more.)
        static func isLessTried(_ left: Card, _ right: Card) -> Bool {
            if left.tries != right.tries { return left.tries < right.tries }
            return isOlder(right, left)
        }

        /// Whether the left batch is tried first when apps take turns.
        ///
        /// - Parameters:
        ///   - last: number of the app that was tried last; the turns go on behind it.
        ///   - comesBefore: the order of the batches of one app.
        static func isNext(
            _ left: Card, _ right: Card, after last: Int, by comesBefore: (Card, Card) -> Bool
        ) -> Bool {
            guard left.app != right.app else { return comesBefore(left, right) }
            let one = left.app ?? -1
            let other = right.app ?? -1
            return (one <= last ? 1 : 0, one) < (other <= last ? 1 : 0, other)
        }
    }

    /// The batch that was tried last, whether or not it is kept again, and the last app of each kind.
    ///
    /// If the turns were read off the batches that are kept, an app whose batches end as dead letters would
    /// stay first in line until the last of them is gone. Each kind has turns of its own: otherwise each
    /// set-aside batch in between would bring the same other app back.
    struct LastTried: Sendable, Equatable {
        var wasSetAside = false
        /// App of the last set-aside batch; nil if there were several or it is unknown.
        var appAside: String?
        /// App of the last other batch.
        var app: String?
    }

    /// Running totals, so that checking a bound does not scan all batches.
    struct Counts: Sendable, Equatable {
        var batches = PerPriority(both: 0)
        /// Batches that wait for a retry.
        var retries = PerPriority(both: 0)
        var events = 0
        /// Batches neither rejected nor set aside.
        var unrejected = PerPriority(both: 0)
        /// Batches rejected and not set aside.
        var rejected = 0
        /// Batches set aside because they fail while others succeed.
        var failing = 0
        /// Batches set aside because too many events of their app were rejected.
        var refused = 0

        /// Adds a batch (1) or takes it out (-1).
        fileprivate mutating func add(_ card: Card, _ sign: Int) {
            batches[card.priority] += sign
            events += sign * card.events
            if card.waitsForRetry {
                retries[card.priority] += sign
            }
            switch card.aside {
            case .fails: failing += sign
            case .rejected: refused += sign
            case nil where card.rejectedAt != nil: rejected += sign
            case nil: unrejected[card.priority] += sign
            }
        }
    }

    /// Number of apps beyond which the numbers of gone apps are forgotten.
    private static let mostApps = 4096

    /// Running totals; always the sum over `cards`.
    private(set) var counts = Counts()
    /// Events set aside, by app; the empty name counts batches of several or unknown apps.
    private(set) var eventsAside: [String: Int] = [:]
    /// Index of each batch in `cards` and `batches`.
    private var indices: [BatchID: Int] = [:]
    /// One card per batch.
    private var cards: [Card] = []
    /// The batches, in the order of `cards`.
    private var batches: [TrackedBatch] = []
    /// Numbers of apps, so that a card holds no string. All are forgotten when no batch is kept.
    private var appNumbers: [String: Int] = [:]
    /// Decides whose turn is next; nil before any batch was taken out to be sent.
    private(set) var lastTried: LastTried?

    var isEmpty: Bool { cards.isEmpty }
    var count: Int { cards.count }

    /// All batches in no particular order. Copying many of them is expensive.
    var all: [TrackedBatch] { batches }

    subscript(id: BatchID) -> TrackedBatch? { indices[id].map { batches[$0] } }

    // MARK: Changes

    /// Keeps a batch; one with the same id is replaced.
    mutating func keep(_ batch: TrackedBatch) {
        let card = Card(batch, app: batch.app.map { number(adding: $0) })
        if let index = indices[batch.header.id] {
            count(index, -1)
            cards[index] = card
            batches[index] = batch
        } else {
            indices[batch.header.id] = cards.count
            cards.append(card)
            batches.append(batch)
        }
        count(indices[batch.header.id] ?? 0, 1)
        assert(indices.count == cards.count && cards.count == batches.count, "each id is kept once")
    }

    /// Takes a batch out and returns it; nil if it is unknown.
    @discardableResult
    mutating func remove(_ id: BatchID) -> TrackedBatch? {
        guard let index = indices.removeValue(forKey: id) else { return nil }
        count(index, -1)
        let removed = batches[index]
        // Moving the last batch into the gap keeps removal independent of their number.
        let card = cards.removeLast()
        let batch = batches.removeLast()
        if index < cards.count {
            cards[index] = card
            batches[index] = batch
            indices[card.id] = index
        }
        if cards.isEmpty {
            appNumbers = [:]
        }
        return removed
    }

    /// Takes a batch out to send it, which ends its app's turn.
    mutating func take(_ id: BatchID) -> TrackedBatch? {
        guard let batch = remove(id) else { return nil }
        var last = lastTried ?? LastTried()
        last.wasSetAside = batch.isSetAside
        if batch.isSetAside {
            last.appAside = batch.app
        } else {
            last.app = batch.app
        }
        lastTried = last
        return batch
    }

    /// Takes out the batches that meet a condition.
    mutating func removeAll(where isMeant: (Card) -> Bool = { _ in true }) {
        for id in cards.filter(isMeant).map(\.id) { remove(id) }
    }

    /// Changes one batch, and its card and the totals with it.
    mutating func update(_ id: BatchID, _ change: (inout TrackedBatch) -> Void) {
        guard let index = indices[id] else { return }
        var batch = batches[index]
        change(&batch)
        keep(batch)
    }

    /// Changes the batches that meet a condition.
    mutating func updateAll(
        where isMeant: (Card) -> Bool = { _ in true }, _ change: (inout TrackedBatch) -> Void
    ) {
        for index in cards.indices where isMeant(cards[index]) {
            var batch = batches[index]
            change(&batch)
            keep(batch)
        }
    }

    // MARK: Questions

    /// The number of an app; nil if no batch of it was kept.
    func number(of app: String) -> Int? { appNumbers[app] }

    /// The ids of the batches that meet a condition.
    func ids(where isMeant: (Card) -> Bool = { _ in true }) -> Set<BatchID> {
        Set(cards.lazy.filter(isMeant).map(\.id))
    }

    func contains(where isMeant: (Card) -> Bool) -> Bool { cards.contains(where: isMeant) }

    func count(where isMeant: (Card) -> Bool) -> Int { cards.count(where: isMeant) }

    /// The first card by an order, among those that meet a condition.
    func first(
        by comesBefore: (Card, Card) -> Bool, where isMeant: (Card) -> Bool = { _ in true }
    ) -> Card? {
        var first: Card?
        for card in cards where isMeant(card) {
            if let known = first, !comesBefore(card, known) { continue }
            first = card
        }
        return first
    }

    /// The batch whose app is next, of those that are set aside or of the others.
    ///
    /// - Parameter comesBefore: the order of one app's batches.
    func nextInTurn(
        isSetAside: Bool, where isMeant: (Card) -> Bool = { _ in true },
        by comesBefore: (Card, Card) -> Bool = Card.isRested
    ) -> Card? {
        let app = isSetAside ? lastTried?.appAside : lastTried?.app
        let last = app.flatMap { number(of: $0) } ?? -1
        return first {
            Card.isNext($0, $1, after: last, by: comesBefore)
        } where: {
            $0.isSetAside == isSetAside && isMeant($0)
        }
    }

    /// When the next batch may be sent that may not be sent now; never before the barrier.
    func nextNotBefore(after now: BootInstant, atLeast barrier: BootInstant) -> BootInstant? {
        var next = NextPoint(after: now)
        for card in cards { next.take(max(card.notBefore, barrier)) }
        return next.point
    }

    /// Number of batches set aside for a reason.
    func count(of aside: TrackedBatch.Aside) -> Int { aside == .fails ? counts.failing : counts.refused }

    /// Adds the batch at an index to the totals (1) or takes it out (-1).
    private mutating func count(_ index: Int, _ sign: Int) {
        counts.add(cards[index], sign)
        guard cards[index].isSetAside else { return }
        let app = batches[index].app ?? ""
        let events = eventsAside[app, default: 0] + sign * cards[index].events
        eventsAside[app] = events == 0 ? nil : events
    }

    /// The number of an app, given out if it has none.
    private mutating func number(adding app: String) -> Int {
        if let number = appNumbers[app] { return number }
        if appNumbers.count >= Kept.mostApps {
            forgetGoneApps()
        }
        let number = (appNumbers.values.max() ?? -1) + 1
        appNumbers[app] = number
        return number
    }

    /// Forgets the numbers of apps without a kept batch. Senders can invent any number of app names.
    private mutating func forgetGoneApps() {
        let present = Set(cards.compactMap(\.app))
        appNumbers = appNumbers.filter { present.contains($0.value) }
    }
}
