/// How a refused batch is cut into pieces, to find the refused events.
///
/// A batch of up to 64 events is cut at most twice, so that each good event is sent at most three times: in
/// the batch, in a piece, and alone. Halving would send the neighbours of a bad event seven times, and a
/// receiver that stores the good part of a refused request would store them seven times. Larger batches are
/// halved while few events are refused: one bad event of 5,000 then costs 25 requests instead of 140.
enum Cut {
    /// Largest batch that is cut into small pieces at once, in events.
    private static let smallBatch = 64
    /// Largest piece of such a batch, in events; its events are sent alone next.
    static let smallPiece = 8
    /// Most pieces of one cut; each is kept in memory.
    private static let mostPieces = 64

    /// The number of the piece for each event.
    ///
    /// - Parameters:
    ///   - apps: app of each event if pieces are parted between apps; empty if the order is kept or no app is
    ///     known.
    ///   - isPiece: whether the batch is a piece of another one already.
    ///   - hopeless: apps of which nothing is accepted. The events of each stay together, because one of them
    ///     is tried anyway.
    ///   - share: share of an app's events that are refused, from 0 to 1; nil if unknown.
    static func pieces(
        of events: Int, apps: [String] = [], isPiece: Bool = false, hopeless: Set<String> = [],
        share: (String?) -> Double? = { _ in nil }
    ) -> [Int] {
        let names = Set(apps).sorted()
        if isPiece, events <= smallPiece { return Array(0..<events) }
        guard events > smallBatch || isPiece else {
            return small(events, apps: apps, names: names, hopeless: hopeless, share: share)
        }
        // With many refused events, small pieces need the fewest requests (group testing, R. Dorfman 1943,
        // doi:10.1214/aoms/1177731363). Below four expected refusals, halving does.
        if let overall = share(names.count <= 1 ? names.first : nil), overall * Double(events) >= 4 {
            let least = (events + mostPieces - 1) / mostPieces
            return runs(of: events, apps: apps, names: names, hopeless: hopeless) { app in
                max(min(smallPiece, best(share(app) ?? overall)), least)
            }
        }
        return halves(of: events, apps: apps)
    }

    /// Number of the half, 0 or 1, for each event. Halves are parted between apps, so that one app's events
    /// soon cost the others no requests. A single app, or a lane with an order, is cut in the middle.
    ///
    /// - Parameters:
    ///   - apps: app of each event; empty if the order is kept or no app is known.
    ///   - isSampled: whether the first half is a single event.
    static func halves(of events: Int, apps: [String], isSampled: Bool = false) -> [Int] {
        let names = Set(apps).sorted()
        let first = Set(names.prefix(names.count / 2))
        return (0..<events).map { index in
            (first.isEmpty ? index < (isSampled ? 1 : events / 2) : first.contains(apps[index])) ? 0 : 1
        }
    }

    /// The number of the piece for each event of a batch that is parted between apps: one piece for each
    /// wanted app, and the rest together.
    ///
    /// - Parameters:
    ///   - most: most pieces besides the rest.
    ///   - isSampled: whether only the first event of each wanted app is parted off.
    ///   - isWanted: whether an app's events are parted off.
    static func parted(
        _ apps: [String], atMost most: Int, isSampled: Bool, where isWanted: (String) -> Bool
    ) -> [Int] {
        var numbers: [String: Int] = [:]
        return apps.map { app in
            let isNew = numbers[app] == nil
            let isMine =
                isSampled ? isNew && app != "" && numbers.count < most && isWanted(app) : isWanted(app)
            guard isMine else { return most }
            numbers[app] = numbers[app] ?? min(numbers.count, most - 1)
            return numbers[app] ?? most
        }
    }

    /// Upper limit of a new batch's events while the destination refuses this share of events: one cut of
    /// such a batch makes pieces of the best size. No limit while few events are refused.
    static func largestBatch(share: Double?) -> Int {
        guard let share, share * Double(smallBatch) >= 4 else { return .max }
        return max(smallBatch, mostPieces * best(share))
    }

    /// Cuts a small batch: for each app runs of at most eight events, or of the root of the batch's size
    /// while no share is known.
    private static func small(
        _ events: Int, apps: [String], names: [String], hopeless: Set<String>, share: (String?) -> Double?
    ) -> [Int] {
        let root = min(smallPiece, Int(Double(events).squareRoot()))
        return runs(of: events, apps: apps, names: names, hopeless: hopeless) { app in
            min(root, share(app).map { best($0) } ?? root)
        }
    }

    /// Cuts into runs of each app's best size; all events of a hopeless app stay in one piece.
    private static func runs(
        of events: Int, apps: [String], names: [String], hopeless: Set<String>, size: (String?) -> Int
    ) -> [Int] {
        guard names.count > 1 else { return runs(of: events, size: size(names.first)) }
        var indices: [String: [Int]] = [:]
        for (index, app) in apps.enumerated() { indices[app, default: []].append(index) }
        var pieces = Array(repeating: 0, count: events)
        var next = 0
        for name in names {
            let mine = indices[name] ?? []
            let numbers = runs(of: mine.count, size: hopeless.contains(name) ? mine.count : size(name))
            for (index, number) in zip(mine, numbers) { pieces[index] = next + number }
            next += (numbers.last ?? 0) + 1
        }
        return pieces
    }

    /// The piece size that needs the fewest requests at a share of refused events: one request for each
    /// piece, and one more for each event of a piece that holds a refused one.
    private static func best(_ share: Double) -> Int {
        var best = (size: 1, requests: 1.0)
        var allGood = 1 - share
        for size in 2...smallPiece {
            allGood *= 1 - share
            let requests = 1 / Double(size) + 1 - allGood
            if requests < best.requests {
                best = (size, requests)
            }
        }
        return best.size
    }

    /// Runs of equal length, as few as the size allows.
    private static func runs(of events: Int, size: Int) -> [Int] {
        let count = max(1, (events + size - 1) / size)
        return (0..<events).map { $0 * count / max(events, 1) }
    }
}
